"""What the process that asks spends on data of many small blocks: to open it, and on each pass beside reading and scanning.

    python benchmarks/blocks.py --blocks 1000,10000,100000,1000000 --files 100000
    python benchmarks/blocks.py --kinds sparse,cones --blocks 10000

Each engine is asked by a process of its own, once for each dataset. In one process its main thread is the driver, and two other
threads scan; on a cluster the driver has no other work than to ask two worker processes, and all of its processor time counts.
MB are what its memory has grown by since before it opened the data, the most after any of the steps. Looks are calls of
``os.stat`` by the driver on a pass, where workers change nothing. The last columns are a solve by the command line, one that is
killed half way and resumed, which must have the same bits, and the check of its certificate in one process.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Any

import numpy as np
import psutil
from distributed import Client
from scipy.sparse import csr_array

import dfeas
from dfeas.cones.product import Placing, Product
from dfeas.cones.space import ConeEngine
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.layout import CODE
from dfeas.data.writers.chunks import SHARD_BYTES, chunks_of_shard
from dfeas.data.writers.dataset import DatasetWriter, output_place
from dfeas.engine.clusters import local_cluster
from dfeas.engine.distributed import DaskEngine
from dfeas.engine.local import LocalEngine
from dfeas.passes.softmin import Softmin
from dfeas.passes.survey import Survey
from dfeas.verify.certificate import Certificate, load
from dfeas.verify.core import check

THREADS = 2
ENGINES = ("one process", "cluster")
KINDS = ("points", "sparse", "cones")
MARGIN = 0.3
SPARSE = 0.1
"""Share of entries of sparse points, beside one of each."""


def made(path: Path, kind: str, blocks: int, rows: int, m: int, shard: int) -> None:
    """Separable points in blocks of a few rows, or a second-order cone in each; 0 bytes of a shard: a file for each block of an
    array.
    """
    rng, n, y = np.random.default_rng(0), blocks * rows, np.full(m, m**-0.5, np.float32)
    points = rng.standard_normal((n, m), np.float32)
    points /= np.linalg.norm(points, axis=1)[:, None]
    label = np.where(points @ y < 0, -1, 1).astype(np.int8)
    if kind == "sparse":
        entries = np.where(rng.random((n, m), np.float32) < SPARSE, np.abs(points), 0)
        entries[np.arange(n), rng.integers(0, m, n)] = 1
        dfeas.ingest(csr_array(entries * label[:, None]), path, y=label, block_rows=rows, shard=shard)
        return
    placing = Placing(Product((("q", rows, blocks),)), rows)
    with output_place(path) as place:
        chunks = chunks_of_shard(shard, points.nbytes, rows * m * points.itemsize)
        if kind == "cones":
            points -= np.outer(points @ y, y)
            points[::rows] += y
            label, table = placing.label, placing.product.table
            target = DatasetWriter(place, n, m, points.dtype, rows, label=CODE, shard=chunks, cones=table)
        else:
            points += np.outer(MARGIN * label, y).astype(np.float32)
            target = DatasetWriter(place, n, m, points.dtype, rows, shard=chunks)
        for index in range(blocks):
            some = slice(index * rows, (index + 1) * rows)
            target.write(index, points[some], label[some])
        target.finish(() if kind == "cones" else ("-1", "1"))


def held() -> float:
    """Megabytes that this process has now."""
    return psutil.Process().memory_info().rss / 1e6


def drive(path: str, address: str) -> dict[str, float]:
    """Open a dataset, ask for passes and check a separator; what each took here."""
    looks, stat = 0, os.stat

    def counted(*args: Any, **options: Any) -> os.stat_result:
        nonlocal looks
        looks += 1
        return stat(*args, **options)

    with ExitStack() as stack:
        client = stack.enter_context(Client(address)) if address else None
        clock = thread_time if client is None else process_time
        found: dict[str, float] = {"grown": 0.0}
        before = held()

        def took(name: str, work: Callable[[], Any]) -> Any:
            began, own = perf_counter(), clock()
            answer = work()
            found[f"{name} wall"], found[name] = perf_counter() - began, clock() - own
            found["grown"] = max(found["grown"], held() - before)
            return answer

        source = Source(DataSpec(path, intercept=False), cones=True)
        dataset = took("open", lambda: open_source(source))
        plain = LocalEngine(dataset, THREADS) if client is None else DaskEngine(client, source, dataset)
        engine: Any = plain if dataset.cones is None else ConeEngine(plain)
        summary = took("survey", lambda: engine.run(Survey()))
        assert (summary.checksums == dataset.expected[:, :2]).all(), "a survey finds what was written"
        os.stat = counted
        took("pass", lambda: engine.run(Softmin(np.full((dataset.m, 1), dataset.m**-0.5), np.full(1, 0.1))))
        os.stat = stat
        certificate = Certificate(kind="separator", y=np.full(dataset.m, dataset.m**-0.5), fingerprint=dataset.fingerprint)
        proved = took("verify", lambda: check(engine, dataset, certificate))
        assert proved.verdict == "feasible", "the points are separable"
        engine.close()
        return {**found, "looks": looks}


def asked(words: list[str], seconds: float | None = None) -> tuple[float, str]:
    """Seconds of a program, which is killed when it takes longer than it may, and what it said."""
    began = perf_counter()
    often = {**os.environ, "DFEAS_CHECKPOINT_EVERY": "0.1"}
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True, env=often) as child:
        try:
            said = child.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            return perf_counter() - began, ""
    assert child.returncode == 0, words
    return perf_counter() - began, said


def digest(run: Path) -> str:
    """Of the certificate and the bracket of a run."""
    values, certificate = json.loads((run / "result.json").read_text()), load(run / "certificate.npz")
    text = repr([values[name] for name in ("verdict", "proof", "margin_lower", "margin_upper", "passes")])
    return hashlib.sha256(text.encode() + certificate.y.tobytes() + certificate.weights.tobytes()).hexdigest()


def solved(path: Path, address: str, folder: Path) -> tuple[str, list[float]]:
    """The digest of a solve and of one that was killed and resumed, and seconds of the three and of a check."""
    there = ["--scheduler", address] if address else []
    solve = ["-m", "dfeas", "solve", str(path), "--quiet", "--no-intercept", *there]
    whole, killed = folder / "whole", folder / "killed"
    first, _ = asked([*solve, "--out", str(whole)])
    before, said = asked([*solve, "--out", str(killed)], first / 2)
    again = ["resume", str(killed)] if any(killed.glob("checkpoint/*.state")) else [*solve[2:], "--out", str(killed), "--force"]
    after = 0.0 if said else asked(["-m", "dfeas", *again, *([] if "--scheduler" in again else there)])[0]
    assert digest(whole) == digest(killed), "the same bits"
    checked, _ = asked(["-m", "dfeas", "verify", str(killed)])
    return digest(whole), [first, before + after, checked]


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", default="1000,10000,100000,1000000", help="in shards")
    parser.add_argument("--files", type=int, default=100_000, help="blocks, up to which there is also a file for each")
    parser.add_argument("--kinds", default="points", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--rows", type=int, default=4, help="points of a block, or rows of its cone")
    parser.add_argument("--features", type=int, default=4)
    parser.add_argument("--runs", type=int, default=100_000, help="blocks, up to which the data is also solved")
    parser.add_argument("--dir", default=None, help="where the data is made")
    parser.add_argument("--drive", nargs=2, metavar=("DATA", "SCHEDULER"), help="be the driver of one of the engines")
    options = parser.parse_args(words)
    if options.drive:
        print(json.dumps(drive(*options.drive)))
        return
    print(f"blocks of {options.rows} rows of {options.features} features; {THREADS} threads, or {THREADS} workers")
    print("| blocks | in | engine | open s | survey s | pass s | verify s | MB | looks | a pass in all s | solve s |")
    print("|--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    numbers, kinds, places = (
        map(int, options.blocks.split(",")),
        options.kinds.split(","),
        (("files", 0), ("shards", SHARD_BYTES)),
    )
    with tempfile.TemporaryDirectory(dir=options.dir) as folder, local_cluster(THREADS) as client:
        for kind, blocks, (name, shard) in product(kinds, numbers, places):
            if shard or blocks <= options.files:
                data, called = Path(folder) / f"{kind}-{blocks}-{name}", name if kind == "points" else f"{name}, {kind}"
                made(data, kind, blocks, options.rows, options.features, shard)
                compare(data, blocks, called, client.scheduler.address, blocks <= options.runs)


def compare(data: Path, blocks: int, place: str, address: str, runs: bool) -> None:
    """A line for each engine; the bits of both must be the same."""
    digests = set()
    for engine, where in zip(ENGINES, ("", address), strict=True):
        found = json.loads(asked([__file__, "--drive", str(data), where])[1])
        cells = [f"{found[name]:.3f}" for name in ("open", "survey", "pass", "verify")]
        cells += [f"{found['grown']:.0f}", f"{found['looks']:.0f}", f"{found['pass wall']:.2f}"]
        took = "-"
        if runs:
            with tempfile.TemporaryDirectory(dir=data.parent) as made_for:
                mark, seconds = solved(data, where, Path(made_for))
            digests.add(mark)
            took = ", ".join(f"{each:.1f}" for each in seconds)
        print(f"| {blocks} | {place} | {engine} | {' | '.join(cells)} | {took} |", flush=True)
    assert len(digests) <= 1, "the same bits on both engines"


if __name__ == "__main__":
    main()
