"""What becomes of a run, and of a cluster that others use, when a worker, a wire, a store or a neighbour misbehaves.

    python benchmarks/cluster_trials.py --table                  # all trials
    python benchmarks/cluster_trials.py --only worker-killed,two-users
    python benchmarks/cluster_trials.py --list

Each trial has a cluster of its own, on hosts that are network namespaces for root on Linux, with a wire each, else plain
processes on loopback, and then what needs a wire is skipped: `dask scheduler`, three `dask worker` with nannies, and `dfeas` as
the driver. For each: exit codes of the commands, whether certificate, bracket and passes have the bits of one process, seconds
beside a calm run, what is left on the cluster and in the folders of its hosts, and what was said. The program ends with exit
code 1 when one is not as expected. It prints JSON lines, or a table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

from numpy import __version__ as numpy_version

import dfeas

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.trials import deaths, links, neighbours, software, stores  # each registers its trials
from benchmarks.trials.environments import Environments
from benchmarks.trials.hosts import BIN, Network, possible, switch
from benchmarks.trials.stage import Stage
from benchmarks.trials.store import Store, serving
from benchmarks.trials.trial import HEAD, TRIALS, Outcome, Trial, perform
from dfeas.engine.clusters import read_configuration

ROOMS = (deaths, links, neighbours, software, stores)
HANG_SECONDS = 240.0
CALM = {False: "calm", True: "store-calm"}
"""The trial beside which others are set, by whether the data is in a store."""


@dataclass
class Baseline:
    """What others are set beside, of one kind of data: the bits of one process, and the seconds of a calm cluster."""

    bits: str
    seconds: float
    calm: Outcome | None = None


@dataclass
class Program:
    """What trials share."""

    options: argparse.Namespace
    folder: Path
    network: Network
    environments: Environments
    opened: ExitStack
    baselines: dict[bool, Baseline] = field(default_factory=dict)
    store: Store | None = None
    played: int = 0

    def question(self, stored: bool) -> tuple[str, ...]:
        """With data in a store all blocks are read in each pass, few times."""
        passes, more = (self.options.store_passes, ("--memory", "30MB")) if stored else (self.options.passes, ())
        limits = ("--max-passes", str(passes), "--margin-tolerance", "0.001", "--eps", "1e-9")
        return ("--method", "mirror-prox", *limits, "--checkpoint-every", "2", *more)

    def data(self, stored: bool, seed: int = 0) -> Path:
        """Points on the disk of this machine, the same as those in the store."""
        path = self.folder / f"data{seed}" / ("fewer" if stored else "points")
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            dfeas.generate(self._instance(stored, seed), path)
        return path

    def _instance(self, stored: bool, seed: int = 0) -> dfeas.Instance:
        n = self.options.points // (4 if stored else 1)
        return dfeas.Instance("planted", self.options.features, n, 0.0005, seed=seed, block_rows=-(-n // 20))

    def open_store(self) -> Store:
        """With the points in it."""
        if self.store is None:
            self.store = self.opened.enter_context(serving(self.network.here))
            write = "import json, sys, dfeas; dfeas.generate(dfeas.Instance(**json.loads(sys.argv[1])), 's3://bucket/points')"
            env = {"PATH": str(BIN), "PYTHONPATH": str(self.environments.current), **self.store.env}
            subprocess.run([sys.executable, "-c", write, json.dumps(asdict(self._instance(True)))], check=True, env=env)
        self.store.mend()
        return self.store

    def stage(self, stored: bool) -> Stage:
        self.played += 1
        folder = self.folder / f"trial{self.played}"
        folder.mkdir()
        store = self.open_store() if stored else None
        data = "s3://bucket/points" if stored else str(self.data(False))
        other = str(self.data(False, seed=1))
        return Stage(self.network, self.environments, data, folder, self.question(stored), self.options.hang, store, other)

    def baseline(self, stored: bool) -> Baseline:
        if stored not in self.baselines:
            stage = self.stage(stored)
            run = str(stage.folder / "alone")
            stage.wait(stage.command("solve", self.data(stored), *self.question(stored), "--out", run, run=run))
            bits = stage.commands[0].bits
            if not bits:
                sys.exit(f"the run of one process failed: {stage.last_words()}")
            self.network.end(stage.folder)
            self.baselines[stored] = Baseline(bits, 0.0)
            calm = self._perform(CALM[stored], TRIALS[CALM[stored]])
            self.baselines[stored] = Baseline(bits, calm.seconds, calm)
        return self.baselines[stored]

    def _perform(self, name: str, trial: Trial) -> Outcome:
        baseline = self.baselines["store" in trial.needs]
        stage = self.stage("store" in trial.needs)
        try:
            return perform(name, trial, stage, baseline.seconds, baseline.bits)
        finally:
            self.network.end(stage.folder)

    def outcome(self, name: str) -> Outcome:
        """Of a trial, or why it was not tried."""
        trial = TRIALS[name]
        lacks = self.lacks(trial)
        if lacks:
            return Outcome(name, trial.about, skipped=lacks)
        baseline = self.baseline("store" in trial.needs)
        return baseline.calm if name in CALM.values() and baseline.calm else self._perform(name, trial)

    def lacks(self, trial: Trial) -> str:
        """What a trial needs and this machine has not."""
        there = {
            "namespaces": self.network.switch is not None,
            "uv": bool(shutil.which("uv") or shutil.which("uv", path=str(BIN))),
            "faketime": bool(shutil.which("faketime")),
            "store": True,
        }
        return ", ".join(f"needs {name}" for name in sorted(trial.needs) if not there[name])


def arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(TRIALS), help="names, with commas")
    parser.add_argument("--list", action="store_true", help="say which trials there are")
    parser.add_argument("--table", action="store_true", help="print a table, not JSON lines")
    parser.add_argument("--plain", action="store_true", help="processes on loopback, also for root")
    parser.add_argument("--points", type=int, default=400_000, help="a quarter of them in the store")
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--passes", type=int, default=100)
    parser.add_argument("--store-passes", type=int, default=15)
    parser.add_argument("--hang", type=float, default=HANG_SECONDS, help="seconds after which a command is killed")
    parser.add_argument("--numpy", default="2.3.5" if numpy_version != "2.3.5" else "2.3.4", help="another version of NumPy")
    parser.add_argument("--dir", default=None, help="where data is made; logs of the trials are kept there")
    parser.add_argument("--switch", default=None, help=argparse.SUPPRESS)  # the namespace this process is in
    options = parser.parse_args(words)
    unknown = set(options.only.split(",")) - set(TRIALS)
    if unknown:
        parser.error(f"no trial {', '.join(sorted(unknown))}; --list says which there are")
    return options


def enter_switch(words: list[str]) -> int:
    """Run this program in a namespace with a bridge, so that it reaches all hosts, and this machine nothing of theirs."""
    with switch() as name:
        inside = ["nsenter", f"--net=/run/netns/{name}", sys.executable, __file__, *words, "--switch", name]
        with subprocess.Popen(inside) as process:
            for number in (signal.SIGINT, signal.SIGTERM):  # it ends what it started; then namespaces can go
                signal.signal(number, lambda *_: process.terminate())
            return process.wait()


@contextmanager
def programs(options: argparse.Namespace) -> Iterator[Program]:
    with ExitStack() as opened:
        kept = options.dir or opened.enter_context(tempfile.TemporaryDirectory())
        folder = Path(tempfile.mkdtemp(prefix="trials-", dir=kept))
        folder.chmod(0o755)
        outside = ("nsenter", f"--net=/proc/{os.getppid()}/ns/net") if options.switch else ()
        environments = Environments(folder / "environments", options.numpy, outside)
        (environments.folder / "dask.yaml").write_text(read_configuration())
        network = Network(folder / "hosts", options.switch)
        try:
            yield Program(options, folder, network, environments, opened)
        finally:
            for host in network.hosts.values():
                host.end()


def main(words: list[str] | None = None) -> None:
    words = sys.argv[1:] if words is None else words
    options = arguments(words)
    if options.list:
        for name, trial in TRIALS.items():
            print(f"{name}: {trial.about}")
        return
    if possible() and not options.plain and not options.switch:
        sys.exit(enter_switch(words))
    if options.table:
        print(f"{introduce(options)}\n\n{HEAD}", flush=True)
    outcomes, began = [], time.monotonic()
    with programs(options) as program:
        for name in options.only.split(","):
            outcomes.append(program.outcome(name))
            print(outcomes[-1].row() if options.table else json.dumps(outcomes[-1].to_json()), flush=True)
    tried = [outcome for outcome in outcomes if not outcome.skipped]
    wrong = [outcome.trial for outcome in tried if not outcome.ok]
    if options.table:
        minutes = (time.monotonic() - began) / 60
        print(f"\n{len(tried)} trials in {minutes:.0f} minutes; not as expected: {', '.join(wrong) or 'none'}.")
    if wrong:
        sys.exit(1)


def introduce(options: argparse.Namespace) -> str:
    """Where and with what a table was made."""
    found = ", ".join(f"{name} {version(name)}" for name in ("dfeas", "dask", "distributed", "numpy"))
    hosts = "network namespaces" if options.switch else "processes on loopback"
    size = f"{options.points} points of {options.features} features, {options.passes} passes of mirror-prox"
    return f"{found}; hosts are {hosts}; {size}; in a store a quarter of the points, {options.store_passes} passes."


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    main()
