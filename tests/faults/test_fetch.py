"""Rows of a Dask array that a run asks for one block after the other."""

import os
import signal
from pathlib import Path
from threading import Thread
from typing import Any

import dask.array as da
import numpy as np

from dfeas.data.source import DataSpec
from dfeas.data.storage.readers import Buffers
from dfeas.engine.clusters import local_cluster
from dfeas.engine.collection import open_collection
from tests.faults.faulty import wait_until


def test_rows_are_fetched_again_when_the_worker_that_computed_them_died(tmp_path: Path) -> None:
    begun, done, found = tmp_path / "begun", tmp_path / "done", list[Any]()

    def wait(block: np.ndarray) -> np.ndarray:
        begun.touch()
        wait_until(done.exists)
        return block

    numbers = np.random.default_rng(0).standard_normal((200, 3))
    with local_cluster(1) as client:
        dataset = open_collection(client, DataSpec(da.from_array(numbers, chunks=100).map_blocks(wait, dtype=float)))
        fetching = Thread(target=lambda: found.append(dataset.points.read(0, Buffers())), daemon=True)
        fetching.start()
        wait_until(begun.exists)
        ((_, pid),) = client.run(os.getpid).items()
        os.kill(pid, signal.SIGKILL)
        done.touch()
        fetching.join(60)
    np.testing.assert_array_equal(found[0], numbers[: dataset.block_rows])
