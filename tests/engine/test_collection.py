"""A Dask array or frame is solved where it lies: the laws of an engine, the bits of an ingest, and what may go wrong there."""

import os
import pickle
import signal
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import dfeas
from dfeas.data.collections import Labelled, Table, block_rows_of, dataset_of
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Buffers
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.clusters import local_cluster
from dfeas.engine.collection import CollectionEngine, open_collection
from dfeas.errors import BadInputError, ClusterLostError, CorruptDataError, UsageError
from dfeas.geometry.points import PointSpace
from dfeas.passes.protocol import OnVectors
from dfeas.passes.survey import Survey
from dfeas.passes.vectors import Positive
from dfeas.run.cost import PROCESS_BYTES, project
from tests.bits import digest
from tests.conformance.engines import BLOCK_ROWS, PAIRS, EngineTests, source
from tests.engine.test_client import bars
from tests.faults.faulty import wait_until

__all__ = ["source"]  # a fixture of the tests below


def rows_of(path: str, index: int, name: str) -> np.ndarray:
    """A block of a dataset, as its bytes are now."""
    return getattr(open_source(Source(DataSpec(path))), name).read(index, Buffers()).copy()


class CollectionTests(EngineTests):
    """Over a lazy array whose chunks are the blocks of a dataset, or others."""

    points_alone = True
    chunks: Any = BLOCK_ROWS

    @pytest.fixture(autouse=True)
    def connected(self, client: Any) -> None:
        self.client = client

    def make(self, source: Source, scratch: Scratch | None) -> CollectionEngine:
        there = open_source(source)

        def array(name: str, dtype: np.dtype, row: tuple[int, ...]) -> Any:
            read = dask.delayed(rows_of, pure=False)
            parts = []
            for index in range(there.blocks):
                shape = (min(BLOCK_ROWS, there.n - index * BLOCK_ROWS), *row)
                parts.append(da.from_delayed(read(source.spec.where, index, name), shape, dtype))
            return self.arranged(da.concatenate(parts).rechunk({0: self.chunks}))

        table = Table(array("points", there.dtype, (there.m,)), array("labels", np.dtype(np.int8), ()))

        def compute(parts: Sequence[Any]) -> list[Any]:
            return self.client.gather(self.client.compute(list(parts)))

        dataset = dataset_of(compute, table, BLOCK_ROWS, Labelled(there.classes))
        assert there.expected is not None
        dataset.expected = there.expected[:, :2]
        return CollectionEngine(self.client, dataset, scratch)

    def arranged(self, array: Any) -> Any:
        return array

    test_pairs_that_are_kept_change_no_bit = None
    test_vectors_are_written_read_and_forgotten = None

    def test_pairs_and_vectors_are_refused(self, start: Callable[..., Any], source: Source) -> None:
        engine = start(source)
        with pytest.raises(UsageError, match="a kernel needs points by pairs"):
            engine.run(PAIRS)
        with pytest.raises(UsageError, match="ispvn keeps numbers for each point"):
            engine.run(OnVectors(Positive(0.0), ("w",), (), points=False, keeps=None))


class TestRaggedChunks(CollectionTests):
    chunks = (1, 1200, 7, 2000, 0, 1792)
    methods = ("working-set",)


class TestPersisted(CollectionTests):
    chunks = 2 * BLOCK_ROWS
    methods = ("online-perceptron",)
    test_a_damaged_chunk_is_corrupt_data = None  # nothing reads the files any more

    def arranged(self, array: Any) -> Any:
        return self.client.persist(array)


SAME = ("verdict", "proof", "margin_lower", "margin_upper", "passes", "reads", "iterations", "bytes_read", "fingerprint")


def people(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Incomes, dates and dummies, of which one combination decides the outcome."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "income": rng.lognormal(10, 1, n).round(2),
            "age": rng.integers(18, 90, n).astype(np.int32),
            "since": rng.integers(0, 20_000, n).astype(np.float32),
            "owner": rng.integers(0, 2, n).astype(bool),
        }
    )
    outcome = np.where(frame["income"] / 2e4 + frame["age"] / 50 > 2.5, "yes", "no")
    return frame, outcome


