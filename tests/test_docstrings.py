"""Public docstrings have numpydoc's sections, name what the signature has, and their examples say what they print."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import dfeas
from dfeas import estimators
from dfeas.analysis.firth import FirthFit
from dfeas.analysis.info import Info
from dfeas.analysis.plan import Plan
from dfeas.analysis.regression.likelihood import Separated, Separations
from dfeas.cli.remote import cancel, fetch, status, submit
from dfeas.cones.prediction import ConePrediction
from dfeas.display import Displayed
from dfeas.geometry.prediction import Prediction
from dfeas.verify.certificate import Check
from tests.records import is_record, names_of

ESTIMATORS = {name: getattr(estimators, name) for name in estimators.__all__}
WITHOUT_NAME = (Check, ConePrediction, FirthFit, Info, Plan, Prediction, Separated, Separations, cancel, fetch, status, submit)
ELSEWHERE = {value.__name__: value for value in WITHOUT_NAME}
"""What the reference has, but for what is an attribute of dfeas."""
CALLABLE = {name: value for name in dfeas.__all__ if callable(value := getattr(dfeas, name))} | ESTIMATORS | ELSEWHERE
ERRORS = {name for name, value in CALLABLE.items() if isinstance(value, type) and issubclass(value, Exception)}
ANSWERS = {name for name, value in CALLABLE.items() if isinstance(value, type) and issubclass(value, Displayed)}
CALLS = {name for name, value in CALLABLE.items() if not isinstance(value, type)}
ON_A_CLUSTER = {"submit", "status", "cancel", "fetch"}
SLOW = {"report"}
"""Its page takes a second or two."""


def sections(name: str) -> dict[str, str]:
    """The sections of a docstring by their titles; what comes before them has none."""
    parts = re.split(r"\n\n([A-Z]\w+)\n(-{3,})\n", f"{inspect.getdoc(CALLABLE[name])}\n")
    assert all(len(title) == len(line) for title, line in zip(parts[1::3], parts[2::3], strict=True)), name
    return {"": parts[0], **dict(zip(parts[1::3], parts[3::3], strict=True))}


def entries(text: str) -> dict[str, list[str]]:
    """Names with what is said of them, their type first."""
    found: dict[str, list[str]] = {}
    group: list[list[str]] = []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            group = [found.setdefault(name, [kind]) for name in names.split(", ")]
        elif line:
            assert line.startswith("    "), line
            for each in group:
                each.append(line.strip())
    return found


def parameters(name: str) -> list[str]:
    each = inspect.signature(CALLABLE[name]).parameters.values()
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(one.kind, "") + one.name for one in each]


@pytest.mark.parametrize("name", sorted(CALLABLE.keys() - ERRORS))
def test_a_docstring_has_its_sections(name: str) -> None:
    found = sections(name)
    order = ["", "Parameters", "Attributes", "Returns", "Raises", "Notes", "References", "Examples"]
    assert list(found) == [title for title in order if title in found], "in numpydoc's order"
    assert found[""].splitlines()[0].endswith((".", ":")) or len(found[""].splitlines()) > 1
    assert "Examples" in found
    if name in ANSWERS:
        own = set(names_of(CALLABLE[name]) if is_record(CALLABLE[name]) else ())
        listed = entries(found.get("Attributes", ""))
        assert set(listed) == own
    else:
        assert list(entries(found.get("Parameters", ""))) == parameters(name), "in the order of the signature"
        listed = entries(found["Parameters"])
    for each, (kind, *text) in listed.items():
        assert kind, f"{each} has a type"
        assert text, f"{each} is described"
    if name in CALLS:
        for title in ("Returns", "Raises"):
            assert all(len(text) > 1 for text in entries(found[title]).values()), title


def test_errors_say_what_they_are() -> None:
    assert len(ERRORS) == 6
    for name in ERRORS:
        assert len((inspect.getdoc(CALLABLE[name]) or "").split()) >= 5


@pytest.mark.parametrize("name", sorted(CALLABLE.keys() - ERRORS))
def test_examples_say_what_they_print(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = sections(name)["Examples"]
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    skipped = [example for example in test.examples if doctest.SKIP in example.options]
    assert bool(skipped) == (name in ON_A_CLUSTER | SLOW)
    assert len(test.examples) > 1 or test.examples[0].want
    assert any(example.want for example in test.examples)
    said: list[str] = []
    failed, _ = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not failed, "".join(said)


def test_the_methods_of_answers_have_sections_too() -> None:
    methods: dict[str, Any] = {"predict": dfeas.Result.predict, "decision_function": dfeas.Result.decision_function}
    for name, method in methods.items():
        text = inspect.getdoc(method) or ""
        assert list(entries(text.split("Parameters\n----------\n")[1].split("\n\n")[0])) == ["X", "memory"], name
        assert "\nReturns\n-------\n" in text
