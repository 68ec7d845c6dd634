"""Names by which checkpoints know our dataclasses: they stay when a class moves, so that old runs can be resumed.

A class that is moved or renamed changes its place here, never its name. One whose fields change so that an older state does
not fit any more gets a new name. Nothing is imported before it is met in a file.
"""

from __future__ import annotations

import importlib
from typing import Any

PLACES = {
    "checkpoint.Sealed": "dfeas.run.checkpoint.folder:Sealed",
    "checkpoint.Seal": "dfeas.data.storage.scratch:Seal",
    "run.Checkpoint": "dfeas.run.checkpoint.folder:Checkpoint",
    "run.Job": "dfeas.run.spec:RunSpec",
    "run.Request": "dfeas.run.spec:Request",
    "run.SoftMarginOptions": "dfeas.run.spec:SoftMarginOptions",
    "run.Survey": "dfeas.run.session:Surveyed",
    "run.Transform": "dfeas.data.source:Transform",
    "run.Moment": "dfeas.run.driver:RunState",
    "run.Lane": "dfeas.run.task:TaskState",
    "run.MarginLane": "dfeas.run.soft_margin.fit:SoftMarginState",
    "run.MarginRecord": "dfeas.run.soft_margin.fit:SoftMarginRecord",
    "run.Record": "dfeas.run.termination:Record",
    "run.Goal": "dfeas.run.termination:Goal",
    "run.Decision": "dfeas.run.termination:Decision",
    "Certificate": "dfeas.verify.certificate:Certificate",
    "Check": "dfeas.verify.certificate:Check",
    "Kind": "dfeas.verify.certificate:Kind",
    "Facts": "dfeas.methods.protocol:Facts",
    "Bracket": "dfeas.methods.protocol:Bracket",
    "Expansion": "dfeas.methods.vector:Expansion",
    "Sparse": "dfeas.methods.protocol:Sparse",
    "Columns": "dfeas.passes.block:Columns",
    "ispvn.State": "dfeas.methods.ispvn:IspvnState",
    "ispvn.Search": "dfeas.methods.ispvn:Search",
    "ispvn.Threshold": "dfeas.methods.ispvn:Threshold",
    "mirror_prox.State.2": "dfeas.methods.mirror_prox:MirrorProxState",
    "mirror_prox_one_pass.State": "dfeas.methods.mirror_prox_one_pass:OnePassState",
    "mistakes.State": "dfeas.methods.mistakes:MistakesState",
    "mistakes.Tally": "dfeas.methods.mistakes:Tally",
    "normalized_perceptron.State": "dfeas.methods.normalized_perceptron:NormalizedPerceptronState",
    "online_perceptron.State": "dfeas.methods.online_perceptron:OnlinePerceptronState",
    "led.State": "dfeas.methods.protocol:LedState",
    "ride_along.State": "dfeas.methods.protocol:RideAlongState",
    "smooth_perceptron.State": "dfeas.methods.smooth_perceptron:SmoothPerceptronState",
    "von_neumann.State": "dfeas.methods.von_neumann:VonNeumannState",
    "working_set.State": "dfeas.methods.working_set:PointWorkingSetState",
    "working_set.Solution": "dfeas.linalg.separate:Solution",
    "kernel.Combination": "dfeas.methods.vector:Combination",
    "Ends": "dfeas.methods.protocol:Ends",
    "kernel.perceptron.State.2": "dfeas.methods.perceptron:KernelPerceptronState",
    "kernel.snkpvn.State.2": "dfeas.methods.snkpvn:SnkpvnState",
    "kernel.snkpvn.Loop": "dfeas.methods.snkpvn:Loop",
    "kernel.working_set.State.2": "dfeas.geometry.kernel.working_set:KernelWorkingSetState",
    "cones.Recalled": "dfeas.geometry.cones.space:RecalledState",
    "cones.working_set.State.2": "dfeas.geometry.cones.working_set:ConeWorkingSetState",
    "cones.working_set.Kept": "dfeas.geometry.cones.barrier:Kept",
    "soft_margin.Best": "dfeas.methods.soft_margin.problem:Best",
    "soft_margin.Dual": "dfeas.methods.soft_margin.problem:Dual",
    "soft_margin.hinge.State": "dfeas.methods.soft_margin.hinge:HingeState",
    "soft_margin.sgd.State": "dfeas.methods.soft_margin.sgd:StochasticState",
    "soft_margin.sgd.Carry": "dfeas.passes.steps:StochasticCarry",
    "soft_margin.squared_hinge.State": "dfeas.methods.soft_margin.squared_hinge:SquaredHingeState",
    "soft_margin.squared_hinge.Conjugate": "dfeas.methods.soft_margin.squared_hinge:Conjugate",
}
"""Name -> module:class."""

GONE = {
    "cones.working_set.State": "dfeas.run.checkpoint.former:ConeWorkingSet",
    "kernel.Ends": "dfeas.run.checkpoint.former:KernelEnds",
    "kernel.ispvn.State": "dfeas.run.checkpoint.former:Ispvn",
    "kernel.mirror_prox.State": "dfeas.run.checkpoint.former:MirrorProx",
    "kernel.normalized_perceptron.State": "dfeas.run.checkpoint.former:NormalizedPerceptron",
    "kernel.perceptron.State": "dfeas.run.checkpoint.former:Perceptron",
    "kernel.smooth_perceptron.State": "dfeas.run.checkpoint.former:SmoothPerceptron",
    "kernel.snkpvn.State": "dfeas.run.checkpoint.former:SnkpvnLoop",
    "kernel.von_neumann.State": "dfeas.run.checkpoint.former:VonNeumann",
    "kernel.working_set.State": "dfeas.run.checkpoint.former:KernelWorkingSet",
    "mirror_prox.State": "dfeas.run.checkpoint.former:HalfMirrorProx",
}
"""Name of a class that is gone -> module:class with its fields, whose ``now`` returns what stands in its place."""

