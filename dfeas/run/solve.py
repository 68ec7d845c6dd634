"""From a question about separation to its answer: open the data, choose methods, carry out the run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from dfeas.data.storage.places import local
from dfeas.errors import UsageError
from dfeas.geometry.cones.choice import CONE_METHODS, choose_cone_method
from dfeas.options import Goal, Limits, Output, Problem, Resources
from dfeas.problem import Request, abreast, choose, classes_to_share, facts_of, known, request
from dfeas.run.checkpoint.job import Job, where
from dfeas.run.cost.projection import within_memory
from dfeas.run.execute import execute
from dfeas.run.folder import require_free, run_folder
from dfeas.run.kernel_choice import (
    AskedKernel,
    asked_kernel,
    choose_kernel_method,
    kernelled,
    kernels_abreast,
    known_kernel_method,
)
from dfeas.run.progress import how_of
from dfeas.run.results import RACE, RESULT
from dfeas.run.session import Setting, open_session


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
    view, kernel = problem.view, problem.kernel
    _require_known(problem, methods, race)
    asked_kernel(kernel.kernel, kernel.gamma, kernel.degree, kernel.coef0, resources.scratch)
    asked = request(goal, limits, resources)
    last = RACE if race else RESULT
    if view.transform and output.out is not None:  # its numbers take reads
        require_free(local(output.out, "--out"), last)
    with ExitStack() as stack:
        opened = open_session(problem, resources, output.out, cones=not view.one_vs_rest, progress=output.progress)
        setting = stack.enter_context(opened)
        classes: tuple[str, ...] = ()
        if view.one_vs_rest:
            classes = classes_to_share(setting.dataset, methods[0] if kernel.kernel is None else None)
        names, whys, text, asked = _chosen(setting, problem, methods, asked, classes, race)
        folder = None if output.out is None else stack.enter_context(run_folder(local(output.out, "--out"), last))
        job = Job(
            asked,
            names,
            whys,
            race,
            to_the_end or bool(classes),
            positive=view.positive,
            intercept=setting.dataset.intercept,
            point=None if view.point is None else tuple(float(v) for v in view.point),
            kernel=text,
            classes=classes,
            then=then,
            **where(setting),
        )
        return execute(setting, job, how_of(resources.checkpoint_every, output), folder)


def _require_known(problem: Problem, methods: Sequence[str], race: bool) -> None:
    """Raise UsageError for names of methods that there are not, before anything is opened."""
    more = tuple(CONE_METHODS) if race else ("auto", *CONE_METHODS)
    for method in methods:
        if problem.kernel.kernel is None:
            known(method, more)
        elif race:
            known_kernel_method(method)
    if race and (len(methods) < 2 or len(set(methods)) < len(methods)):
        raise UsageError(f"methods {','.join(methods)}: expected at least two, each once")


def _chosen(
    setting: Setting, problem: Problem, methods: Sequence[str], asked: Request, classes: tuple[str, ...], race: bool
) -> tuple[tuple[str, ...], tuple[str, ...], str, Request]:
    """Methods, why each of them, the kernel as certificates keep it, and what was asked for with less memory if need be."""
    dataset, kernel, memory = setting.dataset, problem.kernel, asked.memory
    count, suffix, text = len(methods), f", in a race of {len(methods)}" if race else "", ""
    if classes:
        fit = abreast if kernel.kernel is None else kernels_abreast
        count = fit(methods[0], len(classes), dataset, memory)
        waiting = f", {count} at a time for want of memory" if count < len(classes) else ""
        suffix = f", {len(classes)} classes on the same reads{waiting}"
    facts = facts_of(dataset, memory // count)
    if dataset.cones is not None:
        chosen = [choose_cone_method(method, dataset, memory // count) for method in methods]
    elif kernel.kernel is not None:
        threads = setting.threads * max(1, setting.workers)
        chosen = [choose_kernel_method(method, facts, threads) for method in methods]
        space = kernelled(setting.engine, dataset, AskedKernel(kernel.kernel, kernel.gamma, kernel.degree, kernel.coef0))
        text = space.kernel.to_text()
        suffix = f"{suffix}; {space.why}" if race else f"; {space.why}{suffix}"
    else:
        chosen = [choose(known(method, ("auto",)), facts) for method in methods]
        asked, said = within_memory(asked, [name for name, _ in chosen], facts)
        suffix = f"{suffix}{said}" if race else f"{said}{suffix}"
    return tuple(name for name, _ in chosen), tuple(f"{why}{suffix}" for _, why in chosen), text, asked
