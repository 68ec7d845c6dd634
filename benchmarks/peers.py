"""dfeas beside linear programmes, classifiers, kernels and soft margins of others: who is right, with what proof, how fast.

    python benchmarks/peers.py
    python benchmarks/peers.py --only flip,wide --solvers dfeas,LinearSVC

Each run is a new process that loads points from a file, of all ways the one that everybody has, and ends at --limit seconds of
its processors, or at --memory. Whole seconds go from its start to its answer, imports and loading included, and are the least
of up to --turns runs where these are short; "again" is the processor time of a second call in the same process, where the first
took less than two. Text for Vowpal Wabbit is written before. What is true is known from how points are made
(``solvers/instances.py``), and answers are judged in whole numbers (``solvers/judge.py``): right is a direction that has all
points on their sides, weights that cancel, or a verdict with a proof; of a soft margin an objective within 1e-3 of the least.
Proof is what a solver itself proves; evidence is what the judge found.

First are those that are right by whole seconds. Where dfeas is not, a line says by how much, and of what its own time consists.
Ends with exit code 1 when dfeas is not right. Peers that are not installed are left out and named.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.solvers import inequalities, kernels, linear, margins
from benchmarks.solvers.answer import Answer, Data

OURS = "dfeas"
SHORT = 3.0
"""Seconds below which a run is repeated."""

AGAIN = 2.0
"""Processor seconds of a first call above which there is no second one."""

GAMMA = 0.2


@dataclass(frozen=True)
class Solver:
    """A call for each question that it can be asked, and the package that it needs."""

    package: str
    calls: dict[str, Callable[[Data], Answer]]


def planes(call: Callable[[Data], Answer]) -> dict[str, Callable[[Data], Answer]]:
    """The same call for points and for tables."""
    return {"plane": call, "table": call}


SOLVERS = {
    OURS: Solver(
        "dfeas",
        {
            "plane": linear.dfeas,
            "table": linear.separation,
            "kernel": kernels.dfeas,
            "margin": margins.dfeas,
            "inequalities": inequalities.dfeas,
        },
    ),
    "perceptron, six lines": Solver("numpy", planes(linear.perceptron)),
    "Perceptron": Solver("sklearn", planes(linear.classifier("Perceptron"))),
    "SGDClassifier": Solver("sklearn", {**planes(linear.classifier("SGDClassifier")), "margin": margins.sgd}),
    "LinearSVC": Solver("sklearn", {**planes(linear.classifier("LinearSVC")), "margin": margins.linear_svc}),
    "LogisticRegression": Solver("sklearn", {**planes(linear.classifier("LogisticRegression")), "margin": margins.logistic}),
    "SVC": Solver("sklearn", {"table": linear.classifier("SVC"), "kernel": kernels.svc}),
    "HiGHS simplex": Solver("highspy", {**planes(linear.highs("simplex")), "inequalities": inequalities.highs("simplex")}),
    "HiGHS IPM": Solver("highspy", {**planes(linear.highs("ipm")), "inequalities": inequalities.highs("ipm")}),
    "HiGHS PDLP": Solver("highspy", {**planes(linear.highs("pdlp")), "inequalities": inequalities.highs("pdlp")}),
    "HiGHS, rows generated": Solver("highspy", planes(linear.generated_rows)),
    "HiGHS QP": Solver("highspy", {"margin": margins.highs}),
    "OR-tools PDLP": Solver(
        "ortools", {**planes(linear.ortools_pdlp), "margin": margins.ortools_pdlp, "inequalities": inequalities.ortools_pdlp}
    ),
    "Clarabel": Solver("clarabel", {**planes(linear.clarabel), "margin": margins.clarabel}),
    "SCS": Solver("scs", {**planes(linear.scs), "margin": margins.scs}),
    "Vowpal Wabbit": Solver("vowpalwabbit", {**planes(linear.vowpal_wabbit), "margin": margins.vowpal_wabbit}),
}
DISTRIBUTIONS = {"sklearn": "scikit-learn"}
"""Names of packages that are installed under another one."""

READERS_OF_TEXT = ("Vowpal Wabbit",)


@dataclass(frozen=True)
class Run:
    """What a process said and took."""

    solver: str
    why: str  # it has no answer
    said: str = ""
    proof: str = ""
    right: str = "no"
    evidence: str = ""
    seconds: float = float("inf")  # whole
    processor: float = float("inf")
    again: float | None = None
    memory: int = 0  # bytes, the most

    def row(self, data: str) -> str:
        if self.why:
            return f"| {data} | {self.solver} | {self.why} | no | | | | | | |"
        again = "" if self.again is None else f"{1000 * self.again:.1f}"
        cells = [data, self.solver, self.said, self.right, self.proof, self.evidence, f"{self.seconds:.2f}"]
        return f"| {' | '.join([*cells, f'{self.processor:.2f}', again, f'{self.memory / 2**20:.0f}'])} |"


# in the process of a solver


def answer(name: str, question: str, folder: Path, limit: float, memory: int) -> None:
    """Solve, write down the answer and print what it took."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    data = Data(load(folder), np.load(folder / "y.npy"), str(folder), gamma=GAMMA)
    call = SOLVERS[name].calls[question]
    began = time.process_time()
    found = call(data)
    took = {"ended": time.time(), "processor": time.process_time(), "memory": peak()}
    again = None
    if took["processor"] - began < AGAIN:
        second = time.process_time()
        call(data)
        again = time.process_time() - second
    wrong = None if found.wrong is None else found.wrong()
    vectors = {key: value for key, value in (("w", found.w), ("x", found.x)) if value is not None}
    np.savez(folder / "answer.npz", **vectors)
    words = {"said": found.said, "proof": found.proof, "wrong": wrong, "lower": found.lower}
    print(json.dumps({**words, **took, "again": again}))


