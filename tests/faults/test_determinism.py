"""The same bits from every engine and size, in whatever order ranges end, and when a worker is killed on the way."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dfeas
from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.clusters import local_cluster
from dfeas.engine.distributed import DaskEngine
from dfeas.engine.local import LocalEngine
from dfeas.verify.core import check
from tests.bits import iterates
from tests.faults.faulty import Incident, Meddling, kill, settle, uneven, wait_until

SOME = ("mirror-prox-one-pass", "online-perceptron", "ispvn")  # a pass, a fold, and vectors


def test_four_workers_a_shuffled_order_and_a_killed_worker(
    dataset: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = dataset("halfspace", 20, 8_000, block_rows=300)
    source = Source(DataSpec(path))
    found = {"one thread": iterates(LocalEngine(open_source(source), 1), SOME)}
    ends: list[int] = []
    shuffled = Meddling(path, uneven)
    with monkeypatch.context() as patch:
        patch.setattr(Dataset, "read_blocks", Dataset.read_blocks)  # is put back afterwards
        Meddling(path, lambda block: ends.append(block.start)).setup(None)
        shuffled.setup(None)
        found["threads in any order"] = iterates(LocalEngine(open_source(source), 4), SOME)
    assert any(ends[i : i + 27] != sorted(ends[i : i + 27]) for i in range(0, len(ends), 27))  # some pass was out of order
    (tmp_path / "marks").mkdir()
    incident = Incident(4500, kill, tmp_path / "marks", range(12, 13))
    with local_cluster(4) as client:
        client.register_plugin(shuffled)
        found["4 workers in any order"] = iterates(DaskEngine(client, source, open_source(source), fold_bytes=100_000), SOME)
        settle(client)
        client.register_plugin(Meddling(path, incident))
        found["a worker killed"] = iterates(DaskEngine(client, source, open_source(source), fold_bytes=100_000), SOME)
        wait_until(lambda: len(client.nthreads()) == 4)
    assert incident.happened
    assert len(set(found.values())) == 1, found


def test_the_check_has_the_same_bits_for_every_cut(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("one-flip", 20, 6_000, margin=0.1, block_rows=200)
    found = dfeas.solve(path, method="mirror-prox-one-pass", eps=0.01)
    assert found.verdict == "eps-infeasible"
    bounds = set()
    for threads in (1, 2, 3, 8, 30):
        opened = open_source(Source(DataSpec(path)))
        bounds.add(check(LocalEngine(opened, threads), opened, found.evidence).margin_upper)
    assert bounds == {found.margin_upper}
