"""The table of a regression beside the cone of its directions, as rational linear programmes see it."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from click.testing import CliRunner

import dfeas
from dfeas.analysis.regression.blame import Direction
from dfeas.analysis.regression.design import Column, Design
from dfeas.analysis.regression.estimates import SignSearch, balances
from dfeas.analysis.regression.outcome import Response
from dfeas.cli.main import commands
from dfeas.exact.dyadic import common
from dfeas.run.exact.partition import partition
from tests.analysis.making import FRAMES
from tests.terms import estimate_of, reaches

Rows = np.ndarray


def signed(X: Rows, y: Rows, outcome: str, intercept: bool) -> Rows:
    """Rows a with a'd >= 0 along the directions in which the likelihood never falls, by its terms."""
    W = np.hstack([X, np.ones((len(X), 1), int)]) if intercept else X
    if outcome == "binary":
        return W * np.where(y > 0, 1, -1)[:, None]
    if outcome == "poisson":
        return np.vstack([-W, W[y > 0]])
    classes = np.unique(y)
    rows = []
    for i, k in product(range(len(y)), range(len(classes))):
        own = np.searchsorted(classes, y[i])
        if k != own:
            row = np.zeros((len(classes), W.shape[1]), int)
            row[own] += W[i]
            row[k] -= W[i]
            rows.append(row[1:].ravel())
    return np.array(rows)


def table(seed: int, most: int) -> tuple[Rows, Rows, bool]:
    """Of few whole numbers; columns that depend on each other among them, and outcomes that a hyperplane makes."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(4, 11)), int(rng.integers(1, 4))
    X = rng.integers(-1, 3, (n, m))
    if seed % 3 == 1:
        X[:, -1] = X[:, 0] * int(rng.integers(0, 2))
    y = rng.integers(0, most + 1, n)
    if seed % 2:
        score = X @ rng.integers(-2, 3, m)
        y = np.where(score > 0, np.maximum(y, 1), np.where(score < 0, 0, y))
    y[:2] = 0, most
    return X, y, bool(rng.integers(0, 2))


@pytest.mark.parametrize(("outcome", "most", "count"), [("binary", 1, 36), ("poisson", 3, 24), ("multinomial", 2, 10)])
def test_estimates_are_finite_infinite_or_not_identified_as_the_cone_of_directions_says(
    outcome: str, most: int, count: int
) -> None:
    seen = set()
    for seed in range(count):
        X, y, intercept = table(seed, most)
        found = dfeas.check_separation(X, y, outcome=outcome, intercept=intercept)
        rows = signed(X, y, outcome, intercept)
        assert [each.estimate for each in found.estimates] == [estimate_of(rows, j) for j in range(rows.shape[1])], seed
        assert all(each.certain for each in found.estimates)
        assert found.finite is not any(reaches(rows.tolist(), row) for row in rows.tolist()), seed
        d = np.array([each.direction for each in found.estimates])
        assert (rows @ d >= -1e-9).all()
        assert not [each for each in found.estimates if each.direction * {"+Inf": -1, "-Inf": 1}.get(each.estimate, 0) > 0]
        seen |= {each.estimate for each in found.estimates}
    assert {"finite", "-Inf", "not identified", *["+Inf or -Inf"] * (outcome != "poisson")} <= seen


@pytest.mark.parametrize("outcome", ["binary", "poisson", "multinomial", "ordinal"])
def test_signs_of_drawn_columns_are_those_of_an_exact_partition_with_the_other_sign(
    outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of columns that whole programmes would take too long for; where the direction shown has a zero none is asked."""
    reaches, asked = SignSearch.reaches, Counter[bool]()

    def beside(self: SignSearch, j: int, sign: int) -> bool | None:
        found, more = reaches(self, j, sign), np.zeros((1, len(self.along)))
        more[0, j] = sign
        assert self.along[j] * sign < 0
        assert found == partition(common(np.vstack([self.rows, more]))[0]).beyond[-1]
        asked[bool(found)] += 1
        return found

    monkeypatch.setattr(SignSearch, "reaches", beside)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((30, 6)) * 10.0 ** rng.integers(-6, 7, 6) + (seed % 2) * rng.integers(-3, 4, 6) * 1e3
        X[:, 0] = rng.random(30) < 0.3
        score = X[:, :4] / np.abs(X[:, :4]).max(axis=0) @ rng.standard_normal(4)
        y = np.digitize(score, np.quantile(score, [0.5] if outcome == "binary" else [0.9, 0.95]))
        for each in dfeas.check_separation(X, y, outcome=outcome).estimates:
            assert each.certain
            assert each.direction or each.estimate in ("finite", "+Inf or -Inf")
    assert min(asked[True], asked[False]) > 2


