"""Options of another type than they are documented: one line of UsageError, whatever the verb, and never a bare error."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dfeas
from dfeas.errors import DfeasError, UsageError

X, LABELS = np.array([[1.0, 2.0], [-1.0, -1.0], [2.0, 1.0]]), np.array([1, -1, 1])
CLASSES, PLANTED = np.array(["a", "b", "c"]), {"kind": "planted", "m": 2, "n": 9}
VERBS: dict[str, Callable[..., Any]] = {
    "solve": lambda **options: dfeas.solve(X, LABELS, **options),
    "race": lambda **options: dfeas.race(X, LABELS, **{"methods": ["perceptron", "working-set"], **options}),
    "separation": lambda **options: dfeas.separation(X, LABELS, **options),
    "hard_margin": lambda **options: dfeas.hard_margin(X, LABELS, **options),
    "suspects": lambda **options: dfeas.suspects(X, LABELS, **options),
    "in_hull": lambda **options: dfeas.in_hull([0.0, 0.0], X, **options),
    "feasible": lambda **options: dfeas.feasible(X, LABELS, **options),
    "soft_margin": lambda **options: dfeas.soft_margin(X, LABELS, **options),
    "plan": lambda **options: dfeas.plan(X, LABELS, **options),
    "verify_certificate": lambda **options: dfeas.verify_certificate("data", "run/certificate.npz", **options),
    "predict": lambda **options: dfeas.predict("run", X, **options),
    "ingest": lambda **options: dfeas.ingest(X, "new", **{"y": LABELS, **options}),
    "report": lambda **options: dfeas.report(["run"], **options),
    "one_vs_rest": lambda **options: dfeas.one_vs_rest(X, CLASSES, **options),
    "soft_margin_classes": lambda **options: dfeas.soft_margin_classes(X, CLASSES, **options),
    "check_separation": lambda **options: dfeas.check_separation(X, LABELS, **options),
    "firth": lambda **options: dfeas.firth(X[:, :1], LABELS, **options),
    "table": lambda **options: dfeas.solve(dfeas.table(X, LABELS, **options)),
    "Instance": lambda **options: dfeas.generate(
        dfeas.Instance(**{"kind": "planted", "m": 2, "n": 9, **options}), "made", force=True
    ),
}
ANY = {"y", "X", "progress", "note"}
"""Another word for the points and labels, which are of any type; and who is told."""
OPTIONS = [
    (verb, name)
    for verb in VERBS
    for name, each in inspect.signature(getattr(dfeas, verb)).parameters.items()
    if (each.kind is each.KEYWORD_ONLY or verb == "Instance") and name not in ANY
]
ABSURD = [2**20000, -(2**20000), "9" * 5000, "\0", 1e308, Decimal("1e5000"), pd.NA, np.ma.masked, np.array([1, 2])]
"""Beyond what float64, file systems and NumPy take, and without a truth value."""
STRANGE = st.one_of(
    st.integers(-3, 3), st.floats(), st.text(max_size=3), st.binary(max_size=3), st.booleans(), st.none(), st.complex_numbers(),
    st.lists(st.integers(), max_size=2), st.builds(dict), st.builds(object),
    st.just(lambda *given, **named: None), st.just(np.ones((2, 2))), st.sampled_from(ABSURD),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("types")
    dfeas.ingest(X, path / "data", y=LABELS)
    dfeas.solve(path / "data", out=path / "run", intercept=False)
    return path


@pytest.mark.filterwarnings("ignore")
@given(st.sampled_from(OPTIONS), STRANGE)
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_strange_value_is_refused_in_one_line_or_taken(folder: Path, option: tuple[str, str], value: Any) -> None:
    verb, name = option
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with suppress(DfeasError):  # whose text is one line, whatever it quotes
            VERBS[verb](**{name: value})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("verb", VERBS)
def test_absurd_values_of_all_options_are_refused_in_one_line_or_taken(folder: Path, verb: str, monkeypatch: Any) -> None:
    monkeypatch.chdir(folder)
    for name in (name for each, name in OPTIONS if each == verb):
        for value in ABSURD:
            with suppress(DfeasError):
                VERBS[verb](**{name: value})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_passes": 2**20000}, "max_passes=one of type int with thousands of digits: expected a whole number"),
        ({"eps": -(2**20000)}, "eps=one of type int with thousands of digits: expected a number"),
        ({"out": "9" * 300}, "no file can be called that"),
        ({"intercept": "no"}, "intercept='no': expected True or False"),
        ({"callback": 3}, "callback=3: expected a function"),
        ({"out": 5}, "out=5: expected text or a path"),
        ({"max_passes": 0}, "max_passes=0: expected at least 1"),
        ({"max_passes": 1.5}, "max_passes=1.5: expected a whole number"),
        ({"max_passes": True}, "expected a whole number"),
        ({"time_limit": "long"}, "time_limit='long': expected a number"),
        ({"time_limit": -1}, "time_limit=-1: expected a positive number of seconds"),
        ({"method": 3}, "method=3: expected text"),
        ({"method": "newton"}, "unknown method newton; expected auto, "),
        ({"eps": 0}, "eps=0: expected a number from 1e-12, which float64 can prove, to below 1"),
        ({"eps": 2}, "eps=2: expected a number from 1e-12"),
        ({"eps": 1e-17}, "eps=1e-17: expected a number from 1e-12"),
        ({"eps": 1j}, "expected a number"),
        ({"margin_tolerance": 0}, "margin_tolerance=0: expected a number from 1e-6 to below 1"),
        ({"margin_tolerance": 1.0}, "margin_tolerance=1.0: expected a number from 1e-6 to below 1"),
        ({"memory": "1k"}, "memory='1kB' is too little for one block of 48 B: at least memory='"),
        *(({"memory": text}, "expected a size such as 2GB") for text in ("", "GB", "-1GB", "2XB", "1e99", "2 GB 3x")),
    ],
)
def test_what_is_expected_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        dfeas.solve(X, LABELS, **{"intercept": False, **options})
    assert message in str(caught.value)


def test_numbers_of_numpy_are_numbers() -> None:
    found = dfeas.solve(X, LABELS, intercept=np.True_, max_passes=np.int64(9), eps=np.float32(0.01), positive=np.int64(1))
    assert found.verdict == "feasible"


def test_whole_numbers_and_truth_values_of_any_kind_are_taken() -> None:
    X, y = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60) % 2
    plain = dfeas.soft_margin(X, y, C=[1.0, 2.0], folds=3)
    for folds in (3.0, np.float32(3), np.int8(3)):
        assert dfeas.soft_margin(X, y, C=[1.0, 2.0], folds=folds).objective == plain.objective
    assert dfeas.solve([[1.0], [2.0]], [True, False], positive=np.True_).verdict == "feasible"


def test_answers_are_written_to_and_read_from_paths_as_text(folder: Path) -> None:
    answers: list[Any] = [dfeas.solve(X, LABELS), dfeas.soft_margin(X, LABELS), dfeas.suspects(X, LABELS)]
    for answer in answers:
        where = str(folder / type(answer).__name__)
        answer.save(where)
        assert dfeas.load(where).fingerprint == type(answer).load(where).fingerprint == answer.fingerprint
    with pytest.raises(UsageError, match="a folder; give the name of a file"):
        answers[-1].to_csv(folder)
