"""Soft margins of several classes, each against the rest, on the same reads: a block is read once for all that are open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfeas.driver import never
from dfeas.errors import UsageError
from dfeas.fitting import fit_lanes, job_of, result_of
from dfeas.keeping import EVERY, keeping
from dfeas.memory import DEFAULT_MEMORY
from dfeas.request import classes_to_share, request
from dfeas.setting import open_data, set_up
from dfeas.showing import announce, how_of, terminal
from dfeas.soft_margin_options import GAP, ClassWeight, method_for, options_of, require, require_gap
from dfeas.soft_margin_result import SoftMarginResult
from dfeas.termination import Told
from dfeas.trace import Sink

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class SoftMarginClasses:
    """One soft margin for each class, and what was read for all of them together."""

    results: dict[str, SoftMarginResult]  # in the order of the classes
    reads: float  # of the data: what several classes asked at once counts once


def soft_margin_classes(
    X: Any,
    labels: Any = None,
    *,
    C: float | Sequence[float] = 1.0,
    loss: str = "hinge",
    gap: float = GAP,
    folds: int = 0,
    class_weight: ClassWeight = None,
    weights: Any = None,
    intercept: bool = False,
    also: Sequence[str | Path] = (),
    mask: Any = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int = DEFAULT_MEMORY,
    cache_dir: str | Path | None = None,
    client: Client | None = None,
    progress: bool = False,
    callback: Callable[[Told], object] | None = None,
    stop: Callable[[], bool] = never,
    seed: int = 0,
    start: Any = None,
) -> SoftMarginClasses:
    """``dfeas.soft_margin`` of each class of the labels against the rest.

    Arguments are those of ``dfeas.soft_margin``; limits of passes hold for each class, ``class_weight`` are weights of the rest
    and of the class, and ``start`` (classes, m) has a hyperplane for each. The classes share the memory; where it cannot hold
    what all of them keep, some wait.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError : see ``dfeas.errors``; their text is one line that says what to do.
    """
    asked = request(require_gap(gap), None, max_passes, time_limit, memory)
    data = open_data(X, labels, None, intercept, many=True, also=also, mask=mask, cache_dir=cache_dir)
    dataset = data[1]
    classes = classes_to_share(dataset)
    given = {"C": C, "loss": loss, "folds": folds, "class_weight": class_weight, "weights": weights, "seed": seed}
    options = options_of(dataset, **given, start=start, many=True)
    if options.classes is None:
        raise UsageError("balanced weights are of two classes: give weights of points")
    name, why = method_for("auto", options)
    require(dataset, options, asked.memory)
    with ExitStack() as stack:
        setting = set_up(stack, data, asked.memory, client, None)
        job = job_of(setting, asked, options, (name, why), classes=classes)
        shown = terminal(progress, asked.eps)
        how = how_of(EVERY, progress, stop, callback)
        sinks: dict[str, list[Sink]] = {each: [*([shown] if shown is not None else []), *how.more] for each in classes}
        if shown is not None:
            stack.callback(shown.close)
        keeper = stack.enter_context(keeping(setting, job, sinks, None, EVERY, None))
        for each, own in sinks.items():
            announce(own, dataset, name, f"{each} against the rest: {why}", None, each)
        found = fit_lanes(setting, job, sinks, keeper, None, how.stop)
        results = {}
        for each, outcome in found.outcomes.items():
            seen = replace(setting, dataset=dataset.against_rest(each))
            results[each] = result_of(seen, job, outcome, found.survey_reads + outcome.reads)
        return SoftMarginClasses(results, found.survey_reads + found.reads)
