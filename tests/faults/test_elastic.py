"""Clusters that grow, shrink, restart, are busy, or have workers with little memory: the same bits as undisturbed."""

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from distributed import Client

import dfeas
from dfeas.engine.clusters import local_cluster
from tests.bits import digest
from tests.faults.faulty import meanwhile, wait_until
from tests.run.test_resume import run_until

RUN: dict[str, Any] = {"method": "smooth-perceptron", "eps": 1e-6, "margin_tolerance": 1e-3, "max_passes": 25}


@pytest.fixture
def points(dataset: Callable[..., Any]) -> Path:
    path: Path = dataset("planted", 20, 12_000, margin=0.001, block_rows=500)[0]
    return path


def test_an_adaptive_cluster_may_begin_with_no_worker_and_lose_all_between_reads(points: Path) -> None:
    calm = dfeas.solve(points, **RUN)
    asked: list[int] = []
    with local_cluster(0) as client:

        def stop() -> bool:
            """Never, but all workers leave now and then, and come for tasks that wait."""
            asked.append(len(asked))
            if len(asked) in (8, 16):
                client.cluster.adapt(minimum=0, maximum=0, interval="50ms", wait_count=1)
                wait_until(lambda: not client.nthreads())
                client.cluster.adapt(minimum=0, maximum=2, interval="50ms", wait_count=1, target_duration="10ms")
            return False

        client.cluster.adapt(minimum=0, maximum=2, interval="50ms", wait_count=1, target_duration="10ms")
        found = run_until(stop, dfeas.solve, points, client=client, **RUN)
    assert len(asked) >= 25
    assert digest(found.evidence) == digest(calm.evidence)
    assert (found.passes, found.margin_lower, found.margin_upper) == (calm.passes, calm.margin_lower, calm.margin_upper)


def test_all_workers_may_be_restarted_one_after_the_other(points: Path) -> None:
    calm = dfeas.solve(points, **RUN)
    rolled: list[str] = []
    with local_cluster(2) as client, Client(client.cluster) as other:
        workers, began = list(client.nthreads()), Event()

        def roll(ended: Event) -> None:
            began.wait()
            for worker in workers:
                other.restart_workers([worker], timeout=60)
                rolled.append(worker)

        def stop() -> bool:
            began.set()
            time.sleep(0 if len(rolled) == len(workers) else 0.05)
            return False

        with meanwhile(roll):
            found = run_until(stop, dfeas.solve, points, client=client, **RUN)
            wait_until(lambda: len(rolled) == len(workers), 120)
            again = dfeas.solve(points, client=client, **RUN)
    for each in (found, again):
        assert digest(each.evidence) == digest(calm.evidence)
        assert (each.stopped, each.passes) == (calm.stopped, calm.passes)


def test_a_scheduler_busy_with_tasks_of_others_changes_no_bit(points: Path) -> None:
    calm = dfeas.solve(points, **RUN)
    with local_cluster(2) as client, Client(client.cluster) as other:
        foreign = other.map(time.sleep, [0.002] * 600, pure=False)
        found = dfeas.solve(points, client=client, **RUN)
        assert all(result is None for result in other.gather(foreign))
    assert digest(found.evidence) == digest(calm.evidence)


def test_a_worker_with_less_memory_than_the_budget_keeps_less_and_lives(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("planted", 100, 600_000, margin=0.001)  # 240 MB: what one of two workers has of it is too much for it
    few = RUN | {"max_passes": 4}
    calm = dfeas.solve(path, **few)
    with local_cluster(1) as client:
        client.cluster.new_spec["options"]["memory_limit"] = "200MB"
        client.cluster.scale(2)
        client.wait_for_workers(2)
        before = set(client.nthreads())
        found = dfeas.solve(path, client=client, **few)
        limits = [worker["memory_limit"] for worker in client.scheduler_info()["workers"].values()]
        assert set(client.nthreads()) == before
    assert sorted(limits) == [0, 200_000_000]
    assert digest(found.evidence) == digest(calm.evidence)
    assert found.margin_upper == calm.margin_upper
