"""Solvers of the question whether a plane through the origin has all points on their sides.

A linear programme is: maximise t, y_j x_j'w >= t, |w_i| <= 1, 0 <= t <= 1. Its dual variables are weights on the points. Row
generation solves it for some rows, 4 m of them at random at first, and adds the 2 m lowest of those that are violated, warm.
Classifiers have the weakest regularisation that they take, and say nothing but a direction.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.solvers.answer import NO, YES, Answer, Data

T = 1e-9
"""Above it t is a yes."""

EPOCHS = 50
TEXT_PASSES = 20
"""Of Vowpal Wabbit, over its cache."""

TURNS = 300
"""Of the perceptron, over all points, and of row generation."""


def dfeas(data: Data) -> Answer:
    import dfeas

    found = dfeas.solve(data.X, data.y, intercept=False)
    said = {"feasible": YES, "infeasible": NO}.get(found.verdict, found.verdict)
    x = None
    if found.support is not None:
        rows = data.X[found.support]
        x = np.zeros(data.X.shape[0])
        x[found.support] = found.weights / lengths(rows)
    return Answer(said, found.proof, found.coef if said == YES else None, x)


def separation(data: Data) -> Answer:
    """dfeas before a regression: the last feature is its intercept."""
    import dfeas

    found = dfeas.check_separation(data.X[:, :-1], data.y)
    said = YES if found.kind == "complete" else NO
    return Answer(f"{said}, {found.kind}", found.proof)


def perceptron(data: Data) -> Answer:
    """In six lines: all mistakes of a turn are corrected at once."""
    w, y = np.zeros(data.X.shape[1], data.X.dtype), data.y.astype(data.X.dtype)
    for _ in range(TURNS):
        wrong = (data.X @ w) * y <= 0
        if not wrong.any():
            break
        w = w + (y * wrong) @ data.X
    return Answer(w=w.astype(np.float64))


def classifier(name: str) -> Callable[[Data], Answer]:
    """A linear classifier of scikit-learn."""

    def solve(data: Data) -> Answer:
        from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
        from sklearn.svm import SVC, LinearSVC

        n, m = data.X.shape
        models: dict[str, Callable[[], Any]] = {
            "Perceptron": lambda: Perceptron(fit_intercept=False, max_iter=EPOCHS, tol=None),
            "SGDClassifier": lambda: SGDClassifier(alpha=1e-8, fit_intercept=False, max_iter=EPOCHS, tol=None),
            "LinearSVC": lambda: LinearSVC(C=1e8, fit_intercept=False, max_iter=2000, dual=m > n),
            "LogisticRegression": lambda: LogisticRegression(C=1e8, fit_intercept=False, max_iter=2000),
            "SVC": lambda: SVC(C=1e8, kernel="linear"),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it did not converge is seen from its direction
            model = models[name]().fit(data.X, data.y)
        if name == "SVC":  # has an intercept, so that its planes are others
            return Answer(wrong=lambda: int((model.predict(data.X) != data.y).sum()))
        return Answer(w=model.coef_[0].astype(np.float64))

    return solve


def signed(X: Any, y: np.ndarray) -> Any:
    """Rows (n, m + 1) in CSR, float64: their products with (w, t) are to be zero or above."""
    import scipy.sparse as sp

    rows = sp.csr_array(X).astype(np.float64)
    return sp.csr_array(sp.hstack([sp.diags_array(y.astype(np.float64)) @ rows, sp.csr_array(-np.ones((len(y), 1)))]))


def read_off(z: Any, dual: Any, rows: np.ndarray | None = None, n: int = 0) -> Answer:
    """From (w, t) and dual variables, of all points or of some."""
    weights = np.maximum(np.asarray(dual), 0)
    if rows is not None:
        weights, some = np.zeros(n), weights
        weights[rows] = some
    total = weights.sum()
    z = np.asarray(z)
    return Answer(YES, w=z[:-1]) if z[-1] > T else Answer(NO, x=weights / total if total > 0 else None)


def model_of(rows: Any, solver: str) -> Any:
    """The programme, in HiGHS."""
    import highspy

    n, k = rows.shape
    model = highspy.Highs()
    model.silent()
    model.setOptionValue("solver", solver)
    programme = highspy.HighsLp()
    programme.num_col_, programme.num_row_, programme.col_cost_ = k, n, np.append(np.zeros(k - 1), -1.0)
    programme.col_lower_, programme.col_upper_ = np.append(-np.ones(k - 1), 0.0), np.ones(k)
    programme.row_lower_, programme.row_upper_ = np.zeros(n), np.full(n, highspy.kHighsInf)
    programme.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    programme.a_matrix_.start_, programme.a_matrix_.index_, programme.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    model.passModel(programme)
    return model


def run_model(model: Any) -> tuple[str, Any, Any]:
    """Why there is no solution, or (w, t) and dual variables."""
    import highspy

    model.run()
    status = model.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        return model.modelStatusToString(status), None, None
    solution = model.getSolution()
    return "", np.array(solution.col_value), np.array(solution.row_dual)


def highs(solver: str) -> Callable[[Data], Answer]:
    """HiGHS on all rows at once."""

    def solve(data: Data) -> Answer:
        why, z, dual = run_model(model_of(signed(data.X, data.y), solver))
        return Answer(why) if why else read_off(z, dual)

    return solve


def generated_rows(data: Data) -> Answer:
    """HiGHS on some rows, more in each turn."""
    import highspy

    n, m = data.X.shape
    rows = np.sort(np.random.default_rng(0).choice(n, min(n, 4 * m), replace=False))
    model = model_of(signed(data.X[rows], data.y[rows]), "choose")
    for _ in range(TURNS):
        why, z, dual = run_model(model)
        if why or z[-1] <= T:
            return Answer(why) if why else read_off(z, dual, rows, n)
        scores = (data.X @ z[:-1].astype(data.X.dtype)) * data.y
        if (scores > 0).all():
            scores = (data.X @ z[:-1]) * data.y  # float32 may be wrong about what is near
        wrong = np.setdiff1d(np.flatnonzero(scores <= 0), rows)
        if not len(wrong):
            return read_off(z, dual, rows, n)
        more = wrong[np.argsort(scores[wrong])[: 2 * m]]
        part = signed(data.X[more], data.y[more])
        bounds = np.zeros(len(more)), np.full(len(more), highspy.kHighsInf)
        model.addRows(len(more), *bounds, part.nnz, part.indptr[:-1].astype(np.int32), part.indices.astype(np.int32), part.data)
        rows = np.concatenate([rows, more])
    return Answer("turns")


def ortools_pdlp(data: Data) -> Answer:
    """PDLP of OR-tools, at relative tolerances of 1e-8."""
    from ortools.pdlp import solve_log_pb2, solvers_pb2
    from ortools.pdlp.python import pdlp
    from scipy.sparse import csc_matrix

    rows = signed(data.X, data.y)
    n, k = rows.shape
    problem = pdlp.QuadraticProgram()
    problem.objective_vector = np.append(np.zeros(k - 1), -1.0)
    problem.constraint_matrix = csc_matrix(rows)
    problem.constraint_lower_bounds, problem.constraint_upper_bounds = np.zeros(n), np.full(n, np.inf)
    problem.variable_lower_bounds, problem.variable_upper_bounds = np.append(-np.ones(k - 1), 0.0), np.ones(k)
    how = solvers_pb2.PrimalDualHybridGradientParams()
    how.termination_criteria.simple_optimality_criteria.eps_optimal_absolute = 1e-8
    how.termination_criteria.simple_optimality_criteria.eps_optimal_relative = 1e-8
    found = pdlp.primal_dual_hybrid_gradient(problem, how)
    reason = solve_log_pb2.TerminationReason.Name(found.solve_log.termination_reason)
    if reason != "TERMINATION_REASON_OPTIMAL":
        return Answer(reason.removeprefix("TERMINATION_REASON_").lower())
    return read_off(found.primal_solution, found.dual_solution)


def conic(data: Data) -> tuple[Any, np.ndarray, np.ndarray, int]:
    """(A, b, c, n): minimise c'z, b - A z >= 0; the first n rows are the points."""
    import scipy.sparse as sp

    rows = signed(data.X, data.y)
    n, k = rows.shape
    box = sp.eye_array(k, format="csr")
    A = sp.csc_matrix(sp.vstack([-rows, box, -box]))
    return A, np.concatenate([np.zeros(n), np.ones(2 * k - 1), [0.0]]), np.append(np.zeros(k - 1), -1.0), n


