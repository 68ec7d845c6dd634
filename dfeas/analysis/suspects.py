"""``dfeas.suspects``: points that have to go, or to change their labels, before a hyperplane separates the others.

The fewest are hard to find, and to approximate (Amaldi and Kann 1995). So there are two numbers, each proved. At least: of
points in conflict one has to go, so that as many have to go as there are conflicts without a common point (Gleeson and Ryan
1990, Chinneck 1996). Enough: all others have a separator, by which the checker decides each point exactly.

W, columns in memory, is divided by a soft margin, and passes bring what it misses until its separator has no other point wrong:
those are suspects. Then each, the nearest first, joins what stays if that is still separated. If not, it is needed: it is in
conflict with points that stay, if possible with such as are in no other conflict. Most are found by one least-squares problem
(Lawson and Hanson 1974) of few columns opposed to the suspect, which one product finds for several suspects, or by some more,
while columns join that its residual has wrong; others by separations of more and more columns. That takes no pass, but for a
last look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import compress
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.answers.check.conflicts import labels_of, numbers_of
from dfeas.answers.files import SUSPECTS
from dfeas.answers.result import Result
from dfeas.answers.suspects import COLUMNS, Suspects
from dfeas.answers.words import INFEASIBLE, Stop
from dfeas.data.dataset import Dataset
from dfeas.data.ids import INDEX
from dfeas.data.source import DataSpec
from dfeas.data.storage.places import place
from dfeas.errors import BadInputError, UsageError
from dfeas.geometry.protocol import facts_of
from dfeas.geometry.registry import require_points
from dfeas.linalg.blas import one_thread
from dfeas.linalg.points import Array, Floats, Indices
from dfeas.linalg.routines import nnls
from dfeas.linalg.separation import AT
from dfeas.linalg.separation.columns import ColumnMatrix, multiply_out
from dfeas.linalg.separation.newton import Newton
from dfeas.linalg.separation.rounds import lowest
from dfeas.linalg.separation.solver import CONFLICT, SEPARATED, solve
from dfeas.linalg.separation.sparse_columns import column_matrix
from dfeas.methods import working_set
from dfeas.methods.working_set.batches import capacity, solver_room
from dfeas.passes.block import Columns
from dfeas.passes.protocol import Partial
from dfeas.passes.select import Select, sample
from dfeas.problem import Problem
from dfeas.records import replace
from dfeas.run.checkpoint.folder import require_free, run_folder
from dfeas.run.resources import Limits, choose_client
from dfeas.run.session import Session, open_session, survey
from dfeas.run.solve import run_terms
from dfeas.run.solver_thread import Abandoned, open_in_time, run_solver_here
from dfeas.run.spec import require_labels
from dfeas.verify.certificate import Certificate, Check
from dfeas.verify.core import check_conflicts, find_wrong

if TYPE_CHECKING:
    from dfeas.engine.protocol import Workers

PRICES = (1.0, 1e2, 1e4)
"""C of the soft margins of which one divides W: the least, unless another has more points less wrong than there are features,
which so many coefficients do not explain."""
WHOLE = 1 << 25
"""Entries up to which W has all columns, where memory has room for them."""
OPPOSED, MANY = 2.5, 5.0
"""Opposed columns for each feature among which a suspect is cancelled, at least: of 2 few suspects are, and 3 take a tenth
longer. And at most, with more than ``FEW`` features: 60,000 x 80 points with 200 wrong labels take 2.5 s, and 3.9 with 2.5."""
NARROW, FEW, ROUNDS = 256, 64, 40
"""Features up to which that is tried, and tried so often: with 20 it takes 0.3 of the time of separations, with 100 3 times."""
SHORT = 1e-10
"""Share of what is added up from which a sum is a direction, and not rounding."""
POOL, AT_ONCE = 160, 64
"""Columns at hand for each feature, where they are many enough, and suspects that they are for."""
DRAWN = 64
"""Columns for each feature of which a soft margin chooses C."""
MOST = 1 << 20
"""Suspects at most."""


def suspects(
    X: Any,
    y: Any = None,
    *,
    positive: str | None = None,
    intercept: bool | None = None,
    mask: Any = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int | None = None,
    client: Workers | None = None,
    out: str | Path | None = None,
    force: bool = False,
) -> Suspects:
    """Find points that must be removed or relabelled before a hyperplane separates the others.

    There are no checkpoints: each call begins anew.

    Parameters
    ----------
    X, y : array (n, m), data frame, or path
        As in ``dfeas.solve``; or X is a result of it on data by path, and all else is as it was there.
    positive, intercept, mask, max_passes, time_limit, memory, client, out, force : optional
        As in ``dfeas.solve``. Both numbers are proved even if a limit comes first.

    Returns
    -------
    Suspects
        The points, how many are enough, and how many must be removed at least.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError
        As in ``dfeas.solve``.

    References
    ----------
    .. [1] E. Amaldi and V. Kann, The complexity and approximability of finding maximum feasible subsystems of linear
       relations, Theoretical Computer Science 147 (1995).
    .. [2] J. Gleeson and J. Ryan, Identifying minimally infeasible subsystems of inequalities, ORSA Journal on Computing 2
       (1990).
    .. [3] J. Chinneck, An effective polynomial-time heuristic for the minimum-cardinality IIS set-covering problem, Annals of
       Mathematics and Artificial Intelligence 17 (1996).

    Examples
    --------
    >>> import dfeas
    >>> print(dfeas.suspects([[1.0], [2.0], [3.0], [4.0], [5.0]], [0, 1, 0, 1, 1]).points[0]["label"] in "01")
    True
    """
    problem = Problem.of(X, y, positive=positive, intercept=intercept, mask=mask)
    if isinstance(X, Result):
        if X.data is None or X.kernel is not None:
            raise UsageError("X: a result with a kernel, or on data in memory; give the points and their labels")
        problem = Problem(replace(DataSpec.from_json(X.data), transform=None))
    require_points(problem.spec.where, "a list of suspects")
    if isinstance(out, str | Path) and str(out).lower().endswith(".csv"):
        raise UsageError(f"out {out}: the folder of a run; for a table leave it out, and call to_csv of the answer")
    with ExitStack() as stack:
        terms = run_terms(max_passes, time_limit, memory, choose_client(client, X), out, None, force)
        limits, resources, output = stack.enter_context(terms)
        if out is not None:
            require_free(place(out), SUSPECTS)
        with open_in_time():
            session = stack.enter_context(open_session(problem, resources))
        stack.enter_context(one_thread())
        require_labels(problem.spec, session.dataset)
        if out is not None:
            stack.enter_context(run_folder(place(out), SUSPECTS))
        search = _Search(session, resources.memory_bytes, limits.until(output.stop), max_passes or np.inf)
        stopped = search.run()
        stopped = Stop.INTERRUPTED if stopped == Stop.TIME_LIMIT and output.stop() else stopped
        answer = _prove(search, session, stopped, limits)
        return answer if out is None else answer.save(place(out))


def _prove(search: _Search, session: Session, stopped: Stop, limits: Limits) -> Suspects:
    dataset, checking = session.dataset, session.checking
    blank = Certificate("separator", dataset.fingerprint, view=dataset.view)
    same = np.array_equal(search.first, search.y)
    planes = [replace(blank, y=y) for y in (search.first, search.y)]
    wrong = find_wrong(checking.engine, checking.dataset, planes[same:]) * (1 + same)
    ((less, on), near), ((more, on_wide), wide) = sorted(zip(wrong, planes, strict=True), key=lambda each: len(each[0][0]))
    ordered = [(index[order := np.argsort(index)], weight[order]) for index, weight in search.conflicts]
    certificates = [replace(blank, kind="gordan", support=index, weights=weight) for index, weight in ordered]
    checked = check_conflicts(checking.engine, checking.dataset, certificates, quick=checking.quick)
    proved = [isinstance(answer, Check) and answer.verdict == INFEASIBLE for answer in checked.answers]
    listed, index = np.union1d(less, more), search.columns.index
    at = np.flatnonzero(np.isin(index, listed))
    score = dict(zip(index[at].tolist(), (search.score_of(at, wide.y) / search.length[at]).tolist(), strict=True))
    points, names = [], dataset.name_points(numbers_of(dataset, listed).tolist())
    for some, flat, needed in ((less, {*on}, True), (np.setdiff1d(more, less), {*on_wide}, False)):
        known = zip(numbers_of(dataset, some).tolist(), labels_of(dataset, some), some.tolist(), strict=True)
        rows = [(each, names[each], label, score.get(own), needed, own not in flat) for each, label, own in known]
        points += sorted(rows, key=lambda row: (row[3] is None, row[3], row[0]))
    return Suspects(
        at_least=sum(proved),
        enough=len(less),
        points=_name_files(dataset, [dict(zip(COLUMNS, row, strict=True)) for row in points]),
        stopped=stopped,
        n=dataset.n,
        y=near.y,
        conflicts=[numbers_of(dataset, some.support).tolist() for some in compress(certificates, proved)],
        weights=[some.weights.tolist() for some in compress(certificates, proved)],
        passes=search.passes,
        reads=search.surveyed + search.passes + 1 + checked.reads,
        seconds=limits.seconds,
        data=session.source.spec.to_json(),
        fingerprint=dataset.fingerprint,
        view=dataset.view,
        intercept=dataset.intercept,
        positive=dataset.classes[1] if dataset.classes else None,
        table=_describe_table(session.source.spec, dataset),
    )


def _describe_table(spec: DataSpec, dataset: Dataset) -> dict[str, Any]:
    """What tells whether rows are those of the data: rows of pandas that count themselves have an index, too."""
    named = INDEX if hasattr(spec.where, "iloc") else None
    label = spec.beside if isinstance(spec.beside, str | int) else getattr(spec.beside, "name", None)
    return {
        "rows": dataset.n if dataset.numbers is None else None,
        "id": named if dataset.ids is None else dataset.ids.name,
        "label": None if label is None else str(label),
    }


def _name_files(dataset: Dataset, points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With the file or dataset of each, where there are several, and its row in it."""
    if len(dataset.files) < 2:
        return points
    from dfeas.data.table import name_files  # with readers of all formats

    places = name_files(dataset.files, [each["point"] for each in points])
    return [{**each, "file": file, "row": row} for each, file, row in zip(points, *places.values(), strict=True)]


