"""From a question about separation to its answer: open the data, choose methods, carry out the run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from dfeas.data.storage.places import local
from dfeas.errors import UsageError
from dfeas.geometry.protocol import Geometry
from dfeas.geometry.registry import geometry_of, kernel_options, known_method
from dfeas.problem import Goal, Limits, Output, Problem, Resources
from dfeas.problem import Kernel as KernelOptions
from dfeas.run.checkpoint.folder import require_free, run_folder
from dfeas.run.checkpoint.job import Request, RunSpec, request, where
from dfeas.run.execute import execute
from dfeas.run.progress import run_options
from dfeas.run.results import RACE, RESULT
from dfeas.run.session import Session, classes_to_share, open_session


def decide(
    problem: Problem,
    methods: Sequence[str],
    goal: Goal,
    limits: Limits,
    resources: Resources,
    output: Output,
    *,
    race: bool = False,
    to_the_end: bool = False,
    then: str = "",
) -> Any:
    """A Result; of a race, or of classes each against the rest, a Race or a OneVsRest.

    ``then`` is what the result is for: a run that goes on later goes on to that.
    """
    view = problem.view
    space = kernel_options(problem.kernel, resources.scratch)
    _require_known(methods, space, race)
    asked = request(goal, limits, resources)
    last = RACE if race else RESULT
    if view.transform and output.out is not None:  # its numbers take reads
        require_free(local(output.out, "--out"), last)
    with ExitStack() as stack:
        opened = open_session(problem, resources, output.out, cones=not view.one_vs_rest, progress=output.progress)
        session = stack.enter_context(opened)
        geometry = geometry_of(session.dataset, space)
        classes: tuple[str, ...] = ()
        if view.one_vs_rest:
            geometry.require_shared(methods[0])
            classes = classes_to_share(session.dataset)
        geometry, names, whys, asked = _chosen(session, geometry, methods, asked, classes, race)
        folder = None if output.out is None else stack.enter_context(run_folder(local(output.out, "--out"), last))
        job = RunSpec(
            asked,
            names,
            whys,
            race,
            to_the_end or bool(classes),
            positive=view.positive,
            intercept=session.dataset.intercept,
            point=None if view.point is None else tuple(float(v) for v in view.point),
            kernel=geometry.text,
            classes=classes,
            then=then,
            **where(session),
        )
        return execute(session, job, run_options(resources.checkpoint_every, output), folder)


def _require_known(methods: Sequence[str], space: KernelOptions | None, race: bool) -> None:
    """Raise UsageError for names of methods that there are not, before anything is opened."""
    for method in methods:
        if race or space is None:
            known_method(method, space, () if race else ("auto",))
    if race and (len(methods) < 2 or len(set(methods)) < len(methods)):
        raise UsageError(f"methods {','.join(methods)}: expected at least two, each once")


def _chosen(
    session: Session, geometry: Geometry, methods: Sequence[str], asked: Request, classes: tuple[str, ...], race: bool
) -> tuple[Geometry, tuple[str, ...], tuple[str, ...], Request]:
    """The geometry with all its parameters, methods, why each of them, and fewer passes where memory asks for that."""
    dataset = session.dataset
    count, several = len(methods), f", in a race of {len(methods)}" if race else ""
    if classes:
        count = geometry.abreast(methods[0], len(classes), dataset, asked.memory)
        waiting = f", {count} at a time for want of memory" if count < len(classes) else ""
        several = f", {len(classes)} classes on the same reads{waiting}"
    share, threads = asked.memory // count, session.threads * max(1, session.workers)
    chosen = [geometry.choose(method, dataset, share, threads) for method in methods]
    names = tuple(name for name, _ in chosen)
    limit, limited = geometry.limit_passes(names, dataset, share, asked.eps, asked.max_passes)
    geometry, resolved = geometry.resolve(session.engine, dataset)
    tail = f"{several}{limited}{resolved}" if race else f"{limited}{resolved}{several}"
    return geometry, names, tuple(f"{why}{tail}" for _, why in chosen), replace(asked, max_passes=limit)