def clarabel(data: Data) -> Answer:
    import clarabel as library
    from scipy.sparse import csc_matrix

    A, b, c, n = conic(data)
    settings = library.DefaultSettings()
    settings.verbose = False
    found = library.DefaultSolver(csc_matrix((len(c), len(c))), c, A, b, [library.NonnegativeConeT(len(b))], settings).solve()
    if str(found.status) not in ("Solved", "AlmostSolved"):
        return Answer(str(found.status))
    return read_off(found.x, np.array(found.z)[:n])


def scs(data: Data) -> Answer:
    """At tolerances of 1e-7."""
    import scs as library

    A, b, c, n = conic(data)
    found = library.SCS({"A": A, "b": b, "c": c}, {"l": len(b)}, verbose=False, eps_abs=1e-7, eps_rel=1e-7).solve()
    if found["info"]["status"] != "solved":
        return Answer(found["info"]["status"])
    return read_off(found["x"], found["y"][:n])


def wabbit(options: str) -> Callable[[Data], np.ndarray]:
    """The direction of Vowpal Wabbit, which reads text that was written before."""

    def solve(data: Data) -> np.ndarray:
        from vowpalwabbit import Workspace

        own = options.format(l2=1 / (data.C * data.X.shape[0]))
        words = f"--loss_function hinge {own} --passes {TEXT_PASSES} --holdout_off --noconstant -b 18 --quiet"
        files = f"-d {data.folder}/points.vw --cache_file {data.folder}/points.cache -k"
        model = Workspace(f"{words} {files}")
        w = np.array([model.get_weight(i) for i in range(data.X.shape[1])])
        model.finish()
        return w

    return solve


def vowpal_wabbit(data: Data) -> Answer:
    return Answer(w=wabbit("")(data))


def lengths(X: Any) -> np.ndarray:
    """Of points (n, m), dense or CSR."""
    if hasattr(X, "indptr"):
        return np.sqrt(np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel())
    return np.linalg.norm(X.astype(np.float64), axis=1)
