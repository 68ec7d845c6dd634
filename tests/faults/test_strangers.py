"""Workers that cannot do what a run asks: they get no task, lose nothing, and the run says who they are."""

import json
import logging
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

import dfeas
from dfeas.cli.remote import status, submit
from dfeas.engine.crew import here
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from tests.faults.faulty import wait_until
from tests.typed import dfeas as typed

ROOT = Path(dfeas.__file__).parents[1]
ANSWER_SECONDS = 90.0


class Yard:
    """A cluster of processes of other environments."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.stack = folder, ExitStack()

    def without(self) -> dict[str, str]:
        """An environment with all that dfeas needs, and no dfeas."""
        links = self.folder / "links"
        if not links.exists():
            links.mkdir()
            for each in Path(sysconfig.get_path("purelib")).iterdir():
                if "dfeas" not in each.name and each.suffix != ".pth":
                    (links / each.name).symlink_to(each)
        return {"PYTHONPATH": str(links), "FLAG": "-S"}

    def older(self) -> dict[str, str]:
        """One whose dfeas has other sources, and calls itself as this one does."""
        sources = self.folder / "older"
        if not sources.exists():
            shutil.copytree(ROOT / "dfeas", sources / "dfeas", ignore=shutil.ignore_patterns("__pycache__"))
            with (sources / "dfeas" / "passes" / "softmin.py").open("a") as file:
                file.write("\n# before\n")
        return {"PYTHONPATH": f"{sources}:{ROOT}"}

    def start(self, role: str, *args: str, wrap: tuple[str, ...] = (), **env: str) -> subprocess.Popen[bytes]:
        flag, command = env.pop("FLAG", ""), f"distributed.cli.dask_{role}"
        words = [*wrap, sys.executable, *([flag] if flag else []), "-m", command, *args]
        with (self.folder / f"{role}.log").open("ab") as log:
            process = subprocess.Popen(
                words, cwd=self.folder, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT), **env}
            )
        self.stack.callback(end, process)
        return process

    @contextmanager
    def open(self, **env: str) -> Iterator[Client]:
        found = self.folder / "scheduler.json"
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(found), **env)
        wait_until(found.exists)
        with self.stack, Client(scheduler_file=str(found), timeout=ANSWER_SECONDS) as self.client:
            yield self.client

    def join(self, name: str, wrap: tuple[str, ...] = (), resources: tuple[str, ...] = (), **env: str) -> str:
        """The address of a new worker, below a nanny."""
        scratch = self.folder / f"scratch-{name}"
        scratch.mkdir()
        args = ("--nthreads", "1", "--name", name, "--no-dashboard", "--local-directory", str(scratch), "--host", "127.0.0.1")
        self.start("worker", "--scheduler-file", str(self.folder / "scheduler.json"), *args, *resources, wrap=wrap, **env)
        wait_until(lambda: name in self.names())
        return self.names()[name]

    def names(self) -> dict[str, str]:
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        return {str(each["name"]): str(address) for address, each in workers.items()}


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()


def executed(client: Client) -> dict[str, list[str]]:
    """Tasks of dfeas that each worker was told of, by its own log."""

    def told(dask_worker: Any) -> list[str]:
        return sorted({str(event[0]) for event in dask_worker.state.log if str(event[0]).startswith("dfeas-")})

    return dict(client.run(told))


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


@pytest.fixture
def data(dataset: Callable[..., Any]) -> Path:
    path, _ = dataset("planted", 5, 4000, margin=0.01, block_rows=500)
    return Path(path)


HOW: dict[str, Any] = {"method": "mirror-prox", "max_passes": 3, "eps": 1e-9}


def test_workers_without_dfeas_or_with_another_get_nothing_and_live(
    yard: Yard, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with yard.open() as client:
        strange, good, old = yard.join("strange", **yard.without()), yard.join("good"), yard.join("old", **yard.older())
        with caplog.at_level(logging.WARNING, "dfeas"):
            found = dfeas.solve(data, client=client, **HOW)
        assert found.margin_upper == dfeas.solve(data, **HOW).margin_upper
        done = executed(client)
        assert done[good]
        assert not done[strange]
        assert not done[old]
        assert set(client.nthreads()) == {strange, good, old}
        assert f"worker {strange} on" in caplog.text
        assert "dfeas is not installed there" in caplog.text
        assert "with other source files than here" in caplog.text
        npy = yard.folder / "X.npy"
        np.save(npy, np.arange(12.0).reshape(6, 2) - 5)
        dfeas.ingest(npy, yard.folder / "made", y=[0, 0, 0, 1, 1, 1], client=client)
        assert not executed(client)[strange]
        assert set(client.nthreads()) == {strange, good, old}


def test_nobody_who_has_dfeas_is_one_line_and_no_death(yard: Yard, data: Path) -> None:
    with yard.open() as client:
        strange = [yard.join(name, **yard.without()) for name in ("one", "two")]
        with pytest.raises(UsageError, match=r"no worker of the cluster can do this.*dfeas is not installed there") as caught:
            dfeas.solve(data, client=client)
        assert all(worker in str(caught.value) for worker in strange)
        assert set(client.nthreads()) == set(strange)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a mount that one process sees")
def test_data_that_a_worker_does_not_see_is_said_with_its_name(
    yard: Yard, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hide = f'mount -t tmpfs none {data.parent}/data && exec "$@"'
    with yard.open() as client:
        blind = yard.join("blind", wrap=("unshare", "-m", "sh", "-c", hide, "sh"))
        with pytest.raises((BadInputError, CorruptDataError), match=f"{blind} on .*{data}: not the data there") as caught:
            dfeas.solve(data, client=client)
        assert caught.value.exit_code == 5  # an empty folder is there
        good = yard.join("good")
        with caplog.at_level(logging.WARNING, "dfeas"):
            dfeas.solve(data, client=client, **HOW)
        assert blind in caplog.text
        labels, npy = [0, 0, 0, 1, 1, 1], data / "X.npy"  # which the blind worker does not see
        np.save(npy, np.arange(12.0).reshape(6, 2) - 5)
        dfeas.ingest(npy, yard.folder / "made", y=labels, client=client)
        assert f"{blind} on" in caplog.text
        assert f"{npy}: no such file or folder there" in caplog.text
        assert executed(client)[good]
        assert not executed(client)[blind]


def test_a_worker_that_joins_is_asked_first_and_then_works(yard: Yard, data: Path) -> None:
    seen: list[str] = []
    joined: dict[str, str] = {}

    def join(record: Any) -> None:
        seen.append(record.passes)
        if len(seen) == 2:
            joined["strange"] = yard.join("strange", **yard.without())
            joined["good"] = yard.join("good")

    with yard.open() as client:
        yard.join("first")
        options = {**HOW, "max_passes": 40, "margin_tolerance": 1e-6}
        found = dfeas.solve(data, client=client, callback=join, **options)
        assert len(seen) > 10
        assert executed(client)[joined["good"]]
        assert not executed(client)[joined["strange"]]
        assert set(joined.values()) < set(client.nthreads())
        assert found.margin_upper == dfeas.solve(data, **options).margin_upper


def test_a_worker_that_computes_otherwise_is_said_and_refused_where_bits_count(
    yard: Yard, data: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = here()["arithmetic"]["kernels"]
    with yard.open() as client:
        good = yard.join("good")
        assert dfeas.solve(data, client=client, **HOW).bits == "same"
        other = yard.join("other", OPENBLAS_CORETYPE="Nehalem" if kernels != "Nehalem" else "Haswell")
        with caplog.at_level(logging.WARNING, "dfeas"):
            mixed = dfeas.solve(data, client=client, out=yard.folder / "run", **HOW)
        assert f"worker {other} on" in caplog.text
        assert mixed.bits == "mixed"
        written = json.loads((yard.folder / "run" / "result.json").read_text())
        assert written["bits"] == "mixed"
        assert [each["worker"] for each in written["workers"]] == [other]
        assert f"{kernels} here" in written["workers"][0]["differs"]
        refused = typed("solve", data, "--scheduler", client.scheduler.address, "--same-bits", "--out", yard.folder / "none")
        assert refused.returncode == 2
        assert f"dfeas: error: --same-bits: {other} on" in refused.stderr
        monkeypatch.setenv("DFEAS_SAME_BITS", "1")
        with pytest.raises(UsageError, match=rf"same_bits=True: {other} on .*kernels"):
            dfeas.solve(data, client=client, **HOW)
        with dask.annotate(workers=["good"]):
            assert dfeas.solve(data, client=client, **HOW).bits == "same"
    assert good != other


def test_a_scheduler_without_dfeas_is_a_usage_error(yard: Yard, data: Path) -> None:
    with yard.open(**yard.without()) as client:
        for act in (lambda: dfeas.solve(data, client=client), lambda: submit(data, out=yard.folder / "run", client=client)):
            with pytest.raises(UsageError, match=r"the scheduler at tcp://.*dfeas is not installed there"):
                act()


def test_what_a_scheduler_cannot_read_is_a_usage_error(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    (yard.folder / "mine").mkdir()
    (yard.folder / "mine" / "only_here.py").write_text("def double(block):\n    return 2 * block\n")
    monkeypatch.syspath_prepend(yard.folder / "mine")
    import only_here  # type: ignore[import-not-found]

    X = da.from_array(np.arange(24.0).reshape(12, 2) - 11, chunks=(3, 2)).map_blocks(only_here.double)
    with yard.open() as client:
        yard.join("good")
        with pytest.raises(UsageError, match=r"the Dask scheduler cannot read a task.*only_here"):
            dfeas.solve(X, X[:, 0] > 0, client=client)


def test_a_run_is_driven_by_a_worker_that_can(yard: Yard, data: Path) -> None:
    with yard.open() as client:
        strange, good = yard.join("strange", **yard.without()), yard.join("good")
        runs = [submit(data, out=yard.folder / f"run{i}", client=client) for i in range(3)]
        wait_until(lambda: all(each.verdict == "feasible" for each in status(client=client)))
        assert {each.run for each in status(client=client)} == set(runs)
        assert not executed(client)[strange]
        assert set(client.nthreads()) == {strange, good}


def test_annotations_choose_workers_for_all_tasks(yard: Yard, data: Path) -> None:
    with yard.open() as client:
        left, right = yard.join("left"), yard.join("right", resources=("--resources", "DISK=1"))
        X = da.random.default_rng(0).standard_normal((4000, 3), chunks=(500, 3))
        np.save(yard.folder / "X.npy", np.arange(12.0).reshape(6, 2) - 5)

        def run_all() -> None:
            for how in ({}, {"method": "working-set"}, {"method": "online-perceptron"}):
                dfeas.solve(data, client=client, **{**HOW, **how})
            dfeas.solve(X, X[:, 0] > 0, client=client)
            dfeas.soft_margin(data, client=client, max_passes=3)
            shutil.rmtree(yard.folder / "made", ignore_errors=True)
            dfeas.ingest(yard.folder / "X.npy", yard.folder / "made", y=[0, 0, 0, 1, 1, 1], client=client)

        with dask.annotate(workers="right", priority=7):
            run_all()
        assert not executed(client)[left]
        assert executed(client)[right]
        for chosen in (dask.annotate(resources={"DISK": 1}), dask.config.set({"dfeas.workers": [right], "dfeas.priority": 1})):
            with chosen:
                dfeas.solve(data, client=client, **HOW)
        assert not executed(client)[left]
        with dask.annotate(workers=["right"]):
            submit(data, out=yard.folder / "run", client=client)
            wait_until(lambda: [each.verdict for each in status(client=client)] == ["feasible"])
        assert not executed(client)[left]
        with dask.annotate(workers=["nobody"]), pytest.raises(UsageError, match=r"no worker .* is one of \['nobody'\]"):
            run_all()

        def find_spans(dask_scheduler: Any) -> set[str]:
            spans = dask_scheduler.extensions["spans"].spans.values()
            return {group.name for span in spans if span.name == ("dfeas",) for group in span.groups}

        assert {name.partition("-")[0] for name in client.run_on_scheduler(find_spans)} >= {"dfeas"}


def test_a_dask_array_is_solved_where_the_current_client_is(yard: Yard) -> None:
    with yard.open() as client:
        good = yard.join("good")
        X = da.random.default_rng(0).standard_normal((4000, 3), chunks=(500, 3))
        alone = dfeas.solve(X, X[:, 0] > 0, client=False)
        assert not executed(client)[good]
        assert dfeas.solve(X, X[:, 0] > 0).margin_lower == alone.margin_lower
        assert executed(client)[good]
        before = len(executed(client)[good])
        dfeas.solve(X.compute(), (X[:, 0] > 0).compute())
        assert len(executed(client)[good]) == before


@pytest.mark.parametrize("kind", ["older", "without"])
def test_a_submitted_run_waits_for_a_worker_that_can_drive_it(yard: Yard, data: Path, kind: str) -> None:
    with yard.open() as client:
        run = submit(data, out=yard.folder / "run", client=client)
        strange = yard.join("strange", **getattr(yard, kind)())
        wait_until(lambda: run in str(executed(client)[strange]))
        with pytest.raises(UsageError, match="no worker of the cluster can do this"):
            submit(data, out=yard.folder / "refused", client=client)
        (found,) = status(client=client)  # and who is refused is not listed
        assert (found.run, found.state, found.task) == (run, "unknown", "processing")
        assert "no worker of the cluster can do this" in str(found.error)
        yard.join("good")
        wait_until(lambda: status(run, client=client)[0].task == "memory")
        assert status(run, client=client)[0].verdict == "feasible"
        assert set(client.nthreads()) > {strange}
