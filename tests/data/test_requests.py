"""How many requests commands make of an object store: each is counted at the door of a real server of S3."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import zarr

import dfeas
from dfeas.data.generate.points import Instance, SparseInstance, generate
from dfeas.data.storage.object_path import ObjectPath
from dfeas.data.storage.places import zarr_store
from dfeas.data.storage.readers import Cost
from tests.data.making import opened
from tests.data.s3 import Door, lead

BLOCKS = 20
OPENING = 2
"""Requests that open a dataset: zarr.json and the checksums."""
SIDES = 2 * 2
"""Requests for labels and norms of 20 blocks, of which 16 are in an object."""
PASSES = {"method": "mirror-prox", "max_passes": 10, "margin_tolerance": 1e-6, "eps": 1e-9}


@pytest.fixture(scope="module", autouse=True)
def stored(server: tuple[Door, dict[str, str]]) -> None:
    generate(Instance("planted", 5, 2000, 0.001, block_rows=100), "s3://bucket/data")


def count(door: Door) -> Counter[str]:
    """Requests so far: ``points`` are those that got a block of points, ``others`` those that got something else."""

    def kind(method: str, path: str) -> str:
        if method == "GET" and path.strip("/") == "bucket":
            return "LIST"
        return method if method != "GET" else "points" if "/X/c." in path else "others"

    found = Counter(kind(*request) for request in door.requests)
    door.reset()
    return found


def test_a_dataset_is_opened_by_two_requests(door: Door) -> None:
    dfeas.info("s3://bucket/data")
    assert count(door) == {"others": OPENING}


def test_a_read_takes_a_request_a_block_and_few_for_labels_and_norms(door: Door) -> None:
    dataset = opened("s3://bucket/data")
    for _ in range(3):
        assert sum(block.size for block in dataset.read_blocks(range(BLOCKS), Cost())) == 2000
    assert count(door) == {"others": OPENING + SIDES, "points": 3 * BLOCKS}


def test_a_run_and_its_check_list_nothing(door: Door, tmp_path: Path) -> None:
    result = dfeas.solve("s3://bucket/data", out=tmp_path / "run")
    found = count(door)
    assert found.pop("points") <= BLOCKS * -(-result.reads // 1)
    assert found == {"others": 2 * OPENING + SIDES}
    dfeas.verify_run(tmp_path / "run", follow=True)
    found = count(door)
    assert found.pop("points") == BLOCKS
    assert found == {"others": OPENING + SIDES}  # labels twice: they are counted, too


def test_ten_passes_ask_for_each_block_once_and_the_checker_again(door: Door) -> None:
    result = dfeas.solve("s3://bucket/data", **PASSES)
    assert result.passes >= 10
    found = count(door)
    assert found.pop("points") <= 2 * BLOCKS
    assert found == {"others": 2 * OPENING + SIDES}  # the run's reader and the checker's


def test_each_worker_opens_a_dataset_once(door: Door, server: Any, client: Any) -> None:
    lead(client, server[1])
    workers = len(client.nthreads())
    dfeas.solve("s3://bucket/data", client=client, **PASSES)
    assert door.count("GET", "/zarr.json") == door.count("GET", "/checksum/") == 2 + workers
    found = count(door)
    assert found.pop("points") <= 2 * BLOCKS
    assert (2 + workers) * OPENING < found.pop("others") <= (2 + workers) * OPENING + 2 * workers * SIDES
    assert not found


def test_sparse_points_and_arrays_of_others_are_opened_by_few_requests(door: Door) -> None:
    generate(SparseInstance("planted", 30, 2000, 0.1, 0.1), "s3://bucket/sparse")
    door.reset()
    dfeas.info("s3://bucket/sparse")
    assert count(door) == {"others": OPENING + 1}  # and where the entries of blocks begin
    dfeas.info("s3://bucket/data/X")
    assert count(door) == {"others": 3, "HEAD": 1}


def test_zarr_opens_all_arrays_by_one_request(door: Door) -> None:
    group = zarr.open_group(zarr_store(ObjectPath.of("s3://bucket/data")), mode="r", zarr_format=3)
    assert (group["X"].shape, group["label"].shape) == ((2000, 5), (2000,))
    assert count(door) == {"others": 1}
