"""Runs whose folder is in an object store: what they leave, how they go on elsewhere, and who may write there."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.cli.outputs import run_status
from dfeas.cli.remote import fetch, status, submit
from dfeas.data.storage import locks, object_store
from dfeas.data.storage.journal import open_journal, read_journal
from dfeas.data.storage.locks import LOCK, ObjectLock, being_written
from dfeas.data.storage.object_path import ObjectPath
from dfeas.data.storage.places import Place, place
from dfeas.data.storage.scratch import Scratch
from dfeas.data.writers.dataset import DatasetWriter, output_place
from dfeas.engine.clusters import local_cluster
from dfeas.errors import BadInputError, CorruptDataError, StorageAwayError, UsageError
from dfeas.run.checkpoint.folder import Checkpoints, can_go_on, run_folder, run_folder_again
from tests.data.s3 import NAMES, Door, serving

URL = "s3://bucket"
RNG = np.random.default_rng(7)
X, PLANE = RNG.standard_normal((3000, 8)), RNG.standard_normal(8)
LABELS = X @ PLANE > 0
SLOW: dict[str, Any] = {"method": "mirror-prox", "margin_tolerance": 1e-6, "max_passes": 300}


@pytest.fixture(scope="module")
def server() -> Iterator[Door]:
    with serving() as (door, _):
        dfeas.ingest(X, f"{URL}/data", y=LABELS)
        yield door


@pytest.fixture
def door(server: Door) -> Iterator[Door]:
    yield server
    server.reset()


@pytest.fixture(params=["folder", "objects"])
def where(request: pytest.FixtureRequest, tmp_path: Path, door: Door) -> Place:
    """A place of a run where nothing is yet."""
    return tmp_path / "run" if request.param == "folder" else ObjectPath.of(f"{URL}/{tmp_path.name}")


def digest(result: dfeas.Result) -> tuple[Any, ...]:
    """What has to have the same bits."""
    assert result.evidence is not None
    arrays = (result.evidence.y, result.evidence.support, result.evidence.weights)
    bits = sha256(b"".join(np.asarray(each).tobytes() for each in arrays)).hexdigest()
    return bits, result.margin_lower, result.margin_upper, result.passes, result.stopped


def brackets(run: Place) -> list[tuple[Any, ...]]:
    """What its trace says of each pass."""
    events = [json.loads(line) for line in read_journal(run / "trace.jsonl").splitlines()]
    names = ("passes", "iterations", "margin_lower", "margin_upper")
    return [tuple(event[name] for name in names) for event in events if event["event"] == "pass"]


class TestJournal:
    """Laws of text that grows."""

    @pytest.fixture
    def path(self, where: Place) -> Place:
        where.mkdir()
        return where / "trace.jsonl"

    def test_what_was_saved_is_read_and_stays_when_it_is_closed(self, path: Place) -> None:
        with pytest.raises(FileNotFoundError):
            read_journal(path.parent / "none.jsonl")
        journal, text = open_journal(path), b""
        for number in range(9):
            journal.append(b"%d\n" % number)
            text += b"%d\n" % number
            assert journal.size == len(text)
            if number % 3:
                journal.save()
                assert read_journal(path) == text
        for _ in range(2):
            journal.close()
            assert read_journal(path) == text
        assert [each.name for each in path.parent.iterdir()] == [path.name]

    @pytest.mark.parametrize("closed", [True, False])
    @pytest.mark.parametrize("size", [0, 2, 3, 4, 6])
    def test_it_goes_on_after_so_many_bytes(self, path: Place, size: int, closed: bool) -> None:
        journal = open_journal(path)
        for text in (b"a\n", b"b\n", b"c\n"):
            journal.append(text)
            journal.save()
        if closed:
            journal.close()
        again = open_journal(path, size)
        assert again.size == size
        again.append(b"new\n")
        again.save()
        assert read_journal(path) == b"a\nb\nc\n"[:size] + b"new\n"
        again.close()
        assert read_journal(path) == b"a\nb\nc\n"[:size] + b"new\n"

    def test_one_that_was_killed_while_it_was_closed_is_whole(self, path: Place, door: Door) -> None:
        if isinstance(path, Path):
            pytest.skip("a file is closed by doing nothing")
        journal = open_journal(path)
        for text in (b"a\n", b"b\n"):
            journal.append(text)
            journal.save()
        parts = {each: each.read_bytes() for each in path.with_suffix("").rglob("*")}
        journal.close()
        for each, content in parts.items():
            each.write_bytes(content)
        assert read_journal(path) == b"a\nb\n"


def begin_and_fail(where: Place) -> None:
    with suppress(ZeroDivisionError), run_folder(where) as folder:
        (folder / "certificate.npz").write_bytes(b"begun")
        raise ZeroDivisionError


class TestFolder:
    """Laws of the folder of a run."""

    def test_one_process_writes_it(self, where: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(locks, "BEAT_SECONDS", 0.02)
        monkeypatch.setattr(locks, "LOOK_SECONDS", 0.1)
        assert not being_written(where)
        with run_folder(where) as folder:
            assert being_written(where)
            for enter in (run_folder, run_folder_again):
                with pytest.raises(UsageError, match="another process is writing it"), enter(where):
                    pass
            (folder / "result.json").write_bytes(b"{}")
        assert not being_written(where)
        assert [each.name for each in where.iterdir()] == ["result.json"]
        with pytest.raises(UsageError, match="exists already"), run_folder(where):
            pass

    def test_what_was_not_finished_can_go_on_or_makes_room(self, where: Place) -> None:
        begin_and_fail(where)
        assert not being_written(where)
        assert (where / "certificate.npz").is_file()
        with run_folder(where) as folder:
            assert not (folder / "certificate.npz").exists()
        other = where.parent / f"{where.name}-other"
        begin_and_fail(other)
        with run_folder_again(other) as folder:
            assert being_written(folder)
            assert (folder / "certificate.npz").is_file()
        assert not (other / LOCK).exists()

    def test_the_last_two_checkpoints_are_kept_and_a_damaged_one_is_left_out(self, where: Place, tmp_path: Path) -> None:
        scratch = Scratch(tmp_path / "scratch")
        where.mkdir()
        checkpoints = Checkpoints(where / "checkpoint")
        with pytest.raises(BadInputError, match="nothing to resume"):
            checkpoints.load(scratch)
        vectors = {number: RNG.standard_normal(100) for number in range(1, 5)}
        for number, vector in vectors.items():
            scratch.write(f"v-{number}", 0, vector)
            scratch.keep([f"v-{number}"])
            checkpoints.save(number, scratch)
        assert checkpoints.numbers == [3, 4]
        assert checkpoints.newest is not None
        assert can_go_on(where)
        scratch.remove()
        assert checkpoints.load(scratch) == 4
        np.testing.assert_array_equal(scratch.read("v-4", range(100)), vectors[4])
        newest = where / "checkpoint" / "00000004.state"
        newest.write_bytes(newest.read_bytes()[:-30])
        assert checkpoints.load(scratch) == 3
        assert scratch.names == ["v-3"]
        (vector_there,) = (where / "checkpoint" / "00000003.vectors").iterdir()
        vector_there.write_bytes(bytes(800))
        with pytest.raises(CorruptDataError, match="v-3 is missing or damaged"):
            checkpoints.load(scratch)
        checkpoints.remove()
        assert not can_go_on(where)


@pytest.mark.parametrize(
    "ask",
    [
        lambda out: dfeas.solve(f"{URL}/data", out=out),
        lambda out: dfeas.race(X, LABELS, methods=["perceptron", "mirror-prox"], out=out),
        lambda out: dfeas.one_vs_rest(X, np.digitize(X[:, 0], [-0.5, 0.5]), out=out),
        lambda out: dfeas.soft_margin(X, LABELS, C=[0.1, 1.0], out=out),
        lambda out: dfeas.hard_margin(f"{URL}/data", out=out),
        lambda out: dfeas.separation(X, LABELS, out=out),
        lambda out: dfeas.in_hull(X[:5].mean(axis=0), X, out=out),
    ],
    ids=["solve", "race", "one-vs-rest", "soft-margin", "hard-margin", "separation", "hull"],
)
def test_a_run_leaves_the_files_of_one_on_a_disk(ask: Callable[[str], Any], door: Door, tmp_path: Path) -> None:
    here, there = tmp_path / "run", ObjectPath.of(f"{URL}/{tmp_path.name}")
    ask(str(here))
    ask(str(there))
    assert sorted(str(each.relative_to(here)) for each in here.rglob("*") if each.is_file()) == sorted(
        each.key.removeprefix(f"{there.key}/") for each in there.rglob("*")
    )
    for each in there.rglob("*.npz"):
        assert each.read_bytes() == (here / each.key.removeprefix(f"{there.key}/")).read_bytes()


def test_points_of_an_expansion_at_a_url_are_read_when_asked(door: Door, tmp_path: Path) -> None:
    result = dfeas.solve(f"{URL}/data", kernel="rbf", out=tmp_path / "run")
    asked = dfeas.predict(result, X, LABELS).accuracy
    with pytest.raises(UsageError, match=f"it says that its data is at {URL}/data: follow=True reads it there"):
        dfeas.predict(tmp_path / "run", X, LABELS)
    with pytest.raises(UsageError, match=f"it says that its data is at {URL}/data"):
        dfeas.load(tmp_path / "run").predict(X)
    assert dfeas.predict(tmp_path / "run", X, LABELS, follow=True).accuracy == asked


def test_whatever_reads_a_run_reads_it_there(door: Door, tmp_path: Path) -> None:
    run = f"{URL}/{tmp_path.name}"
    result = dfeas.solve(f"{URL}/data", out=run)
    assert result.certificate == f"{run}/certificate.npz"
    loaded = dfeas.load(run)
    assert isinstance(loaded, dfeas.Result)
    assert digest(loaded) == digest(result)
    assert (
        dfeas.verify_run(run, follow=True).verdict
        == dfeas.verify_certificate(f"{URL}/data", result.certificate).verdict
        == "feasible"
    )
    assert dfeas.predict(run, X, LABELS).accuracy == 1.0
    assert str(dfeas.report(run, follow=True)) == f"{run}/report.html"
    assert b"feasible" in place(f"{run}/report.html").read_bytes()
    assert run_status(run).state == "finished"
    copied = fetch(run, tmp_path / "here")
    assert sorted(each.name for each in copied.iterdir()) == ["certificate.npz", "result.json", "trace.jsonl"]
    assert dfeas.verify_run(copied, f"{URL}/data").verdict == "feasible"
    with pytest.raises(UsageError, match="exists already"):
        dfeas.solve(f"{URL}/data", out=run)
    with pytest.raises(UsageError, match="or around it"):
        dfeas.solve(f"{URL}/data", out=f"{URL}/data/run")


KILLED = """
import os, signal, sys
import dfeas
from dfeas.data.storage.places import place
from dfeas.run.checkpoint.folder import Checkpoints
data, run, method, last = sys.argv[1:]
def dies(record):
    if max(Checkpoints(place(run) / "checkpoint").numbers) >= int(last):
        os.kill(os.getpid(), signal.SIGKILL)
