"""What ``dfeas plan`` says of a soft margin."""

from __future__ import annotations

import numpy as np

from dfeas.estimate import Estimate, Plan
from dfeas.fitting import margin_method
from dfeas.passes import Alone
from dfeas.planning.speed import read_seconds, solver_seconds
from dfeas.projection.soft import holds_enough, project_soft, usual_reads
from dfeas.request import SoftMarginOptions, facts_of
from dfeas.soft_margin_options import method_for
from dfeas.store import Dataset
from dfeas.svm import kept_points

SOLVES = 4
"""The work in memory of one C beside that of a working set of as many points."""


def soft_plan(
    dataset: Dataset,
    options: SoftMarginOptions,
    budget: int,
    threads: int,
) -> Plan:
    """Estimate a soft margin on two classes, by each method that can."""
    facts, k = facts_of(dataset, budget), len(options.C) * (1 + options.folds)
    names = [method_for("auto", options)[0]]
    method = margin_method(names[0], options, (1.0, 1.0), 1e-3, np.full(dataset.dimension, dataset.dimension**-0.5))
    question = method.ask(method.init(facts))
    assert not isinstance(question, Alone), "with a start it asks about all points at once"
    first, later = read_seconds(dataset, threads, question)
    if options.loss == "hinge" and k == 1:
        names.append("sgd")
    estimates = []
    for name in names:
        reads = usual_reads(name, facts, k)
        kept = 0 if name == "sgd" else kept_points(facts, k, name)
        seconds = first + (reads - 1) * later + (SOLVES * len(options.C) * solver_seconds(kept, facts) if kept else 0.0)
        remark = "one core, in the order of the points" if name == "sgd" else ""
        if name == "hinge" and not holds_enough(facts, k, name):
            remark = "fewer reads with more memory"
        memory_bytes = project_soft(dataset, name, options, budget, threads=threads).memory_bytes
        estimates.append(Estimate(name, name == names[0], memory_bytes, reads, None, seconds, remark))
    later_bytes = project_soft(dataset, names[0], options, budget, threads=threads).later_bytes
    return Plan(dataset.n, dataset.m, dataset.stored_bytes, later_bytes, threads, first, later, None, tuple(estimates))
