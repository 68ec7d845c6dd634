"""Passes: what one read of all blocks can answer. No I/O, no Dask."""
