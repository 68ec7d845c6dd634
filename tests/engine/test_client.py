"""What ``client=`` takes: the same for all verbs, and one error for anything else. What workers do has names."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.config
import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster, SchedulerPlugin

import dfeas
from dfeas.cli.remote import status, submit
from dfeas.engine.clusters import connect
from dfeas.engine.protocol import open_client
from dfeas.errors import UsageError
from tests.cli.test_submit import awaited
from tests.run.test_resume import after, digest, run_until


def counts(dask_scheduler: Any) -> dict[str, int]:
    """States that tasks have been in, by what Dask's pages show as one."""
    found = dask_scheduler.task_prefixes.items()
    return {name: sum(prefix.state_counts.values()) for name, prefix in found if name.startswith("dfeas")}


def bars(client: Any, act: Callable[[], Any]) -> set[str]:
    """Those that went on while something was done."""
    before = client.run_on_scheduler(counts)
    act()
    return {name for name, count in client.run_on_scheduler(counts).items() if count > before.get(name, 0)}


@pytest.fixture(params=["client", "cluster", "address", "current"])
def given(client: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Each way to say which cluster."""
    if request.param == "current":
        with client.as_current():
            yield True
        return
    yield {"client": client, "cluster": client.cluster, "address": client.scheduler.address}[request.param]


VERBS: dict[str, Callable[..., Any]] = {
    "solve": dfeas.solve,
    "race": lambda data, **options: dfeas.race(data, methods=["perceptron", "mirror-prox"], **options),
    "soft_margin": lambda data, **options: dfeas.soft_margin(data, C=0.1, tol=0.1, **options),
    "hard_margin": lambda data, **options: dfeas.hard_margin(data, margin_tolerance=0.5, **options),
    "separation": dfeas.separation,
    "in_hull": lambda data, **options: dfeas.in_hull(np.zeros(6), data, **options),
}


WAYS = ("client", "cluster", "address", "current")


@pytest.mark.parametrize(("verb", "given"), [(verb, WAYS[turn % 4]) for turn, verb in enumerate(VERBS)], indirect=["given"])
def test_all_verbs_take_all_of_them(verb: str, client: Any, given: Any, dataset: Callable[..., Any]) -> None:
    path, _ = dataset("planted", 6, 900, margin=0.2, block_rows=300)
    assert {"dfeas-hinge", "dfeas-select", "dfeas-check"} & bars(client, lambda: VERBS[verb](path, client=given))


@pytest.mark.parametrize("given", ["cluster", "current"], indirect=True)
def test_resume_and_ingest_take_all_of_them(client: Any, given: Any, dataset: Callable[..., Any], tmp_path: Path) -> None:
    path, _ = dataset("planted", 6, 900, margin=0.02, block_rows=300)
    options: dict[str, Any] = {"method": "mirror-prox-fixed", "max_passes": 6}
    run_until(after(2), dfeas.solve, path, out=tmp_path / "run", **options)
    assert "dfeas-softmin" in bars(client, lambda: dfeas.resume(tmp_path / "run", client=given))
    dfeas.solve(path, out=tmp_path / "whole", **options)
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")
    np.save(tmp_path / "X.npy", np.arange(12.0).reshape(6, 2) - 5)
    np.save(tmp_path / "y.npy", np.array([0, 0, 0, 1, 1, 1]))
    made: list[Any] = []
    asked = {"y": tmp_path / "y.npy", "client": given}
    assert "dfeas-write" in bars(client, lambda: made.append(dfeas.ingest(tmp_path / "X.npy", tmp_path / "made", **asked)))
    assert made[0].n == 6


@pytest.mark.parametrize("given", ["client", "address"], indirect=True)
def test_all_of_them_are_taken_in_a_notebook(given: Any, dataset: Callable[..., Any]) -> None:
    """It runs an event loop in the thread of its cells."""
    path, _ = dataset("planted", 6, 900, margin=0.2, block_rows=300)

    async def cell() -> str:
        return dfeas.solve(path, client=given).verdict

    assert asyncio.run(cell()) == "feasible"


def test_what_was_opened_is_closed_and_what_was_given_is_not(client: Any) -> None:
    def clients(dask_scheduler: Any) -> int:
        return len(dask_scheduler.clients)

    before = client.run_on_scheduler(clients)
    for each in (client.scheduler.address, client.cluster, client):
        with open_client(each) as found:
            assert found is not None
            assert client.run_on_scheduler(clients) == before + (found is not client)
        assert found.status == ("running" if found is client else "closed")
    deadline = time.monotonic() + 20
    while client.run_on_scheduler(clients) > before:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    with open_client(None) as found:
        assert found is None


@pytest.mark.parametrize("wrong", [7, b"tcp://127.0.0.1:1"])
def test_anything_else_is_one_error(wrong: Any, tmp_path: Path) -> None:
    X, labels = np.array([[1.0], [-1.0]]), [1, 0]
    dfeas.ingest(X, tmp_path / "data", y=labels)
    for act in (
        lambda: dfeas.solve(X, labels, client=wrong),
        lambda: dfeas.race(X, labels, methods=["perceptron", "mirror-prox"], client=wrong),
        lambda: dfeas.soft_margin(X, labels, client=wrong),
        lambda: dfeas.resume(tmp_path, client=wrong),
        lambda: dfeas.ingest(X, tmp_path / "out", y=labels, client=wrong),
        lambda: submit(tmp_path / "data", out=tmp_path / "out", client=wrong),
    ):
        with pytest.raises(UsageError, match="expected a Dask client, a cluster such as LocalCluster, the address"):
            act()


def test_a_cluster_that_has_ended_and_a_client_that_nobody_made_are_usage_errors(tmp_path: Path) -> None:
    with LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as cluster:
        pass
    with pytest.raises(UsageError, match=r"LocalCluster.*it has ended"):
        status(client=cluster)
    script = "import dfeas; dfeas.solve('data', client=True)"
    alone = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert "UsageError: client=True is the current Dask client, and there is none" in alone.stderr
    with pytest.raises(UsageError, match="no Dask scheduler answers"):
        dfeas.solve(tmp_path, client="nonsense://x")


def test_what_stands_between_here_and_a_scheduler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(address: str | None, file: Path | None = None) -> str:
        with pytest.raises(UsageError) as refused, connect(address, file and str(file)):
            pass
        return str(refused.value)

    (tmp_path / "wrong.json").write_text('{"address": 5}')
    assert "answers at '': expected an address" in said("")
    assert "wrong.json': expected an address" in said(None, tmp_path / "wrong.json")
    for content in ("[]", "", '{"address": null}'):
        (tmp_path / "wrong.json").write_text(content)
        assert "no Dask scheduler answers" in said(None, tmp_path / "wrong.json")
    for wrong in ("soon", None, [3]):
        with dask.config.set({"distributed.comm.timeouts.connect": wrong}):
            assert f"timeouts.connect of Dask is {wrong!r}: expected a time, such as 30s" in said("tcp://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "dask_gateway", None)
    assert said("gateway://127.0.0.1:9/x").endswith("; pip install dask-gateway")


async def _asynchronous(address: str) -> None:
    async with Client(address, asynchronous=True) as client:
        with pytest.raises(UsageError, match="asynchronous"):
            dfeas.solve("data", client=client)


def test_an_asynchronous_client_is_refused(client: Any) -> None:
    client.sync(_asynchronous, client.scheduler.address)


def test_each_question_has_a_bar_and_a_colour(client: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    income, age = rng.lognormal(10, 1, 3000), rng.integers(18, 90, 3000)
    X = np.column_stack([income, age, income > 20_000]).astype(np.float64)
    zarr.create_array(tmp_path / "X.zarr", data=X, chunks=(700, 3))
    np.save(tmp_path / "y.npy", age + income / 1e4 > 50)
    data = tmp_path / "X.zarr", tmp_path / "y.npy"

    def shown(**options: Any) -> set[str]:
        return bars(client, lambda: dfeas.solve(*data, client=client, intercept=True, **options))

    assert shown(method="working-set") >= {"dfeas-survey", "dfeas-select", "dfeas-check"}
    assert shown(method="mirror-prox", max_passes=5) >= {"dfeas-survey", "dfeas-softmin"}
    assert shown(method="online-perceptron", max_passes=3) >= {"dfeas-survey", "dfeas-read", "dfeas-online"}
    assert "dfeas-survey-moments" in shown(transform="std", max_passes=5)
    assert bars(client, lambda: dfeas.soft_margin(*data, client=client, tol=0.5, max_passes=20)) & {"dfeas-hinge"}
    two = bars(client, lambda: dfeas.race(*data, methods=["perceptron", "mirror-prox"], max_passes=4, client=client))
    assert any("softmin" in name.split("-") and len(name.split("-")) > 2 for name in two)
    assert "dfeas" not in client.run_on_scheduler(counts)


class News(SchedulerPlugin):
    """Sends two clients that come a message together with the greeting, as cancelled tasks of others do on a busy cluster."""

    left = 2

    def add_client(self, scheduler: Any, client: str) -> None:
        self.left -= 1
        if self.left >= 0:
            scheduler.loop.asyncio_loop.call_soon(scheduler.report, {"op": "cancelled-keys", "keys": []})


@pytest.mark.parametrize("inside", [False, True])
def test_news_that_come_with_the_greeting_of_a_scheduler(inside: bool, dataset: Callable[..., Any], tmp_path: Path) -> None:
    path, _ = dataset("planted", 10, 5000, margin=0.1)
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.register_plugin(News())
        with pytest.raises(AssertionError):  # Dask's own
            Client(cluster.scheduler_address)
        if not inside:
            assert dfeas.solve(path, client=cluster.scheduler_address).verdict == "feasible"
            return
        run = submit(path, out=tmp_path / "run", client=client)
        awaited(client, run, lambda found: found.task == "memory")
