"""Kills: inside the writing of a checkpoint, and of a driver at any instant. And what a checkpoint costs.

    python benchmarks/checkpoints.py

Part 1 kills a process that writes one checkpoint after another, each time at a random instant; the newest that loads must be
the last or the last but one that was begun. Part 2 kills a solve with SIGKILL at a random instant and resumes it; the bits of
the result must be those of an undisturbed run. What is lost is the time from the checkpoint to the last pass of the trace.
Part 3 writes states of several sizes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

import dfeas
from dfeas.cli.outputs import run_status
from dfeas.data.storage.scratch import Scratch
from dfeas.errors import DfeasError
from dfeas.methods.protocol import Bracket
from dfeas.run.checkpoint.folder import Checkpoints, can_go_on
from dfeas.verify.certificate import load


def child(work: Callable[[], object]) -> int:
    """Run in a forked process; returns its id."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def killed_after(work: Callable[[], object], seconds: float) -> bool:
    """Kill work with SIGKILL after some time; whether it was still running."""
    process = child(work)
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


def done(work: Callable[[], object]) -> bool:
    """Whether work ended well in a process of its own."""
    return os.waitpid(child(work), 0)[1] == 0


def inside_writing(kills: int, draw: random.Random, folder: Path) -> None:
    """Part 1."""
    sizes = [10, 100_000, 1_000_000]
    vectors = Scratch(folder / "scratch")
    vectors.write("v", 0, np.ones(200_000))
    unloadable = wrong = parts = 0
    for turn in range(kills):
        checkpoints = Checkpoints(folder / f"c{turn}")
        began = os.open(folder / f"began{turn}", os.O_RDWR | os.O_CREAT)

        def writing(checkpoints: Checkpoints = checkpoints, began: int = began) -> None:
            for count in range(100_000):
                os.pwrite(began, b"%8d" % count, 0)
                checkpoints.save(Bracket(float(count), 1.0, np.full(sizes[count % 3], float(count))), vectors)

        checkpoints.save(Bracket(-1.0, 1.0, np.zeros(1)), vectors)
        killed_after(writing, draw.uniform(0.005, 0.25))
        last = int(os.pread(began, 8, 0) or -1)
        os.close(began)
        parts += any(checkpoints.folder.glob(".*.part"))
        try:
            found = checkpoints.load(Scratch(folder / f"s{turn}"))
            wrong += not (found.lower in (last - 1, last) and bool((found.y == max(found.lower, 0)).all()))
        except DfeasError:
            unloadable += 1
    print(
        "| kills inside the writing of checkpoints | caught a file half written | unloadable | not the last or last but one |"
    )
    print("|---|---|---|---|")
    print(f"| {kills} | {parts} | {unloadable} | {wrong} |\n", flush=True)


@dataclass(frozen=True)
class Job:
    """A solve that lasts."""

    data: str
    method: str
    passes: int

    def solve(self, out: Path) -> None:
        dfeas.solve(self.data, intercept=False, method=self.method, max_passes=self.passes, out=out)

    def digest(self, out: Path) -> str:
        """sha256 over the certificate and the bracket after each pass."""
        events = [json.loads(line) for line in (out / "trace.jsonl").read_text().splitlines()]
        told = [(e["passes"], e["margin_lower"], e["margin_upper"]) for e in events if e["event"] == "pass"]
        found = hashlib.sha256(json.dumps(told).encode())
        certificate = load(out / "certificate.npz")
        for array in (certificate.y, certificate.support, certificate.weights):
            found.update(array.tobytes())
        return found.hexdigest()


def drivers(kills: int, draw: random.Random, job: Job, folder: Path) -> None:
    """Part 2."""
    began = time.perf_counter()
    assert done(lambda: job.solve(folder / "whole"))
    whole = time.perf_counter() - began
    expected = job.digest(folder / "whole")
    a_pass = whole / job.passes
    again = equal = ended = failed = 0
    lost = [0.0]
    for turn in range(kills):
        out = folder / f"run{turn}"
        if not killed_after(lambda out=out: job.solve(out), draw.uniform(0, whole)):
            ended += 1
            equal += job.digest(out) == expected
            continue
        if can_go_on(out):
            before = run_status(out).seconds or 0.0
            good = done(lambda out=out: dfeas.resume(out))
            events = [json.loads(line) for line in (out / "trace.jsonl").read_text().splitlines()]
            start = next((i for i, e in enumerate(events) if e["event"] == "resume"), 0)
            kept = [e["seconds"] for e in events[:start] if e["event"] == "pass"]
            lost.append(before - (kept[-1] if kept else 0.0))
        else:
            again += 1
            good = done(lambda out=out: job.solve(out))
        failed += not good
        equal += good and job.digest(out) == expected
    print(
        f"solve of {job.passes} passes with {job.method}: {whole:.1f} s undisturbed, {a_pass:.2f} s a pass, "
        f"a checkpoint every {os.environ['DFEAS_CHECKPOINT_EVERY']} s"
    )
    print("| kills | ended before | killed before the first checkpoint | not resumable | equal bits | lost s, median | most |")
    print("|---|---|---|---|---|---|---|")
    print(f"| {kills} | {ended} | {again} | {failed} | {equal} | {median(lost):.2f} | {max(lost):.2f} |\n", flush=True)


def costs(folder: Path) -> None:
    """Part 3."""
    print("| state MB | checkpoint ms | load ms |")
    print("|---|---|---|")
    for count in (10_000, 1_000_000, 10_000_000):
        value = Bracket(0.0, 1.0, np.random.default_rng(0).standard_normal(count))
        checkpoints, nothing = Checkpoints(folder / f"cost{count}"), Scratch(folder / "none")
        writing, loading = [], []
        for _ in range(5):
            began = time.perf_counter()
            checkpoints.save(value, nothing)
            written = time.perf_counter()
            checkpoints.load(nothing)
            writing.append(written - began)
            loading.append(time.perf_counter() - written)
        print(f"| {count * 8 / 1e6:.2f} | {1e3 * median(writing):.1f} | {1e3 * median(loading):.1f} |", flush=True)


def main(words: list[str] | None = None) -> None:
    """In a process of its own, which has one thread and may fork."""
    done = subprocess.run(
        [sys.executable, __file__, "--here", *(sys.argv[1:] if words is None else words)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    print(done.stdout)


def here() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writing-kills", type=int, default=200)
    parser.add_argument("--driver-kills", type=int, default=50)
    parser.add_argument("--points", type=int, default=400_000)
    parser.add_argument("--passes", type=int, default=60)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between checkpoints of part 2")
    parser.add_argument("--method", default="mirror-prox-fixed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dir", default=None, help="where the data is made")
    options = parser.parse_args([word for word in sys.argv[1:] if word != "--here"])
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory(dir=options.dir) as made:
        folder = Path(made)
        inside_writing(options.writing_kills, draw, folder)
        data = str(folder / "data")
        dfeas.generate(dfeas.Instance("halfspace", 50, options.points), data)
        os.environ["DFEAS_CHECKPOINT_EVERY"] = str(options.every)
        drivers(options.driver_kills, draw, Job(data, options.method, options.passes), folder)
        costs(folder)


if __name__ == "__main__":
    here() if "--here" in sys.argv else main()
