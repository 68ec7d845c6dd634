"""What several tests need: instances in memory, a cluster, an exact oracle."""

import re
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import dask.config
import numpy as np
import pytest
from distributed.utils import get_mp_context
from hypothesis import HealthCheck, settings

from dfeas.data.generate.points import Instance, generate
from dfeas.data.storage.layout import Header
from dfeas.engine.clusters import local_cluster
from dfeas.linalg.points import norms
from dfeas.passes.block import Block
from tests.marks import Recorder, mark, processor_seconds

settings.register_profile("dfeas", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dfeas")

# Clusters in the process of the tests: workers, which die and start again by the hundred, are forked from a process that has
# imported everything, and nobody looks at a cluster that waits a hundred times a second. Whole programs have Dask's own ways.
dask.config.set(
    {
        "distributed.worker.multiprocessing-method": "forkserver",
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.system-monitor.interval": "5s",
    }
)
get_mp_context().set_forkserver_preload(["distributed.nanny", "dfeas.engine.worker"])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-slow", action="store_true", help="write tests/slow.txt anew for the tests that run")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # begun in the background of a script: programs inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--record-slow") and not hasattr(config, "workerinput"):  # xdist's processes send reports to it
        config.pluginmanager.register(Recorder())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark(items)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A package that is not installed skips the tests that need it, never the collection of all others."""
    report = yield
    missing = re.search("ModuleNotFoundError: No module named '([a-zA-Z0-9_]+)", str(report.longrepr))
    if report.failed and missing and missing[1] not in ("dfeas", "tests", "benchmarks"):
        report.outcome = "skipped"
        report.longrepr = str(collector.path), 0, f"Skipped: needs {missing[1]}, which is not installed"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    before = processor_seconds()
    try:
        return (yield)
    finally:
        item.user_properties.append(("processor_seconds_call", processor_seconds() - before))


@pytest.fixture(scope="session")
def arrays() -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Points (n, m) and labels (n,) of a generated instance."""

    def make(kind: str, m: int, n: int, **options: Any) -> tuple[np.ndarray, np.ndarray]:
        instance = Instance(kind, m, n, **options)
        blocks = [instance.block(i) for i in range(-(-n // instance.rows))]
        return np.vstack([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks])

    return make


@pytest.fixture(scope="session")
def unit_columns() -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A (m, n): signed unit columns in float64, computed without dfeas."""

    def make(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
        wide = np.asarray(X, np.float64) * np.asarray(labels, np.float64)[:, None]
        return (wide / np.linalg.norm(wide, axis=1)[:, None]).T

    return make


@pytest.fixture(scope="session")
def block() -> Callable[..., Block]:
    """A block of points and labels."""

    def make(X: np.ndarray, labels: np.ndarray, start: int = 0, intercept: bool = False) -> Block:
        return Block.of(start, np.ascontiguousarray(X), np.asarray(labels, np.float64), norms(X), intercept)

    return make


@pytest.fixture
def dataset(tmp_path: Path) -> Callable[..., tuple[Path, Header]]:
    """A generated dataset on disk."""

    def make(kind: str, m: int, n: int, name: str = "data", **options: Any) -> tuple[Path, Header]:
        return tmp_path / name, generate(Instance(kind, m, n, **options), tmp_path / name)

    return make


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    """A client of a cluster of two worker processes."""
    with local_cluster(2) as found:
        yield found
