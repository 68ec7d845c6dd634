"""``dfeas.plan``: what is asked, and who estimates it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from dfeas.blas import processors
from dfeas.coned import CONE_METHODS, require_plain
from dfeas.engine import LocalEngine
from dfeas.errors import UsageError
from dfeas.estimate import Plan
from dfeas.kernelled import AskedKernel, asked_kernel, kernelled
from dfeas.kernels.kernel import Function
from dfeas.memory import DEFAULT_MEMORY, parse_bytes, threads_that_fit
from dfeas.planning.cones import cone_plan
from dfeas.planning.kernel import kernel_plan
from dfeas.planning.points import point_plan
from dfeas.planning.soft import soft_plan
from dfeas.planning.speed import read_seconds
from dfeas.request import LEAST_EPS, classes_to_share, known
from dfeas.setting import open_data
from dfeas.soft_margin_options import options_of, require
from dfeas.transforming import as_planned, asked_transform


def plan(
    X: Any,
    labels: Any = None,
    *,
    method: str | None = None,
    positive: str | None = None,
    one_vs_rest: bool = False,
    also: Sequence[str | Path] = (),
    mask: Any = None,
    scale: str | None = None,
    center: bool = False,
    normalize: bool = True,
    margin: float = 1e-3,
    intercept: bool = False,
    kernel: str | Function | None = None,
    gamma: float | None = None,
    degree: int | None = None,
    coef0: float | None = None,
    C: float | Sequence[float] | None = None,
    loss: str = "hinge",
    folds: int = 0,
    memory: str | int = DEFAULT_MEMORY,
) -> Plan:
    """Estimate what ``dfeas.solve`` would cost in this process, for one method or for all. Reads some blocks.

    With ``C`` what ``dfeas.soft_margin`` would, with ``loss`` and ``folds`` as there; passes are those that a relative gap of
    1e-3 usually takes.

    ``margin`` is the margin, or the |Ax|, for which the theorems bound the passes. With a kernel a sample of the points is read
    that says what gamma is, if nobody does. Raises what ``dfeas.solve`` does.
    """
    asked_kernel(kernel, gamma, degree, coef0)
    if one_vs_rest and positive is not None:
        raise UsageError("one_vs_rest asks about every class: leave out positive")
    if method is not None and kernel is None:
        known(method, tuple(CONE_METHODS))
    if not LEAST_EPS <= margin < 1:
        raise UsageError(f"margin {margin}: expected a number from {LEAST_EPS:g} to below 1")
    if C is None and (folds or loss != "hinge"):
        raise UsageError("loss and folds are of a soft margin: give C, too")
    if C is not None and (
        one_vs_rest or method is not None or kernel is not None or scale is not None or center or not normalize
    ):
        raise UsageError("C asks for a soft margin of the points as they are: leave out method, kernel, scale and the like")
    budget = parse_bytes(memory)
    seen_as = asked_transform(scale, center, normalize)
    if seen_as and kernel is not None:
        raise UsageError("scale, center and normalize are for the points themselves: leave them out with a kernel")
    opened = open_data(X, labels, positive, intercept, many=one_vs_rest, also=also, mask=mask, cones=True)[1]
    require_plain(opened, kernel=kernel, transform=seen_as, C=C is not None)
    if opened.cones is not None:
        threads = threads_that_fit(opened, budget, processors())
        return cone_plan(opened, method, margin, budget, threads, read_seconds(opened, threads))
    if method is not None and kernel is None:
        known(method)
    classes = len(classes_to_share(opened, method if kernel is None else None)) if one_vs_rest else 1
    dataset = as_planned(opened, seen_as)
    threads = threads_that_fit(dataset, budget, processors())
    if C is not None:
        soft = options_of(dataset, C=C, loss=loss, folds=folds)
        require(dataset, soft, budget)
        return soft_plan(dataset, soft, budget, threads)
    speed = read_seconds(dataset, threads)
    if kernel is not None:
        with closing(LocalEngine(dataset, threads)) as engine:
            found = kernelled(engine, dataset, AskedKernel(kernel, gamma, degree, coef0)).kernel
        return kernel_plan(dataset, found, method, margin, budget, threads, speed, classes)
    return point_plan(dataset, method, margin, budget, threads, speed, classes)
