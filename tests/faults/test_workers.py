"""Workers die, freeze, lose their connections or leave in the middle of a pass or an ingest: the same bits as undisturbed."""

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.clusters import local_cluster, mend
from dfeas.engine.distributed import DaskEngine
from dfeas.engine.watch import Watch
from dfeas.errors import ClusterLostError
from dfeas.passes.softmin import Softmin
from tests.bits import digest
from tests.faults.faulty import Incident, Meddling, cut_connections, freeze, kill, leave, settle, wait_until

WORKERS = 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers; a frozen one is noticed soon, and few of them may die of one task."""
    soon = {
        "distributed.scheduler.worker-ttl": "1s",
        "distributed.scheduler.allowed-failures": 3,
    }
    with local_cluster(WORKERS, soon) as client, pytest.MonkeyPatch.context() as patch:
        small = partial(DaskEngine, fold_bytes=100_000)
        patch.setattr("dfeas.engine.distributed.DaskEngine", small)  # of a solve
        yield client


def _kill_all(pids: list[int]) -> None:
    for pid in sorted(pids, key=lambda pid: pid == os.getpid()):
        os.kill(pid, signal.SIGKILL)


def _of_all(client: Any, ask: Callable[[], Any]) -> Any:
    """What is asked of every worker, once as many are there as belong to the cluster and none is just going."""
    answers: list[Any] = []

    def ready() -> bool:
        try:
            answers.append(ask())
        except OSError:
            return False
        mend(client, len(client.nthreads()))
        return len(client.nthreads()) >= WORKERS

    wait_until(ready)
    return answers[-1]


def _meddle(client: Any, path: Path, incident: Incident) -> None:
    _of_all(client, lambda: client.register_plugin(Meddling(path, incident)))


def _pids(client: Any) -> list[int]:
    return list(_of_all(client, lambda: client.run(os.getpid)).values())


PASS, FOLD, VECTORS = ("mirror-prox-one-pass", 3), ("online-perceptron", 1), ("ispvn", 1)


@pytest.mark.parametrize(
    ("what", "method", "turn"),
    [
        (kill, *PASS),
        (freeze, *PASS),
        (leave, *PASS),
        ("kill all", *PASS),
        (cut_connections, *PASS),
        (kill, *FOLD),
        ("kill all", *FOLD),
        (kill, *VECTORS),
    ],
    ids=lambda w: getattr(w, "__name__", str(w)),
)
def test_the_bits_are_those_of_an_undisturbed_run(
    dataset: Callable[..., Any], tmp_path: Path, cluster: Any, what: Any, method: str, turn: int
) -> None:
    path, _ = dataset("one-flip" if method == "mirror-prox-one-pass" else "planted", 20, 12_000, margin=0.05, block_rows=500)
    options = {"method": method, "eps": 0.01}
    calm = dfeas.solve(path, **options)
    if what == "kill all":
        what = partial(_kill_all, _pids(cluster))
    (tmp_path / "marks").mkdir()
    incident = Incident(9000, what, tmp_path / "marks", range(turn, turn + 1))
    _meddle(cluster, path, incident)
    try:
        found = dfeas.solve(path, client=cluster, **options)
    finally:
        settle(cluster)
    assert incident.happened
    assert (found.stopped, found.proof) == ("verdict", "rigorous")
    assert digest(found.evidence) == digest(calm.evidence)
    same = ("verdict", "margin_lower", "margin_upper", "passes", "reads", "iterations", "bytes_read", "fingerprint")
    assert [getattr(found, k) for k in same] == [getattr(calm, k) for k in same]


def test_results_that_are_lost_before_they_are_gathered_are_computed_again(
    dataset: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = dataset("planted", 20, 12_000, margin=0.05, block_rows=500)
    gathered = Watch.gather
    calm = dfeas.solve(path, method="mirror-prox-one-pass")
    times: list[int] = []
    with local_cluster(WORKERS) as client, monkeypatch.context() as patch:

        def robbed(self: Watch, futures: Any) -> Any:
            times.append(len(futures))
            if len(times) == 2:
                _kill_all(list(client.run(os.getpid).values()))
                # now the scheduler cannot but put aside what only those who are gone may do
                wait_until(lambda: any(future.status == "lost" for future in futures))
            return gathered(self, futures)

        patch.setattr(Watch, "gather", robbed)
        found = dfeas.solve(path, method="mirror-prox-one-pass", client=client)
    assert len(times) > 2
    assert digest(found.evidence) == digest(calm.evidence)
    assert found.passes == calm.passes


def test_a_piece_of_work_that_kills_every_worker_ends_the_run(
    dataset: Callable[..., Any], tmp_path: Path, cluster: Any
) -> None:
    path, _ = dataset("planted", 20, 12_000, margin=0.05, block_rows=500)
    (tmp_path / "marks").mkdir()
    incident = Incident(9000, kill, tmp_path / "marks", range(100))
    _meddle(cluster, path, incident)
    source = Source(DataSpec(path, intercept=False))
    engine = DaskEngine(cluster, source, open_source(source), watch=Watch(cluster, most_deaths=3))
    try:
        with pytest.raises(ClusterLostError, match="Dask workers died 4 times, one after the other"):
            engine.run(Softmin(np.ones((20, 1)), np.ones(1)))
    finally:
        settle(cluster)
    assert len(list(incident.marks.iterdir())) <= 4 * WORKERS


def test_pieces_of_an_ingest_that_are_lost_are_done_again_soon(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dfeas.data.writers.chunks.PIECE_BYTES", 1)
    X = np.zeros((600, 9))
    X[:, [1, 6, 8]] = np.random.default_rng(0).standard_normal((600, 3))
    np.save(tmp_path / "X.npy", X)
    options = {"block_rows": 50, "sparse": True, "y": (X[:, 1] > 0).astype(int)}
    calm = dfeas.ingest(tmp_path / "X.npy", tmp_path / "calm", **options)
    gathered = Watch.gather
    times: list[int] = []

    def robbed(self: Watch, futures: Any) -> Any:
        times.append(len(futures))
        if len(times) == 3:
            _kill_all(_pids(cluster))
        return gathered(self, futures)

    monkeypatch.setattr(Watch, "gather", robbed)
    began = monotonic()
    assert dfeas.ingest(tmp_path / "X.npy", tmp_path / "robbed", client=cluster, **options) == calm
    assert monotonic() - began < 60  # 5 to 19 s; before losses were met as in a pass it took 190 to 320
    assert len(times) > 12  # blocks, and chunks
    kept = [
        {file.relative_to(out): file.read_bytes() for file in out.rglob("*") if file.is_file()}
        for out in (tmp_path / "calm", tmp_path / "robbed")
    ]
    assert kept[0] == kept[1]
