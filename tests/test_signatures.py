"""What editors and type checkers read of the public calls is what the calls are."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import dfeas

ROOT = Path(__file__).parents[1]


def test_the_written_signatures_are_those_of_the_calls() -> None:
    checked = subprocess.run([sys.executable, ROOT / "scripts" / "signatures", "--check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


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