class Reserve(Struct, frozen=True, eq=False):
    """Unused columns at hand, spread over all."""

    rows: Indices  # (p,)
    columns: ColumnMatrix  # (p, d)
    dear: Array  # (p,) scores under the widest separator; infinite where that has them wrong


class _Search:
    """Columns W, those that stay, and a separator of these."""

    def __init__(self, session: Session, memory: int, until: Callable[[], bool], most: float) -> None:
        dataset, self.session, self.until, self.most = session.dataset, session, until, most
        surveyed, self.passes, self.n, self.d = survey(session), 0.0, dataset.n, dataset.dimension
        facts, self.surveyed = facts_of(dataset, memory, radius=surveyed.radius), surveyed.reads
        self.cap, self.room = capacity(facts), solver_room(facts)
        few = min(self.cap // 3, max(isqrt(self.d * self.n), working_set.AT.sample_least * self.d, 1000))
        self.count = self.n if self.n <= self.cap and self.n * self.d <= WHOLE else few
        spread = min(working_set.AT.from_each, -(-dataset.blocks // 8))
        self.columns: Columns = self._ask(sample(self.d, self.count, self.n, dataset.blocks, spread, 0))
        self._set_matrix()
        self.y = self.first = np.zeros(self.d)
        self.stays, self.used = np.zeros((2, len(self.columns)), bool)  # which are right; which are in a conflict that counts
        self.needed: set[int] = set()  # that are in conflict with some that stay
        self.conflicts: list[tuple[Indices, Floats]] = []  # points and weights, without a common point

    def _set_matrix(self) -> None:
        matrix = column_matrix(self.columns.points, self.columns.scale, self.room)
        self.matrix = matrix.even_units() or matrix
        # lengths of its columns, beside those of unit vectors: others where features are far apart
        self.length = np.ones(len(self.columns)) if self.matrix is matrix else self.matrix.scale / matrix.scale
        self.even = self.matrix.equilibrate()

    def _ask(self, question: Any) -> Any:
        self.passes += len(question.blocks) / self.session.dataset.blocks if isinstance(question, Partial) else 1
        return self.session.engine.run(question)

    def score(self, y: Floats, level: float = 0.0) -> Floats:
        """In float64 up to a level, as signs have to be; above it float32 is enough to tell which are the lowest."""
        return self.matrix.scores(self.matrix.coordinates(y), level)

    def score_of(self, rows: Indices, y: Floats) -> Floats:
        """Of some columns, in float64."""
        return self.matrix.scores_of(rows, self.matrix.coordinates(y))

    def run(self) -> Stop:
        """Until no suspect can stay, or a limit comes first, after which W is still looked at while there is time."""
        try:
            return run_solver_here(self._run, self.until)
        except Abandoned:
            if not self.y.any():  # no step of a soft margin came to its end: the sum of the columns is some normal vector
                self.y = self.even.vector(self.even.combine(np.ones(len(self.columns)), np.zeros(self.d)))
                self.stays = self.score(self.y) > 0
            self.first = self.first if self.first.any() else self.y
            return Stop.TIME_LIMIT

    def _run(self) -> Stop:
        self._divide()
        turn, stopped, settled = 0, None, False
        while stopped is None:
            if self.until():
                stopped = Stop.TIME_LIMIT
            elif self.passes >= self.most and len(self.columns) < self.n:
                stopped = Stop.PASS_LIMIT
            else:
                missed, turn = self._look(), turn + 1
                # W is divided anew only so often
                if not settled and missed and turn <= 5:
                    self._divide()
                    continue
                if missed and len(self.columns) >= self.cap:
                    stopped = Stop.STALLED
            if not settled:
                self.first, settled = self.y, True
            if stopped != Stop.TIME_LIMIT and not self._judge() and stopped is None and not missed:
                stopped = Stop.VERDICT if int((~self.stays).sum()) == len(self.needed) else Stop.STALLED
        return stopped

    def _look(self) -> int:
        """How many points beside suspects are wrong; of those W gets what there is room for."""
        suspected, score = int((~self.stays).sum()), self.score(self.y) / self.length
        if len(self.columns) == self.n:
            return 0
        blocks, most = self.session.dataset.blocks, working_set.AT.fill * self.count
        cap = suspected + min(self.cap - len(self.columns), most)
        level = np.inf if len(self.columns) == self.count else score[self.stays].min(initial=np.inf) / 2
        answer = self._ask(Select(self.y, level, cap, -(-2 * cap // blocks)))
        if answer.violated > MOST:
            said = f"the classes overlap: {answer.violated} points are on the wrong side of a soft margin"
            raise BadInputError(f"{self.session.dataset.where}: {said}, and at most {MOST} are listed; ask for a soft margin")
        self.columns = answer.append_to(self.columns, 0)
        self._set_matrix()
        right = self.score(self.y) > 0
        self.stays = np.append(self.stays, right[len(self.stays) :])
        self.used = np.append(self.used, np.zeros(len(right) - len(self.used), bool))
        return max(0, int(answer.violated) - suspected)

    def _divide(self) -> None:
        """By a soft margin, and then by a separator of what it has right. One of few columns chooses C, and where to begin."""
        even, d, c = self.even, self.d, len(self.columns)
        apart = max(1, c // (DRAWN * d))
        start = Newton(even if apart == 1 else multiply_out(even.some(np.arange(0, c, apart))), even.coordinates(self.y))
        fewest, best = c + d + 1, (PRICES[0], start.point.v)
        for C in PRICES:
            start.minimise(C * apart, AT.enough, AT.rough)
            score = start.point.score if apart == 1 else even.scores(start.point.v, 0.0)
            wrong = int((score <= 0).sum())
            if wrong + d < fewest:
                fewest, best = wrong, (C, start.point.v)
        newton = Newton(even, best[1])
        newton.minimise(best[0], AT.enough, AT.rough)
        self.y = even.vector(newton.point.v)
        self.stays = self.score(self.y) > 0
        right = 0
        while right < (right := int(self.stays.sum())):
            self._separate()

    def _separate(self) -> None:
        """A wide separator of the columns that stay; others that it has right stay, too."""
        rows = np.flatnonzero(self.stays)
        solution = solve(self.matrix.some(rows)) if len(rows) else None
        if solution is not None and solution.outcome == SEPARATED:
            right = self.score(solution.y) > 0
            if right[rows].all():
                self.y, self.stays = solution.y, right

    def _judge(self) -> bool:
        """Whether y is another one after each suspect that is not known to be needed has joined what stays, if it can."""
        wide = score = self.score(self.y)  # with the widest separator: one that lets a suspect join is thin
        moved, met = False, np.zeros(0, np.int64)
        waiting = sorted({*np.flatnonzero(~self.stays).tolist()} - self.needed, key=lambda row: -wide[row])
        for suspect, pool, along in self._face(waiting, wide):
            if self.stays[suspect] or self.until():
                continue
            most, opposed = 4 * self.d, met[:0]
            if pool is not None:
                dear = np.where(self.used[pool.rows], np.inf, pool.dear)
                least = int(OPPOSED * self.d)
                count = least if self.d <= FEW else int(MANY * self.d)
                few = pool.rows[_find_opposed(dear, along, -2 * wide[suspect], count, least)]
                if self._oppose(suspect, few, pool, score):
                    continue
                opposed = pool.rows[_find_opposed(dear, along, -2 * wide[suspect], most, most)]
            unused = self.stays & ~self.used
            # columns among which a conflict is looked for
            some = np.union1d(opposed if len(opposed) else _lowest(score, unused, most), met[unused[met]])
            while not (self.stays[suspect] or suspect in self.needed or self.until()):
                rows = np.union1d(some, [suspect])
                found = solve(self.matrix.part(rows))
                if found.outcome == CONFLICT:
                    self._add_conflict(suspect, rows[found.rows], found.weight)
                    break
                trial = self.score(found.y)
                if found.outcome != SEPARATED or trial[suspect] <= 0:
                    break
                missed = self.stays & (trial <= 0)
                if missed.any():
                    free = missed & ~self.used  # conflicts without a common point are what is wanted
                    # so many join them where there is no conflict
                    more = _lowest(trial, free if free.any() else missed, max(2 * self.d, len(some)))
                    some = met = np.union1d(some, more)
                    if len(opposed):
                        met = some[lowest(trial[some], most)]
                else:
                    self.y, score, moved = found.y, trial, True
                    self.stays |= trial > 0
        if moved:
            self._separate()
        return moved

    def _face(self, suspects: list[int], wide: Floats) -> Iterator[tuple[int, Reserve | None, Array]]:
        """Each, columns at hand, and how far along its opposite these reach, where that helps."""
        if self.d > NARROW:
            yield from ((suspect, None, wide[:0]) for suspect in suspects)
            return
        done, every = 0, Reserve(np.arange(len(wide)), self.even, np.where(wide > 0, wide, np.inf).astype(np.float32))
        while done < len(suspects):
            # what is at hand, and products with it, take a quarter of the memory of W each
            some, unused = np.array(suspects[done : done + min(AT_ONCE, self.d)]), np.flatnonzero(self.stays & ~self.used)
            rows = unused[wide[unused] > 0][:: max(4, len(unused) // (POOL * self.d))]
            pool = Reserve(rows, self.even.some(rows), wide[rows].astype(np.float32))
            reach = pool.columns.products(-self.even.gather(some))
            if (pool.dear <= -wide[some[0]] * reach[0]).sum() < 2 * OPPOSED * self.d:
                pool, some = every, some[: max(1, self.d // 4)]
                reach = pool.columns.products(-self.even.gather(some))
            yield from ((suspect, pool, along) for suspect, along in zip(some.tolist(), reach, strict=True))
            done += len(some)

    def _oppose(self, suspect: int, some: Indices, pool: Reserve, score: Floats) -> bool:
        """Whether some columns are in conflict with a suspect, as far as nonnegative least squares tell, or those that their
        residual has wrong join them. Of many features separations find these in less time.
        """
        left = (some, self.even.gather(np.array([suspect]))[0]) if not len(some) else self._cancel(suspect, some)
        for _ in range(ROUNDS if self.d <= FEW else 0):
            crossed = some[:0] if left is None else self._find_crossed(suspect, left[1], some, pool, score)
            if left is None or not len(crossed):
                break
            some = np.union1d(left[0], crossed)
            left = self._cancel(suspect, some)
        return suspect in self.needed

    def _cancel(self, suspect: int, some: Indices) -> tuple[Indices, Floats] | None:
        """Columns of some whose sum with a suspect is the shortest, and that sum (d,), which has all of them right; None where
        it vanishes: that is a conflict, but for rounding.
        """
        rows = np.append(some, suspect)
        columns = self.even.gather(rows)
        try:
            x = np.append(nnls(columns[:-1].T, -columns[-1]), 1.0)
        except RuntimeError:
            return None
        left, size = x @ columns, float(x @ np.sqrt(np.einsum("ij,ij->i", columns, columns)))
        length = float(np.linalg.norm(left))
        if length > AT.vanished * size:
            return (some[x[:-1] > 0], left) if length > SHORT * size else None
        order = np.argsort(rows)
        order = order[x[order] > 0]
        self._add_conflict(suspect, rows[order], x[order] / x.sum())
        return None

    def _find_crossed(self, suspect: int, left: Floats, some: Indices, pool: Reserve, score: Floats) -> Indices:
        """Columns that a way along ``left`` has wrong first, from a separator with these scores (c,) of what stays, if any are
        before it has the suspect right: at hand, or unused, or others.
        """
        if not left.any():
            return some[:0]
        until = -score[suspect] / float(left @ left)
        step = np.zeros(len(score), np.float64)
        step[pool.rows] = pool.columns.products(left[None])[0]
        for free in (~self.used, ~self.used, self.stays):
            far = np.full(len(score), np.inf)
            back = free & self.stays & (step < 0)
            back[some] = False
            far[back] = -score[back] / step[back]
            if far.min() < until:
                nearest = lowest(far, 2 * self.d)
                return nearest[far[nearest] < np.inf]
            step = self.even.scores(left, -np.inf)
        return some[:0]

    def _add_conflict(self, suspect: int, rows: Indices, weight: Floats) -> None:
        """A suspect is needed; the conflict counts if it has no point of another."""
        self.needed.add(suspect)
        if not self.used[rows].any():
            self.used[rows] = True
            weight = weight * self.length[rows]
            self.conflicts.append((self.columns.index[rows], weight / weight.sum()))


def _find_opposed(dear: Array, along: Array, level: float, count: int, least: int) -> Indices:
    """Columns, so many, whose combination may be the opposite of a suspect: the farthest along it of those with a score (c,) of
    at most ``level`` for each unit along it, or none where these are fewer than the least. A combination has half of that, so
    that both sides of it are among them, and columns near the separator are left to the suspects near it, which have no others.
    """
    rows = np.flatnonzero(dear <= float(level) * along)
    return rows[lowest(-along[rows], count)] if len(rows) >= least else rows[:0]


def _lowest(score: Floats, among: NDArray[np.bool_], most: int) -> Indices:
    rows = np.flatnonzero(among)
    return rows[lowest(score[rows], most)]
