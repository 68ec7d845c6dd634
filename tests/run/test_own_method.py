"""Methods of the caller: as good as ours, never believed, and in checkpoints as they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.errors import BadInputError, UsageError
from dfeas.methods.perceptron import NormalizedPerceptron, NormalizedPerceptronState
from dfeas.methods.protocol import Bracket, Evidence, Facts, Method, Traits
from dfeas.methods.vector import column, softmin, upper_end
from dfeas.records import replace
from dfeas.reports.compare import Run, load_run
from dfeas.reports.page import list_commands

OURS, MINE = "normalized-perceptron", NormalizedPerceptron(Traits("mine"))


def same(race: dfeas.Race) -> None:
    """Both names of one method have the same answer, with the same bits."""
    ours, mine = race.results[OURS], race.results["mine"]
    assert mine.method == "mine"
    for name in ("verdict", "stopped", "proof", "passes", "reads", "iterations", "margin_lower", "margin_upper"):
        assert getattr(mine, name) == getattr(ours, name), name
    assert mine.evidence is not None
    assert ours.evidence is not None
    assert np.array_equal(mine.evidence.y, ours.evidence.y)
    assert np.array_equal(mine.evidence.weights, ours.evidence.weights)


@pytest.mark.parametrize("kind", ["planted", "one-flip"])
@pytest.mark.parametrize("intercept", [False, True])
def test_it_has_the_answer_of_the_same_method_of_ours(kind: str, intercept: bool, arrays: Callable[..., Any]) -> None:
    X, labels = arrays(kind, 5, 300, margin=0.1)
    for points in (X, sp.csr_array(X)):
        race = dfeas.race(points, labels, methods=[OURS, MINE], intercept=intercept, eps=0.03)
        same(race)
        assert race.reads < sum(result.reads for result in race.results.values())
        assert "it is the caller's" in race.results["mine"].why
        assert "caller" not in race.results[OURS].why
        alone = dfeas.race(points, labels, methods=[MINE], intercept=intercept, eps=0.03)
        assert alone.results["mine"].margin_lower == race.results["mine"].margin_lower


def test_on_a_cluster_it_has_the_same_bits(tmp_path: Path, client: Any) -> None:
    dfeas.generate(dfeas.Instance("planted", 5, 300, 0.1), tmp_path / "data")
    race = dfeas.race(tmp_path / "data", methods=[OURS, MINE], client=client)
    same(race)
    here = dfeas.race(tmp_path / "data", methods=[MINE], client=False)
    assert race.results["mine"].margin_lower == here.results["mine"].margin_lower


@dataclass(frozen=True)
class Liar(NormalizedPerceptron):
    """Shows a direction that separates nothing, and says that it does."""

    traits: Traits = Traits("liar")

    def evidence(self, state: NormalizedPerceptronState) -> Evidence:
        y = np.zeros(len(state.w))  # type: ignore[arg-type]
        y[0] = 1.0
        return Evidence(Bracket(0.9, 0.95, y), None, state.k)


def test_what_it_says_is_not_believed(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("one-flip", 5, 300, margin=0.1)
    race = dfeas.race(X, labels, methods=[Liar()], max_passes=4)
    assert (race.results["liar"].verdict, race.results["liar"].proof, race.first) == ("undecided", "none", None)


@dataclass(frozen=True)
class Mute(NormalizedPerceptron):
    """Knows that no hyperplane has a wide margin, and shows no weights."""

    traits: Traits = Traits("mute")

    def evidence(self, state: NormalizedPerceptronState) -> Evidence:
        return replace(super().evidence(state), gordan=None)


@dataclass(frozen=True)
class Sum:
    """A class of states that no checkpoint knows."""

    w: Any  # a vector
    k: int = 0
    bracket: Bracket = field(default_factory=Bracket)


@dataclass(frozen=True)
class Forgotten(Method[Sum]):
    """Adds the worst column, whatever the space."""

    traits: Traits = Traits("forgotten")

    def init(self, facts: Facts) -> Sum:
        return Sum(facts.zero)

    def ask(self, state: Sum) -> Any:
        return softmin([], [state.w])

    def tell(self, state: Sum, answer: Any) -> Sum:
        bracket = state.bracket.with_separator(state.w, answer.low[0])
        w = state.w + column(answer, 0)
        return Sum(w, state.k + 1, bracket.with_upper(upper_end(w, state.k + 1)))

    def evidence(self, state: Sum) -> Evidence:
        return Evidence(state.bracket, None, state.k)

    def bound(self, facts: Facts, margin: float) -> float:
        return 1 + 1 / margin**2


@dataclass(frozen=True)
class Remembered(Forgotten):
    """The same with a codec."""

    traits: Traits = Traits("remembered")

    def to_values(self, state: Sum) -> Any:
        return vars(state)

    def from_values(self, values: Any) -> Sum:
        return Sum(**values)


ASKED: list[dict[str, Any]] = [
    {},
    {"intercept": False},
    {"kernel": "rbf"},
    {"kernel": dfeas.Kernel("polynomial", degree=2), "transform": ["std", "center"]},
]


@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_solve_by_it_is_that_of_a_race_and_goes_on_to_the_same_bits(
    asked: dict[str, Any], sparse: bool, arrays: Callable[..., Any], tmp_path: Path
) -> None:
    X, labels = arrays("planted", 5, 300, margin=0.1)
    points = sp.csr_array(X) if sparse else X
    asked = {**asked, "transform": "std"} if sparse and "transform" in asked else asked
    whole = dfeas.solve(points, labels, method=Remembered(), **asked)
    assert (whole.verdict, whole.proof, whole.method) == ("feasible", "rigorous", "remembered")
    other = dfeas.race(points, labels, methods=[Forgotten()], **asked).results["forgotten"]
    assert (other.passes, other.margin_lower, other.margin_upper) == (whole.passes, whole.margin_lower, whole.margin_upper)
    early = dfeas.solve(points, labels, method=Remembered(), max_passes=2, out=tmp_path / "run", **asked)
    assert early.stopped == "pass_limit"
    assert early.why.endswith("its bracket is as it says")
    with pytest.raises(UsageError, match="remembered is a method of yours, which the run needs"):
        dfeas.resume(tmp_path / "run", points, labels)
    again = dfeas.resume(tmp_path / "run", points, labels, method=Remembered(), max_passes=10**6)
    assert isinstance(again, dfeas.Result)
    assert again.evidence is not None
    assert whole.evidence is not None
    assert again.passes == whole.passes
    assert again.evidence.y.tobytes() == whole.evidence.y.tobytes()
    assert again.evidence.weights.tobytes() == whole.evidence.weights.tobytes()


def test_with_a_kernel_it_has_the_answer_of_the_same_method_of_ours(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("planted", 5, 300, margin=0.1)
    same(dfeas.race(X, labels, methods=[OURS, MINE], kernel="rbf", eps=0.03))
    every = dfeas.one_vs_rest(X, np.arange(300) % 3, method=MINE, max_passes=9, kernel="rbf")
    ours = dfeas.one_vs_rest(X, np.arange(300) % 3, method=OURS, max_passes=9, kernel="rbf")
    ends = [[(each.margin_lower, each.margin_upper) for each in one.results.values()] for one in (every, ours)]
    assert ends[0] == ends[1]


def test_on_workers_a_kernel_gives_it_the_same_bits(tmp_path: Path, client: Any) -> None:
    dfeas.generate(dfeas.Instance("planted", 5, 300, 0.1), tmp_path / "data")
    options: dict[str, Any] = {"method": Remembered(), "kernel": "rbf", "max_passes": 40}
    there = dfeas.solve(tmp_path / "data", client=client, **options)
    here = dfeas.solve(tmp_path / "data", client=False, **options)
    assert (there.margin_lower, there.margin_upper) == (here.margin_lower, here.margin_upper)


def test_a_race_goes_on_with_all_that_have_a_codec(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("planted", 5, 300, margin=0.1)
    methods: list[Any] = [OURS, MINE, Remembered()]
    whole = dfeas.race(X, labels, methods=methods)
    dfeas.race(X, labels, methods=methods, max_passes=2, out=tmp_path / "race")
    with pytest.raises(UsageError, match="mine is a method of yours"):
        dfeas.resume(tmp_path / "race", X, labels, method=Remembered())
    with pytest.raises(UsageError, match="forgotten is none of its methods"):
        dfeas.resume(tmp_path / "race", X, labels, method=[MINE, Remembered(), Forgotten()])
    with pytest.raises(UsageError, match="method is for methods of your own that the run had, got 'mine'"):
        dfeas.resume(tmp_path / "race", X, labels, method="mine")  # type: ignore[arg-type]
    again = dfeas.resume(tmp_path / "race", X, labels, method=[MINE, Remembered()], max_passes=10**6)
    assert isinstance(again, dfeas.Race)
    same(again)
    assert again.results["remembered"].margin_lower == whole.results["remembered"].margin_lower


def test_a_command_says_where_such_a_run_goes_on(tmp_path: Path) -> None:
    dfeas.generate(dfeas.Instance("planted", 5, 300, 0.01), tmp_path / "data")
    dfeas.solve(tmp_path / "data", method=Remembered(), max_passes=1, out=tmp_path / "run")
    done = CliRunner().invoke(commands, ["resume", str(tmp_path / "run")])
    assert done.exit_code == 2
    assert "remembered is a method of yours, which the run needs; go on in Python: dfeas.resume(RUN, method=..)" in done.output


@dataclass(frozen=True)
class Flat(Forgotten):
    """Makes its vectors by itself."""

    def init(self, facts: Facts) -> Sum:
        return Sum(np.zeros(facts.m))


def test_an_upper_end_without_weights_is_no_verdict(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("one-flip", 5, 300, margin=0.1)
    mute = dfeas.race(X, labels, methods=[OURS, Mute()], eps=0.3).results["mute"]
    assert (mute.verdict, mute.stopped) == ("undecided", "stalled")
    assert mute.message.endswith("its upper end is small, and no weights show that")


def test_a_folder_has_its_run_and_nothing_to_go_on_from(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("planted", 5, 300, margin=0.01)
    np.savez(tmp_path / "data.npz", X=X, y=labels)

    def stop(record: Any) -> bool:
        if record.passes == 3:
            raise KeyboardInterrupt
        return False

    out = tmp_path / "race"
    with pytest.raises(KeyboardInterrupt) as caught:
        dfeas.race(str(tmp_path / "data.npz"), methods=[OURS, Forgotten()], out=out, callback=stop)
    assert "resume" not in str(caught.value)
    assert {path.name for path in out.iterdir()} - {"dfeas.lock"} == {"race.json", OURS, "forgotten"}
    mine = dfeas.load(out / "forgotten")
    assert isinstance(mine, dfeas.Result)
    assert mine.why.endswith("and the run cannot go on later")
    assert [row["method"] for row in mine.trace][-1:] == ["forgotten"]
    with pytest.raises(BadInputError, match="nothing to resume"):
        dfeas.resume(out, X, labels)
    runs: dict[str, Run] = {name: load_run(name, out / name) for name in (OURS, "forgotten")}
    told = {name: " ".join(map(str, list_commands(run).values())) for name, run in runs.items()}
    assert "--method" in told[OURS].replace("'", "")
    assert "--method" not in told["forgotten"]


class Half(Method[Any]):
    """What has only begun to be written."""

    traits = Traits("half")

    def init(self, facts: Facts) -> Any:
        return facts.zero

    def ask(self, state: Any) -> Any:
        return softmin([state])


HALF = Half()
CONES = dfeas.from_scs(np.eye(3), np.ones(3), {"l": 3})
NAME = "expected a name of letters, digits and dashes that no method of dfeas has"
NAMES = ("working-set", "auto", "../mine", "a:b", "a,b", "", "mirror-prox-euclidean")
REFUSED: list[tuple[Any, list[Any], dict[str, Any], str]] = [
    *((np.eye(3), [replace(MINE, traits=Traits(name))], {}, NAME) for name in NAMES),
    (np.eye(3), [MINE, MINE], {}, "methods mine,mine: expected at least one, each once"),
    (np.eye(3), [NormalizedPerceptron], {}, "or methods of your own"),
    (
        np.eye(3),
        [Flat()],
        {"kernel": "rbf"},
        "method forgotten: with a kernel a vector is a combination of points: .* it asked by Softmin",
    ),
    (np.eye(3), [HALF], {}, "method half: it has no tell and no evidence and no bound; a method is a class below"),
    (CONES, [MINE], {}, "on points, not on cones"),
]


@pytest.mark.parametrize(("points", "methods", "options", "said"), REFUSED)
def test_what_makes_no_race_is_refused(points: Any, methods: list[Any], options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        dfeas.race(points, None if points is CONES else [0, 1, 1], methods=methods, **options)


SINGLE: list[tuple[Any, str]] = [
    (
        Forgotten,
        "or a method of your own: an object of a class below dfeas.methods.protocol.Method",
    ),
    ([MINE], "or a method of your own: an object"),
    (None, "method=None: expected text, the name of a method"),
    (HALF, "method half: it has no tell and no evidence and no bound"),
]


@pytest.mark.parametrize(("method", "said"), SINGLE)
def test_what_is_no_method_is_refused(method: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        dfeas.solve(np.eye(3), [0, 1, 1], method=method)


def test_it_begins_from_no_other_run() -> None:
    earlier = dfeas.solve(np.eye(3), [0, 1, 1])
    with pytest.raises(UsageError, match="is for working sets, and the method is mine"):
        dfeas.solve(np.eye(3), [0, 1, 1], method=MINE, start=earlier)
