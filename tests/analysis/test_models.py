"""check_separation of formulas and of models of statsmodels, beside what statsmodels' own fits do on real data."""

from __future__ import annotations

import builtins
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest

import dfeas

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import statsmodels.api as sm
    import statsmodels.formula.api as smf


def patients(n: int = 300) -> pd.DataFrame:
    """Of ward b nobody died, none fell."""
    rng = np.random.default_rng(0)
    ward, age = rng.choice(list("abc"), n), rng.integers(20, 90, n)
    died, falls = (rng.random(n) < age / 120) & (ward != "b"), np.where(ward == "b", 0, rng.poisson(1, n))
    frame = pd.DataFrame({"ward": ward, "age": age, "died": died.astype(int), "falls": falls})
    return frame.assign(grade=np.where(died, "worse", rng.choice(["mild", "severe"], n)), born=pd.Timestamp("1950-01-01"))


def largest(fit: Any) -> float:
    """Of the estimates, whatever their names."""
    return float(np.abs(np.asarray(fit.params)).max())


@pytest.mark.parametrize("frame", [patients(), polars.from_pandas(patients())], ids=["pandas", "polars"])
def test_a_formula_asks_about_its_columns_only(frame: Any) -> None:
    found = dfeas.check_separation("died ~ age + C(ward)", frame)
    assert (found.kind, found.columns, found.levels) == ("quasi-complete", ["C(ward)[T.b]"], {"C(ward)": ["b"]})
    assert "merge level b of C(ward)" in found.advice[0].text
    assert dfeas.check_separation("died ~ age", frame).finite
    assert dfeas.check_separation("falls ~ age + ward", frame, outcome="poisson").levels == {"ward": ["b"]}
    assert dfeas.check_separation("grade ~ age + ward", frame).outcome == "multinomial"


def test_the_reference_of_a_formula_is_named_too() -> None:
    frame = patients()
    for text in ('died ~ age + C(ward, contr.treatment("b"))', 'died ~ C(ward, contr.treatment("b"))'):
        found = dfeas.check_separation(text, frame)
        assert list(found.levels.values()) == [["b"]]
        assert len(found.columns) == 2


def test_a_formula_without_an_intercept_and_with_an_interaction() -> None:
    frame = patients()
    found = dfeas.check_separation("died ~ 0 + ward", frame)
    assert (found.columns, found.intercept) == (["ward[b]"], 0.0)
    crossed = dfeas.check_separation("died ~ ward * age", frame)
    assert set(crossed.columns) <= {"ward[T.b]", "ward[T.b]:age"}
    assert crossed.points == list(np.flatnonzero(frame.ward == "b"))


def test_a_formula_that_cannot_be_used_says_why() -> None:
    frame = patients()
    with pytest.raises(dfeas.BadInputError, match="no column agee; the columns are ward"):
        dfeas.check_separation("died ~ agee", frame)
    with pytest.raises(dfeas.BadInputError, match=r"missing values in age \(2, the first in row 3\)"):
        dfeas.check_separation("died ~ age + ward", frame.assign(age=frame.age.where(~frame.index.isin([3, 9]))))
    with pytest.raises(dfeas.UsageError, match="expected one outcome on its left"):
        dfeas.check_separation("~ age", frame)
    with pytest.raises(dfeas.UsageError, match="formula") as wrong:
        dfeas.check_separation("died ~ age +* ward", frame)
    assert str(wrong.value).isascii()
    assert str(wrong.value).isprintable()
    with pytest.raises(dfeas.BadInputError, match="formula 'died ~ born'"):
        dfeas.check_separation("died ~ born", frame.assign(born=pd.Timestamp("2000-01-01")))
    with pytest.raises(dfeas.UsageError, match="write 0"):
        dfeas.check_separation("died ~ age", frame, intercept=False)
    with pytest.raises(dfeas.UsageError, match="expected a data frame beside it, got ndarray"):
        dfeas.check_separation("died ~ age", np.ones((3, 2)))


def test_without_formulaic_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **more: Any) -> Any:
        if name == "formulaic":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(dfeas.UsageError, match=r'formulaic, which is not installed: pip install "formulaic>=1\.1"'):
        dfeas.check_separation("died ~ age", patients())


def test_models_are_taken_as_they_are_fitted_or_not() -> None:
    frame = patients()
    design = sm.add_constant(pd.get_dummies(frame[["age", "ward"]], drop_first=True).astype(float))
    models = {
        "logit": smf.logit("died ~ age + ward", frame),
        "probit": smf.probit("died ~ age + ward", frame),
        "binomial": smf.glm("died ~ age + ward", frame, family=sm.families.Binomial()),
        "cloglog": smf.glm("died ~ age + ward", frame, family=sm.families.Binomial(sm.families.links.CLogLog())),
        "poisson": smf.poisson("falls ~ age + ward", frame),
        "poisson family": smf.glm("falls ~ age + ward", frame, family=sm.families.Poisson()),
        "arrays": sm.Logit(frame.died, design),
        "classes": sm.MNLogit(frame.grade, design),
    }
    kinds = {"poisson": "poisson", "poisson family": "poisson", "classes": "multinomial"}
    for name, model in models.items():
        found = dfeas.check_separation(model)
        assert (found.finite, found.outcome) == (False, kinds.get(name, "binary")), name
        assert found.points == list(np.flatnonzero(frame.ward == "b")), name
        assert found.columns == ["ward_b" if name in ("arrays", "classes") else "ward[T.b]"], name
        if name not in ("arrays", "classes"):
            assert found.levels == {"ward": ["b"]}, name
    fitted = smf.logit("died ~ age", frame).fit(disp=0)
    assert dfeas.check_separation(fitted).finite


