"""Linear programmes of MPS and LP files, and of cvxpy: their constraints. Objectives are left out.

HiGHS reads over much that is wrong in an MPS file: text in place of a number is 0, the right side of a row that is misspelt is
left out. Here an exact answer follows, so each line is looked at before; HiGHS says what they mean, in float64.
"""

from __future__ import annotations

import gzip
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import scipy  # loads its parts when they are used

from dfeas import leaves
from dfeas.data.source import SHARE
from dfeas.errors import BadInputError, UsageError, absent, format_bytes, install
from dfeas.linalg.points import Floats

SUFFIXES = (".mps", ".lp", ".mps.gz", ".lp.gz")


@dataclass(frozen=True, eq=False, repr=False)
class LinearProgram:
    """A x <= b, E x = f and bounds, with what they are called."""

    A: Any  # (n, m) CSR; a row with >= is turned round, one with two sides is there twice
    b: Floats
    E: Any  # (p, m) CSR
    f: Floats
    bounds: Floats  # (m, 2)
    features: tuple[str, ...]
    rows: Sequence[int]  # (n,) which of the programme they are
    turned: Sequence[bool]  # (n,)
    equalities: Sequence[int]  # (p,)
    name: Callable[[int], Any]  # what a row of the programme is called
    kind: str = ""  # of a constraint; empty: row, or equality

    def names(self, rows: Sequence[int], places: Sequence[int]) -> Mapping[int, Any]:
        """What some of ``rows`` are called, by their places."""
        return {place: self.name(rows[place]) for place in places}

    @classmethod
    def between(
        cls, matrix: Any, low: Floats, high: Floats, names: Sequence[Any], bounds: Floats, features: Any
    ) -> LinearProgram:
        """Of rows low <= matrix x <= high."""
        above, below, equal = (low < high) & (high < np.inf), (low != high) & (low > -np.inf), low == high
        place = np.concatenate([np.flatnonzero(above), np.flatnonzero(below)])
        turned = np.arange(len(place)) >= above.sum()
        order = np.lexsort((turned, place))
        place, turned = place[order], turned[order]
        sign = np.where(turned, -1.0, 1.0)
        A = scipy.sparse.csr_array(scipy.sparse.diags_array(sign) @ matrix[place]) if len(place) else matrix[place]
        b = np.where(turned, -low[place], high[place])
        numbers = place.tolist(), turned.tolist(), np.flatnonzero(equal).tolist()
        return cls(A, b, matrix[equal], low[equal], bounds, tuple(features), *numbers, names.__getitem__)


def is_program(given: Any) -> bool:
    """Whether it is a problem of cvxpy, or the path of an MPS or LP file."""
    if type(given).__module__.partition(".")[0] == "cvxpy":
        return True
    given = given[0] if isinstance(given, list | tuple) and len(given) == 1 else given
    return isinstance(given, str | Path) and str(given).lower().endswith(SUFFIXES)


def read_program(given: Any, memory: int) -> LinearProgram:
    """Raises UsageError without HiGHS, and BadInputError for what it does not read, or reads over, or is not linear."""
    given = given[0] if isinstance(given, list | tuple) else given
    if not isinstance(given, str | Path):
        return cast(LinearProgram, leaves.linear_program(given))
    if "://" in str(given):
        raise UsageError(f"{given}: MPS and LP files are read from this machine; copy it here first")
    path = Path(given)
    if not path.is_file():
        raise BadInputError(absent(path))
    highs = _make_highs(path)
    # the text, what HiGHS makes of it, and its rows here, several times
    if (size := path.stat().st_size) > memory // SHARE:
        raise BadInputError(f"{path}: {format_bytes(size)} are more than a quarter of the memory budget; give more")
    with tempfile.TemporaryDirectory() as folder:
        text, log = path, Path(folder) / "log"
        if path.suffix.lower() == ".gz":  # which not every build of HiGHS reads
            text = Path(folder) / path.stem
            try:
                text.write_bytes(gzip.decompress(path.read_bytes()))
            except (gzip.BadGzipFile, EOFError, zlib.error):
                raise BadInputError(f"{path}: not a whole gzip file; write it again") from None
        if text.suffix.lower() == ".mps":
            try:
                MpsLines(str(path)).read(text.read_text(encoding="utf-8").splitlines())
            except UnicodeDecodeError:
                raise BadInputError(f"{path}: not text in UTF-8; save it so") from None
        options = {"log_to_console": False, "log_file": str(log), "keep_n_rows": 1, "small_matrix_value": 1e-12}
        for name, value in {**options, "large_matrix_value": np.inf, "infinite_bound": np.inf}.items():
            highs.setOptionValue(name, value)
        status = highs.readModel(str(text)).name
        said = log.read_text(errors="replace") if log.exists() else ""
    if status != "kOk":
        found = re.search(r"^(?:WARNING|ERROR): *(.+)", said, re.MULTILINE)
        why = " ".join(found[1].split()) if found else "it is none, or damaged"
        raise BadInputError(f"{path}: HiGHS does not read it without loss: {why}; correct the file")
    return _program_of(highs.getLp(), str(path))


