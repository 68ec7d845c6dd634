"""Ordinal, conditional, Cox and log-binomial regressions: existence of the maximum from their terms, in whole numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest

import dfeas
from dfeas.analysis.check_separation import Separated
from dfeas.errors import BadInputError
from tests.exact import kind_of
from tests.terms import Ints, Terms, estimate_of, poisson_terms

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import statsmodels.api as sm
    from scipy import stats
    from statsmodels.discrete.conditional_models import ConditionalLogit, ConditionalPoisson
    from statsmodels.miscmodels.ordinal_model import OrderedModel


def drawn(seed: int) -> tuple[np.random.Generator, Ints]:
    """Small tables of whole numbers, ties and zeros among them, of which about a half are separated."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(4, 11)), int(rng.integers(1, 4))
    return rng, rng.integers(-1, 3 if seed % 3 else 2, (n, m))


def require_right(found: Separated, terms: Terms, m: int, said: str) -> bool:
    """Whether it is finite as the terms say; a direction lets none of them fall, and some of the rows named rise."""
    numbers, rows = zip(*terms, strict=True)
    separated = kind_of([list(map(int, row)) for row in rows]) != "overlap"
    assert found.finite is not separated, said
    assert found.proof == "exact", said
    if separated:
        direction = np.array([found.direction.get(j, 0.0) for j in range(m)])
        change = np.array(rows) @ direction
        assert (change > -1e-9).all(), said
        rising = {numbers[k] for k in np.flatnonzero(change > 1e-9)}
        assert rising, said
        assert set(found.points) <= rising, said
        assert set(found.columns) <= set(range(m)), said
        assert found.columns, said
    table = {each.name: each.estimate for each in found.estimates}
    assert [table[j] for j in range(m) if j in table] == [estimate_of(rows, j) for j in range(m) if j in table], said
    assert len(table) >= m - ("intercept" in table), said
    return separated


Draw = Callable[[np.random.Generator, Ints], tuple[Separated, Terms] | None]


def draw_poisson(rng: np.random.Generator, X: Ints) -> tuple[Separated, Terms] | None:
    strata, y = rng.integers(0, 3, len(X)), rng.integers(0, 3, len(X))
    y = np.where(X[:, -1] > 1, 0, y)
    if not y.any():
        return None
    return dfeas.check_separation(X, y, outcome="poisson", strata=strata), poisson_terms(X, y, strata)


def draw_log_binomial(rng: np.random.Generator, X: Ints) -> tuple[Separated, Terms] | None:
    y = np.where(X[:, -1] > 0, 0, rng.integers(0, 2, len(X)))
    if len(np.unique(y)) < 2:
        return None
    found, W = dfeas.check_separation(X, y, outcome="log-binomial"), np.hstack([X, np.ones((len(X), 1), int)])

    def terms() -> Terms:
        """With probability exp(x'b) <= 1 a row of 1 can neither fall nor rise above 1; a row of 0 must not rise."""
        for i, row in enumerate(W):
            yield i, -row
            if y[i]:
                yield i, row

    if not found.finite:
        found.direction[X.shape[1]] = found.intercept
    return found, terms()


KINDS: dict[str, Draw] = {
    "poisson": draw_poisson,
    "log-binomial": draw_log_binomial,
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_maximum_exists_unless_terms_rise_and_none_falls(kind: str) -> None:
    """Of counts in strata and of a log-binomial regression; the fuzzer draws Cox, conditional and ordinal ones."""
    draw, seen, seed = KINDS[kind], [], 0
    while len(seen) < 16:
        seed += 1
        rng, X = drawn(seed)
        drawn_one = draw(rng, X)
        if drawn_one is not None:
            found, terms = drawn_one
            m = X.shape[1] + (kind == "log-binomial")
            seen.append(require_right(found, terms, m, f"{kind} {seed}"))
    assert 0.2 < np.mean(seen) < 0.9, "one of both cases is hardly tried"


def people(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=n).round(1), "kind": rng.integers(0, 3, n) * 1.0, "set": np.arange(n) % 8})
    frame = frame.assign(time=rng.integers(1, 20, n), died=rng.integers(0, 2, n), falls=rng.poisson(1, n))
    frame["grade"] = pd.Categorical.from_codes(rng.integers(0, 3, n), ["mild", "severe", "fatal"], ordered=True)
    frame["rare"] = ((frame.grade == "fatal") & (frame.died == 0) & (frame.falls == 0)) * 1.0
    return frame.set_axis([f"p{i}" for i in range(n)])


