"""Engines: who executes a pass. Only ``distributed``, ``clusters``, ``watch``, ``task_pool`` and ``worker`` import Dask."""
