"""The files of a finished run: how all of them are written, and read back, and its row in a table of runs of one kind."""

from __future__ import annotations

import math
import os
import platform
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from dfeas import __version__
from dfeas.data.storage import files
from dfeas.data.storage.files import COUNT, LOCK, Number, conform, read_json
from dfeas.data.storage.outputs import OutputKind, begins_with
from dfeas.data.storage.places import Place, is_url
from dfeas.display import Grid
from dfeas.errors import BadInputError, CorruptDataError, UsageError, format_bytes, spell
from dfeas.verify.certificate import Certificate
from dfeas.verify.certificate import load as load_certificate

RESULT: str = "result.json"
CERTIFICATE: str = "certificate.npz"
TRACE: str = "trace.jsonl"
RACE: str = "race.json"
SEPARATION = "separation.json"
SUSPECTS = "suspects.json"
SOFT_MARGIN = "soft_margin"
"""``kind`` in the result of a soft margin, whose hyperplane is in ``certificate.npz`` but proves nothing."""
NEAREST = "nearest.state"
"""Points that a separator is nearest to, of which only a run that begins from this one knows what to make."""
CHECKPOINT = "checkpoint"
CLASSES = "classes"
"""The key of a result that lists one run for each class."""
FINGERPRINT = "fingerprint"


_JSON, _ANY = b'{\n  "format": ', b""
OF_RUN = {
    **dict.fromkeys((RESULT, RACE, SEPARATION, SUSPECTS, "margin.json"), _JSON),
    TRACE: b'{"event": "start"',
    NEAREST: b'{"format": ',
    CERTIFICATE: b"PK",
    **dict.fromkeys((LOCK, "report.html", "path.svg"), _ANY),
}
"""Files in the folder of a run, beside runs, and how they begin."""
_FOLDERS = {CHECKPOINT: r"\d+\.(state|vectors)|\..*\.part", "scratch": r".*\.f64"}
"""Folders there, and what those in them are called; vectors of a run that was killed are left on scratch storage."""


def is_run(path: Path) -> bool:
    """A folder with a result, a checkpoint to go on from, or what was killed before there was one, and what belongs to it."""
    begun = any((path / name).exists() for name in (RESULT, RACE, SUSPECTS, CHECKPOINT, TRACE, LOCK))
    if path.is_symlink() or not path.is_dir() or not begun:
        return False
    return all(_is_of_run(each) for each in path.iterdir())


def _is_of_run(path: Path) -> bool:
    """Others, too, write a ``result.json`` and a folder ``checkpoint``."""
    if path.is_symlink() or path.is_dir():
        names = _FOLDERS.get(path.name)
        return (
            is_run(path) if names is None or path.is_symlink() else all(re.fullmatch(names, each) for each in os.listdir(path))
        )
    return path.name in OF_RUN and begins_with(path, OF_RUN[path.name])


RUN = OutputKind(is_run, (RESULT, RACE, SUSPECTS), CHECKPOINT)


class RunTable(Struct, frozen=True):
    """The columns of runs of one kind: the keys of ``result.json``, how their numbers are written, and their headings."""

    words: tuple[str, ...]  # columns of text, which are named by their keys
    numbers: Mapping[str, Callable[[Any], str]]  # key -> how the others are written
    headings: Mapping[str, str]  # of keys that are not headings themselves
    spare: tuple[str, ...]  # headings of columns that a narrow terminal goes without, in this order

    def row(self, name: str, folder: Place, values: Mapping[str, Any]) -> dict[str, Any]:
        keys = (*self.words, *self.numbers, FINGERPRINT)
        return {"run": name, "folder": str(folder), **{key: values[key] for key in keys}}

    def grid(self, rows: Sequence[Mapping[str, Any]]) -> Grid:
        """Headings, and the cells of each row under them; what is null was not known, or has no bound. A method that is the
        name of its run, as in a race, is not said twice.
        """
        own = any(row["method"] != row["run"] for row in rows)
        words = ["run", *(word for word in self.words if own or word != "method")]
        head = [*words, *(self.headings.get(key, key.replace("_", " ")) for key in self.numbers)]
        numbers = [["-" if row[key] is None else form(row[key]) for key, form in self.numbers.items()] for row in rows]
        cells = [[*(str(row[key]) for key in words), *some] for row, some in zip(rows, numbers, strict=True)]
        return Grid(head, cells, len(words), self.spare)


