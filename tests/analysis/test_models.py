"""check_separation of formulas and of models of statsmodels, beside what statsmodels' own fits do on real data."""

from __future__ import annotations

import builtins
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest

import dfeas

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import formulaic
    import patsy
    import statsmodels.api as sm
    import statsmodels.formula
    import statsmodels.formula.api as smf
    from statsmodels.base._penalized import PenalizedMixin
    from statsmodels.gam.api import BSplines, GLMGam
    from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM, PoissonBayesMixedGLM
    from statsmodels.genmod.qif import QIF


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


CODE = {
    "braces": "died ~ {age * ran()}",
    "a method": 'died ~ I(age.to_csv("f"))',
    "a module within": 'died ~ I(age * np.f2py.os.system("true"))',
    "an attribute of a name": "died ~ log(age.values)",
    "an unknown function": "died ~ I(ran())",
    "a builtin": 'died ~ I(eval("ran()"))',
    "an argument": "died ~ C(ward, ran())",
    "an argument of Q": "died ~ Q(ran())",
    "a keyword": "died ~ poly(age, degree=ran())",
    "a call of a call": "died ~ I(C(ward)())",
    "on the left": "I(ran()) ~ age",
    "as a fixed effect": "died ~ age | I(ran())",
    "a subscript": "died ~ age[0]",
    "a lambda": "died ~ I((lambda: age)())",
    "a comprehension": "died ~ I([each for each in age])",
    "an assignment": "died ~ I((x := age))",
    "text with code": 'died ~ I(f"{ran()}")',
    "a dunder": "died ~ I(age + __builtins__)",
    "a choice": "died ~ I(age if ran() else age)",
    "stars": "died ~ poly(*[age])",
    "names in a module": "died ~ np.load(ward)",
    "text that ends a key": """died ~ Q('ward"] if ran() else [1]#')""",
    "text that ends text": """died ~ poly(age, '"] or ran()#')""",
    "names in names": "died ~ I(`age _formulaic_x__y` + `x _y` + `age` + ran())",
    "names in text": """died ~ I(C(ward, '_formulaic_age_____ran_______age') + `age ' + ran() + ' age`)""",
}
"""Formulas that are code."""


