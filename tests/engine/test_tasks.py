"""A task of Dask may solve, as it may compute: its thread is given to others while it waits for them, and nothing hangs."""

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import dask.array as da
import dask.config
import numpy as np
import pytest
from distributed import Client, get_client, get_worker, worker_client

import dfeas
from dfeas.data.open import open_data
from dfeas.data.source import DataSpec, Source
from dfeas.engine.local import LocalEngine
from dfeas.estimators import LinearSVC, Separator
from dfeas.machine import processors

SECONDS = 60.0
"""No task here takes a tenth of it."""
X = np.random.default_rng(0).standard_normal((60, 3))
Y = X @ [1, 2, -1] > 0
FAR = int(np.argmax(X @ [1, 2, -1]))
WRONG = np.where(np.arange(len(X)) == FAR, ~Y, Y)
DISTANT = [9.0, 9.0, 9.0]

VERBS: dict[str, Callable[..., Any]] = {
    "solve": lambda X, **to: str(dfeas.solve(X, WRONG, **to).verdict),
    "one_vs_rest": lambda X, **to: [str(each.verdict) for each in dfeas.one_vs_rest(X, Y.astype(int), **to).results.values()],
    "race": lambda X, **to: str(dfeas.race(X, Y, methods="perceptron,working-set", **to).results["working-set"].verdict),
    "soft_margin": lambda X, **to: round(dfeas.soft_margin(X, WRONG, tol=1e-6, **to).objective, 3),
    "hard_margin": lambda X, **to: f"{dfeas.hard_margin(X, Y, margin_tolerance=1e-4, **to).margin:.2f}",
    "separation": lambda X, **to: str(dfeas.separation(X, WRONG, **to).kind),
    "suspects": lambda X, **to: dfeas.suspects(X, WRONG, **to).enough,
    "feasible": lambda X, **to: str(dfeas.feasible(X, np.ones(len(X)), **to).verdict),
    "LinearSVC": lambda X, **to: LinearSVC(**to).fit(X, Y).score(np.asarray(X), Y),
    "Separator": lambda X, **to: Separator(**to).fit(X, Y).score(np.asarray(X), Y),
}
WAYS: dict[str, Callable[[], Any]] = {"get_client": get_client, "the current one": lambda: True, "False": lambda: False}


def lazy() -> Any:
    return da.from_array(X, chunks=(20, 3))


def act(verb: str, way: str) -> Any:
    """In a task."""
    if way == "worker_client":
        with worker_client() as found:
            return VERBS[verb](lazy(), client=found)
    return VERBS[verb](lazy(), **({} if way == "none" else {"client": WAYS[way]()}))


def expected(verb: str) -> Any:
    return VERBS[verb](X, client=False)


def outer() -> Any:
    """A task whose own task solves."""
    with worker_client() as there:
        return there.submit(act, "solve", "none", pure=False).result(SECONDS)


def solve_alone(where: str) -> tuple[list[str], int, int]:
    """Verdicts without a cluster, the threads of an engine, and how many tasks have a thread then."""
    verdicts = [dfeas.solve(X, WRONG).verdict, dfeas.solve(where).verdict, dfeas.in_hull(DISTANT, X).result.verdict]
    return [str(each) for each in verdicts], engine_threads(where), get_worker().state.executing_count


def engine_threads(where: str) -> int:
    with closing(LocalEngine(open_data(Source(DataSpec(where)))[1])) as engine:
        return engine._threads


def ingest_and_solve(out: str) -> set[str]:
    dfeas.ingest(lazy(), f"{out}/lazy", y=WRONG, client=get_client())
    dfeas.ingest(X, f"{out}/array", y=WRONG)
    return {dfeas.solve(f"{out}/{name}", client=get_client()).fingerprint for name in ("lazy", "array")}


def pool_after_each() -> list[int]:
    """Threads of the pool of tasks after solves, and one that fails."""
    counts = []
    for labels in (WRONG, Y, Y[1:]):
        with suppress(dfeas.BadInputError):
            dfeas.solve(lazy(), labels)
        counts.append(len(get_worker().executors["default"]._threads))
    return counts


@pytest.fixture(scope="module")
def threads() -> Iterator[Client]:
    """As in a notebook: tasks run in this process, where the current client is the notebook's."""
    quiet = dask.config.set({"distributed.worker.preload": []})  # that of the other cluster is for processes
    with quiet, Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as found:
        yield found


@pytest.fixture(params=["processes", "threads"])
def workers(client: Client, threads: Client, request: pytest.FixtureRequest) -> Client:
    """A cluster whose workers have one thread each."""
    return {"processes": client, "threads": threads}[request.param]


TURNS = [(verb, ("processes", "threads")[turn % 2]) for turn, verb in enumerate(VERBS)]


@pytest.mark.parametrize(("verb", "workers"), TURNS, indirect=["workers"])
def test_each_verb_in_a_task_asks_the_cluster_of_its_worker(verb: str, workers: Client) -> None:
    assert workers.submit(act, verb, "none", pure=False).result(SECONDS) == expected(verb)


@pytest.mark.parametrize(
    ("way", "workers"),
    [("get_client", "processes"), ("the current one", "threads"), ("False", "processes"), ("worker_client", "threads")],
    indirect=["workers"],
)
def test_whatever_client_a_task_names(way: str, workers: Client) -> None:
    assert workers.submit(act, "solve", way, pure=False).result(SECONDS) == expected("solve")


def test_more_tasks_than_threads_and_tasks_of_tasks(workers: Client) -> None:
    asked = [workers.submit(act, "solve", way, pure=False) for way in ("none", "get_client", "worker_client", "False")]
    asked += [workers.submit(outer, pure=False)]
    other = workers.submit(int, pure=False)
    assert [each.result(SECONDS) for each in asked] == ["infeasible"] * 5
    assert other.result(SECONDS) == 0


def test_what_is_in_memory_or_by_path_keeps_to_the_thread_of_its_task(workers: Client, tmp_path: Path) -> None:
    where = str(tmp_path / "data")
    dfeas.ingest(X, where, y=WRONG)
    verdicts, threads, running = workers.submit(solve_alone, where, pure=False).result(SECONDS)
    assert (verdicts, threads, running) == (["infeasible", "infeasible", "feasible"], 1, 1)
    assert engine_threads(where) == processors()  # out of tasks


def test_a_task_ingests_and_solves_what_it_wrote(workers: Client, tmp_path: Path) -> None:
    found = workers.submit(ingest_and_solve, str(tmp_path), pure=False).result(SECONDS)
    assert found == {dfeas.solve(X, WRONG).fingerprint}


def test_the_thread_of_a_task_comes_back_to_its_pool(workers: Client) -> None:
    assert workers.submit(pool_after_each, pure=False).result(SECONDS) == [1, 1, 1]
