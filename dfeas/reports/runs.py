"""Finished runs with all of their files, and where they are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfeas.answers.files import CERTIFICATE, RACE, RESULT, SOFT_MARGIN, SUSPECTS, TRACE, certificate_of, classes_of, load_values
from dfeas.answers.trace import read_trace
from dfeas.answers.words import UNDECIDED
from dfeas.data.storage import files
from dfeas.data.storage.files import conform, read_json
from dfeas.data.storage.places import Place, place
from dfeas.data.storage.scratch import total
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.run.termination import Record
from dfeas.verify.certificate import Certificate

if TYPE_CHECKING:
    from dfeas.data.storage.object_path import ObjectPath


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A finished run and its files."""

    folder: Place
    name: str  # how the report calls it
    values: dict[str, Any]  # the keys of result.json
    records: tuple[Record, ...]  # one a pass
    notes: tuple[dict[str, Any], ...]  # between the passes: event, text and more
    certificate: Certificate | None  # None when there is no file


def find_runs(places: Sequence[str | Path | ObjectPath]) -> dict[str, Place]:
    """Folders of runs by name. A folder without a result whose direct subfolders have one stands for those, sorted by name, or
    as a race ranks them. The
    name is that of the folder, or the path as it was given where two have the same. Raises UsageError for no place at all,
    BadInputError where there is no finished run.
    """
    if not places:
        raise UsageError("no run was given")
    folders = list(dict.fromkeys(folder for each in places for folder in _runs_at(place(each))))
    names = [folder.resolve().name for folder in folders]
    return {name if names.count(name) == 1 else str(folder): folder for name, folder in zip(names, folders, strict=True)}


def _runs_at(folder: Place) -> list[Place]:
    if not folder.is_dir():
        raise BadInputError(f"{folder}: no such folder")
    if (folder / RESULT).is_file() or (folder / SUSPECTS).is_file():
        classes = classes_of(folder)
        return [folder] if classes is None else list(classes.values())
    inner = sorted((each for each in folder.iterdir() if (each / RESULT).is_file()), key=str)
    if (folder / RACE).is_file():
        ranked = [*read_json(folder / RACE, {"results": {str: dict}}, "race", files.RACE)["results"]]
        inner.sort(key=lambda each: ranked.index(each.name) if each.name in ranked else len(ranked))
    below = [run for each in inner for run in _runs_at(each)]
    if not below:
        raise BadInputError(f"{folder}: no finished run, {RESULT} is missing here and in the folders below")
    return below


def load_run(name: str, folder: Place) -> Run:
    """A run with all of its files; raises CorruptDataError when one is missing or damaged."""
    values = load_values(folder)
    records, notes = read_trace(folder / TRACE, _record)
    certificate = certificate_of(folder, values)
    if certificate is not None and certificate.kind == "gordan" and not total(certificate.weights) > 0:
        raise CorruptDataError(f"{folder / CERTIFICATE}: damaged: no point has a weight")
    return Run(folder, name, values, records, notes, certificate)


def find_loss(folder: Place, values: Mapping[str, Any]) -> str:
    """A sentence where the file that proves the verdict of a result, or has the hyperplane of a soft margin, is gone."""
    if (folder / CERTIFICATE).exists() or "violated" in values or values.get("verdict") == UNDECIDED:
        return ""
    what = "the hyperplane was there" if values.get("kind") == SOFT_MARGIN else f"nothing proves the verdict that {RESULT} says"
    return f"{folder / CERTIFICATE} is missing: {what}"


_KINDS = {"str": str, "bool": bool, "int | None": int | float | None}
"""Of values in a trace, by the annotations of a record; others are numbers, which need not be finite."""


def _record(event: dict[str, Any]) -> Record:
    """A pass; keys that this version does not know are left out. Raises ValueError for one that is damaged."""
    entries = fields(Record)
    shape = {entry.name + "?" * (entry.default is not MISSING): _KINDS.get(str(entry.type), int | float) for entry in entries}
    conform(event, shape)
    return Record(**{entry.name: event[entry.name] for entry in entries if entry.name in event})
