"""Linear programmes of MPS and LP files, beside what was written into them, and files that are read as something else."""

from __future__ import annotations

import gzip
import importlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.data import programs
from dfeas.data.programs import LinearProgram, read_program
from dfeas.errors import BadInputError, DfeasError, UsageError

INF = float("inf")
MILL = """NAME mill
ROWS
 N cost
 L steel
 G demand
 E blend
COLUMNS
 a cost 1.0 steel 2.0
 a demand 1.0 blend 1.0
 c steel 1.0 demand 1.0
 c blend -1.0
RHS
 rhs steel 5.0 demand 3.0
BOUNDS
 UP bound a 1.25
ENDATA
"""
LP = """Minimize
 obj: a + 2 c
Subject To
 steel: 2 a + c <= 5
 demand: a + c >= 3
 blend: a - c = 0
Bounds
 a <= 1.25
End
"""


@dataclass
class Drawn:
    """Rows low <= a x <= high by name, bounds by name, and the file that says so."""

    rows: dict[str, tuple[float, float, dict[str, float]]]
    bounds: dict[str, tuple[float, float]]
    text: str


def number(rng: np.random.Generator) -> float:
    """As people write them: whole, decimal, large, small, negative."""
    value = float(rng.integers(-20, 21)) * float(rng.choice([1, 0.1, 1e9, 1e-6, 1e22]))
    return value or 1.0


def draw_matrix(rng: np.random.Generator, n: int, m: int) -> dict[tuple[int, int], float]:
    held = rng.random((n, m)) < 0.5
    return {(i, j): number(rng) for i, j in zip(*np.nonzero(held), strict=True)}


def draw_mps(rng: np.random.Generator) -> Drawn:
    n, m = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    kinds, matrix = rng.choice(list("NLGE"), n), draw_matrix(rng, n, m)
    names, columns = [f"r{i}" for i in range(n)], [f"x{j}" for j in range(m)]
    right = {i: number(rng) for i in range(n) if rng.random() < 0.6}
    ranges = {i: number(rng) for i in range(n) if rng.random() < 0.4 and kinds[i] != "N"}
    wide, blank, order = rng.random(3) < 0.5

    def pairs(first: str, entries: list[tuple[str, float]]) -> list[str]:
        step = 2 if wide else 1
        return [" ".join([" ", first, *(f"{a} {v!r}" for a, v in entries[k : k + step])]) for k in range(0, len(entries), step)]

    lines = [
        "* a remark",
        "NAME  drawn",
        "ROWS",
        " N  cost",
        *(f" {kind}  {name}" for kind, name in zip(kinds, names, strict=True)),
    ]
    lines.append("COLUMNS")
    for j, column in enumerate(columns):
        lines += pairs(column, [("cost", 1.0), *((names[i], matrix[i, j]) for i in range(n) if (i, j) in matrix)])
    lines += ["RHS", *pairs("" if blank else "rhs", [(names[i], v) for i, v in right.items()])]
    of_ranges = ["RANGES", *pairs("rng", [(names[i], v) for i, v in ranges.items()])]
    of_bounds, bounds, of = ["BOUNDS"], dict[str, tuple[float, float]](), "" if blank else "bnd "
    for column in columns:
        low, high, value = 0.0, INF, abs(number(rng))
        kind = str(rng.choice(["none", "FR", "MI", "PL", "UP", "LO", "FX", "MI UP", "LO UP"]))
        for part in kind.split():
            said = {"FR": (-INF, INF), "MI": (-INF, high), "PL": (low, INF), "UP": (low, value), "LO": (-value, high)}
            low, high = {**said, "FX": (value, value), "none": (low, high)}[part]
            if part != "none":
                amount = {"UP": f" {value!r}", "LO": f" {-value!r}", "FX": f" {value!r}"}.get(part, "")
                of_bounds.append(f" {part} {of}{column}{amount}")
        bounds[column] = low, high
    lines += [*of_bounds, *of_ranges] if order else [*of_ranges, *of_bounds]
    rows = {}
    for i, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        b, r = right.get(i, 0.0), ranges.get(i)
        low, high = {"N": (-INF, INF), "L": (-INF, b), "G": (b, INF), "E": (b, b)}[kind]
        if r is not None:  # as IBM's MPS has it, whatever the sign of L and G
            low, high = {"L": (b - abs(r), b), "G": (b, b + abs(r)), "E": (min(b, b + r), max(b, b + r))}[kind]
        rows[name] = low, high, {columns[j]: v for (k, j), v in matrix.items() if k == i}
    return Drawn(rows, bounds, "\n".join([*lines, "ENDATA", ""]))


