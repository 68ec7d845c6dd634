"""``dfeas plan``: what a run would cost, before it is run. Memory, passes and time of each method."""

from dfeas.planning.planner import plan

__all__ = ["plan"]