VERDICTS = RunTable(
    ("method", "verdict", "stopped", "proof"),
    {
        **dict.fromkeys(("passes", "reads"), "{:.4g}".format),
        "iterations": str,
        **dict.fromkeys(("margin_lower", "margin_upper"), "{:.6g}".format),
        "bytes_read": format_bytes,
        "seconds": "{:.2f}".format,
    },
    {"bytes_read": "read"},
    ("iterations", "reads", "read", "stopped", "passes", "proof", "method"),
)
SOFT_MARGINS = RunTable(
    ("method", "loss", "stopped"),
    dict.fromkeys(("C", "objective", "lower", "gap", "support", "error", "passes", "reads", "seconds"), "{:.6g}".format),
    {"lower": "at least"},
    ("reads", "support", "passes", "stopped", "method", "loss"),
)


def versions() -> dict[str, str]:
    """Versions of what computed the result."""
    return {**_find_versions(), "python": platform.python_version()}


@cache
def _find_versions() -> dict[str, str]:
    """Look them up once for each process, by the names of the folders that tell them, the first of the path counting as in
    ``importlib.metadata``: to load that and to read what is in the folders takes 16 ms, a fifth of a small solve.
    """
    ending, found = ".dist-info", {}
    for folder in map(Path, reversed(sys.path)):
        for each in folder.glob(f"*{ending}") if folder.is_dir() else ():
            name, _, version = each.name.removesuffix(ending).partition("-")
            found[name] = version
    names = ("numpy", "scipy", "zarr", "dask", "distributed")
    if not found.keys() >= {*names}:
        from importlib.metadata import version as look_up

        found = {name: look_up(name) for name in names}
    return {"dfeas": __version__, **{name: found[name] for name in names}}


_TEXT_OR_NONE = str | None
_PLACE = {
    "path": str,
    "intercept": bool,
    "labels": _TEXT_OR_NONE,
    "positive": _TEXT_OR_NONE,
    "mask?": _TEXT_OR_NONE,
    "many?": bool,
    "also?": [str],
    "point?": list | None,
    "transform?": dict | None,
    "columns?": list | None,
    "without?": [str],
    "id?": _TEXT_OR_NONE,
}
"""Where data is, and how it is seen."""


def require_placed(data: Mapping[str, Any]) -> None:
    """Raise ValueError unless it says where data is, and how it is seen."""
    conform(data, _PLACE, "data")
    conform(data.get("point") or [], [Number()], "data.point")


_SHAPE = {
    "data": dict | None,
    "fingerprint": str,
    "m": COUNT,
    "n": COUNT,
    "intercept": bool,
    "versions?": {str: str},
    "classes?": {str: dict},
    "kernel?": dict | None,
    "sides?": dict | None,
    "features?": list | None,
    "x?": list,
}
"""What every result says."""
_VERDICT = {"verdict": str, "eps": Number(0, 1, none=True), "margin_tolerance?": Number(0, 1, none=True)}
"""What that of a verdict says, too."""
_SHOWN = {
    **dict.fromkeys(("margin_lower", "margin_upper", "passes", "reads", "iterations"), int | float),
    **dict.fromkeys(("bytes_read", "seconds"), int | float),
    **dict.fromkeys(("stopped", "proof", "method", "why", "message"), str),
    "versions": dict,
    "conflicts": list,
}
"""What that of a single run says, and reports show."""
_SOFT_SHOWN = {**dict.fromkeys(SOFT_MARGINS.words, str), **dict.fromkeys(SOFT_MARGINS.numbers, int | float | None)}
"""The same of a soft margin."""