def test_a_coefficient_that_is_too_small_for_a_float_keeps_its_sign() -> None:
    design = Design(tuple(Column(name, name) for name in "abc"))
    direction = Direction.of((1 << 1100, -1, 0, 5), False, design, Response("binary", ("0", "1")))
    assert np.sign(direction.values).tolist() == [[1, -1, 0, 1]]
    assert direction.values[0, 0] == 1


def table_columns(table: Any) -> list[str]:
    return list(table.column_names if isinstance(table, pyarrow.Table) else table.columns)


@pytest.mark.parametrize("library", FRAMES)
def test_the_table_is_printed_with_its_names_and_is_a_frame_of_the_library_of_the_users(library: str) -> None:
    frame = pd.DataFrame({"age": [31, 44, 52, 38, 61, 47, 55, 29], "ward": list("aabbccab"), "died": [0, 1, 0, 1, 1, 1, 0, 0]})
    given = FRAMES[library](frame)
    for found in (dfeas.check_separation(given, "died"), dfeas.check_separation("died ~ age + ward", given)):
        table = found.to_frame()
        assert isinstance(table, type(frame if library == "dask" else given))
        names, estimates, certain, _ = (list(map(str, np.asarray(table[name]))) for name in table_columns(table))
        assert (estimates, certain) == (["finite", "finite", "+Inf", "finite"], ["True"] * 4)
        assert names[-1] == "intercept"
        assert str(found).splitlines()[4].split() == [names[2], "+Inf", "1"]


def test_a_table_of_an_array_is_of_pandas_and_tells_classes_apart() -> None:
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(list("abbc"))
    table = dfeas.check_separation(X, y).to_frame()
    assert isinstance(table, pd.DataFrame)
    assert (table["class"] + table["coefficient"]).to_list() == ["b0", "bintercept", "c0", "cintercept"]


def test_signs_of_large_tables_are_said_to_be_those_of_one_direction_where_there_are_several() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4))
    found = dfeas.check_separation(X, X[:, 0] > 0)
    assert {each.certain for each in found.estimates} == {False}
    assert "along this direction; others may have another sign" in str(found)
    X[:, 3] = np.arange(20_000) < 3
    rare = dfeas.check_separation(X, (X[:, 3] > 0) | (rng.random(20_000) < 0.5))
    assert [each.estimate for each in rare.estimates] == [*["finite"] * 3, "+Inf", "finite"]
    assert all(each.certain for each in rare.estimates)


