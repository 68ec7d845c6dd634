"""Linear inequalities, equalities and bounds, beside a linear programme in integers."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import flint
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr
from click.testing import CliRunner
from scipy.optimize import Bounds

import dfeas
from dfeas.analysis import feasibility, separation
from dfeas.answers.files import TRACE
from dfeas.answers.trace import what_is_missing
from dfeas.cli.main import commands
from dfeas.errors import BadInputError, CheckFailedError, CorruptDataError, UsageError
from dfeas.exact.integers import independent
from dfeas.records import replace
from tests.exact import solution

NONE = np.inf
KINDS = ("row", "equality", "upper bound", "lower bound")


@dataclass(frozen=True)
class System:
    """A x <= b, E x = f, low <= x <= high, in floats that are integers times powers of two."""

    A: np.ndarray
    b: np.ndarray
    E: np.ndarray
    f: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def rows(self) -> list[tuple[list[Fraction], Fraction]]:
        """All of it as inequalities a'x <= b, in fractions."""
        eye = np.eye(self.A.shape[1])
        upper, lower = self.high < NONE, self.low > -NONE
        left = np.vstack([self.A, self.E, -self.E, eye[upper], -eye[lower]])
        right = np.concatenate([self.b, self.f, -self.f, self.high[upper], -self.low[lower]])
        return [([Fraction(v) for v in a], Fraction(v)) for a, v in zip(left.tolist(), right.tolist(), strict=True)]

    def has_solution(self) -> bool:
        """By the simplex method in integers of the oracle: x = p - q, and slacks."""
        rows, right = [], []
        for i, (a, v) in enumerate(self.rows):
            scale = np.lcm.reduce([w.denominator for w in (*a, v)], dtype=object)
            sign = -1 if v < 0 else 1
            whole = [sign * int(w * scale) for w in a]
            slack = [sign * int(i == k) for k in range(len(self.rows))]
            rows.append([*whole, *(-w for w in whole), *slack])
            right.append(abs(int(v * scale)))
        return not rows or solution(rows, right)[0] is not None

    def keep(self, conflict: list[dict[str, Any]]) -> System:
        """Only the constraints that are listed."""
        of = {kind: [each["place"] for each in conflict if each["kind"] == kind] for kind in KINDS}
        low, high = np.full(len(self.low), -NONE), np.full(len(self.high), NONE)
        low[of["lower bound"]], high[of["upper bound"]] = self.low[of["lower bound"]], self.high[of["upper bound"]]
        rows, equalities = of["row"], of["equality"]
        return System(self.A[rows], self.b[rows], self.E[equalities], self.f[equalities], low, high)

    def solve_equations(self) -> list[Fraction]:
        """Some x (m,) with a'x = b in all rows, in fractions. Raises AssertionError where there is none."""
        x, rows = (
            [Fraction(0)] * self.A.shape[1],
            [[flint.fmpq(w.numerator, w.denominator) for w in (*a, v)] for a, v in self.rows],
        )
        found = flint.fmpq_mat(rows).rref()[0] if rows else None
        for i in range(len(rows)):
            pivot = next((j for j in range(len(x) + 1) if found[i, j] != 0), None)
            assert pivot != len(x), "the equations contradict each other"
            if pivot is not None:
                x[pivot] = Fraction(int(found[i, len(x)].p), int(found[i, len(x)].q))
        return x

    def ask(self, **options: Any) -> dfeas.Feasibility:
        bounds = list(zip(self.low, self.high, strict=True))
        equal = (self.E, self.f) if len(self.E) else None
        return dfeas.feasible(self.A, self.b, equal=equal, bounds=bounds, **options)


