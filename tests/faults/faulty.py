"""What tests of faults share: readers that fail, incidents in worker processes, and waiting for a condition."""

import os
import random
import signal
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from distributed import WorkerPlugin

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Buffers, Looks, RowReader


def wait_until(condition: Callable[[], Any], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@contextmanager
def meanwhile(act: Callable[[Event], None]) -> Iterator[None]:
    """Something goes on in a thread until it is told to end."""
    ended = Event()
    thread = Thread(target=act, args=(ended,))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def gone(path: Path) -> Iterator[None]:
    """Opening the file fails: a link to itself."""
    aside = path.with_name(f"{path.name}.aside")
    path.rename(aside)
    path.symlink_to(path)
    try:
        yield
    finally:
        aside.replace(path)


@contextmanager
def flipped(path: Path) -> Iterator[None]:
    """One bit is another."""
    content = path.read_bytes()
    at = len(content) // 3
    path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
    try:
        yield
    finally:
        path.write_bytes(content)


@contextmanager
def cut_short(path: Path) -> Iterator[None]:
    """The last bytes are missing."""
    content = path.read_bytes()
    path.write_bytes(content[:-3])
    try:
        yield
    finally:
        path.write_bytes(content)


@dataclass
class Count:
    """Reads so far, of several readers and threads."""

    reads: int = 0
    lock: Lock = field(default_factory=Lock)

    def next(self) -> int:
        with self.lock:
            self.reads += 1
            return self.reads


@dataclass(frozen=True)
class Flaky:
    """A reader whose k-th read, counted with those of others, meets a damaged file."""

    inner: RowReader
    folder: Path
    suffix: str  # of the name of a chunk, after the block
    count: Count
    k: int
    damage: Callable[[Path], Any]

    @property
    def overlaps(self) -> bool:
        return self.inner.overlaps

    @property
    def distant(self) -> bool:
        return self.inner.distant

    def read(self, index: int, buffers: Buffers) -> Any:
        if self.count.next() != self.k:
            return self.inner.read(index, buffers)
        with self.damage(self.folder / f"c.{index}{self.suffix}"):
            return self.inner.read(index, buffers)

    def advise(self, index: int) -> None:
        self.inner.advise(index)

    def stamp(self, index: int, looks: Looks | None = None) -> int | None:
        return self.inner.stamp(index, looks)


def flaky(dataset: Dataset, path: Path, count: Count, k: int, damage: Callable[[Path], Any]) -> Dataset:
    """The dataset at a path, with one damaged read."""
    dataset.points = Flaky(dataset.points, path / "X", ".0", count, k, damage)
    dataset.labels = Flaky(dataset.labels, path / "label", "", count, k, damage)
    if dataset.stored_norms is not None:
        dataset.stored_norms = Flaky(dataset.stored_norms, path / "norm", "", count, k, damage)
    return dataset


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def freeze() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def cut_connections() -> None:
    """Close every socket of this worker, as a network that fails does."""
    from distributed import get_worker

    worker = get_worker()

    def abort() -> None:
        worker.batched_stream.comm.abort()
        for comm in (*worker._comms, *(c for some in worker.rpc.occupied.values() for c in some)):
            comm.abort()

    worker.loop.add_callback(abort)


def leave() -> None:
    """Retire and come back, as when a batch queue asks for it."""
    from distributed import get_worker

    worker = get_worker()
    worker.loop.add_callback(lambda: worker.close_gracefully(restart=True))


class Meddling(WorkerPlugin):
    """On all workers, now and later: something happens before each block of one dataset is given to whoever scans it."""

    name = "meddling"

    def __init__(self, path: Path, meddle: Callable[[Any], None]) -> None:
        self.path, self.meddle = str(path), meddle

    def setup(self, worker: Any) -> None:
        self.read_blocks = read_blocks = Dataset.read_blocks

        def meddled(dataset: Dataset, indices: Any, cost: Any, *how: Any, **named: Any) -> Iterator[Any]:
            for block in read_blocks(dataset, indices, cost, *how, **named):
                if dataset.where == self.path:
                    self.meddle(block)
                yield block

        Dataset.read_blocks = meddled

    def teardown(self, worker: Any) -> None:
        Dataset.read_blocks = self.read_blocks


def settle(client: Any) -> None:
    """End what meddles. A worker that dies while it is told takes its part with it."""
    with suppress(OSError):
        client.unregister_worker_plugin(Meddling.name)


@dataclass(frozen=True)
class Incident:
    """The reads of one block, by all workers together, are counted; at some of them something happens."""

    start: int  # first point of the block
    what: Callable[[], None]
    marks: Path  # a folder
    turns: range  # which reads, from 0

    def __call__(self, block: Any) -> None:
        if block.start == self.start and self._turn() in self.turns:
            self.what()

    def _turn(self) -> int:
        for turn in range(self.turns.stop):
            try:
                os.close(os.open(self.marks / str(turn), os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            return turn
        return self.turns.stop

    @property
    def happened(self) -> bool:
        return (self.marks / str(self.turns.start)).exists()


def uneven(block: Any) -> None:
    """Work of a random length, so that ranges end in another order each time."""
    for _ in range(random.randrange(40)):
        zlib.crc32(block.points)
