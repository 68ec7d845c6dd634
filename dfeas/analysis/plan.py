"""``dfeas.plan``: what a run would take by each method, in memory, passes and seconds, which are measured from some blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from dfeas.data.dataset import Dataset, refuse_unusable
from dfeas.data.open import open_data
from dfeas.data.source import ChosenTable, Source, Transform
from dfeas.display import Displayed, Grid, Part, Row
from dfeas.engine.local import LocalEngine
from dfeas.engine.memory import threads_that_fit
from dfeas.errors import UsageError, enough, format_bytes, spell
from dfeas.geometry.points import solver_seconds
from dfeas.geometry.protocol import Geometry, Load, facts_of
from dfeas.geometry.registry import geometry_of, kernel_options, known_method
from dfeas.machine import available_bytes, threads_here
from dfeas.methods.registry import SOFT_MARGINS
from dfeas.passes.protocol import AnyPass, Exclusive, Partial
from dfeas.passes.survey import Survey
from dfeas.problem import LEAST_EPS, Kernel, KernelName, Loss, Method, Objective, Problem, Transforms
from dfeas.records import replace
from dfeas.run.cost import PROBE, abreast, choose_method, limit_passes, project, project_soft
from dfeas.run.resources import Resources
from dfeas.run.spec import (
    SoftMarginOptions,
    classes_to_share,
    margin_method,
    method_for,
    options_of,
    require_labels,
    require_memory,
)
from dfeas.run.transform import as_planned
from dfeas.settings import require_type


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run with one method would cost."""

    method: str
    auto: bool  # whether ``auto`` takes it
    memory_bytes: int  # of this process, at the peak
    passes: float  # usual; with a kernel a product with the Gram matrix is one
    most_passes: float | None  # by its theorem, for a margin, or |Ax|, of ``margin``; None: there is none
    seconds: float  # usual
    remark: str


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Displayed):
    """Estimates for a dataset, of each method that can.

    Attributes
    ----------
    n : int
        Points.
    m : int
        Features.
    bytes : int
        Of stored points: what one read of the data takes.
    later_bytes : int
        What a later pass reads from storage, as this process does not keep it.
    threads : int
        Threads that read.
    first_seconds : float
        Time of a pass as the data is now, measured.
    later_seconds : float
        Time of one after it.
    margin : float, optional
        For which theorems bound the passes; None of a soft margin.
    estimates : tuple of Estimate
        What each method would take.
    classes : int
        Classes that are set against the rest on the same reads.
    kernel : str
        The kernel with its parameters, if there is one.
    value_seconds : float
        Time of one value of it, with all threads, measured.
    cones : str
        Which ones there are, if any; n counts their rows.
    data : str
        What messages call it.
    why : str
        Why ``auto`` takes what it takes.

    Examples
    --------
    >>> import dfeas
    >>> X, labels = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]], [1, 1, -1]
    >>> plan = dfeas.plan(X, labels, method="perceptron")
    >>> plan.n, plan.m, plan.bytes, [each.method for each in plan.estimates]
    (3, 2, 48, ['perceptron'])
    """

    n: int
    m: int
    bytes: int
    later_bytes: int
    threads: int
    first_seconds: float
    later_seconds: float
    margin: float | None
    estimates: tuple[Estimate, ...]
    classes: int = 1
    kernel: str = ""
    value_seconds: float = 0.0
    cones: str = ""
    data: str = "X"
    why: str = ""

    def _parts(self) -> Iterator[Part]:
        classes = f"; {self.classes} classes, each against the rest, on the same reads" if self.classes > 1 else ""
        what = f"rows of cones ({self.cones})" if self.cones else "points"
        yield Row(None, f"{self.data}: {self.n} {what} of {self.m} features, {format_bytes(self.bytes)}{classes}")
        first, later = self.first_seconds, self.later_seconds
        ends = f"({format_bytes(self.bytes / first)}/s), a later one {_time(later)} ({format_bytes(self.bytes / later)}/s)"
        yield Row(None, f"a pass takes {_time(first)} {ends}: measured now, {self.threads} threads")
        if self.kernel:
            values = self.n * (self.n + 1) / 2
            taken = f"evaluates {values:.3g} values, {_time(values * self.value_seconds)}"
            whole = f"the matrix, which is never stored, has {format_bytes(8 * self.n**2)}"
            yield Row(None, f"{self.kernel}: a product with the Gram matrix {taken}; {whole}")
        if self.later_bytes:
            kept = format_bytes(self.bytes - self.later_bytes)
            yield Row(None, f"memory keeps {kept} of the data: a later pass reads the rest")
        else:
            yield Row(None, "memory keeps the data: a later pass reads nothing from storage")
        yield Row(None, "")
        yield self._grid()
        yield Row(None, "")
        if self.why and any(each.auto for each in self.estimates):
            yield Row(None, self.why)
        if self.margin is None:
            yield Row(None, "passes and time as a relative gap of 1e-3 usually takes them; no theorem bounds them")
            return
        passes = "products (of a working set: passes)" if self.kernel else "passes"
        bound = f"at most: by theorem, for a margin or |Ax| of {self.margin:g}"
        yield Row(None, f"{passes} and time as they usually are, without the check; {bound}")

    def _grid(self) -> Grid:
        rows = []
        for e in self.estimates:
            remark = "; ".join(text for text in ("this is auto" if e.auto else "", e.remark) if text)
            most = "-" if e.most_passes is None else f"{e.most_passes:.3g}"
            rows.append([e.method, format_bytes(e.memory_bytes), f"{e.passes:.4g}", most, _time(e.seconds), remark])
        return Grid(["method", "memory", "products" if self.kernel else "passes", "at most", "time"], rows)


