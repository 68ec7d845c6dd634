"""Problems of cvxpy as programmes of cones, and answers as values of their variables and constraints.

cvxpy itself writes the constraints in the form of SCS, and translates x and z back (``Problem.get_problem_data``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from dfeas.cones.product import EXISTS, OPEN, Program
from dfeas.cones.writer import from_scs
from dfeas.data.dataset import Dataset
from dfeas.data.programs import LinearProgram
from dfeas.errors import BadInputError, UndecidedError, UsageError
from dfeas.linalg.points import Floats
from dfeas.records import replace

OTHERS = {"exp": "an exponential cone", "p3d": "a power cone", "pnd": "a power cone"}
"""Cones of cvxpy that are not supported."""
SHOWN, LEAST, LONG = 3, 1e-3, 60
"""Constraints that are named, of what share of the largest dual value, and characters of each."""


def from_cvxpy(problem: Any) -> Dataset:
    """The constraints of a problem of cvxpy in memory, for ``dfeas.solve``: are they strictly feasible?

    Inequalities, norms and matrix inequalities must hold strictly, those of attributes such as ``nonneg`` and ``PSD``, too,
    and equalities exactly. The objective is ignored. After ``result = dfeas.solve(..)`` the call
    ``result.unpack(problem)`` sets ``value`` of variables, or, without a solution, ``dual_value`` of constraints.

    Parameters
    ----------
    problem : cvxpy.Problem
        Its constraints are convex by the rules of cvxpy, of real or complex variables; parameters have values.

    Returns
    -------
    Dataset
        What ``dfeas.solve`` takes, as from ``dfeas.from_scs``.

    Raises
    ------
    BadInputError
        A constraint is not convex, or needs an exponential or power cone; a variable is an integer, a parameter has no value.
    UsageError
        ``problem`` is none of cvxpy, or SCS, for which cvxpy writes it, is not installed.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import dfeas
    >>> x = cp.Variable(2, name="x")
    >>> problem = cp.Problem(cp.Minimize(0), [cp.sum(x) == 1, x >= 0.25, cp.norm(x) <= 0.75])
    >>> result = dfeas.solve(dfeas.from_cvxpy(problem))
    >>> result.unpack(problem)
    >>> print(result.verdict, x.value.min() > 0.25)
    feasible True
    """
    data = _write(problem)[0]
    dims = data["dims"]
    found = from_scs(data["A"], data["b"], {"z": dims.zero, "l": dims.nonneg, "q": dims.soc, "s": dims.psd})
    return replace(found, program=None if found.program is None else ConstraintProgram(**vars(found.program), problem=problem))


@dataclass(frozen=True)
class ConstraintProgram(Program):
    """One whose answers name the constraints of a problem of cvxpy."""

    problem: Any = None

    def explain(self, verdict: str, message: str, dual: Floats | None) -> str:
        if self.contradicts:
            return super().explain(verdict, message, dual)
        equality = ", whether some do with equality is not said" if verdict == "infeasible" else ""
        said = f"{EXISTS.get(verdict, OPEN)} values satisfy all constraints with strict inequalities{equality}"
        return said if dual is None else "; ".join([said, *self._name_heaviest(dual)])

    def _name_heaviest(self, dual: Floats) -> list[str]:
        """Constraints by their places in the problem and their texts, those of the largest dual values first."""
        found, each = _translate(self.problem, None, dual).dual_vars, self.problem.constraints
        size = [max(np.abs(np.asarray(part)).max(initial=0.0) for part in _parts(found[one.id])) for one in each]
        heaviest = sorted(range(len(each)), key=lambda k: -size[k])[:SHOWN]
        return [f"constraint {k}: {_shorten(str(each[k]))}" for k in heaviest if size[k] > LEAST * max(size)]


def linear_program(problem: Any) -> LinearProgram:
    """The constraints of a problem, all of which are linear. Raises BadInputError for one that is not."""
    data, chain, inverse = _write(problem)
    if data["dims"].soc or data["dims"].psd:
        text = "not linear; dfeas.solve(dfeas.from_cvxpy(problem)) asks whether cones are strictly feasible"
        for each in problem.variables():
            for kind in ("PSD", "NSD", "hermitian"):
                if each.attributes.get(kind):
                    raise BadInputError(f"variable {each.name()}: its attribute {kind} is {text}")
        for k, each in enumerate(problem.constraints):
            dims = _write(type(problem)(problem.objective, [each]))[0]["dims"]
            if dims.soc or dims.psd:
                raise BadInputError(f"constraint {k}: {_shorten(str(each))}: {text}")
        raise BadInputError(f"the attribute of a variable is {text}")
    own = {key for each in problem.variables() for key in (each.id, each.name())}
    held, p = data["param_prob"], data["dims"].zero
    rows, right = scipy.sparse.csr_array(data["A"]), np.asarray(data["b"])
    features, others = [""] * rows.shape[1], np.zeros(rows.shape[1], bool)
    for each in held.variables:
        first = held.var_id_to_col[each.id]
        for k in range(each.size):
            features[first + k] = f"{each.name()}{_index(k, each.shape)}"
            others[first + k] = not {each.id, each.name()} & own
    bounds = np.tile([-np.inf, np.inf], (rows.shape[1], 1))
    name = RowNames(problem.constraints, rows, features, others, lambda z: _invert(chain, inverse, np.zeros(len(features)), z))
    n = rows.shape[0] - p
    of_rows = range(p, p + n), [False] * n, range(p)
    return LinearProgram(rows[p:], right[p:], rows[:p], right[:p], bounds, tuple(features), *of_rows, name, "constraint")


@dataclass(frozen=True, eq=False, repr=False)
class RowNames:
    """What rows that cvxpy wrote are called: by the place of a constraint in the problem, its text, and the entry of it."""

    constraints: list[Any]
    rows: Any  # (N, m) CSR
    features: list[str]
    others: NDArray[np.bool_]  # (m,) variables of cvxpy's own, which tie rows of one constraint to each other
    invert: Callable[[Floats], Any]

    def __call__(self, row: int) -> str:
        seen, left = {row}, [row]
        while left:
            unit = np.zeros(self.rows.shape[0])
            unit[now := left.pop(0)] = 1.0
            duals = self.invert(unit).dual_vars
            for k, each in enumerate(self.constraints):
                value = np.asarray(duals[each.id])
                if value.any():
                    part = "" if now != row else _index(int(np.flatnonzero(value.ravel(order="F"))[0]), value.shape)
                    return f"{k}{part}: {_shorten(str(each))}"
            tied = [j for j in self.rows[[now]].indices if self.others[j]]
            more = [*dict.fromkeys(self.rows[:, tied].nonzero()[0].tolist())] if tied else []
            left += [each for each in more if each not in seen]
            seen.update(more)
        held = [self.features[j] for j in self.rows[[row]].indices]
        return f"by an attribute of {', '.join(held)}"


def _index(k: int, shape: tuple[int, ...]) -> str:
    """The place of entry k, column by column, as NumPy says it; empty where there is one entry."""
    if int(np.prod(shape)) == 1:
        return ""
    return f"[{', '.join(str(int(i)) for i in np.unravel_index(k, shape, order='F'))}]"


def unpack(problem: Any, x: Floats | None, dual: Floats | None) -> None:
    """Set the values of variables to those of x (m,), or dual values of constraints to those of z (N,)."""
    if x is None and dual is None:
        raise UndecidedError("this result has no x and no certificate, or was loaded from a file, which keeps no dual values")
    found = _translate(problem, x, dual)
    for constraint in problem.constraints:
        constraint.save_dual_value(found.dual_vars[constraint.id])
    for variable in problem.variables():
        if variable.id in found.primal_vars:  # others are of the objective alone
            variable.save_value(None if x is None else found.primal_vars[variable.id])


def _translate(problem: Any, x: Floats | None, dual: Floats | None) -> Any:
    """What x (m,) and z (N,) are in its variables and constraints. Raises BadInputError where they are of another problem."""
    data, chain, inverse = _write(problem)
    rows, m = data["A"].shape
    for given, expected, what in ((x, m, "variables"), (dual, rows, "rows")):
        if given is not None and len(given) != expected:
            raise BadInputError(f"the result has {len(given)} {what}, this problem {expected}; expected the problem it is of")
    return _invert(chain, inverse, np.zeros(m) if x is None else x, np.zeros(rows) if dual is None else dual)


def _invert(chain: Any, inverse: Any, x: Floats, z: Floats) -> Any:
    info = {"status_val": 1, "solve_time": 0, "setup_time": 0, "iter": 0, "pobj": 0.0}
    return chain.invert({"x": x, "y": z, "s": np.zeros(len(z)), "info": info}, inverse)


def _parts(values: Any) -> list[Any]:
    """Dual values of a constraint, of a second-order cone several."""
    return list(values) if isinstance(values, list | tuple) else [values]


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONG else f"{line[:LONG]} .."


def _write(problem: Any) -> tuple[dict[str, Any], Any, Any]:
    """Its constraints in the form of SCS, and what translates back."""
    try:
        cvxpy = import_module("cvxpy")
    except ImportError:
        raise UsageError("cvxpy is not installed: pip install cvxpy") from None
    if not isinstance(problem, cvxpy.Problem):
        raise UsageError(f"expected a problem of cvxpy, got {type(problem).__name__}")
    asked = cvxpy.Problem(cvxpy.Minimize(0), problem.constraints)
    _require_convex(asked)
    try:
        data, chain, inverse = asked.get_problem_data(cvxpy.SCS)
    except cvxpy.error.SolverError as error:
        raise UsageError(f"cvxpy writes the problem for SCS: {error}; pip install scs") from None
    used = [kind for kind in OTHERS if getattr(data["dims"], kind, None)]
    if used and len(problem.constraints) > 1:  # which of them?
        for each in problem.constraints:
            _write(cvxpy.Problem(problem.objective, [each]))
    if used:
        raise BadInputError(f"{problem.constraints[0]}: needs {OTHERS[used[0]]}, which is not supported; leave it out")
    return data, chain, inverse


def _require_convex(asked: Any) -> None:
    for each in asked.constraints:
        if not each.is_dcp():
            raise BadInputError(f"{each}: not convex by the rules of cvxpy (DCP); expected constraints that are")
    for variable in asked.variables():
        if variable.attributes["integer"] or variable.attributes["boolean"]:
            raise BadInputError(f"variable {variable.name()}: whole numbers are not supported; expected real ones")
    for parameter in asked.parameters():
        if parameter.value is None:
            raise BadInputError(f"parameter {parameter.name()} has no value; set {parameter.name()}.value")
    if not asked.variables():
        raise BadInputError("the problem has no constraint with a variable in it; expected some")
