"""What analyses refuse, and the sentence that says why: tables, formulas, outcomes, weights, systems, points."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe
import numpy as np
import pandas as pd
import polars
import pytest
import scipy.sparse

import dfeas
from dfeas.errors import BadInputError, CorruptDataError, DfeasError, UsageError
from dfeas.records import replace
from dfeas.verify.certificate import load
from tests.analysis.test_feasible import LIMITS, frame
from tests.analysis.test_models import patients, sm, smf
from tests.analysis.test_thresholds import OrderedModel, people, stats

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from statsmodels.discrete.conditional_models import ConditionalMNLogit

check = dfeas.check_separation
F, BORN = people(), patients()
P = BORN.drop(columns="born")
Y4, X4 = np.array([0, 1, 0, 1]), np.arange(4.0)[:, None]
AGED = P[["age", "ward"]]
DOSES = pd.DataFrame({"dose": ["5 mg", "7 mg"] * 10, "died": [0, 1, 1, 0] * 5})
MIXED = pd.DataFrame({"age": [1.0, "old", 2.0, 3.0]})
NUMBERED = P.assign(id=np.arange(len(P)).astype(str))
INTEGERS = np.arange(8)[:, None] + 2**60
COUNTS = np.array([0, 2, 1, 0, 3, 1])
LOST = AGED.assign(age=P.age.where(~P.index.isin([3, 9])), died=P.died)

COLUMNS: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({"income": [np.nan, 1.0, np.nan, 2.0]}, r"missing values in income \(2, the first in row 0\)"),
    "missing text": ({"ward": ["a", None, "b", None]}, r"missing values in ward \(2, the first in row 1\)"),
    "infinite": ({"income": [1.0, np.inf, 2.0, 3.0]}, "column income is infinite in row 1"),
    "dates": ({"born": pd.date_range("1990-01-01", periods=4)}, "column born holds dates or times"),
    "mixed": ({"age": [1, "two", 3.0, 4]}, "column age holds float and int and str"),
    "long ids": ({"id": [2**60 + i for i in range(4)]}, "column id: an integer beyond 2"),
    "nothing": ({"ward": ["a"] * 4}, "no column beside the intercept"),
    "periods": ({"month": pd.period_range("2000-01", periods=4, freq="M")}, "column month holds period"),
}
WEIGHTS: dict[str, tuple[Any, str]] = {
    "below 0": ([1, 1, -2, 0], "the weight of row 2 is -2, expected a number >= 0"),
    "missing": ([1, np.nan, 1, 0], "the weight of row 1 is missing"),
    "null": (polars.Series([1, 0, 1, None]), "the weight of row 3 is missing"),
    "masked": (np.ma.masked_array([1, 1, 1, 1], mask=[0, 0, 1, 0]), "a masked array"),
    "infinite": ([np.inf, 1, 1, 1], "the weight of row 0 is inf"),
    "text": (list("1111"), "expected weights that are numbers"),
    "too few": ([1, 1], r"expected one number for each of 4 rows, got shape \(2,\)"),
    "none": ([0, 0, 0, 0], "none of 4 rows has a weight above 0"),
    "one class": ([1, 0, 1, 0], "all rows are 0; two classes are needed"),
    "of others": ("v", "no columns of that name"),
}
BAD: dict[str, tuple[Callable[[], Any], str]] = {
    **{f"{name} column": (lambda each=each: check(pd.DataFrame(each), Y4), said) for name, (each, said) in COLUMNS.items()},
    "two of a name": (lambda: check(pd.DataFrame(np.eye(4)[:, :2], columns=["a", "a"]), Y4), "unique column names"),
    "a row by name": (lambda: check(LOST.set_index("ward", drop=False), "died"), r"age \(2, the first in row 3 \([abc]\)\)"),
    "null": (lambda: check(polars.DataFrame({"age": [1.0, 2.0, None]}), [0, 1, 0]), r"age \(1, the first in row 2\)"),
    "nan": (lambda: check(polars.DataFrame({"age": [1.0, 2.0, float("nan")]}), [0, 1, 0]), r"age \(1, the first in row 2\)"),
    "objects": (lambda: check(MIXED, Y4), "column age holds float and str: make one type of it"),
    "text of numbers": (lambda: check(DOSES, "died"), "text='dose'"),
    "no such text": (lambda: check(DOSES, "died", text=["doses"]), "no column doses"),
    "ids": (lambda: check(NUMBERED, "died"), f"column id has another text in each of {len(P)} rows"),
    "integers": (lambda: check(INTEGERS, [0, 1] * 4), "an integer beyond"),
    "sparse integers": (lambda: check(scipy.sparse.csr_array(INTEGERS), [0, 1] * 4), "an integer beyond"),
    "no column": (lambda: check(AGED, "dead"), "no column dead"),
    "one class": (lambda: check(AGED, ["yes"] * len(P)), "all rows are yes; two classes are needed"),
    "other rows": (lambda: check(AGED, P.died[1:].to_numpy()), f"X has {len(P)} rows, and y {len(P) - 1}"),
    "another order": (lambda: check(AGED, P.died[::-1]), "align|another order"),
    "a frame in another order": (lambda: check(AGED, P[["died"]].iloc[::-1]), "another order"),
    "no outcome of one": (
        lambda: check(AGED, np.r_[np.nan, P.died[1:]]),
        "1 values are missing or infinite, the first in row 0",
    ),
    "none of one": (
        lambda: check(AGED, [None, *P.died[1:].astype(str)]),
        "1 values are missing or infinite, the first in row 0",
    ),
    "dates": (lambda: check(AGED, BORN.born.to_numpy()), "holds datetime64"),
    "a label like it": (lambda: check(AGED, "ward", positive="bb"), "label bb"),
    "large Dask": (lambda: check(dask.dataframe.from_pandas(P, npartitions=2), "died", memory="10kB"), "write it as Parquet"),
    "no term": (lambda: check("died ~ agee", P), "no column agee; the columns are ward"),
    "no value of a term": (lambda: check("died ~ age + ward", LOST), r"missing values in age \(2, the first in row 3\)"),
    "dates of a formula": (lambda: check("died ~ born", BORN), "formula 'died ~ born'"),
    "many classes": (lambda: check(COUNTS[:, None] * 1.0, COUNTS, outcome="binary"), "4 classes"),
    "counts below 0": (lambda: check(COUNTS[:, None] * 1.0, COUNTS - 1, outcome="poisson"), "-1 is below 0"),
    "counts of text": (lambda: check(COUNTS[:, None] * 1.0, COUNTS.astype(str), outcome="poisson"), "it holds text"),
    **{f"weights: {name}": (lambda each=each: check(X4, Y4, weights=each), said) for name, (each, said) in WEIGHTS.items()},
    "a weight of a frame": (
        lambda: check(F.assign(w=-1.0)[["age", "died", "w"]], "died", weights="w"),
        "the frame: column w: the weight of row p0 is -1",
    ),
    "a weight of a model": (
        lambda: check(smf.glm("died ~ age", F, family=sm.families.Binomial(), freq_weights=F.age * 0 - 1)),
        "freq_weights of the model: the weight of row p0 is -1",
    ),
    "a logarithm behind a weight": (
        lambda: check("y ~ np.log(x)", pd.DataFrame({"x": [2, 0, 3, 0], "y": [0, 0, 1, 1], "w": [1, 0, 1, 1]}), weights="w"),
        r"column np\.log\(x\): 1 values are missing or infinite, the first in row 3",
    ),
    "rows for Firth": (lambda: dfeas.firth([[1.0, 2.0], [2.0, 3.0]], [0, 1]), "2 rows do not identify 3 coefficients"),
    "classes of suspects": (lambda: dfeas.suspects(np.eye(3), list("abc")), "3 classes"),
    **{
        f"hull of {point}": (lambda point=point: dfeas.in_hull(point, np.eye(4, 3)), "")
        for point in ([1.0], [np.nan, 0, 0], ["a", 0, 0], "nowhere.npy")
    },
}
MISUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no y": (lambda: check(AGED), "y is missing"),
    "an outcome": (lambda: check(P, "died", outcome="logit"), "expected one of binary, multinomial, poisson"),
    "what is missing": (lambda: check(LOST, "died", missing="omit"), r"missing 'omit'; |missing omit"),
    "counts": (lambda: check(COUNTS[:, None] * 1.0, COUNTS), r"4 different numbers: .*counts \(outcome='poisson'\)"),
    "no left side": (lambda: check("~ age", P), "expected one outcome on its left"),
    "an intercept": (lambda: check("died ~ age", P, intercept=False), "write 0"),
    "no frame": (lambda: check("died ~ age", np.ones((3, 2))), "expected a data frame beside it, got ndarray"),
    "trust": (lambda: check("died ~ age", P, trust_formula="no"), r"trust_formula='no': expected True or False"),  # type: ignore[call-overload]
    "weights of an array": (lambda: check(X4, Y4, weights="w"), "an array has no columns of that name"),
    "weights of a model": (lambda: check(sm.Logit(P.died, P[["age"]]), weights=P.age), "leave out y, positive, weights"),
    "outcome of a model": (lambda: check(smf.logit("died ~ age", P), outcome="poisson"), "whose outcome is binary"),
    "y of a model": (lambda: check(smf.logit("died ~ age", P), P.died), "leave out y"),
    "squares": (lambda: check(smf.ols("died ~ age", P)), r"a model of (class|family)"),
    "negative binomial": (lambda: check(smf.negativebinomial("falls ~ age", P)), r"a model of (class|family)"),
    "Gauss": (lambda: check(smf.glm("falls ~ age", P, family=sm.families.Gaussian())), r"a model of (class|family)"),
    "a root": (
        lambda: check(smf.glm("falls ~ age", P, family=sm.families.Poisson(sm.families.links.Sqrt()))),
        r"a model of (class|family)",
    ),
    "classes for Firth": (lambda: dfeas.firth([[1.0], [2.0], [3.0]], list("abc")), "two classes, shares, and counts"),
    "a file for Firth": (lambda: dfeas.firth("table.csv", "y"), "expected a data frame, an array, or a formula"),
    "Cox for Firth": (
        lambda: dfeas.firth(F, ["time", "died"], outcome="cox"),
        "outcome 'cox': .* expected one of binary, poisson",
    ),
    "Cox by a formula for Firth": (
        lambda: dfeas.firth("Surv(time, died) ~ age", F),
        "is of a Cox regression: check its separation",
    ),
    "no intercept for Firth": (lambda: dfeas.firth("died ~ age", P, intercept=False), r"write 0 \+"),
    "code for Firth": (lambda: dfeas.firth("died ~ age.clip(3)", P), "would run as code"),
    "a result in memory": (lambda: dfeas.suspects(dfeas.solve(X4, Y4)), "in memory"),
    "a margin": (
        lambda: dfeas.predict(dfeas.hard_margin(np.eye(2), [1, -1]), np.eye(2)),  # type: ignore[arg-type]
        r"got HardMargin; HardMargin has one in \.result",
    ),
    "no path": (lambda: dfeas.info(np.eye(2)), "expected a path, got ndarray"),  # type: ignore[arg-type]
}
EITHER: dict[str, tuple[Callable[[], Any], str]] = {
    "no strata": (lambda: check(F[["age"]], F.died, outcome="conditional"), "a conditional logit has strata"),
    "strata of others": (lambda: check(F[["age"]], F.died, strata=F.set), "strata: expected an outcome"),
    "lonely rows": (
        lambda: check(F[["age"]], F.died, outcome="conditional", strata=np.arange(120)),
        "none of 120 has both outcomes",
    ),
    "too few strata": (
        lambda: check([[1], [2]], [0, 1], outcome="conditional", strata=[1]),
        "of 2 rows, got 1",
    ),
    "no time": (lambda: check(F[["age"]], F.died, outcome="cox"), "expected time and event as y"),
    "counts": (
        lambda: check(F[["age"]], (F.time, F.falls), outcome="cox"),
        "expected 1 or true where the event",
    ),
    "no event": (lambda: check(F[["age"]], (F.time, 0 * F.died), outcome="cox"), "no row has an event"),
    "Cox that is not said": (lambda: check("Surv(time, died) ~ age", F), "of a Cox regression: .* with outcome='cox'"),
    "Cox by a formula": (lambda: check("died ~ age", F, outcome="cox"), "as in Surv"),
    "Cox by another event": (lambda: check(F, ["time", "falls"], outcome="cox", positive=9), "the label 9"),
    "counts by a class": (lambda: check(F, "falls", outcome="poisson", positive=1), "leave out positive"),
    "truncated": (lambda: check(sm.PHReg(F.time, F[["age"]], F.died, entry=F.time - 1)), "none truncated"),
    "empty class": (
        lambda: check(OrderedModel(F.grade.cat.add_categories(["never"]), F[["age"]])),
        "rows of each of several categories",
    ),
    "half a line": (lambda: check(OrderedModel(F.grade, F[["age"]], distr=stats.expon)), "on all numbers"),
    "several classes": (
        lambda: check(ConditionalMNLogit(F.falls.clip(0, 2).to_numpy(), F[["age"]].to_numpy(), groups=F.set.to_numpy())),
        "class ConditionalMNLogit: expected",
    ),
    "many classes": (
        lambda: check(np.arange(50.0)[:, None], np.arange(50), outcome="adjacent"),
        "at most 40 of an adjacent",
    ),
}
SYSTEMS: list[tuple[dict[str, Any], str]] = [
    ({"b": [1.0, 2.0]}, "b has shape (2,), expected 1 finite numbers"),
    ({"A": [[1.0], [1.0]], "b": 1.0}, "b has shape (), expected 2 finite numbers"),
    ({"b": None}, "b is missing"),
    ({"b": [np.inf]}, "b: the entry of row 0 is infinite"),
    ({"b": [np.nan]}, "b: the entry of row 0 is missing"),
    ({"b": [None]}, "b: a value is missing"),
    ({"b": np.ma.array([1.0], mask=[True])}, "b: a masked array"),
    ({"b": "nothing.npy"}, "no such file or folder (b)"),
    ({"A": [1.0, 1.0]}, "A: expected a matrix (n, m), got shape (2,)"),
    ({"A": None}, "expected A and b"),
    ({"A": [[np.nan, 0.0]]}, "A: 1 or more entries are not finite (row 0 column 0: nan)"),
    ({"A": [[1e200, 0.0]]}, "A: norms outside 1e-130 .. 1e+130 (row 0)"),
    ({"equal": 3}, "expected E and f"),
    ({"equal": ([[np.nan, 0.0]], [1.0])}, "E: 1 or more entries are not finite"),
    ({"equal": ([[1j, 0.0]], [1.0])}, "E: entries of type complex128"),
    ({"equal": ([[1.0, 1.0]], np.ma.array([1.0], mask=[True]))}, "f: a masked array"),
    ({"equal": ([[1.0]], [1.0])}, "E has 1 columns, A has 2"),
    ({"equal": ([[1.0, 1.0]], [1.0, 2.0])}, "f has shape (2,)"),
    ({"bounds": [(0, 1)] * 3}, "2 pairs"),
    ({"bounds": 3}, "expected a pair"),
    ({"bounds": (np.inf, None)}, "no number is within"),
    ({"bounds": (2**53 + 1, None)}, "bounds: 9007199254740993 has no exact float64"),
    ({"bounds": np.ma.array([[0.0, 1.0]], mask=[[True, False]])}, "bounds: a masked array"),
    ({"bounds": pd.DataFrame({"least": [0.0], "high": [1.0]})}, "bounds: expected a frame of the columns low and high"),
    ({"bounds": {"x": (0, 1), "y": (0, 1)}}, "bounds: they are of variables by name, and A has no names"),
]
NAMED: list[tuple[dict[str, Any], str]] = [
    ({"b": pd.Series([2.0, 1.0], ["s", "r"])}, "A and b have other rows"),
    ({"equal": (frame(np.eye(2)), pd.Series([2.0, 1.0], ["s", "r"]))}, "E and f have other rows"),
    ({"equal": (frame(np.eye(2), columns="xz"), [1.0, 1.0])}, "E: other features (without y, with z) than A"),
    ({"bounds": LIMITS.rename(index={"y": "z"})}, "bounds: other features (without y, with z) than A"),
    ({"bounds": {"y": (0, 1)}}, "bounds: other features (without x) than A"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("table", [BAD, MISUSED, EITHER], ids=["bad", "misused", "either"])
def test_what_makes_no_sense_is_refused_in_one_line(table: dict[str, tuple[Callable[[], Any], str]]) -> None:
    error = BadInputError if table is BAD else UsageError if table is MISUSED else DfeasError
    for case, (ask, said) in table.items():
        with pytest.raises(error if case != "weights: of others" else UsageError, match=said) as raised:
            pytest.fail(f"{case}: {ask()}")
        assert "\n" not in str(raised.value), case


def test_systems_that_cannot_be_asked_are_refused() -> None:
    plain: dict[str, Any] = {"A": [[1.0, 1.0]], "b": [1.0]}
    named: dict[str, Any] = {"A": frame(np.eye(2)), "b": [1.0, 1.0]}
    for asked, table in ((plain, SYSTEMS), (named, NAMED)):
        for options, said in table:
            with pytest.raises(BadInputError, match=re.escape(said)):
                pytest.fail(f"{said}: {dfeas.feasible(**asked | options)}")


def test_what_cannot_be_predicted_is_refused(tmp_path: Path) -> None:
    X, rng = np.random.default_rng(0).standard_normal((500, 3)), np.random.default_rng(1)
    dfeas.ingest(X, tmp_path / "data", y=np.where(X[:, 0] > 0, "yes", "no"))
    dfeas.solve(tmp_path / "data", intercept=True, out=tmp_path / "run")
    dfeas.in_hull([9.0, 9, 9], tmp_path / "data", out=tmp_path / "hull")
    dfeas.solve(X, rng.choice([-1, 1], 500), out=tmp_path / "no")
    asked: list[tuple[str, Any, dict[str, Any], str]] = [
        ("run", np.ones((4, 2)), {}, "points of 2 features, the run "),
        ("run", np.ones((2, 3)), {"y": np.array(["a", "b"])}, "its classes are a and b, those of the run no and yes"),
        ("run", np.array([[1.0, 1, 1], [1, np.nan, 1]]), {}, "point 1 has entries that are not finite"),
        ("run", X, {"out": tmp_path / "none" / "scores.npy"}, "no such folder"),
        ("run", X, {"out": tmp_path / "scores.txt"}, r"scores are a \.npy, \.csv or \.parquet file, or a \.zarr folder"),
        ("hull", X, {}, "a run of a hull"),
        ("no", X, {}, "ended infeasible and left no direction"),
    ]
    for run, points, options, said in asked:
        with pytest.raises((BadInputError, UsageError), match=said):
            dfeas.predict(tmp_path / run, points, **options)
    certificate = tmp_path / "run" / "certificate.npz"
    for y in (np.ones(3), np.full(4, np.nan)):
        replace(load(certificate), y=y).save(certificate)
        with pytest.raises(CorruptDataError, match="expected a direction of 4 finite entries"):
            dfeas.predict(tmp_path / "run", X)


def test_columns_of_a_file_that_are_no_weights_are_refused(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": np.arange(70_000) % 7, "y": np.arange(70_000) % 2, "w": 1.0})
    table.loc[69_997, "w"] = -1
    table.to_csv(tmp_path / "t.csv", index=False)
    cases: list[tuple[Any, str]] = [
        ("w", "column w: the weight of row 69997 is -1"),
        (table.w, "expected a name, got Series"),
        ("v", "no column v"),
        ("y", "in columns of their own"),
    ]
    for weights, said in cases:
        with pytest.raises(DfeasError, match=said):
            check(tmp_path / "t.csv", "y", weights=weights, intercept=True)