@pytest.mark.parametrize(("method", "lazy"), [("auto", True), ("mirror-prox-one-pass", False), ("online-perceptron", True)])
def test_a_solve_has_the_bits_of_an_ingest(
    arrays: Callable[..., Any], tmp_path: Path, client: Any, method: str, lazy: bool
) -> None:
    X, labels = arrays("one-flip" if method == "mirror-prox-one-pass" else "planted", 200, 10_000, margin=0.05)
    labels = labels.astype(np.int8)
    parts = da.from_array(X, chunks=(7000, 90)), da.from_array(labels, chunks=3000)
    if not lazy:
        parts = client.persist(list(parts))
    rows = block_rows_of(parts[0])
    assert rows < 7000  # partitions of several blocks
    dfeas.ingest(X, tmp_path / "data", y=labels, block_rows=rows)
    options: dict[str, Any] = {"method": method, "eps": 0.01, "max_passes": 30, "intercept": True}
    there = dfeas.solve(*parts, client=client, **options)
    here = dfeas.solve(tmp_path / "data", **options)
    assert there.proof == "rigorous"
    assert digest(there.evidence) == digest(here.evidence)
    same = [name for name in SAME if name not in ("reads", "bytes_read")]  # the survey of an ingest is no read of a run
    assert [getattr(there, name) for name in same] == [getattr(here, name) for name in same]


def test_a_frame_is_solved_where_it_lies(client: Any) -> None:
    frame, outcome = people(6000)
    frame["outcome"] = pd.Series(outcome).astype("category")
    lazy = dd.from_pandas(frame, npartitions=7)
    there = dfeas.solve(lazy, "outcome", client=client, intercept=True, transform="std")
    here = dfeas.solve(frame, "outcome", intercept=True, transform="std")
    assert (there.verdict, there.proof) == ("feasible", "rigorous")
    same = [name for name in SAME if name not in ("reads", "bytes_read")]
    assert [getattr(there, name) for name in same] == [getattr(here, name) for name in same]
    assert there.reads == here.reads + 1, "its partitions are read once to know how long they are"
    assert np.array_equal(there.separator, here.separator)
    positive = dfeas.solve(lazy, "outcome", client=client, positive="no", intercept=True)
    assert positive.verdict == "feasible"
    assert positive.fingerprint != there.fingerprint
    with pytest.raises(BadInputError, match="did you mean outcome"):
        dfeas.solve(lazy, "outcomes", client=client)


def test_labels_are_a_file_other_partitions_or_categories_of_numbers(client: Any, tmp_path: Path) -> None:
    frame, outcome = people(3000)
    positive = outcome == "yes"
    np.save(tmp_path / "labels.npy", positive)
    lazy = dd.from_pandas(frame, npartitions=3)
    here = dfeas.solve(frame, positive, intercept=True)
    for given in (str(tmp_path / "labels.npy"), dd.from_pandas(pd.Series(positive), npartitions=2)):
        assert dfeas.solve(lazy, given, client=client, intercept=True).fingerprint == here.fingerprint
    numbers = pd.Series(pd.Categorical(np.where(positive, 10, 9)))
    for given, classes in ((numbers.to_frame("label"), ("9", "10")), (pd.Series(positive, dtype="boolean"), ("False", "True"))):
        assert open_collection(client, DataSpec(lazy, dd.from_pandas(given, npartitions=3))).classes == classes


@pytest.mark.parametrize("types", ["float32 bool", "boolean Int64", "Float32 int8"])
def test_columns_are_stored_as_in_memory_whatever_their_types(client: Any, types: str) -> None:
    """One fingerprint: what is proved here is proved there."""
    columns = {name: pd.Series([0, 1, 1, 0, 1] * 4).astype(name) for name in types.split()}
    frame, outcome = pd.DataFrame(columns), np.arange(20) % 2
    there = open_collection(client, DataSpec(dd.from_pandas(frame, npartitions=3), outcome))
    here = open_source(Source(DataSpec(frame, outcome)))
    assert there.dtype == here.dtype
    np.testing.assert_array_equal(there.points.read(0, Buffers()), here.points.read(0, Buffers()))