def _make_highs(path: Path) -> Any:
    """Raises UsageError where it is not there, or one that leaves out constants on the left sides of LP files in silence."""
    try:
        highs = import_module("highspy").Highs.__base__()  # which, unlike Highs itself, writes nothing to stdout
        if [*map(int, highs.version().split(".")[:2])] >= [1, 16]:
            return highs
    except ImportError:
        pass
    raise UsageError(f"{path}: MPS and LP files are read by HiGHS 1.16, or a newer one: {install('programs')}")


def _program_of(lp: Any, where: str) -> LinearProgram:
    n, m = lp.num_row_, lp.num_col_
    features, names = list(lp.col_names_), list(lp.row_names_)
    if not m:
        raise BadInputError(f"{where}: no variables were found in it; expected constraints")
    for what, each, count in (("variables", features, m), ("rows", names, n)):
        if len(each) != count or len(set(each)) != count:
            raise BadInputError(f"{where}: several {what} have one name, or none; give each its own")
    for name, kind in zip(features, lp.integrality_, strict=False):
        if kind.name != "kContinuous":
            text = "whole numbers and semi-continuous variables are not supported; leave out that it is one"
            raise BadInputError(f"{where}: variable {name}: {text}")
    held = np.asarray(lp.a_matrix_.value_), lp.a_matrix_.index_, lp.a_matrix_.start_
    low, high = np.array(lp.row_lower_), np.array(lp.row_upper_)
    bounds = np.column_stack([lp.col_lower_, lp.col_upper_])
    odd = (low == np.inf) | (high == -np.inf) | np.isnan(low) | np.isnan(high)
    odd |= (low == -np.inf) & (high == np.inf) & where.lower().endswith((".lp", ".lp.gz"))  # those of MPS files are rows N
    if odd.any() or not np.isfinite(held[0]).all():
        which = f"row {names[int(odd.argmax())]}" if odd.any() else "an entry"
        raise BadInputError(f"{where}: {which} has a number that float64 does not hold; correct it")
    matrix = scipy.sparse.csc_array(held, shape=(n, m)).tocsr()
    return LinearProgram.between(matrix, low, high, names, bounds, features)


