"""Ingest: any source of rows becomes a dataset, in memory that does not depend on its size."""