dfeas.solve(data, out=run, method=method, margin_tolerance=1e-6, max_passes=300, callback=dies)
"""


@pytest.mark.parametrize(("method", "last"), [("mirror-prox", 3), ("ispvn", 2), ("mirror-prox", 1)])
def test_a_run_that_was_killed_goes_on_elsewhere_with_the_same_bits(
    method: str, last: int, door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, options = f"{URL}/{tmp_path.name}", {**SLOW, "method": method}
    whole = dfeas.solve(f"{URL}/data", out=tmp_path / "whole", **options)
    words = [sys.executable, "-c", KILLED, f"{URL}/data", run, method, str(last)]
    environment = {**os.environ, "DFEAS_CHECKPOINT_EVERY": "0.001", "PYTHONPATH": os.getcwd()}
    (tmp_path / "there").mkdir()
    ended = subprocess.run(words, check=False, env=environment, cwd=tmp_path / "there", timeout=120)
    assert ended.returncode == -signal.SIGKILL
    assert run_status(run).state == "resumable"
    monkeypatch.chdir(tmp_path)
    resumed = dfeas.resume(run)
    assert isinstance(resumed, dfeas.Result)
    assert digest(resumed) == digest(whole)
    assert brackets(place(run)) == brackets(tmp_path / "whole")
    assert {each.name for each in place(run).iterdir()} >= {"certificate.npz", "result.json", "trace.jsonl"}


def test_a_lock_of_another_machine_is_waited_for_and_taken_over(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = f"{URL}/{tmp_path.name}"
    dfeas.solve(f"{URL}/data", out=run, **{**SLOW, "max_passes": 2})
    place(f"{run}/{LOCK}").write_bytes(b"elsewhere another-machine 7 nothing\n")
    assert being_written(place(run))
    monkeypatch.setattr(locks, "DEAD_SECONDS", 0.3)
    monkeypatch.setattr(locks, "LOOK_SECONDS", 0.05)
    assert dfeas.resume(run, max_passes=4).passes == 4
    assert not place(f"{run}/{LOCK}").is_file()


def test_a_run_that_another_process_took_over_ends_and_writes_nothing(door: Door, tmp_path: Path) -> None:
    run = place(f"{URL}/{tmp_path.name}")

    def take_over(record: Any) -> None:
        (run / LOCK).write_bytes(b"elsewhere another-machine 7 nothing\n")

    with pytest.raises(UsageError, match="another process took it over, this one was silent too long"):
        dfeas.solve(f"{URL}/data", out=str(run), callback=take_over, **{**SLOW, "max_passes": 2})
    assert not (run / "result.json").exists()
    assert Checkpoints(run / "checkpoint").numbers == [1]
    assert (run / LOCK).read_bytes() == b"elsewhere another-machine 7 nothing\n"


def test_what_another_process_finished_while_its_lock_was_waited_for_stays(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that has been given back is of an output that may be whole."""
    inherit = locks._inherit
    for name, end in (("data", "zarr.json"), ("run", "result.json")):
        out = ObjectPath.of(f"{URL}/{tmp_path.name}-{name}")
        (out / LOCK).write_bytes(b"elsewhere another-machine 7 nothing\n")
        (out / "part").write_bytes(b"of it")

        def finish(path: ObjectPath, me: str, end: str = end) -> Any:
            (path / end).write_bytes(b"{}")
            (path / LOCK).unlink(missing_ok=True)
            return inherit(path, me)

        monkeypatch.setattr(locks, "_inherit", finish)
        with pytest.raises(UsageError, match="exists already"), run_folder(out, end):
            pass
        assert {each.name for each in out.rglob("*")} == {"part", end}


