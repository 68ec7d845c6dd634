"""Finished runs, read back from their folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from dfeas.data.storage import formats
from dfeas.data.storage.files import parsed
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.run.results import CERTIFICATE, RESULT, TRACE, classes_of, load_result
from dfeas.run.termination import Record
from dfeas.verify.certificate import Certificate
from dfeas.verify.certificate import load as load_certificate

R = TypeVar("R")

_NUMBERS = ("m", "n", "margin_lower", "margin_upper", "eps", "passes", "reads", "iterations", "bytes_read", "seconds")
_TEXTS = ("verdict", "stopped", "proof", "method", "why", "fingerprint", "message")


@dataclass(frozen=True)
class Run:
    """A finished run and its files."""

    folder: Path
    name: str  # how the report calls it
    values: dict[str, Any]  # the keys of result.json
    records: tuple[Record, ...]  # one a pass
    notes: tuple[dict[str, Any], ...]  # between the passes: event, text and more
    certificate: Certificate | None  # None when there is no file


def find_runs(places: Sequence[str | Path]) -> dict[str, Path]:
    """Folders of runs by name. A folder without a result whose direct subfolders have one stands for those, sorted by name.

    The name is that of the folder, or the path as it was given where two have the same. Raises UsageError for no place at
    all, BadInputError where there is no finished run.
    """
    if not places:
        raise UsageError("no run was given")
    folders = list(dict.fromkeys(folder for place in places for folder in _runs_at(Path(place))))
    names = [folder.resolve().name for folder in folders]
    return {name if names.count(name) == 1 else str(folder): folder for name, folder in zip(names, folders, strict=True)}


def _runs_at(place: Path) -> list[Path]:
    if not place.is_dir():
        raise BadInputError(f"{place}: no such folder")
    if (place / RESULT).is_file():
        classes = classes_of(place)
        return [place] if classes is None else list(classes.values())
    below = sorted(found.parent for found in place.glob(f"*/{RESULT}"))
    if not below:
        raise BadInputError(f"{place}: no finished run, {RESULT} is missing here and in the folders below")
    return below


def load_values(folder: Path) -> dict[str, Any]:
    """The keys of ``result.json``; raises CorruptDataError when some are missing or of another type."""
    values = load_result(folder)
    sound = (
        all(isinstance(values.get(name), int | float) for name in _NUMBERS)
        and all(isinstance(values.get(name), str) for name in _TEXTS)
        and isinstance(values.get("versions"), dict)
        and isinstance(values.get("conflicts"), list)
        and isinstance(values.get("margin_tolerance"), int | float | None)
    )
    if not sound:
        raise CorruptDataError(f"{folder / RESULT}: not a readable result: keys are missing or of another type")
    return values


def load_run(name: str, folder: Path) -> Run:
    """A run with all of its files; raises CorruptDataError when one is missing or damaged."""
    values = load_values(folder)
    records, notes = read_trace(folder / TRACE, _record)
    certificate = load_certificate(folder / CERTIFICATE) if (folder / CERTIFICATE).exists() else None
    if certificate is not None and certificate.fingerprint != values["fingerprint"]:
        raise CorruptDataError(f"{folder}: {CERTIFICATE} and {RESULT} are of different data")
    if certificate is not None and certificate.kind == "gordan" and not (certificate.weights > 0).any():
        raise CorruptDataError(f"{folder / CERTIFICATE}: damaged: no point has a weight")
    return Run(folder, name, values, records, notes, certificate)


def read_trace(path: Path, told: Callable[[dict[str, Any]], R]) -> tuple[tuple[R, ...], tuple[dict[str, Any], ...]]:
    """Passes, as ``told`` reads them, and notes. The last line may be torn, as a killed process leaves it.

    Raises CorruptDataError for a damaged line; ``told`` raises ValueError, LookupError or TypeError for it.
    """
    if not path.is_file():
        raise CorruptDataError(f"{path}: missing")
    lines = path.read_bytes().split(b"\n")
    records: list[R] = []
    notes: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = parsed(line, {"event": str})
            if number == 1:
                formats.require_readable(path, event.get(formats.KEY, 0), formats.TRACE)
            if event["event"] == "pass":
                records.append(told(event))
            else:
                notes.append({**event, "text": str(event["text"])})
        except (ValueError, LookupError, TypeError) as error:
            if number < len(lines):  # a line that was written whole ends with a newline
                raise CorruptDataError(f"{path}: line {number} is damaged: {error}") from None
    return tuple(records), tuple(notes)


def _record(event: dict[str, Any]) -> Record:
    """A pass; keys that this version does not know are left out."""
    found = {}
    for field in fields(Record):
        if field.name not in event and field.default is not MISSING:
            continue
        value = event[field.name]
        number = isinstance(value, int | float)
        text = field.name in ("method", "stalled")
        if not (isinstance(value, str) if text else number or (value is None and field.name == "violated")):
            raise TypeError(f"{field.name} is {value!r}")
        found[field.name] = value
    return Record(**found)
