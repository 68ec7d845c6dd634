"""Limits of time and signals end what takes long, within two seconds and a step: searches, reads, checks. Runs go on later."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.linalg.blas import beat
from dfeas.run import solver_thread
from dfeas.run.exact import search
from dfeas.run.session import Checking
from tests.run.making import run_until

BEYOND = np.array([[1.0, 1.0 + 2**-52], [1.0 + 2**-52, 1.0 + 2**-51]])
"""Points that only integers separate, through the origin."""


def go_on_and_on(points: Any, **options: Any) -> Any:
    while True:
        beat()


def test_a_time_limit_ends_the_exact_search_and_the_run_can_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"intercept": False, "out": tmp_path / "run"}
    with monkeypatch.context() as endless:
        endless.setattr(search, "partition", go_on_and_on)
        began = time.monotonic()
        cut = dfeas.solve(BEYOND, [1, -1], time_limit=1.0, **options)
        assert time.monotonic() - began < 1 + 2 + 12  # and what a busy machine takes
    assert (cut.verdict, cut.stopped) == ("undecided", "time_limit")
    assert cut.seconds >= 1
    whole = dfeas.resume(tmp_path / "run", BEYOND, [1, -1], time_limit=600.0)
    assert (whole.verdict, whole.proof, len(whole.evidence.integers)) == ("feasible", "exact", 2)


@pytest.mark.parametrize("when", ["read", "check"])
def test_a_long_read_ends_and_the_run_has_the_same_bits_later(
    when: str, dataset: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = dataset("halfspace", 10, 50_000)
    options: dict[str, Any] = {"method": "smooth-perceptron", "max_passes": 40, "eps": 0.1}
    whole, asked = dfeas.solve(path, **options), False
    check = Checking.__call__

    def look(self: Checking, certificates: Any) -> Any:
        nonlocal asked
        asked = True
        beat()
        return check(self, certificates)

    with monkeypatch.context() as late:
        late.setattr(solver_thread, "GRACE", -1.0)
        late.setattr(Checking, "__call__", look)
        calls = iter(range(8))
        stop = (lambda: asked) if when == "check" else (lambda: next(calls, None) is None)
        cut = run_until(stop, dfeas.solve, path, out=tmp_path / "run", **options)
        assert (cut.verdict, cut.stopped) == ("undecided", "interrupted")
        assert asked == (when == "check")
    resumed = dfeas.resume(tmp_path / "run")
    assert (resumed.verdict, resumed.passes) == (whole.verdict, whole.passes)
    assert whole.verdict != "undecided"
    assert (resumed.margin_lower, resumed.margin_upper) == (whole.margin_lower, whole.margin_upper)
