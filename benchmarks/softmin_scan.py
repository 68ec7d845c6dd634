"""The softmin scan of blocks in memory against a bare X @ y over the same blocks, one thread.

    python benchmarks/softmin_scan.py

Two cases: blocks that come from memory, one after the other, as in a pass; and one block that stays in the cache.
Reference and scan take turns; figures are medians of the ratios of the turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from dfeas.data.storage.layout import BLOCK_BYTES
from dfeas.linalg.points import norms
from dfeas.passes.block import Block
from dfeas.passes.softmin import Softmin

MU = 0.1  # every weight counts: no tile is skipped


def seconds(action: Callable[[Block], object], blocks: list[Block]) -> float:
    began = perf_counter()
    for block in blocks:
        action(block)
    return perf_counter() - began


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=64, help="blocks of 4 MiB in memory")
    parser.add_argument("--turns", type=int, default=15)
    options = parser.parse_args(words)
    print("| m | data | X @ y GB/s | scan k=1 GB/s | scan / X @ y (throughput) | time k=8 / time k=1 |")
    print("|---|---|---|---|---|---|")
    with threadpool_limits(1):
        for m in (100, 1000):
            measure(m, options.blocks, options.turns)


def measure(m: int, count: int, turns: int) -> None:
    rng = np.random.default_rng(0)
    rows = BLOCK_BYTES // (4 * m)
    points = [rng.standard_normal((rows, m), dtype=np.float32) for _ in range(count)]
    blocks = [Block.of(0, X, np.where(rng.random(rows) < 0.5, -1.0, 1.0), norms(X)) for X in points]
    Y = rng.standard_normal((m, 8))
    Y /= np.linalg.norm(Y, axis=0)
    y = Y[:, 0].astype(np.float32)
    one, eight = Softmin(Y[:, :1], np.full(1, MU)), Softmin(Y, np.full(8, MU))
    for name, chosen in (("from memory", blocks), ("in cache", blocks[:1] * count)):
        bare, single, many = [], [], []
        for _ in range(turns):
            bare.append(seconds(lambda block: block.points @ y, chosen))
            single.append(seconds(one.scan, chosen))
            many.append(seconds(eight.scan, chosen))
        size = count * blocks[0].points.nbytes / 1e9
        share = median(b / s for b, s in zip(bare, single, strict=True))
        growth = median(e / s for e, s in zip(many, single, strict=True))
        print(f"| {m} | {name} | {size / median(bare):.1f} | {size / median(single):.1f} | {share:.2f} | {growth:.2f} |")


if __name__ == "__main__":
    main()