def draw_lp(rng: np.random.Generator) -> Drawn:
    n, m = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    matrix, columns = draw_matrix(rng, n, m), [f"x{j}" for j in range(m)]
    lines, rows = ["Maximize", " obj: " + " + ".join(columns), "Subject To"], {}
    for i in range(n):
        entries, b, sense = (
            {columns[j]: v for (k, j), v in matrix.items() if k == i},
            number(rng),
            str(rng.choice(["<=", ">=", "="])),
        )
        if entries:
            terms = " ".join(f"{'-' if v < 0 else '+'} {abs(v)!r} {name}" for name, v in entries.items())
            lines.append(f" r{i}: {terms} {sense} {b!r}")
            rows[f"r{i}"] = {"<=": (-INF, b), ">=": (b, INF), "=": (b, b)}[sense] + (entries,)
    bounds = dict[str, tuple[float, float]]()
    lines.append("Bounds")
    for column in columns:
        low, high = sorted([number(rng), number(rng)])
        said, bounds[column] = [
            ("", (0.0, INF)),
            (f" {column} free", (-INF, INF)),
            (f" {low!r} <= {column} <= {high!r}", (low, high)),
            (f" {column} >= {low!r}", (low, INF)),
            (f" -inf <= {column} <= {high!r}", (-INF, high)),
            (f" {column} = {low!r}", (low, low)),
        ][int(rng.integers(6))]
        lines.append(said)
    return Drawn(rows, bounds, "\n".join([*lines, "End", ""]))


def sides(program: LinearProgram) -> dict[str, tuple[float, float, dict[str, float]]]:
    """Its rows, put together again."""
    found = dict[str, tuple[float, float, dict[str, float]]]()
    for number, turned, row, right in zip(program.rows, program.turned, program.A.toarray(), program.b, strict=True):
        name = program.name(number)
        low, high, entries = found.get(name, (-INF, INF, {}))
        sign = -1 if turned else 1
        now = {program.features[j]: float(sign * row[j]) for j in np.flatnonzero(row)}
        assert entries in ({}, now)
        found[name] = (-float(right), high, now) if turned else (low, float(right), now)
    for number, row, right in zip(program.equalities, program.E.toarray(), program.f, strict=True):
        name = program.name(number)
        assert name not in found
        found[name] = float(right), float(right), {program.features[j]: float(row[j]) for j in np.flatnonzero(row)}
    return found


@pytest.mark.parametrize("kind", ["mps", "lp"])
def test_no_row_bound_or_number_of_a_file_is_lost(kind: str, tmp_path: Path) -> None:
    for seed in range(120):
        rng = np.random.default_rng(seed)
        drawn = (draw_mps if kind == "mps" else draw_lp)(rng)
        path = tmp_path / f"{seed}.{kind}"
        if rng.random() < 0.2:
            path = path.with_name(f"{path.name}.gz")
            path.write_bytes(gzip.compress(drawn.text.encode()))
        else:
            path.write_text(drawn.text)
        program = read_program(path, 1 << 30)
        wanted = {name: each for name, each in drawn.rows.items() if each[:2] != (-INF, INF)}  # a free row says nothing
        assert sides(program) == wanted, drawn.text
        assert dict(zip(program.features, map(tuple, program.bounds.tolist()), strict=True)) == drawn.bounds, drawn.text


def changed(old: str, new: str) -> str:
    assert old in MILL
    return MILL.replace(old, new)


def changed_lp(old: str, new: str) -> str:
    assert old in LP
    return LP.replace(old, new)


