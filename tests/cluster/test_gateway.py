"""Clusters that are reached by an object: those of a real dask-gateway with its local backend, and what functions make."""

import json
import re
import socket
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.config
import pytest

import dfeas
from tests.cluster.conftest import MARK

dask_gateway = pytest.importorskip("dask_gateway", reason="needs dask-gateway")
pytest.importorskip("dask_gateway_server", reason="needs dask-gateway-server[local]")

Until = Callable[..., None]

# a scheduler and a worker start for each cluster, and the gateway looks at them now and then
pytestmark = pytest.mark.timeout(300)

CONFIGURATION = f"""
import sys
c.DaskGateway.backend_class = "dask_gateway_server.backends.local.UnsafeLocalBackend"
c.DaskGateway.address = "127.0.0.1:0"
c.Proxy.address = "127.0.0.1:{{port}}"
c.UnsafeLocalBackend.clusters_directory = "{{folder}}"
c.UnsafeLocalBackend.inherited_environment = ["PATH", "PYTHONPATH", "OPENBLAS_NUM_THREADS", "{MARK}"]
c.ClusterConfig.scheduler_cmd = [sys.executable, "-m", "dask", "scheduler"]
c.ClusterConfig.worker_cmd = [sys.executable, "-m", "dask", "worker"]
"""
MAKER = """
from dask_gateway import Gateway
from distributed import LocalCluster

def one_worker():
    cluster = Gateway().new_cluster()
    cluster.scale(1)
    return cluster

def at_home():
    return LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0")

def broken():
    raise LookupError("no such partition")

def nothing():
    return None

def leave():
    raise SystemExit(0)
"""


@pytest.fixture
def gateway(room: Any, until: Until) -> Iterator[Any]:
    """A client of a dask-gateway on loopback, which the configuration of Dask names in the room, and not here."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (room.path / "config.py").write_text(CONFIGURATION.format(port=port, folder=room.path / "clusters"))
    (room.path / "maker.py").write_text(MAKER)
    address = f"http://127.0.0.1:{port}"
    room.environment["DASK_GATEWAY__ADDRESS"] = address
    with room.start(sys.executable, "-m", "dask_gateway_server", "--config", "config.py", "--log-level", "ERROR") as server:

        def answers() -> bool:
            try:  # its proxy is there before what it leads to
                with urllib.request.urlopen(f"{address}/api/health", timeout=10) as answer:
                    return bool(answer.status == 200)
            except OSError:
                return server.poll() is not None

        until(answers)
        with dask_gateway.Gateway(address) as there:
            yield there
        server.terminate()
        server.communicate(timeout=60)


def test_a_cluster_behind_a_gateway_is_joined_by_its_address(room: Any, points: Path, gateway: Any, until: Until) -> None:
    """In Python, as a command, and driven by a worker; it goes on when the run has ended."""
    here = dfeas.solve(points)
    with gateway.new_cluster() as cluster:
        cluster.scale(1)
        address = cluster.scheduler_address
        assert re.fullmatch(r"gateway://127\.0\.0\.1:\d+/\w+", address)
        assert dfeas.solve(points, client=address).coef.tobytes() == here.coef.tobytes()
        words = ("--out", room.path / "run", "--json", "--scheduler", address)
        assert room.verdict("dfeas", "solve", points, *words) == "feasible"
        words = ("--out", room.path / "sent", "--json", "--scheduler", address)
        sent = json.loads(room.run("dfeas", "submit", points, *words).stdout)
        result = room.path / "sent" / "result.json"
        until(result.exists)
        (known,) = json.loads(room.run("dfeas", "status", sent["run"], "--json", "--scheduler", address).stdout)
        assert known["verdict"] == json.loads(result.read_text())["verdict"] == "feasible"
        assert [report.name for report in gateway.list_clusters()] == [cluster.name]

        with pytest.raises(dfeas.UsageError, match=r"no Dask cluster 'other' behind the gateway .* not found"):
            dfeas.solve(points, client=f"{address.rpartition('/')[0]}/other")
        # where the address of a gateway is set, the scheduler may be behind another one
        with dask.config.set({"gateway.address": "http://127.0.0.1:9"}):
            for _ in range(9):  # what one attempt leaves behind must not stop a later one
                with pytest.raises(dfeas.UsageError, match=r"behind the gateway http://127\.0\.0\.1:9: ClientConnectorError"):
                    dfeas.solve(points, client=address)
    with pytest.raises(dfeas.UsageError, match=r"it is (stopping|stopped); Gateway\(\)\.list_clusters"):
        dfeas.solve(points, client=address)


def test_what_a_function_makes_is_closed_at_the_end(room: Any, points: Path, gateway: Any, until: Until) -> None:
    words = ("dfeas", "solve", points, "--json", "--performance-report", "report.html", "--out")
    assert room.verdict(*words, "run", "--cluster", "maker:one_worker") == "feasible"
    assert (room.path / "report.html").stat().st_size > 0
    until(lambda: not gateway.list_clusters())


def test_an_address_without_a_cluster_says_what_it_should_be(points: Path) -> None:
    for address in ("gateway://127.0.0.1:8000", "gateway://127.0.0.1:8000/"):
        with pytest.raises(dfeas.UsageError, match="no cluster is named; expected gateway://HOST:PORT/CLUSTER"):
            dfeas.solve(points, client=address)


def test_a_local_cluster_of_a_function_solves_and_ends(room: Any, points: Path) -> None:
    (room.path / "maker.py").write_text(MAKER)
    assert room.verdict("dfeas", "solve", points, "--json", "--out", "run", "--cluster", "maker:at_home") == "feasible"
    assert not room.processes()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("maker:broken", "--cluster maker:broken: LookupError: no such partition"),
        ("maker:absent", "AttributeError: module 'maker' has no attribute 'absent'"),
        ("absent:made", "ModuleNotFoundError: No module named 'absent'"),
        ("maker:leave", "SystemExit: 0"),
        ("maker:nothing", "object does not support the context manager protocol; expected module:function"),
    ],
)
def test_a_function_that_makes_no_cluster_is_one_line(room: Any, points: Path, name: str, said: str) -> None:
    (room.path / "maker.py").write_text(MAKER)
    done = room.run("dfeas", "solve", points, "--out", "run", "--cluster", name)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (room.path / "run").exists()


def test_one_cluster_is_named(room: Any, points: Path) -> None:
    done = room.run("dfeas", "solve", points, "--cluster", "maker:at_home", "--local", 2)
    assert done.returncode == 2
    assert "choose one of --scheduler, --scheduler-file, --local, --cluster" in done.stderr
    done = room.run("dfeas", "submit", points, "--out", "run", "--cluster", "maker:at_home")
    assert done.returncode == 2
    assert "a cluster that goes on without you" in done.stderr


def test_a_gateway_that_says_nothing_is_not_waited_for(points: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, dask.config.set({"distributed.comm.timeouts.connect": "0.3s"}):
        address = f"gateway://127.0.0.1:{listener.getsockname()[1]}/other"
        with pytest.raises(dfeas.UsageError, match=r"no Dask cluster 'other' behind .*: it did not answer within 0\.3 s; "):
            dfeas.solve(points, client=address)