FORMER = {
    "checkpoint.folder:Sealed": "checkpoint.Sealed",
    "store.scratch:Seal": "checkpoint.Seal",
    "keeping:Checkpoint": "run.Checkpoint",
    "keeping:Job": "run.Job",
    "request:Request": "run.Request",
    "request:SoftMarginOptions": "run.SoftMarginOptions",
    "setting:Surveyed": "run.Survey",
    "store.transform:Transform": "run.Transform",
    "driver:Moment": "run.Moment",
    "lane:Kept": "run.Lane",
    "margin_lane:MarginKept": "run.MarginLane",
    "margin_lane:MarginRecord": "run.MarginRecord",
    "termination:Record": "run.Record",
    "termination:Goal": "run.Goal",
    "termination:Decision": "run.Decision",
    "certificate:Certificate": "Certificate",
    "verify.found:Check": "Check",
    "methods.protocol:Facts": "Facts",
    "methods.protocol:Bracket": "Bracket",
    "methods.protocol:Expansion": "Expansion",
    "methods.protocol:Sparse": "Sparse",
    "passes.columns:Columns": "Columns",
    "methods.ispvn:IspvnState": "ispvn.State",
    "methods.ispvn:Search": "ispvn.Search",
    "methods.ispvn:Threshold": "ispvn.Threshold",
    "methods.mirror_prox:MirrorProxState": "mirror_prox.State",
    "methods.mirror_prox_one_pass:OnePassState": "mirror_prox_one_pass.State",
    "methods.mistakes:MistakesState": "mistakes.State",
    "methods.tally:Tally": "mistakes.Tally",
    "methods.normalized_perceptron:NormalizedPerceptronState": "normalized_perceptron.State",
    "methods.online_perceptron:OnlinePerceptronState": "online_perceptron.State",
    "methods.ride_along:RideAlongState": "ride_along.State",
    "methods.smooth_perceptron:SmoothPerceptronState": "smooth_perceptron.State",
    "methods.von_neumann:VonNeumannState": "von_neumann.State",
    "methods.working_set:WorkingSetState": "working_set.State",
    "workingset.solver:Solution": "working_set.Solution",
    "kernels.methods.combination:Combination": "kernel.Combination",
    "kernels.methods.snkpvn:Loop": "kernel.snkpvn.Loop",
    "kernels.methods.ends:Ends": "kernel.Ends",
    "kernels.methods.ispvn:KernelIspvnState": "kernel.ispvn.State",
    "kernels.methods.mirror_prox:KernelMirrorProxState": "kernel.mirror_prox.State",
    "kernels.methods.normalized_perceptron:KernelNormalizedPerceptronState": "kernel.normalized_perceptron.State",
    "kernels.methods.perceptron:KernelPerceptronState": "kernel.perceptron.State",
    "kernels.methods.smooth_perceptron:KernelSmoothPerceptronState": "kernel.smooth_perceptron.State",
    "kernels.methods.snkpvn:SnkpvnState": "kernel.snkpvn.State",
    "kernels.methods.von_neumann:KernelVonNeumannState": "kernel.von_neumann.State",
    "kernels.working_set:KernelWorkingSetState": "kernel.working_set.State",
    "cones.recalled:RecalledState": "cones.Recalled",
    "cones.working_set:ConeWorkingSetState": "cones.working_set.State",
    "cones.select:Kept": "cones.working_set.Kept",
    "svm.problem:Best": "soft_margin.Best",
    "svm.dual:Dual": "soft_margin.Dual",
    "svm.hinge:HingeState": "soft_margin.hinge.State",
    "svm.sgd:StochasticState": "soft_margin.sgd.State",
    "passes.stochastic:StochasticCarry": "soft_margin.sgd.Carry",
    "svm.squared_hinge:SquaredHingeState": "soft_margin.squared_hinge.State",
    "svm.squared_hinge:Conjugate": "soft_margin.squared_hinge.Conjugate",
}
"""Module in the package, and class, of checkpoints of format 0 -> name: those were written before there were names."""

_NAMES = {place: name for name, place in PLACES.items()}


def name_of(cls: type) -> str:
    """The name of a class. Raises TypeError for one that has none."""
    place = f"{cls.__module__}:{cls.__qualname__}"
    if place not in _NAMES:
        raise TypeError(f"{cls.__module__}.{cls.__qualname__} cannot be written")
    return _NAMES[place]


def class_of(name: str) -> type[Any]:
    """The class of a name. Raises ValueError where there is none."""
    places = PLACES | GONE
    if name not in places:
        raise ValueError(f"no class is called {name}")
    module, _, cls = places[name].partition(":")
    value: type[Any] = getattr(importlib.import_module(module), cls)
    return value


def former_name(module: str, cls: str) -> str:
    """The name of a class by its place in format 0. Raises ValueError for one that has none."""
    place = f"{module.removeprefix('dfeas.')}:{cls}"
    if place not in FORMER:
        raise ValueError(f"{module}.{cls} is no class of checkpoints")
    return FORMER[place]
