"""Linear inequalities, equalities and bounds, beside a linear programme in integers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from scipy.optimize import Bounds

import dfeas
from dfeas.analysis import feasibility, separation
from dfeas.errors import BadInputError
from dfeas.run.exact.search import STOPPED
from dfeas.run.resources import attend_runs
from dfeas.run.result_files import TRACE
from dfeas.run.trace import what_is_missing
from tests.exact import solution

NONE = np.inf


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
        assert answer.exact is not None
        assert answer.x is not None
        violated = 0
        for a, v in system.rows:
            assert sum(w * y for w, y in zip(a, answer.exact, strict=True)) <= v
            violated += sum(w * Fraction(y) for w, y in zip(a, answer.x.tolist(), strict=True)) > v
        assert answer.violated == violated
        return
    assert answer.rows is not None
    assert answer.u is not None
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


@pytest.mark.parametrize("first", range(0, 400, 40))
def test_every_system_is_decided_as_the_oracle_does_with_evidence(first: int) -> None:
    told = set()
    for seed in range(first, first + 40):
        system = draw(seed)
        answer = system.ask()
        assert answer.verdict == ("feasible" if system.has_solution() else "infeasible"), seed
        assert answer.proof == "exact"
        require_evidence(system, answer)
        told.add(answer.verdict)
    assert len(told) == 2


def test_a_solve_comes_first_where_systems_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(separation, "SMALL", 0)  # so that these are
    for seed in range(1000, 1040):
        system = draw(seed)
        answer = system.ask()
        assert answer.result.method == "working-set"
        assert answer.verdict == ("feasible" if system.has_solution() else "infeasible"), seed
        require_evidence(system, answer)


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
    for A_of_kind in kinds:
        answer = dfeas.feasible(A_of_kind, tmp_path / "b.npy")
        assert answer.verdict == "feasible"
        assert answer.result.method == "working-set"
        require_evidence(system, answer)


def test_large_systems_without_an_interior_or_a_solution_are_decided(tmp_path: Path) -> None:
    whole = wide(1)
    one = replace(whole, A=np.vstack([whole.A, -whole.A[:81].sum(0)]), b=np.append(whole.b, -whole.b[:81].sum() - 1))
    thin = replace(whole, A=np.vstack([whole.A, -whole.A[:3], 0 * whole.A[:1]]), b=np.concatenate([whole.b, -whole.b[:3], [0]]))
    equal = replace(whole, E=whole.A[:4], f=whole.b[:4] - 1, low=np.full(80, -1e3))
    for system, verdict in ((one, "infeasible"), (thin, "feasible"), (equal, "feasible")):
        answer = system.ask(out=tmp_path / f"{verdict}-{len(system.E)}")
        assert answer.verdict == verdict
        assert answer.result.stopped == "verdict"
        again = dfeas.load(tmp_path / f"{verdict}-{len(system.E)}")
        assert isinstance(again, dfeas.Feasibility)
        assert again.to_json() == answer.to_json()
        assert str(again) == str(answer)
        require_evidence(system, again)
        require_evidence(system, answer)
    values = json.loads((tmp_path / "feasible-0" / "result.json").read_text())
    assert (values["verdict"], values["m"], values["n"]) == ("feasible", 80, len(thin.A))
    limited = thin.ask(time_limit=1e-9, out=tmp_path / "limited")
    assert (limited.verdict, limited.x, limited.is_decided) == ("undecided", None, False)
    assert limited.result.stopped == "time_limit"
    begun = replace(whole, E=whole.A[:4], f=whole.b[:4] - 1).ask(max_passes=1)
    assert (begun.verdict, begun.result.stopped) == ("undecided", "pass_limit")


def test_a_search_that_is_asked_to_stop_ends_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    thin, asked = wide(2), list[bool]()
    monkeypatch.setattr(feasibility, "search_integers", lambda *_: (asked.append(True) or STOPPED, None))
    with attend_runs(lambda: bool(asked), False):
        answer = replace(thin, A=np.vstack([thin.A, -thin.A[:3]]), b=np.append(thin.b, -thin.b[:3])).ask()
    assert (answer.verdict, answer.result.stopped) == ("undecided", "interrupted")


def test_a_search_that_is_killed_leaves_no_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def search(*_: object) -> None:
        raise KeyboardInterrupt

    thin = wide(2)
    monkeypatch.setattr(feasibility, "search_integers", search)
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


def test_bounds_are_said_as_scipy_says_them(tmp_path: Path) -> None:
    A, b = [[1.0, 1.0]], [3.0]
    np.save(tmp_path / "bounds.npy", [[1.0, np.inf], [2.0, 2.0]])
    same = [[(1, None), (2, 2)], Bounds([1, 2], [np.inf, 2]), tmp_path / "bounds.npy", np.array([[1, np.inf], [2, 2]])]
    for bounds in same:
        assert dfeas.feasible(A, b, bounds=bounds).exact == [1, 2]
    assert dfeas.feasible(A, b, bounds=(2, None)).lower == [1, 1]
    assert dfeas.feasible(A, b, bounds=[(3, 2), (None, None)]).upper == [1, 0]
    assert dfeas.feasible(A, b).verdict == "feasible"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"b": [1.0, 2.0]}, "b has shape (2,), expected 1 finite numbers"),
        ({"b": None}, "b is missing"),
        ({"b": [np.inf]}, "finite"),
        ({"A": None}, "expected A and b"),
        ({"A": [[np.nan, 0.0]]}, "A: 1 or more entries are not finite"),
        ({"equal": 3}, "expected E and f"),
        ({"equal": ([[1.0]], [1.0])}, "E has 1 columns, A has 2"),
        ({"equal": ([[1.0, 1.0]], [1.0, 2.0])}, "f has shape (2,)"),
        ({"bounds": [(0, 1)] * 3}, "2 pairs"),
        ({"bounds": 3}, "expected a pair"),
        ({"bounds": (np.inf, None)}, "no number is within"),
        ({"bounds": (2**53 + 1, None)}, "2**53"),
    ],
)
def test_what_cannot_be_asked_is_said_in_one_line(options: dict[str, Any], text: str) -> None:
    with pytest.raises(BadInputError, match=re.escape(text)):
        dfeas.feasible(**{"A": [[1.0, 1.0]], "b": [1.0], **options})
