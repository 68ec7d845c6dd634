"""Lists of suspects as runs: read back, checked against the data, and refused where they say something else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from tests.analysis.making import forged

X = np.random.default_rng(0).standard_normal((300, 4))
Y = X @ [1.0, 2.0, -1.0, 0.5] > 0
Y[[3, 77, 150]] ^= True


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suspects")
    dfeas.ingest(X, folder / "data", y=np.where(Y, "spam", "ham"))
    dfeas.suspects(str(folder / "data"), out=folder / "run")
    return folder / "run"


def forge(run: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    return forged(run, change, "suspects.json")


def test_what_is_read_back_is_what_was_found(run: Path) -> None:
    found = dfeas.suspects(str(run.parent / "data"))
    loaded: Any = dfeas.load(run)
    assert (loaded.points, loaded.enough, loaded.at_least) == (found.points, found.enough, found.at_least)
    assert found.verify().message == loaded.verify().message == dfeas.verify_run(run).message
    assert "without 3 points a hyperplane separates the other 297" in found.verify().message


def test_data_in_memory_is_given_again(tmp_path: Path) -> None:
    dfeas.suspects(X, Y, out=tmp_path / "run")
    loaded: Any = dfeas.load(tmp_path / "run")
    with pytest.raises(dfeas.BadInputError, match="give it again"):
        loaded.verify()
    assert loaded.verify(X, Y).points == 300
    with pytest.raises(dfeas.CorruptDataError):
        loaded.verify(X + 1, Y)


def test_numbers_are_those_of_points_without_a_mask(tmp_path: Path) -> None:
    kept = np.arange(300) % 5 != 1
    dfeas.suspects(X, Y, mask=kept, out=tmp_path / "run")
    loaded: Any = dfeas.load(tmp_path / "run")
    assert {each["point"] for each in loaded.points} <= {*np.flatnonzero(kept).tolist()}
    assert "separates the other" in loaded.verify(X, Y, mask=kept).message


def test_separable_data_has_no_suspects(tmp_path: Path) -> None:
    found = dfeas.suspects(X, X[:, 0] > 0, out=tmp_path / "run")
    proved = dfeas.verify_run(tmp_path / "run", X, X[:, 0] > 0)
    assert (found.enough, proved.verdict) == (0, "feasible")


def drop_one(values: dict[str, Any]) -> None:
    values["points"].pop(0)
    values["enough"] -= 1


def reuse(values: dict[str, Any]) -> None:
    values["conflicts"][1], values["weights"][1] = values["conflicts"][0], values["weights"][0]


def lengthen(values: dict[str, Any]) -> None:
    values["conflicts"].append(values["conflicts"][0])
    values["weights"].append(values["weights"][0])
    values["at_least"] += 1


def test_a_point_of_another_number_is_not_a_second_one(tmp_path: Path) -> None:
    """Both conflicts of the list have point 0: without it the others are separated."""
    dfeas.ingest(np.ones((3, 1)), tmp_path / "data", y=[1, 0, 0])
    dfeas.suspects(str(tmp_path / "data"), intercept=False, out=tmp_path / "run")
    for other in (-1, 3, 2**40):
        lie = {"conflicts": [[0, 1], [other, 2]], "weights": [[0.5, 0.5]] * 2, "at_least": 2}
        with pytest.raises(dfeas.CheckFailedError, match="a common point, or one that the data has not"):
            dfeas.verify_run(forge(tmp_path / "run", lambda values, lie=lie: values.update(lie)))


def test_a_point_that_the_mask_leaves_out_is_in_no_conflict(tmp_path: Path) -> None:
    kept = np.array([False, True, True, True])
    X, y = np.ones((4, 1)), np.array([1, 1, 0, 0])
    dfeas.suspects(X, y, mask=kept, intercept=False, out=tmp_path / "run")
    run = forge(tmp_path / "run", lambda values: values.update(conflicts=[[0, 2]], weights=[[0.5, 0.5]], at_least=1))
    with pytest.raises(dfeas.CheckFailedError, match="one that the data has not"):
        dfeas.verify_run(run, X, y, mask=kept)


def test_a_list_that_a_limit_ended_proves_no_verdict(run: Path) -> None:
    found = dfeas.suspects(str(run.parent / "data"), time_limit=1e-9)
    assert (found.at_least, found.enough > 0, found.verify().verdict) == (0, True, "undecided")


FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "fewer are enough": drop_one,
    "another number": lambda values: values.update(enough=2),
    "another point": lambda values: values["points"][0].update(point=5),
    "another label": lambda values: values["points"][0].update(label="neither"),
    "no flip": lambda values: values["points"][0].update(flip=False),
    "another hyperplane": lambda values: values.update(y=[-each for each in values["y"]]),
    "a conflict twice": reuse,
    "one conflict more": lengthen,
    "more have to go": lambda values: values.update(at_least=4),
    "weights of others": lambda values: values["weights"].reverse() or values["weights"][0].append(0.0),
    "a shorter hyperplane": lambda values: values["y"].pop(),
    "weights that do not cancel": lambda values: values["weights"][0].__setitem__(0, 0.9),
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_list_proves_nothing(kind: str, run: Path) -> None:
    with pytest.raises((dfeas.CheckFailedError, dfeas.CorruptDataError)):
        dfeas.verify_run(forge(run, FORGED[kind]))


@pytest.mark.parametrize("change", [{"y": "no"}, {"points": [{}]}, {"stopped": "never"}, {"n": None}, {"conflicts": [3]}])
def test_a_damaged_list_is_said(change: dict[str, Any], run: Path) -> None:
    with pytest.raises(dfeas.CorruptDataError):
        dfeas.load(forge(run, lambda values: values.update(change)))


def test_a_name_of_a_table_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(dfeas.UsageError, match="call to_csv"):
        dfeas.suspects(X, Y, out=tmp_path / "found.CSV")
    assert not [*tmp_path.iterdir()]


def test_commands_take_the_folder(run: Path) -> None:
    def say(*words: object) -> tuple[int, str]:
        done = CliRunner().invoke(commands, [*map(str, words)])
        return done.exit_code, done.output

    data, again = run.parent / "data", run.parent / "again"
    assert say("suspects", data, "--out", again)[0] == 0
    assert "at least 3 have to go" in say("verify", again)[1]
    assert say("resume", again) == (0, f"{again} is finished\n")
    assert "a list of suspects, which has no verdict" in say("report", again)[1]
    assert say("suspects", data, "--out", again)[0] == 2
    assert say("suspects", data, "--label-column", "no", "--out", run.parent / "new")[0] == 4
    assert not (run.parent / "new").exists()


def test_the_first_lines_say_who_is_suspect_and_what_it_takes() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 6))
    y = np.where(X @ rng.standard_normal(6) > 0, "yes", "no")
    wrong = rng.choice(3000, 6, replace=False)
    for count in (0, 1, 3, 6):
        labels = y.copy()
        labels[wrong[:count]] = np.where(y[wrong[:count]] == "yes", "no", "yes")
        found = dfeas.suspects(X, labels)
        assert (found.enough, found.at_least) == (count, count)
        listed = len(found.points)
        first, second = str(found).splitlines()[:2]
        if not count:
            assert first.startswith("suspects     none has to go: a hyperplane separates all points (proved)")
            continue
        needed = [str(each["point"]) for each in found.points if each["needed"]]
        names = "the first 6 of them" if count == 6 else needed[0] if count == 1 else "{}, {} and {}".format(*needed)
        are = "points is" if listed == 1 else "points are"
        assert first == (
            f"suspects     {listed} of 3000 {are} suspect; without {names} a hyperplane separates the others (proved)"
        )
        assert second.strip() == f"at least {count} {'has' if count == 1 else 'have'} to go (proved)"
        assert str(found).splitlines()[2].split() == ["point", "name", "label", "score", "remove", "relabel"]