def load_result(run: Place, soft: bool = False) -> dict[str, Any]:
    """The keys of a finished run, maybe a soft margin. Raises BadInputError for none, CorruptDataError for a damaged one."""
    if (run / RACE).is_file():
        raise BadInputError(f"{run}: a race; name the folder of one of its methods")
    if (run / SUSPECTS).is_file():
        raise BadInputError(f"{run}: a list of suspects, which has no verdict; expected a run of solve")
    if not (run / RESULT).is_file():
        raise BadInputError(f"{run}: no finished run, {RESULT} is missing")
    values: dict[str, Any] = read_json(run / RESULT, _SHAPE, "result", files.RESULT)
    try:
        if values["data"] is not None:
            require_placed(values["data"])
        conform(values.get("sides") or {}, {str: {"name": _TEXT_OR_NONE, "points": COUNT}}, "sides")
        conform(values.get("features") or [], [str], "features")
        conform(values.get("x", []), [Number(-math.inf, math.inf)], "x")
        if values.get("kind") != SOFT_MARGIN:
            conform(values, _VERDICT)
            values.setdefault("margin_tolerance", None)
    except ValueError as error:
        raise _unreadable(run, error) from None
    if values.get("kind") == SOFT_MARGIN and not soft:
        raise BadInputError(f"{run}: the run of a soft margin, which has no verdict; expected one of solve")
    return values


def find_url(values: Mapping[str, Any]) -> str | None:
    """The first URL among the places of the data of a result, if there is one."""
    kept = values["data"] or {}
    return next(filter(is_url, (kept.get("path"), kept.get("labels"), *(kept.get("also") or ()))), None)


def require_followed(where: object, values: Mapping[str, Any], otherwise: str) -> None:
    """Raise UsageError where the data of a result is at a URL: who wrote the file would choose where requests go, which are
    signed with the credentials of who reads it.
    """
    if (url := find_url(values)) is not None:
        raise UsageError(f"{where}: it says that its data is at {url}: {spell('follow', True)} reads it there; or {otherwise}")


def read_separation(run: Place) -> dict[str, Any] | None:
    """What a run says of how points are separated, beside its verdict; None where that was not asked, or it ended before."""
    if not (run / SEPARATION).is_file():
        return None
    shape = {"kind": _TEXT_OR_NONE, "proof": str, "message": str}
    found: dict[str, Any] = read_json(run / SEPARATION, shape, "separation", files.SEPARATION)
    return {**found, "kind": found["kind"] or "not decided"}


def _unreadable(run: Place, why: object) -> CorruptDataError:
    return CorruptDataError(f"{run / RESULT}: not a readable result: {why}")


def load_values(folder: Place, soft: bool = False) -> dict[str, Any]:
    """The keys of the result of a single run, all of them. Raises what ``load_result`` does."""
    values = load_result(folder, soft)
    try:
        conform(values, _SOFT_SHOWN if values.get("kind") == SOFT_MARGIN else _SHOWN)
    except ValueError:
        raise _unreadable(folder, "keys are missing or of another type") from None
    return values


def classes_of(run: Place) -> dict[str, Place] | None:
    """The folder of each class of a finished one-vs-rest run; None for any other run. Raises BadInputError when there is none,
    CorruptDataError when it is damaged.
    """
    values = load_result(run, soft=True)
    if CLASSES not in values:
        return None
    try:
        folders = {str(name): run / Path(str(entry["folder"])).name for name, entry in values[CLASSES].items()}
    except (LookupError, TypeError, AttributeError) as error:
        raise _unreadable(run, error) from None
    if not folders:
        raise _unreadable(run, "it lists no class")
    return folders


def folder_of(name: str, place: int) -> str:
    """The name of the folder of a class: its own name, with what a file system may not like written as %XX."""
    from urllib.parse import quote

    text = quote(name, safe=" +,=@")
    # a longer name, or such an end, is none for every file system
    return f"class-{text}" if len(text) <= 80 and not text.endswith((" ", ".")) else f"class-{place}"


def certificate_of(folder: Place, values: Mapping[str, Any]) -> Certificate | None:
    """The certificate beside a result, if there is one. Raises CorruptDataError when it is damaged, or of other data."""
    certificate = load_certificate(folder / CERTIFICATE) if (folder / CERTIFICATE).exists() else None
    if certificate is not None and certificate.fingerprint != values["fingerprint"]:
        raise CorruptDataError(f"{folder}: {CERTIFICATE} and {RESULT} are of different data")
    return certificate
