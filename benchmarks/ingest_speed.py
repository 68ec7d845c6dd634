"""Ingest against the fastest plain reading of the same file.

    python benchmarks/ingest_speed.py --points 400000

CSV and Parquet against pyarrow's own reading into memory with all threads, svmlight against scikit-learn's loader, .npy
against a copy of the file. Ingest also surveys, checks and writes what it reads. All in turns, files in the page cache.
"Speed" is that of ingest as a share of the other's, the median over turns: by the clock, and by processor time.

What was written is emptied after each turn, and removed at the end: when ext4 makes a file, it looks at each one that was
removed within 5 s, which takes 0.5 ms after a few turns.
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
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from sklearn.datasets import load_svmlight_file
from threadpoolctl import threadpool_limits

from dfeas import ingest

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
            if "svm" in formats:
                sparse.writelines(f"{line}\n" for line in lines(X, y))
    stored.flush()
    np.save(folder / "y.npy", np.arange(MORE * points) % 2)


def lines(X: np.ndarray, y: np.ndarray) -> list[str]:
    """svmlight: LABEL INDEX:VALUE .."""
    words = [
        pc.binary_join_element_wise(f"{j + 1}", pc.cast(pa.array(column), pa.string()), ":") for j, column in enumerate(X.T)
    ]
    return pc.binary_join_element_wise(pc.cast(pa.array(y), pa.string()), *words, " ").to_pylist()


def clocked(action: Callable[[], object]) -> tuple[float, float]:
    """Seconds of an action: by the clock, and of the processor."""
    began, used = perf_counter(), process_time()
    action()
    return perf_counter() - began, process_time() - used


class Output:
    """Places to write to, each time another one."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0

    def fresh(self) -> Path:
        self._count += 1
        return self._folder / f"out{self._count}"

    def empty(self) -> None:
        """Give back what the files hold that were written last."""
        last = self._folder / f"out{self._count}"
        for path in (last, *last.rglob("*")):
            if path.is_file():
                os.truncate(path, 0)


def measure(folder: Path, turns: int, formats: set[str]) -> None:
    out = Output(folder)
    m = np.load(folder / "a.npy", mmap_mode="r").shape[1]
    cases: dict[str, tuple[dict[str, Callable[[], object]], Callable[[], object], str]] = {
        "csv": (
            {"csv": lambda: ingest(folder / "a.csv", out.fresh(), label_column="y")},
            lambda: pyarrow.csv.read_csv(folder / "a.csv"),
            "pyarrow.csv.read_csv",
        ),
        "parquet": (
            {"parquet": lambda: ingest(folder / "a.parquet", out.fresh(), label_column="y")},
            lambda: pyarrow.parquet.read_table(folder / "a.parquet"),
            "pyarrow.parquet.read_table",
        ),
        "svm": (
            {
                "svm": lambda: ingest(folder / "a.svm", out.fresh()),
                "svm, --features": lambda: ingest(folder / "a.svm", out.fresh(), features=m),
            },
            lambda: load_svmlight_file(str(folder / "a.svm")),
            "sklearn load_svmlight_file",
        ),
        "npy": (
            {"npy": lambda: ingest(folder / "a.npy", out.fresh(), y=str(folder / "y.npy"))},
            lambda: shutil.copyfile(folder / "a.npy", out.fresh()),
            "shutil.copyfile",
        ),
    }
    print("| format | file MB | ingest s | MB/s | against | s | speed | speed per processor second |")
    print("|---|---|---|---|---|---|---|---|")
    for suffix, (ours, theirs, other) in cases.items():
        if suffix not in formats:
            continue
        found: dict[str, list[tuple[float, ...]]] = {name: [] for name in ours}
        for _ in range(turns + 1):
            mine = {}
            for name, action in ours.items():
                mine[name] = clocked(action)
                out.empty()
            their = clocked(theirs)
            out.empty()
            for name, times in mine.items():
                found[name].append((*times, *their))
        size = os.path.getsize(folder / f"a.{suffix}") / 1e6
        for name, times in found.items():
            wall, used, other_wall, other_used = np.array(times[min(1, turns - 1) :]).T
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
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--dir", default=None, help="where the data is made")
    options = parser.parse_args(words)
    formats = set(options.formats.split(","))
    with tempfile.TemporaryDirectory(dir=options.dir) as made, threadpool_limits(1):
        write(Path(made), options.points, options.features, formats)
        print(f"{options.points} points of {options.features} features; {options.turns} turns after one to warm up")
        measure(Path(made), options.turns, formats)


if __name__ == "__main__":
    main()
