"""What it costs that a cluster grows, shrinks, restarts, is busy with other work, or has workers with little memory.

    python benchmarks/elastic.py

A solve of many passes on four workers that stay, and then, each on a cluster of its own,

* adaptive: ``cluster.adapt`` between 0 and 4 workers, none at the start; when four have come three leave again, and so on;
* restarted: one worker after the other is restarted while the run goes on, until each has been;
* busy: 2,000 tasks of somebody else wait at the scheduler, for as long as they take the workers alone;
* uneven: half of the workers may use so little memory that they cannot keep what the others keep.

For each: seconds beside those of the calm run, tasks that the scheduler was sent, workers that came and went, and whether the
evidence has the same bits. The data is in the page cache.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from threading import Event
from typing import Any

from distributed import Client, SchedulerPlugin

import dfeas
from dfeas.data.generate.points import Instance, generate
from dfeas.engine.clusters import local_cluster

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.faults.faulty import meanwhile

CHANGE_SECONDS = 3.0


class Counts(SchedulerPlugin):
    """Tasks of dfeas that were sent, and workers that came and went."""

    name = "counts"

    def __init__(self) -> None:
        self.tasks = self.came = self.went = 0

    def update_graph(self, scheduler: Any, *, keys: Any, **kwargs: Any) -> None:
        self.tasks += sum(str(key).startswith("dfeas-") for key in keys)

    def add_worker(self, scheduler: Any, worker: str) -> None:
        self.came += 1

    def remove_worker(self, scheduler: Any, worker: str, **kwargs: Any) -> None:
        self.went += 1


@dataclass(frozen=True)
class Found:
    """A run, and what the scheduler saw of it."""

    seconds: float
    result: Any
    tasks: int
    came: int
    went: int

    @property
    def bits(self) -> str:
        """Of its evidence and its bracket."""
        result = self.result
        found = hashlib.sha256(repr((result.verdict, result.margin_lower, result.margin_upper, result.passes)).encode())
        for name in ("y", "support", "weights"):
            found.update(getattr(result.evidence, name).tobytes())
        return found.hexdigest()


def solved(client: Client, solve: Callable[[Client], Any]) -> Found:
    """A run on the workers as they are, or come."""
    counts: Any = Counts()
    scheduler = client.cluster.scheduler
    client.sync(add, scheduler, counts)
    began = time.perf_counter()
    result = solve(client)
    return Found(time.perf_counter() - began, result, counts.tasks, counts.came, counts.went)


async def add(scheduler: Any, plugin: SchedulerPlugin) -> None:
    scheduler.add_plugin(plugin, name=f"counts-{id(plugin)}")


def calm(solve: Callable[[Client], Any], workers: int) -> Found:
    with local_cluster(workers) as client:
        solve(client)
        return solved(client, solve)


def adaptive(solve: Callable[[Client], Any], workers: int) -> Found:
    with local_cluster(0) as client:

        def change(ended: Event) -> None:
            """Workers come for tasks that wait, and all but one of them leave again."""
            for most in cycle((workers, 1)):
                client.cluster.adapt(minimum=0, maximum=most, interval="100ms", wait_count=2, target_duration="100ms")
                if ended.wait(CHANGE_SECONDS):
                    break

        with meanwhile(change):
            return solved(client, solve)


def restarted(solve: Callable[[Client], Any], workers: int) -> Found:
    with local_cluster(workers) as client, Client(client.cluster) as other:
        solve(client)
        waiting = list(client.nthreads())

        def roll(ended: Event) -> None:
            while waiting and not ended.is_set():
                other.restart_workers([waiting.pop()], timeout=60)

        with meanwhile(roll):
            found = solved(client, solve)
        print(f"restarted: {workers - len(waiting)} of {workers} before the run ended", file=sys.stderr)
        return found


def busy(solve: Callable[[Client], Any], workers: int, tasks: int, seconds: float) -> Found:
    with local_cluster(workers) as client, Client(client.cluster) as other:
        solve(client)
        foreign = other.map(time.sleep, [seconds] * tasks, pure=False, key="foreign")
        found = solved(client, solve)
        left = sum(not future.done() for future in foreign)
        print(f"busy: {left} of {tasks} other tasks were left when the run ended", file=sys.stderr)
        other.cancel(foreign)
        return found


def uneven(solve: Callable[[Client], Any], workers: int, limit: str) -> Found:
    with local_cluster(workers // 2) as client:
        client.cluster.new_spec["options"]["memory_limit"] = limit
        client.cluster.scale(workers)
        client.wait_for_workers(workers)
        return solved(client, solve)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=4, help="at most, where they come and go")
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--margin", type=float, default=0.001)
    parser.add_argument("--passes", type=int, default=40, help="at most")
    parser.add_argument("--tasks", type=int, default=2000, help="of somebody else")
    parser.add_argument("--task-seconds", type=float, default=0.02)
    parser.add_argument("--limit", default="180MB", help="memory of half of the workers")
    parser.add_argument("--only", default="adaptive,restarted,busy,uneven")
    parser.add_argument("--dir", default=None, help="where the data is made")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(dir=options.dir) as made:
        data = Path(made) / "data"
        generate(Instance("planted", options.features, options.points, options.margin), data)
        compare(data, options)


def compare(data: Path, options: argparse.Namespace) -> None:
    def solve(client: Client) -> Any:
        more = {"max_passes": options.passes, "eps": 1e-6, "margin_tolerance": 1e-3}
        return dfeas.solve(data, intercept=False, method="smooth-perceptron", client=client, **more)

    cases: dict[str, Callable[[], Found]] = {
        "adaptive": lambda: adaptive(solve, options.workers),
        "restarted": lambda: restarted(solve, options.workers),
        "busy": lambda: busy(solve, options.workers, options.tasks, options.task_seconds),
        "uneven": lambda: uneven(solve, options.workers, options.limit),
    }
    undisturbed = calm(solve, options.workers)
    print(f"{undisturbed.result.verdict}, {undisturbed.result.passes:g} passes, {options.workers} workers\n")
    print("| cluster | s | beside calm | tasks | workers came | went | equal bits |")
    print("|---|---|---|---|---|---|---|")
    for name in ("calm", *options.only.split(",")):
        found = undisturbed if name == "calm" else cases[name]()
        times, equal = found.seconds / undisturbed.seconds, "yes" if found.bits == undisturbed.bits else "no"
        row = f"| {name} | {found.seconds:.1f} | {times:.2f} | {found.tasks} | {found.came} | {found.went} | {equal} |"
        print(row, flush=True)


if __name__ == "__main__":
    main()