def test_less_than_a_block_comes_to_the_driver(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    n, m = 60_000, 40
    rng = da.random.default_rng(5)
    X = client.persist(rng.standard_normal((n, m), chunks=(15_000, m)))
    labels = X[:, 0] - X[:, 1] > 0
    received: list[int] = []
    gather = client.scheduler.gather  # every value that this process gets of a worker goes through it

    async def counting(*args: Any, **options: Any) -> Any:
        found = await gather(*args, **options)
        received.append(len(pickle.dumps(found.get("data"))))
        return found

    monkeypatch.setattr(client.scheduler, "gather", counting)
    assert client.compute(X[:1000]).result().nbytes < sum(received)  # so it does
    received.clear()
    result = dfeas.solve(X, labels, client=client, method="mirror-prox-one-pass", max_passes=6)
    assert len(received) > result.passes
    assert sum(received) < block_rows_of(X) * m < X.nbytes / 50
    received.clear()
    assert dfeas.solve(X, labels, client=client).verdict == "feasible"  # by points that a working set has in memory
    assert sum(received) < X.nbytes / 4


def drawn(shape: tuple[int, ...]) -> np.ndarray:
    """Other points each time."""
    return np.random.default_rng().standard_normal(shape)


def test_a_partition_that_comes_back_different_is_corrupt_data(client: Any) -> None:
    steady = np.random.default_rng(0).standard_normal((4000, 300))
    drawing = dask.delayed(drawn, pure=False)((2000, 300))
    X = da.concatenate([da.from_array(steady, chunks=2000), da.from_delayed(drawing, (2000, 300), np.float64)])
    labels = np.arange(6000) % 2
    with pytest.raises(CorruptDataError, match=r"X: block [234] of X \(from point [45]\d{3}\) has changed during the run"):
        dfeas.solve(X, labels, client=client)


def test_refusals_say_what_to_do(client: Any) -> None:
    X, labels = da.ones((50, 3), chunks=20), np.arange(50) % 2
    for options, text in [
        ({"kernel": "rbf"}, "a kernel needs points by pairs"),
    ]:
        with pytest.raises(UsageError, match=text):
            dfeas.solve(X, labels, client=client, **options)
    with pytest.raises(UsageError, match="make a Dask array of them"):
        dfeas.solve(np.ones((50, 3)), labels, client=client)
    with pytest.raises(BadInputError, match="3 classes"):
        open_collection(client, DataSpec(X, np.arange(50) % 3))
    with pytest.raises(BadInputError, match="point 30 is not a finite number"):
        open_collection(client, DataSpec(X, da.from_array(np.where(np.arange(50) == 30, np.nan, labels), chunks=25)))
    with pytest.raises(BadInputError, match="expected 50 labels"):
        open_collection(client, DataSpec(X, labels[:40]))
    frame, outcome = people(300)
    lazy = dd.from_pandas(frame.assign(outcome=pd.Series(outcome).where(frame.age < 80)), npartitions=2)
    with pytest.raises(BadInputError, match=r"the label of point \d+ is missing"):
        open_collection(client, DataSpec(lazy, "outcome"))
    nullable = pd.Series(outcome == "yes").astype("boolean").mask(np.arange(300) == 7)
    with pytest.raises(BadInputError, match="the label of point 7 is missing"):
        open_collection(client, DataSpec(lazy[["age"]], dd.from_pandas(nullable, npartitions=2)))
    with pytest.raises(BadInputError, match="two columns are called "):
        open_collection(client, DataSpec(lazy[["age", "since", "age"]], outcome))
    with pytest.raises(BadInputError, match="column id: an integer beyond"):
        dfeas.solve(dd.from_pandas(frame.assign(id=np.arange(300) + 2**60), npartitions=2), outcome, client=client)


def test_weights_that_memory_does_not_hold_ask_for_an_ingest(client: Any) -> None:
    X = da.ones((1_000_000, 1), chunks=(250_000, 1))
    with pytest.raises(UsageError, match=r"mirror-prox needs memory='40MB' for what it keeps of .* or ingest the data"):
        dfeas.solve(X, y="all-positive", client=client, method="mirror-prox", memory="38MB")


def test_weights_of_all_points_are_projected(client: Any) -> None:
    n, memory = 400_000, 22_000_000
    rng = np.random.default_rng(0)
    X, labels = da.from_array(rng.standard_normal((n, 1)), chunks=100_000), rng.integers(0, 2, n)
    source = Source(DataSpec(X, labels, intercept=True))
    data = open_source(source, lambda source: open_collection(client, source.spec))
    projected = project(PointSpace(), data, ["mirror-prox"], memory, 0.3, workers=1, threads=1).memory_bytes
    tracemalloc.start()
    dfeas.solve(X, labels, client=client, method="mirror-prox", eps=0.3, intercept=True, memory=memory)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 24 * n < peak <= projected - PROCESS_BYTES


def test_partitions_of_a_dead_worker_are_made_again(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("planted", 20, 12_000, margin=0.05)
    options: dict[str, Any] = {"method": "mirror-prox-one-pass", "eps": 0.01}
    calm = dfeas.solve(X, labels, **options)
    with local_cluster(2) as client:
        points = client.persist(da.from_array(X, chunks=1000))
        killed: list[int] = []

        def kill(record: Any) -> None:
            if not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        found = dfeas.solve(points, labels, client=client, callback=kill, **options)
        assert killed
        assert digest(found.evidence) == digest(calm.evidence)
        assert [getattr(found, name) for name in SAME] == [getattr(calm, name) for name in SAME]
        wait_until(lambda: len(client.nthreads()) == 2)
        engine = CollectionEngine(client, open_collection(client, DataSpec(points, labels)))
        client.cancel(points, force=True)
        with pytest.raises(ClusterLostError):
            engine.run(Survey())


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_workers_write_the_dataset_of_a_collection(
    kind: str, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dfeas.data.writers.chunks.PIECE_BYTES", 1)  # so that there are several
    X = np.random.default_rng(0).standard_normal((700, 3)).astype(np.float32)
    y = np.where(X @ [1, 2, 3] > 0, "good", "bad")
    np.savez(tmp_path / "both.npz", X=X, y=y)
    expected = dfeas.ingest(tmp_path / "both.npz", tmp_path / "here", block_rows=64)
    if kind == "array":
        src, how = da.from_array(X, chunks=(150, 2)), {"y": da.from_array(y, chunks=200)}
    else:
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=y)
        src, how = dd.from_pandas(frame, npartitions=4), {"label_column": "kind"}
    assert "dfeas-write" in bars(client, lambda: dfeas.ingest(src, tmp_path / kind, client=client, block_rows=64, **how))
    found = dfeas.info(tmp_path / kind)
    assert (found.fingerprint, found.classes) == (expected.fingerprint, ("bad", "good"))
    assert found.features == (() if kind == "array" else ("a", "b", "c"))
    dfeas.ingest(src, tmp_path / "sharded", client=client, block_rows=64, shard=3000, **how)
    assert dfeas.info(tmp_path / "sharded").fingerprint == expected.fingerprint
    assert len(list((tmp_path / "sharded" / "X").glob("c.*"))) == 4
    assert dfeas.solve(tmp_path / "sharded").margin_lower == dfeas.solve(tmp_path / "here").margin_lower


def test_what_workers_cannot_write_is_said(client: Any, tmp_path: Path) -> None:
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, np.nan], "kind": [0, 1]}), npartitions=2)
    array = da.from_array(np.ones((4, 2)), chunks=2)
    for src, options, text in (
        (array, {}, "a Dask array or frame: give labels"),
        (array, {"y": [0, 1]}, "expected 4 labels"),
        (array, {"y": [0, 1, 0, 1], "sparse": True}, "write the partitions of a Dask collection dense"),
        (frame, {"label_column": "knd"}, "no column knd; did you mean kind?"),
        (frame, {"label_column": "kind"}, "feature b"),
    ):
        with pytest.raises(dfeas.DfeasError, match=text):
            dfeas.ingest(src, tmp_path / "out", client=client, **options)
        assert not (tmp_path / "out").exists()


