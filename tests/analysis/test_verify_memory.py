"""Verification of data in memory: by a result, by its folder, and by a certificate alone; other data is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import dfeas
from dfeas.errors import BadInputError, CheckFailedError, CorruptDataError, DfeasError, UndecidedError

X = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0], [-2.0, -0.5]])
NAMES = np.array(["ham", "ham", "spam", "spam"])
WAYS: dict[str, Callable[[], tuple[Any, Any, dict[str, Any]]]] = {
    "text": lambda: (X, NAMES, {}),
    "a class": lambda: (X, NAMES, {"positive": "ham"}),
    "truth": lambda: (X, NAMES == "ham", {}),
    "numbers": lambda: (X, [0.5, 0.5, -1.0, -1.0], {"positive": "-1"}),
    "origin": lambda: (X, [1, 1, -1, -1], {"intercept": False}),
    "conflict": lambda: (np.vstack([X, X[:1]]), [1, 1, -1, -1, -1], {}),
    "sparse": lambda: (scipy.sparse.csr_array(X), NAMES, {}),
    "frame": lambda: (pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": NAMES}), "kind", {}),
    "scaled": lambda: (X, NAMES, {"transform": ("std", "center"), "positive": "spam"}),
    "kernel": lambda: (X, NAMES, {"kernel": "rbf"}),
    "no labels": lambda: (np.abs(X), "all-positive", {}),
    "cones": lambda: (dfeas.from_cone_rows(np.abs(X), {"q": [2, 2]}), None, {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_was_in_memory_is_given_again(way: str, tmp_path: Path) -> None:
    data, y, options = WAYS[way]()
    result = dfeas.solve(data, y, out=tmp_path / "run", **options)
    assert result.is_decided
    assert result.verify(data, y).verdict == result.verdict
    whole = dfeas.verify_run(tmp_path / "run", data, y)
    assert (whole.verdict, whole.proof) == (result.verdict, result.proof)
    assert result.evidence is not None
    options.pop("kernel", None)
    for certificate in (tmp_path / "run" / "certificate.npz", result.evidence):
        assert dfeas.verify_certificate(data, certificate, y=y, **options).verdict == result.verdict
    for check in (result.verify, lambda: dfeas.verify_run(tmp_path / "run")):
        with pytest.raises(BadInputError, match="the data was in memory; give it again, X and y"):
            check()


def test_other_data_is_refused(tmp_path: Path) -> None:
    result = dfeas.solve(X, NAMES, out=tmp_path / "run")
    for other, y in ((X + 1e-9, NAMES), (X[::-1], NAMES), (X, NAMES[::-1]), (X[:3], NAMES[:3]), (X[:, :1], NAMES)):
        for check in (result.verify, lambda *data: dfeas.verify_run(tmp_path / "run", *data)):
            with pytest.raises(DfeasError) as caught:
                check(other, y)
            assert isinstance(caught.value, BadInputError | CorruptDataError | CheckFailedError)


def test_a_result_knows_its_data_by_path_and_finds_it_where_it_was_moved(tmp_path: Path) -> None:
    dfeas.ingest(X, tmp_path / "data", y=NAMES)
    result = dfeas.solve(tmp_path / "data", positive="ham", out=tmp_path / "run")
    assert result.verify() == dfeas.load(tmp_path / "run").verify()
    (tmp_path / "data").rename(tmp_path / "moved")
    with pytest.raises(BadInputError, match="no such file"):
        result.verify()
    assert result.verify(tmp_path / "moved").verdict == "feasible"
    assert dfeas.verify_run(tmp_path / "run", tmp_path / "moved").verdict == "feasible"


def test_classes_in_memory_are_checked_together_and_alone(tmp_path: Path) -> None:
    y = np.array(["a", "b", "c", "c"])
    every = dfeas.one_vs_rest(X, y, out=tmp_path / "run")
    checks = dfeas.verify_run(tmp_path / "run", X, y)
    assert {name: each.verdict for name, each in checks.classes.items() if each} == {
        name: result.verify(X, y).verdict for name, result in every.results.items()
    }
    assert (checks.verdict, checks.points) == ("3 of 3 classes decided", 4)


@pytest.mark.parametrize("verb", [dfeas.hard_margin, dfeas.separation])
def test_what_a_solve_goes_on_to_is_checked_too(verb: Callable[..., Any], tmp_path: Path) -> None:
    verb(X, NAMES, out=tmp_path / "run")
    checked = dfeas.verify_run(tmp_path / "run", X, NAMES)
    assert checked.verdict == "feasible"
    assert "it is the widest" in checked.message if verb is dfeas.hard_margin else checked.separation is not None


def test_what_is_undecided_claims_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    points = rng.standard_normal((400, 8))
    early = dfeas.solve(points, rng.choice([-1, 1], 400), method="perceptron", max_passes=1)
    with pytest.raises(UndecidedError, match="pass_limit"):
        early.verify(points, np.ones(400))


def test_the_conflict_of_a_mask_is_that_of_its_points() -> None:
    data, y = np.vstack([X, X[:1]]), [1, 1, -1, -1, -1]
    mask = np.array([True, False, True, False, True])
    result = dfeas.solve(data, y, mask=mask)
    assert result.verify(data, y, mask=mask).verdict == "infeasible"
    with pytest.raises(CorruptDataError):
        result.verify(data, y)
