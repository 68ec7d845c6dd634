"""Separable or not: dfeas beside linear programming and linear classifiers, on the same points in memory.

    python benchmarks/peers.py                              # three data sets of 100 x 200,000, a minute for each solver

Each solver runs in a process of its own with the points already in memory, and is stopped after --limit seconds; the times are
of its second call alone, building its model included. What it returned is judged here, in float64: ``margin`` is that of its
direction y, min_j a_j'y / |y|, ``|Ax|`` that of its weights x on the simplex (its dual variables, where it has any), over unit
columns, and ``wrong`` counts points that are not on the positive side of y. A yes needs none wrong, a no needs weights:
``shown`` says which of the two is there, with |Ax| up to 1e-9 as one; dfeas proves what it says itself, rounding included. What
a solver of linear programmes says is read off t at 1e-9; a classifier says nothing.

    linear programmes   maximise t, a_j'y >= t, |y_i| <= 1: HiGHS by simplex and interior point (SciPy), PDLP of HiGHS
                        (highspy) and of OR-tools, Clarabel
    classifiers         LogisticRegression and LinearSVC at C = 1e8, SGDClassifier (perceptron loss, 100 epochs)
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dfeas.data.generate.points import Instance

ZERO = 1e-9
"""Of t and |Ax|."""

KINDS = {"halfspace": "half-space", "planted": "margin 0.01", "one-flip": "one wrong label"}


@dataclass(frozen=True)
class Answer:
    """What a solver came back with."""

    said: str  # "yes", "no", or why nothing
    y: Any = None  # (m,) a direction
    x: Any = None  # (n,) weights
    passes: float | None = None  # reads of the data, of who counts them
    why: str = ""


def own(A: np.ndarray, limit: float) -> Answer:
    """dfeas, as it is called without options."""
    import dfeas

    result = dfeas.solve(A, "all-positive", time_limit=limit)
    said = {"feasible": "yes", "infeasible": "no", "eps-infeasible": "no"}.get(result.verdict, "nothing")
    x = None
    if result.support is not None:
        x = np.zeros(len(A))
        x[result.support] = result.weights / np.linalg.norm(A[result.support].astype(np.float64), axis=1)
        x /= x.sum()
    return Answer(f"{said}, {result.proof}" if said != "nothing" else said, result.y, x, result.reads, result.message)


def programme(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, m + 1) whose products with (y, t) are at most zero, and the objective."""
    n, m = A.shape
    return np.hstack([-A, np.ones((n, 1), A.dtype)]).astype(np.float64), np.append(np.zeros(m), -1.0)


def _read_off(z: Any, dual: Any, m: int) -> Answer:
    if z is None:
        return Answer("nothing", why="no solution")
    t = float(z[m])
    x = None if dual is None or not np.abs(dual).sum() > 0 else np.abs(dual) / np.abs(dual).sum()
    return Answer("yes" if t > ZERO else "no", np.asarray(z[:m]), x)


def highs(method: str) -> Callable[[np.ndarray, float], Answer]:
    """HiGHS as SciPy brings it."""

    def solve(A: np.ndarray, limit: float) -> Answer:
        from scipy.optimize import linprog

        m = A.shape[1]
        rows, cost = programme(A)
        bounds = [(-1, 1)] * m + [(None, 1)]
        found = linprog(cost, rows, np.zeros(len(A)), bounds=bounds, method=method, options={"time_limit": limit})
        if found.status:
            return Answer("nothing", why=found.message.split(".")[0])
        return _read_off(found.x, found.ineqlin.marginals, m)

    return solve


def highs_pdlp(A: np.ndarray, limit: float) -> Answer:
    """PDLP of HiGHS."""
    import highspy

    n, m = A.shape
    rows, cost = programme(A)
    model = highspy.Highs()
    model.silent()
    for name, value in (("solver", "pdlp"), ("time_limit", limit)):
        model.setOptionValue(name, value)
    programme_ = highspy.HighsLp()
    programme_.num_col_, programme_.num_row_, programme_.col_cost_ = m + 1, n, cost
    programme_.col_lower_, programme_.col_upper_ = np.append(-np.ones(m), -np.inf), np.ones(m + 1)
    programme_.row_lower_, programme_.row_upper_ = np.full(n, -np.inf), np.zeros(n)
    programme_.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    programme_.a_matrix_.start_ = np.arange(0, n * (m + 1) + 1, m + 1)
    programme_.a_matrix_.index_ = np.tile(np.arange(m + 1), n)
    programme_.a_matrix_.value_ = rows.ravel()
    model.passModel(programme_)
    model.run()
    status = model.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        return Answer("nothing", why=model.modelStatusToString(status))
    solution = model.getSolution()
    return _read_off(np.array(solution.col_value), np.array(solution.row_dual), m)


