"""Where commands write: a name of their own, what is replaced with --force, what is never touched, and settings."""

import json
import os
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask.config
import numpy as np
import pytest

from dfeas import predict, report, solve, verify_certificate, verify_run
from dfeas.errors import UsageError
from dfeas.records import replace
from dfeas.run.resources import Resources
from tests.cli.terminal import generated
from tests.run.making import everything
from tests.typed import dfeas


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated(tmp_path_factory.mktemp("outputs"), 5, 400, 0.05)


@pytest.mark.parametrize(
    "words", [("solve",), ("svm",), ("race", "--methods", "perceptron,working-set"), ("solve", "--one-vs-rest")]
)
def test_a_run_gets_a_name_of_its_own_and_says_it(words: tuple[str, ...], room: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        done = dfeas(*words, room / "yes", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1].split() == ["results", f"yes-run-{number}"]
    assert sorted(os.listdir(tmp_path)) == ["yes-run-1", "yes-run-2"]


def test_a_run_is_replaced_when_the_new_one_is_there(room: Path, tmp_path: Path) -> None:
    words = ("--out", tmp_path / "run", "--json")
    assert json.loads(dfeas("solve", room / "yes", *words).stdout)["verdict"] == "feasible"
    before = everything(tmp_path)
    done = dfeas("solve", room / "no", *words)
    assert done.returncode == 2
    said = json.loads(done.stderr.splitlines()[-1])["error"]
    assert said.endswith("run: exists already; say --force to replace it, or choose another output")
    done = dfeas("solve", room / "nowhere", *words, "--force")
    assert done.returncode == 4
    done = dfeas("solve", room / "no", *words, "--force", "--method", "winow")
    assert done.returncode == 2
    assert everything(tmp_path) == before
    done = dfeas("solve", room / "no", *words, "--force")
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (0, "infeasible")
    assert os.listdir(tmp_path) == ["run"]
    assert dfeas("verify", tmp_path / "run").returncode == 0


@pytest.mark.parametrize("upper", [-0.00214981, -0.0019319, -1e-17, -0.99999, -0.5, -2.5e-8])
def test_the_perturbation_that_is_printed_is_one_that_is_proved(upper: float) -> None:
    found = solve(np.array([[1.0], [2.0], [-1.0], [1.5]]), [1, 1, -1, -1])
    said = next(line for line in str(replace(found, margin_upper=upper)).splitlines() if "remains infeasible" in line)
    percent = Fraction(said.partition("less than ")[2].split(" %")[0])
    assert 0.99 * -upper < percent / 100 <= -Fraction(upper)


def test_settings_hold_for_the_command_line_and_for_python(room: Path, tmp_path: Path, monkeypatch: Any) -> None:
    assert Resources().memory_bytes == 2_000_000_000
    with dask.config.set({"dfeas.memory": "3GB", "dfeas.checkpoint-every": 7}):
        assert (Resources().memory_bytes, Resources().checkpoint_every) == (3_000_000_000, 7.0)
        monkeypatch.setenv("DFEAS_MEMORY", "10kB")
        assert Resources().memory_bytes == 10_000
        assert Resources(memory="1GB").memory_bytes == 1_000_000_000
    done = dfeas("solve", room / "yes", "--out", tmp_path / "a")
    assert (done.returncode, "DFEAS_MEMORY=10kB is too little" in done.stderr) == (2, True)
    assert dfeas("solve", room / "yes", "--out", tmp_path / "a", "--memory", "1GB").returncode == 0
    monkeypatch.delenv("DFEAS_MEMORY")
    monkeypatch.setenv("DFEAS_SCRATCH", str(tmp_path / "tiles"))  # no kernel, no tiles: not in the way
    monkeypatch.setenv("DFEAS_PROGRESS", "0")
    done = dfeas("solve", room / "yes", "--out", tmp_path / "b")
    assert (done.returncode, done.stderr) == (0, "")
    assert "points" in dfeas("solve", room / "yes", "--out", tmp_path / "c", "--progress").stderr
    for wrong in ("often", "nan", "-1"):
        monkeypatch.setenv("DFEAS_CHECKPOINT_EVERY", wrong)
        with pytest.raises(UsageError, match=f"DFEAS_CHECKPOINT_EVERY {wrong}: expected a number from 0 on"):
            Resources()


def test_the_memory_that_is_set_holds_for_what_reads_a_finished_run(room: Path, tmp_path: Path, monkeypatch: Any) -> None:
    run, data = tmp_path / "run", room / "yes"
    solved = solve(data, out=run)
    monkeypatch.setenv("DFEAS_MEMORY", "10kB")
    for call in (
        lambda: verify_run(run),
        lambda: verify_certificate(data, run / "certificate.npz"),
        lambda: predict(run, data),
        lambda: solved.decision_function(data),
    ):
        with pytest.raises(UsageError, match=r"memory='10kB' is too little"):
            call()
    assert "memory=&#39;10kB&#39; is too little" in report(run).read_text()
    assert verify_run(run, memory="1GB").verdict == "feasible"


def test_a_scheduler_of_the_environment_is_used_unless_another_cluster_is_typed(
    room: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("DFEAS_SCHEDULER", "no address")
    began = time.monotonic()
    done = dfeas("solve", room / "yes", "--out", tmp_path / "a")
    assert done.returncode not in (0, 3)
    assert "no address" in done.stderr
    assert time.monotonic() - began < 60
    done = dfeas("solve", room / "yes", "--out", tmp_path / "a", "--scheduler-file", tmp_path / "none.json")
    assert "choose one of" not in done.stderr
    assert "none.json" in done.stderr


def test_a_report_of_the_cluster_replaces_nothing(room: Path, tmp_path: Path) -> None:
    page = tmp_path / "mine.html"
    page.write_text("mine")
    done = dfeas("solve", room / "yes", "--local", "1", "--performance-report", page, cwd=tmp_path)
    assert done.returncode == 2
    assert "exists already; choose another file" in done.stderr
    assert everything(tmp_path) == {"mine.html": b"mine"}


@pytest.mark.parametrize("out", ["list.csv", "list"])
def test_suspects_replace_their_own_list_only(out: str, room: Path, tmp_path: Path) -> None:
    words = ("suspects", room / "no", "--out", tmp_path / out)
    assert dfeas(*words).returncode == 0
    before = everything(tmp_path)
    done = dfeas(*words)
    assert (done.returncode, "exists already; say --force to replace it" in done.stderr) == (2, True)
    assert dfeas("suspects", room / "nowhere", *words[2:], "--force").returncode == 4
    assert everything(tmp_path) == before
    assert dfeas(*words, "--force").returncode == 0
    assert everything(tmp_path).keys() == before.keys()
    mine = tmp_path / "mine.csv"
    mine.write_text("point,name\n")
    done = dfeas(*words[:3], mine, "--force")
    assert (done.returncode, "which --force leaves alone" in done.stderr) == (2, True)
    assert mine.read_text() == "point,name\n"
