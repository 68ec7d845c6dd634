"""What a run may take and use, where it is written, and who is told; ``dfeas.solve`` says what each means."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfeas.errors import UsageError
from dfeas.settings import parse_bytes, require_types, setting

if TYPE_CHECKING:
    from dfeas.engine.protocol import Workers

EVERY = 30.0
"""Seconds between checkpoints."""


def never() -> bool:
    """Says that nobody asks to stop."""
    return False


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When to give up."""

    max_passes: int | None = None
    time_limit: float | None = None  # seconds

    def __post_init__(self) -> None:
        require_types(self)
        if self.max_passes is not None and self.max_passes < 1:
            raise UsageError(f"--max-passes {self.max_passes}: expected at least 1")
        if self.time_limit is not None and not self.time_limit > 0:
            raise UsageError(f"--time-limit {self.time_limit}: expected a positive number of seconds")

    def until(self, stop: Callable[[], bool], began: float) -> Callable[[], bool]:
        """Whether somebody asks to stop, or time is up for what began at a moment of the monotonic clock."""
        return lambda: stop() or (self.time_limit is not None and time.monotonic() - began >= self.time_limit)


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a run may use: what was asked for, and the settings of this machine."""

    memory: str | int | None = None  # the setting, where it is None
    client: Workers | None = None
    cache_dir: str | None = field(default_factory=partial(setting, "cache_dir", None))
    scratch: str | None = field(default_factory=partial(setting, "scratch", None))
    checkpoint_every: float = field(default_factory=partial(setting, "checkpoint_every", EVERY))

    def __post_init__(self) -> None:
        require_types(self)

    @property
    def memory_bytes(self) -> int:
        """Raises UsageError for a budget that is none."""
        return parse_bytes(self.memory)


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where a run is written, how it is shown, and who may end it; the result does not depend on it."""

    out: str | Path | None = None
    progress: bool | None = None  # the setting, where it is None
    callback: Callable[[Any], object] | None = None
    stop: Callable[[], bool] = never

    def __post_init__(self) -> None:
        require_types(self)

    @property
    def shows_progress(self) -> bool:
        """What was asked for, or the setting."""
        return bool(setting("progress", False)) if self.progress is None else self.progress
