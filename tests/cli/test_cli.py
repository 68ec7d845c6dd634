"""From the command line: both engines, both verdicts, every method, kills, bad input.

Commands run in this process; in one of their own where kills, clusters of their own, pipes or the start of it are tested.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from dfeas.analysis.info import info
from dfeas.data.generate.points import Instance
from dfeas.methods.registry import METHODS
from tests.cli.making import require_refused, start, wait_for
from tests.run.making import everything
from tests.typed import apart, dfeas


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with separable points, some with a wrong label, and a few of a thin margin, made by the command line."""
    path = tmp_path_factory.mktemp("cli")
    for kind, name, features, points in (
        ("planted", "yes", 20, 30_000),
        ("one-flip", "no", 20, 30_000),
        ("halfspace", "thin", 5, 3000),
    ):
        done = dfeas("generate", kind, name, "--features", features, "--points", points, "--margin", 0.05, cwd=path)
        assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize(
    ("method", "data", "verdict"),
    [
        ("auto", "yes", "feasible (rigorous)"),
        ("auto", "no", "infeasible (exact)"),
        ("mirror-prox", "yes", "feasible (rigorous)"),
        ("ispvn", "no", "eps-infeasible (rigorous)"),
    ],
)
def test_generate_solve_verify(room: Path, tmp_path: Path, method: str, data: str, verdict: str) -> None:
    run = tmp_path / "run"
    done = dfeas("solve", data, "--out", run, "--method", method, "--eps", 0.03, "--json", cwd=room)
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)
    assert (f"{values['verdict']} ({values['proof']})", values["stopped"]) == (verdict, "verdict")
    assert json.loads((run / "trace.jsonl").read_text().splitlines()[-1])["verdict"] == values["verdict"]
    assert json.loads(dfeas("verify", run, "--json").stdout)["verdict"] == values["verdict"]
    separate = dfeas("verify", data, run / "certificate.npz", cwd=room)
    assert (separate.returncode, f"proved       {verdict}" in separate.stdout) == (0, True), separate.stderr


@pytest.mark.parametrize(
    ("features", "points", "words"),
    [
        (150, 2000, ("--kernel", "rbf", "--gamma", 0.01)),
        (20_000, 60, ("--method", "von-neumann", "--max-passes", 20)),  # from 10,001 entries on OpenBLAS shares out a product
    ],
    ids=["kernel", "wide"],
)
def test_threads_of_blas_change_no_bit(tmp_path: Path, features: int, points: int, words: tuple[Any, ...]) -> None:
    assert dfeas("generate", "gaussian", "data", "--features", features, "--points", points, cwd=tmp_path).returncode == 0
    found = []
    for threads in ("1", "2"):
        with patch.dict(os.environ, OPENBLAS_NUM_THREADS=threads):
            done = apart("solve", "data", "--out", threads, *words, "--json", cwd=tmp_path)
        ends = json.loads(done.stdout)
        found.append((ends["margin_lower"], ends["margin_upper"], (tmp_path / threads / "certificate.npz").read_bytes()))
    assert found[0] == found[1]


def test_a_cluster_of_its_own_and_one_by_scheduler_file(room: Path, tmp_path: Path, client: Any) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps(client.scheduler_info()["address"] and {"address": client.scheduler.address}))
    for name, option in (("a", ("--local", 2)), ("b", ("--scheduler-file", file))):
        done = apart("solve", "yes", "--out", tmp_path / name, *option, "--json", cwd=room)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["verdict"] == "feasible"
    wrong = dfeas("solve", "yes", "--out", tmp_path / "c", "--local", 2, "--scheduler-file", file, cwd=room)
    assert wrong.returncode == 2


def test_stdout_is_the_result_only_and_a_pipe_has_no_colours(room: Path, tmp_path: Path) -> None:
    done = apart("solve", "yes", "--out", tmp_path / "run", cwd=room)
    assert done.stdout.startswith("verdict      feasible (proof: rigorous)\n")
    assert re.search(r"^pass \d", done.stderr, re.MULTILINE)  # the last one, if not all
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stdout + done.stderr


