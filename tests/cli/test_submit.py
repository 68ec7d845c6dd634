"""Runs that the cluster drives itself: submitted, watched, fetched; the driver's worker may die."""

import getpass
import json
import os
import shlex
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from distributed import LocalCluster

import dfeas
from dfeas.cli.main import commands
from dfeas.cli.outputs import RunStatus, run_status, runs_below
from dfeas.cli.remote import cancel, fetch, status, submit
from dfeas.engine.clusters import local_cluster
from dfeas.errors import BadInputError, ClusterLostError, CorruptDataError, UsageError
from tests.cli.making import start, wait_for
from tests.faults.faulty import wait_until
from tests.run.making import after, digest, run_until
from tests.typed import apart
from tests.typed import dfeas as typed


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of its own: its workers are killed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DFEAS_CHECKPOINT_EVERY", "0")
        with local_cluster(2) as client:
            yield client


def finished(*words: Any, cwd: Path | None = None) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    done = typed(*words, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def awaited(client: Any, run: str, good: Callable[[RunStatus], bool]) -> RunStatus:
    """Poll until the run is as wanted."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        found = status(run, client=client)[0]
        if good(found):
            return found
        time.sleep(0.02)
    raise AssertionError(f"it never came: {found}")


def test_a_submitted_run_goes_on_when_its_driver_is_killed_and_is_fetched_from_elsewhere(
    cluster: Any, dataset: Callable[..., Any], tmp_path: Path
) -> None:
    path, _ = dataset("halfspace", 60, 40_000)
    np.save(tmp_path / "mask.npy", np.arange(40_000) % 2 == 0)
    seen: dict[str, Any] = {"mask": tmp_path / "mask.npy", "transform": ["std", "center"]}
    options: dict[str, Any] = {"method": "mirror-prox-fixed", "max_passes": 90, **seen}
    dfeas.solve(str(path), out=tmp_path / "whole", **options)
    run = submit(path, client=cluster, out=tmp_path / "run", **options)
    found = awaited(cluster, run, lambda s: (s.passes or 0) >= 5)
    assert found.task == "processing"
    assert found.state == "running"
    driving = [worker for worker, tasks in cluster.processing().items() if f"dfeas-run-{run}" in tasks]
    with pytest.raises(BadInputError, match="no result yet"):
        fetch(run, tmp_path / "early", client=cluster)
    assert not (tmp_path / "early").exists()
    os.kill(cluster.run(os.getpid)[driving[0]], signal.SIGKILL)
    found = awaited(cluster, run, lambda s: s.task in ("memory", "erred"))
    assert found.error is None
    assert (found.stopped, found.passes) == ("pass_limit", 90)
    assert fetch(run, tmp_path / "got", client=cluster) == tmp_path / "got"
    with pytest.raises(UsageError, match="choose another output"):  # an answer to another question
        submit(dataset("one-flip", 5, 200, name="other")[0], client=cluster, out=tmp_path / "run")
    assert sorted(p.name for p in (tmp_path / "got").iterdir()) == ["certificate.npz", "result.json", "trace.jsonl"]
    assert digest(tmp_path / "got") == digest(tmp_path / "whole")
    assert json.loads((tmp_path / "got" / "result.json").read_text())["n"] == 20_000
    with pytest.raises(UsageError, match="exists already"):
        fetch(run, tmp_path / "got", client=cluster)


def test_a_submitted_run_that_fails_says_why(cluster: Any, dataset: Callable[..., Any], tmp_path: Path) -> None:
    path, _ = dataset("planted", 5, 1000)
    chunk = next((path / "X").glob("c.*"))
    chunk.write_bytes(bytes(chunk.stat().st_size))
    run = submit(path, client=cluster, out=tmp_path / "run")
    found = awaited(cluster, run, lambda s: s.task == "erred")
    assert "damaged" in str(found.error)
    with pytest.raises(BadInputError, match="it failed"):
        fetch(run, tmp_path / "got", client=cluster)
    with pytest.raises(BadInputError, match="not known to this cluster"):
        status("0123", client=cluster)


REFUSED: dict[str, tuple[tuple[str, ...], int, str]] = {
    "no memory": (("data", "--memory", "1KB"), 2, "is too little for one block"),
    "a parameter": (("data", "--method", "ispvn:gamma=0.5"), 2, "ispvn:gamma=G above 1"),
    "no mask": (("data", "--mask", "no.npy"), 4, "no.npy: no such file"),
    "no start": (("data", "--start", "no"), 4, "no: no such file"),
    "no class": (("data", "--positive", "zzz"), 4, "no point has the label zzz"),
    "no data": (("no",), 4, "no: no such file"),
    "no other data": (("data", "--also", "no"), 4, "no: no such file"),
    "columns of a dataset": (("data", "--without", "a"), 2, "columns are those of a table"),
    "no labels": (("data", "--labels", "no.npy"), 4, "no.npy: no such file"),
    "no weights": (("data", "--C", "1", "--weights", "no.npy"), 4, "no.npy: no such file"),
    "eps of a soft margin": (("data", "--C", "1", "--eps", "0.1"), 2, "--eps is for a solve"),
    "kernel of a soft margin": (("data", "--C", "1", "--kernel", "rbf"), 2, "--kernel is for a solve"),
    "folds of a solve": (("data", "--folds", "2"), 2, "--folds is for svm, this is a solve: add --C"),
    "a run": (("data", "--out", "run"), 2, "run: exists already"),
    "within": (("data", "--out", "data/run"), 2, "choose an output that is apart"),
    "eps": (("data", "--eps", "7"), 2, "--eps 7"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_needs_no_worker_is_refused_before_a_cluster_is_asked(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dfeas.ingest(np.arange(12.0).reshape(6, 2), "data", y=["a", "b"] * 3)
    dfeas.solve("data", out="run")
    asked = list[Any]()
    monkeypatch.setattr("dfeas.engine.clusters.connect", lambda *where: asked.append(where))
    words, code, said = REFUSED[case]
    more = [] if "--out" in words else ["--out", "other"]
    done = CliRunner().invoke(commands, ["submit", *words, *more, "--scheduler", "tcp://127.0.0.1:1"])
    assert (done.exit_code, done.stderr.count("\n"), asked) == (code, 1, []), done.stderr
    assert said in done.stderr


def test_the_command_line_submits_watches_and_fetches(cluster: Any, dataset: Callable[..., Any], tmp_path: Path) -> None:
    path, _ = dataset("planted", 10, 5000, margin=0.1)
    there = ["--scheduler", cluster.scheduler.address]
    code, out, err = finished("submit", path, "--out", "run", "--kernel", "rbf", *there, cwd=tmp_path)
    assert code == 0, err
    run = out.strip()
    printed = [shlex.split(line)[1:] for line in err.splitlines() if line.startswith("  dfeas ")]
    assert [words[0] for words in printed] == ["status", "fetch", "cancel"]
    awaited(cluster, run, lambda s: s.task == "memory")
    code, out, err = finished(*printed[0])
    assert (code, "feasible" in out) == (0, True), err
    code, out, err = finished("status", "--json", *there)
    assert run in [entry["run"] for entry in json.loads(out)]
    code, out, err = finished(*printed[1], cwd=tmp_path)
    assert (code, out.strip()) == (0, run), err
    assert finished(*printed[1], cwd=tmp_path)[0] == 2
    assert finished(*printed[1], "--force", cwd=tmp_path)[0] == 0
    assert finished("verify", tmp_path / run)[0] == 0
    assert json.loads((tmp_path / run / "result.json").read_text())["kernel"]["name"] == "rbf"
    code, out, err = finished("status", run)
    assert (code, "--scheduler" in err) == (2, True)
    code, out, err = finished(*printed[2])
    assert (code, "has ended already" in err) == (4, True)
    run = submit(path, client=cluster, out=tmp_path / "soft", C=[0.1, 1], folds=2)
    awaited(cluster, run, lambda s: s.task == "memory")
    fetch(run, tmp_path / "fetched", client=cluster)
    result = json.loads((tmp_path / "fetched" / "result.json").read_text())
    alone = dfeas.soft_margin(path, C=[0.1, 1], folds=2)
    assert [fit["objective"] for fit in result["fits"]] == [fit.objective for fit in alone.fits]


def test_a_submitted_table_has_its_columns_and_ids(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"k{place},{place},2020-01-01,{'ab'[place > 5]}\n" for place in range(12))
    Path("t.csv").write_text("id,x,day,y\n" + rows.replace("k3,3,2020-01-01,a", "k3,3,2020-01-01,b"))
    table = dfeas.table("t.csv", "y", without="day", id="id")
    run = submit(table, out=tmp_path / "run", client=cluster)
    awaited(cluster, run, lambda s: s.task == "memory")
    there: Any = dfeas.load(tmp_path / "run")
    assert there.features == ["x"]
    assert there.conflicts == dfeas.solve(table).conflicts
    assert {each["name"] for each in there.conflicts} == {f"k{each['point']}" for each in there.conflicts}


def test_a_cancelled_run_ends_with_a_checkpoint_and_goes_on_to_the_same_bits(
    cluster: Any, dataset: Callable[..., Any], tmp_path: Path
) -> None:
    path, _ = dataset("halfspace", 60, 40_000)
    options: dict[str, Any] = {"method": "mirror-prox-fixed", "max_passes": 3000, "client": cluster}
    run = submit(path, out=tmp_path / "run", **options)
    awaited(cluster, run, lambda s: (s.passes or 0) >= 2)
    code, out, err = finished("cancel", run, "--scheduler", cluster.scheduler.address)
    assert (code, f"dfeas resume {tmp_path / 'run'} goes on" in out) == (0, True), err
    found = awaited(cluster, run, lambda s: s.task == "memory")
    assert (found.state, found.verdict, found.stopped) == ("resumable", "undecided", "interrupted")
    assert 2 <= (found.passes or 0) < 3000
    with pytest.raises(BadInputError, match="has ended already"):
        cancel(run, client=cluster)
    dfeas.resume(tmp_path / "run", max_passes=int(found.passes or 0) + 3)
    dfeas.solve(path, out=tmp_path / "whole", method="mirror-prox-fixed", max_passes=int(found.passes or 0) + 3)
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")


def test_a_run_that_nobody_has_begun_is_cancelled_for_good(dataset: Callable[..., Any], tmp_path: Path) -> None:
    path, _ = dataset("planted", 10, 5000, margin=0.1)
    with LocalCluster(
        n_workers=0, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as empty:
        run = submit(path, out=tmp_path / "run", client=empty)
        assert cancel(run, client=empty).task == "cancelled"
        assert "has no worker just now" in str(status(run, client=empty)[0].error)
        with pytest.raises(ClusterLostError, match="has no worker just now"):
            fetch(run, tmp_path / "got", client=empty)
        empty.scale(1)
        wait_until(lambda: not status(run, client=empty)[0].error)
        found = status(run, client=empty)[0]
        assert (found.task, found.state) == ("cancelled", "not begun")
        assert not (tmp_path / "run").exists()
        with pytest.raises(BadInputError, match=r"has ended already \(cancelled\)"):
            cancel(run, client=empty)


def test_the_address_of_the_environment_is_enough(
    cluster: Any, dataset: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = dataset("planted", 10, 5000, margin=0.1)
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", cluster.scheduler.address)
    run = apart("submit", path, "--out", tmp_path / "run", cwd=tmp_path).stdout.strip()
    awaited(cluster, run, lambda s: s.task == "memory")
    for words, code in (
        (("fetch", run, "--out", "got"), 0),
        (("status", run), 0),
        (("status", "0123"), 4),
        (("cancel", run), 4),
    ):
        done = apart(*words, cwd=tmp_path)
        assert done.returncode == code, done.stderr
    assert finished("verify", tmp_path / "got")[0] == 0
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS")
    code, _, err = finished("cancel", run)
    assert (code, "DASK_SCHEDULER_ADDRESS" in err) == (2, True)


def test_a_folder_says_how_far_its_run_is(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("halfspace", 8, 500)
    run_until(after(4), dfeas.solve, X, labels, method="mirror-prox-fixed", out=tmp_path / "run")
    found = run_status(tmp_path / "run")
    assert (found.state, found.passes, found.verdict, found.stopped) == ("resumable", 4, "undecided", "interrupted")
    assert found.checkpoint_age is not None
    assert found.checkpoint_age < 60
    dfeas.resume(tmp_path / "run", X, labels)
    found = run_status(tmp_path / "run")
    assert (found.state, found.verdict, found.checkpoint_age) == ("finished", "feasible", None)
    with pytest.raises(BadInputError, match="no such run"):
        run_status(tmp_path)
    for file, damaged in (
        ("trace.jsonl", '{"event": "pass", "passes": 3}\n'),
        ("trace.jsonl", '{"event": "pass", \n'),
        ("result.json", "["),
    ):
        (tmp_path / "run" / file).write_text(damaged)
        with pytest.raises(CorruptDataError, match=f"{file}: .*(damaged|not a readable)"):
            run_status(tmp_path / "run")
        (tmp_path / "run" / "trace.jsonl").unlink(missing_ok=True)


def test_a_run_is_looked_at_while_its_checkpoints_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").touch()
    folder, ended = tmp_path / "checkpoint", threading.Event()

    def save() -> None:
        while not ended.is_set():
            folder.mkdir(exist_ok=True)
            for number in range(1, 20):
                (folder / f"{number:08d}.state").touch()
                (folder / f"{max(1, number - 1):08d}.state").unlink(missing_ok=True)
            ended.wait(0.002)  # a look that falls in here finds the last one
            shutil.rmtree(folder)

    thread = threading.Thread(target=save)
    thread.start()
    try:
        looks, seen, deadline = 0, False, time.monotonic() + 60
        while looks < 1000 or (not seen and time.monotonic() < deadline):
            age = run_status(tmp_path).checkpoint_age
            looks, seen = looks + 1, seen or (age is not None and age < 60)
    finally:
        ended.set()
        thread.join()
    assert seen


def test_a_cluster_lists_all_runs_that_use_it_with_who_and_what(
    cluster: Any, dataset: Callable[..., Any], tmp_path: Path
) -> None:
    path, _ = dataset("halfspace", 10, 5000)
    submitted = submit(path, out=tmp_path / "sent", client=cluster)
    awaited(cluster, submitted, lambda s: s.task == "memory")
    (tmp_path / "sent" / "result.json").write_text("{")  # one that is damaged keeps no other from being listed
    seen: list[Any] = []

    def look(record: Any) -> bool:
        seen[:] = [each for each in status(client=cluster) if each.host is not None]
        return bool(seen) and seen[0].method is not None

    dfeas.solve(path, method="mirror-prox", eps=1e-9, time_limit=60, client=cluster, out=tmp_path / "own", callback=look)
    (found,) = seen
    assert (found.run, found.state, found.out) == ("own", "running", str(tmp_path / "own"))
    assert (found.user, found.host) == (getpass.getuser(), socket.gethostname())
    assert (found.data, found.method) == (str(path), "mirror-prox")
    assert found.memory_bytes > 0
    assert found.began.endswith("+00:00")
    assert f"mirror-prox of {path}" in str(found)
    wait_until(lambda: not [each for each in status(client=cluster) if each.host is not None])
    sent = next(each for each in status(client=cluster) if each.run == submitted)
    assert (sent.state, "result.json" in str(sent.error), sent.user) == ("damaged", True, getpass.getuser())


def test_a_run_whose_driver_dies_is_listed_no_more(cluster: Any, dataset: Callable[..., Any], tmp_path: Path) -> None:
    path, _ = dataset("halfspace", 10, 5000)
    words = (
        "solve",
        path,
        "--out",
        "killed",
        "--method",
        "mirror-prox",
        "--eps",
        "1e-9",
        "--scheduler",
        cluster.scheduler.address,
    )
    driver = start(*words, cwd=tmp_path)
    wait_for(lambda: any(each.run == "killed" for each in status(client=cluster)), driver)
    driver.kill()
    driver.communicate()
    wait_until(lambda: not any(each.run == "killed" for each in status(client=cluster)))


def test_runs_that_cannot_be_read_are_said_and_others_are_listed() -> None:
    X = np.array([[1.0], [2.0], [-1.0]])
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for name in ("a", "b", "c"):
            dfeas.solve(X, [1, 1, -1], out=Path(folder, name))
        Path(folder, "b", "trace.jsonl").chmod(0)
        Path(folder, "c").chmod(0)
        user = os.geteuid()
        try:
            if user == 0:
                os.seteuid(65534)
            found = runs_below(Path(folder))
        finally:
            os.seteuid(user)
            Path(folder, "c").chmod(0o700)
    assert [each.state for each in found] == ["finished", "unreadable", "unreadable"]
    assert all("Permission denied" in str(each) for each in found[1:])


def test_a_cluster_is_told_of_each_pass(cluster: Any, dataset: Callable[..., Any], tmp_path: Path) -> None:
    path, _ = dataset("halfspace", 10, 5000)
    before = len(cluster.get_scheduler_logs())
    found = dfeas.solve(str(path), method="mirror-prox-fixed", max_passes=7, client=cluster, out=tmp_path / "named")
    events = [event for _, event in cluster.get_events("dfeas") if event["run"] == "named"]
    told = [event for event in events if event["event"] == "pass"]
    assert [event["passes"] for event in told] == list(range(1, 8))
    assert told[-1]["margin_upper"] == found.margin_upper
    assert events[-1]["stopped"] == "pass_limit"
    logs = cluster.get_scheduler_logs()
    lines = [line for _, line in logs[: len(logs) - before]]  # the last one comes first
    assert not [line for line in lines if "out-of-band" in line]
    assert any("dfeas named: stopped" in line or "limit" in line for line in lines)
    assert not [line for line in lines if "mirror-prox-fixed: pass" in line]  # it was over in less than five seconds
