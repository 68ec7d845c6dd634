"""Peak memory of every process on data eight times the budget, for every method and both engines.

    python benchmarks/memory_budget.py --budget-mb 256

The peak is VmHWM, which the kernel keeps for each process; on a cluster also that of the worker processes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from dfeas.data.generate.points import Instance, generate
from dfeas.methods.registry import METHODS

CHILD = """
import json, sys
from contextlib import nullcontext
import dfeas

def peak():
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))) / 1e3

path, method, budget, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if __name__ == "__main__":
    if workers:
        from dfeas.engine.clusters import local_cluster
    with local_cluster(workers) if workers else nullcontext() as client:
        limits = {"eps": float(sys.argv[5]), "max_passes": int(sys.argv[6])}
        result = dfeas.solve(path, intercept=False, method=method, memory=budget, client=client, **limits)
        peaks = {"driver": peak()}
        if client is not None:
            peaks["worker"] = max(client.run(peak).values())
    print(json.dumps([result.verdict, result.passes, peaks]))
"""


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget-mb", type=int, default=256)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--passes", type=int, default=30)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--workers", type=int, default=2, help="of the cluster")
    parser.add_argument("--instances", default="halfspace,gaussian")
    parser.add_argument("--dir", default=None, help="where the data is made")
    options = parser.parse_args(words)
    budget = options.budget_mb * 10**6
    print(f"data of {8 * options.budget_mb} MB, budget {options.budget_mb} MB; peaks in MB")
    print("| instance | method | engine | verdict | passes | driver | largest worker | most above the budget |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=options.dir) as made:
        script = Path(made) / "child.py"
        script.write_text(CHILD)
        for kind in options.instances.split(","):
            path = Path(made) / kind
            generate(Instance(kind, options.features, 8 * budget // (4 * options.features)), path)
            for method in options.methods.split(","):
                for workers in (0, options.workers):
                    words = [str(path), method, str(budget), str(workers), "1e-3", str(options.passes)]
                    done = subprocess.run([sys.executable, str(script), *words], check=True, capture_output=True, text=True)
                    show(kind, method, workers, done.stdout, options.budget_mb)


def show(kind: str, method: str, workers: int, printed: str, budget: int) -> None:
    verdict, passes, peaks = json.loads(printed)
    worst = max(peaks.values()) - budget
    worker = f"{peaks['worker']:.0f}" if "worker" in peaks else ""
    engine = f"{workers} workers" if workers else "in-process"
    print(
        f"| {kind} | {method} | {engine} | {verdict} | {passes} | {peaks['driver']:.0f} | {worker} | {worst:+.0f} |", flush=True
    )


if __name__ == "__main__":
    main()