SECTIONS = ("NAME", "OBJSENSE", "OBJSENS", "OBJNAME", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA")
OF_OBJECTIVE = ("QUADOBJ", "QMATRIX", "QSECTION")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([EeDd][+-]?\d+)?|[+-]?[Ii][Nn][Ff]([Ii][Nn][Ii][Tt][Yy])?")
VALUED, FREE = ("UP", "LO", "FX", "LI", "UI", "SC", "SI"), ("FR", "MI", "PL", "BV")


@dataclass(eq=False, repr=False)
class MpsLines:
    """What the lines of an MPS file have named so far. Refuses the first that HiGHS would read over, or as another one."""

    where: str
    sections: list[str] = field(default_factory=list)
    rows: set[str] = field(default_factory=set)
    columns: set[str] = field(default_factory=set)
    last: str = ""  # column
    given: set[tuple[str, ...]] = field(default_factory=set)  # numbers of the last column, and of other sections
    sets: dict[str, str] = field(default_factory=dict)  # of right sides, ranges and bounds: a file may have several

    def read(self, lines: Iterable[str]) -> None:
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or line.startswith("*"):
                continue
            try:
                if not line[0].isspace():
                    self._begin(words)
                else:
                    self._take(words)
            except ValueError as error:
                raise BadInputError(f"{self.where}, line {number}: {error}") from None
            if self.sections[-1] == "ENDATA":
                break
        for name in ("ROWS", "COLUMNS", "ENDATA"):
            if name not in self.sections:
                raise BadInputError(f"{self.where}: there is no section {name}; is the file whole?")

    def _begin(self, words: list[str]) -> None:
        name = words[0]
        if name not in (*SECTIONS, *OF_OBJECTIVE):
            raise ValueError(f"section {name} is not supported; leave it out")
        if name in self.sections:
            raise ValueError(f"a second section {name}; put it into the first")
        self.sections.append(name)

    def _take(self, words: list[str]) -> None:
        section = self.sections[-1] if self.sections else ""
        if section == "ROWS":
            if len(words) != 2 or words[0] not in ("N", "L", "G", "E"):
                raise ValueError(f"expected N, L, G or E and a name without spaces, got {' '.join(words)}")
            self._once(self.rows, words[1], "row")
        elif section == "COLUMNS" and words[1:2] != ["'MARKER'"]:
            if words[0] != self.last:
                self._once(self.columns, words[0], "column")
                self.last, self.given = words[0], set()
            self._pairs("entry", words[1:], f"column {words[0]}")
        elif section in ("RHS", "RANGES"):
            more = len(words) % 2
            if section == "RANGES" and not more:
                raise ValueError("expected the name of the set of ranges before them, without which HiGHS reads others")
            self._of_set(section, words[0] if more else "")
            self._pairs(section, words[more:], section)
        elif section == "BOUNDS":
            self._bound(words)

    def _once(self, known: set[str], name: str, what: str) -> None:
        if name in known:
            raise ValueError(f"{what} {name} is there twice; give it another name")
        known.add(name)

    def _of_set(self, section: str, name: str) -> None:
        if self.sets.setdefault(section, name) != name:
            raise ValueError(f"{name or 'a line without a name'} is a second set of {section}; leave one of them")

    def _pairs(self, what: str, words: list[str], where: str) -> None:
        """Rows and numbers."""
        if len(words) not in (2, 4):
            raise ValueError(f"{where}: expected one or two rows with a number each, names without spaces")
        for row, value in zip(words[::2], words[1::2], strict=True):
            if row not in self.rows:
                raise ValueError(f"{where}: there is no row {row}")
            self._number(value, f"{where}, row {row}")
            if (what, row) in self.given:
                raise ValueError(f"{where}: row {row} is there twice; leave one of them")
            self.given.add((what, row))

    def _bound(self, words: list[str]) -> None:
        kind, *rest = words
        if kind not in (*VALUED, *FREE) or not rest:
            raise ValueError(f"expected a bound {', '.join((*VALUED, *FREE))}, got {' '.join(words)}")
        least = 2 if kind in VALUED else 1
        named = len(rest) > least if kind in VALUED else len(rest) > 1 and rest[1] in self.columns
        column = rest[1] if named else rest[0]
        self._of_set("BOUNDS", rest[0] if named else "")
        if column not in self.columns or len(rest) > 3 or len(rest) < least + named:
            raise ValueError(f"{' '.join(words)}: there is no column {column}, or a word too few or too many")
        if kind in VALUED:
            self._number(rest[1 + named], f"bound {kind} of {column}", infinite=True)
            for side in {"UP": ("high",), "LO": ("low",), "FX": ("low", "high")}.get(kind, ()):
                if ("bound", column, side) in self.given:
                    raise ValueError(f"column {column} has two bounds {kind}; leave one of them")
                self.given.add(("bound", column, side))

    def _number(self, text: str, where: str, infinite: bool = False) -> None:
        value = float(text.upper().replace("D", "E")) if NUMBER.fullmatch(text) else np.nan
        if np.isnan(value) or (np.isinf(value) and (not infinite or "n" not in text.lower())):
            raise ValueError(f"{where}: expected a number that float64 holds, got {text}")
