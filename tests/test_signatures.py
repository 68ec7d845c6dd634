"""What editors and type checkers read of the public calls is what the calls are, and says what comes back."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import dfeas

ROOT = Path(__file__).parents[1]
CALLS = """
import dfeas
X = [[1.0, 2.0]]
reveal_type(dfeas.solve(X, [1]))
reveal_type(dfeas.solve(X, [1], one_vs_rest=True))
reveal_type(dfeas.soft_margin(X, [1], C=2.0))
dfeas.solve(X, [1], scale="stdd")
dfeas.solve(X, [1], intercpt=True)
"""


def test_the_written_signatures_are_those_of_the_calls() -> None:
    checked = subprocess.run([sys.executable, ROOT / "scripts" / "signatures", "--check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_type_checker_knows_what_comes_back_and_which_options_there_are(tmp_path: Path) -> None:
    (tmp_path / "calls.py").write_text(CALLS)
    words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), str(tmp_path / "calls.py")]
    lines = subprocess.run(words, capture_output=True, text=True, cwd=ROOT).stdout.splitlines()
    types = [line.partition("type is ")[2].strip('"').rpartition(".")[2] for line in lines if "Revealed type" in line]
    assert types == ["Result", "OneVsRest", "SoftMarginResult"]
    errors = [line for line in lines if " error: " in line]
    assert {line.split(":")[1] for line in errors} == {"7", "8"}, errors
    assert any('did you mean "intercept"' in line for line in errors)


def test_every_public_call_spells_out_its_options() -> None:
    calls = [value for value in (getattr(dfeas, name) for name in dfeas.__all__) if callable(value)]
    hidden = [each for each in calls if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(each).parameters.values())]
    assert len(calls) > 30
    assert not hidden


MISTAKES: dict[str, tuple[tuple[object, ...], str]] = {
    "in_hull": (([0.0], [[1.0]]), "max_pases"),
    "check_separation": (([[1.0]], [1]), "time_limits"),
    "verify_certificate": (("data", "certificate.npz"), "intercpt"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_an_option_that_there_is_not_is_said(name: str) -> None:
    given, option = MISTAKES[name]
    with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument '{option}'; did you mean"):
        getattr(dfeas, name)(*given, **{option: 1})
