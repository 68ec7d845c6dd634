"""Ingest against the fastest plain reading of the same file.

    python benchmarks/ingest_speed.py --points 400000

CSV and Parquet against pyarrow's own reading into memory with all threads, svmlight against scikit-learn's loader, .npy
against a copy of the file. Ingest also surveys, checks and writes what it reads. All in turns, files in the page cache.
"Speed" is that of ingest as a share of the other's, the median over turns: by the clock, and by processor time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from sklearn.datasets import load_svmlight_file
from threadpoolctl import threadpool_limits

from dfeas.store.ingest import ingest

RUN = 2000
"""Points that are made at a time."""

MORE = 5
"""So many times the points are in the .npy file, which is copied in no time: making a dataset takes 0.03 s however small."""


def write(folder: Path, points: int, m: int, formats: set[str]) -> None:
    """The same points in four formats: float32 values with up to nine digits, labels 0 and 1."""
    rng = np.random.default_rng(0)
    names = [f"f{i}" for i in range(m)]
    stored = np.lib.format.open_memmap(folder / "a.npy", mode="w+", dtype=np.float32, shape=(MORE * points, m))
    schema = pa.schema([*((name, pa.float32()) for name in names), ("y", pa.int8())])
    with (
        (folder / "a.svm").open("w") as sparse,
        pyarrow.csv.CSVWriter(folder / "a.csv", schema) as text,
        pyarrow.parquet.ParquetWriter(folder / "a.parquet", schema) as table,
    ):
        for first in range(0, points, RUN):
            X = rng.standard_normal((min(RUN, points - first), m)).astype(np.float32)
            y = (np.arange(len(X)) % 2).astype(np.int8)
            for turn in range(MORE):
                stored[turn * points + first : turn * points + first + len(X)] = X
            batch = pa.table([*X.T, y], schema=schema)
            text.write_table(batch)
            table.write_table(batch)
            for row, label in zip(X, y, strict=True) if "svm" in formats else ():
                sparse.write(f"{label} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) + "\n")
    stored.flush()
    np.save(folder / "y.npy", np.arange(MORE * points) % 2)


def clocked(action: Callable[[], object]) -> tuple[float, float]:
    """Seconds of an action: by the clock, and of the processor."""
    began, used = perf_counter(), process_time()
    action()
    return perf_counter() - began, process_time() - used


def measure(folder: Path, turns: int, formats: set[str]) -> None:
    out = folder / "out"
    cases: dict[str, tuple[Callable[[], object], Callable[[], object], str]] = {
        "csv": (
            lambda: ingest(folder / "a.csv", out, label_column="y"),
            lambda: pyarrow.csv.read_csv(folder / "a.csv"),
            "pyarrow.csv.read_csv",
        ),
        "parquet": (
            lambda: ingest(folder / "a.parquet", out, label_column="y"),
            lambda: pyarrow.parquet.read_table(folder / "a.parquet"),
            "pyarrow.parquet.read_table",
        ),
        "svm": (
            lambda: ingest(folder / "a.svm", out),
            lambda: load_svmlight_file(str(folder / "a.svm")),
            "sklearn load_svmlight_file",
        ),
        "svm, --features": (
            lambda: ingest(folder / "a.svm", out, features=len(np.load(folder / "a.npy", mmap_mode="r")[0])),
            lambda: load_svmlight_file(str(folder / "a.svm")),
            "sklearn load_svmlight_file",
        ),
        "npy": (
            lambda: ingest(folder / "a.npy", out, labels=str(folder / "y.npy")),
            lambda: shutil.copyfile(folder / "a.npy", out),
            "shutil.copyfile",
        ),
    }
    print("| format | file MB | ingest s | MB/s | against | s | speed | speed per processor second |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (ours, theirs, other) in cases.items():
        suffix = name.split(",")[0]
        if suffix not in formats:
            continue
        found = []
        for _ in range(turns + 1):
            mine = clocked(ours)
            shutil.rmtree(out)
            found.append((*mine, *clocked(theirs)))
            out.unlink(missing_ok=True)
        wall, used, other_wall, other_used = np.array(found[min(1, turns - 1) :]).T
        size = os.path.getsize(folder / f"a.{suffix}") / 1e6
        shares = median(other_wall / wall), median(other_used / used)
        print(
            f"| {name} | {size:.1f} | {median(wall):.3f} | {size / median(wall):.0f} | {other} | {median(other_wall):.3f} "
            f"| {shares[0]:.2f} | {shares[1]:.2f} |",
            flush=True,
        )


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=400_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--formats", default="csv,parquet,svm,npy")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--dir", default=None, help="where the data is made")
    options = parser.parse_args(words)
    formats = set(options.formats.split(","))
    with tempfile.TemporaryDirectory(dir=options.dir) as made, threadpool_limits(1):
        write(Path(made), options.points, options.features, formats)
        print(f"{options.points} points of {options.features} features; {options.turns} turns after one to warm up")
        measure(Path(made), options.turns, formats)


if __name__ == "__main__":
    main()
