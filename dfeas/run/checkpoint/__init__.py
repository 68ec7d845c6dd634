"""Checkpoints: values of ours as files that hold no code, the last two of a run."""