REFUSED = {
    "number": (changed("steel 5.0", "steel 5.x"), "line 13: RHS, row steel: expected a number that float64 holds, got 5.x"),
    "word": (changed("steel 2.0", "steel two"), "line 8: column a, row steel: expected a number"),
    "nan": (changed("steel 2.0", "steel nan"), "expected a number that float64 holds, got nan"),
    "infinite entry": (changed("steel 2.0", "steel inf"), "got inf"),
    "overflow": (changed("steel 2.0", "steel 1e400"), "got 1e400"),
    "overflow on the right": (changed("steel 5.0", "steel 1e400"), "got 1e400"),
    "overflow of a bound": (changed("a 1.25", "a 1e400"), "got 1e400"),
    "underscore": (changed("steel 5.0", "steel 5_0"), "got 5_0"),
    "too small": (changed("steel 2.0", "steel 1e-13"), "without loss: .*1e-13"),
    "row twice": (changed(" G demand", " G demand\n G steel"), "line 6: row steel is there twice"),
    "entry twice": (changed("c blend -1.0", "c blend -1.0\n c blend 3"), "line 12: column c: row blend is there twice"),
    "column twice": (changed("RHS\n rhs", " a blend 1\nRHS\n rhs"), "line 12: column a is there twice"),
    "no such row": (changed("c blend -1.0", "c mix -1.0"), "line 11: column c: there is no row mix"),
    "right side of none": (changed("steel 5.0", "stell 5.0"), "line 13: RHS: there is no row stell"),
    "bound of none": (changed("bound a", "bound z"), "there is no column z"),
    "right side twice": (changed("demand 3.0", "demand 3.0\n rhs steel 7"), "line 14: RHS: row steel is there twice"),
    "second set": (changed("demand 3.0", "demand 3.0\n other steel 7"), "other is a second set of RHS"),
    "bound twice": (changed("a 1.25", "a 1.25\n UP bound a 2"), "column a has two bounds UP"),
    "second section": (changed("BOUNDS", "RHS\n rhs blend 1\nBOUNDS"), "a second section RHS"),
    "no end": (changed("ENDATA\n", ""), "there is no section ENDATA; is the file whole?"),
    "no columns": (MILL[: MILL.index("COLUMNS")] + "ENDATA\n", "there is no section COLUMNS"),
    "no rows": (changed("ROWS\n N cost\n L steel\n G demand\n E blend\n", ""), "there is no row cost"),
    "cut": (MILL[:100], "line "),
    "nothing": ("", "there is no section ROWS"),
    "another format": ("1,2\n3,4\n", "line 1: section 1,2 is not supported"),
    "kind of row": (changed(" L steel", " Q steel"), "line 4: expected N, L, G or E"),
    "name with a space": (changed(" L steel", " L the steel"), "line 4: .* name without spaces"),
    "kind of bound": (changed("UP bound", "XX bound"), "line 15: expected a bound UP"),
    "quadratic": (changed("ENDATA", "QCMATRIX steel\n a a 2\nENDATA"), "section QCMATRIX is not supported"),
    "lazy": (changed("COLUMNS", "LAZYCONS\n L lazy\nCOLUMNS"), "section LAZYCONS is not supported"),
    "marker": (changed("COLUMNS\n", "COLUMNS\n MARKER 'MARKER' 'INTORG'\n"), "variable a: whole numbers"),
    "odd marker": (changed("COLUMNS\n", "COLUMNS\n MARKER M 'MARKER' 'INTORG'\n"), "column MARKER: expected one or two rows"),
    "ranges without a set": (changed("BOUNDS", "RANGES\n steel 1\nBOUNDS"), "expected the name of the set of ranges"),
    "latin": (changed("steel", "st\xe9l"), "not text in UTF-8"),
    **{
        kind: (changed("UP bound a 1.25", f"{kind} bound a 3"), "variable a: whole numbers and semi")
        for kind in ("BV", "LI", "UI", "SC")
    },
}
REFUSED_LP = {
    "number": (changed_lp("<= 5", "<= 5x"), "HiGHS does not read it without loss"),
    "overflow": (changed_lp("<= 5", "<= 1e400"), "row steel has a number that float64 does not hold"),
    "constant": (changed_lp("2 a + c <=", "2 a + c + 3 <="), "without loss: .*constant"),
    "name twice": (changed_lp("demand:", "steel:"), "several rows have one name"),
    "no comparison": (changed_lp("c <= 5", "c 5"), "without loss"),
    "quadratic": (changed_lp("2 a + c", "2 a + [ c ^ 2 ]"), "without loss"),
    "integer": (changed_lp("End", "General\n a\nEnd"), "variable a: whole numbers"),
    "binary": (changed_lp("End", "Binary\n a\nEnd"), "variable a: whole numbers"),
    "sos": (changed_lp("End", "SOS\n s1: S1:: a:1 c:2\nEnd"), "without loss"),
    "no end": (changed_lp("End\n", ""), "without loss"),
    "nothing": ("", "no variables were found"),
}
FILES = [("mps", name) for name in REFUSED] + [("lp", name) for name in REFUSED_LP]


