"""What a run on points would cost: memory, passes and time of each method."""

from __future__ import annotations

from math import ceil

from dfeas.estimate import Estimate, Plan, in_turns
from dfeas.memory import WEIGHING
from dfeas.methods import METHODS, Facts, working_set_size
from dfeas.planning.speed import solver_seconds
from dfeas.projection.points import columns, drops, project, usual_passes
from dfeas.request import ALONE, abreast, choose, facts_of
from dfeas.store import Dataset


def point_plan(
    dataset: Dataset, method: str | None, margin: float, budget: int, threads: int, speed: tuple[float, float], classes: int = 1
) -> Plan:
    """Estimates of one method or of all, for some classes on the same reads."""
    auto = choose("auto", facts_of(dataset, budget // abreast("auto", classes, dataset, budget)))[0]
    names = [name for name in METHODS if not (classes > 1 and name in ALONE)] if method is None else [method]
    estimates = tuple(_estimate(dataset, name, name == auto, margin, budget, speed, classes) for name in names)
    later = project(dataset, [auto] * abreast(auto, classes, dataset, budget), budget, margin).later_bytes
    return Plan(dataset.n, dataset.m, dataset.stored_bytes, later, threads, *speed, margin, estimates, classes)


def _estimate(
    dataset: Dataset, name: str, auto: bool, margin: float, budget: int, pass_seconds: tuple[float, float], classes: int
) -> Estimate:
    together = abreast(name, classes, dataset, budget)
    rounds = ceil(classes / together)
    facts = facts_of(dataset, budget // together)
    most = METHODS[name]().bound(facts, margin)
    passes, thinking = usual_passes(name, facts, margin), 0.0
    if name.startswith("working-set"):
        thinking = solver_seconds(int(columns(facts)), facts)
    first, later = pass_seconds
    seconds = first + (rounds * passes - 1) * later + classes * thinking
    memory = project(dataset, [name] * together, budget, margin).memory_bytes
    remark = "; ".join(text for text in (in_turns(together, classes), _remark(name, facts)) if text)
    return Estimate(name, auto, memory, rounds * passes, rounds * most, seconds, remark)


def _remark(name: str, facts: Facts) -> str:
    """What else a method takes."""
    weights = f"{16 * facts.n / 1e6:.0f} MB for weights"
    if name.startswith("working-set"):
        if not working_set_size.fits(facts):
            return f"does not fit: --memory {4 * working_set_size.least_memory(facts) / 1e6:.0f}MB is needed"
        return "fewer passes with more memory: columns will be dropped" if drops(facts) else ""
    if name == "online-perceptron":
        return f"one core; at most {weights}"
    if name == "ispvn":
        return f"and {40 * facts.n / 1e9:.2g} GB of scratch storage; {weights}, if there is no separator"
    return f"and {weights}, if there is no separator" if name in WEIGHING else ""
