"""The k-th read fails or is damaged, for every k: corrupt data is said, or the verdict is right; never a wrong one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Cost, SliceReader
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.distributed import DaskEngine
from dfeas.engine.local import LocalEngine
from dfeas.errors import CorruptDataError
from dfeas.passes.protocol import OnVectors, Ordered
from dfeas.passes.softmin import Softmin
from dfeas.passes.steps import Online
from dfeas.passes.vectors import Positive, Shift
from tests.faults.faulty import Count, Meddling, cut_short, flaky, flipped, gone, settle

SOLVES = [
    ("working-set", "one-flip", "infeasible", gone),
    ("mirror-prox-one-pass", "planted", "feasible", gone),
    ("mirror-prox-one-pass", "planted", "feasible", cut_short),
    ("online-perceptron", "planted", "feasible", flipped),
    ("ispvn", "planted", "feasible", flipped),
]


@pytest.mark.parametrize(("method", "kind", "verdict", "damage"), SOLVES, ids=lambda v: getattr(v, "__name__", v))
def test_each_read_of_a_solve_may_fail(
    dataset: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    kind: str,
    verdict: str,
    damage: Any,
) -> None:
    path, _ = dataset(kind, 5, 120, margin=0.3 if method == "ispvn" else 0.05, block_rows=30)
    options = {"method": method, "eps": 0.02}
    calm = dfeas.solve(path, **options)
    monkeypatch.setattr("dfeas.run.session.cache_bytes", lambda *args, **options: 0)  # every pass reads
    k, refused = 0, 0
    while True:
        k += 1
        count, run = Count(), tmp_path / f"run{k}"
        for module in ("data.open", "run.session"):
            monkeypatch.setattr(
                f"dfeas.{module}.open_source",
                lambda source, *root, count=count, k=k: flaky(open_source(source, *root), path, count, k, damage),
            )
        try:
            result = dfeas.solve(path, out=run, **options)
        except CorruptDataError:
            refused += 1
            left = {entry.name for entry in run.iterdir()}
            assert not left & {"result.json", "certificate.npz", "scratch"}
            continue
        assert (result.verdict, result.stopped) == (verdict, "verdict")
        if damage is not flipped:  # a flipped bit in a block that was checked before may be met by one pass
            assert (result.margin_lower, result.passes) == (calm.margin_lower, calm.passes)
        if count.reads < k:
            break
    assert k > 20
    # a damaged file is said, but for bits that were compared with their checksum before, or are of another block: labels and
    # norms of all four are in a shard each, and a bit in it is of one of them
    assert refused == k - 1 or (damage is flipped and refused >= 2 * (4 + 1) + 1)


class Damage:
    """On a worker: the k-th block that is scanned finds the next one damaged on disk."""

    def __init__(self, path: Path, damage: Callable[[Path], Any], k: int) -> None:
        self.path, self.damage, self.k, self.blocks = path, damage, k, 0

    def __call__(self, block: Any) -> None:
        self.blocks += 1
        if self.blocks == self.k:
            self.damaged = self.damage(self.path / "X" / f"c.{block.start // len(block.points) + 1}.0")
            self.damaged.__enter__()  # for good


@pytest.mark.parametrize("question", [Softmin(np.ones((4, 1)), np.ones(1)), Ordered(Online(np.ones(4)))], ids=["pass", "fold"])
@pytest.mark.parametrize("damage", [gone, flipped, cut_short], ids=lambda d: d.__name__)
def test_a_read_of_a_worker_may_fail(dataset: Callable[..., Any], client: Any, damage: Any, question: Any) -> None:
    path, _ = dataset("planted", 4, 2400, margin=0.3, block_rows=100)
    client.register_plugin(Meddling(path, Damage(path, damage, 3)))
    try:
        engine = DaskEngine(
            client, Source(DataSpec(path, intercept=False)), open_source(Source(DataSpec(path, intercept=False)))
        )
        # a worker that opens the data only now finds that a chunk is missing
        with pytest.raises(CorruptDataError, match=r"chunk \d+ of X|chunks are missing|X/c\."):
            engine.run(question)
    finally:
        settle(client)


def _unreadable(dataset: Any, first: int, stop: int) -> bytes:
    return Path("/proc/self/mem").read_bytes()


def test_storage_that_fails_on_a_worker_is_corrupt_data_and_no_lost_cluster(dataset: Callable[..., Any], client: Any) -> None:
    path, _ = dataset("planted", 4, 120, margin=0.3, block_rows=30)
    engine = DaskEngine(client, Source(DataSpec(path, intercept=False)), open_source(Source(DataSpec(path, intercept=False))))
    with pytest.raises(CorruptDataError, match=r"data: Input.output error \(worker tcp:.* on "):
        engine.map(_unreadable)


@dataclass
class Held:
    """An array that gives its first rows at once, and later ones when it may."""

    rows: np.ndarray
    asked: Event = field(default_factory=Event)
    may: Event = field(default_factory=Event)
    given: Event = field(default_factory=Event)

    def __getitem__(self, which: slice) -> np.ndarray:
        if which.start:
            self.asked.set()
            self.may.wait(10)
            self.given.set()
        return self.rows[which]


def test_a_block_that_nobody_wants_any_more_is_not_waited_for(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    opened = open_source(Source(DataSpec(path, intercept=False)))
    held = Held(np.concatenate([block.points.copy() for block in opened.read_blocks(range(opened.blocks), Cost())]))
    opened.points = SliceReader("X", held, opened.n, opened.block_rows, opened.dtype)
    blocks = opened.read_blocks(range(opened.blocks), Cost())
    next(blocks)
    assert held.asked.wait(60)
    blocks.close()  # as whoever looks for garbage does, in any thread: that of zarr, too
    assert not held.given.is_set()
    held.may.set()


def test_a_full_disk_under_the_vectors_is_said(dataset: Callable[..., Any], tmp_path: Path) -> None:
    path, _ = dataset("planted", 4, 120, margin=0.3, block_rows=30)
    scratch = Scratch(tmp_path / "scratch")
    engine = LocalEngine(open_source(Source(DataSpec(path, intercept=False))), 2, scratch)
    scratch.folder.mkdir()
    (scratch.folder / "v.f64").symlink_to("/dev/full")
    with pytest.raises(CorruptDataError, match="choose out where there is room"):
        engine.run(OnVectors(Shift(np.ones(4), 1.0, 0.5), (), ("v",), points=True, keeps=("v",)))
    (scratch.folder / "w.f64").symlink_to("/proc/self/mem")  # its first bytes cannot be read
    with pytest.raises(CorruptDataError, match=r"w\.f64"):
        engine.run(OnVectors(Positive(0.0), ("w",), (), points=False, keeps=None))
    engine.close()
