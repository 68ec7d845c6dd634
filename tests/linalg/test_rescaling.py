"""Columns in other coordinates: what does not change, what does, and what that decides."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

import dfeas
from dfeas.linalg.points import Floats
from dfeas.linalg.separation.columns import ColumnMatrix
from dfeas.linalg.separation.rescaling import RescaledColumns
from dfeas.linalg.separation.solver import solve
from dfeas.linalg.separation.sparse_columns import column_matrix
from tests.fuzzing.thin import dummies, hair, planted, turn_scales


def unit_columns(points: Floats) -> ColumnMatrix:
    return column_matrix(points, 1 / np.linalg.norm(points, axis=1))


@pytest.mark.parametrize(("c", "d", "rank"), [(60, 9, 9), (60, 9, 5), (6, 20, 6), (6, 20, 4)])
def test_signs_of_scores_and_sums_of_zero_do_not_change(c: int, d: int, rank: int) -> None:
    """a'T v has the sign of the score of b = T'a / |T'a|, and sum x_j b_j = 0 is sum (x_j / |T'a_j|) a_j = 0."""
    rng = np.random.default_rng(c + rank)
    matrix = unit_columns(rng.standard_normal((c, rank)) @ (np.logspace(0, -6, rank)[:, None] * rng.standard_normal((rank, d))))
    rescaled = RescaledColumns.rescale(matrix)
    assert rescaled is not None
    for _ in range(3):
        assert rescaled.shape == (c, rank)
        v, w = rng.standard_normal(rank), rng.standard_normal(d)
        assert rescaled.scores(v) * rescaled.length == pytest.approx(matrix.scores(rescaled.vector(v)), abs=1e-9)
        back = matrix.scores(rescaled.vector(rescaled.coordinates(w)))
        assert back == pytest.approx(matrix.scores(w), abs=1e-7)
        assert np.linalg.norm(rescaled.points, axis=1) == pytest.approx(1)
        if c > rank:
            x = np.linalg.svd(rescaled.points.T)[2][-1]
            assert np.linalg.norm(matrix.combine(rescaled.weights(x))) < 1e-8 * np.abs(rescaled.weights(x)).sum()
        assert float((rescaled.scores(v) * rescaled.length).min()) == rescaled.lowest(rescaled.scores(v))
        closer = rescaled.turn(rng.random(c) < 0.5, 1e4)
        assert closer is not None
        rescaled = closer


@pytest.mark.parametrize("C", [1e2, 1e8])
def test_the_ellipsoid_of_some_columns_becomes_a_ball_as_far_as_C(C: float) -> None:
    """T T' is (I/C + B B')^-1 but for a factor: all directions of B are as long, and none is longer than sqrt(C) of before."""
    rng = np.random.default_rng(0)
    rescaled = RescaledColumns.rescale(unit_columns(rng.standard_normal((200, 6))))
    assert rescaled is not None
    some = rescaled.points[:, 0] > 0.3
    closer = rescaled.turn(some, C)
    assert closer is not None
    turn = rescaled.back @ closer.forth
    B = rescaled.points[some]
    ball = turn.T @ (np.eye(6) / C + B.T @ B) @ turn
    assert ball == pytest.approx(ball[0, 0] * np.eye(6), abs=1e-6 * ball[0, 0])


def test_a_column_of_zero_and_more_columns_than_there_is_room_for_are_left_as_they_are() -> None:
    assert RescaledColumns.rescale(ColumnMatrix(np.zeros((5, 3)), np.ones(5), np.ones(3))) is None
    assert RescaledColumns.rescale(ColumnMatrix(np.ones((5, 3)), np.ones(5), np.ones(3))) is not None
    assert RescaledColumns.rescale(ColumnMatrix(np.broadcast_to(1.0, (9_000, 1_000)), np.ones(9_000), np.ones(1_000))) is None


FAMILIES = {
    **{f"condition {c:g}": lambda seed, c=c: turn_scales(800, 15, c, seed) for c in (1e6, 1e9, 1e12)},
    **{f"hair {r:g}": lambda seed, r=r: hair(400, 20, r, seed) for r in (1e-6, 1e-12)},
    **{f"planted {r:g}": lambda seed, r=r: planted(600, 15, r, seed) for r in (1e-9, 1e-12, 1e-14)},
    "planted 1e-13 of many": lambda seed: planted(600, 60, 1e-13, seed),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_margins_at_the_end_of_float64_are_separated(family: str, seed: int) -> None:
    points, label = FAMILIES[family](seed)
    signed = points * label[:, None]
    found = solve(unit_columns(signed))
    assert found.outcome == "separated"
    assert (signed.astype(np.longdouble) @ found.w.astype(np.longdouble) > 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_columns_that_cannot_be_rescaled_at_once_are_separated_part_by_part(seed: int) -> None:
    """As in 24 MiB: twice a basis has room for less than seven columns per feature."""
    points, label = turn_scales(3000, 60, 1e10, seed)
    signed = points * label[:, None]
    matrix = column_matrix(signed, 1 / np.linalg.norm(signed, axis=1), 96_000)
    assert RescaledColumns.most(matrix) == 400
    found = solve(matrix)
    assert found.outcome == "separated"
    assert (signed.astype(np.longdouble) @ found.w.astype(np.longdouble) > 0).all()


@pytest.mark.parametrize("condition", [1e6, 1e9, 1e12])
@pytest.mark.parametrize("seed", range(3))
def test_a_wrong_label_among_columns_of_bad_condition_is_a_conflict_in_the_coordinates_of_the_points(
    condition: float, seed: int
) -> None:
    points, label = turn_scales(800, 10, condition, seed)
    label[seed] *= -1
    label[400 + seed], points[400 + seed] = -label[seed], points[seed]  # or it could lie beyond all others
    matrix = unit_columns(points * label[:, None])
    found = solve(matrix)
    assert found.outcome == "conflict"
    columns = matrix.gather(found.rows).astype(np.longdouble)
    assert np.linalg.norm(found.weight @ columns) < 1e-15


@pytest.mark.parametrize("r", [1e-10, 1e-13])
def test_a_margin_beside_rounding_is_no_conflict(r: float) -> None:
    """In the coordinates of the points some weights have |Ax| <= r here, which is no sum of zero."""
    for seed in range(4):
        points, label = planted(300, 70, r, seed)
        assert solve(unit_columns(points * label[:, None])).outcome == "separated"


@pytest.mark.parametrize("family", FAMILIES)
def test_they_are_decided_in_a_few_reads(family: str) -> None:
    points, label = FAMILIES[family](7)
    found = dfeas.solve(points, label, eps=1e-12, intercept=False)
    assert (found.verdict, found.proof) == ("feasible", "rigorous")
    assert found.reads <= 4


@pytest.mark.parametrize("sparse", [False, True])
def test_a_conflict_of_more_dummies_than_the_exact_search_takes_is_proved(sparse: bool) -> None:
    """Its points have one solution but for a factor, of 0 and 1 alike: integers decide it in a moment."""
    points, label = dummies(2000, 10, 34, 3)
    found = dfeas.solve(scipy.sparse.csr_array(points) if sparse else points, label)
    assert (found.verdict, found.proof) == ("infeasible", "exact")
    assert len(found.conflicts) * points.shape[1] > 100_000