OUTCOMES = {"truth": [False, True], "text": ["well", "sick"], "numbers": [0, 1], "others": [3, 7]}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_line_of_python_fits_the_model_with_the_sign_of_the_table(outcome: str) -> None:
    rng = np.random.default_rng(2)
    rare, ill = np.arange(200) < 4, (rng.random(200) < 0.5) | (np.arange(200) < 4)
    values = np.array(OUTCOMES[outcome])[ill.astype(int)]
    frame = pd.DataFrame({"age": rng.normal(size=200), "exposed to": np.where(rare, "yes", "no"), "ill now": values})
    for table, asked in ((frame, "ill now"), (frame.set_axis(["age", "e", "ill"], axis=1), None)):
        found = dfeas.check_separation(table, asked) if asked else dfeas.check_separation("ill ~ age + C(e)", table)
        fit = eval(found.fits["Python"], {"dfeas": dfeas, "table": table})
        assert fit.names == [each.name for each in found.estimates]
        sign = {"+Inf": 1, "-Inf": -1}[found.estimates[1].estimate]
        assert 0.01 < sign * fit.coef[1] < 100
        assert f"in Python: {found.fits['Python']}" in str(found)
    assert dfeas.check_separation(rare[:, None], rare).fits == {"Python": "dfeas.firth(table, y)"}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ({"y": "ill", "positive": "b's"}, "dfeas.firth(table, 'ill', positive=\"b's\")"),
        ({"y": "ill", "intercept": False, "text": ["code"]}, "dfeas.firth(table, 'ill', intercept=False, text=['code'])"),
        ({"y": "ill", "missing": "drop"}, "dfeas.firth(table, 'ill', missing='drop')"),
        ({"y": ["ill", "n"]}, "dfeas.firth(table[['code', 'rare', 'ill']], 'ill')"),
        ({"y": "n", "outcome": "poisson"}, "dfeas.firth(table, 'n', outcome='poisson')"),
    ],
)
def test_the_line_of_python_says_all_that_was_asked(words: dict[str, Any], line: str) -> None:
    ill = ["b's"] * 5 + ["a"] * 3
    table = pd.DataFrame({"code": list("11221221"), "rare": [1, 1] + [0] * 6, "ill": ill, "n": [0, 0, 1, 0, 1, 1, 0, 1]})
    found = dfeas.check_separation(table, **words)
    found = found["ill"] if isinstance(words["y"], list) else found
    assert found.fits["Python"] == line
    fit = eval(line, {"dfeas": dfeas, "table": table})
    assert fit.names == [each.name for each in found.estimates]
    assert fit.outcome == found.outcome
    assert fit.classes == found.classes


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pyarrow.Table.from_pydict])
@pytest.mark.parametrize("given", [("ill",), ("ill", True), ("ill ~ age + C(ward)",), ("ill ~ .",)])
def test_the_line_of_python_fits_a_table_of_chosen_columns(given: tuple[Any, ...], library: Any) -> None:
    columns = {
        "id": [f"p{row}" for row in range(9)],
        "age": [31.0, 44, 52, 38, 61, None, 55, 29, 40],
        "ward": list("aabbccaba"),
    }
    outcome = [0, 1, 0, 1, 1, 1, 0, 0, 1]
    beside = given[1:] == (True,)
    label = outcome if beside else "ill"
    table = dfeas.table(library(columns if beside else {**columns, "ill": outcome}), label, id="id")
    found = dfeas.check_separation(*([given[0], table] if "~" in given[0] else [table]), missing="drop")
    assert found.points == ["p4"]
    fit = eval(found.fits["Python"], {"dfeas": dfeas, "table": table, "y": label})
    assert fit.names == [each.name for each in found.estimates]
    assert fit.rows == 8
    assert type(fit.to_frame()) is type(found.to_frame())


@pytest.mark.parametrize("asked", [["--label-column", "ill"], ["--formula", "ill ~ age"], ["--formula", "ill ~ ."]])
def test_the_line_of_python_about_a_file_leaves_out_what_was_left_out(asked: list[str], tmp_path: Path) -> None:
    columns = {"id": [f"p{row:03d}" for row in range(60)], "age": range(60), "ward": 2.0, "ill": [0] * 31 + [1] * 29}
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    more = [] if "ill ~ age" in asked else ["--without", "ward"]
    ran = CliRunner().invoke(commands, ["check-separation", str(tmp_path / "t.csv"), *asked, "--id-column", "id", *more])
    line = ran.output.partition("in Python: ")[2].splitlines()[0]
    assert eval(line, {"dfeas": dfeas, "table": pd.read_csv(tmp_path / "t.csv")}).names == ["age", "intercept"]


def test_lines_of_other_models_quote_names_and_keep_the_formula() -> None:
    frame = pd.DataFrame({"a b": [0, 0, 1, 1, 0, 0], "n": [0, 0, 0, 0, 2, 1], "k": list("xxyyzz")})
    counts = dfeas.check_separation(frame[["a b", "n"]], "n", outcome="poisson")
    assert counts.fits["R"].startswith("glm(n ~ `a b`, family = poisson")
    assert dfeas.check_separation("k ~ n | a", frame.rename(columns={"a b": "a"})).fits == {
        "R": "brglm2::brmultinom(k ~ n + factor(a), data = table)"
    }
    weighted = dfeas.check_separation(frame[["a b", "n"]], "n", outcome="poisson", weights=np.ones(6))
    assert weighted.fits == {}


