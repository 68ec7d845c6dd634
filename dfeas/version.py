"""The version of dfeas."""

__version__ = "0.1.0"