@pytest.mark.parametrize(("kind", "name"), FILES)
def test_what_would_be_read_as_something_else_is_refused_in_one_line(kind: str, name: str, tmp_path: Path) -> None:
    text, said = (REFUSED if kind == "mps" else REFUSED_LP)[name]
    path = tmp_path / f"model.{kind}"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInputError, match=re.escape(str(path)) + ".*" + said) as caught:
        dfeas.feasible(path)
    assert len(str(caught.value).splitlines()) == 1


def test_a_conflict_names_rows_and_variables_of_the_file(tmp_path: Path) -> None:
    for name, text in (("mill.mps", MILL), ("mill.lp", LP)):
        path, run = tmp_path / name, tmp_path / f"{name}-run"
        path.write_text(text)
        answer = dfeas.feasible(path, out=run)
        said = [(each["kind"], each["name"], each["text"], each["multiplier"]) for each in answer.conflict or []]
        assert said == [
            ("row", "demand", "a + c >= 3", 2),
            ("equality", "blend", "a - c = 0", -2),
            ("upper bound", "a", "a <= 1.25", 4),
        ]
        assert dfeas.verify_run(run).message.endswith("without any one of them there is one")
        path.write_text(text.replace("1.25", "1.75"))
        with pytest.raises(DfeasError, match="the data is not what"):
            dfeas.verify_run(run)
    path = tmp_path / "mill.mps.gz"
    path.write_bytes(gzip.compress(changed("a 1.25", "a 1.5").encode()))
    solved = dfeas.feasible(str(path))
    assert (solved.verdict, solved.exact) == ("feasible", [1.5, 1.5])
    ranges = changed("BOUNDS", "RANGES\n rng demand 4\nBOUNDS").replace("rhs steel 5.0", "rhs steel 30.0")
    (tmp_path / "ranges.mps").write_text(ranges.replace("UP bound a 1.25", "LO bound a 4"))
    above = dfeas.feasible(tmp_path / "ranges.mps")
    assert [each["text"] for each in above.conflict or []] == ["a + c <= 7", "a - c = 0", "a >= 4"]
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(BadInputError, match="not a whole gzip file"):
        dfeas.feasible(path)


def test_commands_take_a_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mill.mps").write_text(MILL)
    done = CliRunner().invoke(commands, ["feasible", "mill.mps", "--out", "run", "-q", "--json"])
    assert (done.exit_code, json.loads(done.stdout)["verdict"]) == (0, "infeasible")
    done = CliRunner().invoke(commands, ["verify", "run"])
    assert (done.exit_code, "without any one of them there is one" in done.stdout) == (0, True)
    for more, said in (
        (["--bounds", "0,1"], "leave out the others"),
        (["mill.mps"], "leave out the others"),
        (["--memory", "1kB"], "memory"),
    ):
        done = CliRunner().invoke(commands, ["feasible", "mill.mps", "--out", "other", *more])
        assert (done.exit_code in (2, 4), said in done.stderr, len(done.stderr.splitlines())) == (True, True, 1), done.stderr
    for absent, said in (("mil.mps", "did you mean mill.mps?"), ("s3://there/mill.mps", "copy it here first")):
        done = CliRunner().invoke(commands, ["feasible", absent, "--out", "other"])
        assert (done.exit_code in (2, 4), said in done.stderr) == (True, True), done.stderr


def test_without_highs_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> Any:
        if name == "highspy":
            raise ModuleNotFoundError(name)
        return importlib.import_module(name)

    (tmp_path / "mill.lp").write_text(LP)
    monkeypatch.setattr(programs, "import_module", fail)
    with pytest.raises(UsageError, match=r'pip install "highspy>=1\.16"'):
        dfeas.feasible(tmp_path / "mill.lp")