def test_blocks_are_not_what_they_declare_on_a_cluster_either(client: Any) -> None:
    """What is masked, and what is no whole number, is refused or right: the points are apart by 1 + 1e-9, .. 1 + 3e-9."""
    chunks = (3, 1)
    numbers, labels = np.stack([1 + 1e-9 * np.arange(4), np.ones(4)], axis=1), [0, 0, 1, 1]
    for declared in ("int16", "int32", "float32", "bool"):
        lazy = da.from_array(numbers, chunks=chunks).map_blocks(lambda block: block, meta=np.empty((0, 0), declared))
        try:
            assert dfeas.solve(lazy, labels, intercept=True, client=client).verdict == "feasible"
        except BadInputError as error:
            assert "float64" in str(error)  # noqa: PT017
    lazy = da.from_array(np.ma.masked_array(numbers, mask=numbers == 1), chunks=chunks, asarray=False)
    with pytest.raises(BadInputError, match="masked"):
        dfeas.solve(lazy, labels, intercept=True, client=client)
    lazy = da.from_array(np.ma.masked_array(labels, mask=[1, 0, 0, 0]), chunks=2, asarray=False)
    with pytest.raises(BadInputError, match="masked"):
        dfeas.solve(da.from_array(numbers), lazy, intercept=True, client=client)


def test_a_null_in_a_later_partition_is_missing_on_a_cluster(client: Any, tmp_path: Path) -> None:
    parts = [pd.DataFrame({"a": np.array([1, 2, 3], "int16")}), pd.DataFrame({"a": [5, np.nan, 7]})]
    frame = dd.from_map(lambda i: parts[i], [0, 1], meta=parts[0][:0], enforce_metadata=False)
    for ask in (
        lambda: dfeas.solve(frame, [0, 0, 0, 1, 1, 1], intercept=True, client=client),
        lambda: dfeas.ingest(frame, tmp_path / "d", y=[0, 0, 0, 1, 1, 1], client=client),
        lambda: dfeas.solve(np.arange(6.0)[:, None], frame["a"], intercept=True),
        lambda: dfeas.solve(da.from_array(np.arange(6.0)[:, None]), frame["a"], intercept=True, client=client),
    ):
        with pytest.raises(BadInputError, match=r"missing|not a finite number"):
            ask()
