"""Points in uint8 against the same points in float32: bytes and seconds of a pass.

    python benchmarks/low_precision.py --points 2000000 --features 784

Cold means that the files were dropped from the page cache before each turn; turns of both alternate. The pass asks the central
question, softmin, once.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from dfeas.data.generate.points import Instance, generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.layout import default_block_rows
from dfeas.data.writers.dataset import DatasetWriter, fill, output_place
from dfeas.engine.local import LocalEngine
from dfeas.passes.softmin import Softmin


def drop(folder: Path) -> None:
    """Put the clean files of a folder out of the page cache."""
    for file in filter(Path.is_file, folder.rglob("*")):
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def write_float32(instance: Instance, path: Path) -> None:
    """The points of an instance in float32, in blocks of the usual size."""
    rows = default_block_rows(instance.m, 4, instance.n)
    same = Instance(instance.kind, instance.m, instance.n, dtype=instance.dtype, block_rows=rows)
    with output_place(path) as where:
        target = DatasetWriter(where, instance.n, instance.m, np.dtype(np.float32), rows)

        def block(index: int) -> tuple[np.ndarray, np.ndarray]:
            points, label = same.block(index)
            return points.astype(np.float32), label

        fill(target, block)
        target.finish(("-1", "1"))


def seconds(path: Path, cold: bool) -> tuple[float, int]:
    """Of one pass, and the bytes that it read."""
    dataset = open_source(Source(DataSpec(path, intercept=False)))
    engine = LocalEngine(dataset)
    question = Softmin(np.full((dataset.m, 1), dataset.m**-0.5), np.full(1, 0.01))
    try:
        if cold:
            drop(path)
        began = perf_counter()
        engine.run(question)
        return perf_counter() - began, engine.cost.bytes_read
    finally:
        engine.close()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=784)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the data is written")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        place = Path(folder)
        instance = Instance("halfspace", options.features, options.points, dtype="uint8")
        generate(instance, place / "uint8")
        write_float32(instance, place / "float32")
        found: dict[tuple[str, bool], list[float]] = {}
        size: dict[str, int] = {}
        for _ in range(options.turns):
            for cold in (True, False):
                for name in ("float32", "uint8"):
                    took, size[name] = seconds(place / name, cold)
                    found.setdefault((name, cold), []).append(took)
    print("| entries | bytes of a pass | of float32 | cold pass | of float32 | warm pass | of float32 |")
    print("|---|---|---|---|---|---|---|")
    for name in ("float32", "uint8"):
        cells = [f"{size[name] / 1e9:.3g} GB", f"{size[name] / size['float32']:.3f}"]
        for cold in (True, False):
            took = median(found[name, cold])
            cells += [f"{took:.3g} s", f"{took / median(found['float32', cold]):.2f}"]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