def test_a_run_that_another_one_interrupted_while_its_lock_was_waited_for_stays(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, inherit = f"{URL}/{tmp_path.name}", locks._inherit
    ObjectPath.of(f"{run}/{LOCK}").write_bytes(b"elsewhere another-machine 7 nothing\n")

    def interrupt(path: ObjectPath, me: str) -> Any:
        dfeas.solve(f"{URL}/data", out=f"{run}-other", **{**SLOW, "max_passes": 2})
        for each in ObjectPath.of(f"{run}-other").rglob("*"):
            ObjectPath.of(str(each).replace("-other", "")).write_bytes(each.read_bytes())
        ObjectPath.of(f"{run}/result.json").unlink()
        ObjectPath.of(f"{run}/{LOCK}").write_bytes(b"")
        return inherit(path, me)

    monkeypatch.setattr(locks, "_inherit", interrupt)
    with pytest.raises(UsageError, match="holds a run that can go on"), run_folder(place(run)):
        pass
    assert can_go_on(place(run))


def test_a_lock_that_was_lost_is_not_taken_again(door: Door, tmp_path: Path) -> None:
    run = ObjectPath.of(f"{URL}/{tmp_path.name}")
    with ObjectLock.claim(run, "result.json") as lock:
        (run / LOCK).unlink()  # by another process, which ended meanwhile
        for _ in range(2):
            lock._renew()
            assert not lock.held
        with pytest.raises(UsageError, match="another process took it over"):
            lock.require()
    assert not (run / LOCK).is_file()


def test_an_ingest_that_was_taken_over_while_it_was_frozen_writes_nothing_more(door: Door, tmp_path: Path) -> None:
    out = ObjectPath.of(f"{URL}/{tmp_path.name}")
    writers = []

    def freeze() -> Iterator[Any]:
        yield X[:1000]
        (lock,) = locks._LOCKS.values()
        lock._renewed -= 2 * locks.FRESH_SECONDS
        (out / LOCK).write_bytes(b"elsewhere another-machine 7 nothing\n")
        writers.append({each.name for each in out.rglob("*")})
        yield X[1000:2000]

    def ingest() -> None:
        with output_place(out) as folder:
            target = DatasetWriter(folder, 2000, X.shape[1], X.dtype, 1000)
            for index, points in enumerate(freeze()):
                target.write(index, points, np.ones(1000, np.int8))

    with pytest.raises(UsageError, match="another process took it over"):
        ingest()
    assert {each.name for each in out.rglob("*")} == writers[0]


def test_an_answer_of_the_store_that_was_lost_takes_no_lock(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "RETRIES", 0)
    object_store.store_of.cache_clear()
    run = ObjectPath.of(f"{URL}/{tmp_path.name}")
    with ObjectLock.claim(run, "result.json") as lock:
        before = (run / LOCK).read_bytes()
        door.fault = lambda method, path: "lose" if method == "PUT" else ""
        lock.require()  # is written, and the answer does not come
        assert (run / LOCK).read_bytes() != before
        door.fault = lambda method, path: ""
        lock.require()
        assert lock.held
    assert not (run / LOCK).is_file()
    object_store.store_of.cache_clear()


def test_a_place_that_cannot_be_written_is_one_line_before_a_read(door: Door, tmp_path: Path) -> None:
    door.fault = lambda method, path: "deny" if method == "PUT" else ""
    with pytest.raises(UsageError, match="access was refused"):
        dfeas.solve(f"{URL}/data", out=f"{URL}/{tmp_path.name}")
    with pytest.raises((UsageError, BadInputError), match="no such bucket"):
        dfeas.solve(f"{URL}/data", out="s3://no-such-bucket/run")
    assert not door.count("GET", "/data/X/c")


def test_a_checkpoint_that_the_store_does_not_take_is_no_reason_to_end(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DFEAS_CHECKPOINT_EVERY", "0.001")
    run, first = f"{URL}/{tmp_path.name}", dfeas.solve(f"{URL}/data", **SLOW)
    door.fault = lambda method, path: "deny" if method == "PUT" and "/checkpoint/00000002" in path else ""
    result = dfeas.solve(f"{URL}/data", out=run, **SLOW)
    assert digest(result) == digest(first)
    assert b"no checkpoint could be written" in read_journal(place(run) / "trace.jsonl")


def test_a_checkpoint_takes_five_requests(door: Door, tmp_path: Path) -> None:
    run = place(f"{URL}/{tmp_path.name}")
    dfeas.solve(f"{URL}/data", out=str(run), **{**SLOW, "max_passes": 2})
    checkpoints, journal = Checkpoints(run / "checkpoint"), open_journal(run / "trace.jsonl", 0)
    with run_folder_again(run):
        for _ in range(2):
            door.requests.clear()
            journal.append(b"{}\n")
            locks.require_held(run)
            journal.save()
            checkpoints.save(1, Scratch(tmp_path / "none"))
        asked = sorted(method for method, _ in door.requests)
    assert asked == ["GET", "POST", "PUT", "PUT", "PUT"]


def test_a_dead_process_of_this_machine_has_no_lock(door: Door, tmp_path: Path) -> None:
    run = ObjectPath.of(f"{URL}/{tmp_path.name}")
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    for pid, held in ((ended.pid, False), (os.getpid(), True)):
        (run / LOCK).write_bytes(f"host {locks._machine()} {pid} nothing\n".encode())
        assert being_written(run) == held


def test_a_store_that_goes_away_ends_the_run_resumable(door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "RETRIES", 0)
    monkeypatch.setenv("DFEAS_STORAGE_PATIENCE", "0")
    monkeypatch.setenv("DFEAS_CHECKPOINT_EVERY", "0.001")
    object_store.store_of.cache_clear()
    run, whole = f"{URL}/{tmp_path.name}", dfeas.solve(f"{URL}/data", **SLOW)

    def fall(record: Any) -> None:
        if record.passes == 50:
            door.fault = lambda method, path: "refuse"

    with pytest.raises(StorageAwayError, match="does not answer") as ended:
        dfeas.solve(f"{URL}/data", out=run, callback=fall, **SLOW)
    assert ended.value.exit_code == 75
    door.reset()
    assert run_status(run).state == "running"  # until its lock is a minute old, or its process is gone
    monkeypatch.setattr(locks, "DEAD_SECONDS", 0.0)
    assert run_status(run).state == "resumable"
    resumed = dfeas.resume(run)
    assert isinstance(resumed, dfeas.Result)
    assert digest(resumed) == digest(whole)
    object_store.store_of.cache_clear()


def test_a_cluster_drives_a_run_in_a_bucket_and_goes_on_when_its_driver_is_killed(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DFEAS_CHECKPOINT_EVERY", "0")
    run, options = f"{URL}/{tmp_path.name}", {**SLOW, "max_passes": 150}
    whole = dfeas.solve(f"{URL}/data", **options)
    # what starts workers has the environment of another test, maybe
    there = {f"distributed.nanny.environ.{name}": os.environ[name] for name in (*NAMES, "DFEAS_CHECKPOINT_EVERY")}
    with local_cluster(2, there) as client:
        submitted = submit(f"{URL}/data", out=run, client=client, **options)
        deadline = time.monotonic() + 90
        while (status(submitted, client=client)[0].passes or 0) < 5:
            assert time.monotonic() < deadline
        driving = [each for each, tasks in client.processing().items() if f"dfeas-run-{submitted}" in tasks]
        os.kill(client.run(os.getpid)[driving[0]], signal.SIGKILL)
        while (found := status(submitted, client=client)[0]).task != "memory":
            assert time.monotonic() < deadline, found
            assert found.error is None
        assert fetch(submitted, tmp_path / "got", client=client) == tmp_path / "got"
    loaded = dfeas.load(tmp_path / "got")
    assert isinstance(loaded, dfeas.Result)
    assert digest(loaded) == digest(whole)


def test_commands_take_the_url_of_a_run(door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = f"{URL}/{tmp_path.name}"
    monkeypatch.chdir(tmp_path)

    def typed(*words: str, code: int = 0) -> str:
        found = CliRunner().invoke(commands, words)
        assert found.exit_code == code, found.output
        return found.output

    limited = typed("solve", f"{URL}/data", "--method", "mirror-prox", "--max-passes", "3", "--out", run, code=3)
    assert f"to go on: dfeas resume {run}" in limited
    assert f"{run}: resumable, pass 3" in typed("status", run)
    assert "feasible" in typed("resume", run, "--max-passes", "3000")
    assert f"{run} is finished" in typed("resume", run)
    assert "proved       feasible" in typed("verify", run, "--follow")
    assert "all 3000 points" in typed("verify", f"{URL}/data", f"{run}/certificate.npz")
    assert "feasible" in typed("compare", run)
    assert f"{run}/report.html" in typed("report", run, "--follow")
    assert "written      scores.npy" in typed("predict", run, f"{URL}/data", "scores.npy")
    assert tmp_path.name in typed("fetch", run)
    assert (tmp_path / tmp_path.name / "certificate.npz").is_file()
    assert "--force is for folders of this machine" in typed("solve", f"{URL}/data", "--out", run, "--force", code=2)
