"""What faults cost: random kills all the time, one SIGKILL, and a frozen worker.

    python benchmarks/faults.py --runs 50

* Random kills: every worker process lives for a random time, by default a quarter of the undisturbed solve on average, and ends
  by sys.exit, a segmentation fault or a graceful close, which take turns; nannies start new ones. Counted are right verdicts,
  equal bits (sha256 over the evidence and the bracket), runs beyond the deadline, and the time against the undisturbed solve.
* One SIGKILL, and one SIGSTOP with the shipped Dask configuration, in the middle of a solve: seconds more than undisturbed,
  beside the length of a task. With ``--frozen 0`` the frozen worker is left out: it takes a minute.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

import cloudpickle
import dask.config
from distributed import WorkerPlugin

import dfeas
from dfeas.data.generate.points import Instance, generate
from dfeas.engine.clusters import local_cluster

MODES = ("sys.exit", "segfault", "graceful")


class Mortal(WorkerPlugin):
    """A worker dies at a random time; the n-th one that is born does so at the same age in every run with this seed."""

    name = "mortal"

    def __init__(self, births: Path, seed: int, life: float, mode: str) -> None:
        self.births, self.seed, self.life, self.mode = births, seed, life, mode

    def setup(self, worker: Any) -> None:
        born = 0
        while True:
            try:
                os.close(os.open(self.births / str(born), os.O_CREAT | os.O_EXCL))
                break
            except FileExistsError:
                born += 1
        age = random.Random(f"{self.seed} {born}").expovariate(1 / self.life)
        end = {"sys.exit": sys.exit, "segfault": lambda: ctypes.string_at(0), "graceful": lambda: self._close(worker)}[
            self.mode
        ]
        worker.loop.asyncio_loop.call_later(age, end)

    def _close(self, worker: Any) -> None:
        worker.loop.add_callback(lambda: worker.close(nanny=False, executor_wait=False))


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--points", type=int, default=400_000)
    parser.add_argument("--features", type=int, default=60)
    parser.add_argument("--margin", type=float, default=0.001)
    parser.add_argument("--method", default="smooth-perceptron")
    parser.add_argument("--life", type=float, default=None, help="mean life of a worker in seconds [a quarter of the solve]")
    parser.add_argument("--deadline", type=float, default=120.0, help="seconds after which a run counts as a hang")
    parser.add_argument("--singles", type=int, default=3, help="turns of the single SIGKILL")
    parser.add_argument("--frozen", type=int, default=1, help="turns of the frozen worker")
    parser.add_argument("--dir", default=None, help="where the data is made")
    options = parser.parse_args(words)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this file
    # workers start from a process that has imported everything: what is measured is not how fast Python starts
    quick = dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    with quick, tempfile.TemporaryDirectory(dir=options.dir) as made:
        path = Path(made) / "data"
        generate(Instance("planted", options.features, options.points, options.margin, block_rows=2000), path)

        def solve(client: Any) -> tuple[float, Any]:
            began = time.perf_counter()
            result = dfeas.solve(path, intercept=False, method=options.method, client=client)
            return time.perf_counter() - began, result

        with local_cluster(options.workers) as client:
            solve(client)
            undisturbed = [solve(client) for _ in range(3)]
        calm = median(seconds for seconds, _ in undisturbed)
        right = undisturbed[0][1]
        # the default engine sends two tasks a worker thread in each pass
        task = calm / right.reads / 2
        print(f"{right.verdict} in {right.passes:g} passes on {options.workers} workers: {calm:.2f} s, a task {task:.3f} s")
        print("| fault | runs | right | equal bits | hangs | seconds, median | most | against undisturbed, median | most |")
        print("|---|---|---|---|---|---|---|---|---|")
        life = options.life or calm / 4
        if options.runs:
            kills(options, made, solve, life, calm, right)
        for name, sent, turns in (("SIGKILL", signal.SIGKILL, options.singles), ("SIGSTOP", signal.SIGSTOP, options.frozen)):
            found = [struck(options.workers, solve, sent, calm) for _ in range(turns)]
            show(f"one {name}", found, calm, right, options.deadline)


def kills(options: argparse.Namespace, made: str, solve: Callable[[Any], Any], life: float, calm: float, right: Any) -> None:
    """Runs with random kills, and their rows."""
    found: dict[str, list[Any]] = {mode: [] for mode in MODES}
    for seed in range(options.runs):
        mode = MODES[seed % 3]
        births = Path(made) / f"births-{seed}"
        births.mkdir()
        with local_cluster(options.workers) as client:
            client.register_plugin(Mortal(births, seed, life, mode))
            found[mode].append(solve(client))
        died = len(list(births.iterdir())) - options.workers
        seconds, result = found[mode][-1]
        said = f"seed {seed} {mode}: {seconds:.1f} s, {died} workers were replaced, {result.verdict} {result.stopped}"
        print(said, file=sys.stderr, flush=True)
    for mode in MODES:
        show(f"workers live {life:.2f} s: {mode}", found[mode], calm, right, options.deadline)
    show(f"workers live {life:.2f} s: all", [run for runs in found.values() for run in runs], calm, right, options.deadline)


def struck(workers: int, solve: Callable[[Any], Any], sent: int, calm: float) -> Any:
    """A solve during which one worker is sent a signal."""
    with local_cluster(workers) as client:
        solve(client)
        pid = next(iter(client.run(os.getpid).values()))
        with later(calm / 2, lambda: os.kill(pid, sent)):
            return solve(client)


@contextmanager
def later(seconds: float, act: Callable[[], None]) -> Iterator[None]:
    thread = Thread(target=lambda: (time.sleep(seconds), act()))
    thread.start()
    try:
        yield
    finally:
        thread.join()


def digest(result: Any) -> str:
    found = hashlib.sha256(repr((result.verdict, result.margin_lower, result.margin_upper, result.passes)).encode())
    for name in ("y", "support", "weights"):
        found.update(getattr(result.evidence, name).tobytes())
    return found.hexdigest()


def show(name: str, found: list[Any], calm: float, right: Any, deadline: float) -> None:
    if not found:
        return
    times = [seconds for seconds, _ in found]
    verdicts = sum(result.verdict == right.verdict for _, result in found)
    equal = sum(result.evidence is not None and digest(result) == digest(right) for _, result in found)
    hangs = sum(seconds > deadline for seconds in times)
    middle, most = median(times), max(times)
    print(
        f"| {name} | {len(found)} | {verdicts} | {equal} | {hangs} | {middle:.1f} | {most:.1f} "
        f"| {middle / calm:.2f} ({middle - calm:+.1f} s) | {most / calm:.2f} ({most - calm:+.1f} s) |",
        flush=True,
    )


if __name__ == "__main__":
    main()
