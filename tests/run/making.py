"""What several tests of runs need: opened data, records, who says when to stop, what has to have the same bits, terminals."""

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.run.resources import attend_runs
from dfeas.run.termination import Record
from dfeas.verify.certificate import load

RECORD = Record("m", 5, 5, -1.0, 1.0, None, 10.0, 2.0, 1.0, 1.0, 0.0, 100, 1000)
CLOCKED = {"bytes_read", "cached_bytes", "pass_seconds", "read_seconds", "scan_seconds", "engine_seconds", "method_seconds"}
CLOCKED |= {"seconds", "memory_bytes"}


def opened(where: Any, labels: Any = None, **seen: Any) -> Any:
    """A dataset, from points in memory or where they lie."""
    return open_source(Source(DataSpec(where, labels, **seen)))


def after(passes: int) -> Callable[[], bool]:
    """Asked to stop before the pass that follows so many."""
    left = iter(range(passes))
    return lambda: next(left, None) is None


def run_until(stop: Callable[[], bool], verb: Callable[..., Any], *asked: Any, **options: Any) -> Any:
    """The answer of a verb to whom somebody says when to stop."""
    with attend_runs(stop):
        return verb(*asked, **options)


def events_of(run: Path, kind: str = "") -> list[dict[str, Any]]:
    """What its trace says, of all events or of one kind."""
    events = [json.loads(line) for line in (run / "trace.jsonl").read_text().splitlines()]
    return [event for event in events if kind in ("", event["event"])]


def digest(run: Path) -> str:
    """sha256 over the certificate and what the trace says of each pass, but for clocks, memory, and what came from storage."""
    passes = [{k: v for k, v in event.items() if k not in CLOCKED} for event in events_of(run, "pass")]
    sha = hashlib.sha256(json.dumps(passes).encode())
    certificate = load(run / "certificate.npz")
    for array in (certificate.y, certificate.support, certificate.weights):
        sha.update(array.tobytes())
    return sha.hexdigest()


def everything(path: Path) -> dict[str, bytes]:
    """All files below a folder, with what is in them."""
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


class Live(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    """A terminal that was closed."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now