def test_rows_that_a_model_dropped_are_not_counted() -> None:
    frame = patients()
    frame.loc[[0, 5], "age"] = np.nan
    found = dfeas.check_separation(smf.logit("died ~ age + ward", frame))
    assert found.points == [row for row in np.flatnonzero(frame.ward == "b") if row not in (0, 5)]


def test_shares_and_pairs_of_counts_are_on_both_sides() -> None:
    """Of a row with successes and failures both count; only one with none of either can be separated."""
    X = np.column_stack([np.ones(4), [0.0, 1.0, 2.0, 3.0]])
    counts = np.array([[0, 5], [0, 4], [3, 2], [6, 0]])
    assert not dfeas.check_separation(sm.GLM(counts, X, family=sm.families.Binomial())).finite
    counts[0] = 1, 4
    assert dfeas.check_separation(sm.GLM(counts, X, family=sm.families.Binomial())).finite


@pytest.mark.filterwarnings("ignore:The Sqrt link")
def test_models_of_other_likelihoods_are_refused() -> None:
    frame = patients()
    for model in (
        smf.ols("died ~ age", frame),
        smf.glm("falls ~ age", frame, family=sm.families.Gaussian()),
        smf.glm("falls ~ age", frame, family=sm.families.Poisson(sm.families.links.Sqrt())),
        smf.negativebinomial("falls ~ age", frame),
    ):
        with pytest.raises(dfeas.UsageError, match=r"a model of (class|family)"):
            dfeas.check_separation(model)
    with pytest.raises(dfeas.UsageError, match="whose outcome is binary"):
        dfeas.check_separation(smf.logit("died ~ age", frame), outcome="poisson")
    with pytest.raises(dfeas.UsageError, match="leave out y"):
        dfeas.check_separation(smf.logit("died ~ age", frame), frame.died)


@pytest.mark.filterwarnings("ignore")
def test_fits_of_statsmodels_run_away_exactly_where_it_is_said() -> None:
    """The likelihood of 30 more Newton steps rises, and estimates grow, where there is no maximum; else they stand still."""
    frame = patients()
    for formula, finite in (("falls ~ age + ward", False), ("falls ~ age", True)):
        model = smf.poisson(formula, frame)
        assert dfeas.check_separation(model).finite is finite
        early, late = (largest(model.fit(method="newton", maxiter=steps, tol=0, disp=0)) for steps in (8, 20))
        assert (late > early + 1) is not finite
    design = sm.add_constant(pd.get_dummies(frame[["age", "ward"]], drop_first=True).astype(float))
    for columns, finite in ((["const", "age", "ward_b", "ward_c"], False), (["const", "age"], True)):
        classes = sm.MNLogit(frame.grade, design[columns])
        assert dfeas.check_separation(classes).finite is finite
        early, late = (largest(classes.fit(method="newton", maxiter=steps, tol=0, disp=0)) for steps in (8, 20))
        assert (late > early + 1) is not finite


@pytest.mark.filterwarnings("ignore")
def test_real_data_of_statsmodels_exist_as_its_fits_converge() -> None:
    spector, anes, doctor = (each.load_pandas() for each in (sm.datasets.spector, sm.datasets.anes96, sm.datasets.randhie))
    models = [
        sm.Logit(spector.endog, sm.add_constant(spector.exog)),
        sm.MNLogit(anes.endog, sm.add_constant(anes.exog[["logpopul", "selfLR", "age", "educ", "income"]])),
        sm.Poisson(doctor.endog[:2000], sm.add_constant(doctor.exog[:2000])),
    ]
    for model in models:
        assert model.fit(disp=0, maxiter=100).converged
        found = dfeas.check_separation(model)
        assert (found.finite, found.depending) == (True, [])
    star = sm.datasets.star98.load_pandas()
    assert dfeas.check_separation(sm.GLM(star.endog, sm.add_constant(star.exog), family=sm.families.Binomial())).finite
    passed = spector.exog.GPA > 3.3
    leak = sm.add_constant(spector.exog.assign(passed=(spector.endog > 0) & passed).astype(float))
    found = dfeas.check_separation(sm.Logit(spector.endog, leak))
    assert (found.columns, found.points) == (["passed"], list(np.flatnonzero(leak.passed)))