def ortools_pdlp(A: np.ndarray, limit: float) -> Answer:
    """PDLP of OR-tools, at relative tolerances of 1e-8."""
    from ortools.pdlp import solve_log_pb2, solvers_pb2
    from ortools.pdlp.python import pdlp
    from scipy.sparse import csc_matrix

    m = A.shape[1]
    rows, cost = programme(A)
    problem = pdlp.QuadraticProgram()
    problem.objective_vector = cost
    problem.constraint_matrix = csc_matrix(rows)
    problem.constraint_lower_bounds = np.full(len(A), -np.inf)
    problem.constraint_upper_bounds = np.zeros(len(A))
    problem.variable_lower_bounds = np.append(-np.ones(m), -np.inf)
    problem.variable_upper_bounds = np.ones(m + 1)
    how = solvers_pb2.PrimalDualHybridGradientParams()
    how.termination_criteria.simple_optimality_criteria.eps_optimal_absolute = 1e-8
    how.termination_criteria.simple_optimality_criteria.eps_optimal_relative = 1e-8
    how.termination_criteria.time_sec_limit = limit
    found = pdlp.primal_dual_hybrid_gradient(problem, how)
    reason = solve_log_pb2.TerminationReason.Name(found.solve_log.termination_reason)
    if reason != "TERMINATION_REASON_OPTIMAL":
        return Answer("nothing", why=reason.removeprefix("TERMINATION_REASON_").lower())
    return _read_off(found.primal_solution, found.dual_solution, m)


def clarabel(A: np.ndarray, limit: float) -> Answer:
    """Clarabel, interior point."""
    import clarabel as library
    from scipy.sparse import csc_matrix, eye, vstack

    n, m = A.shape
    rows, cost = programme(A)
    box = eye(m + 1, format="csc")
    whole = csc_matrix(vstack([csc_matrix(rows), box, -box[:m]]))
    right = np.concatenate([np.zeros(n), np.ones(2 * m + 1)])
    settings = library.DefaultSettings()
    settings.verbose, settings.time_limit = False, limit
    cones = [library.NonnegativeConeT(len(right))]
    found = library.DefaultSolver(csc_matrix((m + 1, m + 1)), cost, whole, right, cones, settings).solve()
    if str(found.status) not in ("Solved", "AlmostSolved"):
        return Answer("nothing", why=str(found.status))
    return _read_off(np.array(found.x), np.array(found.z)[:n], m)


def classifier(name: str) -> Callable[[np.ndarray, float], Answer]:
    """A linear classifier of scikit-learn, of points and their opposites: labels of one class alone are refused."""

    def solve(A: np.ndarray, limit: float) -> Answer:
        from sklearn.linear_model import LogisticRegression, SGDClassifier
        from sklearn.svm import LinearSVC

        labels = np.where(np.arange(len(A)) % 2, 1, -1)
        model: Any
        if name == "LogisticRegression":
            model = LogisticRegression(C=1e8, fit_intercept=False, tol=1e-6, max_iter=10_000)
        elif name == "LinearSVC":
            model = LinearSVC(C=1e8, dual=False, fit_intercept=False, max_iter=10_000)
        else:
            model = SGDClassifier("perceptron", fit_intercept=False, max_iter=100, tol=None, random_state=0)
        model.fit(A * labels[:, None].astype(A.dtype), labels)
        return Answer("nothing", model.coef_[0].astype(np.float64))

    return solve


SOLVERS: dict[str, tuple[str, Callable[[np.ndarray, float], Answer]]] = {  # name -> what must be installed, call
    "dfeas": ("dfeas", own),
    "HiGHS simplex": ("scipy", highs("highs-ds")),
    "HiGHS IPM": ("scipy", highs("highs-ipm")),
    "HiGHS PDLP": ("highspy", highs_pdlp),
    "OR-tools PDLP": ("ortools", ortools_pdlp),
    "Clarabel": ("clarabel", clarabel),
    "LinearSVC": ("sklearn", classifier("LinearSVC")),
    "LogisticRegression": ("sklearn", classifier("LogisticRegression")),
    "SGDClassifier": ("sklearn", classifier("SGDClassifier")),
}