def load(folder: Path) -> Any:
    """Points, dense or CSR."""
    if (folder / "X.npy").exists():
        return np.load(folder / "X.npy")
    import scipy.sparse as sp

    return sp.csr_array(sp.load_npz(folder / "X.npz"))


def peak() -> int:
    """The most memory (bytes) that this program had; unlike getrusage not that of the process it was forked from."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


# in the process that sets them beside each other


def save(points: Any, folder: Path, as_text: bool) -> None:
    """For who loads them."""
    import scipy.sparse as sp

    X = points.X
    if sp.issparse(X):
        X = sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)  # as SciPy makes them
        sp.save_npz(folder / "X.npz", X, compressed=False)
    else:
        np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", points.y)
    if as_text:
        with (folder / "points.vw").open("w") as out:
            out.writelines(lines_of(X, points.y))


def lines_of(X: Any, y: np.ndarray) -> Iterator[str]:
    """Each point as Vowpal Wabbit reads it, features named by their numbers."""
    digits = 9 if X.dtype == np.float32 else 17
    if hasattr(X, "indptr"):
        indices, values, starts = X.indices.tolist(), X.data.tolist(), X.indptr.tolist()
        for label, first, last in zip(y.tolist(), starts, starts[1:], strict=False):
            entries = zip(indices[first:last], values[first:last], strict=True)
            yield f"{label} | {' '.join(f'{i}:{value:.{digits}g}' for i, value in entries)}\n"
        return
    form = f"%d | {' '.join(f'{i}:%.{digits}g' for i in range(X.shape[1]))}\n"
    for start in range(0, len(X), 10_000):
        for label, row in zip(y[start : start + 10_000].tolist(), X[start : start + 10_000].tolist(), strict=True):
            yield form % (label, *row)


def run(name: str, question: str, folder: Path, options: argparse.Namespace) -> dict[str, Any] | str:
    """What a new process printed, or why there is nothing."""
    words = [sys.executable, __file__, "--one", name, "--question", question, "--dir", str(folder)]
    words += ["--limit", str(options.limit), "--memory", str(options.memory)]
    wall = 4 * options.limit + 30
    began = time.time()
    try:
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=wall)
    except subprocess.TimeoutExpired:
        return f"nothing in {wall:.0f} s"
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"nothing in {options.limit:g} s of processor"
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        short = f"more than {options.memory:g} GB" if "memory" in last.lower() or "bad_alloc" in last else last[:60]
        return short.replace("|", "/")
    values: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**values, "seconds": values["ended"] - began}


def best_run(name: str, question: str, folder: Path, options: argparse.Namespace) -> dict[str, Any] | str:
    """The fastest of up to ``turns``, where they are short."""
    best = run(name, question, folder, options)
    for _ in range(options.turns - 1):
        if isinstance(best, str) or best["seconds"] > SHORT:
            break
        other = run(name, question, folder, options)
        if not isinstance(other, str) and other["seconds"] < best["seconds"]:
            best = other
    return best


def compare(instance: Any, names: Sequence[str], options: argparse.Namespace) -> list[Run]:
    """All solvers on the same points, judged."""
    from benchmarks.solvers import judge

    points, truth = instance.points(options.scale)
    asked = [name for name in names if instance.question in SOLVERS[name].calls]
    found: list[Run] = []
    lower, objectives = 0.0, {}
    with tempfile.TemporaryDirectory(dir=options.dir) as made:
        folder = Path(made)
        save(points, folder, as_text=any(name in READERS_OF_TEXT for name in asked))
        for name in asked:
            values = best_run(name, instance.question, folder, options)
            if isinstance(values, str):
                found.append(Run(name, values))
                continue
            vectors = dict(np.load(folder / "answer.npz"))
            w, x = vectors.get("w"), vectors.get("x")
            took = (values["seconds"], values["processor"], values["again"], values["memory"])
            if truth:
                ask = judge.judge_inequalities if instance.question == "inequalities" else judge.judge
                says = ask(points, truth, values["said"], w, x, values["wrong"], values["proof"])
                found.append(Run(name, "", values["said"], values["proof"], says.right, says.evidence, *took))
                continue
            if w is not None:
                objectives[name] = judge.objective(points, w, Data.C)
            lower = max(lower, values["lower"] or 0.0)
            found.append(Run(name, "", values["said"], values["proof"], "no", "", *took))
    least = max(lower, 0.0) or min(objectives.values(), default=0.0)
    return [each if truth else weighed(each, objectives.get(each.solver), least, judge.CLOSE) for each in found]


def weighed(found: Run, objective: float | None, least: float, close: float) -> Run:
    """A soft margin beside the least objective, proved where dfeas ran."""
    if objective is None:
        return found
    right = "yes" if objective <= (1 + close) * least else "no"
    return Run(**{**vars(found), "right": right, "evidence": f"objective {objective / least:.6g} of the bound"})


def first(data: str, found: Sequence[Run]) -> str:
    """A line of who was first of those that are right."""
    right = sorted((each for each in found if each.right == "yes"), key=lambda each: each.seconds)
    if not right:
        return f"| {data} | nobody | | | | |"
    ours = next((each for each in right if each.solver == OURS), None)
    others = [each for each in right if each is not ours]
    if ours is None:
        note = "dfeas is not right" if any(each.solver == OURS for each in found) else ""
        return f"| {data} | {right[0].solver} | {right[0].seconds:.2f} | | | {note} |"
    if not others:
        return f"| {data} | dfeas, the only one | {ours.seconds:.2f} | | | |"
    note = ""
    if right[0] is not ours:
        again = [f"{each.solver} {1000 * each.again:.0f} ms" for each in (ours, right[0]) if each.again is not None]
        calls = f"; a second call takes {' and '.join(again)} of the processor" if again else ""
        note = f"dfeas takes {ours.seconds / right[0].seconds:.2f} times as long{calls}"
    ratio = f"{others[0].seconds / ours.seconds:.2f}"
    return f"| {data} | {right[0].solver} | {right[0].seconds:.2f} | {others[0].solver} | {ratio} | {note} |"


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="data whose names have one of these words, with semicolons between them")
    parser.add_argument("--solvers", default=";".join(SOLVERS), help="with semicolons between them")
    parser.add_argument("--limit", type=float, default=10.0, help="processor seconds of each run")
    parser.add_argument("--memory", type=float, default=8.0, help="GB of each run")
    parser.add_argument("--turns", type=int, default=2, help="of short runs")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the points")
    parser.add_argument("--dir", default=None, help="keep points here while they are needed")
    parser.add_argument("--one", choices=SOLVERS, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--question", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.one is not None:
        answer(options.one, options.question, Path(options.dir), options.limit, int(options.memory * 1e9))
        return
    from benchmarks.solvers.instances import INSTANCES

    names = options.solvers.split(";")
    if unknown := [name for name in names if name not in SOLVERS]:
        parser.error(f"--solvers: no {'; '.join(unknown)}; there are {'; '.join(SOLVERS)}")
    missing = [name for name in names if not find_spec(SOLVERS[name].package)]
    names = [name for name in names if name not in missing]
    packages = dict.fromkeys(DISTRIBUTIONS.get(package, package) for package in (SOLVERS[name].package for name in names))
    print(f"At most {options.limit:g} s of processor and {options.memory:g} GB each; {os.cpu_count()} cores; ", end="")
    print(", ".join(f"{package} {version(package)}" for package in packages), end="\n\n")
    if missing:
        print(f"Not installed: {', '.join(missing)}\n")
    print("| data | solver | says | right | proof | evidence | seconds | processor s | again ms | memory MiB |")
    print(f"|{'---|' * 10}", flush=True)
    ends: list[str] = []
    faults: list[str] = []
    for instance in INSTANCES:
        if not any(word in instance.title(1.0) for word in options.only.split(";")):
            continue
        data = instance.title(options.scale)
        found = compare(instance, names, options)
        print("\n".join(each.row(data) for each in found), flush=True)
        ends.append(first(data, found))
        faults += [data for each in found if each.solver == OURS and each.right != "yes"]
    print("\n| data | first of those that are right | seconds | next, or first beside dfeas | its seconds / dfeas | note |")
    print(f"|{'---|' * 6}")
    print("\n".join(ends))
    if faults:
        sys.exit(f"dfeas is not right: {'; '.join(faults)}")


if __name__ == "__main__":
    main()