OF_R = {
    "n ~ C(k)": "n ~ factor(k)",
    'n ~ C(k, Treatment("z")) + np.log(a)': 'n ~ relevel(factor(k), ref = "z") + log(a)',
    'n ~ C(k, Treatment(reference="z")):a': 'n ~ relevel(factor(k), ref = "z"):a',
    'n ~ C(k, contr.treatment("z"))': 'n ~ relevel(factor(k), ref = "z")',
    "n ~ C(k, contr.treatment(base='z')) + 0": 'n ~ relevel(factor(k), ref = "z") + 0',
    "n ~ C(k, contr.treatment)": "n ~ factor(k)",
    'n ~ C(k, levels=["z", "y", "x"]) * a': "n ~ factor(k, levels = c('z', 'y', 'x')) * a",
    "n ~ C(a, Treatment(2))": 'n ~ relevel(factor(a), ref = "2")',
    'n ~ Q("b c") + `b c`:a - 1': "n ~ `b c` + `b c`:a - 1",
    "I(n > 0) ~ np.log1p(`b c`) + I(a ** 2 - 3 * a)": "I(n > 0) ~ log1p(`b c`) + I((a ^ 2) - (3 * a))",
    "n ~ {a / 2} + (a + k)**2": "n ~ I(a / 2) + (a + k)^2",
    "n ~ poly(a, 2) + center(a)": "n ~ poly(a, degree = 2) + scale(a, scale = FALSE)",
    "n ~ bs(a, df=4, include_intercept=True)": "n ~ splines::bs(a, df = 4, intercept = TRUE)",
    "n ~ . - k": "n ~ a + `b c`",
    "n ~ C(k, contr.sum)": None,
    "n ~ C(k, Sum)": None,
    "n ~ cr(a, df=3)": None,
    "n ~ standardize(a)": None,
    "n ~ I(a % 2) + a": None,
    "n ~ . + np.log(a)": None,
    "n ~ .:a": None,
}


@pytest.mark.parametrize("formula", OF_R)
def test_a_formula_is_translated_for_r_or_there_is_no_line_of_it(formula: str) -> None:
    numbers = {"a": [1, 2, 3, 4, 5, 6, 2, 2], "b c": [3, 1, 2, 5, 4, 6, 9, 8]}
    frame = pd.DataFrame({**numbers, "k": list("xxyyzzxz"), "n": [0, 0, 1, 1, 1, 1, 0, 1]})
    fits = dfeas.check_separation(formula, frame).fits
    line = f"glm({OF_R[formula]}, family = binomial, data = table, method = brglm2::brglm_fit)"
    assert fits.get("R") == (line if OF_R[formula] else None)
    assert "Python" in fits


def test_numbers_that_are_text_are_factors_in_r() -> None:
    table = pd.DataFrame({"code": list("11221221"), "ill": [1, 1, 0, 0, 0, 0, 0, 1]})
    assert "(ill ~ factor(code), family" in dfeas.check_separation(table, "ill", text="code").fits["R"]
    assert "(ill ~ factor(code), family" in dfeas.check_separation("ill ~ code", table, text="code").fits["R"]


@pytest.mark.parametrize("name", ["class", "None", "C(x)", "a\\b", "a\nb"])
def test_lines_of_python_know_words_of_python_and_lines_of_r_are_about_its_columns(name: str) -> None:
    frame = pd.DataFrame({name: [0, 0, 1, 1, 0, 0], "age": [3, 4, 1, 2, 5, 3], "function": [0, 1, 1, 1, 0, 1]})
    fits = dfeas.check_separation(frame, "function").fits
    assert eval(fits["Python"], {"dfeas": dfeas, "table": frame}).names == [name, "age", "intercept"]
    if {"\\", "\n"} & {*name}:
        assert "R" not in fits
    else:
        assert f"`function` ~ {name if name.isalpha() else f'`{name}`'} + age" in fits["R"]


