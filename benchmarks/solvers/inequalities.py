"""Solvers of A x <= b, of which ``Data`` has A as X and b as y: a linear programme without a cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.solvers.answer import NO, YES, Answer, Data


def dfeas(data: Data) -> Answer:
    import dfeas

    found = dfeas.feasible(data.X, data.y)
    said, u = {"feasible": YES, "infeasible": NO}.get(found.verdict, found.verdict), None
    if found.u is not None:
        most = max(found.u)
        u = np.zeros(len(data.y))
        u[found.rows] = [weight / most for weight in found.u]
    return Answer(said, found.proof, found.x, u)


def highs(solver: str) -> Callable[[Data], Answer]:
    """HiGHS, which may have a ray of multipliers where there is no solution."""

    def solve(data: Data) -> Answer:
        import highspy
        import scipy.sparse as sp

        rows, (n, m) = sp.csr_array(data.X), data.X.shape
        model = highspy.Highs()
        model.silent()
        model.setOptionValue("solver", solver)
        programme = highspy.HighsLp()
        programme.num_col_, programme.num_row_, programme.col_cost_ = m, n, np.zeros(m)
        programme.col_lower_, programme.col_upper_ = np.full(m, -highspy.kHighsInf), np.full(m, highspy.kHighsInf)
        programme.row_lower_, programme.row_upper_ = np.full(n, -highspy.kHighsInf), data.y
        programme.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        programme.a_matrix_.start_, programme.a_matrix_.index_ = rows.indptr, rows.indices
        programme.a_matrix_.value_ = rows.data
        model.passModel(programme)
        model.run()
        status = model.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            return Answer(YES, w=np.array(model.getSolution().col_value))
        if status != highspy.HighsModelStatus.kInfeasible:
            return Answer(model.modelStatusToString(status))
        _, has_ray, ray = model.getDualRay()
        return Answer(NO, x=np.abs(ray) if has_ray else None)

    return solve


def ortools_pdlp(data: Data) -> Answer:
    """PDLP of OR-tools, at tolerances of 1e-8."""
    from ortools.pdlp import solve_log_pb2, solvers_pb2
    from ortools.pdlp.python import pdlp
    from scipy.sparse import csc_matrix

    n, m = data.X.shape
    problem = pdlp.QuadraticProgram()
    problem.objective_vector, problem.constraint_matrix = np.zeros(m), csc_matrix(data.X)
    problem.constraint_lower_bounds, problem.constraint_upper_bounds = np.full(n, -np.inf), data.y
    problem.variable_lower_bounds, problem.variable_upper_bounds = np.full(m, -np.inf), np.full(m, np.inf)
    how: Any = solvers_pb2.PrimalDualHybridGradientParams()
    how.termination_criteria.simple_optimality_criteria.eps_optimal_absolute = 1e-8
    how.termination_criteria.simple_optimality_criteria.eps_optimal_relative = 1e-8
    found = pdlp.primal_dual_hybrid_gradient(problem, how)
    reason = solve_log_pb2.TerminationReason.Name(found.solve_log.termination_reason).removeprefix("TERMINATION_REASON_")
    if reason == "OPTIMAL":
        return Answer(YES, w=np.array(found.primal_solution))
    return Answer(NO, x=np.abs(found.dual_solution)) if reason == "PRIMAL_INFEASIBLE" else Answer(reason.lower())
