"""Data of the gate: generated families, and points as people have them. All of it is small and the same each time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import dfeas

REGIONS = ("north", "south", "east", "west")


def people(n: int = 600) -> dict[str, np.ndarray]:
    """Columns: ten-digit ids, dates as days and as seconds, incomes and which are missing, dummies; an outcome.

    All of the west have bought, so the separation is quasi-complete.
    """
    rng = np.random.default_rng(0)
    region, gap = rng.integers(0, 4, n), rng.random(n) < 0.1
    return {
        "id": rng.integers(10**9, 10**10, n),
        "born": rng.integers(-14_000, 12_000, n),
        "seen": 1_600_000_000 + rng.integers(0, 10**8, n),
        "income": np.where(gap, 0, 100 * rng.integers(120, 900, n) * rng.integers(1, 4, n)),
        "income_missing": gap.astype(np.int64),
        **{name: (region == i).astype(np.int64) for i, name in enumerate(REGIONS[1:], 1)},
        "bought": np.where((rng.random(n) < 0.5) | (region == 3), "yes", "no"),
    }


def eighths(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 5) of whole eighths on both sides of a hyperplane beside the origin, and classes (n,)."""
    rng = np.random.default_rng(1)
    X, w = rng.integers(-40, 41, (2 * n, 5)) / 8, np.array([3.0, -1.0, 2.0, 0.0, 1.0])
    X = X[np.abs(X @ w + 1) > 2][:n]
    return X, np.where(X @ w + 1 > 0, "b", "a")


def clusters(n: int = 900) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 6) of three classes."""
    rng = np.random.default_rng(2)
    place = rng.integers(0, 3, n)
    X = 3 * rng.standard_normal((3, 6))[place] + 0.6 * rng.standard_normal((n, 6))
    return X.astype(np.float32), np.array(["cat", "dog", "eel"])[place]


def _rings(path: Path, conflict: bool) -> None:
    """Two rings in the plane; with a conflict one point has both labels."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((240, 2)), np.arange(240) % 2
    X *= ((1 + 0.7 * y + 0.5 * rng.random(240)) / np.linalg.norm(X, axis=1))[:, None]
    if conflict:
        X[101] = X[100]
    dfeas.ingest(X.astype(np.float32), path, y=np.where(y, "outer", "inner"), block_rows=64)


def _levels(path: Path) -> None:
    """Two numbers and 400 levels of one effect, sparse; one level has one outcome only."""
    rng = np.random.default_rng(4)
    level, y = rng.integers(0, 400, 2400), rng.integers(0, 2, 2400)
    y[level == 7] = 1
    wide = scipy.sparse.hstack([rng.integers(-50, 50, (2400, 2)), scipy.sparse.eye_array(400, format="csr")[level]])
    dfeas.ingest(wide.tocsr().astype(np.float64), path, y=y, block_rows=300)


def _words(n: int = 800) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 40) with six entries each that are not zero, and labels of a hyperplane."""
    rng = np.random.default_rng(5)
    X, w = rng.integers(-9, 10, (n, 40)) * (rng.random((n, 40)) < 0.15) / 8, rng.standard_normal(40)
    return X, np.where(X @ w > 0, 1, -1)


def _svmlight(path: Path) -> None:
    lines = (f"{y} " + " ".join(f"{i + 1}:{x[i]}" for i in np.flatnonzero(x)) for x, y in zip(*_words(), strict=True))
    path.write_text("\n".join(lines) + "\n")


def _csr(path: Path) -> None:
    X, y = _words()
    dfeas.ingest(scipy.sparse.csr_array(X), path, y=y, block_rows=100)


def _csv(path: Path, **changed: Any) -> None:
    columns = {name: np.asarray(column).tolist() for name, column in (people() | changed).items()}
    lines = (",".join(map(str, line)) for line in zip(*columns.values(), strict=True))
    path.write_text("\n".join([",".join(columns), *lines]) + "\n")


def _parquet(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(people()), path)


def _zarr(path: Path) -> None:
    """As somebody else writes it."""
    import zarr

    X, _ = eighths()
    zarr.create_array(str(path), shape=X.shape, chunks=(150, X.shape[1]), dtype=X.dtype)[:] = X


def _ingested(points: Callable[[], tuple[np.ndarray, np.ndarray]], path: Path) -> None:
    X, y = points()
    dfeas.ingest(X, path, y=y, block_rows=128)


def _saved(values: Callable[[], np.ndarray], path: Path) -> None:
    np.save(path, values())


def _generated(kind: str, m: int, n: int, path: Path, **more: Any) -> None:
    """Blocks are small, so that there are some to be merged."""
    dfeas.generate(dfeas.Instance(kind, m, n, **more), path)


SOURCES: dict[str, str | Callable[[Path], object]] = {
    "planted": partial(_generated, "planted", 10, 3000, margin=0.05, block_rows=256),
    "flip": partial(_generated, "one-flip", 10, 3000, margin=0.05, block_rows=256),
    "thin": partial(_generated, "halfspace", 12, 5000, dtype="float64", block_rows=700, seed=3),
    "normal": partial(_generated, "gaussian", 10, 2000, block_rows=300),
    "bytes": partial(_generated, "halfspace", 20, 4000, dtype="uint8", block_rows=512),
    "text": "generate halfspace --features 200 --points 1500 --density 0.05",
    "cones": "generate cones --features 6 --cones l:30,q:4x40,s:3x30 --margin 0.05",
    "cones-no": "generate cones-infeasible --features 6 --cones l:30,q:4x40,s:3x30 --margin 0.05",
    "cones-l": "generate cones --features 8 --cones l:900 --margin 0.05",
    "cones-q": "generate cones-boundary --features 8 --cones q:5x200 --margin 0.05",
    "cones-s": "generate cones-scattered --features 6 --cones s:4x150 --margin 0.05",
    "cones-many": "generate cones --features 10 --cones l:100,q:5x6000,s:3x1500 --margin 0.02 --dtype float32",
    "people.csv": _csv,
    "people.parquet": _parquet,
    "people": "ingest @people.csv --label-column bought",
    "born.npy": partial(_saved, lambda: np.where(people()["born"] < 0, "old", "young")),
    "gaps.csv": partial(_csv, income=["" if i % 5 == 3 else i for i in range(600)]),
    "dates.csv": partial(_csv, born=["1970-01-01"] * 600),
    "clusters": partial(_ingested, clusters),
    "clusters.npz": lambda path: np.savez(path, X=clusters()[0], y=clusters()[1]),
    "rings": partial(_rings, conflict=False),
    "rings-no": partial(_rings, conflict=True),
    "levels": _levels,
    "words": _csr,
    "words.svmlight": _svmlight,
    "own.zarr": _zarr,
    "own.npy": partial(_saved, lambda: eighths()[0]),
    "own-labels.npy": partial(_saved, lambda: eighths()[1]),
    "right.npy": partial(_saved, lambda: np.abs(eighths()[0]).sum(axis=1)),
    "mask.npy": partial(_saved, lambda: np.arange(3000) % 3 > 0),
    "mask-both.npy": partial(_saved, lambda: np.arange(6000) % 4 > 0),
}
"""What writes each: a function of the path, or a command that gets it as its last word."""