PIECES = (
    "`",
    '"',
    "'",
    "\\",
    "{",
    "}",
    "%",
    "(",
    ")",
    ")) + ran() + ((",
    "`+ran()+`",
    'Q("a")',
    "C(",
    "~",
    "== true)",
    "\n",
    "é",
    "\N{GRINNING FACE}",
)
"""Of labels and names: what ends a string, a name or a call somewhere, and what would be code behind it."""
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`')
"""Text and names of R."""


@pytest.mark.parametrize("seed", range(5))
def test_no_label_level_or_name_is_code_in_the_lines(seed: int) -> None:
    rng, began = np.random.default_rng(seed), list[int]()
    one, other, level, name, y = (
        "".join(rng.choice(PIECES, rng.integers(1, 5))) + mark for mark in (" a", " b", " c", " d", " e")
    )
    name, y = (name, y) if seed % 2 else ("my x", "died now")
    frame = pd.DataFrame({name: [1.0] * 3 + [0.0] * 9, "ward": ["a", level] * 6, y: [one] * 6 + [other] * 6})
    fits = dfeas.check_separation(frame, y, positive=one, text=[y, "ward"]).fits
    assert ("R" in fits) == all(each.isprintable() for each in (one, name, y)) or seed % 2
    if "R" in fits:
        assert QUOTED.sub("_", fits["R"]).startswith("glm(I(1 * (_ == _)) ~ _ + ward, family = binomial, data = table, ")
        said = [text for text in QUOTED.findall(fits["R"]) if text.startswith('"')]
        assert [json.loads(text) for text in said] == [one]
    fit = eval(fits["Python"], {"dfeas": dfeas, "table": frame, "ran": lambda: began.append(1)})
    assert fit.names == [name, f"ward[{max('a', level)}]", "intercept"]
    assert fit.classes == (other, one)
    assert not began


def test_text_in_a_formula_stays_in_the_lines() -> None:
    frame = pd.DataFrame({"my x": [0, 0, 1, 1, 0, 0], "ward": list("aabbcc"), "died": [0, 1, 0, 1, 1, 1]})
    fits = dfeas.check_separation('died ~ `my x` + C(ward, Treatment("b"))', frame).fits
    assert fits["Python"] == """dfeas.firth('died ~ `my x` + C(ward, Treatment("b"))', table)"""
    assert len(eval(fits["Python"], {"dfeas": dfeas, "table": frame}).coef) == 4
    assert 'died ~ `my x` + relevel(factor(ward), ref = "b")' in fits["R"]
    text = dfeas.check_separation("died ~ `my x` + ward + offset(1.0 * (ward == 'C(b `my x`)'))", frame).fits
    assert [*text] == ["R", "Python"]
    assert all("offset(1.0 * (ward == 'C(b `my x`)'))" in line.replace("\\'", "'") for line in text.values())
    for name in ('a") + ran() + Q("my x', "a\n"):  # of a column that is no term
        table = frame.assign(**{name: 1.0})
        fits = dfeas.check_separation(f"died ~ `my x` + ward + offset(`{name}`)", table).fits
        assert [*fits] == ["Python"]
        assert eval(fits["Python"], {"dfeas": dfeas, "table": table}).names == ["my x", "ward[T.b]", "ward[T.c]", "intercept"]


@pytest.mark.parametrize("seed", range(3))
def test_weights_that_float64_proves_are_there_in_whole_numbers(seed: int) -> None:
    rng, proved, there = np.random.default_rng(seed), 0, 0
    for turn in range(150):
        d = int(rng.integers(1, 6))
        rows = rng.integers(-3, 4, (d, d)) * 2.0 ** (rng.integers(-300, 300, d) * (turn % 2))
        if turn % 5 == 0:  # nearly dependent, and then off by the last bit
            rows[-1] = rows[: d - 1].sum(axis=0) * (1 + 2.0**-52)
        more = -(rng.integers(-1, 4, d) @ rows) if turn % 3 else rng.integers(-2, 3, d).astype(float)
        if not more.any():
            continue
        beyond = bool(partition(common(np.vstack([rows, more]))[0]).beyond[-1])
        there += not beyond
        if balances(rows, more):
            proved += 1
            assert not beyond
    assert proved > there / 4


def test_weights_of_zero_or_of_dependent_rows_are_not_proved() -> None:
    assert balances(np.eye(3), -np.array([1.0, 2.0, 3.0]))
    assert not balances(np.eye(3), -np.array([1.0, 0.0, 3.0])), "a weight of zero is left to whole numbers"
    assert not balances(np.eye(3), -np.array([1.0, -1e-300, 3.0]))
    assert not balances(np.ones((2, 2)), -np.ones(2))
    assert not balances(np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]]), -np.array([2.0, 2.0]))
    assert not balances(np.zeros((2, 2)), -np.ones(2))
    assert not balances(np.array([[np.nan]]), -np.ones(1))
    assert not balances(np.eye(3)[:2], -np.ones(3))
