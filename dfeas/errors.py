"""Errors that a user sees: one line each, with the exit code of the contract, in the words of who asked.

A text names an argument by ``spell``, and reads ``label_column='NAME'`` in Python, ``--label-column NAME`` on the command line.
Names of classes, features, files and methods come from files that anybody wrote. Everything that goes to a terminal or a log
goes through ``visible``; doing it twice changes nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any


class _Said(Exception):
    """One line that says what to do, whatever data it quotes."""

    def __init__(self, text: str) -> None:
        super().__init__(" ".join(text.split()))

    def __str__(self) -> str:
        """As a caller in Python would ask."""
        return visible(_choose_words(self.args[0], typed=False))

    @property
    def as_typed(self) -> str:
        """As it would be typed on the command line."""
        return visible(_choose_words(self.args[0], typed=True))


class DataWarning(_Said, UserWarning):
    """What may be wrong with the data."""


class DfeasError(_Said):
    """Base of all errors that dfeas raises on purpose."""

    exit_code = 1

    @property
    def arguments(self) -> set[str]:
        """Names of those that it is about."""
        return {each.partition(_OR)[0].partition("=")[0] for each in self.args[0].split(_BEGIN)[1:]}

    def about_labels(self) -> str:
        """Its text for a caller in Python who names a column of labels by ``y``."""
        return str(self.args[0]).replace(f"{_BEGIN}label_column", f"{_BEGIN}y")


class UsageError(DfeasError, ValueError):
    """The request cannot be carried out as it was asked: options, paths of outputs, addresses."""

    exit_code = 2


class UndecidedError(DfeasError):
    """A run without a verdict, where one is needed."""

    exit_code = 3


class AwayError(DfeasError):
    """What a run needs went away in the middle of it, which can go on when it is back."""

    exit_code = 75


class ClusterLostError(AwayError):
    """The Dask cluster went away in the middle of a run."""


class StorageAwayError(AwayError):
    """Storage does not answer; what it holds need not be damaged."""

    waited = False  # as long as people set


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


def describe_change(where: str) -> CorruptDataError:
    """For a source that is not what it was at the first look."""
    return CorruptDataError(f"{where}: it changed while it was read; let nobody write to it, and run again")


_BEGIN, _OR, _END = "\x02", "\x03", "\x04"
"""Around the words of Python and those of the command line for the same."""
_FLAGS = {
    "client": "--scheduler",
    "y='all-positive'": "--unlabelled",
    "sparse=False": "--dense",
    "transform": "--scale, --center or --no-normalize",
}
"""Arguments that the command line has under another name."""


_IN_PYTHON = {"labels": "y"}
"""Arguments that Python has under another name than files and the command line."""


def either(python: str, typed: str) -> str:
    """Words of who calls from Python, and of who types a command, for the same in the text of an error."""
    return f"{_BEGIN}{python}{_OR}{typed}{_END}"


def _quote(text: str) -> str:
    """As a shell takes it."""
    from shlex import quote  # for errors only, as difflib and unicodedata are

    return quote(text)


def spell(name: str, value: Any = None) -> str:
    """An argument of a verb in the text of an error, which says ``eps=0.01`` in Python, ``--eps 0.01`` on the command line."""
    value = value.item() if getattr(value, "size", 0) == 1 and hasattr(value, "item") else value
    argument = _IN_PYTHON.get(name, name)
    called = argument if value is None else f"{argument}={brief(value)}"
    typed = f"--{'no-' if value is False else ''}{name.replace('_', '-')}"
    if value is not None and not isinstance(value, bool):
        typed += f" {_quote(_cut(value) if isinstance(value, str) else brief(value))}"
    return either(called, _FLAGS.get(called, typed))


LONGEST = 200
"""Characters of a value, or of a name, that a text has."""


def brief(value: Any, longest: int = LONGEST, say: Callable[[Any], str] = repr) -> str:
    """A value as texts have it. Python makes no text of integers of more than 4300 digits."""
    try:
        return _cut(say(value), longest)
    except ValueError:
        return f"one of type {type(value).__name__} with thousands of digits"


def _cut(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest]}.."


def spell_ingest(src: object, out: str, **labels: object) -> str:
    """The command that writes a dataset, which is a call in Python, in the text of an error."""
    called = "".join(f", {_IN_PYTHON.get(name, name)}={value!r}" for name, value in labels.items())
    typed = "".join(f" --{name.replace('_', '-')} {_quote(str(value))}" for name, value in labels.items())
    command = f"dfeas ingest {_quote(str(src))} {_quote(out)}{typed}"
    return either(f"dfeas.ingest({str(src)!r}, {out!r}{called})", command)


def _choose_words(text: str, typed: bool) -> str:
    first, *rest = text.split(_BEGIN)
    each = [part.partition(_END) for part in rest]
    return first + "".join(words.partition(_OR)[2 if typed and _OR in words else 0] + after for words, _, after in each)


def log_warning(text: str, *values: object) -> None:
    """Log what a user should see and what ends nothing. Few calls have any, so that logging is loaded by the first one."""
    import logging

    logging.getLogger("dfeas").warning(text, *values, stacklevel=2)


_DECIMAL = {"PB": 10**15, "TB": 10**12, "GB": 10**9, "MB": 10**6, "kB": 10**3}
_UNITS = {"PiB": 2**50, "TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "kiB": 2**10}


def format_bytes(size: float) -> str:
    """As ``dask.utils.format_bytes``, which takes half a second to import."""
    for unit, factor in _UNITS.items():
        if size >= 0.9 * factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size:.0f} B"


def enough(size: float) -> str:
    """The same rounded up, as it can be typed: so much is not too little. A decimal size of few digits is said as it was."""
    if size >= 1000 and size == int(size) and len(str(int(size)).rstrip("0")) <= 3:
        unit, factor = next((unit, factor) for unit, factor in _DECIMAL.items() if size >= factor)
        return f"{size / factor:g}{unit}"
    unit, factor = next(((unit, factor) for unit, factor in _UNITS.items() if size >= 0.9 * factor), ("B", 1))
    return f"{math.ceil(100 * size / factor) / 100:.2f}{unit}" if factor > 1 else f"{math.ceil(size)}B"


_OPTIONAL = {
    "sklearn": ("scikit-learn>=1.6",),
    "report": ("matplotlib>=3.8.4", "jinja2>=3.1.6"),
    "formats": ("pyarrow>=18",),
    "object-stores": ("obstore>=0.8", "boto3>=1.34"),
    "diagnostics": ("bokeh>=3.1",),
    "statistics": ("formulaic>=1.1", "pyreadstat>=1.3.7"),
    "programs": ("highspy>=1.16",),
}
"""What those extras of pyproject.toml bring that messages are about."""


def install(extra: str) -> str:
    """A command that installs what an extra brings, wherever dfeas itself came from: it names no index that has dfeas."""
    return "pip install " + " ".join(f'"{each}"' for each in _OPTIONAL[extra])


MOST_NAMES, MOST_BESIDE = 40, 10_000
"""Names that a text lists, and those of a folder that are looked at."""


def near(name: object, names: Iterable[object]) -> str:
    """``; did you mean ..?``, where one of some names is near to another; empty text where none is."""
    from difflib import get_close_matches

    known = {str(each).casefold(): str(each) for each in names}
    found = get_close_matches(str(name).casefold(), known, 1)
    return f"; did you mean {known[found[0]]}?" if found else ""


def none_of(name: object, names: Iterable[object]) -> str:
    """What is none of some names, which of them it is near to, and all of them, each once."""
    each = list(dict.fromkeys(map(str, names)))
    listed = ", ".join(each[:MOST_NAMES]) + (", .." if len(each) > MOST_NAMES else "")
    said = name if isinstance(name, str) else brief(name)
    return f"{_cut(said)}{near(said, each) or ';'} expected {listed}"


def absent(path: Any) -> str:
    """That there is nothing at a path, and what in its folder has a name like it; of a pattern what to give in its place."""
    before, pattern, _ = str(path).partition("*")
    if pattern:
        folder = before.rpartition("/")[0] or ("/" if before.startswith("/") else ".")
        table = str(path).endswith((".parquet", ".pq", "*"))
        what = f"give the folder {folder}: all .parquet files below it are one table" if table else "give one file"
        if str(path).endswith((".csv", ".tsv", ".txt")):
            tab = ", sep='\\t'" if str(path).endswith(".tsv") else ""
            what += either(f", or the frame dask.dataframe.read_csv({str(path)!r}{tab})", ", or make Parquet of them")
        return f"{path}: no .parquet file matches, and patterns are expanded for these only; {what}"
    try:
        beside = [each.name for each in islice(path.parent.iterdir(), MOST_BESIDE)]
    except (OSError, AttributeError, NotImplementedError):
        beside = []
    return f"{path}: no such file or folder{near(path.name, beside)}"


_SHOWN_AS_ESCAPES = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of Unicode: controls, formats (which turn text round, or are not seen), halves of pairs, ends of lines."""


_SECRET = r"(?<=://)(?:[^\s/?#\"']*|[^\s/@:]+:(?!\d*[/\s])[^\s\"']*)@|(://[^\s?]*\?)(?!\*)[^\s\"'\\]+"
"""Of a URL what comes before the host, or after a question mark: a password, a token, a signature."""


def visible(text: str) -> str:
    """The same text with controls as escapes, ``\\x1b``, ``\\n``, and URLs without what may be a secret."""
    if "://" in text:
        text = re.sub(_SECRET, lambda found: f"{found[1]}***" if found[1] else "***@", text)
    if text.isascii() and text.isprintable():
        return text
    import unicodedata

    hidden = {each for each in text if unicodedata.category(each) in _SHOWN_AS_ESCAPES}
    return "".join(each.encode("unicode_escape").decode() if each in hidden else each for each in text)
