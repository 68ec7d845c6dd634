"""Methods of the caller in a race: as good as ours, never believed, in no checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dfeas
from dfeas.errors import BadInputError, UsageError
from dfeas.methods.perceptron import NormalizedPerceptron, NormalizedPerceptronState
from dfeas.methods.protocol import Bracket, Evidence, Traits
from dfeas.reports.compare import Run, load_run
from dfeas.reports.page import list_commands
from tests.records import replace

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
        dfeas.race(str(tmp_path / "data.npz"), methods=[OURS, MINE], out=out, callback=stop)
    assert "resume" not in str(caught.value)
    assert {path.name for path in out.iterdir()} - {"dfeas.lock"} == {"race.json", OURS, "mine"}
    assert [row["method"] for row in dfeas.load(out / "mine").trace][-1:] == ["mine"]  # type: ignore[union-attr]
    with pytest.raises(BadInputError, match="nothing to resume"):
        dfeas.resume(out, X, labels)
    runs: dict[str, Run] = {name: load_run(name, out / name) for name in (OURS, "mine")}
    commands = {name: " ".join(map(str, list_commands(run).values())) for name, run in runs.items()}
    assert "--method" in commands[OURS].replace("'", "")
    assert "--method" not in commands["mine"]


CONES = dfeas.from_scs(np.eye(3), np.ones(3), {"l": 3})
NAME = "expected a name of letters, digits and dashes that no method of dfeas has"
NAMES = ("working-set", "auto", "../mine", "a:b", "a,b", "", "mirror-prox-euclidean")
REFUSED: list[tuple[Any, list[Any], dict[str, Any], str]] = [
    *((np.eye(3), [replace(MINE, traits=Traits(name))], {}, NAME) for name in NAMES),
    (np.eye(3), [MINE, MINE], {}, "methods mine,mine: expected at least one, each once"),
    (np.eye(3), [NormalizedPerceptron], {}, "or methods of your own"),
    (
        np.eye(3),
        [MINE],
        {"kernel": "rbf"},
        "methods mine: those of your own work on points without a kernel, not with a kernel",
    ),
    (CONES, [MINE], {}, "on points without a kernel, not on cones"),
]


@pytest.mark.parametrize(("points", "methods", "options", "said"), REFUSED)
def test_what_makes_no_race_is_refused(points: Any, methods: list[Any], options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        dfeas.race(points, None if points is CONES else [0, 1, 1], methods=methods, **options)
