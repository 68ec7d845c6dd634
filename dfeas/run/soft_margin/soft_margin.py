"""From a soft margin that is asked for to the run that finds it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from dfeas.data.storage.places import local, require_apart
from dfeas.errors import UsageError
from dfeas.problem import Goal, Limits, Objective, Output, Problem, Resources
from dfeas.run.checkpoint.folder import run_folder
from dfeas.run.checkpoint.job import RunSpec, request, where
from dfeas.run.execute import execute
from dfeas.run.progress import run_options
from dfeas.run.session import classes_to_share, open_session, require_labels
from dfeas.run.soft_margin.fit import method_for, options_of, require
from dfeas.run.soft_margin.result import dual_place


def minimise(problem: Problem, objective: Objective, method: str, limits: Limits, resources: Resources, output: Output) -> Any:
    """A SoftMarginResult, or SoftMarginClasses where each class is set against the rest."""
    asked = replace(request(Goal(), limits, resources), eps=float(objective.gap))
    dual = None if objective.dual is None else dual_place(objective.dual, output.out)
    if dual is not None:
        require_apart(dual, problem.X)
    with ExitStack() as stack:
        session = stack.enter_context(open_session(problem, resources, output.out, progress=output.progress))
        dataset, classes = session.dataset, tuple[str, ...]()
        require_labels(problem, dataset)
        if problem.view.one_vs_rest:
            classes = classes_to_share(dataset)
            if objective.weights_of_classes is None:
                raise UsageError("balanced weights are of two classes: give weights of points")
        elif len(dataset.classes) > 2:
            raise UsageError(f"{dataset.where} has {len(dataset.classes)} classes: set one against the rest with positive")
        options = options_of(dataset, objective, dual, len(classes))
        name, why = method_for(method, options)
        require(dataset, options, asked.memory)
        folder = None if output.out is None else stack.enter_context(run_folder(local(output.out, "--out")))
        job = RunSpec(
            asked,
            (name,),
            (why,),
            race=False,
            to_the_end=True,
            positive=problem.view.positive,
            intercept=dataset.intercept,
            soft=options,
            classes=classes,
            **where(session),
        )
        return execute(session, job, run_options(resources.checkpoint_every, output), folder)