def judged(A: np.ndarray, answer: Answer, seconds: float) -> dict[str, Any]:
    """What an answer is worth, in float64."""
    margin = wrong = residual = None
    pieces = [slice(i, i + 50_000) for i in range(0, len(A), 50_000)]
    if answer.y is not None and np.linalg.norm(answer.y) > 0:
        y = np.asarray(answer.y, np.float64) / np.linalg.norm(answer.y)
        score = np.concatenate([A[piece].astype(np.float64) @ y for piece in pieces])
        margin, wrong = float(score.min()), int((score <= 0).sum())
    if answer.x is not None:
        residual = float(np.linalg.norm(sum(answer.x[piece] @ A[piece].astype(np.float64) for piece in pieces)))
    values = {"said": answer.said, "why": answer.why, "seconds": seconds, "passes": answer.passes}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {**values, "margin": margin, "wrong": wrong, "residual": residual, "memory": memory}


def one(name: str, folder: Path, limit: float) -> None:
    """Solve in this process and print one JSON object."""
    A = np.load(folder / "A.npy")
    SOLVERS[name][1](A[: 4 * A.shape[1]].copy(), limit)  # what is imported or made once is not timed
    began = time.perf_counter()
    answer = SOLVERS[name][1](A, limit)
    print(json.dumps(judged(A, answer, time.perf_counter() - began)))


def shown(values: dict[str, Any]) -> str:
    """What is there to see: a direction with all points on its side, or weights with a zero sum."""
    if values["wrong"] == 0:
        return "yes"
    return "no" if values["residual"] is not None and values["residual"] <= ZERO else "-"


def lines(kind: str, folder: Path, names: list[str], limit: float) -> Iterator[str]:
    reference = 0.0
    for name in names:
        begin = f"| {KINDS[kind]} | {name} |"
        if not find_spec(SOLVERS[name][0]):
            yield f"{begin} not installed | | | | | | | | |"
            continue
        words = [sys.executable, __file__, "--one", name, "--dir", str(folder), "--limit", str(limit)]
        try:
            done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=2 * limit + 30)
        except subprocess.TimeoutExpired:
            yield f"{begin} stopped after {2 * limit + 30:.0f} s | | | | | | | | |"
            continue
        if done.returncode:
            why = "killed" if done.returncode < 0 else (done.stderr.strip().splitlines() or ["failed"])[-1][:80]
            yield f"{begin} {why} | | | | | | | | |"
            continue
        values = json.loads(done.stdout.splitlines()[-1])
        reference = reference or values["seconds"]
        said = f"{values['said']}: {values['why']}" if values["said"] == "nothing" and values["why"] else values["said"]
        numbers = [f"{values[key]:.2g}" if values[key] is not None else "" for key in ("margin", "residual")]
        wrong = "" if values["wrong"] is None else values["wrong"]
        passes = "" if values["passes"] is None else f"{values['passes']:.3g}"
        yield (
            f"{begin} {said} | {shown(values)} | {values['seconds']:.2f} | {values['seconds'] / reference:.1f} | {passes} | "
            f"{numbers[0]} | {wrong} | {numbers[1]} | {values['memory'] / 1e9:.1f} |"
        )


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of each solver")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--solvers", default=",".join(SOLVERS), help="the reference first")
    parser.add_argument("--dir", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--one", choices=SOLVERS, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.one is not None:
        one(options.one, Path(options.dir), options.limit)
        return
    print(f"{options.features} features, {options.points} points, at most {options.limit:.0f} s each\n")
    print("| data | solver | says | shown | seconds | x first | passes | margin | wrong | \\|Ax\\| | memory GB |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for kind in options.kinds.split(","):
        instance = Instance(kind, options.features, options.points)
        with tempfile.TemporaryDirectory(dir=options.dir) as folder:
            blocks = [instance.block(i) for i in range(-(-instance.n // instance.rows))]
            A = np.vstack([points * labels[:, None].astype(points.dtype) for points, labels in blocks])
            A /= np.linalg.norm(A, axis=1)[:, None]
            np.save(Path(folder) / "A.npy", A)
            del A, blocks
            for line in lines(kind, Path(folder), options.solvers.split(","), options.limit):
                print(line, flush=True)


if __name__ == "__main__":
    main()