ASKED: dict[str, dict[str, Any]] = {
    "OrderedModel": {"y": "grade", "outcome": "ordinal"},
    "ConditionalLogit": {"y": "died", "outcome": "conditional", "strata": "set"},
    "ConditionalPoisson": {"y": "falls", "outcome": "poisson", "strata": "set"},
    "PHReg": {"y": ["time", "died"], "outcome": "cox"},
    "PHReg by strata": {"y": ["time", "died"], "outcome": "cox", "strata": "set"},
}


def models(frame: pd.DataFrame, X: list[str]) -> dict[str, list[Any]]:
    values, groups = frame[X], frame.set
    return {
        "OrderedModel": [
            OrderedModel(frame.grade, values, distr="logit"),
            OrderedModel(frame.grade, values, offset=frame.time),
            OrderedModel.from_formula(f"grade ~ {' + '.join(X)}", frame, distr="probit"),
            OrderedModel(frame.grade, values, distr=stats.cauchy),
        ],
        "ConditionalLogit": [
            ConditionalLogit(frame.died, values, groups=groups),
            ConditionalLogit.from_formula(f"died ~ 0 + {' + '.join(X)}", groups="set", data=frame),
        ],
        "ConditionalPoisson": [ConditionalPoisson(frame.falls, values, groups=groups)],
        "PHReg": [sm.PHReg(frame.time, values, frame.died, ties=ties) for ties in ("breslow", "efron")],
        "PHReg by strata": [sm.PHReg(frame.time, values, frame.died, strata=groups)],
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("columns", [["age", "kind"], ["age", "rare"]], ids=["finite", "separated"])
def test_a_model_of_statsmodels_its_frame_and_its_file_are_one_question(columns: list[str], tmp_path: Path) -> None:
    frame = people()
    for name, given in models(frame, columns).items():
        asked = ASKED[name]
        used = [asked["y"]] if isinstance(asked["y"], str) else asked["y"]
        table = frame[list(dict.fromkeys([*columns, *used, *([asked["strata"]] if "strata" in asked else [])]))]
        by_frame = dfeas.check_separation(table, **asked)
        assert by_frame.finite is (columns == ["age", "kind"]), name
        assert by_frame.columns == ([] if by_frame.finite else ["rare"]), name
        assert set(by_frame.points) <= set(frame.index), name
        assert name == "ConditionalPoisson" or not any("Firth" in each.text for each in by_frame.advice), (
            "not proved to be finite"
        )
        for model in given:
            found = dfeas.check_separation(model, outcome=asked["outcome"])
            assert (found.kind, found.columns, found.points) == (by_frame.kind, by_frame.columns, by_frame.points), name
        if name != "OrderedModel":
            table.to_parquet(tmp_path / "t.parquet", index=False)
            found = dfeas.check_separation(tmp_path / "t.parquet", **asked)
            assert (found.kind, found.columns) == (by_frame.kind, by_frame.columns), name
            assert [f"p{row}" for row in found.points] == by_frame.points, name


@pytest.mark.filterwarnings("ignore")
def test_where_it_is_finite_fits_stay_and_where_not_they_run_away() -> None:
    frame = people()
    for columns, finite in ((["age", "kind"], True), (["age", "rare"], False)):
        given = models(frame, columns)
        fits = [
            given["OrderedModel"][0].fit(disp=0, method="bfgs", maxiter=500),
            given["ConditionalLogit"][0].fit(disp=0, method="BFGS"),
            given["PHReg"][0].fit(disp=0),
            given["PHReg"][1].fit(disp=0),
        ]
        for fit in fits:
            assert bool(np.abs(np.asarray(fit.params)[:2]).max() < 3) is finite


@pytest.mark.filterwarnings("ignore:Dropped 1 groups")
def test_groups_of_equal_counts_are_left_out_of_the_model_as_statsmodels_does_only() -> None:
    """Both rows of the first group being above 0, neither may grow beside the other: alone the second one is separated."""
    x, y, groups = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([2, 2, 0, 3]), np.array([0, 0, 1, 1])
    assert dfeas.check_separation(x, y, outcome="poisson", strata=groups).finite
    found = dfeas.check_separation(ConditionalPoisson(y, x, groups=groups))
    assert (found.finite, found.points, found.notes) == (False, [2], [])


def test_ties_and_censoring_at_the_time_of_an_event() -> None:
    """Who is censored when another one has the event was at risk; of two events at once neither is larger."""
    x = np.array([[1.0], [0.0], [0.0]])
    assert not dfeas.check_separation(x, ([1, 1, 2], [1, 0, 0]), outcome="cox").finite
    assert dfeas.check_separation(x, ([1, 1, 2], [1, 1, 0]), outcome="cox").finite
    found = dfeas.check_separation(x, ([2, 1, 1], [1, 0, 0]), outcome="cox")
    assert (found.finite, found.depending) == (True, [(0, ["the times"])]), "nobody else was at risk"


def test_an_order_is_that_of_categories_or_numbers_and_never_that_of_texts() -> None:
    frame = people()
    X, grades = frame[["age"]], frame.grade
    assert dfeas.check_separation(X, grades, outcome="ordinal").classes == ("mild", "severe", "fatal")
    series = polars.Series(grades.astype(str).to_list(), dtype=polars.Enum(["mild", "severe", "fatal"]))
    assert dfeas.check_separation(X, series, outcome="adjacent").classes == ("mild", "severe", "fatal")
    assert dfeas.check_separation("grade ~ age", frame, outcome="ordinal").classes == ("mild", "severe", "fatal")
    for text in (grades.astype(str), grades.cat.as_unordered()):
        with pytest.raises(dfeas.BadInputError, match="text has no order; expected numbers, or a category with an order"):
            dfeas.check_separation(X, text, outcome="ordinal")


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_offsets_that_are_finite_change_nothing_and_others_are_refused() -> None:
    frame = people()
    plain, offset = (dfeas.check_separation(f"died ~ age + rare{more}", frame) for more in ("", " + offset(log(time))"))
    assert (offset.kind, offset.columns, offset.points) == (plain.kind, plain.columns, plain.points)
    assert offset.notes == ["the offset is finite, and changes nothing about separation"]
    with pytest.raises(dfeas.BadInputError, match=r"column offset\(log\(falls\)\): \d+ values are missing or infinite"):
        dfeas.check_separation("died ~ age + offset(log(falls))", frame)
    X = sm.add_constant(frame[["age"]])
    assert dfeas.check_separation(sm.Poisson(frame.falls, X, offset=frame.time)).finite
    with pytest.raises(dfeas.BadInputError, match="column offset: 1 values are missing or infinite, the first in row p2"):
        dfeas.check_separation(sm.Poisson(frame.falls, X, offset=np.where(np.arange(120) == 2, -np.inf, 0.0)))


@pytest.mark.filterwarnings("ignore")
def test_links_of_binomials() -> None:
    frame = people()
    X, links = sm.add_constant(frame[["age", "rare"]]), sm.families.links
    for link in (links.Cauchy(), links.CLogLog(), links.LogLog(), links.Probit(), links.Log()):
        found = dfeas.check_separation(sm.GLM(frame.died, X, family=sm.families.Binomial(link)))
        assert (found.finite, found.columns) == (False, ["rare"])
    assert found.outcome == "log-binomial"
    shares = np.where(frame.rare > 0, 0.0, 0.5)
    assert not dfeas.check_separation(X[["rare"]].assign(age=frame.age), shares, outcome="log-binomial").finite
    with pytest.raises(dfeas.UsageError, match="log-binomial: expected an intercept"):
        dfeas.check_separation(sm.GLM(frame.died, frame[["age"]], family=sm.families.Binomial(links.Log())))
    with pytest.raises(dfeas.UsageError, match="with link LogC"):
        dfeas.check_separation(sm.GLM(frame.died, X, family=sm.families.Binomial(links.LogC())))


def test_a_cox_regression_is_asked_by_its_formula_and_by_any_value_of_the_event(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    status, late = rng.integers(0, 2, 40), np.arange(40) > 30
    frame = pd.DataFrame(
        {"my time": np.where(late, 9.0, rng.integers(1, 8, 40)), "status": status, "sex": rng.choice(["f", "m"], 40)}
    )
    frame["late"], frame["status"] = late.astype(int), np.where(late, 0, status) + 1
    frame.to_parquet(tmp_path / "lung.parquet")
    coded = frame.assign(status=frame["status"] - 1)
    known = dfeas.check_separation(coded, ["my time", "status"], outcome="cox", intercept=False)
    assert (known.columns, [each.name for each in known.estimates]) == (["late"], ["sex[m]", "late"])
    for table in (frame, tmp_path / "lung.parquet"):
        for event, positive in (("status", 2), ("status == 2", None)):
            formula = f"Surv(`my time`, {event}) ~ sex + late"
            found = dfeas.check_separation(formula, table, outcome="cox", positive=positive)
            assert (found.columns, found.points) == (known.columns, known.points)
    with pytest.raises(BadInputError, match="no column tim"):
        dfeas.check_separation("Surv(tim, status) ~ late", coded, outcome="cox", missing="drop")