def draw(seed: int) -> System:
    """With an interior, without one, without solutions; of low rank, with rows of zeros; in units that are far apart."""
    rng = np.random.default_rng(seed)
    m, n, p = int(rng.integers(1, 5)), int(rng.integers(1, 12)), int(rng.integers(0, 3)) * (seed % 3 == 0)
    size = int(rng.integers(1, 6))
    A, E, x = rng.integers(-size, size + 1, (n, m)), rng.integers(-size, size + 1, (p, m)), rng.integers(-3, 4, m)
    kind = seed % 5
    if kind == 1 and m > 1:
        A[:, -1] = A[:, 0]
    if kind == 2:
        A[n // 2 :] = -A[: n - n // 2]
    gap = rng.integers(0, 3, n) if kind in (0, 1) else np.zeros(n, int) if kind == 2 else rng.integers(-1, 3, n)
    b, f = A @ x + gap, E @ x + (rng.integers(0, 2, p) if kind == 4 else 0)
    low, high = np.full(m, -NONE), np.full(m, NONE)
    if seed % 2:
        some = rng.random(m) < 0.6
        low[some] = x[some] - rng.integers(0, 3, some.sum())
        some = rng.random(m) < 0.6
        high[some] = np.maximum(x[some] + rng.integers(-1 if kind == 3 else 0, 3, some.sum()), low[some])
    far = 40 if seed % 7 == 0 else 2
    row, column, other = (2.0 ** rng.integers(-far, far + 1, k) for k in (n, m, p))
    A, E, low, high = row[:, None] * A / column, other[:, None] * E / column, low * column, high * column
    return System(A, row * b, E, other * f, low, high)


def require_evidence(system: System, answer: dfeas.Feasibility) -> None:
    """The solution, or the multipliers, by arithmetic in fractions."""
    if answer.verdict == "feasible":
        violated = 0
        for a, v in system.rows:
            assert sum(w * y for w, y in zip(a, answer.exact, strict=True)) <= v
            violated += sum(w * Fraction(y) for w, y in zip(a, answer.x.tolist(), strict=True)) > v
        assert answer.violated == violated
        return
    assert len(answer.rows) == len(answer.u)
    assert all(weight > 0 for weight in answer.u)
    total = [Fraction(0)] * (system.A.shape[1] + 1)

    def add(weight: int, left: Any, right: float) -> None:
        for i, value in enumerate([*left, right]):
            total[i] += weight * Fraction(float(value))

    for j, weight in zip(answer.rows, answer.u, strict=True):
        add(weight, system.A[j], system.b[j])
    for i, weight in enumerate(answer.v):
        add(weight, system.E[i], system.f[i])
    for i, (upper, lower) in enumerate(zip(answer.upper, answer.lower, strict=True)):
        assert min(upper, lower) >= 0
        if upper:
            add(upper, np.eye(len(total) - 1)[i], system.high[i])
        if lower:
            add(lower, -np.eye(len(total) - 1)[i], -system.low[i])
    assert not any(total[:-1])
    assert total[-1] < 0
    conflict = answer.conflict or []
    for place in range(0, len(conflict), 1 + len(conflict) // 8):
        others = conflict[:place] + conflict[place + 1 :]
        x = system.keep(others).solve_equations()
        assert all(sum(w * y for w, y in zip(a, x, strict=True)) <= v for a, v in system.keep(others).rows)
    given = dict(zip(answer.rows.tolist(), answer.u, strict=True))
    of = {"row": given, "equality": answer.v, "upper bound": answer.upper, "lower bound": answer.lower}
    assert all(each["multiplier"] == of[each["kind"]][each["place"]] for each in conflict)
    assert len(conflict) == sum(np.count_nonzero(each) for each in (answer.u, answer.v, answer.upper, answer.lower))


@pytest.mark.parametrize("first", range(0, 80, 40))
def test_every_system_is_decided_as_the_oracle_does_with_evidence(first: int) -> None:
    told = set()
    for seed in range(first, first + 40):
        system = draw(seed)
        answer = system.ask()
        assert answer.verdict == ("feasible" if system.has_solution() else "infeasible"), seed
        assert answer.proof == "exact"
        require_evidence(system, answer)
        told.add(answer.verdict)
        said = re.search(r"by at most (\S+)$", answer.message)
        assert (said is not None) == bool(answer.violated), answer.message
    assert len(told) == 2


def test_conflicts_are_irreducible_whatever_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feasibility, "_guess_multipliers", lambda _: None)  # whose conflicts are so already
    reduced, cancel = 0, feasibility._cancel_last

    def watch(points: Any) -> Any:
        nonlocal reduced
        weights = cancel(points)
        reduced += len(independent(points[:-1][weights[:-1] != 0])) < np.count_nonzero(weights[:-1])
        return weights

    monkeypatch.setattr(feasibility, "_cancel_last", watch)
    for seed in range(2000, 2040):
        drawn = draw(seed)
        A, b = np.vstack([drawn.A, 2 * drawn.A]), np.append(drawn.b, 2 * drawn.b)  # all rows twice, and none has room
        system = replace(drawn, A=np.vstack([A, -A.sum(0)]), b=np.append(b, -b.sum() - 1))
        answer = system.ask()
        assert answer.verdict == "infeasible"
        require_evidence(system, answer)
    assert reduced > 10


def test_conflicts_name_constraints_as_they_are_called(tmp_path: Path) -> None:
    A = pd.DataFrame([[-8.0, -20, -3], [1, 15, 5]], index=["protein", "fat"], columns=["oats", "beef", "milk"])
    E = pd.DataFrame([[100.0, 250, 250]], index=["energy"], columns=["milk", "oats", "beef"])
    answer = dfeas.feasible(A, [-70.0, 12.0], equal=(E, [2000.0]), bounds=(0, None), out=tmp_path / "run")
    said = [(each["kind"], each["name"], each["text"], each["multiplier"]) for each in answer.conflict or []]
    assert said == [
        ("row", "protein", "-8 oats - 20 beef - 3 milk <= -70", 35),
        ("row", "fat", "oats + 15 beef + 5 milk <= 12", 30),
        ("equality", "energy", "250 oats + 250 beef + 100 milk = 2000", 1),
        ("lower bound", "milk", "milk >= 0", 145),
    ]
    assert "equality energy" in str(answer)
    assert "lower bound of milk" in str(answer)
    assert dfeas.load(tmp_path / "run").conflict == answer.conflict
    assert answer.verify(A, [-70.0, 12.0], equal=(E, [2000.0]), bounds=(0, None)).message.endswith(
        "without any one of them there is one"
    )
    page = dfeas.report(tmp_path / "run").read_text()
    assert ">equality energy</td>" in page
    assert "250 oats + 250 beef + 100 milk = 2000" in page
    A.to_csv(tmp_path / "A.csv", index_label="row")
    np.save(tmp_path / "b.npy", [-70.0, 12.0])
    by_path = dfeas.feasible(
        dfeas.table(tmp_path / "A.csv", id="row"), tmp_path / "b.npy", bounds={"oats": (0, 0), "beef": (0, 1), "milk": (0, 9)}
    )
    assert {each["name"] for each in by_path.conflict or []} <= {"protein", "fat", "oats", "beef", "milk"}
    many = dfeas.feasible(np.ones((1, 30)), [-1.0], bounds=(0, None))
    assert many.conflict is not None
    assert many.conflict[0]["text"].endswith("x[4] + .. (30 terms) <= -1")
    assert "and 21 more" in str(many)


def test_a_conflict_that_could_be_smaller_or_is_of_others_is_refused(tmp_path: Path) -> None:
    for name, values in (("A", [[1.0], [-1.0], [-2.0], [1.0]]), ("b", [0.0, -1.0, -2.0, 0.0])):
        np.save(tmp_path / f"{name}.npy", values)
    dfeas.feasible(tmp_path / "A.npy", tmp_path / "b.npy", out=tmp_path / "run")
    values = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (len(values["rows"]), len(values["conflict"])) == (2, 2)
    assert not {"conflict", "names of conflict"} & {*dfeas.verify_run(tmp_path / "run").not_checked}
    assert "names of conflict" in dfeas.verify_run(tmp_path / "run", tmp_path / "A.npy", tmp_path / "b.npy").not_checked
    first = values["conflict"][0]
    more = {"rows": [0, 1, 2], "u": [4, 2, 1], "conflict": [{**first, "multiplier": 4}, *values["conflict"][1:]]}
    lies = [
        {"conflict": [{**first, **lie}, *values["conflict"][1:]]} for lie in ({"place": 3}, {"name": "x"}, {"text": "0 <= 1"})
    ]
    for lie in (more, *lies, {"conflict": values["conflict"][1:]}, {"conflict": []}):
        (tmp_path / "run" / "result.json").write_text(json.dumps({**values, **lie}))
        with pytest.raises(CheckFailedError):
            dfeas.verify_run(tmp_path / "run")
    (tmp_path / "run" / "result.json").write_text(json.dumps({**values, **more, "conflict": None}))
    assert "any one" not in dfeas.verify_run(tmp_path / "run").message  # as older versions have it


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_large_systems_are_solved_or_asked_as_programmes(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    monkeypatch.setattr(separation, "SMALL", 0)  # so that these are large
    told = set()
    for seed in range(1000, 1040):
        system = draw(seed)
        answer = replace(system, A=kind(system.A)).ask()
        assert answer.verdict == ("feasible" if system.has_solution() else "infeasible"), seed
        require_evidence(system, answer)
        told.add((str(answer.verdict), answer.result.method))
        assert kind is sp.csr_array or len(system.E) or answer.result.method == "working-set"
    asked = {("feasible", "programme"), ("infeasible", "programme")}
    assert told >= asked | ({("feasible", "working-set"), ("infeasible", "working-set")} if kind is np.array else set())


def flow(nodes: int, arcs: int, short: float = 0.0) -> System:
    """What nodes send and get along arcs of a capacity of six; one of them gets more than is sent."""
    rng = np.random.default_rng(nodes)
    one = rng.integers(0, nodes, arcs)
    other = (one + rng.integers(1, nodes, arcs)) % nodes
    E = np.zeros((nodes, arcs))
    E[one, np.arange(arcs)], E[other, np.arange(arcs)] = 1, -1
    f = E @ rng.integers(0, 5, arcs)
    f[0] += short
    return System(np.zeros((1, arcs)), np.ones(1), E, f, np.zeros(arcs), np.full(arcs, 6.0))


@pytest.mark.parametrize("short", [0.0, 3.0])
def test_flows_are_decided_in_whole_numbers(short: float) -> None:
    system = flow(60, 300, short)
    answer = system.ask()
    assert (answer.verdict, answer.proof, answer.result.method) == ("infeasible" if short else "feasible", "exact", "programme")
    require_evidence(system, answer)
    assert not answer.violated


def test_equalities_in_decimals_have_a_solution_in_fractions() -> None:
    rng = np.random.default_rng(5)
    A, E, x = rng.standard_normal((40, 140)), rng.standard_normal((25, 140)), rng.random(140)
    pairs = np.vstack([A, E, -E])
    f = E @ x
    none = np.full(140, NONE)
    apart = System(A, A @ x + 0.1 * rng.random(40), E, f, 0 * none.clip(0, 1), none)
    together = System(pairs, np.concatenate([apart.b, f, -f]), E[:0], f[:0], apart.low, none)
    for system in (apart, together):
        answer = system.ask()
        assert (answer.verdict, answer.proof) == ("feasible", "exact")
        require_evidence(system, answer)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
@pytest.mark.parametrize("most", [False, True])
def test_what_contradicts_only_by_rounding_is_decided_exactly(kind: Any, most: bool) -> None:
    told = set()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        sent, got = rng.integers(1, 50, 12) / 10, np.zeros(9)
        got = rng.multinomial(round(sent.sum() * 10), np.ones(9) / 9) / 10
        of, to = np.kron(np.eye(12), np.ones(9)), np.kron(np.ones(12), np.eye(9))
        none = np.full(108, NONE)
        E, f = (to, got) if most else (np.vstack([of, to]), np.append(sent, got))
        system = System(of if most else np.zeros((1, 108)), sent if most else np.ones(1), E, f, np.zeros(108), none)
        given = (kind(of), sent) if most else (None, None)
        answer = dfeas.feasible(*given, equal=(kind(E), f), bounds=(0, None))
        total = sum(map(Fraction, sent)) - sum(map(Fraction, got))
        assert answer.verdict == ("feasible" if total == 0 or (most and total > 0) else "infeasible")
        assert (answer.proof, answer.result.method) == ("exact", "programme")
        require_evidence(system, answer)
        told.add(answer.verdict)
    assert "infeasible" in told


def test_pairs_of_inequalities_that_contradict_by_rounding_are_decided_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(separation, "SMALL", 0)  # so that these are large
    monkeypatch.setattr(feasibility, "search_integers", lambda *_: pytest.fail("a guess decides"))
    told = set()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        left, none = rng.integers(-9, 10, (12, 5)) / 10, np.full(5, NONE)
        right = left @ (np.ones(5) if seed % 2 else np.zeros(5))
        A, b = np.vstack([left, -left]), np.append(right, -right)
        answer = dfeas.feasible(A, b)
        system = System(A, b, A[:0], b[:0], -none, none)
        assert answer.verdict == ("feasible" if system.has_solution() else "infeasible")
        require_evidence(system, answer)
        told.add(answer.verdict)
    assert told == {"feasible", "infeasible"}


def test_more_equalities_than_variables_are_decided_by_their_ranks() -> None:
    rng = np.random.default_rng(0)
    E = rng.standard_normal((200, 50))
    answer = dfeas.feasible(None, equal=(E, E @ np.ones(50)))
    assert (answer.verdict, answer.result.method, np.count_nonzero(answer.v)) == ("infeasible", "programme", 51)
    whole = rng.integers(-9, 10, (200, 50)).astype(float)
    assert dfeas.feasible(None, equal=(whole, whole @ np.ones(50))).exact == [1] * 50


def test_a_conflict_of_a_row_with_bounds_leaves_other_rows_out() -> None:
    left = sp.random_array((300, 120), density=0.03, rng=np.random.default_rng(1), format="csr")
    A, b = sp.vstack([left, -sp.csr_array(left.sum(axis=0)[None])]).tocsr(), np.append(np.ones(300), -1e6)
    answer = dfeas.feasible(A, b, bounds=(0, 1))
    assert (answer.verdict, answer.rows.tolist(), answer.result.method) == ("infeasible", [300], "programme")
    assert np.count_nonzero(answer.upper) == np.count_nonzero(left.sum(axis=0))


def wide(seed: int, n: int = 900, m: int = 80) -> System:
    """With an interior, and too large to be decided at once."""
    rng = np.random.default_rng(seed)
    A, x = rng.integers(-50, 51, (n, m)).astype(float), rng.integers(-9, 10, m)
    A[rng.random((n, m)) < 0.8] = 0
    none = np.full(m, NONE)
    return System(A, A @ x + rng.integers(1, 9, n), np.zeros((0, m)), np.zeros(0), -none, none)


def test_every_kind_of_matrix_is_read_as_the_same(tmp_path: Path) -> None:
    system, y = wide(0), np.arange(900) % 3
    A, b = system.A, system.b
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "b.npy", b)
    dfeas.ingest(A, tmp_path / "dense", y=y, block_rows=70)
    dfeas.ingest(sp.csr_array(A), tmp_path / "sparse", y=y, block_rows=70)
    array = zarr.create_array(tmp_path / "A.zarr", shape=A.shape, chunks=(110, 80), dtype="int16")
    array[:] = A.astype(np.int16)
    kinds = [sp.csr_array(A), sp.csc_matrix(A), pd.DataFrame(A), da.from_array(A, chunks=(200, 30)), array]
    kinds += [tmp_path / name for name in ("A.npy", "dense", "sparse", "A.zarr")]
    proved: list[np.ndarray] = []
    for A_of_kind in kinds:
        answer = dfeas.feasible(A_of_kind, tmp_path / "b.npy")
        assert answer.verdict == "feasible"
        assert answer.result.method == "working-set"
        if not any(np.array_equal(answer.x, x) for x in proved):
            require_evidence(system, answer)
            proved.append(answer.x)
    assert len(proved) < len(kinds)


def test_large_systems_without_an_interior_or_a_solution_are_decided(tmp_path: Path) -> None:
    whole = wide(1)
    one = replace(whole, A=np.vstack([whole.A, -whole.A[:81].sum(0)]), b=np.append(whole.b, -whole.b[:81].sum() - 1))
    thin = replace(whole, A=np.vstack([whole.A, -whole.A[:3], 0 * whole.A[:1]]), b=np.concatenate([whole.b, -whole.b[:3], [0]]))
    for system, verdict in ((one, "infeasible"), (thin, "feasible")):
        answer = system.ask(out=tmp_path / f"{verdict}-{len(system.E)}")
        assert answer.verdict == verdict
        assert answer.result.stopped == "verdict"
        again = dfeas.load(tmp_path / f"{verdict}-{len(system.E)}")
        assert isinstance(again, dfeas.Feasibility)
        assert again.to_json() == answer.to_json()
        assert str(again) == str(answer)
        require_evidence(system, again)
    values = json.loads((tmp_path / "feasible-0" / "result.json").read_text())
    assert (values["verdict"], values["m"], values["n"]) == ("feasible", 80, len(thin.A))
    limited = thin.ask(time_limit=1e-9, out=tmp_path / "limited")
    assert (limited.verdict, limited.x, limited.is_decided) == ("undecided", None, False)
    assert limited.result.stopped == "time_limit"
    begun = replace(whole, E=whole.A[:4], f=whole.b[:4] - 1).ask(max_passes=1)
    assert (begun.verdict, begun.result.stopped) == ("undecided", "pass_limit")


@pytest.mark.parametrize("kind", ["solution", "rounded", "conflict", "thin", "sparse"])
def test_a_run_is_proved_again_by_its_files_and_nothing_false_is(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    A, E, f, bounds = rng.integers(-5, 6, (40, 3)).astype(float), np.array([[3.0, 7.0, 0.0]]), np.ones(1), (-9.0, None)
    b = A @ [0.25, 1.0, -2.0] + {"solution": 1, "sparse": 1, "rounded": 90}.get(kind, 0)
    if kind in ("conflict", "thin"):
        A, b = np.vstack([A, -A[:1]]), np.append(b, -b[0] - (kind == "conflict"))
    equal = (E, f) if kind == "rounded" else None
    for name, values in (("A", A), ("b", b), ("E", E), ("f", f)):
        np.save(tmp_path / f"{name}.npy", values)
    left, run = sp.csr_array(A) if kind == "sparse" else A, tmp_path / "run"
    here = dfeas.feasible(left, b, equal=equal, bounds=bounds)
    paths = None if equal is None else (tmp_path / "E.npy", tmp_path / "f.npy")
    there = dfeas.feasible(tmp_path / "A.npy", tmp_path / "b.npy", equal=paths, bounds=bounds, out=run)
    assert here.verdict == there.verdict == ("infeasible" if kind == "conflict" else "feasible")
    assert (here.asked, there.violated > 0) == (None, kind == "rounded")
    assert here.verify(left, b, equal=equal, bounds=bounds).verdict == here.verdict
    with pytest.raises(BadInputError, match="a part of the system was in memory; give it again"):
        here.verify()
    proved = dfeas.verify_run(run)
    assert (proved.verdict, proved.proof, proved.points) == (there.verdict, "exact", there.result.n)
    assert f"all {there.result.n} inequalities" in str(proved)
    assert dfeas.verify_run(run, tmp_path / "A.npy", tmp_path / "b.npy").message == proved.message
    with pytest.raises(CorruptDataError):
        dfeas.verify_run(run, tmp_path / "A.npy", b + 1)
    with pytest.raises(CorruptDataError, match="not the system of the run"):
        there.verify(A[:3], b[:3])
    values = json.loads((run / "result.json").read_text())
    lies: list[dict[str, Any]] = [{"violated": there.violated + 1}, {"exact": [[9, 7]] * 3}, {"exact": None}]
    if kind == "conflict":
        some = [weight + (place == 0) for place, weight in enumerate(there.u or [])]
        lies = [{"u": some}, {"rows": values["rows"][::-1]}, {"lower": [-1, 0, 0]}, {"upper": [1, 0, 0]}, {"u": [], "rows": []}]
    for lie in (*lies, {"verdict": "feasible" if kind == "conflict" else "infeasible"}):
        (run / "result.json").write_text(json.dumps({**values, **lie}))
        with pytest.raises(CheckFailedError):
            dfeas.verify_run(run)
    for part in ("A", "b", "equal", "bounds"):
        named: Any = [["s3://there/it"]] if part == "equal" else "s3://there/it"
        (run / "result.json").write_text(json.dumps({**values, "asked": {**values["asked"], part: named}}))
        with pytest.raises(UsageError, match=r"s3://there/it: follow=True"):
            dfeas.verify_run(run)


def test_a_page_speaks_of_rows_and_multipliers_and_of_no_points(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    A = rng.integers(-5, 6, (40, 3)).astype(float)
    b = A @ [0.25, 1.0, -2.0]
    A, b = np.vstack([A, -A[:1]]), np.append(b, -b[0])
    for name, right in (("yes", b), ("no", b - (np.arange(41) == 40))):
        dfeas.feasible(A, right, bounds=(-9, None), out=tmp_path / name)
    yes, no = (dfeas.report(tmp_path / name).read_text() for name in ("yes", "no"))
    assert re.search(r"<h2>Infeasible: there is no solution: rows of A \(\d+\) ", no)
    assert "row 40</td><td" in no
    assert "Without any one of these constraints the others have a solution." in no
    assert "Multipliers</h3>" in no
    assert "Solution</h3>" in yes
    assert ">-2</td></tr>" in yes
    for page in (yes, no):
        assert "inequalities</dt><dd>44</dd>" in page
        assert not re.search(r"label|hyperplane|in conflict|margin</dt>|suspect", page)
    file = tmp_path / "no" / "result.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "u": ["x"]}))
    with pytest.raises(CorruptDataError, match="not a readable result"):
        dfeas.report(tmp_path / "no")


PLACES = ("reads", "bytes_read", "seconds", "bits", "workers", "asked", "certificate")
"""Keys that say how, and not what."""


def test_a_cluster_reads_a_by_path_and_decides_as_threads_do(tmp_path: Path, client: Any) -> None:
    system = wide(4)
    A, b = np.vstack([system.A, -system.A[:3]]), np.append(system.b, -system.b[:3] - [1, 0, 0])
    dfeas.ingest(A, tmp_path / "dense", y=np.arange(903) % 2, block_rows=70)
    dfeas.ingest(sp.csr_array(A), tmp_path / "sparse", y=np.arange(903) % 2, block_rows=70)
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "small.npy", A[:40, :3])
    for name, right in (("b", b), ("more", b + 2), ("few", b[:40])):
        np.save(tmp_path / f"{name}.npy", right)
    equal = (A[:2], A[:2].sum(axis=1))
    asked: list[tuple[str, str, dict[str, Any]]] = [
        (name, right, {}) for name in ("dense", "sparse", "A.npy") for right in ("b", "more")
    ]
    for name, right, more in [*asked, ("dense", "more", {"equal": equal, "bounds": (-5, None)}), ("small.npy", "few", {})]:
        files = tmp_path / name, tmp_path / f"{right}.npy"
        here, there = (
            dfeas.feasible(*files, **more),
            dfeas.feasible(*files, client=client, **more, out=tmp_path / "run", force=True),
        )
        values = [{key: value for key, value in each.to_json().items() if key not in PLACES} for each in (here, there)]
        assert values[0] == values[1]
        assert here.verdict == ("feasible" if right == "more" and not more else "infeasible")
        assert there.result.data is None
        if not more:
            assert dfeas.verify_run(tmp_path / "run").verdict == here.verdict
    for given, said in ((A, "reads data by path"), (tmp_path / "m.mps", "leave out client")):
        (tmp_path / "m.mps").write_text("ROWS\n N c\n L r\nCOLUMNS\n x r 1\nRHS\n rhs r 1\nENDATA\n")
        with pytest.raises(UsageError, match=said):
            dfeas.feasible(given, b if given is A else None, client=client)


def test_commands_run_on_workers_of_their_own(tmp_path: Path) -> None:
    system = wide(5)
    np.save(tmp_path / "A.npy", system.A)
    np.save(tmp_path / "b.npy", system.b)
    found = []
    for run, more in (("here", []), ("there", ["--local", "2"])):
        words = [sys.executable, "-m", "dfeas", "feasible", "A.npy", "b.npy", "--out", run, "-q", "--json", *more]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
        found.append({key: value for key, value in json.loads(done.stdout).items() if key not in PLACES})
    assert found[0] == found[1]
    done = subprocess.run([*words, "--scheduler-file", "none.json"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "choose one of" in done.stderr) == (2, True)


KILLED = """
import os, signal, sys
import numpy as np
import dfeas
rng = np.random.default_rng(2)
A = rng.integers(-50, 51, (900, 80)).astype(float)
dfeas.feasible(A, A @ rng.integers(-9, 10, 80) + 1, out=sys.argv[1], callback=lambda _: os.kill(os.getpid(), signal.SIGKILL))
"""


def test_a_killed_run_says_that_it_cannot_go_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = subprocess.run([sys.executable, "-c", KILLED, str(run)], check=False)
    assert done.returncode == -signal.SIGKILL
    again = CliRunner().invoke(commands, ["resume", str(run)])
    said = f"dfeas: error: {run}: a run of feasible that was cut off cannot go on: ask again with --force\n"
    assert (again.exit_code, again.stderr) == (4, said)


def test_a_search_that_is_killed_leaves_no_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def search(*_: object) -> None:
        raise KeyboardInterrupt

    thin = wide(2)
    monkeypatch.setattr(feasibility, "search_integers", search)
    monkeypatch.setattr(feasibility, "settle", lambda *_: (None, None))  # which tells a solution before
    with pytest.raises(KeyboardInterrupt):
        replace(thin, A=np.vstack([thin.A, -thin.A[:3]]), b=np.append(thin.b, -thin.b[:3])).ask(out=tmp_path / "run")
    left = dfeas.load(tmp_path / "run")
    assert isinstance(left, dfeas.Feasibility)
    assert (left.verdict, left.result.stopped) == ("undecided", "interrupted")


@pytest.mark.parametrize("right", [-7.0, 7.0])
def test_what_is_decided_at_once_has_a_whole_trace(tmp_path: Path, right: float) -> None:
    answer = dfeas.feasible([[1.0], [-1.0], [2.0]], [2.0, 1.0, right], out=tmp_path / "run")
    assert answer.result.method == "exact"
    assert not what_is_missing(tmp_path / "run" / TRACE, answer.result.passes)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_tables_without_rows_say_nothing(kind: Any) -> None:
    none = kind(np.zeros((0, 2)))
    answer = dfeas.feasible(none, [], equal=([[1.0, 1.0]], [1.0]), bounds=(0, None))
    assert (answer.verdict, answer.exact is not None and sum(answer.exact)) == ("feasible", 1)
    answer = dfeas.feasible([[1.0, 1.0]], [-1.0], equal=(none, []), bounds=(0, None))
    assert (answer.verdict, answer.u, answer.v, answer.lower) == ("infeasible", [1], [], [1, 1])
    assert dfeas.feasible(none, [], bounds=(1, 0)).verdict == "infeasible"


@pytest.mark.parametrize("A", [None, np.zeros((0, 2))])
def test_multipliers_name_no_row_that_is_not_there(A: Any) -> None:
    E, f = np.array([[0.1, 1.0], [1.0, 10.0]]), np.array([0.0, 1.0])
    answer = dfeas.feasible(A, None if A is None else [], equal=(E, f), bounds=(0, 1))
    require_evidence(System(np.zeros((0, 2)), np.zeros(0), E, f, np.zeros(2), np.ones(2)), answer)
    assert (answer.verdict, answer.u, answer.result.n) == ("infeasible", [], 8)
    assert len(answer.rows) == 0
    assert "rows of A" not in answer.message


def test_bounds_are_said_as_scipy_says_them(tmp_path: Path) -> None:
    A, b = [[1.0, 1.0]], [3.0]
    np.save(tmp_path / "bounds.npy", [[1.0, np.inf], [2.0, 2.0]])
    same = [[(1, None), (2, 2)], Bounds([1, 2], [np.inf, 2]), tmp_path / "bounds.npy", np.array([[1, np.inf], [2, 2]])]
    for bounds in same:
        assert dfeas.feasible(A, b, bounds=bounds).exact == [1, 2]
    assert dfeas.feasible(A, b, bounds=(2, None)).lower == [1, 1]
    assert dfeas.feasible(A, b, bounds=[(3, 2), (None, None)]).upper == [1, 0]
    assert dfeas.feasible(A, b).verdict == "feasible"


def frame(values: Any, index: Any = ("r", "s"), columns: Any = ("x", "y")) -> pd.DataFrame:
    return pd.DataFrame(values, index=list(index), columns=list(columns), dtype=float)


LIMITS = frame([[1, 2], [10, 20]], "xy", ("low", "high"))


@pytest.mark.parametrize(
    "bounds",
    [
        LIMITS,
        LIMITS[["high", "low"]],
        LIMITS.iloc[::-1],
        LIMITS.rename(columns={"low": "lower", "high": "upper"}),
        {"y": (10, 20), "x": (1, 2)},
        pd.Series({"y": (10, 20), "x": (1, 2)}),
        LIMITS.reset_index(drop=True),
        pd.DataFrame(LIMITS.to_numpy()),
    ],
)
def test_what_has_names_is_found_by_them(bounds: Any) -> None:
    kind = (lambda A: dd.from_pandas(A, npartitions=1)) if isinstance(bounds, dict) else (lambda A: A)
    E = frame([[1, 0]], "e", "yx")
    answer = dfeas.feasible(kind(frame(np.eye(2))), [2.0, 50.0], equal=(kind(E), [15.0]), bounds=bounds)
    assert 1 <= answer.x[0] <= 2
    assert answer.x[1] == 15
    answer = dfeas.feasible(None, equal=(E, [15.0]), bounds=bounds if isinstance(bounds, dict) else None)
    assert answer.x[0] == 15


def test_coordinates_of_xarray_are_compared() -> None:
    A = xr.DataArray(np.eye(2), dims=("row", "name"), coords={"row": [0, 1], "name": ["x", "y"]})
    A = A.chunk()
    b = xr.DataArray([1.0, 2.0], dims="row", coords={"row": [0, 1]})
    assert dfeas.feasible(A, b).is_decided
    assert dfeas.solve(A, b).verdict == "feasible"
    for call in (lambda: dfeas.feasible(A, b[::-1]), lambda: dfeas.solve(A, b[::-1])):
        with pytest.raises(BadInputError, match="have other rows"):
            call()
    with pytest.raises(BadInputError, match="E: other coordinates of its columns"):
        dfeas.feasible(A, b, equal=(A[:, ::-1].rename(row="other"), [1.0, 1.0]))


def test_a_number_is_taken_where_a_row_is() -> None:
    assert dfeas.feasible([[1.0], [-1.0]], [1.0, -1.0], equal=([[1.0]], 1.0)).exact == [1]
    assert dfeas.feasible([[1.0]], np.float64(-1.0), equal=([[1.0]], np.array(1))).verdict == "infeasible"


def test_a_table_says_which_columns_are_variables(tmp_path: Path) -> None:
    frame = pd.DataFrame({"row": ["p", "q", "r"], "x": [1.0, -1.0, 0.0], "z": [0.0, 1.0, -1.0]})
    frame.to_csv(tmp_path / "A.csv", index=False)
    right = dfeas.feasible(frame[["x", "z"]], [1.0, 1.0, 1.0], bounds={"x": (0.5, None), "z": (None, None)})
    for A in (frame, pa.Table.from_pandas(frame), tmp_path / "A.csv"):
        found = dfeas.feasible(dfeas.table(A, without="row"), [1.0, 1.0, 1.0], bounds={"x": (0.5, None), "z": (None, None)})
        assert np.array_equal(found.x, right.x)
    np.save(tmp_path / "b.npy", [1.0, 1.0, -3.0])
    for more in (["--without", "row"], ["--columns", "z,x"], ["--id-column", "row"]):
        words = ["feasible", str(tmp_path / "A.csv"), str(tmp_path / "b.npy"), *more, "--out", str(tmp_path / "run"), "--force"]
        ran = CliRunner().invoke(commands, words)
        assert ran.exit_code == 0, ran.output
        loaded: Any = dfeas.load(tmp_path / "run")
        assert (loaded.verdict, loaded.verify().verdict) == ("infeasible", "infeasible")
    with pytest.raises(UsageError, match="A has no labels: leave out y of the table"):
        dfeas.feasible(dfeas.table(frame, "row"), [1.0, 1.0, 1.0])


@pytest.mark.parametrize("seed", range(12))
def test_decimals_that_only_rounding_contradicts_are_said(seed: int) -> None:
    """Balanced transports in tenths have solutions, in integers also as float64: what is infeasible of them is rounding."""
    rng = np.random.default_rng(seed)
    supply = rng.integers(1, 60, 4)
    demand = np.bincount(rng.integers(0, 3, int(supply.sum())), minlength=3)
    E = np.vstack([np.kron(np.eye(4), np.ones(3)), np.kron(np.ones(4), np.eye(3))])
    both = np.append(supply, demand)
    whole = dfeas.feasible(None, equal=(E, both.astype(float)), bounds=(0, None))
    tenths = dfeas.feasible(None, equal=(E, both / 10), bounds=(0, None))
    assert whole.verdict == "feasible"
    assert tenths.verdict == "feasible" or "decimals may have a solution" in tenths.message
    wrong = dfeas.feasible(None, equal=(E, (both + np.eye(7, dtype=int)[0]) / 10), bounds=(0, None))
    assert (wrong.verdict, "decimals" in wrong.message) == ("infeasible", False)
    near = dfeas.feasible([[1.0], [-1.0]], [2.0**52, -(2.0**52 + 1)])  # integers, which nobody rounded
    assert (near.verdict, "decimals" in near.message) == ("infeasible", False)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_an_empty_cell_of_a_frame_of_bounds_is_no_bound(library: str) -> None:
    A = pd.DataFrame([[1.0, 1.0], [-1.0, -1.0]], columns=["x", "y"])
    bounds = pd.DataFrame({"low": [0, None], "high": [None, -5]}, index=["x", "y"])
    if library == "polars":
        A, bounds = A.to_numpy(), pl.DataFrame({"low": [0, None], "high": [None, -5]})
    answer = dfeas.feasible(A, [10.0, -10.0], bounds=bounds)
    assert answer.verdict == "feasible"
    assert answer.x.sum() == 10
    assert answer.x[0] >= 0
    assert answer.x[1] <= -5
