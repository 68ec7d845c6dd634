"""Where commands write: a name of their own, what is replaced with --force, what is never touched, and settings."""

import json
import os
import time
from pathlib import Path
from typing import Any

import dask.config
import numpy as np
import pytest

from dfeas import predict, report, solve, verify_certificate, verify_run
from dfeas.errors import UsageError
from dfeas.run.resources import Resources
from tests.cli.terminal import generated
from tests.typed import dfeas


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated(tmp_path_factory.mktemp("outputs"), 5, 400, 0.05)


def everything(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


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


def test_a_race_and_classes_are_replaced_with_their_runs(room: Path, tmp_path: Path) -> None:
    for words in (
        ("race", "--methods", "perceptron,working-set"),
        ("solve", "--one-vs-rest"),
        ("solve", "--hard-margin"),
        ("solve", "--separation"),
    ):
        for _ in range(2):
            done = dfeas(*words, room / "yes", "--out", tmp_path / "run", "--force")
            assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path) == ["run"]


def test_what_was_killed_before_its_first_checkpoint_is_replaced(room: Path, tmp_path: Path) -> None:
    for number, names in enumerate(((), ("dfeas.lock",), ("dfeas.lock", "trace.jsonl", "scratch/x.f64"))):
        place = tmp_path / str(number)
        place.mkdir()
        for name in names:
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_text("")
        done = dfeas("solve", room / "yes", "--out", place, "--force")
        assert done.returncode == 0, done.stderr
        assert not (place / "scratch").exists()
        assert (place / "result.json").exists()


@pytest.mark.parametrize("words", [("solve",), ("race", "--methods", "perceptron,working-set")])
def test_what_dfeas_did_not_write_is_left_alone(words: tuple[str, ...], room: Path, tmp_path: Path) -> None:
    def plain(path: Path) -> None:
        path.mkdir()
        (path / "thesis.tex").write_text("years of work")

    def with_notes(path: Path) -> None:
        assert dfeas("solve", room / "yes", "--out", path).returncode == 0
        (path / "notes.txt").write_text("why we ran it")

    def with_vectors(path: Path) -> None:
        (path / "scratch").mkdir(parents=True)
        (path / "scratch" / "mine.txt").write_text("not of a run")
        (path / "dfeas.lock").write_text("")

    def a_dataset(path: Path) -> None:
        assert dfeas("generate", "planted", path, "--features", 3, "--points", 50).returncode == 0

    def a_file(path: Path) -> None:
        path.write_text("text")

    for number, make in enumerate((plain, with_notes, with_vectors, a_dataset, a_file)):
        place = tmp_path / str(number)
        make(place)
        before = everything(tmp_path)
        done = dfeas(*words, room / "yes", "--out", place, "--force")
        assert (done.returncode, done.stdout) == (2, ""), make.__name__
        assert everything(tmp_path) == before
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "0")
    assert dfeas(*words, room / "yes", "--out", link, "--force").returncode == 2
    assert link.is_symlink()


def test_a_dataset_is_replaced_whole_or_not_at_all(room: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    np.savez(tmp_path / "good.npz", X=rng.standard_normal((90, 4)), y=np.arange(90) % 2)
    np.savez(tmp_path / "bad.npz", X=np.full((90, 4), np.nan), y=np.arange(90) % 2)
    assert dfeas("ingest", "good.npz", "data", cwd=tmp_path).returncode == 0
    before = everything(tmp_path)
    assert dfeas("ingest", "bad.npz", "data", "--force", cwd=tmp_path).returncode == 4
    assert everything(tmp_path) == before
    done = dfeas("generate", "planted", "data", "--features", 3, "--points", 50, "--force", "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["n"]) == (0, 50)
    assert sorted(os.listdir(tmp_path)) == ["bad.npz", "data", "good.npz"]
    assert dfeas("generate", "planted", "good.npz", "--features", 3, "--points", 50, "--force", cwd=tmp_path).returncode == 2
    assert (tmp_path / "good.npz").read_bytes() == before["good.npz"]


def test_sparse_data_and_cones_are_known(tmp_path: Path) -> None:
    sparse = ("planted", "--features", 30, "--points", 80, "--density", 0.2)
    for words in (sparse, ("cones", "--features", 6, "--cones", "l:10,q:4x8")):
        for _ in range(2):
            done = dfeas("generate", words[0], "data", *words[1:], "--force", cwd=tmp_path)
            assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path) == ["data"]


def test_scores_are_replaced_and_no_other_file(room: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert dfeas("solve", room / "yes", "--out", run).returncode == 0
    for name, content, code in (
        ("scores.npy", None, 0),
        ("scores.npy", None, 0),
        ("table.csv", "a,b\n", 2),
        ("fake.npy", "a", 2),
    ):
        path = tmp_path / name
        if content is not None:
            path.write_text(content)
        done = dfeas("predict", run, room / "yes", path, "--force")
        assert done.returncode == code, done.stderr
        assert content is None or path.read_text() == content
    assert len(np.load(tmp_path / "scores.npy")) == 400
    assert dfeas("predict", run, room / "yes", tmp_path / "scores.npy").returncode == 2


def test_settings_hold_for_the_command_line_and_for_python(room: Path, tmp_path: Path, monkeypatch: Any) -> None:
    assert Resources().memory_bytes == 2_000_000_000
    with dask.config.set({"dfeas.memory": "3GB", "dfeas.checkpoint-every": 7}):
        assert (Resources().memory_bytes, Resources().checkpoint_every) == (3_000_000_000, 7.0)
        monkeypatch.setenv("DFEAS_MEMORY", "10kB")
        assert Resources().memory_bytes == 10_000
        assert Resources(memory="1GB").memory_bytes == 1_000_000_000
    done = dfeas("solve", room / "yes", "--out", tmp_path / "a")
    assert (done.returncode, "--memory 9.77kiB is too little" in done.stderr) == (2, True)
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
        with pytest.raises(UsageError, match=r"memory='9\.77kiB' is too little"):
            call()
    assert "memory=&#39;9.77kiB&#39; is too little" in report(run).read_text()
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
