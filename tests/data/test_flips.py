"""What comes over a network is compared each time it comes, and is asked for once more before it is called damaged."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dfeas
from dfeas import ingest
from dfeas.data.dataset import Dataset
from dfeas.data.generate.points import Instance, SparseInstance, generate
from dfeas.data.storage.object_path import ObjectPath
from dfeas.data.storage.places import zarr_store
from dfeas.data.writers.sparse import SparseWriter
from dfeas.errors import CorruptDataError
from tests.data.s3 import Door

RUN: dict[str, Any] = {"method": "mirror-prox", "max_passes": 5, "margin_tolerance": 1e-6, "eps": 1e-9}


@pytest.fixture(autouse=True)
def unkept(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pass reads all blocks."""
    monkeypatch.setattr(Dataset, "enable_cache", lambda self, budget: None)
    monkeypatch.setenv("DFEAS_STORAGE_PATIENCE", "2")


def dense(where: str, folder: Path) -> dict[str, Any]:
    generate(Instance("planted", 5, 700, 0.001, block_rows=100), where)
    return {"X": where}


def shards(where: str, folder: Path) -> dict[str, Any]:
    generate(Instance("planted", 5, 700, 0.001, block_rows=100), where, shard=3 * (100 * 5 * 4 + 4))
    return {"X": where}


def sparse(where: str, folder: Path) -> dict[str, Any]:
    X, y = SparseInstance("one-flip", 30, 700, 0.1, 0.001).block(0)
    ingest(X, where, y=y, block_rows=100)
    return {"X": where}


def masked(where: str, folder: Path) -> dict[str, Any]:
    np.save(folder / "mask.npy", np.arange(700) % 7 != 2)
    return {**dense(where, folder), "mask": folder / "mask.npy"}


def foreign(where: str, folder: Path) -> dict[str, Any]:
    X = np.random.default_rng(0).standard_normal((700, 5))
    place = zarr_store(ObjectPath.of(where), read_only=False)
    zarr.create_array(place, data=X, chunks=(100, 5), compressors=None)
    np.save(folder / "y.npy", X[:, 0] > 0)
    return {"X": where, "y": folder / "y.npy"}


def bits(result: Any) -> tuple[Any, ...]:
    return result.passes, result.margin_lower, result.margin_upper, result.separator.tobytes()


def at(turn: int, kind: str) -> Callable[[str, str], str]:
    """A fault of the answer with this number to the same request, and where it is a chunk of every third after it."""
    seen: Counter[str] = Counter()

    def fault(method: str, path: str) -> str:
        if method != "GET" or path == "/bucket":
            return ""
        seen[path] += 1
        again = "/c" in path and seen[path] > turn and (seen[path] - turn) % 3 == 0
        return kind if again or seen[path] == turn else ""

    return fault


def once(turn: int, part: str) -> Callable[[str, str], str]:
    """Another bit in the answer with this number to requests of a part."""
    seen: Counter[str] = Counter()

    def fault(method: str, path: str) -> str:
        seen[part] += part in path
        return "flip" if part in path and seen[part] == turn else ""

    return fault


KINDS = [(dense, "flip"), (dense, "short"), (dense, "break"), (shards, "refuse"), (shards, "short")]
KINDS += [(sparse, "flip"), (sparse, "short"), (masked, "flip"), (foreign, "flip"), (foreign, "short"), (foreign, "break")]


@pytest.mark.parametrize(("make", "kind"), KINDS)
def test_what_came_wrong_is_asked_for_once_more(
    make: Callable[[str, Path], dict[str, Any]], kind: str, door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparseWriter, "chunk_entries", 500)  # a block, of few requests, is asked for as a whole
    asked = make(f"s3://bucket/{make.__name__}-{kind}", tmp_path)
    calm = bits(dfeas.solve(**asked, **RUN))
    for turn in (1, 2, 3):
        if make is foreign and turn == 1 and kind == "flip":
            continue  # nobody knows what it should be before it came
        door.reset()
        door.fault = at(turn, kind)
        assert bits(dfeas.solve(**asked, **RUN)) == calm


def test_each_reader_of_a_run_asks_once_more_for_what_only_a_survey_has_seen(door: Door, tmp_path: Path) -> None:
    """The passes, and the checker of the verdict, which has its own comparison."""
    asked = foreign("s3://bucket/surveyed", tmp_path)
    door.reset()
    calm = bits(dfeas.solve(**asked))
    reads = door.count("GET", "/c/3/")
    assert reads > 2
    for turn in range(2, reads + 1):  # the survey's, which is the first, says what it should be
        door.reset()
        door.fault = once(turn, "/c/3/")
        assert bits(dfeas.solve(**asked)) == calm
        assert door.count("GET", "/c/3/") == reads + 1


def test_what_stays_wrong_is_damage(door: Door, tmp_path: Path) -> None:
    where = "s3://bucket/stays"
    dense(where, tmp_path)
    for part in ("/X/c.3", "/label/c", "/norm/c", "/zarr.json", "/checksum/c"):
        door.fault = lambda method, path, part=part: "flip" if part in path else ""
        with pytest.raises(CorruptDataError) as caught:
            dfeas.solve(where, **RUN)
        assert caught.value.exit_code == 5


def test_a_cache_does_not_keep_what_came_wrong(door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFEAS_CACHE_DIR", str(tmp_path / "kept"))
    where = "s3://bucket/cached"
    dense(where, tmp_path)
    door.fault = lambda method, path: "flip" if "/c." in path else ""
    with pytest.raises(CorruptDataError):
        dfeas.solve(where, **RUN)
    door.reset()
    found = bits(dfeas.solve(where, **RUN))
    door.reset()
    assert bits(dfeas.solve(where, **RUN)) == found
    assert door.count("GET", "/X/c.") == 0
    monkeypatch.delenv("DFEAS_CACHE_DIR")
    assert bits(dfeas.solve(where, **RUN)) == found


def test_a_part_of_a_file_that_is_too_short_is_asked_for_once_more(door: Door, tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((700, 5))
    np.savez(tmp_path / "a.npz", X=X, y=(X[:, 0] > 0).astype(int))
    ObjectPath.of("s3://bucket/src/a.npz").write_bytes((tmp_path / "a.npz").read_bytes())
    whole = ingest(tmp_path / "a.npz", tmp_path / "here").fingerprint
    door.fault = at(1, "short")
    assert ingest("s3://bucket/src/a.npz", tmp_path / "there").fingerprint == whole
    door.fault = lambda method, path: "short" if method == "GET" and "/src" in path else ""
    with pytest.raises(CorruptDataError, match=r"a\.npz: not a readable"):
        ingest("s3://bucket/src/a.npz", tmp_path / "never")
