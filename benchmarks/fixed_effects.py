"""Separation with fixed effects: many levels, most columns zero, beside the check of pyfixest.

    python benchmarks/fixed_effects.py --rows 1000000 --levels 100000

Rows of firms and years, both one-hot in full, beside age, income and a measurement, in CSR. ``dfeas.separation`` says the kind
with an intercept, of three outcomes: by chance with both in every firm and year (overlap), by chance with many firms of one
outcome (quasi-complete), and a threshold on what the firms and regressors add up to (complete). Beside it

* the one-sided levels: rows of levels of one outcome are dropped until there is none, which every separation check starts with;
* where it is installed, pyfixest's check "fe", called for both outcomes, as it is written for zeros of counts.

Both see levels only: what the regressors separate they do not drop. Rows dropped by dfeas are those off the hyperplane that it
found. Where the rows are few the kind is proved as in ``tables/oracle.py``, else it is what the outcome was made for. Ends with
exit code 1 when dfeas says another kind, none, or does not prove it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy import sparse

import dfeas
from dfeas.errors import DfeasError

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.tables.oracle import COMPLETE, OVERLAP, QUASI, kind_of

ENTRIES = 200_000
"""Of a dense design that the oracle is asked about."""

Levels = np.ndarray
Floats = np.ndarray


@dataclass(frozen=True)
class Panel:
    kind: str  # that it was made for
    firm: Levels  # (n,) of int64
    year: Levels
    regressors: Floats  # (n, 3)
    y: np.ndarray  # (n,) bool

    def points(self) -> sparse.csr_array:
        """(n, firms + years + 3)."""
        n = len(self.y)
        firms, years = int(self.firm.max()) + 1, int(self.year.max()) + 1
        rest = np.broadcast_to(firms + years + np.arange(3), (n, 3))
        indices = np.column_stack([self.firm, firms + self.year, rest]).ravel()
        values = np.column_stack([np.ones((n, 2)), self.regressors]).ravel()
        return sparse.csr_array((values, indices, np.arange(0, 5 * n + 1, 5)), shape=(n, firms + years + 3))


def panels(rows: int, levels: int, years: int, one_sided: float, seed: int) -> Iterator[Panel]:
    """Every firm has rows // levels rows or one more."""
    rng = np.random.default_rng(seed)
    firm, year = rng.permutation(np.arange(rows) % levels), rng.permutation(np.arange(rows) % years)
    income = np.round(rng.lognormal(10.5, 0.8, rows), -2)
    regressors = np.column_stack([rng.integers(18, 80, rows), income, rng.standard_normal(rows).round(2)])
    effect = rng.normal(0, 1, levels)[firm] + regressors @ [0.02, 1e-6, 0.5]
    y = rng.random(rows) < 1 / (1 + np.exp(effect.mean() - effect))
    for group in (year, firm):
        # the first row of a level is a one, the second a zero
        order = np.argsort(group, kind="stable")
        first = np.flatnonzero(np.diff(group[order], prepend=-1))
        y[order[first]], y[order[np.minimum(first + 1, rows - 1)]] = True, False
    yield Panel(OVERLAP, firm, year, regressors, y)
    chosen = rng.random(levels) < one_sided
    yield Panel(QUASI, firm, year, regressors, np.where(chosen[firm], rng.random(levels)[firm] < 0.5, y))
    yield Panel(COMPLETE, firm, year, regressors, effect > np.median(effect))


def one_sided_levels(panel: Panel) -> int:
    """Rows that are dropped, level after level of one outcome, until each that is left has both."""
    left = np.ones(len(panel.y), bool)
    while True:
        before = left.sum()
        for group in (panel.firm, panel.year):
            ones = np.bincount(group[left & panel.y], minlength=group.max() + 1)
            zeros = np.bincount(group[left & ~panel.y], minlength=group.max() + 1)
            left &= ((ones > 0) & (zeros > 0))[group]
        if left.sum() == before:
            return int(len(left) - before)


def pyfixest_check(panel: Panel) -> int:
    """Rows that pyfixest's check of fixed effects drops for one of the two outcomes."""
    import pandas as pd
    from pyfixest.estimation.models.fepois_ import _check_for_separation_fe

    levels = pd.DataFrame({"firm": panel.firm, "year": panel.year})
    dropped: set[int] = set()
    for y in (panel.y, ~panel.y):
        outcome = pd.DataFrame({"y": y.astype(float)})
        dropped |= _check_for_separation_fe(fml="", data=levels, Y=outcome, X=levels, fe=levels)
    return len(dropped)


@dataclass(frozen=True)
class Line:
    """A row of the table."""

    panel: Panel
    who: str
    says: str
    dropped: int | None
    seconds: float

    def __str__(self) -> str:
        n = len(self.panel.y)
        dropped = "-" if self.dropped is None else self.dropped
        return f"| {self.panel.kind} | {n} | {self.who} | {self.says} | {dropped} | {self.seconds:.2f} |"


def decided(panel: Panel, seconds: float) -> tuple[Line, str | None]:
    """What dfeas says, and what is wrong with it."""
    X = panel.points()
    began = perf_counter()
    try:
        found = dfeas.separation(X, panel.y.astype(int), intercept=True, time_limit=seconds)
    except DfeasError as error:
        return Line(panel, "dfeas", "refused", None, perf_counter() - began), f"{panel.kind}: refused: {error}"
    taken, n = perf_counter() - began, len(panel.y)
    dropped = {COMPLETE: n, QUASI: n - found.on, OVERLAP: 0, None: None}[found.kind]
    line = Line(panel, "dfeas", f"{found.kind}, {found.proof}", dropped, taken)
    truth, how = panel.kind, "made for"
    if X.shape[0] * X.shape[1] <= ENTRIES:
        truth, how = kind_of(X.toarray(), panel.y).kind or truth, "proved by the oracle"
    if found.kind != truth:
        return line, f"{panel.kind}: dfeas says {found.kind} ({found.message}), {how}: {truth}"
    proved = found.proof == "exact" or (found.proof, found.kind) == ("rigorous", COMPLETE)
    return line, None if proved else f"{panel.kind}: the proof of dfeas is {found.proof}"


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--levels", type=int, default=100_000, help="of the first fixed effect: firms")
    parser.add_argument("--years", type=int, default=100, help="levels of the second")
    parser.add_argument("--one-sided", type=float, default=0.3, help="share of firms that have one outcome")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=f"{OVERLAP},{QUASI},{COMPLETE}")
    parser.add_argument("--time-limit", type=float, default=600.0, help="seconds of each solve of dfeas")
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args(words)
    if options.rows < 4 * max(options.levels, options.years):
        parser.error("--rows: at least four for each level")
    checks: dict[str, Callable[[Panel], int]] = {"one-sided levels, NumPy": one_sided_levels}
    if find_spec("pyfixest") and not options.no_peers:
        checks["pyfixest fe"] = pyfixest_check
        pyfixest_check(next(panels(8, 2, 2, 0.0, 0)))  # loads it
    faults = []
    print("| made for | rows | who | says | rows dropped | s |\n|---|---|---|---|---|---|")
    for panel in panels(options.rows, options.levels, options.years, options.one_sided, options.seed):
        if panel.kind not in options.kinds.split(","):
            continue
        line, fault = decided(panel, options.time_limit)
        print(line, flush=True)
        faults += [fault] if fault else []
        for who, check in checks.items():
            began = perf_counter()
            dropped = check(panel)
            print(Line(panel, who, "-", dropped, perf_counter() - began), flush=True)
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
