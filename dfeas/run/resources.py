"""What a run may take and use, where it is written, and who is told; ``dfeas.solve`` says what each means."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from dfeas.answers.trace import ProgressRecord, Sink
from dfeas.data.collections import is_collection
from dfeas.data.source import ChosenTable
from dfeas.data.storage.patience import call_began
from dfeas.errors import UsageError, spell
from dfeas.records import replace
from dfeas.settings import parse_bytes, read_setting, require_types

if TYPE_CHECKING:
    from dfeas.engine.protocol import Workers


def never() -> bool:
    """Says that nobody asks to stop."""
    return False


_ATTENDED: ContextVar[tuple[Callable[[], bool], bool | None]] = ContextVar("attended", default=(never, None))


@contextmanager
def attend_runs(stop: Callable[[], bool] = never, progress: bool | None = None) -> Iterator[None]:
    """Runs that begin here show progress, or do not, and end as ``interrupted`` when ``stop`` returns True, which is asked
    between reads. With a ``stop`` they return what there is at Ctrl-C, too, and where a cluster is lost, and raise nothing.
    """
    token = _ATTENDED.set((stop, progress))
    try:
        yield
    finally:
        _ATTENDED.reset(token)


class Limits(Struct, frozen=True, kw_only=True, eq=False):
    """When to give up. The clock of a call: whatever it does looks at this one."""

    max_passes: int | None = None
    time_limit: float | None = None  # seconds
    began: float = field(default_factory=call_began)  # monotonic seconds

    def __post_init__(self) -> None:
        require_types(self)
        if self.max_passes is not None and self.max_passes < 1:
            raise UsageError(f"{spell('max_passes', self.max_passes)}: expected at least 1")
        if self.time_limit is not None and not self.time_limit > 0:
            raise UsageError(f"{spell('time_limit', self.time_limit)}: expected a positive number of seconds")

    @classmethod
    def begun(cls, max_passes: int | None, time_limit: float | None) -> Limits:
        """Those of something new: the setting where no limit of time is given."""
        return cls(max_passes=max_passes, time_limit=read_setting("time_limit") if time_limit is None else time_limit)

    @property
    def ends(self) -> float:
        """In monotonic seconds."""
        return math.inf if self.time_limit is None else self.began + self.time_limit

    @property
    def seconds(self) -> float:
        """So far."""
        return time.monotonic() - self.began

    def until(self, stop: Callable[[], bool]) -> Callable[[], bool]:
        """Whether somebody asks to stop, or time is up."""
        return lambda: stop() or time.monotonic() >= self.ends


class Resources(Struct, frozen=True, kw_only=True):
    """What a run may use: what was asked for, and the settings of this machine."""

    memory: str | int | None = None  # the setting, where it is None
    client: Workers | None = None
    cache_dir: str | None = field(default_factory=partial(read_setting, "cache_dir"))
    scratch: str | None = field(default_factory=partial(read_setting, "scratch"))
    checkpoint_every: float = field(default_factory=partial(read_setting, "checkpoint_every"))

    def __post_init__(self) -> None:
        require_types(self)

    @property
    def memory_bytes(self) -> int:
        """Raises UsageError for a budget that is none."""
        return parse_bytes(self.memory)


class Output(Struct, frozen=True, kw_only=True):
    """Where a run is written, how it is shown, and who may end it; the result does not depend on it."""

    out: str | Path | None = None
    progress: bool | None = field(default_factory=lambda: _ATTENDED.get()[1])  # the setting, where it is None
    callback: Callable[[Any], object] | None = None
    stop: Callable[[], bool] = field(default_factory=lambda: _ATTENDED.get()[0])

    def __post_init__(self) -> None:
        require_types(self)

    @property
    def shows_progress(self) -> bool:
        """What was asked for, or the setting."""
        return bool(read_setting("progress")) if self.progress is None else self.progress


def choose_client(given: Any, X: Any) -> Any:
    """What ``client=`` says; of a Dask array or frame that of nobody is the current client, if there is one."""
    X = X.X if isinstance(X, ChosenTable) else X
    if not is_collection(X):
        return None if given is False else given
    distributed = sys.modules.get("distributed")
    for find in (distributed.get_worker, distributed.default_client) if distributed is not None and given is None else ():
        with suppress(ValueError):
            find()
            return True
    return given


class RunOptions(Struct, frozen=True, eq=False):
    """How a run is kept and shown; the result does not depend on it."""

    checkpoint_every: float  # seconds
    progress: bool
    stop: Callable[[], bool]
    more: tuple[Sink, ...] = ()  # sinks that the caller gave
    returns: bool = False  # an interrupted run is returned; otherwise what interrupted it is raised, once it is saved
    interruptions: list[BaseException] = []

    @classmethod
    def of(cls, checkpoint_every: float, output: Output) -> RunOptions:
        """With the callback of the caller, if there is one."""
        progress, stop, returns = output.shows_progress, output.stop, output.stop is not never
        if output.callback is None:
            return cls(checkpoint_every, progress, stop, returns=returns)
        sink = Callback(output.callback)
        return cls(checkpoint_every, progress, lambda: sink.ends or stop(), (sink,), returns)


class Callback(Sink):
    """A function of the caller that is given each record, and may end the run: it returns True, or raises StopIteration."""

    def __init__(self, function: Callable[[ProgressRecord], object]) -> None:
        self.function = function
        self.ends = False
        self._warnings: tuple[str, ...] = ()

    def note(self, event: str, text: str, **values: Any) -> None:
        if event == "warning":
            self._warnings += (text,)

    def record(self, record: ProgressRecord) -> None:
        warnings, self._warnings = self._warnings, ()
        known: Any = record
        try:
            self.ends = self.function(replace(known, warnings=warnings) if warnings else record) is True or self.ends
        except StopIteration:
            self.ends = True
