"""Signs of scores are those of rational arithmetic, however small the scores are."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dfeas
from dfeas.answers.prediction.signs import plane_of
from dfeas.estimators import Separator


def near_a_line(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Multiples of one point but for some ulps, and labels of both classes."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 8)), int(rng.integers(1, 5))
    X = rng.standard_normal(m) * rng.uniform(0.5, 3, (n, 1))
    return X + rng.integers(-2, 3, (n, m)) * np.spacing(X), np.where(np.arange(n) % 2, 1, -1)[rng.permutation(n)]


@given(
    seed=st.integers(0, 2**32),
    intercept=st.booleans(),
    seen=st.sampled_from([{}, {"transform": "std"}, {"transform": "center"}]),
)
@settings(max_examples=25, deadline=None)
def test_a_proved_separator_predicts_the_labels_of_its_own_points(seed: int, intercept: bool, seen: dict[str, object]) -> None:
    X, labels = near_a_line(seed)
    result = dfeas.solve(X, labels, intercept=intercept, **seen)
    assume(result.verdict == "feasible")
    assert result.predict(X).tolist() == labels.tolist()
    whole = plane_of(result.evidence, X.shape[1])
    exact = [sum(Fraction(a) * int(b) for a, b in zip([*row, 1.0], whole, strict=True)) for row in X.tolist()]
    assert [1 if score > 0 else -1 for score in exact] == labels.tolist()
    if not seen:
        model = Separator(fit_intercept=intercept).fit(X, labels)
        assert not model.separable_ or model.predict(X).tolist() == labels.tolist()


def test_nobody_is_accused_of_points_that_integers_separate() -> None:
    """Two points of the plane that are no multiples of each other are separated by some hyperplane through the origin."""
    rng, kinds = np.random.default_rng(3), set()
    for _ in range(40):
        first = rng.normal(size=2)
        X = np.array([first, first * rng.uniform(0.5, 3)])
        dependent = Fraction(X[0, 0]) * Fraction(X[1, 1]) == Fraction(X[0, 1]) * Fraction(X[1, 0])
        result = dfeas.solve(X, [1, 0], intercept=False)
        assert result.verdict == ("infeasible" if dependent else "feasible")
        assert bool(result.conflicts) == dependent
        kinds.add(result.proof.value)
    assert "exact" in kinds


def test_of_several_classes_each_point_gets_its_own() -> None:
    """Points of two classes an ulp apart, and a third class elsewhere."""
    first = np.array([0.1, 0.7])
    X = np.array([first, first * 3, [-1.0, -5.0], [-1.0, -5.5]])
    found = dfeas.one_vs_rest(X, ["a", "b", "c", "c"], intercept=False)
    assert found.results["c"].verdict == "feasible"
    if all(result.verdict == "feasible" for result in found.results.values()):
        assert found.predict(X).tolist() == ["a", "b", "c", "c"]


@pytest.mark.parametrize("factor", [1, 2**200])
def test_a_certificate_in_integers_is_what_its_file_says(tmp_path: Path, factor: int) -> None:
    X = np.array([[0.1, 0.7], [0.1 * 3, 0.7 * 3]])
    dfeas.ingest(X, tmp_path / "data", y=[1, 0])
    assert dfeas.solve(tmp_path / "data", intercept=False, out=tmp_path / "run").proof == "exact"
    made = dfeas.load(tmp_path / "run").evidence
    assert dfeas.verify_run(tmp_path / "run").proof == "exact"
    changed = tmp_path / "changed.npz"
    for integers in ((-made.integers[0], *made.integers[1:]), (made.integers[0] + 10**9, made.integers[1])):
        type(made)(made.kind, made.fingerprint, made.y, integers=integers).save(changed)
        with pytest.raises(dfeas.CheckFailedError):
            dfeas.verify_certificate(tmp_path / "data", changed, intercept=False)
    type(made)(made.kind, made.fingerprint, made.y, integers=tuple(factor * v for v in made.integers)).save(changed)
    assert dfeas.verify_certificate(tmp_path / "data", changed, intercept=False).verdict == "feasible"
