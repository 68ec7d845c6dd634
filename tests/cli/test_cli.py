"""From the command line: both engines, both verdicts, every method, kills, bad input.

Commands run in this process; in one of their own where kills, clusters of their own, pipes or the start of it are tested.
"""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import h5py
import numpy as np
import pytest
import zarr
from click.testing import CliRunner

from dfeas.analysis.info import info
from dfeas.answers.check.verify import verify_run
from dfeas.cli.main import commands
from dfeas.data.generate.points import Instance
from dfeas.data.storage.locks import claim, release
from dfeas.methods.registry import METHODS
from tests.typed import DFEAS, apart, dfeas


def start(*words: Any, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([*DFEAS, *map(str, words)], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset of each family, made by the command line."""
    path = tmp_path_factory.mktemp("cli")
    made = [("planted", "yes", 20, 30_000), ("one-flip", "no", 20, 30_000)]
    made += [("gaussian", "normal", 20, 3_000), ("halfspace", "thin", 5, 3_000)]
    for kind, name, features, points in made:
        done = dfeas("generate", kind, name, "--features", features, "--points", points, "--margin", 0.05, cwd=path)
        assert done.returncode == 0, done.stderr
    return path


EXACT = ("auto", "working-set", "working-set-plain")
"""Methods that end with |Ax| at rounding level where there is no separator."""


@pytest.mark.parametrize("method", ["auto", "working-set", "mirror-prox", "perceptron", "ispvn"])
@pytest.mark.parametrize("data", ["yes", "no"])
def test_generate_solve_verify(room: Path, tmp_path: Path, method: str, data: str) -> None:
    verdict, proof = "feasible", "rigorous"
    if data == "no":
        verdict, proof = ("infeasible", "exact") if method in EXACT else ("eps-infeasible", "rigorous")
    run = tmp_path / "run"
    done = dfeas("solve", data, "--out", run, "--method", method, "--eps", 0.03, "--json", cwd=room)
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)
    assert (values["verdict"], values["stopped"], values["proof"]) == (verdict, "verdict", proof)
    assert json.loads((run / "trace.jsonl").read_text().splitlines()[-1])["verdict"] == verdict
    assert verify_run(run).verdict == verdict
    if method == "auto":
        checked = dfeas("verify", run, "--json")
        assert checked.returncode == 0, checked.stderr
        assert json.loads(checked.stdout)["verdict"] == verdict
        separate = dfeas("verify", data, run / "certificate.npz", cwd=room)
        assert separate.returncode == 0, separate.stderr
        assert f"proved       {verdict} ({proof})" in separate.stdout


@pytest.mark.parametrize("data", ["normal", "thin"])
def test_every_method_on_the_other_families(room: Path, tmp_path: Path, data: str) -> None:
    methods = ",".join(name for name in METHODS if name != "rescaled-perceptron")  # takes ten times as long as others
    words = ("--methods", methods, "--eps", 0.02, "--memory", "8GB", "--json")
    done = dfeas("race", data, "--out", tmp_path / "race", *words, cwd=room)
    assert done.returncode == 0, done.stderr
    # the best margin of thin is below eps: both answers are right
    for name, values in json.loads(done.stdout)["results"].items():
        infeasible = "infeasible" if name in EXACT else "eps-infeasible"
        right = {infeasible} if data == "normal" else {"feasible", "eps-infeasible"}
        assert values["verdict"] in right, name
        assert values["proof"] == ("exact" if values["verdict"] == "infeasible" else "rigorous")


@pytest.mark.parametrize(
    ("method", "data", "verdict"),
    [
        ("working-set", "yes", "feasible"),
        ("working-set", "no", "infeasible"),
        ("mirror-prox-one-pass", "no", "eps-infeasible"),
        ("perceptron", "yes", "feasible"),
        ("online-perceptron", "no", "eps-infeasible"),
        ("ispvn", "yes", "feasible"),
    ],
)
def test_a_cluster_gives_the_same_certificate(
    room: Path, tmp_path: Path, method: str, data: str, verdict: str, client: Any
) -> None:
    options = ("--method", method, "--eps", 0.01, "--json")
    here = dfeas("solve", data, "--out", tmp_path / "here", *options, cwd=room)
    there = dfeas("solve", data, "--out", tmp_path / "there", "--scheduler", client.scheduler.address, *options, cwd=room)
    assert there.returncode == 0, there.stderr
    one, two = json.loads(here.stdout), json.loads(there.stdout)
    assert two["verdict"] == verdict
    same = ("passes", "reads", "iterations", "margin_lower", "margin_upper", "fingerprint", "bytes_read")
    assert [one[k] for k in same] == [two[k] for k in same]
    assert (tmp_path / "here" / "certificate.npz").read_bytes() == (tmp_path / "there" / "certificate.npz").read_bytes()


@pytest.mark.parametrize("words", [("--eps", 1e-9), ("--kernel", "rbf", "--gamma", 0.01)], ids=["points", "kernel"])
def test_threads_of_blas_change_no_bit(tmp_path: Path, words: tuple[Any, ...]) -> None:
    assert dfeas("generate", "gaussian", "data", "--features", 150, "--points", 2000, cwd=tmp_path).returncode == 0
    found = []
    for threads in ("1", "2"):
        with patch.dict(os.environ, OPENBLAS_NUM_THREADS=threads):
            done = apart("solve", "data", "--out", threads, *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found.append((tmp_path / threads / "certificate.npz").read_bytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("method", ["mirror-prox-one-pass", "von-neumann", "perceptron"])
def test_threads_of_blas_change_no_bit_of_what_methods_add_up_themselves(tmp_path: Path, method: str) -> None:
    """From 10,001 entries on OpenBLAS shares out the product of two vectors."""
    assert dfeas("generate", "halfspace", "data", "--features", 20_000, "--points", 60, cwd=tmp_path).returncode == 0
    found = []
    for threads in ("1", "2"):
        with patch.dict(os.environ, OPENBLAS_NUM_THREADS=threads):
            done = apart("solve", "data", "--out", threads, "--method", method, "--max-passes", 20, "--json", cwd=tmp_path)
        ends, certificate = json.loads(done.stdout), tmp_path / threads / "certificate.npz"
        found.append((ends["margin_lower"], ends["margin_upper"], certificate.is_file() and certificate.read_bytes()))
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


def test_ingest_and_a_users_zarr_array_lead_to_the_same_verdict(tmp_path: Path, arrays: Callable[..., Any]) -> None:
    X, labels = arrays("planted", 8, 3000, margin=0.1)
    names = np.where(labels > 0, "spam", "ham")
    np.savez(tmp_path / "a.npz", X=X, y=names)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["data/points"], file["data/classes"] = X, labels
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(1000, 8))
    zarr.create_array(tmp_path / "y.zarr", data=labels, chunks=(700,))
    assert dfeas("ingest", "a.npz", "one", cwd=tmp_path).returncode == 0
    done = dfeas("ingest", "a.h5", "two", "--points", "data/points", "--labels", "data/classes", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["classes"] == ["-1", "1"]
    found = []
    for out, words in (("r1", ["one"]), ("r2", ["two"]), ("r3", ["x.zarr", "--labels", "y.zarr"])):
        done = dfeas("solve", *words, "--out", out, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert dfeas("verify", out, cwd=tmp_path).returncode == 0
        found.append({k: json.loads(done.stdout)[k] for k in ("verdict", "margin_lower", "passes")})
    assert found[0] == found[1] == found[2]
    said = dfeas("info", "one", cwd=tmp_path).stdout
    assert "ham is -1, spam is +1" in said
    assert json.loads(dfeas("info", "x.zarr", "--labels", "y.zarr", "--json", cwd=tmp_path).stdout)["n"] == 3000


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
    for name in ("mirror-prox", "perceptron", "ispvn"):
        assert dfeas("verify", out / name).returncode == 0
    short = dfeas("race", "no", "--out", tmp_path / "b", "--methods", "mirror-prox,perceptron", "--max-passes", 1, cwd=room)
    assert short.returncode == 3
    one = dfeas("race", "yes", "--out", tmp_path / "c", "--methods", "perceptron", cwd=room)
    assert one.returncode == 0, one.stderr
    assert len(one.stdout.splitlines()) == 4  # headings, one run, reads, folder


def test_a_race_on_a_cluster_has_the_bits_of_one_in_process(room: Path, tmp_path: Path, client: Any) -> None:
    words = ("--methods", "mirror-prox-one-pass,perceptron,online-perceptron", "--eps", 0.01, "--json")
    here = dfeas("race", "no", "--out", tmp_path / "a", *words, cwd=room)
    there = dfeas("race", "no", "--out", tmp_path / "b", *words, "--scheduler", client.scheduler.address, cwd=room)
    assert here.returncode == there.returncode == 0, there.stderr
    one, two = json.loads(here.stdout), json.loads(there.stdout)
    assert one["reads"] == two["reads"]
    same = ("verdict", "passes", "reads", "iterations", "margin_lower", "margin_upper")
    for name in one["results"]:
        assert [one["results"][name][k] for k in same] == [two["results"][name][k] for k in same], name


def test_version_help_and_the_dask_plug_in() -> None:
    assert dfeas("--version").stdout.startswith("dfeas, version 0.1")
    assert "exit-codes" in dfeas("--help").stdout
    for command in commands.list_commands(click.Context(commands)):
        shown = CliRunner().invoke(commands, [command, "--help"])
        assert shown.exit_code == 0
        assert shown.output.startswith("Usage:")
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


def test_conflicting_points_are_shown_and_a_maximum_margin_is_closed(room: Path, tmp_path: Path) -> None:
    done = dfeas("solve", "no", "--out", tmp_path / "no", cwd=room)
    assert done.returncode == 0, done.stderr
    flipped = Instance("one-flip", 20, 30_000, 0.05).wrong_point
    shown = [line.split() for line in done.stdout.splitlines() if line.startswith("             point")]
    assert shown[0][1] == str(flipped)
    assert "conflict     " in done.stdout
    stored = json.loads((tmp_path / "no" / "result.json").read_text())
    assert stored["conflicts"][0]["point"] == flipped
    assert stored["method"] == "working-set"
    done = dfeas("solve", "yes", "--out", tmp_path / "yes", "--margin-tolerance", 1e-3, "--json", cwd=room)
    values = json.loads(done.stdout)
    assert values["margin_lower"] >= (1 - 1e-3) * values["margin_upper"]
    words = ("--method", "perceptron", "--margin-tolerance", 1e-5)
    done = dfeas("solve", "yes", "--out", tmp_path / "limit", *words, cwd=room)
    assert done.returncode == 3
    assert done.stdout.startswith("verdict      feasible (proof: rigorous)")
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


def _refused(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert done.returncode == code, (done.returncode, done.stderr)
    lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in lines[0]


def test_bad_input_is_one_line_with_its_exit_code(room: Path, tmp_path: Path, arrays: Callable[..., Any]) -> None:
    X, labels = arrays("planted", 8, 3000, margin=0.1)
    out = tmp_path / "run"

    def solve(*words: Any) -> subprocess.CompletedProcess[str]:
        return dfeas("solve", *words, "--out", out, cwd=tmp_path)

    _refused(apart("solve", "nowhere", "--out", out, cwd=tmp_path), 4, "nowhere: no such file or folder")
    (tmp_path / "folder").mkdir()
    _refused(solve("folder"), 4, "neither a dfeas dataset nor a zarr array")
    zarr.create_array(tmp_path / "x", data=X, chunks=(1000, 8))
    (tmp_path / "labels.csv").write_text("1\n" * 3000)
    _refused(solve("x", "--labels", "labels.csv"), 4, "labels.csv: labels beside points are a .npy file or a zarr array")
    for name, values, words in (
        ("short", labels[:-1], "expected 3000 labels"),
        ("one", np.ones(3000), "all 3000 labels are 1"),
        ("three", np.arange(3000) % 3, "--positive"),
        ("nan", np.where(np.arange(3000) == 5, np.nan, labels), "point 5"),
    ):
        zarr.create_array(tmp_path / name, data=values, chunks=(3000,))
        _refused(solve("x", "--labels", name), 4, words)
    zarr.create_array(tmp_path / "good", data=labels, chunks=(3000,))
    for value, words in ((np.nan, "point 2100 feature 3: nan"), (-np.inf, "point 2100 feature 3: -inf")):
        Z = X.copy()
        Z[2100, 3] = value
        zarr.create_array(tmp_path / f"bad{value}", data=Z, chunks=(1000, 8))
        _refused(solve(f"bad{value}", "--labels", "good"), 4, words)
        shutil.rmtree(out, ignore_errors=True)
    _refused(solve(room / "yes", "--memory", "1MB"), 2, "too little for one block", "is needed")
    _refused(solve(room / "yes", "--memory", "much"), 2, "expected a size")
    _refused(solve(room / "yes", "--scheduler", "tcp://127.0.0.1:9"), 2, "no Dask scheduler answers at tcp://127.0.0.1:9")
    _refused(solve(room / "yes", "--scheduler-file", "none.json"), 2, "no Dask scheduler answers at none.json")
    _refused(solve(room / "yes", "--method", "newton"), 2, "newton")
    _refused(solve(room / "yes", "--scheduler", "tls://127.0.0.1:1"), 2, "no Dask scheduler answers")
    _refused(dfeas("generate", "planted", tmp_path / "s", "--features", 3, "--points", 10, "--seed", -1), 2, "seed")
    assert not out.exists()
    out.mkdir()
    _refused(solve(room / "yes"), 2, "exists already")
    _refused(dfeas("generate", "planted", out, "--features", 3, "--points", 10), 2, "exists already")
    _refused(dfeas("generate", "planted", room / "yes/inner", "--features", 3, "--points", 10), 2, "lies in the dataset")
    _refused(dfeas("ingest", room / "yes", tmp_path / "new"), 4)
    _refused(dfeas("generate", "planted", tmp_path / "a/b", "--features", 3, "--points", 10), 2, "no such folder")
    _refused(dfeas("generate", "planted", tmp_path / "p", "--features", 3, "--points", 10, "--margin", 2), 2, "margin")
    assert not (tmp_path / "new").exists()


def test_counts_are_read_as_people_write_them(tmp_path: Path) -> None:
    for index, count in enumerate(("1e3", "1000", "1.0E+3")):
        done = dfeas("generate", "gaussian", tmp_path / str(index), "--features", 2, "--points", count, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert info(tmp_path / str(index)).n == 1000
    for count in ("1e-3", "1.5", "nan", "1e400", "many"):
        refused = dfeas("generate", "gaussian", "out", "--features", 2, "--points", count, cwd=tmp_path)
        _refused(refused, 2, f"'{count}' is not a valid integer")
    narrow = ("--features", 1, "--points", 100, "--dtype")
    _refused(dfeas("generate", "halfspace", "out", *narrow, "uint8", cwd=tmp_path), 2, "no plane parts one feature in uint8")
    assert dfeas("generate", "halfspace", "out", *narrow, "float32", cwd=tmp_path).returncode == 0


def test_a_zero_point_is_a_verdict(tmp_path: Path, arrays: Callable[..., Any]) -> None:
    X, labels = arrays("planted", 8, 3000, margin=0.1)
    X[1234] = 0
    np.savez(tmp_path / "a.npz", X=X, y=labels)
    assert dfeas("ingest", "a.npz", "data", cwd=tmp_path).returncode == 0
    done = dfeas("solve", "data", "--no-intercept", "--out", "run", "--json", cwd=tmp_path)
    values = json.loads(done.stdout)
    assert (done.returncode, values["verdict"], values["proof"]) == (0, "infeasible", "exact")
    assert dfeas("verify", "run", cwd=tmp_path).returncode == 0


def test_corrupt_data_is_exit_code_5(room: Path, tmp_path: Path) -> None:
    shutil.copytree(room / "yes", tmp_path / "data")
    assert dfeas("solve", "data", "--out", "run", cwd=tmp_path).returncode == 0
    chunk = sorted((tmp_path / "data" / "X").glob("c.*"))[0]
    intact = chunk.read_bytes()
    chunk.write_bytes(intact[:1000] + bytes([intact[1000] ^ 1]) + intact[1001:])
    _refused(dfeas("solve", "data", "--out", "run2", cwd=tmp_path), 5, "chunk 0 of X is damaged")
    _refused(dfeas("verify", "run", cwd=tmp_path), 5)
    chunk.unlink()
    _refused(dfeas("solve", "data", "--out", "run2", cwd=tmp_path), 5, "missing")
    assert not (tmp_path / "run2" / "result.json").exists()
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"], file["y"] = np.random.default_rng(0).standard_normal((5000, 20)), np.arange(5000) % 2
    whole = (tmp_path / "a.h5").read_bytes()
    (tmp_path / "a.h5").write_bytes(whole[: len(whole) // 2])
    _refused(dfeas("ingest", "a.h5", "new", cwd=tmp_path), 5, "truncated")
    assert not (tmp_path / "new").exists()


def test_a_certificate_that_proves_nothing_is_exit_code_6(room: Path, tmp_path: Path) -> None:
    assert dfeas("solve", "yes", "--out", tmp_path / "run", cwd=room).returncode == 0
    with np.load(tmp_path / "run" / "certificate.npz") as arrays:
        fields = {name: arrays[name] for name in arrays}
    fields["y"] = -fields["y"]
    np.savez(tmp_path / "run" / "certificate.npz", **fields)
    _refused(dfeas("verify", tmp_path / "run"), 6, "not a separator")
    result = tmp_path / "run" / "result.json"
    np.savez(tmp_path / "run" / "certificate.npz", **{**fields, "y": -fields["y"]})
    intact = result.read_text()
    for name, value in (("margin_lower", 0.04), ("n", 29_999), ("fingerprint", "0")):
        result.write_text(json.dumps({**json.loads(intact), name: value}))
        _refused(dfeas("verify", tmp_path / "run"), 6, name)
    result.write_text(intact)
    assert dfeas("verify", tmp_path / "run").returncode == 0
    result.write_text(intact[:50])
    _refused(dfeas("verify", tmp_path / "run"), 5, "not a readable result")


def test_a_killed_ingest_leaves_nothing_that_looks_whole_and_can_be_run_again(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((200_000, 100)).astype(np.float32)
    np.savez(tmp_path / "a.npz", X=X, y=np.arange(200_000) % 2)
    lines = b"".join(b",".join(b"%.4g" % v for v in x) + b",%d\n" % (j % 2) for j, x in enumerate(X[:2000]))
    (tmp_path / "a.csv").write_bytes(lines * 40)
    begun = {
        "npz": ("ingest", "a.npz", "npz"),
        "csv": ("ingest", "a.csv", "csv", "--label-column", 100, "--no-header"),
        "generated": ("generate", "gaussian", "generated", "--features", 100, "--points", 200_000),
    }
    for kind, words in begun.items():
        running = start(*words, cwd=tmp_path)
        wait_for(lambda kind=kind: len(list((tmp_path / kind / "X").glob("c.*"))) > 2, running)
        running.kill()
        running.communicate()
        assert not (tmp_path / kind / "zarr.json").exists()
        _refused(dfeas("solve", kind, "--out", "run", cwd=tmp_path), 5, "incomplete dataset")
        _refused(dfeas("info", kind, cwd=tmp_path), 5, "incomplete dataset")
        assert dfeas(*words, cwd=tmp_path).returncode == 0
        assert dfeas("info", kind, cwd=tmp_path).returncode == 0


def test_ingest_of_a_table_says_what_it_wrote(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "age,weight,sick\n" + "".join(f"{i},{i / 3},{'yes' if i < 9 else 'no'}\n" for i in range(40))
    )
    done = dfeas("ingest", "a.csv", "data", "--label-column", "sick", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("40 of 2 features, float64", "no is -1, yes is +1 (31 and 9)", "text read as float64"):
        assert words in done.stdout
    assert "40 points written in" in done.stderr
    (tmp_path / "b.csv").write_text((tmp_path / "a.csv").read_text() + "41,n/a,no\n")
    _refused(
        dfeas("ingest", "b.csv", "new", "--label-column", "sick", cwd=tmp_path), 4, "b.csv: line 42, column weight: ", "'n/a'"
    )
    _refused(dfeas("ingest", "a.csv", "new", cwd=tmp_path), 2, "--label-column NAME; the columns are age, weight, sick")
    (tmp_path / "a.svm.gz").write_bytes(b"\x1f\x8b\x08")
    _refused(dfeas("ingest", "a.svm.gz", "new", cwd=tmp_path), 5, "truncated")
    assert not (tmp_path / "new").exists()


def test_data_and_what_is_written_lie_apart(room: Path, tmp_path: Path) -> None:
    shutil.copytree(room / "thin", tmp_path / "a" / "data")
    assert dfeas("solve", "a/data", "--out", "run", cwd=tmp_path).returncode == 0
    (tmp_path / "link").symlink_to(tmp_path / "a" / "data")
    before = sorted(path for path in tmp_path.rglob("*"))
    for words in (
        ("solve", "a/data", "--out", "a/data/run"),
        ("solve", "a/data", "--out", "link/X/run"),
        ("solve", "a/data", "--out", "a"),
        ("solve", room / "thin", "--also", "a/data", "--out", "link/run"),
        ("svm", "a/data", "--out", "a/data/run"),
        ("svm", "a/data", "--out", "other", "--dual", "a/data/alpha.npy"),
        ("race", "a/data", "--out", "a/data/run", "--methods", "perceptron,winnow"),
        ("in-hull", "1,1,1,1,1", "a/data", "--out", "a/data/run"),
        ("predict", "run", "a/data", "a/data/scores.npy"),
        ("ingest", "a/data", "a/data/more"),
        ("ingest", "a/data", "a"),
    ):
        _refused(dfeas(*words, cwd=tmp_path), 2, "or around it; choose an output that is apart from the data")
    assert sorted(path for path in tmp_path.rglob("*")) == before
    assert dfeas("solve", "a/data", "--out", "a/data-run", cwd=tmp_path).returncode == 0


def test_a_full_disk_is_said_with_the_place(room: Path, tmp_path: Path) -> None:
    shutil.copytree(room / "thin", tmp_path / "data")
    assert dfeas("solve", "data", "--out", "run", cwd=tmp_path).returncode == 0
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        for words, where in (
            (("predict", "run", "data", "scores.npy"), "scores.npy"),
            (("solve", "data", "--out", "other"), "checkpoint"),
        ):
            done = dfeas(*words, cwd=tmp_path)
            _refused(done, 5, where)
            assert "File too large" in done.stderr or "the disk is full" in done.stderr
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "scores.npy").exists()


def test_the_status_of_no_run_says_what_a_run_is() -> None:
    _refused(dfeas("status", "NOSUCH"), 2, "NOSUCH: no such run here; for the id of a submitted one say --scheduler")


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
    result = json.loads((tmp_path / "a/result.json").read_text())
    (said,) = json.loads(dfeas("status", "a", "--json", cwd=tmp_path).stdout)
    names = ("passes", "margin_lower", "margin_upper", "seconds", "verdict")
    assert [said[name] for name in names] == [result[name] for name in names]
    (tmp_path / "empty").mkdir()
    _refused(dfeas("status", cwd=tmp_path / "empty"), 4, "no run here or below; of submitted runs say the cluster")


def test_an_output_that_is_being_written_is_refused(room: Path, tmp_path: Path) -> None:
    lock = claim(tmp_path / "busy", "marker")
    _refused(dfeas("solve", "yes", "--out", tmp_path / "busy", cwd=room), 2, "another process is writing")
    _refused(dfeas("generate", "gaussian", tmp_path / "busy", "--features", 2, "--points", 9), 2, "another process")
    release(tmp_path / "busy", lock)


@pytest.mark.parametrize("engine", [(), ("--local", "2")], ids=["in-process", "dask"])
def test_a_killed_solve_leaves_nothing_that_looks_whole_and_goes_on(tmp_path: Path, engine: tuple[str, ...]) -> None:
    assert dfeas("generate", "halfspace", "data", "--features", 100, "--points", 200_000, cwd=tmp_path).returncode == 0
    trace = tmp_path / "run" / "trace.jsonl"
    running = start("solve", "data", "--out", "run", "--method", "mirror-prox", "--eps", 1e-9, *engine, cwd=tmp_path)
    wait_for(lambda: trace.exists() and trace.read_text().count('"pass"') > 3, running)
    running.kill()
    running.communicate()
    assert not (tmp_path / "run" / "result.json").exists()
    _refused(dfeas("verify", "run", cwd=tmp_path), 4, "no finished run")
    _refused(dfeas("solve", "data", "--out", "run", cwd=tmp_path), 2, "dfeas resume run")
    again = dfeas("resume", "run", "--max-passes", 8, cwd=tmp_path)
    assert again.returncode == 3, again.stderr
    assert (tmp_path / "run" / "result.json").exists()


@pytest.mark.parametrize("engine", [(), ("--local", "2")], ids=["in-process", "dask"])
def test_ctrl_c_ends_a_solve_cleanly_with_the_best_evidence(tmp_path: Path, engine: tuple[str, ...]) -> None:
    assert dfeas("generate", "halfspace", "data", "--features", 100, "--points", 200_000, cwd=tmp_path).returncode == 0
    trace = tmp_path / "run" / "trace.jsonl"
    running = subprocess.Popen(
        [*DFEAS, "solve", "data", "--out", "run", "--method", "mirror-prox", "--eps", "1e-9", "--json", *engine],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # a test run in the background of a shell ignores the interrupt, and its children would, too
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_for(lambda: trace.exists() and trace.read_text().count('"pass"') > 5, running)
    os.killpg(running.pid, signal.SIGINT)  # what a terminal sends: to the workers as well
    out, err = running.communicate(timeout=60)
    assert running.returncode == 75, err
    assert "Traceback" not in err
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
    _refused(dfeas("solve", "no", "--out", tmp_path / "a", *words, cwd=room), 2, text)


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
    _refused(dfeas("in-hull", "1,x", "yes", "--out", tmp_path / "e", cwd=room), 2, "numbers with commas")
