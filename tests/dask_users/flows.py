"""What Dask users type: collections as their libraries make them, verbs, ways to name labels, and clients, a line each.

Every flow has the answer of the same points in memory; what a verb answers here does not depend on the order of rows, which a
shuffle changes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import scipy.sparse as sp
import xarray
import zarr

import dfeas
from dfeas.estimators import LinearSVC, Separator

FEATURES = list("abcd")
Maker = Callable[[pd.DataFrame, Path, int], Any]
"""A frame of pandas with the column ``label``, a folder and how many partitions -> a collection of it."""


def people(seed: int, separable: bool, n: int = 150) -> pd.DataFrame:
    """Points of four features, on both sides of a plane, or with two wrong labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4)).round(6)
    score = X @ np.array([1.0, 2.0, -1.0, 0.5]) + 0.2
    frame = pd.DataFrame(X[abs(score) > 0.05], columns=FEATURES)
    frame["label"] = score[abs(score) > 0.05] > 0
    if not separable:
        farthest = abs(frame[FEATURES].to_numpy() @ np.array([1.0, 2.0, -1.0, 0.5]) + 0.2).argsort()[-2:]
        frame.loc[farthest, "label"] = ~frame.loc[farthest, "label"]
    return frame


def parts(frame: pd.DataFrame, count: int) -> list[pd.DataFrame]:
    return [frame.iloc[rows] for rows in np.array_split(np.arange(len(frame)), count)]


def parquet(frame: pd.DataFrame, folder: Path, count: int, **options: Any) -> Any:
    """A folder of files, as an export writes it."""
    folder.mkdir(exist_ok=True, parents=True)
    for number, part in enumerate(parts(frame, count)):
        part.to_parquet(folder / f"part{number:03d}.parquet")
    return dd.read_parquet(folder, **options)


def csv(frame: pd.DataFrame, folder: Path, count: int) -> Any:
    folder.mkdir(exist_ok=True, parents=True)
    for number, part in enumerate(parts(frame, count)):
        part.to_csv(folder / f"part{number:03d}.csv", index=False)
    return dd.read_csv(folder / "*.csv")


def pandas(frame: pd.DataFrame, folder: Path, count: int) -> Any:
    return dd.from_pandas(frame, npartitions=count, sort=False)


def from_map(frame: pd.DataFrame, folder: Path, count: int) -> Any:
    some = parts(frame, count)
    return dd.from_map(lambda place: some[place], range(count), meta=frame.iloc[:0])


def from_delayed(frame: pd.DataFrame, folder: Path, count: int) -> Any:
    return dd.from_delayed([dask.delayed(part) for part in parts(frame, count)], meta=frame.iloc[:0])


def empty_ones(frame: pd.DataFrame, folder: Path, count: int) -> Any:
    some = [each for part in parts(frame, count) for each in (part, part.iloc[:0])]
    return dd.from_map(lambda place: some[place], range(len(some)), meta=frame.iloc[:0])


def merged(frame: pd.DataFrame, folder: Path, count: int) -> Any:
    frame = frame.assign(key=np.arange(len(frame)))
    left = dd.from_pandas(frame[["a", "b", "key"]], npartitions=count)
    right = dd.from_pandas(frame[["c", "d", "label", "key"]].sample(frac=1, random_state=0), npartitions=2, sort=False)
    return left.merge(right, on="key").drop(columns="key")


def wider(frame: pd.DataFrame, folder: Path, count: int) -> Any:
    """Few columns of a wide file, which Dask reads some files at a time."""
    more = {f"more{k}": np.arange(len(frame)) for k in range(20)}
    return parquet(frame.assign(**more), folder, count)[[*FEATURES, "label"]]


