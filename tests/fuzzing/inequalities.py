"""Systems of inequalities: a solution satisfies them, and multipliers cancel, in fractions; one of the two there must be."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse

import dfeas
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong

Rows = list[list[Fraction]]


def draw_numbers(rng: np.random.Generator, family: str, shape: tuple[int, ...]) -> np.ndarray:
    if family == "integers":
        return rng.integers(-4, 5, shape).astype(np.float64)
    if family == "decimals":
        return rng.integers(-30, 31, shape) * rng.choice([0.1, 1.0, 0.01])
    if family == "shares":
        return np.where(rng.random(shape) < 0.5, rng.integers(0, 3, shape), rng.integers(-20, 21, shape) / 10)
    if family == "scales":
        return rng.integers(-9, 10, shape) * 10.0 ** rng.integers(-9, 10, shape)
    return rng.standard_normal(shape)


def draw_system(rng: np.random.Generator) -> tuple[str, dict[str, np.ndarray]]:
    """About half of them have a solution, which many of their rows touch."""
    family = str(rng.choice(["integers", "decimals", "decimals", "shares", "scales", "normal"]))
    n, m, p = int(rng.integers(0, 9)), int(rng.integers(1, 5)), int(rng.integers(0, 4))
    n, p = (n, p) if n + p else (1, p)
    A, E, x = (draw_numbers(rng, family, shape) for shape in ((n, m), (p, m), (m,)))
    loose = rng.integers(0, 3, n) * (rng.random(n) < 0.4)
    near = rng.random() < 0.7
    b, f = (A @ x + loose, E @ x) if near else (draw_numbers(rng, family, (n,)), draw_numbers(rng, family, (p,)))
    system = {"A": A, "b": b, "E": E, "f": f}
    if rng.random() < 0.5:
        low, high = np.sort(np.stack([x, x + rng.integers(-1, 3, m)]), axis=0)
        system["bounds"] = np.stack(
            [np.where(rng.random(m) < 0.4, -np.inf, low), np.where(rng.random(m) < 0.4, np.inf, high)], 1
        )
    return family, system


def _fractions(array: np.ndarray) -> Any:
    return [_fractions(row) for row in array] if array.ndim else Fraction(float(array))


def _times(rows: Rows, x: Sequence[Fraction]) -> list[Fraction]:
    return [sum((a * v for a, v in zip(row, x, strict=True)), Fraction(0)) for row in rows]


@dataclass(frozen=True)
class InequalitiesKind:
    feasible: Callable[..., Any] = dfeas.feasible
    name: str = "inequalities"
    weight: float = 2.0
    seconds: float = 20.0

    def draw(self, seed: int) -> Case:
        rng = rng_of(self.name, seed)
        family, system = draw_system(rng)
        return Case(self.name, seed, family, system, {"sparse": bool(rng.random() < 0.3)})

    def judge(self, case: Case) -> Judgement:
        A, b, E, f = (case.arrays[name] for name in "AbEf")
        given = scipy.sparse.csr_array(A) if case.options["sparse"] and len(A) else A
        bounds = case.arrays.get("bounds")
        try:
            found = self.feasible(
                given if len(A) else None, b if len(A) else None, equal=(E, f) if len(E) else None, bounds=bounds
            )
        except dfeas.BadInputError as error:
            zeros = "length" in str(error) or "norm" in str(error)
            return Judgement(Word.REFUSED, str(error)) if zeros and case.family == "scales" else wrong(f"refused: {error}")
        if found.verdict == "feasible":
            return self._of_solution(found, A, b, E, f, bounds)
        if found.verdict == "infeasible":
            return self._of_multipliers(found, A, b, E, f, bounds)
        return Judgement(Word.UNDECIDED, found.message)

    def _of_solution(self, found: Any, A: Any, b: Any, E: Any, f: Any, bounds: Any) -> Judgement:
        def count(x: list[Fraction]) -> int:
            above = sum(v > w for v, w in zip(_times(_fractions(A), x), _fractions(b), strict=True))
            apart = sum(v != w for v, w in zip(_times(_fractions(E), x), _fractions(f), strict=True))
            out = (
                0 if bounds is None else sum((v < low) + (v > high) for v, (low, high) in zip(x, bounds.tolist(), strict=True))
            )
            return above + apart + out

        if count(found.exact):
            return wrong(f"the solution in fractions violates {count(found.exact)} rows")
        if found.x is not None and count([Fraction(v) for v in found.x.tolist()]) != found.violated:
            return wrong(f"x violates {count([Fraction(v) for v in found.x.tolist()])}, said {found.violated}")
        said = re.search(r"by at most (\S+)$", found.message)
        over = [v - w for v, w in zip(_times(_fractions(A), _fractions(found.x)), _fractions(b), strict=True)]
        if (said is not None) != bool(found.violated) or (said and over and max(over) > Fraction(said[1])):
            return wrong(f"{found.violated} rows are violated, and the message is {found.message}")
        return RIGHT

    def _of_multipliers(self, found: Any, A: Any, b: Any, E: Any, f: Any, bounds: Any) -> Judgement:
        rows = found.rows.tolist()
        if any(not 0 <= row < len(A) for row in rows) or len(found.u) != len(rows) or len(found.v) != len(E):
            return wrong(f"rows {rows} of {len(A)}, {len(found.u)} and {len(found.v)} multipliers")
        if min([*found.u, *found.upper, *found.lower], default=0) < 0:
            return wrong("a multiplier is negative")
        m = A.shape[1]
        limits = np.tile([-np.inf, np.inf], (m, 1)) if bounds is None else bounds
        total, right = [Fraction(a - c) for a, c in zip(found.upper, found.lower, strict=True)], Fraction(0)
        for weights, values, sides in ((found.u, A[rows], b[rows]), (found.v, E, f)):
            for weight, row, side in zip(weights, _fractions(values), _fractions(sides), strict=True):
                total, right = [t + weight * a for t, a in zip(total, row, strict=True)], right + weight * side
        for weight, lower, (low, high) in zip(found.upper, found.lower, limits.tolist(), strict=True):
            right += (weight * Fraction(high) if weight else 0) - (lower * Fraction(low) if lower else 0)
        if any(total) or right >= 0:
            return wrong(f"the multipliers sum to {total} and {right}")
        eye, places = np.eye(m), {kind: [each["place"] for each in found.conflict if each["kind"] == kind] for kind in KINDS}
        held = [
            *np.column_stack([A, b])[places["row"]],
            *np.column_stack([E, f])[places["equality"]],
            *np.column_stack([eye, limits[:, 1]])[places["upper bound"]],
            *np.column_stack([eye, limits[:, 0]])[places["lower bound"]],
        ]
        if _rank([_fractions(row) for row in held]) < len(held):  # others but one of them hold with equality in no x
            return wrong(f"the conflict of {len(held)} constraints is not irreducible")
        return RIGHT


KINDS = ("row", "equality", "upper bound", "lower bound")


def _rank(rows: Rows) -> int:
    """By elimination in fractions."""
    for column in range(len(rows[0])):
        pivot = next((row for row in rows if row[column]), None)
        if pivot is not None:
            rest = [row for row in rows if row is not pivot]
            parts = [row[column] / pivot[column] for row in rest]
            return 1 + (
                _rank([[a - part * c for a, c in zip(row, pivot, strict=True)] for row, part in zip(rest, parts, strict=True)])
                if rest
                else 0
            )
    return 0
