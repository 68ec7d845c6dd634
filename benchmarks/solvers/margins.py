"""Solvers of soft margins: minimise |w|^2/2 + C sum_j max(0, 1 - y_j x_j'w), without an intercept.

As a quadratic programme in (w, s): minimise |w|^2/2 + C sum s, y_j x_j'w + s_j >= 1, s >= 0.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.solvers.answer import Answer, Data
from benchmarks.solvers.linear import EPOCHS, wabbit


def dfeas(data: Data) -> Answer:
    import dfeas

    found = dfeas.soft_margin(data.X, data.y, C=data.C, intercept=False)
    return Answer(f"gap {found.gap:.1e}", "gap", found.y, lower=found.lower)


def linear_svc(data: Data) -> Answer:
    from sklearn.svm import LinearSVC

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge is seen from the objective
        model = LinearSVC(C=data.C, loss="hinge", fit_intercept=False, random_state=0).fit(data.X, data.y)
    return Answer(w=model.coef_[0].astype(np.float64))


def sgd(data: Data) -> Answer:
    """The objective of SGDClassifier is a mean."""
    from sklearn.linear_model import SGDClassifier

    alpha = 1 / (data.C * data.X.shape[0])
    model = SGDClassifier(alpha=alpha, fit_intercept=False, average=True, max_iter=EPOCHS, tol=None, random_state=0)
    return Answer(w=model.fit(data.X, data.y).coef_[0].astype(np.float64))


def logistic(data: Data) -> Answer:
    """Another loss: its direction is judged by the hinge loss all the same."""
    from sklearn.linear_model import LogisticRegression

    return Answer(w=LogisticRegression(C=data.C, fit_intercept=False).fit(data.X, data.y).coef_[0].astype(np.float64))


def vowpal_wabbit(data: Data) -> Answer:
    return Answer(w=wabbit("--l2 {l2}")(data))


def programme(data: Data) -> tuple[Any, np.ndarray]:
    """Rows (n, m + n) in CSR, and linear costs."""
    import scipy.sparse as sp

    n, m = data.X.shape
    rows = sp.diags_array(data.y.astype(np.float64)) @ sp.csr_array(data.X).astype(np.float64)
    return sp.csr_array(sp.hstack([rows, sp.eye_array(n)])), np.concatenate([np.zeros(m), np.full(n, data.C)])


def highs(data: Data) -> Answer:
    """Its solver of quadratic programmes, which is an active set."""
    import highspy

    rows, cost = programme(data)
    n, k = rows.shape
    m = k - n
    model = highspy.Highs()
    model.silent()
    linear = highspy.HighsLp()
    linear.num_col_, linear.num_row_, linear.col_cost_ = k, n, cost
    linear.col_lower_, linear.col_upper_ = np.append(np.full(m, -highspy.kHighsInf), np.zeros(n)), np.full(k, highspy.kHighsInf)
    linear.row_lower_, linear.row_upper_ = np.ones(n), np.full(n, highspy.kHighsInf)
    linear.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    linear.a_matrix_.start_, linear.a_matrix_.index_, linear.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    model.passModel(linear)
    hessian = highspy.HighsHessian()
    hessian.dim_, hessian.format_ = k, highspy.HessianFormat.kTriangular
    hessian.start_ = np.append(np.arange(m + 1), np.full(n, m)).astype(np.int32)
    hessian.index_, hessian.value_ = np.arange(m, dtype=np.int32), np.ones(m)
    model.passHessian(hessian)
    model.run()
    status = model.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        return Answer(model.modelStatusToString(status))
    return Answer(w=np.array(model.getSolution().col_value)[:m])


def ortools_pdlp(data: Data) -> Answer:
    """PDLP with a diagonal quadratic objective, at its relative tolerance of 1e-6."""
    from ortools.pdlp import solve_log_pb2, solvers_pb2
    from ortools.pdlp.python import pdlp
    from scipy.sparse import csc_matrix

    rows, cost = programme(data)
    n, k = rows.shape
    m = k - n
    problem = pdlp.QuadraticProgram()
    problem.objective_vector = cost
    problem.set_objective_matrix_diagonal(np.append(np.ones(m), np.zeros(n)))
    problem.constraint_matrix = csc_matrix(rows)
    problem.constraint_lower_bounds, problem.constraint_upper_bounds = np.ones(n), np.full(n, np.inf)
    problem.variable_lower_bounds = np.append(np.full(m, -np.inf), np.zeros(n))
    problem.variable_upper_bounds = np.full(k, np.inf)
    found = pdlp.primal_dual_hybrid_gradient(problem, solvers_pb2.PrimalDualHybridGradientParams())
    reason = solve_log_pb2.TerminationReason.Name(found.solve_log.termination_reason)
    if reason != "TERMINATION_REASON_OPTIMAL":
        return Answer(reason.removeprefix("TERMINATION_REASON_").lower())
    return Answer(w=np.asarray(found.primal_solution)[:m])


def conic(data: Data) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """(P, A, b, c): minimise z'P z/2 + c'z, b - A z >= 0."""
    import scipy.sparse as sp

    rows, cost = programme(data)
    n, k = rows.shape
    floor = sp.csr_array((np.full(n, -1.0), np.arange(k - n, k), np.arange(n + 1)), shape=(n, k))
    P = sp.csc_matrix(sp.diags_array(np.append(np.ones(k - n), np.zeros(n))))
    return P, sp.csc_matrix(sp.vstack([-rows, floor])), np.append(-np.ones(n), np.zeros(n)), cost


def clarabel(data: Data) -> Answer:
    import clarabel as library

    P, A, b, c = conic(data)
    settings = library.DefaultSettings()
    settings.verbose = False
    found = library.DefaultSolver(P, c, A, b, [library.NonnegativeConeT(len(b))], settings).solve()
    if str(found.status) not in ("Solved", "AlmostSolved"):
        return Answer(str(found.status))
    return Answer(w=np.array(found.x)[: data.X.shape[1]])


def scs(data: Data) -> Answer:
    import scs as library

    P, A, b, c = conic(data)
    found = library.SCS({"P": P, "A": A, "b": b, "c": c}, {"l": len(b)}, verbose=False, eps_abs=1e-6, eps_rel=1e-6).solve()
    if found["info"]["status"] != "solved":
        return Answer(found["info"]["status"])
    return Answer(w=found["x"][: data.X.shape[1]])
