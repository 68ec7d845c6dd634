"""Events of a run, who takes them, and the file that keeps them as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dfeas.data.frames import make_frame
from dfeas.data.storage import files
from dfeas.data.storage.files import Number, conform, parse_json
from dfeas.data.storage.journal import open_journal, read_ends, read_journal
from dfeas.errors import CorruptDataError, DfeasError, log_warning

if TYPE_CHECKING:
    import logging

    from dfeas.data.storage.places import Place


R = TypeVar("R")


class Sink:
    """Takes the events of a run; this one does nothing with them."""

    def record(self, record: ProgressRecord) -> None:
        """Take what is known after each pass."""

    def note(self, event: str, text: str, **values: Any) -> None:
        """Between passes: start, recovery, check, verdict; at any time a warning."""

    def show_solver(self, text: str, seconds: float) -> None:
        """Be told, several times a second, how far a solver in memory is, which began some seconds ago."""

    def close(self) -> None:
        """Be told that no further event will come."""


@contextmanager
def note_warnings(sinks: Sequence[Sink], show: Callable[[str], object] | None = None) -> Iterator[None]:
    """Tell sinks what this thread logs as a warning meanwhile, of workers or of storage. Where nobody has set up logging,
    ``show`` has the text in place of stderr. Where nobody is to be told, logging is not loaded.
    """
    if not sinks and show is None:
        yield
        return
    import logging

    logger, thread, telling = logging.getLogger("dfeas"), get_ident(), False

    def tell(record: logging.LogRecord) -> bool:
        nonlocal telling
        if telling or record.levelno < logging.WARNING or record.thread != thread:
            return True
        telling, text = True, record.getMessage()
        try:
            for sink in sinks:
                sink.note("warning", text)
        finally:
            telling = False
        if show is None or logger.hasHandlers():
            return True
        show(text)
        return False

    logger.addFilter(tell)
    try:
        yield
    finally:
        logger.removeFilter(tell)


class TraceFile(Sink):
    """``trace.jsonl``: one JSON object a line, flushed at once; ``event`` is ``pass`` or the name of a note. The first has the
    number of the format. In an object store lines are there with the next checkpoint. With ``size`` it goes on after so many
    bytes: what a run wrote after its last checkpoint is written again. What storage does not take is lost, which is said once
    in the log and by a ``gap`` in its place; a run does not end for it.
    """

    def __init__(self, path: Place, size: int | None = None) -> None:
        self._path = path.absolute()
        self._journal = open_journal(path, size)
        self.passes = 0  # that were written here
        self._empty = not size
        self._lost = 0  # lines since the last one that was written

    @property
    def size(self) -> int:
        return self._journal.size

    def save(self) -> None:
        """Others can read it so far."""
        self._journal.save()

    def close(self) -> None:
        """Put all of it in one file."""
        try:
            self._journal.close()
        except DfeasError as error:
            log_warning("%s: its end is missing: %s", self._path, error)

    def record(self, record: ProgressRecord) -> None:
        self.passes += 1
        self._write({"event": "pass", **record.to_json()})

    def note(self, event: str, text: str, **values: Any) -> None:
        self._write({"event": event, "text": text, **values})

    def _write(self, values: dict[str, Any]) -> None:
        lines = [values]
        if self._lost:
            text = f"{self._lost} events are missing: they could not be written"
            lines.insert(0, {"event": "gap", "text": text, "events": self._lost})
        if self._empty:
            lines[0] = {"event": lines[0]["event"], files.KEY: files.TRACE, **lines[0]}
        try:
            self._journal.append("".join(f"{json.dumps(line)}\n" for line in lines).encode())
            self._empty, self._lost = False, 0
        except OSError as error:
            if not self._lost:
                log_warning("%s: %s; the run goes on, its trace has a gap", self._path, error.strerror)
            self._lost += 1


MOST_ROWS = 10_000
"""Passes of a run that are kept in memory, of all its methods or classes together; of each at least a hundredth of them."""


class Trace(Sink, Sequence[dict[str, Any]]):
    """What was known after each pass of a run: dictionaries with the keys of a pass in ``trace.jsonl``, in their order.

    Of a run with a folder they are read when they are first looked at, otherwise kept while it goes on. Of more than 10,000
    ``total`` passes (fewer where methods or classes share them) it has one in ``every`` 2, 4, .., and the last.

    Examples
    --------
    >>> import dfeas
    >>> trace = dfeas.solve([[1.0, 2.0], [-1.0, -1.0]], [1, -1], method="perceptron").trace
    >>> trace[-1]["method"], trace[-1]["margin_lower"] > 0
    ('perceptron', True)
    """

    def __init__(self, path: Place | None = None, sharers: int = 1) -> None:
        self._path = None if path is None else path.absolute()  # that is not read yet
        self._known: list[dict[str, Any]] = []
        self._most = MOST_ROWS // min(100, sharers) // 2 * 2  # even: the last of one more is of those that stay
        self.total, self.every = 0, 1

    def record(self, record: ProgressRecord) -> None:
        self._append(record.to_json())

    def _append(self, row: dict[str, Any]) -> None:
        if self._known and (self.total - 1) % self.every:
            self._known.pop()  # that was there as the last one
        self._known.append(row)
        self.total += 1
        if len(self._known) > self._most:
            self._known, self.every = self._known[::2], 2 * self.every

    @property
    def _rows(self) -> list[dict[str, Any]]:
        if self._path is not None:
            for event in read_trace(self._path, dict)[0]:
                self._append({name: value for name, value in event.items() if name not in ("event", files.KEY)})
            self._path = None
        return self._known

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place]

    def __repr__(self) -> str:
        return f"<Trace {len(self)} rows of {self.total} passes>"

    def to_frame(self) -> Any:
        """A row for each pass, in a frame of pandas, or of polars where pandas is not there; UsageError without both."""
        return make_frame(self)


def read_trace(path: Place, read_pass: Callable[[dict[str, Any]], R]) -> tuple[tuple[R, ...], tuple[dict[str, Any], ...]]:
    """Passes, as ``read_pass`` understands them, and notes. The last line may be torn, as a killed process leaves it. Raises
    CorruptDataError for a damaged line; ``read_pass`` raises ValueError, LookupError or TypeError for it.
    """
    try:
        lines = read_journal(path).split(b"\n")
    except FileNotFoundError:
        raise CorruptDataError(f"{path}: missing") from None
    records: list[R] = []
    notes: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = parse_json(line, {"event": str})
            if number == 1:
                files.require_readable(path, event.get(files.KEY, 0), files.TRACE)
            if event["event"] == "pass":
                records.append(read_pass(event))
            else:
                notes.append({**event, "text": str(event["text"])})
        except (ValueError, LookupError, TypeError) as error:
            if number < len(lines):  # a line that was written whole ends with a newline
                raise CorruptDataError(f"{path}: line {number} is damaged: {error}") from None
    return tuple(records), tuple(notes)


def what_is_missing(path: Place, passes: float) -> str:
    """Said of the trace of a run that ended after so many passes where its end is cut off; empty where it is there."""
    try:
        *whole, torn = read_journal(path).split(b"\n")
    except FileNotFoundError:
        return f"{path}: missing"
    last = _event(whole[-1]) if whole else ""
    ended = last == "stopped" or (last and not passes)  # without a pass the first lines are all
    return "" if ended and not torn else f"{path}: incomplete, its last lines are cut off"


def _event(line: bytes) -> str:
    try:
        return str(parse_json(line, {"event": str})["event"])
    except ValueError:
        return ""


def last_pass(path: Place) -> dict[str, Any]:
    """The last pass in a trace that may just be written; empty for none. Raises CorruptDataError when it is damaged."""
    try:
        # the last pass is within 64 KiB of the end
        first, end = read_ends(path, 1 << 16)
    except FileNotFoundError:
        return {}
    files.require_readable(path, _format(first.partition(b"\n")[0]), files.TRACE)
    for line in reversed(end.split(b"\n")[:-1]):
        if line.startswith(b'{"event": "pass"'):
            try:
                last: dict[str, Any] = parse_json(line, {"passes": Number(), "seconds": Number()})
                ends = ("gap",) if "gap" in last else ("margin_lower", "margin_upper")
                conform(last, dict.fromkeys(ends, int | float))
            except ValueError as error:
                raise CorruptDataError(f"{path}: its last pass is damaged: {error}") from None
            return last
    return {}


def read_beginning(path: Place) -> dict[str, Any]:
    """What the first events of a trace say: the ``data`` of a run, its ``method``, the ``memory_bytes`` that it may take and
    when it ``began``, as far as they are there.
    """
    try:
        first, _ = read_ends(path, 1 << 16)
    except FileNotFoundError:
        return {}
    said: dict[str, Any] = {}
    for line in first.split(b"\n"):
        with suppress(ValueError):
            event = parse_json(line, {"event": str})
            if event["event"] == "pass":
                break
            said |= event
    kinds = {"data": str, "method": str, "memory_bytes": int, "began": str}
    return {name: said[name] for name, kind in kinds.items() if isinstance(said.get(name), kind)}


def _format(first: bytes) -> Any:
    """What the first line of a trace says; 0 where it says nothing, or is not whole."""
    try:
        return parse_json(first, dict).get(files.KEY, 0)
    except ValueError:
        return 0


class ProgressRecord(Protocol):
    """What is known after a pass, whatever the run looks for; a frozen dataclass."""

    @property
    def method(self) -> str: ...

    @property
    def passes(self) -> float:
        """Of the method so far; a partial read counts as its share."""

    @property
    def seconds(self) -> float:
        """Since the start of the run."""

    @property
    def pass_seconds(self) -> float:
        """Of this pass, as who asked for it saw them."""

    @property
    def bytes_read(self) -> int:
        """By this pass, from storage."""

    @property
    def cached_bytes(self) -> int:
        """Of this pass, from memory."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was warned of since the pass before, such as a worker that was lost; a trace has it as events of their own."""

    @property
    def ends(self) -> str:
        """Both ends of what is looked for, for people."""

    def to_json(self) -> dict[str, Any]:
        """All that is known, as JSON has it."""
