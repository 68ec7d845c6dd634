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
    "run.DataSpec": "dfeas.data.source:DataSpec",
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
    "mirror_prox.State": "dfeas.methods.mirror_prox:MirrorProxState",
    "mirror_prox_one_pass.State": "dfeas.methods.mirror_prox_one_pass:OnePassState",
    "mistakes.State": "dfeas.methods.mistakes:MistakesState",
    "mistakes.Amounts": "dfeas.methods.mistakes:Amounts",
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
    "kernel.perceptron.State": "dfeas.methods.perceptron:KernelPerceptronState",
    "kernel.snkpvn.State": "dfeas.methods.snkpvn:SnkpvnState",
    "kernel.snkpvn.Loop": "dfeas.methods.snkpvn:Loop",
    "kernel.working_set.State": "dfeas.geometry.kernel.working_set:KernelWorkingSetState",
    "cones.Recalled": "dfeas.geometry.cones.space:RecalledState",
    "cones.working_set.State": "dfeas.geometry.cones.working_set:ConeWorkingSetState",
    "cones.working_set.Cones": "dfeas.geometry.cones.barrier:ScaledCones",
    "soft_margin.Best": "dfeas.methods.soft_margin.problem:Best",
    "soft_margin.Dual": "dfeas.methods.soft_margin.problem:Dual",
    "soft_margin.hinge.State": "dfeas.methods.soft_margin.hinge:HingeState",
    "soft_margin.sgd.State": "dfeas.methods.soft_margin.sgd:StochasticState",
    "soft_margin.sgd.Carry": "dfeas.passes.steps:StochasticCarry",
    "soft_margin.squared_hinge.State": "dfeas.methods.soft_margin.squared_hinge:SquaredHingeState",
    "soft_margin.squared_hinge.Conjugate": "dfeas.methods.soft_margin.squared_hinge:Conjugate",
}
"""Name -> module:class."""

_NAMES = {place: name for name, place in PLACES.items()}


def name_of(cls: type) -> str:
    """The name of a class. Raises TypeError for one that has none."""
    place = f"{cls.__module__}:{cls.__qualname__}"
    if place not in _NAMES:
        raise TypeError(f"{cls.__module__}.{cls.__qualname__} cannot be written")
    return _NAMES[place]


def class_of(name: str) -> type[Any]:
    """The class of a name. Raises ValueError where there is none."""
    if name not in PLACES:
        raise ValueError(f"no class is called {name}")
    module, _, cls = PLACES[name].partition(":")
    value: type[Any] = getattr(importlib.import_module(module), cls)
    return value
