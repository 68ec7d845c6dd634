"""A solver in memory has a thread of its own, and nobody waits for it longer than asked."""

import io
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.engine.signals import LEFT_BEHIND
from dfeas.linalg.blas import beat
from dfeas.methods.protocol import AnyMethod, Wrapping
from dfeas.methods.registry import METHODS
from dfeas.run import solver_thread
from dfeas.run.progress.terminal import Terminal
from dfeas.run.solver_thread import Abandoned, run_solver, run_solver_here
from tests.run.making import run_until


def never() -> bool:
    return False


def ignore(text: str, seconds: float) -> None:
    pass


def solvers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == LEFT_BEHIND]


def test_what_it_returns_or_raises_comes_back() -> None:
    def failing() -> None:
        raise TimeoutError("of its own")

    assert run_solver(lambda: 7, never, ignore) == 7
    with pytest.raises(TimeoutError, match="of its own"):
        run_solver(failing, never, ignore)


def test_one_that_nobody_waits_for_ends_at_its_next_step() -> None:
    said, go_on, reached = [], threading.Event(), []

    def solver() -> None:
        beat("so far")
        assert go_on.wait(60)
        beat()
        reached.append("the end")

    def stop() -> bool:
        return bool(said)

    with pytest.raises(Abandoned):
        run_solver(solver, stop, lambda text, seconds: said.append(text))
    (left,) = solvers()
    go_on.set()
    left.join(60)
    assert not left.is_alive()
    assert said == ["so far"]
    assert not reached


def test_one_in_the_thread_of_the_loop_ends_at_a_step_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def solver() -> None:
        while True:
            beat()

    assert run_solver_here(lambda: 7, never) == 7
    monkeypatch.setattr(solver_thread, "LOOK_SECONDS", 0.001)
    with pytest.raises(Abandoned):
        run_solver_here(solver, lambda: True)


@dataclass(frozen=True)
class Endless(Wrapping):
    """A method whose solver has not ended when it is asked for the last time."""

    method: AnyMethod
    asked: list[int]
    separated: bool = False  # not before it has a separator

    def tell(self, state: Any, answer: Any) -> Any:
        after = self.method.tell(state, answer)
        self.asked.append(len(self.asked))
        while len(self.asked) > 1 and (not self.separated or after.bracket.lower > 0):
            beat("on and on")
        return after


@pytest.mark.parametrize("limit", [False, True])
def test_a_run_ends_while_its_solver_works_and_goes_on_from_the_read_before(
    limit: bool, dataset: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = dataset("halfspace", 10, 50_000)  # more than are solved at once
    plain, asked = METHODS["working-set-plain"], []
    whole = dfeas.solve(path, method="working-set-plain")
    monkeypatch.setitem(METHODS, "working-set-plain", Endless(plain, asked))
    stop = (lambda: False) if limit else (lambda: len(asked) > 1)
    options: dict[str, Any] = {"out": tmp_path / "run", "time_limit": 2.0 if limit else None}
    cut = run_until(stop, dfeas.solve, path, method="working-set-plain", **options)
    assert (cut.verdict, cut.stopped) == ("undecided", "time_limit" if limit else "interrupted")
    assert len(asked) == 2
    monkeypatch.setitem(METHODS, "working-set-plain", plain)
    resumed = dfeas.resume(tmp_path / "run", **({"time_limit": 600.0} if limit else {}))
    assert resumed.verdict == whole.verdict == "feasible"
    assert resumed.passes == whole.passes
    assert np.array_equal(resumed.separator, whole.separator)


def test_a_separator_proved_on_the_last_read_outlives_a_solver_that_looks_for_a_wider_one(
    dataset: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = dataset("halfspace", 10, 20_000)
    asked: list[int] = []
    monkeypatch.setitem(METHODS, "working-set-plain", Endless(METHODS["working-set-plain"], asked, True))
    cut = dfeas.solve(path, method="working-set-plain", margin_tolerance=1e-3, time_limit=3.0)
    assert (cut.verdict, cut.stopped, cut.proof) == ("feasible", "time_limit", "rigorous")
    assert cut.margin_lower > 0


def test_a_terminal_shows_how_far_it_is() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream, lambda records: 0.0, every=0.0)
    terminal.show_solver("32000 columns, step 7", 0.1)
    assert not stream.getvalue()
    terminal.show_solver("32000 columns, step 7", 12.3)
    assert stream.getvalue() == "solver in memory: 32000 columns, step 7, 12 s\n"
