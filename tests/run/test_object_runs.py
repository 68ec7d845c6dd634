"""Runs whose folder is in an object store: what they leave, how they go on elsewhere, and who may write there."""

import json
import os
import signal
import subprocess
import sys
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
from dfeas.data.storage import locks, object_store
from dfeas.data.storage.journal import open_journal, read_journal
from dfeas.data.storage.locks import LOCK, ObjectLock, being_written
from dfeas.data.storage.object_path import ObjectPath
from dfeas.data.storage.places import Place, place
from dfeas.data.storage.scratch import Scratch
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.run.checkpoint.folder import Checkpoints, can_go_on, run_folder, run_folder_again
from tests.data.s3 import Door, serving
from tests.run.making import everything

URL = "s3://bucket"
RNG = np.random.default_rng(7)
X, PLANE = RNG.standard_normal((3000, 8)), RNG.standard_normal(8)
LABELS = X @ PLANE > 0
SLOW: dict[str, Any] = {"method": "mirror-prox", "margin_tolerance": 1e-6, "max_passes": 120}


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


def bits(result: Any) -> tuple[Any, ...]:
    """What has to have the same bits."""
    arrays = (result.evidence.y, result.evidence.support, result.evidence.weights)
    sha = sha256(b"".join(np.asarray(each).tobytes() for each in arrays)).hexdigest()
    return sha, result.margin_lower, result.margin_upper, result.passes, result.stopped


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

    @pytest.mark.parametrize(("size", "closed"), [(0, True), (2, False), (3, True), (4, False), (6, True)])
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
        lambda out: dfeas.one_vs_rest(X, np.digitize(X[:, 0], [-0.5, 0.5]), out=out),
        lambda out: dfeas.separation(X, LABELS, out=out),
    ],
    ids=["solve", "one-vs-rest", "separation"],
)
def test_a_run_leaves_the_files_of_one_on_a_disk(ask: Callable[[str], Any], door: Door, tmp_path: Path) -> None:
    here, there = tmp_path / "run", ObjectPath.of(f"{URL}/{tmp_path.name}")
    ask(str(here))
    ask(str(there))
    assert sorted(everything(here)) == sorted(each.key.removeprefix(f"{there.key}/") for each in there.rglob("*"))
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


KILLED = """
import os, signal, sys
import dfeas
from dfeas.data.storage.places import place
from dfeas.run.checkpoint.folder import Checkpoints
data, run, method, last = sys.argv[1:]
def dies(record):
    if max(Checkpoints(place(run) / "checkpoint").numbers) >= int(last):
        os.kill(os.getpid(), signal.SIGKILL)
dfeas.solve(data, out=run, method=method, margin_tolerance=1e-6, max_passes=120, callback=dies)
"""


def test_a_run_that_was_killed_goes_on_elsewhere_with_the_same_bits(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, options = f"{URL}/{tmp_path.name}", {**SLOW, "method": "ispvn"}
    whole = dfeas.solve(f"{URL}/data", out=tmp_path / "whole", **options)
    words = [sys.executable, "-c", KILLED, f"{URL}/data", run, "ispvn", "2"]
    environment = {**os.environ, "DFEAS_CHECKPOINT_EVERY": "0.001", "PYTHONPATH": os.getcwd()}
    (tmp_path / "there").mkdir()
    ended = subprocess.run(words, check=False, env=environment, cwd=tmp_path / "there", timeout=120)
    assert ended.returncode == -signal.SIGKILL
    assert run_status(run).state == "resumable"
    monkeypatch.chdir(tmp_path)
    resumed = dfeas.resume(run)
    assert bits(resumed) == bits(whole)
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


@pytest.mark.parametrize(
    ("end", "left", "said"),
    [
        ("zarr.json", {"part": b"of it", "zarr.json": b"{}"}, "exists already"),
        ("result.json", {"part": b"of it", "result.json": b"{}"}, "exists already"),
        ("result.json", None, "holds a run that can go on"),
    ],
    ids=["a dataset", "a finished run", "an interrupted run"],
)
def test_what_another_process_left_while_its_lock_was_waited_for_stays(
    end: str, left: dict[str, bytes] | None, said: str, door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that has been given back is of an output that may be whole, or go on."""
    out, inherit = ObjectPath.of(f"{URL}/{tmp_path.name}"), locks._inherit
    (out / LOCK).write_bytes(b"elsewhere another-machine 7 nothing\n")
    if left is None:
        dfeas.solve(f"{URL}/data", out=f"{out}-other", **{**SLOW, "max_passes": 2})
        others = {each: each.read_bytes() for each in ObjectPath.of(f"{out}-other").rglob("*") if each.name != end}
        left = {str(each).removeprefix(f"{out}-other/"): content for each, content in others.items()}

    def leave(path: ObjectPath, me: str) -> Any:
        for name, content in left.items():
            (path / name).write_bytes(content)
        (path / LOCK).write_bytes(b"")
        return inherit(path, me)

    monkeypatch.setattr(locks, "_inherit", leave)
    with pytest.raises(UsageError, match=said), run_folder(out, end):
        pass
    assert {each.name for each in out.rglob("*")} - {LOCK} == {name.rpartition("/")[2] for name in left}


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
    assert bits(result) == bits(first)
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


def test_commands_take_the_url_of_a_run(door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = f"{URL}/below/{tmp_path.name}"
    monkeypatch.chdir(tmp_path)

    def typed(*words: str, code: int = 0) -> str:
        found = CliRunner().invoke(commands, words)
        assert found.exit_code == code, found.output
        return found.output

    limited = typed("solve", f"{URL}/data", "--method", "mirror-prox", "--max-passes", "3", "--out", run, code=3)
    assert f"to go on: dfeas resume {run} --max-passes 6, or" in limited
    assert f"{run}: resumable, pass 3" in typed("status", run)
    assert f"{run}: resumable, pass 3" in typed("status", run.rpartition("/")[0])  # runs below a folder
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
