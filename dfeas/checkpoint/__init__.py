"""Checkpoints: values of ours as files that hold no code, the last two of a run."""

from dfeas.checkpoint.folder import Checkpoints

__all__ = ["Checkpoints"]
