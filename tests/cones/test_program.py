"""Problems in the form of SCS, A x + s = b with s in the cones: beside SCS itself, mapped back, with equalities, refused."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dfeas
from tests.cones.making import least
from tests.cones.plain import cones_of, spectrum, unit
from tests.exact import conflict

KINDS = "feasible", "boundary", "infeasible", "any"


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any], str]:
    """A, b, cones and how they were made: with a planted s inside, with two rows that hold only for s = 0 in them, with weights
    inside of the cones that prove that there is none, or of any kind.
    """
    rng, kind = np.random.default_rng(seed), KINDS[seed % 4]
    cones: dict[str, Any] = {"l": int(rng.choice([0, 2, 3, 4])), "q": rng.integers(2, 6, rng.integers(0, 3)).tolist()}
    cones["s"] = rng.integers(2, 4, rng.integers(not (cones["l"] or cones["q"]), 3)).tolist()
    inside = np.concatenate([_inside(rng, *each[:2]) for each in cones_of(cones)])
    rows = len(inside)
    m = int(rng.integers(1, min(5, rows)))
    A, x = np.round(rng.standard_normal((rows, m)), 2), rng.standard_normal(m)
    if kind == "any":
        return A, np.round(rng.standard_normal(rows), 2), cones, kind
    if kind == "infeasible":  # z = inside has A'z = 0 and b'z < 0, and these cones are their own duals
        A -= np.outer(inside, inside @ A) / (inside @ inside)
        return A, A @ x - rng.uniform(0.1, 1) * inside, cones, kind
    b = A @ x + rng.uniform(0.1, 2) * inside
    if kind == "feasible":
        return A, b, cones, kind
    a = np.round(rng.standard_normal(m), 2)
    right = np.round(a @ x, 6)
    return np.vstack([a, -a, A]), np.append([right, -right], b), {**cones, "l": cones["l"] + 2}, kind


def _inside(rng: np.random.Generator, kind: str, size: int) -> np.ndarray:
    """An element whose least eigenvalue is at least 1/2."""
    d = len(unit(kind, size))
    s = rng.standard_normal(d)
    return s + (0.5 + rng.uniform() - spectrum(kind, size, s)[0].min()) * unit(kind, size)


def by_scs(A: np.ndarray, b: np.ndarray, cones: dict[str, Any], c: np.ndarray) -> dict[str, Any]:
    scs, data = pytest.importorskip("scs"), {"A": sp.csc_matrix(A), "b": b, "c": c}
    found: dict[str, Any] = scs.SCS(data, cones, verbose=False, eps_abs=1e-9, eps_rel=1e-9, eps_infeas=1e-9).solve()
    return found


def widest(A: np.ndarray, b: np.ndarray, cones: dict[str, Any]) -> float:
    """The largest r <= 1 with s - r e in the cones, as SCS finds it."""
    e = np.concatenate([unit(kind, size) for kind, size, _ in cones_of(cones)])
    wide = np.vstack([np.append(np.zeros(A.shape[1]), 1.0), np.column_stack([A, e])])
    found = by_scs(wide, np.append(1.0, b), {**cones, "l": cones["l"] + 1}, np.append(np.zeros(A.shape[1]), -1.0))
    return float(found["x"][-1]) if found["info"]["status"] == "solved" else float("nan")


@pytest.mark.parametrize("seeds", [range(first, first + 24) for first in (0, 24)])
def test_48_random_problems_beside_scs(seeds: range) -> None:
    for seed in seeds:
        A, b, cones, kind = drawn(seed)
        result = dfeas.solve(dfeas.from_scs(A if seed % 2 else sp.csc_array(A), b, cones), eps=1e-7)
        status, r = by_scs(A, b, cones, np.zeros(A.shape[1]))["info"]["status"], widest(A, b, cones)
        said = seed, kind, status, r, result.verdict, result.message
        if result.verdict == "feasible":
            assert result.x is not None, said
            assert result.x.shape == (A.shape[1],), said
            assert least(b - A @ result.x, cones) > 0, said
            assert status != "infeasible", said
            assert result.message.startswith("strictly feasible: some x has b - A x in the interior"), said
        else:
            assert result.x is None, said
            assert not r > 1e-4, said
        if result.verdict == "infeasible":
            assert not r > 1e-7, said
            assert result.message.startswith("not strictly feasible: no x has b - A x in the interior"), said
        assert kind not in ("feasible", "infeasible") or result.verdict == kind, said
        assert kind != "boundary" or (result.verdict != "feasible" and status == "solved"), said


def test_sign_and_right_side_are_those_of_scs() -> None:
    A, b = np.array([[-1.0], [1.0]]), np.array([-1.0, 2.0])  # 1 <= x <= 2
    result = dfeas.solve(dfeas.from_scs(A, b, {"l": 2}))
    assert result.verdict == "feasible"
    assert 1 < result.x[0] < 2
    assert dfeas.solve(dfeas.from_scs(A, [-1, 0], {"l": 2})).verdict == "infeasible"


@pytest.mark.parametrize("seed", range(16))
def test_equalities_hold_exactly_of_y_and_verdicts_are_those_of_scs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, equal = 5, int(rng.integers(1, 4))
    A, x = rng.integers(-2, 3, (equal + 6, m)).astype(float), rng.integers(-3, 4, m)
    b, cones = A @ x, {"z": equal, "l": 3, "q": [3]}
    b[equal:] += [1, 1, 1, 2, 0, 1] if seed % 2 else rng.integers(-3, 1, 6)
    dataset = dfeas.from_scs(sp.csr_matrix(A) if seed % 3 else A, b, cones)
    result = dfeas.solve(dataset, eps=1e-8)
    plain = {kind: size for kind, size in cones.items() if kind != "z"}
    found = by_scs(A, b, cones, np.zeros(m))
    assert seed % 2 == 0 or result.verdict == "feasible"
    assert (result.verdict == "feasible") <= (found["info"]["status"] == "solved")
    assert (found["info"]["status"] == "infeasible") <= (result.verdict == "infeasible")
    if result.verdict != "feasible":
        return
    basis, y = dataset.program.basis, result.separator
    exact = [sum((v * Fraction(y[j]) for j, v in row.items()), Fraction(0)) for row in basis]
    assert exact[-1] > 0
    for row, right in zip(A[:equal].tolist(), b[:equal].tolist(), strict=True):
        assert sum(Fraction(v) * w for v, w in zip(row, exact[:-1], strict=True)) == Fraction(right) * exact[-1]
    assert result.x.tolist() == [float(v / exact[-1]) for v in exact[:-1]]
    assert least((b - A @ result.x)[equal:], plain) > 0


def test_equalities_alone_and_those_that_contradict_each_other() -> None:
    result = dfeas.solve(dfeas.from_scs([[1.0], [2.0]], [1.0, 2.0], {"z": 2}))
    assert (result.verdict, result.x.tolist()) == ("feasible", [1.0])
    for A, b, cones in (([[1], [1], [-1]], [1, 2, 0], {"z": 2, "l": 1}), ([[1, 0], [0, 0]], [0, 1], {"f": 2})):
        result = dfeas.solve(dfeas.from_scs(A, b, cones))
        assert (result.verdict, result.proof, result.x) == ("infeasible", "exact", None)


def test_conflicts_of_linear_rows_among_other_cones_end_exact() -> None:
    """Beside an oracle in integers, also where they are on the boundary, in a ball that all solutions reach into."""
    seen = set()
    for seed in range(24):
        rng = np.random.default_rng(seed)
        L, h = rng.integers(-2, 3, (5, 3)), rng.integers(-1, 3, 5)
        L[4], h[4] = -(L[0] + L[1]), int(rng.integers(-1, 1)) - h[0] - h[1]  # L x > h sums to 0 > -1, or 0 > 0
        ball = np.vstack([np.zeros((1, 3)), np.eye(3)])
        A, b = np.vstack([-L, ball]), np.concatenate([-h, [100, 0, 0, 0]])
        weights, _ = conflict([*np.column_stack([L, -h]).tolist(), [0, 0, 0, 1]])
        result = dfeas.solve(dfeas.from_scs(sp.csr_array(A) if seed % 2 else A, b, {"l": 5, "q": [4]}))
        assert (result.verdict == "infeasible") == (weights is not None), (seed, result.message)
        assert (result.verdict == "feasible") == (weights is None), (seed, result.message)
        seen.add(str(result.verdict))
    assert len(seen) == 2


def test_rows_are_named_as_the_user_counts_them() -> None:
    rows = [[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]]
    assert "row 2 has zeros" in dfeas.solve(dfeas.from_scs(rows, [1, 2, 0, 3], {"z": 1, "l": 3})).message
    assert "row 2 has zeros" in dfeas.solve(dfeas.from_scs(rows, [1, 2, 0, 3], {"l": 4})).message


def test_a_run_is_loaded_resumed_and_predicts(tmp_path: Path) -> None:
    A, b, cones, _ = drawn(0)
    data = dfeas.from_scs(A, b, cones)
    whole = dfeas.solve(data, method="mirror-prox", margin_tolerance=0.1)
    dfeas.solve(data, method="mirror-prox", margin_tolerance=0.1, max_passes=2, out=tmp_path / "run")
    result = dfeas.resume(tmp_path / "run", dfeas.from_scs(A, b, cones), max_passes=100_000)
    np.testing.assert_array_equal(result.x, whole.x)
    loaded = dfeas.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.x, whole.x)
    assert loaded.message == result.message
    assert dfeas.predict(tmp_path / "run", data).least.min() == pytest.approx(whole.margin_lower, rel=1e-9)


def test_empty_kinds_that_others_write_are_none() -> None:
    assert dfeas.from_scs(np.ones((2, 1)), [1, 2], {"z": 0, "l": 2, "q": [], "s": [], "ep": 0, "ed": 0, "p": []}).n == 3
