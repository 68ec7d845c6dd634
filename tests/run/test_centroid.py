"""The sum of all points in memory separates easy data; other data it leads to a separator, or a conflict, before a survey."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray

import dfeas
from dfeas.data.storage.layout import default_block_rows
from dfeas.linalg.points import Floats

N, M = 30_000, 100
"""Of three blocks of points in float32, and five in float64."""


def apart(seed: int, dtype: Any = np.float32, gap: float = 0.05, shift: float = 0.0, n: int = N) -> tuple[NDArray[Any], Floats]:
    """Points (n, M) with labels (n,), of which a hyperplane is at least so far, as a share of the length of each."""
    random = np.random.default_rng(seed)
    X, y = random.standard_normal((n, M)), random.standard_normal(M)
    y /= np.linalg.norm(y)
    label = np.where(X @ y > 0, 1, -1)
    X += np.outer(label * gap * np.linalg.norm(X, axis=1), y) + shift * y
    return X.astype(dtype), label.astype(np.float64)


def least_score(result: Any, X: NDArray[Any], label: Floats) -> Fraction:
    """The least signed score of some points, exactly."""
    y, bias = [Fraction(value) for value in result.coef], Fraction(result.bias)
    scores = (
        (sum(map(Fraction.__mul__, map(Fraction, row), y)) + bias) * int(sign) for row, sign in zip(X, label, strict=True)
    )
    return min(scores)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_easy_data_takes_two_reads_and_no_pass(dtype: Any, intercept: bool) -> None:
    X, label = apart(1, dtype, shift=0.1 * intercept)
    result = dfeas.solve(X, label, intercept=intercept)
    assert (result.verdict, result.proof, result.stopped, result.passes) == ("feasible", "rigorous", "verdict", 0)
    more = 2 * default_block_rows(M, X.itemsize, N) / N
    assert result.reads == pytest.approx(2 + more)
    near = np.argsort(np.abs(X.astype(np.float64) @ result.coef + result.bias))[:20]
    assert least_score(result, X[near].astype(np.float64), label[near]) > 0
    assert 0 < result.margin_lower <= result.margin_upper


def test_the_bracket_has_the_widest_margin() -> None:
    X, label = apart(2, np.float64)
    quick = dfeas.solve(X, label, intercept=False)
    widest = dfeas.solve(X, label, intercept=False, margin_tolerance=0.001)
    assert quick.passes == 0 < widest.passes
    assert quick.margin_lower <= widest.margin_upper
    assert widest.margin_lower <= quick.margin_upper


@pytest.mark.parametrize("seed", range(8))
def test_no_margin_is_above_that_of_many_equal_points(seed: int) -> None:
    random = np.random.default_rng(seed)
    m, n = int(random.integers(1, 5)), 400_000
    some = np.eye(m)[0] * 3 + random.standard_normal((3, m)) * 10.0 ** random.integers(-4, 0)
    X = some[random.integers(0, 3, n)].astype(random.choice(["f2", "f4", "f8"]))
    quick, plain = (dfeas.solve(X, "all-positive", intercept=False, method=each) for each in ("auto", "working-set-plain"))
    assert quick.passes == 0
    assert quick.margin_lower <= plain.margin_upper
    assert plain.margin_lower <= quick.margin_upper


def test_few_points_have_one_separator_as_an_array_sparse_and_in_files(tmp_path: Path) -> None:
    X, label = apart(11)
    X, label = X[:5000], label[:5000]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", label)
    array, sparse = (dfeas.solve(points, label) for points in (X, scipy.sparse.csr_array(X)))
    files = dfeas.solve(str(tmp_path / "X.npy"), str(tmp_path / "y.npy"))
    assert array.separator.tobytes() == files.separator.tobytes()
    assert sparse.margin_lower == pytest.approx(array.margin_lower, rel=1e-6)


def test_it_is_of_the_same_data_as_any_other_run(tmp_path: Path) -> None:
    X, label = apart(3)
    quick = dfeas.solve(X, label, out=tmp_path / "run")
    assert quick.passes == 0
    assert quick.fingerprint == dfeas.solve(X, label, method="perceptron").fingerprint
    assert quick.sides == dfeas.solve(X, label, method="perceptron").sides
    assert dfeas.verify_run(tmp_path / "run", X, label).verdict == "feasible"


def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    X, label = apart(4, np.float64)
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("DFEAS_THREADS", threads)
        result = dfeas.solve(X, label)
        found.append((result.passes, result.separator.tobytes(), result.margin_lower, result.margin_upper))
    assert found[0] == found[1]
    assert found[0][0] == 0


def half_space(seed: int, dtype: Any = np.float32, shift: float = 0.0, n: int = N) -> tuple[NDArray[Any], Floats]:
    return apart(seed, dtype, gap=0.0, shift=shift, n=n)


def verdict(result: Any) -> tuple[str, str]:
    return result.verdict, result.proof


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_half_space_takes_three_reads_and_no_pass(dtype: Any, intercept: bool, tmp_path: Path) -> None:
    X, label = half_space(5, dtype, 0.1 * intercept)
    result = dfeas.solve(X, label, intercept=intercept, out=tmp_path / "run")
    assert (*verdict(result), result.stopped, result.passes) == ("feasible", "rigorous", "verdict", 0)
    assert result.reads == pytest.approx(3 + 2 * default_block_rows(M, X.itemsize, N) / N)
    near = np.argsort(np.abs(X.astype(np.float64) @ result.coef + result.bias))[:20]
    assert least_score(result, X[near].astype(np.float64), label[near]) > 0
    assert dfeas.verify_run(tmp_path / "run", X, label).verdict == "feasible"


def test_the_bracket_of_a_half_space_has_the_widest_margin() -> None:
    X, label = half_space(2)
    quick = dfeas.solve(X, label, intercept=False)
    widest = dfeas.solve(X, label, intercept=False, margin_tolerance=0.01)
    assert quick.passes == 0 < widest.passes
    assert quick.margin_lower <= widest.margin_upper
    assert widest.margin_lower <= quick.margin_upper


def flip(X: NDArray[Any], label: Floats, kind: str) -> Floats:
    """Labels of which some are wrong."""
    random, score, wrong = np.random.default_rng(1), np.abs(X @ (label @ X)), label.copy()
    order = np.argsort(score)
    rows = {
        "one far": order[-1:],
        "one near": order[N // 2 : N // 2 + 1],
        "a few near": order[: N // 20 : N // 200],
        "a tenth": random.permutation(N)[: N // 10],
        "half": random.permutation(N)[: N // 2],
    }[kind]
    wrong[rows] *= -1
    return wrong


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["one far", "one near", "a few near", "a tenth", "half"])
def test_wrong_labels_are_in_a_conflict_without_a_pass(kind: str, intercept: bool, tmp_path: Path) -> None:
    X, label = half_space(5)
    label = flip(X, label, kind)
    result = dfeas.solve(X, label, intercept=intercept, out=tmp_path / "run")
    assert (*verdict(result), result.passes) == ("infeasible", "exact", 0)
    assert len(result.conflicts) <= M + 1 + intercept
    assert result.margin_lower <= result.conflicts[0]["score"] < 0 >= result.margin_upper
    assert dfeas.verify_run(tmp_path / "run", X, label).verdict == "infeasible"
    points = [each["point"] for each in result.conflicts]
    assert dfeas.solve(X[points], label[points], intercept=intercept, method="working-set-plain").verdict == "infeasible"
    assert dfeas.solve(X, label, intercept=intercept, method="working-set-plain").verdict == "infeasible"


def test_the_wrong_label_far_from_the_hyperplane_is_named_first() -> None:
    X, label = half_space(6)
    wrong = flip(X, label, "one far")
    first, *others = dfeas.solve(X, wrong, intercept=False).conflicts
    assert first["point"] == int(np.flatnonzero(wrong != label)[0])
    assert first["score"] < 0 < min(each["score"] for each in others)


def test_a_run_with_little_memory_takes_passes() -> None:
    X, label = half_space(7, n=2 * N)
    for labels in (label, flip(X, label, "one far")):
        roomy, small = (dfeas.solve(X, labels, intercept=False, memory=memory) for memory in ("1GB", "21MB"))
        assert roomy.passes == 0 < small.passes
        assert verdict(roomy) == verdict(small)


def depend(X: NDArray[Any], kind: str) -> NDArray[Any]:
    """Points of which the sum of all has many on its wrong side."""
    if kind == "alike":
        return np.asarray(X + 2 * X[:, :1])
    return np.asarray(X * np.logspace(0, 6, M) if kind == "sizes" else X + 5.0)


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["sizes", "alike", "far from the origin"])
def test_features_that_depend_on_each_other_begin_with_a_separator_of_a_sample(kind: str, dtype: Any, wrong: bool) -> None:
    X, label = half_space(8, np.float64)
    label = flip(X, label, "a tenth") if wrong else label
    X = depend(X, kind).astype(dtype)
    result = dfeas.solve(X, label, intercept=True)
    assert (*verdict(result), result.passes) == (*(("infeasible", "exact") if wrong else ("feasible", "rigorous")), 0)
    if wrong:
        points = [each["point"] for each in result.conflicts]
        assert dfeas.solve(X[points], label[points], intercept=True, method="working-set-plain").verdict == "infeasible"
    else:
        near = np.argsort(np.abs(X.astype(np.float64) @ result.coef + result.bias))[:20]
        assert least_score(result, X[near].astype(np.float64), label[near]) > 0


def test_columns_in_memory_end_where_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dfeas.run.solver_thread.LOOK_SECONDS", 0.0)
    X, label = half_space(9)
    result = dfeas.solve(X, label, intercept=False, time_limit=1e-3)
    assert (result.verdict, result.stopped) == ("undecided", "time_limit")


@pytest.mark.parametrize("kind", ["none", "one far", "one near"])
def test_threads_do_not_change_a_bit_of_what_columns_show(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, label = half_space(10)
    label = label if kind == "none" else flip(X, label, kind)
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("DFEAS_THREADS", threads)
        result = dfeas.solve(X, label)
        found.append((result.passes, result.evidence.y.tobytes(), result.margin_lower, result.margin_upper, result.conflicts))
    assert found[0] == found[1]
    assert found[0][0] == 0


def middle(X: NDArray[Any]) -> int:
    """A point that is neither in the first nor in the last block, which are looked at before all are summed."""
    rows = default_block_rows(M, X.itemsize, len(X))
    assert rows < len(X) - rows
    return rows


@pytest.mark.parametrize("choose", [np.argmin, np.argmax])
def test_a_wrong_label_is_found_near_the_hyperplane_and_far_from_it(choose: Any) -> None:
    X, label = apart(6)
    place = int(choose(np.abs(X @ (label @ X)) / np.linalg.norm(X, axis=1)))
    X[middle(X)], label[middle(X)] = 64 * X[place], -label[place]
    result = dfeas.solve(X, label, intercept=False)
    assert (result.verdict, result.proof) == ("infeasible", "exact")
    assert middle(X) in {each["point"] for each in result.conflicts}


def test_a_zero_point_is_a_conflict() -> None:
    X, label = apart(7)
    X[middle(X)] = 0
    result = dfeas.solve(X, label, intercept=False)
    assert (result.verdict, [each["point"] for each in result.conflicts]) == ("infeasible", [middle(X)])
    assert dfeas.solve(X, label).verdict == "feasible"


@pytest.mark.parametrize("entry", [np.nan, np.inf, 1e200])
def test_points_that_cannot_be_used_are_refused(entry: float) -> None:
    X, label = apart(8, np.float64)
    X[middle(X), 3] = entry
    with pytest.raises(dfeas.BadInputError, match=r"not finite|norms outside"):
        dfeas.solve(X, label)


@pytest.mark.parametrize("power", [-60, 60])
def test_lengths_that_float32_does_not_measure_are_left_to_a_method(power: int) -> None:
    X, label = apart(9, np.float64)
    plain, scaled = dfeas.solve(X, label, intercept=False), dfeas.solve(X * 2.0**power, label, intercept=False)
    assert plain.passes == 0 < scaled.passes
    assert plain.verdict == scaled.verdict == "feasible"


def test_lengths_from_one_end_of_float32_to_the_other_warn_of_nothing() -> None:
    random, ends = np.random.default_rng(2), np.log([float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max) / 10])
    X = (random.standard_normal((5865, 255)) * np.exp(random.uniform(*ends, (5865, 1)))).astype(np.float32)
    label = np.where(X.astype(np.float64) @ random.standard_normal(255) > 0, 1, -1)
    assert dfeas.solve(X, label, time_limit=1).verdict in ("feasible", "undecided")


def test_who_asks_for_more_than_a_separator_gets_passes() -> None:
    X, label = apart(10)
    assert dfeas.solve(X, label).passes == 0
    asked: list[dict[str, Any]] = [{"method": "perceptron"}, {"margin_tolerance": 0.1}, {"start": dfeas.solve(X, label)}]
    assert all(dfeas.solve(X, label, **more).passes > 0 for more in asked)