def _time(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def plan(
    X: Any,
    y: Any = None,
    *,
    method: Method | None = None,
    margin: float = 1e-3,
    C: float | Sequence[float] | None = None,
    loss: Loss = "hinge",
    folds: int = 0,
    one_vs_rest: bool = False,
    positive: str | None = None,
    intercept: bool | None = None,
    mask: Any = None,
    transform: Transforms = (),
    kernel: KernelName | Callable[..., Any] | Kernel | None = None,
    memory: str | int | None = None,
) -> Plan:
    """Estimate what ``dfeas.solve`` would cost in this process, for one method or for all. Reads some blocks.

    With ``C`` it is about ``dfeas.soft_margin``; passes are those that a relative gap of 1e-3 usually takes. With a kernel
    whose gamma is not given a sample of the points is read to find it.

    Parameters
    ----------
    X, y : array (n, m), data frame, path, or cones
        As in ``dfeas.solve``.
    method : str, optional
        Only this one.
    margin : float
        The margin, or the |Ax|, for which the theorems bound the passes.
    C, loss, folds : optional
        Of a soft margin, as of ``dfeas.soft_margin``.
    one_vs_rest : bool
        Of each class against the rest, as ``dfeas.one_vs_rest``.
    positive, intercept, mask, transform, kernel, memory : optional
        As in ``dfeas.solve``.

    Returns
    -------
    Plan
        Memory in bytes, passes and seconds of each method.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError
        As in ``dfeas.solve``.

    Examples
    --------
    >>> import dfeas
    >>> plan = dfeas.plan([[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]], [1, 1, -1])
    >>> [each.method for each in plan.estimates if each.auto]
    ['working-set']
    """
    require_type("method", method, "str | None")
    require_type("margin", margin, "float")
    seen: dict[str, Any] = {"positive": positive, "intercept": intercept, "mask": mask, "one_vs_rest": one_vs_rest}
    problem = Problem.of(X, y, transform=transform, kernel=kernel, **seen)
    spec, budget = problem.spec, Resources(memory=memory).memory_bytes
    space = kernel_options(problem.kernel)
    if method is not None and space is None:
        known_method(method, None)
    if not LEAST_EPS <= margin < 1:
        raise UsageError(f"{spell('margin', margin)}: expected a number from {LEAST_EPS:g} to below 1")
    asked = Objective(C=1.0 if C is None else C, loss=loss, folds=folds)
    if C is None and (folds or loss != "hinge"):
        raise UsageError("loss and folds are of a soft margin: give C, too")
    if C is not None and (spec.one_vs_rest or method is not None or space is not None):
        raise UsageError("C asks for a soft margin of two classes: leave out method, kernel and one_vs_rest")
    opened = open_data(Source(spec, cones=True).within(budget))[1]
    require_labels(spec, opened)
    geometry = geometry_of(opened, space)
    geometry.require(opened, transform=spec.transform, C=C is not None)
    classes = len(classes_to_share(opened)) if spec.one_vs_rest else 1
    whole = X.X if isinstance(X, ChosenTable) else X
    name = str(whole[0] if isinstance(whole, list | tuple) else whole) if spec.by_path else opened.where
    dataset = as_planned(opened, spec.transform or Transform())
    threads = threads_that_fit(dataset, budget, threads_here())
    if C is not None:
        soft = options_of(dataset, asked)
        require_memory(dataset, soft, budget)
        return replace(soft_plan(dataset, soft, budget, threads), data=name)
    speed = read_seconds(dataset, threads)
    with closing(LocalEngine(dataset, threads)) as engine:
        resolved = geometry.resolve(geometry.wrap(engine), dataset)[0]
    planned = _plan(resolved, method, Load(dataset, budget, threads, margin=margin), classes, speed)
    # the numbers of a transform are not measured here, and gamma is that of the points as they are seen
    known = geometry if spec.transform is not None and spec.transform.features else resolved
    return replace(planned, data=name, kernel=known.title)


def _plan(geometry: Geometry, method: str | None, whole: Load, classes: int, speed: tuple[float, float]) -> Plan:
    """Estimates of one method or of all, for some classes on the same reads."""
    dataset, memory, threads, margin = whole.dataset, whole.memory, whole.threads, whole.margin
    shared, values = classes > 1, geometry.measure_values(dataset, threads)
    auto, why = choose_method(geometry, "auto", replace(whole, classes=abreast(geometry, "auto", classes, dataset, memory)))
    names = [name for name in geometry.methods if not geometry.refuse(name, dataset, shared)]
    if method is not None:
        names = [geometry.check_method(method)]
        if reason := geometry.refuse(method, dataset, shared):
            raise UsageError(reason)
    estimates = []
    for name in names:
        together = abreast(geometry, name, classes, dataset, memory)
        load = replace(whole, classes=together)
        cost = geometry.cost(name, load)
        limit, limited = limit_passes({name: cost}, memory // together, None)
        projected = project(geometry, dataset, [name], memory, margin, threads=threads, classes=together, max_passes=limit)
        rounds = ceil(classes / together)
        passes, taken = rounds * cost.passes, geometry.seconds(name, load, values, projected.tile_bytes)
        reading = speed[0] + (passes * cost.reads - 1) * speed[1]
        seconds = reading + taken.first + (passes - 1) * taken.later + classes * taken.solver
        remarks = (
            f"{together} of {classes} classes at a time" * (together < classes),
            f"does not fit: {enough(cost.least)} of memory are needed" * (cost.least > memory),
            cost.remark,
            limited.removeprefix("; "),
        )
        most = None if cost.most is None else rounds * cost.most
        remark = "; ".join(filter(None, remarks))
        estimates.append(Estimate(name, name == auto, projected.memory_bytes, passes, most, seconds, remark))
    later = project(geometry, dataset, [auto], memory, margin, threads=threads).later_bytes
    more: dict[str, Any] = {"kernel": geometry.title, "value_seconds": values[0], "cones": str(dataset.cones or "")}
    rows = dataset.n, dataset.m, dataset.stored_bytes
    return Plan(*rows, later, threads, *speed, margin, tuple(estimates), classes, why=why, **more)


def read_seconds(dataset: Dataset, threads: int, question: AnyPass | None = None) -> tuple[float, float]:
    """Seconds of a pass as the data is now, and of a later one, from some blocks that are read twice. It asks the ``question``
    of a method, or the central one. A later one is as slow as the first when the data does not fit in the memory that is free.
    """
    engine, probe = geometry_of(dataset).wrap(LocalEngine(dataset, threads)), PROBE
    with closing(engine):
        if dataset.header is None:
            # as a solve does it; what cannot be solved cannot be planned
            summary = engine.run(Partial(Survey(), probe.blocks(dataset, engine.parallel)))
            refuse_unusable(summary, dataset.where, dataset.features, dataset.files)
            first = engine.cost.wall_seconds * dataset.n / engine.cost.points
        else:
            first = probe.seconds(engine, dataset, question)
        later = probe.seconds(engine, dataset, question)
    return first, later if dataset.bytes < available_bytes() / 2 else max(first, later)


def soft_plan(dataset: Dataset, options: SoftMarginOptions, budget: int, threads: int) -> Plan:
    """Estimate a soft margin on two classes, by each method that can."""
    facts, k = facts_of(dataset, budget), options.problems
    names = [method_for("auto", options, dataset.n)[0]]
    method = margin_method(names[0], options, (1.0, 1.0), np.full(dataset.dimension, dataset.dimension**-0.5))
    question = method.ask(method.init(facts))
    assert not isinstance(question, Exclusive), "with a start it asks about all points at once"
    first, later = read_seconds(dataset, threads, question)
    if options.loss == "hinge" and k == 1:
        names.append("sgd")
    estimates = []
    for name in names:
        soft = SOFT_MARGINS[name].cost(facts, k)
        # one C takes the work in memory of four working sets of as many points
        thinking = 4 * len(options.C) * solver_seconds(soft.points, facts) if soft.points else 0.0
        seconds = first + (soft.reads - 1) * later + thinking
        memory_bytes = project_soft(dataset, name, options, budget, threads=threads).memory_bytes
        estimates.append(Estimate(name, name == names[0], memory_bytes, soft.reads, None, seconds, soft.remark))
    later_bytes = project_soft(dataset, names[0], options, budget, threads=threads).later_bytes
    rows = dataset.n, dataset.m, dataset.stored_bytes
    return Plan(*rows, later_bytes, threads, first, later, None, tuple(estimates))
