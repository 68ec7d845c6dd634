"""Engines: who executes a pass. ``cluster`` imports Dask; import it only where a cluster is wanted."""

from dfeas.engine.local import LocalEngine
from dfeas.engine.protocol import Engine

__all__ = ["Engine", "LocalEngine"]
