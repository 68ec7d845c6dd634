"""Errors that a user sees: one line each, with the exit code of the contract, in the words of who asked.

A text names an option as the command line has it, ``--label-column NAME``; in Python it reads ``label_column='NAME'``.
Names of classes, features, files and methods come from files that anybody wrote. Everything that goes to a terminal or a log
goes through ``visible``; doing it twice changes nothing.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Any


class DfeasError(Exception):
    """Base of all errors that dfeas raises on purpose; its text is one line that says what to do, whatever data it quotes."""

    exit_code = 1

    def __init__(self, text: str) -> None:
        super().__init__(visible(" ".join(text.split())))

    def __str__(self) -> str:
        """As a caller in Python would ask."""
        return keywords(self.typed)

    @property
    def typed(self) -> str:
        """As it would be typed on the command line."""
        return str(self.args[0])


class UsageError(DfeasError, ValueError):
    """The request cannot be carried out as it was asked: options, paths of outputs, addresses."""

    exit_code = 2


class UndecidedError(DfeasError):
    """A run without a verdict, where one is needed."""

    exit_code = 3


class ClusterLostError(DfeasError):
    """The Dask cluster went away in the middle of a run."""

    exit_code = 75


class BadInputError(DfeasError, ValueError):
    """The data does not pose the problem: wrong shape, labels, type, or non-finite entries."""

    exit_code = 4


class CorruptDataError(DfeasError, OSError):
    """Stored data is missing, damaged, incomplete, or not what it was."""

    exit_code = 5


class NewerFormatError(CorruptDataError):
    """A file of a format that only a newer dfeas reads."""


class CheckFailedError(DfeasError):
    """A certificate does not prove what it claims about the stored data."""

    exit_code = 6


def changed(where: str) -> CorruptDataError:
    """For a source that is not what it was at the first look."""
    return CorruptDataError(f"{where}: it changed while it was read; let nobody write to it, and run again")


_OPTION = re.compile(r"(?<![\w-])--(?!help\b)(no-)?([a-z][a-z0-9-]*)(?: ('[^']*'|[A-Z][A-Z_]*\b|-?[0-9][\w.+-]*(?<![.-])))?")
_INGEST = re.compile(r"dfeas ingest ('[^']*'|(?!--)\S+) ('[^']*'|[\w.-]+)(?: --(label-column|labels) ('[^']*'))?")
"""A command that can be typed, which is a call in Python."""
_OTHERWISE = {"dense": "sparse=False", "scheduler": "client", "unlabelled": "labels='all-positive'"}
"""Options that are keyword arguments of another name."""


def keywords(text: str) -> str:
    """The same text with options as keyword arguments: ``eps=0.01`` for ``--eps 0.01``."""
    return _OPTION.sub(_keyword, _INGEST.sub(_call, text))


def _call(command: re.Match[str]) -> str:
    src, out, name, value = command.groups()
    labels = f", {name.replace('-', '_')}={value}" if name else ""
    src, out = (repr(word.strip("'")) for word in (src, out))
    return f"dfeas.ingest({src}, {out}{labels})"


def _keyword(option: re.Match[str]) -> str:
    negated, name, value = option.groups()
    name = _OTHERWISE.get(name, name.replace("-", "_"))
    if value is None:
        return f"{name}=False" if negated else name
    plain = value.startswith("'") or _NUMBER.fullmatch(value)
    return f"{name}={value}" if plain else f"{name}='{value}'"


_NUMBER = re.compile(r"-?[0-9.]+(?:e[+-]?[0-9]+)?")


_UNITS = {"PiB": 2**50, "TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "kiB": 2**10}


def format_bytes(size: float) -> str:
    """As ``dask.utils.format_bytes``, which takes half a second to import."""
    for unit, factor in _UNITS.items():
        if size >= 0.9 * factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size:.0f} B"


def enough(size: float) -> str:
    """The same rounded up, as it can be typed: so much is not too little."""
    unit, factor = next(((unit, factor) for unit, factor in _UNITS.items() if size >= 0.9 * factor), ("B", 1))
    return f"{math.ceil(100 * size / factor) / 100:.2f}{unit}" if factor > 1 else f"{math.ceil(size)}B"


_OPTIONAL = {
    "sklearn": ("scikit-learn>=1.6",),
    "report": ("matplotlib>=3.8.4", "jinja2>=3.1.6"),
    "formats": ("pyarrow>=18",),
    "object-stores": ("obstore>=0.8", "boto3>=1.34"),
    "diagnostics": ("bokeh>=3.1",),
    "statistics": ("formulaic>=1.1",),
}
"""What those extras of pyproject.toml bring that messages are about."""


def install(extra: str) -> str:
    """A command that installs what an extra brings, wherever dfeas itself came from: it names no index that has dfeas."""
    return "pip install " + " ".join(f'"{each}"' for each in _OPTIONAL[extra])


MOST_NAMES = 40
"""Names that a text lists."""
MOST_BESIDE = 10_000
"""Names of a folder that are looked at."""


def near(name: object, names: Iterable[object]) -> str:
    """``; did you mean ..?``, where one of some names is near to another; empty text where none is."""
    known = {str(each).casefold(): str(each) for each in names}
    found = get_close_matches(str(name).casefold(), known, 1)
    return f"; did you mean {known[found[0]]}?" if found else ""


def none_of(name: object, names: Iterable[object]) -> str:
    """What is none of some names, which of them it is near to, and all of them, each once."""
    each = list(dict.fromkeys(map(str, names)))
    listed = ", ".join(each[:MOST_NAMES]) + (", .." if len(each) > MOST_NAMES else "")
    return f"{name}{near(name, each) or ';'} expected {listed}"


def absent(path: Any) -> str:
    """That there is nothing at a path, and what in its folder has a name like it."""
    try:
        beside = [each.name for each in islice(path.parent.iterdir(), MOST_BESIDE)]
    except (OSError, AttributeError, NotImplementedError):
        beside = []
    return f"{path}: no such file or folder{near(path.name, beside)}"


_SHOWN_AS_ESCAPES = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of Unicode: controls, formats (which turn text round, or are not seen), halves of pairs, ends of lines."""


_SECRET = re.compile(r"(?<=://)(?:[^\s/?#\"']*|[^\s/@:]+:(?!\d*[/\s])[^\s\"']*)@|(://[^\s?]*\?)(?!\*)[^\s\"'\\]+")
"""Of a URL what comes before the host, or after a question mark: a password, a token, a signature."""


def visible(text: str) -> str:
    """The same text with controls as escapes, ``\\x1b``, ``\\n``, and URLs without what may be a secret."""
    if "://" in text:
        text = _SECRET.sub(lambda found: f"{found[1]}***" if found[1] else "***@", text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(each) if unicodedata.category(each) in _SHOWN_AS_ESCAPES else each for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