def test_a_race_prints_a_table_and_leaves_a_run_of_each(room: Path, tmp_path: Path) -> None:
    out = tmp_path / "race"
    done = dfeas("race", "yes", "--out", out, "--methods", "mirror-prox, perceptron,ispvn", cwd=room)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sorted(line.split()[:3] for line in lines[1:4]) == [
        [name, "feasible", "verdict"] for name in ("ispvn", "mirror-prox", "perceptron")
    ]
    passes = [float(line.split()[4]) for line in lines[1:4]]
    assert passes == sorted(passes)
    assert lines[4].endswith("reads of the data for all of them; seconds count from their common beginning")
    assert dfeas("verify", out / "ispvn").returncode == 0
    short = dfeas("race", "no", "--out", tmp_path / "b", "--methods", "mirror-prox,perceptron", "--max-passes", 1, cwd=room)
    assert short.returncode == 3


def test_the_version_and_the_dask_plug_in() -> None:
    assert dfeas("--version").stdout.startswith("dfeas, version 0.1")
    plugged = [sys.executable, "-m", "dask", "dfeas", "info", "nowhere"]
    done = subprocess.run(plugged, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr == f"dfeas: error: {Path('nowhere').absolute()}: no such file or folder\n"


def test_a_plan_is_a_table_or_json(room: Path) -> None:
    done = dfeas("plan", "yes", cwd=room)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "yes: 30000 points of 20 features, 2.29 MiB"
    assert lines[2] == "memory keeps the data: a later pass reads nothing from storage"
    assert [line.split()[0] for line in lines[5 : 5 + len(METHODS)]] == list(METHODS)
    assert lines[5].endswith("this is auto")
    values = json.loads(dfeas("plan", "yes", "--method", "perceptron", "--json", cwd=room).stdout)
    assert values["n"] == 30000
    assert [e["method"] for e in values["estimates"]] == ["perceptron"]


def test_conflicting_points_are_shown(room: Path, tmp_path: Path) -> None:
    done = dfeas("solve", "no", "--out", tmp_path / "no", cwd=room)
    assert done.returncode == 0, done.stderr
    flipped = Instance("one-flip", 20, 30_000, 0.05).wrong_point
    shown = [line.split() for line in done.stdout.splitlines() if line.startswith("             point")]
    assert shown[0][1] == str(flipped)
    assert "conflict     " in done.stdout
    assert json.loads((tmp_path / "no" / "result.json").read_text())["conflicts"][0]["point"] == flipped


def test_a_separator_that_is_not_as_wide_as_asked_is_exit_code_3(room: Path, tmp_path: Path) -> None:
    words = ("--method", "perceptron", "--margin-tolerance", 1e-5)
    done = dfeas("solve", "yes", "--out", tmp_path / "limit", *words, cwd=room)
    assert (done.returncode, done.stdout.startswith("verdict      feasible (proof: rigorous)")) == (3, True)
    assert done.stderr.endswith("no further pass can help: no point is a mistake any more, and nothing else is corrected\n")
    assert dfeas("verify", tmp_path / "limit").returncode == 0


def test_a_limit_is_exit_code_3_and_leaves_a_result(room: Path, tmp_path: Path) -> None:
    words = ("--method", "mirror-prox", "--max-passes", 2, "--json")
    done = dfeas("solve", "no", "--out", tmp_path / "run", *words, cwd=room)
    assert done.returncode == 3
    assert json.loads(done.stdout)["stopped"] == "pass_limit"
    checked = dfeas("verify", tmp_path / "run")
    assert (checked.returncode, checked.stdout) == (3, "")
    assert "the run ended undecided (pass_limit): it claims nothing to check" in checked.stderr


def test_counts_are_read_as_people_write_them(tmp_path: Path) -> None:
    for index, count in enumerate(("1e3", "1000", "1.0E+3")):
        done = dfeas("generate", "gaussian", tmp_path / str(index), "--features", 2, "--points", count, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert info(tmp_path / str(index)).n == 1000
    for count in ("1e-3", "1.5", "nan", "1e400", "many"):
        refused = dfeas("generate", "gaussian", "out", "--features", 2, "--points", count, cwd=tmp_path)
        require_refused(refused, 2, f"'{count}' is not a valid integer")
    narrow = ("--features", 1, "--points", 100, "--dtype")
    require_refused(
        dfeas("generate", "halfspace", "out", *narrow, "uint8", cwd=tmp_path), 2, "no plane parts one feature in uint8"
    )
    assert dfeas("generate", "halfspace", "out", *narrow, "float32", cwd=tmp_path).returncode == 0


def test_corrupt_data_is_exit_code_5(room: Path, tmp_path: Path) -> None:
    shutil.copytree(room / "thin", tmp_path / "data")
    assert dfeas("solve", "data", "--out", "run", cwd=tmp_path).returncode == 0
    chunk = sorted((tmp_path / "data" / "X").glob("c.*"))[0]
    intact = chunk.read_bytes()
    chunk.write_bytes(intact[:1000] + bytes([intact[1000] ^ 1]) + intact[1001:])
    require_refused(dfeas("solve", "data", "--out", "run2", cwd=tmp_path), 5, "chunk 0 of X is damaged")
    require_refused(dfeas("verify", "run", cwd=tmp_path), 5)
    chunk.unlink()
    require_refused(dfeas("solve", "data", "--out", "run2", cwd=tmp_path), 5, "missing")
    assert not (tmp_path / "run2" / "result.json").exists()


def test_a_certificate_that_proves_nothing_is_exit_code_6(room: Path, tmp_path: Path) -> None:
    assert dfeas("solve", "thin", "--out", tmp_path / "run", cwd=room).returncode == 0
    with np.load(tmp_path / "run" / "certificate.npz") as arrays:
        fields = {name: arrays[name] for name in arrays}
    np.savez(tmp_path / "run" / "certificate.npz", **{**fields, "y": -fields["y"]})
    require_refused(dfeas("verify", tmp_path / "run"), 6, "not a separator")
    np.savez(tmp_path / "run" / "certificate.npz", **fields)
    result = tmp_path / "run" / "result.json"
    result.write_text(json.dumps({**json.loads(result.read_text()), "fingerprint": "0"}))
    require_refused(dfeas("verify", tmp_path / "run"), 6, "fingerprint")
    result.write_text(result.read_text()[:50])
    require_refused(dfeas("verify", tmp_path / "run"), 5, "not a readable result")


def test_ingest_of_a_table_says_what_it_wrote(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i / 3},{'yes' if i < 9 else 'no'}\n" for i in range(40))
    (tmp_path / "a.csv").write_text(f"age,weight,sick\n{rows}")
    done = dfeas("ingest", "a.csv", "data", "--label-column", "sick", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("40 of 2 features, float64", "no is -1, yes is +1 (31 and 9)", "text read as float64"):
        assert words in done.stdout
    assert "40 points written in" in done.stderr
    require_refused(dfeas("ingest", "a.csv", "new", cwd=tmp_path), 2, "--label-column NAME; the columns are age, weight, sick")


def test_data_and_what_is_written_lie_apart(room: Path, tmp_path: Path) -> None:
    shutil.copytree(room / "thin", tmp_path / "a" / "data")
    assert dfeas("solve", "a/data", "--out", "run", cwd=tmp_path).returncode == 0
    (tmp_path / "link").symlink_to(tmp_path / "a" / "data")
    before = everything(tmp_path)
    for words in (
        ("solve", "a/data", "--out", "a/data/run"),
        ("solve", "a/data", "--out", "link/X/run"),
        ("solve", "a/data", "--out", "a"),
        ("solve", room / "thin", "--also", "a/data", "--out", "link/run"),
        ("svm", "a/data", "--out", "other", "--dual", "a/data/alpha.npy"),
        ("race", "a/data", "--out", "a/data/run", "--methods", "perceptron,winnow"),
        ("in-hull", "1,1,1,1,1", "a/data", "--out", "a/data/run"),
        ("predict", "run", "a/data", "a/data/scores.npy"),
        ("ingest", "a/data", "a/data/more"),
        ("ingest", "a/data", "a"),
    ):
        require_refused(dfeas(*words, cwd=tmp_path), 2, "or around it; choose an output that is apart from the data")
    assert everything(tmp_path) == before
    assert dfeas("solve", "a/data", "--out", "a/data-run", cwd=tmp_path).returncode == 0


def test_the_status_of_no_run_says_what_a_run_is() -> None:
    require_refused(dfeas("status", "NOSUCH"), 2, "NOSUCH: no such run here; for the id of a submitted one say --scheduler")


def test_the_status_of_a_folder_is_that_of_the_runs_below(room: Path, tmp_path: Path) -> None:
    (tmp_path / "deep/bad").mkdir(parents=True)
    for name in ("a", "deep/b"):
        assert dfeas("solve", "yes", "--out", tmp_path / name, cwd=room).returncode == 0
    assert dfeas("suspects", "yes", "--out", tmp_path / "list", "--max-passes", 2, cwd=room).returncode in (0, 3)
    (tmp_path / "deep/bad/result.json").write_text("{")
    for words, cwd in ((("status",), tmp_path), (("status", tmp_path), room)):
        lines = dfeas(*words, cwd=cwd).stdout.splitlines()
        assert [line.split(":")[0].removeprefix(f"{tmp_path}/") for line in lines] == ["a", "deep/b", "deep/bad", "list"]
        assert [word in line for line, word in zip(lines, ("feasible", "feasible", "not", "finished"), strict=True)] == [
            True
        ] * 4
    assert f"; {Path(tmp_path).owner()} since 20" in lines[0]
    assert f" UTC; working-set of {room / 'yes'}; at most " in lines[0]
    result = json.loads((tmp_path / "a/result.json").read_text())
    damaged = next(each for each in json.loads(dfeas("status", "--json", cwd=tmp_path).stdout) if each["run"] == "deep/bad")
    assert (damaged["state"], "result.json" in damaged["error"]) == ("damaged", True)
    (said,) = json.loads(dfeas("status", "a", "--json", cwd=tmp_path).stdout)
    names = ("passes", "margin_lower", "margin_upper", "seconds", "verdict")
    assert [said[name] for name in names] == [result[name] for name in names]
    (tmp_path / "empty").mkdir()
    require_refused(dfeas("status", cwd=tmp_path / "empty"), 4, "no run here or below; of submitted runs say the cluster")


def test_ctrl_c_ends_a_solve_on_workers_cleanly_with_the_best_evidence(tmp_path: Path) -> None:
    assert dfeas("generate", "halfspace", "data", "--features", 60, "--points", 50_000, cwd=tmp_path).returncode == 0
    trace, words = tmp_path / "run" / "trace.jsonl", ("--method", "mirror-prox", "--eps", "1e-9", "--json", "--local", "2")
    # a test run in the background of a shell ignores the interrupt, and its children would, too
    heard: dict[str, Any] = {"start_new_session": True, "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    running = start("solve", "data", "--out", "run", *words, cwd=tmp_path, **heard)
    wait_for(lambda: trace.exists() and trace.read_text().count('"pass"') > 5, running)
    os.killpg(running.pid, signal.SIGINT)  # what a terminal sends: to the workers as well
    out, err = running.communicate(timeout=60)
    assert (running.returncode, "Traceback" in err) == (75, False), err
    values = json.loads(out)
    assert (values["verdict"], values["stopped"]) == ("undecided", "interrupted")
    assert values["margin_upper"] < 1
    with np.load(tmp_path / "run" / "certificate.npz") as arrays:
        assert str(arrays["kind"]) == "separator"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--separation", "--kernel", "rbf"), "--separation takes no --kernel"),
        (("--separation", "--margin-tolerance", 0.1), "--separation takes no --margin-tolerance"),
        (("--hard-margin", "--gamma", 1), "--hard-margin takes no --gamma"),
        (("--one-vs-rest", "--positive", "a"), "--one-vs-rest takes no --positive"),
        (("--one-vs-rest", "--separation"), "choose one of"),
    ],
)
def test_an_option_that_is_not_for_what_is_asked_is_refused(
    room: Path, tmp_path: Path, words: tuple[Any, ...], text: str
) -> None:
    require_refused(dfeas("solve", "no", "--out", tmp_path / "a", *words, cwd=room), 2, text)


def test_separation_and_hulls_are_said(room: Path, tmp_path: Path) -> None:
    done = dfeas("solve", "no", "--out", tmp_path / "a", "--separation", cwd=room)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("separation   overlap (proof: exact)\n")
    assert "separation   overlap (exact)\n" in dfeas("verify", tmp_path / "a").stdout
    done = dfeas("solve", "yes", "--out", tmp_path / "b", "--separation", "--json", cwd=room)
    assert json.loads(done.stdout)["separation"]["kind"] == "complete"
    inside = ",".join(["-0.001"] * 20)
    done = dfeas("in-hull", inside, "yes", "--out", tmp_path / "c", cwd=room)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("the point is inside the hull (proof: exact)\n")
    np.save(tmp_path / "far.npy", np.full(20, 9.0))
    done = dfeas("in-hull", tmp_path / "far.npy", "yes", "--out", tmp_path / "d", "--json", cwd=room)
    assert json.loads(done.stdout)["inside"] is False
    assert dfeas("verify", tmp_path / "d").returncode == 0
    edge = dfeas("in-hull", inside, "yes", "--out", tmp_path / "f", "--eps", 0.9, "--method", "mirror-prox", cwd=room)
    assert edge.returncode == 3, edge.stdout
    assert edge.stdout.startswith("the point is not decided")
    require_refused(dfeas("in-hull", "1,x", "yes", "--out", tmp_path / "e", cwd=room), 2, "numbers with commas")
