"""All classes one-vs-rest beside one class, on the same reads.

    python benchmarks/one_vs_rest.py --gb 4 --cold
    python benchmarks/one_vs_rest.py --kernel rbf --gb 0.0157 --features 784 --classes 10       # 5,000 points

Clusters around random centres, with or without wrong labels, as a dataset of K classes. Measured is a whole solve: sample,
passes, solver in memory, check of every certificate. ``ratio`` is the time of all classes over that of one, the median of the
classes that were solved alone (--alone of them); below it must be 2.5 for ten. With --cold the page cache forgets the data
before each solve (Linux drops clean pages of files when asked by posix_fadvise).
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path

import numpy as np

import dfeas
from dfeas.data.labels import stored_type
from dfeas.data.storage.layout import default_block_rows
from dfeas.data.writers.dataset import DatasetWriter, fill, output_place


def write(path: Path, classes: int, features: int, points: int, wrong: float, seed: int = 0) -> None:
    """Clusters of equal size; a share ``wrong`` of the labels is drawn anew."""
    rows = default_block_rows(features, 4, points)
    centres = np.random.default_rng(seed).standard_normal((classes, features)).astype(np.float32) * 3

    def block(index: int) -> tuple[np.ndarray, np.ndarray]:
        random = np.random.default_rng((seed, index))
        size = min(rows, points - index * rows)
        label = random.integers(0, classes, size)
        X = centres[label] + random.standard_normal((size, features), np.float32)
        flip = random.random(size) < wrong
        label[flip] = random.integers(0, classes, int(flip.sum()))
        return X, (label if classes > 2 else 2 * label - 1).astype(stored_type(names))

    names = tuple(f"c{i}" for i in range(classes))
    with output_place(path) as where:
        target = DatasetWriter(where, points, features, np.dtype(np.float32), rows, label=stored_type(names))
        fill(target, block)
        target.finish(names)


def forget(path: Path) -> None:
    """Drop the pages of all files below a folder."""
    os.sync()
    for file in path.rglob("*"):
        if file.is_file():
            with file.open("rb") as stream:
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=4.0)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--classes", default="2,10,30")
    parser.add_argument("--alone", type=int, default=3, help="classes that are also solved alone")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--kernel", help="in its space; --gb 0.01 is much already")
    parser.add_argument("--method", default="auto")
    options = parser.parse_args(words)
    how = {"memory": options.memory, "kernel": options.kernel, "method": options.method}
    points = int(options.gb * 1e9 / (4 * options.features))
    print("| classes | labels | feasible | one class (s) | reads | all (s) | reads | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for classes in (int(text) for text in options.classes.split(",")):
        for wrong in (0.0, 0.01):
            with tempfile.TemporaryDirectory() as folder:
                data = Path(folder) / "data"
                write(data, classes, options.features, points, wrong)
                alone = []
                for name in [f"c{i}" for i in range(min(classes, options.alone))]:
                    if options.cold:
                        forget(data)
                    alone.append(dfeas.solve(data, positive=name, intercept=False, **how))
                if options.cold:
                    forget(data)
                found = dfeas.one_vs_rest(data, intercept=False, **how)
                assert all(found.results[f"c{i}"].verdict == one.verdict for i, one in enumerate(alone))
                feasible = sum(result.verdict == "feasible" for result in found.results.values())
                one = statistics.median(result.seconds for result in alone)
                reads = statistics.median(result.reads for result in alone)
                print(
                    f"| {classes} | {'clean' if not wrong else f'{wrong:.0%} wrong'} | {feasible} | {one:.2f} | {reads:.3g} "
                    f"| {found.seconds:.2f} | {found.reads:.3g} | {found.seconds / one:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