@pytest.mark.parametrize("case", CODE)
def test_a_formula_that_is_code_is_refused_before_it_runs(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    began = list[int]()
    monkeypatch.setattr(builtins, "ran", lambda: began.append(1) or 1, raising=False)
    with pytest.raises(dfeas.UsageError, match=r"^formula ") as refused:
        dfeas.check_separation(CODE[case], patients())
    assert str(refused.value).isprintable()
    assert not began


@pytest.mark.parametrize(
    ("right", "piece"),
    [
        *(("I(9**9**9)", "9 ** 9 ** 9"), ("{age * 2 << 9**9}", "age * 2 << 9 ** 9"), ("I((1, 2) * 9**8)", "(1, 2) * 9 ** 8")),
        *(("I(-(9**9) ** abs(9**9))", "(9 ** 9) ** abs(9 ** 9)"), ('I("%9999999d" % 5)', "'%9999999d' % 5")),
        *(("(age + ward) ** 40", "40"), ("(age + ward)^99", "99"), ("poly(age, 9**7)", "poly(age, 9 ** 7)")),
        ("bs(age, df=99999)", "bs(age, df=99999)"),
    ],
)
def test_a_formula_of_numbers_without_end_is_refused(right: str, piece: str) -> None:
    with pytest.raises(dfeas.UsageError, match=f": {re.escape(piece)} may take more time and memory than there is; "):
        dfeas.check_separation(f"died ~ {right}", patients())


def test_a_refused_formula_names_the_piece_and_runs_for_who_trusts_it(tmp_path: Path) -> None:
    frame = patients()
    for formula, piece in (
        ("died ~ age + np.clip(age, 30, 60)", "np.clip"),
        ("died ~ I(age.clip(30))", "age.clip"),
        ("died ~ {np.where(age > 30, 1, 0) + 1}", "np.where"),
    ):
        with pytest.raises(dfeas.UsageError) as refused:
            dfeas.check_separation(formula, frame)
        assert f": {piece} would run as code; " in str(refused.value)
        assert "trust_formula=True" in str(refused.value)
        assert "--formula-code" in refused.value.as_typed
        assert dfeas.check_separation(formula, frame, trust_formula=True).finite
        frame.drop(columns="born").to_csv(tmp_path / "t.csv", index=False)
        with pytest.raises(dfeas.UsageError, match="would run as code"):
            dfeas.check_separation(formula, tmp_path / "t.csv")
        assert dfeas.check_separation(formula, tmp_path / "t.csv", trust_formula=True).finite


@pytest.mark.parametrize(
    "right",
    [
        *(
            "`my age` + ward",
            'Q("my age")',
            "log(`my age`) * ward",
            "age:ward - 1",
        ),
        *("I(age ** 2 / 3 - 1e-3)", "I((age > 30) & ~(age == 50))", "poly(age, degree=2)", "bs(age, df=4)", "C(ward, Sum)"),
        *(
            'C(ward, Treatment(reference="b"))',
            'C(ward, levels=["c", "b", "a"])',
            "{age + 1}",
            "exp(-age)",
        ),
        *("center(age) + offset(log(age))", "cr(age, df=3)", "1 | ward", "age + I(age in (1, 2) or True)"),
        *("(age + ward) ** 3 + I(age * 10**300)", "I(5000 * age) + poly(age * 5000, degree=2)", 'I(Q("age") ** 2 + 2**age)'),
    ],
)
def test_formulas_of_functions_that_are_known_are_those_of_who_trusts_them(right: str) -> None:
    frame = patients().assign(**{"my age": lambda table: table["age"]})
    ways = []
    for trusted in (False, True):
        try:
            said = str(dfeas.check_separation(f"died ~ {right}", frame, trust_formula=trusted))
            ways.append(said.replace(", trust_formula=True", ""))  # the line that fits needs it, too
        except dfeas.BadInputError as error:
            ways.append(str(error))
    assert ways[0] == ways[1]


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


class PenalizedPoisson(PenalizedMixin, sm.Poisson):
    """As statsmodels' own tests make them."""


class Ridge(sm.Logit):
    """A likelihood of its own."""

    def loglike(self, params: Any) -> Any:
        return super().loglike(params) - params @ params


class Cauchit(sm.Logit):
    def cdf(self, X: Any) -> Any:
        return 0.5 + np.arctan(X) / np.pi


class GEE(sm.Logit):
    """Has the likelihood of a Logit, whatever it is called."""

    def fit(self, *words: Any, **more: Any) -> Any:
        return super().fit(*words, disp=0, **more)


def others() -> Iterator[tuple[str, Any, str]]:
    """Models that ask something else, their classes, and why."""
    x, y = np.arange(1.0, 13), np.repeat([0.0, 1], 6)
    X, pairs = sm.add_constant(x), np.repeat(np.arange(6), 2)
    binomial, effects, ident = sm.families.Binomial(), np.eye(6)[pairs], np.zeros(6, int)
    structures = sm.cov_struct.Independence(), sm.cov_struct.Exchangeable(), sm.cov_struct.Autoregressive()
    for structure in structures:
        yield "GEE", sm.GEE(y, X, pairs, family=binomial, cov_struct=structure), "has no likelihood"
    yield "GEE", sm.GEE(y, X, pairs, family=sm.families.Poisson()), "has no likelihood"
    yield "OrdinalGEE", sm.OrdinalGEE(y, x[:, None], pairs), "has no likelihood"
    yield "NominalGEE", sm.NominalGEE(y, X, pairs), "has no likelihood"
    yield "QIF", QIF(y, X, pairs, family=binomial), "has no likelihood"
    yield "BinomialBayesMixedGLM", BinomialBayesMixedGLM(y, X, effects, ident), "has priors"
    yield "PoissonBayesMixedGLM", PoissonBayesMixedGLM(y, X, effects, ident), "has priors"
    spline = BSplines(x[:, None], df=[5], degree=[3])
    yield "GLMGam", GLMGam(y, X, smoother=spline, alpha=0.1, family=binomial), "has a penalty"
    yield "PenalizedPoisson", PenalizedPoisson(y, X), "has a penalty"
    marked = GEE(y, X)
    marked.penal = object()
    yield "GEE", marked, "has a penalty"
    yield "Ridge", Ridge(y, X), "expected Logit, Probit"
    yield "Cauchit", Cauchit(y, X), "expected Logit, Probit"


@pytest.mark.filterwarnings("ignore")
def test_models_without_a_likelihood_alone_are_refused_by_their_class() -> None:
    for name, model, why in others():
        with pytest.raises(dfeas.UsageError, match=rf"^a model of class {name}\b.*{why}") as refused:
            dfeas.check_separation(model)
        assert "\n" not in str(refused.value)
        assert why.startswith("expected") or "check_separation(X, y)" in str(refused.value)


def test_a_class_of_a_users_own_is_the_one_whose_likelihood_it_has() -> None:
    x, y = np.arange(1.0, 7), np.array([0.0, 0, 0, 1, 1, 1])
    assert dfeas.check_separation(GEE(y, sm.add_constant(x))).kind == "complete"
    glm = type("Logit", (sm.GLM,), {})  # a GLM, by another name
    poisson = glm(np.array([0.0, 0, 0, 2, 1, 3]), sm.add_constant((x > 3).astype(float)), family=sm.families.Poisson())
    assert dfeas.check_separation(poisson).outcome == "poisson"


def items() -> pd.DataFrame:
    """Answers to two questions, both of which may be yes; who says yes to the first is ill."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=60)
    ill = (z + rng.normal(size=60) > 0).astype(float)
    first, second = ((ill == 1) & (rng.random(60) < 0.4)).astype(float), rng.integers(0, 2, 60).astype(float)
    return pd.DataFrame({"const": 1.0, "q[1]": first, "q[2]": second, "q[T.3]": 1 - second, "z": z, "ill": ill})


@pytest.mark.parametrize("names", [["q[1]", "q[2]"], ["q[1]", "q[T.3]"]])
def test_names_with_brackets_are_no_levels(names: list[str]) -> None:
    frame = items()
    X = frame[["const", *names, "z"]]
    for found in (
        dfeas.check_separation(sm.Logit(frame.ill, X)),
        dfeas.check_separation(frame[[*names, "z"]], frame.ill, intercept=True),
        dfeas.check_separation("ill ~ `q[1]` + `q[2]` + z", frame),
    ):
        assert (found.kind, found.columns, found.levels) == ("quasi-complete", ["q[1]"], {})
        assert found.advice[0].text == "leave out column q[1]"


def test_a_column_that_is_called_like_a_level_is_told_apart_from_it() -> None:
    rng = np.random.default_rng(2)
    q, x = rng.choice(list("abc"), 200), rng.integers(0, 2, 200)
    y = ((q == "b") | (x == 1) | (rng.random(200) < 0.5)).astype(int)
    found = dfeas.check_separation(pd.DataFrame({"q": q, "q[x]": x, "z": rng.normal(size=200)}), y, intercept=True)
    assert (found.columns, found.levels) == (["q[b]", "q[x]"], {"q": ["b"]})
    assert "level b of q and column q[x] separate " in str(found)
    with pytest.raises(dfeas.BadInputError, match=r"column q\[c\] has the name of a level of a factor; rename"):
        dfeas.check_separation(pd.DataFrame({"q": q, "q[c]": x}), y, intercept=True)


@pytest.mark.parametrize("engine", ["patsy", "formulaic"])
def test_the_formula_of_a_model_knows_its_factors(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Treatment by any reference, all levels without an intercept, levels of any name; no sums, no interactions."""
    monkeypatch.setattr(statsmodels.formula.options, "formula_engine", engine)
    treatment, total = ("Treatment", "Sum") if engine == "patsy" else ("contr.treatment", "contr.sum")
    frame = patients()
    frame["odd"] = frame.ward.map({"a": "T.b", "b": "x:y[1]", "c": "b"})
    for formula, level in (
        ("died ~ C(ward) + age", "b"),
        (f'died ~ C(ward, {treatment}("c")) + age', "b"),
        (f'died ~ C(ward, {treatment}("b")) + age', "b"),
        ("died ~ 0 + ward + age", "b"),
        ("died ~ odd + age", "x:y[1]"),
        ("died ~ 0 + odd + age", "x:y[1]"),
    ):
        found = dfeas.check_separation(smf.logit(formula, frame))
        assert list(found.levels.values()) == [[level]], formula
        assert found.points == list(np.flatnonzero(frame.ward == "b")), formula
    for formula in (f"died ~ C(ward, {total}) + age", "died ~ age + ward:age"):
        found = dfeas.check_separation(smf.logit(formula, frame))
        assert found.levels == {}, formula


def test_a_design_that_was_made_of_a_formula_knows_its_factors() -> None:
    frame = patients()
    for X in (patsy.dmatrix("ward + age", frame, return_type="dataframe"), formulaic.model_matrix("ward + age", frame)):
        assert dfeas.check_separation(sm.Logit(frame.died, X)).levels == {"ward": ["b"]}
    bare = pd.DataFrame(np.asarray(X), columns=list(X.columns))
    found = dfeas.check_separation(sm.Logit(frame.died, bare))
    assert (found.levels, found.columns) == ({}, ["ward[T.b]"])


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


HABITS = pd.DataFrame({"age": [31.0, 44, 52, 38, 61, 47], "dose": [0, 1, 2, 0, 1, 2], "died": [0, 1, 0, 1, 1, 0]})


def test_formulas_as_r_and_patsy_have_them_are_read_alike() -> None:
    for written, meant in (("died ~ age + factor(dose)", "died ~ age + C(dose)"), ("died ~ as.factor(dose)", "died ~ C(dose)"),
                           ("Q('died') ~ Q('age')", "died ~ age")):  # fmt: skip
        found, same = (dfeas.check_separation(text, HABITS) for text in (written, meant))
        assert (found.kind, found.points) == (same.kind, same.points)
        assert [each.estimate for each in found.estimates] == [each.estimate for each in same.estimates]


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("died ~ age + born", "column born holds dates or times; make a number of it"),
        ("died ~ .", "column born holds dates or times; make a number of it"),
        ("died ~ age + strata(dose)", r"no function strata \(name its column by strata='NAME'\)"),
    ],
)
def test_what_a_formula_cannot_code_is_said(formula: str, message: str) -> None:
    frame = HABITS.assign(born=pd.date_range("1990-01-01", periods=6))
    with pytest.raises(dfeas.BadInputError, match=message):
        dfeas.check_separation(formula, frame)
