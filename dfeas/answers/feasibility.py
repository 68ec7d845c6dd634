"""What ``dfeas.feasible`` returns, and how it is proved again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import lcm
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.answers.base import FLOATS, PLACES, Conclusion
from dfeas.answers.files import RESULT, require_followed
from dfeas.answers.result import Result, cost_row
from dfeas.answers.words import FEASIBLE, UNDECIDED, Proof, Verdict
from dfeas.data.dataset import Dataset
from dfeas.data.inequalities import Inequalities, list_parts
from dfeas.data.open import open_source
from dfeas.data.partitions import compute_here
from dfeas.data.source import ALL_POSITIVE, Source
from dfeas.data.storage.files import COUNT, conform
from dfeas.display import Grid, Part, Row, parse_integer, parse_integers, plain
from dfeas.engine.local import LocalEngine, local_engine
from dfeas.errors import BadInputError, CheckFailedError, CorruptDataError, UndecidedError, either
from dfeas.exact.dyadic import Dyadic, Integers, common
from dfeas.exact.integers import independent
from dfeas.leaves import unpack_cvxpy
from dfeas.problem import Problem
from dfeas.settings import parse_bytes, require_type
from dfeas.verify.certificate import Check
from dfeas.verify.separation import Wanted, look, rows


def _read_asked(asked: dict[str, Any]) -> dict[str, Any]:
    """Where the parts of a system are, as a file says it. Raises ValueError for anything else."""
    parts = ("A", "b", "equal", "bounds")
    conform(asked, {f"{name}?": str | list | None for name in parts} | {"choice?": dict}, "asked")
    if more := [name for name in asked if name not in (*parts, "choice")]:
        raise ValueError(f"asked has {more[0]!r}, which is no part of a system")
    return asked


def _read_conflict(entries: list[Any]) -> list[dict[str, Any]]:
    """Constraints, as a file says them. Raises ValueError for anything else."""
    conform(entries, [{"kind": str, "place": COUNT, "name": object, "text": str, "multiplier": object}], "conflict")
    return [{**each, "multiplier": parse_integer(each["multiplier"])} for each in entries]


def call_constraint(constraint: Mapping[str, Any]) -> tuple[str, str]:
    """What a constraint is called, and what it says."""
    between = " of " if "bound" in constraint["kind"] else " "
    return f"{constraint['kind']}{between}{constraint['name']}", constraint["text"]


def _say_multiplier(value: int) -> str:
    return str(value) if abs(value) < 10**12 else f"about {Decimal(value):.3e}"


SHOWN = 10
"""Constraints of a conflict that are printed."""


def is_irreducible(points: Integers) -> bool:
    """Whether no constraint can be left out of an infeasible set, whose points (s, m + 1) all have a multiplier. If they are
    independent, so are the left sides of all but one: these hold with equality in some x.
    """
    return len(independent(points)) == len(points)


@dataclass(frozen=True, repr=False, kw_only=True)
class Feasibility(Conclusion):
    """Whether there is a solution, with evidence.

    Attributes
    ----------
    verdict : Verdict
        ``feasible``, ``infeasible`` or ``undecided``.
    proof : Proof
        ``exact``; or ``rigorous`` for a feasible system whose signs were decided with bounds of all rounding errors.
    message : str
        What was found, in words.
    x : array (m,) of float64, optional
        A solution, or the rounding of one.
    violated : int
        Inequalities, equalities counted as two, that ``x`` violates because of rounding; ``exact`` violates none.
    exact : list of Fraction, optional
        The proved solution (m,): equal to ``x`` if that violates nothing.
    rows : array (s,) of int64, optional
        Rows of A in a Farkas certificate, if there is no solution.
    u : list of int, optional
        (s,) multipliers of these rows, positive.
    v : list of int, optional
        (p,) multipliers of the equalities.
    upper, lower : list of int, optional
        (m,) those of the bounds, at least zero: A'u + E'v + upper - lower = 0, and b'u + f'v + upper'high - lower'low < 0.
    conflict : list of dict, optional
        The constraints that contradict each other, by what you call them: ``kind`` (row, equality, upper bound, lower bound; of
        cvxpy constraint), ``place`` (of the row, the equality or the variable), ``name``, ``text`` as ``2 a - c <= 5``, and
        ``multiplier``. Without any one of them the others have a solution: it is an irreducible infeasible set (IIS).
    asked : dict, optional
        Absolute paths of ``A``, ``b``, ``equal`` and ``bounds``; None where a part of the system was in memory.
    result : Result
        The verdict about the points that stand for the inequalities.

    Examples
    --------
    >>> import dfeas
    >>> answer = dfeas.feasible([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [-1.0, 0.0, 0.0])
    >>> answer.rows.tolist(), answer.u
    ([0, 1, 2], [1, 1, 1])
    >>> print(answer.conflict[0]["text"], "and", answer.conflict[1]["text"])
    x[0] + x[1] <= -1 and -x[0] <= 0
    """

    HIDDEN: ClassVar = ("exact", "result")
    SHAPE: ClassVar = {
        "violated": COUNT,
        **dict.fromkeys(("exact?", "rows?", "u?", "v?", "upper?", "lower?", "conflict?"), list | None),
    }
    READ: ClassVar = {
        "verdict": Verdict,
        "proof": Proof,
        "x": FLOATS,
        "exact": lambda pairs: [Fraction(*parse_integers(pair)) for pair in pairs],
        "rows": lambda rows: PLACES(parse_integers(rows)),
        **dict.fromkeys(("u", "v", "upper", "lower"), parse_integers),
        "conflict": _read_conflict,
        "asked": _read_asked,
    }

    verdict: Verdict
    proof: Proof
    message: str
    x: NDArray[np.float64] | None = None
    violated: int = 0
    exact: list[Fraction] | None = None
    rows: NDArray[np.int64] | None = None
    u: list[int] | None = None
    v: list[int] | None = None
    upper: list[int] | None = None
    lower: list[int] | None = None
    conflict: list[dict[str, Any]] | None = None
    asked: dict[str, Any] | None = None
    result: Result

    def _parts(self) -> Iterator[Part]:
        yield Row("verdict", f" (proof: {self.proof})", self.verdict)
        yield Row("", self.message)
        if self.conflict:
            shown = [[*call_constraint(each), _say_multiplier(each["multiplier"])] for each in self.conflict[:SHOWN]]
            yield Grid(("constraint", "", "multiplier"), shown, 2)
            if (more := len(self.conflict) - SHOWN) > 0:
                yield Row(None, f"and {more} more: see conflict, in Python and in {RESULT}")
        run = self.result
        yield cost_row(run.passes, run.method, run.reads, run.bytes_read, run.seconds)

    @property
    def is_decided(self) -> bool:
        return self.verdict != UNDECIDED

    def unpack(self, problem: Any) -> None:
        """Set the values of the variables of a problem of cvxpy, or, without a solution, the dual values of its constraints.

        Parameters
        ----------
        problem : cvxpy.Problem
            The one that ``dfeas.feasible`` was asked about, or one with the same constraints.

        Raises
        ------
        UndecidedError
            There is no verdict.
        BadInputError
            A problem with other variables or rows.
        """
        dual = None
        if self.rows is not None:
            u, v = np.array(self.u, object), np.array(self.v, object)
            most = np.abs(np.append(u, v)).max()
            dual = np.zeros(self.result.n - len(v))
            dual[: len(v)], dual[len(v) + self.rows] = v / most, u / most
        unpack_cvxpy(problem, self.x, dual)

    def verify(
        self,
        A: Any = None,
        b: Any = None,
        *,
        equal: Any = None,
        bounds: Any = None,
        memory: str | int | None = None,
        follow: bool = False,
    ) -> Check:
        """Check the solution, or the multipliers, against the system in integer arithmetic, in one read, or two for rounding.

        Parameters
        ----------
        A, b, equal, bounds : optional
            The system, as of ``dfeas.feasible``, if a part of it was in memory; or what has been moved.
        memory : int or str
            Budget in bytes for blocks.
        follow : bool
            As in ``dfeas.verify_run``.

        Returns
        -------
        Check
            What was proved.

        Raises
        ------
        UndecidedError
            There is no verdict.
        CheckFailedError
            It does not follow.
        UsageError
            The files have a URL as the place of the system, and neither it is given nor ``follow``.
        BadInputError, CorruptDataError
            The system is not given, or is another one.
        """
        require_type("follow", follow, "bool")
        if not self.is_decided:
            raise UndecidedError(f"the answer is undecided ({self.result.stopped}): it claims nothing to check")
        parts = {"A": A, "b": b, "equal": equal, "bounds": bounds}
        given = {name: each for name, each in parts.items() if each is not None}
        if self.asked is None and not given:
            how = "give it again: dfeas.load(RUN).verify(A, b, equal=(E, f), bounds=bounds)"
            raise BadInputError(f"a part of the system was in memory; {how}")
        system = {name: given.get(name, (self.asked or {}).get(name)) for name in parts}
        if self.result.loaded and not follow:
            named = [each for name in {*system} - {*given} for each in list_parts(system[name])]
            otherwise = f"give the system, {either('A and b', '--data A --labels b')}"
            require_followed("the run", {"data": {"also": named}}, otherwise)
        budget = parse_bytes(memory)
        A, b, equal, bounds = system.values()
        if A is not None and "A" not in given and "choice" in (self.asked or {}):
            from dfeas.data.table import table  # with readers of all formats

            A = table(A, **(self.asked or {})["choice"])
        asked = Inequalities.of(A, b, equal, bounds, budget, compute_here(A))
        if (asked.m, asked.count) != (self.result.m, self.result.n):
            counts = f"{asked.count} inequalities of {asked.m} variables, it was about {self.result.n} of {self.result.m}"
            raise CorruptDataError(f"not the system of the run: {counts}")
        dataset = open_source(Source(Problem.of(asked.X, ALL_POSITIVE).spec).within(budget))
        with local_engine(dataset, budget) as engine:
            if self.verdict == FEASIBLE:
                text = self._check_solution(asked, engine, dataset)
            else:
                text = self._check_multipliers(asked, engine, dataset, named=not given)
        n = self.result.n
        return Check(str(self.verdict), str(Proof.EXACT), -1.0, 1.0, n, n, text, points_read=n, counted="inequalities")

    def _check_solution(self, asked: Inequalities, engine: LocalEngine, dataset: Dataset) -> str:
        exact, mark, x = self.exact or [], self.result.fingerprint, self.x
        if len(exact) != asked.m:
            raise CheckFailedError(f"{RESULT}: exact has {len(exact)} entries, expected {asked.m}")
        if any(each is not None for each in (self.rows, self.u, self.v, self.upper, self.lower, self.conflict)):
            raise CheckFailedError(f"{RESULT}: it has a solution, and multipliers")
        if x is not None and x.tolist() != nearest_floats(exact):
            raise CheckFailedError(f"{RESULT}: x is not the rounding of exact")
        dataset.fingerprint, whole = mark, lcm(*(value.denominator for value in exact))
        y = np.array([*(value.numerator * (whole // value.denominator) for value in exact), whole], object)
        sides = look(engine, dataset, mark, Wanted(y))
        if sides.wrong:
            raise CheckFailedError(f"{RESULT}: its solution violates {sides.wrong} of {asked.count} inequalities")
        violated = 0
        if x is not None and [*map(Fraction, x.tolist())] != exact:
            digits = Dyadic.of(np.append(x, 1.0)).digits
            violated = look(engine, dataset, mark, Wanted(digits)).wrong
        if violated != self.violated:
            raise CheckFailedError(f"{RESULT}: violated is {self.violated}, x violates {violated} of the inequalities")
        rounded = f"; its rounding x violates {violated}" if violated else ""
        return f"the solution satisfies all {asked.count} inequalities exactly{rounded}"

    def _check_multipliers(self, asked: Inequalities, engine: LocalEngine, dataset: Dataset, named: bool) -> str:
        if self.rows is None or None in (self.u, self.v, self.upper, self.lower):
            raise CheckFailedError(f"{RESULT}: it has no multipliers")
        if self.x is not None or self.exact is not None or self.violated:
            raise CheckFailedError(f"{RESULT}: it has multipliers, and a solution")
        try:
            support, weights = asked.join(self.rows, self.u or [], self.v or [], self.upper or [], self.lower or [])
        except ValueError as error:
            raise CheckFailedError(f"{RESULT}: {error}") from None
        dataset.fingerprint = self.result.fingerprint
        look(engine, dataset, self.result.fingerprint, Wanted())
        some = rows(dataset, support)
        dense = some if isinstance(some, np.ndarray) else some.toarray()
        points = common(dense)[0]
        total = weights @ points
        if not len(support) or total[:-1].any() or not total[-1] < 0:
            raise CheckFailedError(f"{RESULT}: its multipliers do not make 0 x <= -1 of the inequalities")
        text = f"the multipliers of {len(support)} inequalities make 0 x <= b'u < 0 of them, exactly: there is no solution"
        if self.conflict is None:  # as older versions leave it, which say nothing of irreducible sets
            return text
        if not is_irreducible(points):
            raise CheckFailedError(f"{RESULT}: its constraints contradict each other without some of them, too")
        keys = ("kind", "place", "multiplier", *(("name", "text") if named else ()))
        true = [plain(each) for each in asked.list_constraints(support, weights, dense)]
        if [[each[key] for key in keys] for each in true] != [[plain(each[key]) for key in keys] for each in self.conflict]:
            raise CheckFailedError(f"{RESULT}: conflict lists other constraints than those that have multipliers")
        return f"{text}; without any one of them there is one"

    def to_json(self) -> dict[str, Any]:
        """Those of the run, and the answer; ``n`` are inequalities, equalities and bounds among them. Fractions are pairs."""
        pairs = None if self.exact is None else [value.as_integer_ratio() for value in self.exact]
        return self.result.to_json() | super().to_json() | {"exact": plain(pairs)}


def nearest_floats(exact: list[Fraction]) -> list[float] | None:
    """To float64; None where that does not hold them."""
    try:
        return [float(value) for value in exact]
    except OverflowError:
        return None