def words(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(label=np.where(frame["label"], "yes", "no"))


FRAMES: dict[str, Maker] = {
    "parquet": parquet,
    "parquet-few-of-many-columns": wider,
    "parquet-columns": lambda f, p, k: parquet(f.assign(other="x"), p, k, columns=[*FEATURES, "label"]),
    "parquet-filters": lambda f, p, k: parquet(f, p, k, filters=[("a", ">", -100.0)]),
    "parquet-aggregated": lambda f, p, k: parquet(f, p, k, blocksize="1MB"),
    "parquet-one-file": lambda f, p, k: parquet(f, p, 1, split_row_groups=True),
    "parquet-numbers": lambda f, p, k: parquet(f.astype({"label": "int64"}), p, k),
    "parquet-floats": lambda f, p, k: parquet(f.assign(label=f["label"] * 2.0), p, k),
    "parquet-numbers-as-categories": lambda f, p, k: parquet(f.assign(label=(f["label"] + 1).astype("category")), p, k),
    "parquet-words": lambda f, p, k: parquet(words(f), p, k),
    "parquet-nullable": lambda f, p, k: parquet(f.convert_dtypes(), p, k, dtype_backend="numpy_nullable"),
    "parquet-pyarrow-types": lambda f, p, k: parquet(f, p, k, dtype_backend="pyarrow"),
    "parquet-categories": lambda f, p, k: parquet(words(f).astype({"label": "category"}), p, k),
    "parquet-partitions": lambda f, p, k: parquet(f, p, k).partitions[:],
    "csv": csv,
    "pandas": pandas,
    "from-map": from_map,
    "from-delayed": from_delayed,
    "empty-partitions": empty_ones,
    "persisted": lambda f, p, k: parquet(f, p, k).persist(),
    "repartitioned": lambda f, p, k: parquet(f, p, k).repartition(npartitions=2),
    "query": lambda f, p, k: parquet(f.assign(keep=1), p, k).query("keep == 1").drop(columns="keep"),
    "dropna": lambda f, p, k: parquet(f, p, k).dropna(),
    "assigned": lambda f, p, k: parquet(f, p, k).assign(a=lambda d: d["a"] * 2 / 2),
    "sampled": lambda f, p, k: parquet(f, p, k).sample(frac=1.0, random_state=3),
    "set-index": lambda f, p, k: parquet(f.assign(key=np.arange(len(f))[::-1]), p, k).set_index("key"),
    "shuffled": lambda f, p, k: parquet(f.assign(key=np.arange(len(f)) % 7), p, k).shuffle("key").drop(columns="key"),
    "merged": merged,
    "categories-known": lambda f, p, k: pandas(words(f).astype({"label": "category"}), p, k),
    "numbers-of-columns": lambda f, p, k: pandas(f, p, k).map_partitions(lambda d: d.astype({"a": "float32"})),
}
"""Frames, whose column ``label`` names the labels."""


def of_zarr(X: np.ndarray, folder: Path, count: int) -> Any:
    folder.mkdir(exist_ok=True, parents=True)
    zarr.create_array(folder / "X.zarr", data=X, chunks=(-(-len(X) // count), 2))
    return da.from_zarr(folder / "X.zarr")


def of_hdf5(X: np.ndarray, folder: Path, count: int) -> Any:
    folder.mkdir(exist_ok=True, parents=True)
    with h5py.File(folder / "X.h5", "w") as file:
        file["X"] = X
    load = dask.delayed(lambda first, stop: h5py.File(folder / "X.h5", "r")["X"][first:stop])
    edges = np.linspace(0, len(X), count + 1).astype(int).tolist()
    return da.concatenate([da.from_delayed(load(a, b), (b - a, X.shape[1]), float) for a, b in pairwise(edges)])


def chunked(X: np.ndarray, folder: Path, count: int) -> Any:
    return da.from_array(X, chunks=(-(-len(X) // count), -1))


def masked(X: np.ndarray, folder: Path, count: int) -> Any:
    lazy = chunked(X, folder, count)
    return lazy[lazy[:, 0] > -100]


def with_empty(X: np.ndarray, folder: Path, count: int) -> Any:
    half = len(X) // 2
    return da.concatenate([chunked(X[:half], folder, count), da.zeros((0, X.shape[1])), chunked(X[half:], folder, count)])


ARRAYS: dict[str, Callable[[np.ndarray, Path, int], Any]] = {
    "from-array": chunked,
    "columns-in-chunks": lambda X, p, k: da.from_array(X, chunks=(40, 3)),
    "rechunked": lambda X, p, k: chunked(X, p, k).rechunk((17, 4)),
    "zarr": of_zarr,
    "hdf5": of_hdf5,
    "masked": masked,
    "empty-chunks": with_empty,
    "sparse-blocks": lambda X, p, k: chunked(X, p, k).map_blocks(sp.csr_array, meta=sp.csr_array((0, 0))),
    "map-blocks": lambda X, p, k: chunked(X, p, k).map_blocks(lambda block: block * 2 / 2),
    "xarray": lambda X, p, k: xarray.DataArray(chunked(X, p, k), dims=("n", "m")),
    "values-of-parquet": lambda X, p, k: parquet(pd.DataFrame(X, columns=FEATURES), p, k).values,
}
"""Arrays of points (n, 4)."""


def lazily(values: Any, count: int) -> Any:
    return da.from_array(values, chunks=-(-len(values) // count))


LABELS: dict[str, Callable[[Any], Any]] = {
    "name": lambda d: (d, "label"),
    "series": lambda d: (d.drop(columns="label"), d["label"]),
    "frame": lambda d: (d.drop(columns="label"), d[["label"]]),
    "array": lambda d: (d.drop(columns="label"), d["label"].values),
}
"""Ways to name the labels of a frame; those of an array are taken by position, which no shuffle keeps."""
REORDERED = ("merged", "shuffled", "set-index")


def _ingested(X: Any, y: Any, client: Any, folder: Path) -> Any:
    named = {"label_column": y} if isinstance(y, str) else {"y": y}
    header = dfeas.ingest(X, folder / "ingested", **named, client=client)
    return header.n, dfeas.solve(folder / "ingested").verdict


def _points(X: Any) -> Any:
    """The features of a frame, or an array as it is."""
    return X[FEATURES] if hasattr(X, "columns") else X


def _fitted(kind: Any, X: Any, y: Any, client: Any) -> Any:
    points, labels = (_points(X), X[y]) if isinstance(y, str) else (X, y)
    model = kind(client=client).fit(points, labels)
    return int(np.sum(np.asarray(model.predict(points)) == model.classes_[1]))


def _predicted(X: Any, y: Any, client: Any) -> Any:
    found = dfeas.soft_margin(X, y, client=client)
    return int((np.asarray(found.decision_function(_points(X))) > 0).sum())


def _suspected(X: Any, y: Any, client: Any) -> Any:
    found = dfeas.suspects(X, y, client=client)
    return found.at_least, found.enough


VERBS: dict[str, Callable[[Any, Any, Any, Path], Any]] = {
    "solve": lambda X, y, c, p: dfeas.solve(X, y, client=c).verdict,
    "ingest": lambda X, y, c, p: _ingested(X, y, c, p),
    "soft_margin": lambda X, y, c, p: round(float(dfeas.soft_margin(X, y, tol=1e-6, client=c).objective), 3),
    "suspects": lambda X, y, c, p: _suspected(X, y, c),
    "separation": lambda X, y, c, p: dfeas.separation(X, y, client=c).kind,
    "check_separation": lambda X, y, c, p: dfeas.check_separation(X, y).kind,
    "hard_margin": lambda X, y, c, p: dfeas.hard_margin(X, y, client=c).result.verdict,
    "one_vs_rest": lambda X, y, c, p: sorted(each.verdict for each in dfeas.one_vs_rest(X, y, client=c).results.values()),
    "in_hull": lambda X, y, c, p: dfeas.in_hull(np.full(4, 0.01), _points(X), client=c).inside,
    "feasible": lambda X, y, c, p: dfeas.feasible(_points(X), np.ones(rows(X)), client=c).verdict,
    "predict": lambda X, y, c, p: _predicted(X, y, c),
    "LinearSVC": lambda X, y, c, p: _fitted(LinearSVC, X, y, c),
    "Separator": lambda X, y, c, p: _fitted(Separator, X, y, c),
}
"""What is asked; the answer is that of the points in memory."""


def rows(X: Any) -> int:
    """How many there are, as a user asks Dask."""
    return int(X.compute().shape[0]) if hasattr(X, "compute") and not hasattr(X, "encoding") else len(X)


CLIENTS = ("none", "current", "client", "false")


@dataclass(frozen=True)
class Flow:
    """One line of a notebook."""

    source: str
    labels: str  # of ``LABELS`` for frames; of arrays "lazy" or "numpy"
    verb: str
    client: str
    separable: bool = False
    partitions: int = 5
    seed: int = 0

    @property
    def name(self) -> str:
        return f"{self.verb}-{self.source}-{self.labels}-{self.client}-{'separable' if self.separable else 'not'}"

    def expected(self, folder: Path) -> Any:
        """The answer in memory."""
        frame = people(self.seed, self.separable)
        (folder / "memory").mkdir()
        return VERBS[self.verb](frame[FEATURES], frame["label"], False, folder / "memory")

    def asked(self, client: Any, folder: Path) -> Any:
        """The answer of the collection."""
        frame = people(self.seed, self.separable)
        current = nullcontext() if self.client in ("none", "false") else client.as_current()
        with current:
            if self.source in FRAMES:
                X, y = LABELS[self.labels](FRAMES[self.source](frame, folder / "data", self.partitions))
            else:
                X = ARRAYS[self.source](frame[FEATURES].to_numpy(), folder / "data", self.partitions)
                y = frame["label"].to_numpy()
                y = lazily(y, self.partitions) if self.labels == "lazy" else y
            given = {"none": None, "current": None, "client": client, "false": False}[self.client]
            return VERBS[self.verb](X, y, given, folder)

    def agree(self, found: Any, expected: Any) -> bool:
        """Whether two plain answers are the same, numbers up to rounding. Of points in another order other ones are suspected,
        and the number that has to go is within both bounds.
        """
        if self.verb == "suspects" and self.source in (*REORDERED, "sampled"):
            return bool(found[0] <= expected[1] and expected[0] <= found[1])
        close = isinstance(found, float) and bool(np.isclose(found, expected, rtol=1e-4))
        return bool(found == expected or close)


def plain(answer: Any) -> Any:
    """Text of verdicts and kinds, so that answers compare."""
    if isinstance(answer, tuple | list):
        return [plain(each) for each in answer]
    return answer if isinstance(answer, int | float | bool) else str(answer)
