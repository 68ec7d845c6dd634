"""Problems of cvxpy: beside Clarabel, checked in fractions and by our verifier, mapped back, and what is refused."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dfeas

cp = pytest.importorskip("cvxpy")
KINDS = "planted", "boundary", "infeasible"


class Drawn:
    """A problem in x (3,) and symmetric P (2, 2) with whole numbers, and what its constraints say in fractions."""

    def __init__(self, seed: int) -> None:
        rng, self.kind = np.random.default_rng(seed), KINDS[seed % 3]
        self.x, self.P = cp.Variable(3, name="x"), cp.Variable((2, 2), symmetric=True, name="P")
        x, P = rng.integers(-3, 4, 3), rng.integers(-2, 3, (2, 2))
        P = P + P.T
        self.cones = [name for name in "lqs" if rng.random() < 0.6] or ["l"]
        self.constraints: list[Any] = []
        room = 0 if self.kind == "boundary" else int(rng.integers(1, 3))
        if "l" in self.cones:
            self.G = rng.integers(-3, 4, (4, 3))
            self.h = self.G @ x + room
            self.constraints += [self.G @ self.x <= self.h]
            if self.kind != "planted":  # with the first row the other way round
                self.constraints += [self.G[0] @ self.x >= self.h[0] + (self.kind == "infeasible")]
        if "q" in self.cones:
            self.F, self.f = rng.integers(-2, 3, (2, 3)), rng.integers(-2, 3, 2)
            self.r = int(np.ceil(np.linalg.norm(self.F @ x + self.f))) + room
            self.constraints += [cp.norm(self.F @ self.x + self.f) <= self.r]
        if "s" in self.cones:  # S(P, x) = A'P + P A + x_0 C + D is definite
            self.A, C = rng.integers(-2, 3, (2, 2)), rng.integers(-2, 3, (2, 2))
            self.C = C + C.T
            S = self.A.T @ P + P @ self.A + x[0] * self.C
            self.D = (room + int(np.ceil(np.abs(np.linalg.eigvalsh(S)).max()))) * np.eye(2, dtype=int)
            self.constraints += [self.A.T @ self.P + self.P @ self.A + self.x[0] * self.C + self.D >> 0]
        self.equal = None
        if rng.random() < 0.5:
            self.equal = np.round(rng.standard_normal(3), 2)  # decimals: not solved without rounding
            self.constraints += [self.equal @ self.x == float(self.equal @ x)]
        self.problem = cp.Problem(cp.Minimize(cp.sum(self.x)), self.constraints)

    def holds(self) -> bool:
        """Whether all inequalities hold strictly, in fractions, of the values that were set."""
        x = [Fraction(float(v)) for v in self.x.value]
        right = []
        if "l" in self.cones:
            right += [_dot(g, x) < h for g, h in zip(self.G.tolist(), self.h.tolist(), strict=True)]
        if "q" in self.cones:
            right += [sum((_dot(g, x) + f) ** 2 for g, f in zip(self.F.tolist(), self.f.tolist(), strict=True)) < self.r**2]
        if "s" in self.cones:
            P = np.array([[Fraction(float(v)) for v in row] for row in self.P.value], object)
            S = self.A.T @ P + P @ self.A + x[0] * self.C + self.D
            right += [S[0, 0] > 0, S[0, 0] * S[1, 1] > S[0, 1] * S[1, 0]]
        return all(right)


def _dot(row: Sequence[int], x: Sequence[Fraction]) -> Fraction:
    return sum((g * v for g, v in zip(row, x, strict=True)), Fraction(0))


@pytest.mark.parametrize("seeds", [range(first, first + 20) for first in (0,)])
def test_20_random_problems_beside_clarabel(seeds: range) -> None:
    for seed in seeds:
        drawn = Drawn(seed)
        data = dfeas.from_cvxpy(drawn.problem)
        result = dfeas.solve(data, eps=1e-7)
        room = cp.Variable()  # how far inside all of them can be, up to 1
        inside = [c if isinstance(c, cp.constraints.Equality) else _looser(c, room) for c in drawn.constraints]
        peer = cp.Problem(cp.Maximize(room), [*inside, room <= 1])
        peer.solve(solver=cp.CLARABEL)
        said = seed, drawn.kind, drawn.cones, peer.status, peer.value, result.verdict, result.message
        sure = peer.status == cp.OPTIMAL and abs(peer.value) > 1e-4
        assert not sure or (result.verdict == "feasible") == (peer.value > 0), said
        assert drawn.kind != "planted" or result.verdict == "feasible", said
        if drawn.kind != "planted" and drawn.cones == ["l"] and drawn.equal is None:
            assert result.verdict == "infeasible", said
        if drawn.kind == "boundary" and data.rounded:  # rows near these have none
            assert result.verdict != "infeasible", said
        if result.verdict == "undecided":
            continue
        assert result.evidence is not None, said
        result.unpack(drawn.problem)
        if result.verdict == "feasible":
            assert drawn.holds(), said
            assert drawn.equal is None or abs(drawn.constraints[-1].residual).max() < 1e-12 * (1 + abs(drawn.x.value).max()), (
                said
            )
            assert drawn.problem.status is None, said  # its objective is none of ours
        else:
            assert drawn.x.value is None, said
            _is_certificate(data, drawn, result)


def _looser(constraint: Any, room: Any) -> Any:
    """With ``room`` left on its way to the boundary."""
    if isinstance(constraint, cp.constraints.PSD):
        return constraint.args[0] - room * np.eye(2) >> 0
    return constraint.args[0] + room <= constraint.args[1]


def _is_certificate(data: Any, drawn: Drawn, result: Any) -> None:
    """Dual values are z: A'z = 0 and b'z <= 0, up to rounding, and those of inequalities are in the dual cones."""
    form = cp.Problem(cp.Minimize(0), drawn.constraints).get_problem_data(cp.SCS)[0]
    z = result.dual
    assert abs(form["A"].T @ z).max() <= 1e-5 * abs(z).max()
    assert form["b"] @ z <= 1e-5 * abs(z).max()
    for constraint in drawn.constraints:
        value = constraint.dual_value
        if isinstance(constraint, cp.constraints.PSD):
            assert np.linalg.eigvalsh(value).min() > -1e-6
        elif constraint is not drawn.constraints[-1] or drawn.equal is None:
            assert np.min(value) > -1e-6


@pytest.mark.parametrize("seed", range(6))
def test_some_constraints_that_conflict_are_proved_beside_a_matrix_inequality(seed: int) -> None:
    """By a clear gap, of numbers that are rounded, where the matrix has variables of its own, whose dual values are zero."""
    rng = np.random.default_rng(seed)
    v, P = cp.Variable(3), cp.Variable((2, 2), **{"PSD" if seed % 2 else "symmetric": True})
    a, A = rng.standard_normal(3), rng.standard_normal((2, 2))
    conflict = [cp.norm(v) <= 1, a @ v >= np.linalg.norm(a) + 0.1, rng.standard_normal(3) @ v == 0.1]
    for more in ([P >> v[0] * np.eye(2)], [A.T @ P + P @ A + v[0] * np.eye(2) << np.eye(2), P << 10 * np.eye(2)]):
        result = dfeas.solve(dfeas.from_cvxpy(cp.Problem(cp.Minimize(0), [*conflict, *more])))
        assert (result.verdict, result.proof) == ("infeasible", "exact")


def test_matrices_attributes_and_complex_variables_are_mapped_back() -> None:
    A = np.array([[0.0, 1], [-2, -3]])
    P, w, s = cp.Variable((2, 2), PSD=True, name="P"), cp.Variable((2, 2), hermitian=True), cp.Variable(nonneg=True)
    constraints = [A.T @ P + P @ A << 0, cp.trace(P) == 7.3, w >> np.eye(2), cp.imag(w[0, 1]) == 1, s <= 0.1]
    problem = cp.Problem(cp.Minimize(0), constraints)
    result = dfeas.solve(dfeas.from_cvxpy(problem))
    assert result.verdict == "feasible"
    result.unpack(problem)
    assert np.linalg.eigvalsh(P.value).min() > 0
    assert np.linalg.eigvalsh(A.T @ P.value + P.value @ A).max() < 0
    assert np.trace(P.value) == pytest.approx(7.3, rel=1e-14)
    assert np.linalg.eigvalsh(w.value).min() > 1
    assert w.value[0, 1].imag == 1
    assert 0 < s.value < 0.1


def test_equalities_that_contradict_each_other_say_so() -> None:
    x = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(0), [cp.sum(x) == 1, cp.sum(x) == 2, x[0] >= 0])
    result = dfeas.solve(dfeas.from_cvxpy(problem))
    assert (result.verdict, result.proof) == ("infeasible", "exact")
    assert result.message.startswith("not strictly feasible: no x solves the equalities")
    result.unpack(problem)
    first, second = (constraint.dual_value for constraint in problem.constraints[:2])
    assert first == pytest.approx(-second) != 0


def test_a_problem_on_its_boundary_is_called_not_strictly_feasible_and_names_constraints_that_conflict() -> None:
    """1 <= x <= 1 has a solution, which cvxpy finds; what is far from its bounds is not blamed."""
    x, y = cp.Variable(name="x"), cp.Variable(2, name="y")
    problem = cp.Problem(cp.Minimize(0), [y <= 100, cp.norm(cp.hstack([np.ones((40, 2)) @ y, y])) <= 1e3, x >= 1, x <= 1])
    result = dfeas.solve(dfeas.from_cvxpy(problem))
    assert (result.verdict, result.proof, result.term) == ("infeasible", "exact", "not strictly feasible")
    said = "no values satisfy all constraints with strict inequalities, whether some do with equality is not said"
    assert result.message.startswith(f"not strictly feasible: {said}; constraint ")
    assert set(result.message.split("; ")[1:]) == {"constraint 2: 1.0 <= x", "constraint 3: x <= 1.0"}
    first, second = str(result).splitlines()[:2]
    assert (first, second.lstrip()) == ("verdict      not strictly feasible (proof: exact)", result.message[23:])
    assert dfeas.Result.from_json(result.to_json()).term == result.term
    loose = dfeas.solve(dfeas.from_cvxpy(cp.Problem(cp.Minimize(0), problem.constraints[:3])))
    assert (loose.verdict, loose.term) == ("feasible", "strictly feasible")
    assert loose.message == "strictly feasible: some values satisfy all constraints with strict inequalities"
    long = cp.Variable(name="w" * 80)
    conflict = dfeas.solve(dfeas.from_cvxpy(cp.Problem(cp.Minimize(0), [long >= 1, long <= 0])))
    assert f"; constraint 1: {'w' * 60} .." in conflict.message


x = cp.Variable(name="x")
CONSTRAINTS: list[tuple[list[Any], str]] = [
    ([x <= 3, cp.log(x) >= 1], r"1.0 <= log\(x\): needs an exponential cone"),
    ([cp.PowCone3D(x, x, x, 0.3)], "needs a power cone"),
    ([cp.Variable(boolean=True, name="b") <= x], "variable b: whole numbers"),
    ([cp.sqrt(x) <= 1], "not convex by the rules"),
    ([cp.Parameter(name="gain") * x <= 1], "parameter gain has no value; set gain.value"),
    ([], "no constraint with a variable"),
]


@pytest.mark.parametrize(("constraints", "said"), CONSTRAINTS)
def test_what_is_not_covered_is_refused_by_name(constraints: list[Any], said: str) -> None:
    with pytest.raises(dfeas.BadInputError, match=said) as raised:
        dfeas.from_cvxpy(cp.Problem(cp.Minimize(0), constraints))
    assert "\n" not in str(raised.value)


def test_results_of_other_problems_are_refused() -> None:
    y = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(0), [y >= 1, y <= 1])
    with pytest.raises(dfeas.BadInputError, match="expected the problem it is of"):
        dfeas.solve(dfeas.from_scs([[1.0]], [1.0], {"l": 1})).unpack(problem)
    with pytest.raises(dfeas.UndecidedError, match="no x and no certificate"):
        dfeas.solve(dfeas.from_cvxpy(problem), max_passes=1, method="mirror-prox").unpack(problem)


def draw_linear(seed: int) -> tuple[Any, list[Any]]:
    """A variable, and constraints that are linear, or that cvxpy writes so with variables of its own."""
    rng = np.random.default_rng(seed)
    x, y = cp.Variable(3, name="x"), cp.Variable(nonneg=True, name="y")
    G, h = rng.integers(-3, 4, (5, 3)), rng.integers(-4, 5, 5)
    kinds = [
        lambda: G @ x <= h,
        lambda: cp.norm1(x) <= y,
        lambda: cp.max(x) <= float(h[0]),
        lambda: cp.sum(x) == float(h[1]),
        lambda: cp.abs(x[0] - x[1]) + y <= 2,
        lambda: y >= float(h[2]),
        lambda: x >= h[3],
    ]
    return x, [kinds[k]() for k in rng.permutation(len(kinds))[: rng.integers(2, 7)]]


def test_linear_problems_are_decided_with_their_boundary_and_conflicts_name_constraints() -> None:
    told = []
    for seed in range(60):
        x, constraints = draw_linear(seed)
        problem = cp.Problem(cp.Minimize(cp.sum(x)), constraints)
        beside = cp.Problem(cp.Minimize(0), constraints)
        beside.solve(solver=cp.CLARABEL)
        answer = dfeas.feasible(problem)
        assert answer.verdict == ("infeasible" if beside.status == "infeasible" else "feasible"), seed
        told.append(answer.verdict)
        answer.unpack(problem)
        assert answer.verify(problem).verdict == answer.verdict
        if answer.verdict == "feasible":
            assert all(np.max(each.violation()) <= 1e-9 for each in constraints)
            continue
        assert answer.conflict is not None
        assert x.value is None
        named = {int(each["name"].partition(":")[0].partition("[")[0]) for each in answer.conflict if each["name"][0].isdigit()}
        assert all(each["kind"] == "constraint" for each in answer.conflict)
        assert all("attribute of y" in each["name"] for each in answer.conflict if not each["name"][0].isdigit())
        some = cp.Problem(cp.Minimize(0), [constraints[k] for k in named])
        some.solve(solver=cp.CLARABEL)
        assert some.status == "infeasible", (seed, answer.conflict)
        assert any(np.any(np.asarray(each.dual_value)) for k, each in enumerate(constraints) if k in named)
    assert set(told) == {"feasible", "infeasible"}


def test_conflicts_of_cvxpy_say_which_entry_of_which_constraint() -> None:
    x, y = cp.Variable((2, 2), name="x"), cp.Variable(name="y")
    problem = cp.Problem(cp.Minimize(y), [x >= 1, y == x[1, 0], y <= 0.5])
    answer = dfeas.feasible(problem)
    said = {(each["name"], each["text"]) for each in answer.conflict or []}
    assert said == {
        ("0[1, 0]: 1.0 <= x", "-x[1, 0] <= -1"),
        ("1: y == x[1, 0]", "-x[1, 0] + y = 0"),
        ("2: y <= 0.5", "y <= 0.5"),
    }
    assert "constraint 2: y <= 0.5" in str(answer)
    answer.unpack(problem)
    assert problem.constraints[2].dual_value > 0
    point = dfeas.feasible(cp.Problem(cp.Maximize(y), [y <= 1, y >= 1]))  # which has no strict solution
    assert (point.verdict, point.exact) == ("feasible", [1])
    for constraints, text in (
        ([y <= 1, cp.norm(x) <= 1], r"constraint 1: .*: not linear; dfeas.solve\(dfeas.from_cvxpy\(problem\)\)"),
        ([cp.Variable(integer=True) <= 1], "whole numbers"),
        ([cp.Variable((2, 2), PSD=True) == np.eye(2)], "its attribute PSD is not linear"),
    ):
        with pytest.raises(dfeas.BadInputError, match=text):
            dfeas.feasible(cp.Problem(cp.Minimize(0), constraints))
    with pytest.raises(dfeas.UsageError, match="leave out the others"):
        dfeas.feasible(problem, [1.0])
    with pytest.raises(dfeas.UsageError, match="expected a problem of cvxpy"):
        dfeas.feasible(y)
