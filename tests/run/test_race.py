"""Races: the same answers as alone, reads counted once, an end when each has its verdict or at the first, and ranks."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.engine.local import LocalEngine
from dfeas.errors import BadInputError, ClusterLostError, UsageError
from dfeas.methods.protocol import Facts
from dfeas.methods.registry import METHODS
from dfeas.run.driver import Course, run
from dfeas.run.progress.terminal import Scoreboard
from dfeas.run.resources import Limits
from dfeas.run.task import VerdictTask
from dfeas.run.termination import Goal
from tests.checkers import Each
from tests.cli.terminal import Screen
from tests.run.making import RECORD, Clock, Live, events_of, opened

ALL = [name for name in METHODS if name != "working-set-plain"]


def lanes(names: list[str], m: int, n: int, **goal: Any) -> list[VerdictTask]:
    methods = [METHODS[name] for name in names]
    return [VerdictTask(method, method.init(Facts(m, n)), Goal(**goal)) for method in methods]


@pytest.mark.parametrize("kind", ["planted", "one-flip"])
def test_each_method_answers_in_a_race_as_it_does_alone(arrays: Callable[..., Any], kind: str) -> None:
    X, labels = arrays(kind, 6, 500, margin=0.1)
    race = dfeas.race(X, labels, methods=ALL, eps=0.02, memory="4GB")
    assert set(race.results) == set(ALL)
    for name, result in race.results.items():
        alone = dfeas.solve(X, labels, method=name, eps=0.02, memory=4_000_000_000 // len(ALL))
        assert (result.verdict, result.passes, result.iterations) == (alone.verdict, alone.passes, alone.iterations), name
        assert (result.margin_lower, result.margin_upper) == (alone.margin_lower, alone.margin_upper), name
        assert result.success
        assert result.reads == alone.reads
    assert race.reads < sum(result.reads for result in race.results.values())
    assert race.first is not None


def test_names_of_methods_are_a_list_or_text(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("planted", 4, 50, margin=0.1)
    for methods in ("perceptron, winnow", ["perceptron", "winnow"], ("perceptron", "winnow")):
        assert set(dfeas.race(X, labels, methods=methods).results) == {"perceptron", "winnow"}
    alone, solved = dfeas.race(X, labels, methods="perceptron"), dfeas.solve(X, labels, method="perceptron")
    assert [result.margin_lower for result in alone.results.values()] == [solved.margin_lower]


class Counting(LocalEngine):
    """Counts reads."""

    runs = 0

    def run(self, question: Any) -> Any:
        self.runs += 1
        return super().run(question)


def test_what_several_ask_is_read_once(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("halfspace", 20, 2000)
    engine = Counting(opened(X, labels, intercept=False), 1)
    names = ["mirror-prox", "smooth-perceptron", "perceptron", "online-perceptron"]
    course = Course(Limits(max_passes=5), to_the_end=True)
    outcomes, reads = run(engine, lanes(names, 20, 2000), Each(lambda c: None), course)
    assert [outcome.record.passes for outcome in outcomes] == [5] * 4
    assert [outcome.reads for outcome in outcomes] == [5] * 4
    assert engine.runs == reads == 10  # five for three together, five in order


def test_the_first_verdict_may_end_a_race_and_the_others_say_so(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("halfspace", 10, 2000)
    names = ["smooth-perceptron", "working-set", "von-neumann"]
    race = dfeas.race(X, labels, methods=names, first=True, out=tmp_path / "race")
    assert race.first is not None
    stopped = {name: result.stopped for name, result in race.results.items()}
    assert stopped == {"smooth-perceptron": "outrun", "working-set": "verdict", "von-neumann": "outrun"}
    for name, result in race.results.items():
        folder = tmp_path / "race" / name
        assert len(events_of(folder, "pass")) >= result.passes
        assert events_of(folder)[-1]["stopped"] == result.stopped
        values = json.loads((folder / "result.json").read_text())
        assert (values["verdict"], values["method"]) == (result.verdict, name)
        assert values["certificate"] == str(folder / "certificate.npz")
    summary = json.loads((tmp_path / "race" / "race.json").read_text())
    assert (summary["first"], race.first.method, summary["reads"]) == ("working-set", "working-set", race.reads)
    assert {p.name for p in (tmp_path / "race").iterdir()} == {"race.json", *race.results}
    assert [row["method"] for row in dfeas.compare([tmp_path / "race"])] == list(race.results)
    with pytest.raises(BadInputError, match="a race; name the folder of one of its methods"):
        dfeas.verify_run(tmp_path / "race")


def test_a_race_goes_on_to_the_verdict_of_each_and_ranks_them(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("one-flip", 4, 300, margin=0.1)
    names = ["normalized-perceptron", "von-neumann-away", "online-perceptron", "working-set"]
    race = dfeas.race(X, labels, intercept=False, methods=names, eps=0.02, max_passes=5)
    assert not any(result.stopped == "outrun" for result in race.results.values())
    results = list(race.results.values())
    assert [result.verdict for result in results] == ["infeasible", "eps-infeasible", "undecided", "undecided"]
    assert results[2].margin_upper - results[2].margin_lower <= results[3].margin_upper - results[3].margin_lower
    assert race.first is results[0]
    assert [line.split()[0] for line in str(race).splitlines()[1:5]] == [result.method for result in results]
    repeated = dfeas.race(X, labels, intercept=False, methods=names[::-1], eps=0.02, max_passes=5)
    assert list(repeated.results) == list(race.results)


def test_a_separator_that_is_not_as_wide_as_asked_wins_no_race(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("planted", 10, 2000, margin=0.05)
    race = dfeas.race(X, labels, intercept=False, methods=["perceptron", "mirror-prox-one-pass"], margin_tolerance=0.05)
    assert race.first is not None
    assert race.first.method == "mirror-prox-one-pass"
    assert race.first.margin_lower >= 0.95 * race.first.margin_upper
    other = race.results["perceptron"]
    assert (other.verdict, other.stopped) == ("feasible", "stalled")


@pytest.mark.parametrize("reason", [KeyboardInterrupt(), ClusterLostError("gone")], ids=["ctrl-c", "cluster lost"])
def test_an_interrupt_ends_all_with_their_best(arrays: Callable[..., Any], reason: BaseException) -> None:
    class Impatient(Counting):
        def run(self, question: Any) -> Any:
            if self.runs == 6:
                raise reason
            return super().run(question)

    X, labels = arrays("halfspace", 20, 2000)
    engine = Impatient(opened(X, labels, intercept=False), 1)
    both = lanes(["mirror-prox", "smooth-perceptron"], 20, 2000)
    outcomes, reads = run(engine, both, Each(lambda c: None), Course(Limits()))
    assert [outcome.decision.stopped for outcome in outcomes] == ["interrupted"] * 2
    assert [outcome.record.passes for outcome in outcomes] == [6, 6]
    assert all(outcome.certificate is not None for outcome in outcomes)
    assert reads == 6


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        ([], "at least one"),
        (["perceptron", "perceptron"], "each once"),
        (["perceptron", "newton"], "unknown method newton"),
        (5, "expected names, in a list or with commas between them"),
        (["perceptron", None], "expected names, in a list or with commas between them"),
    ],
)
def test_methods_that_make_no_race_are_refused(methods: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        dfeas.race(np.eye(3), [0, 1, 1], methods=methods)


@pytest.mark.parametrize("columns", [60, 120])
def test_the_table_is_redrawn_on_a_terminal_and_repeated_now_and_then_in_a_pipe(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for stream in (Live(), io.StringIO()):
        clock = Clock()
        board = Scoreboard(stream, clock=clock)
        rows = [board.row("one"), board.row("two")]
        for _ in range(10):
            for row in rows:
                clock.now += 1
                row.record(RECORD)
        rows[0].note("check", "fine")
        rows[0].note("stopped", "", verdict="feasible", stopped="verdict")
        rows[1].note("stopped", "", verdict="undecided", stopped="outrun")
        text = stream.getvalue()
        assert "one: fine\n" in text
        assert text.endswith("undecided, outrun\n")
        assert text.count("feasible, verdict") == 1
        if stream.isatty():
            screen = Screen(columns)
            screen.write(text.replace("\n", "\n\r"))
            assert screen.wrapped == 0
            kept = [row.split()[0] for row in screen.rows if row.strip()]
            assert kept == ["one:", "method", "one", "two"]  # the note, and one table
        else:
            assert "\x1b" not in text
            assert text.count("margin lower") == 4 + 1  # every five seconds, and in the end
