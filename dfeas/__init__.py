"""dfeas: can a hyperplane through the origin separate the points? A checked answer for data larger than memory.

A public name is imported when it is used first: a command need not wait for all of them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dfeas.analysis.check_separation import Separated as Separated
    from dfeas.analysis.check_separation import check_separation as check_separation
    from dfeas.analysis.hard_margin import HardMargin as HardMargin
    from dfeas.analysis.hard_margin import hard_margin as hard_margin
    from dfeas.analysis.hull import Hull as Hull
    from dfeas.analysis.hull import in_hull as in_hull
    from dfeas.analysis.ingest import ingest as ingest
    from dfeas.analysis.predict import ClassPrediction as ClassPrediction
    from dfeas.analysis.predict import ConePrediction as ConePrediction
    from dfeas.analysis.predict import Prediction as Prediction
    from dfeas.analysis.predict import predict as predict
    from dfeas.analysis.recheck import Recheck as Recheck
    from dfeas.analysis.recheck import recheck as recheck
    from dfeas.analysis.separation import Separation as Separation
    from dfeas.analysis.separation import separation as separation
    from dfeas.analysis.verify import verify_certificate as verify_certificate
    from dfeas.analysis.verify import verify_classes as verify_classes
    from dfeas.analysis.verify import verify_run as verify_run
    from dfeas.api import race as race
    from dfeas.api import resume as resume
    from dfeas.api import soft_margin as soft_margin
    from dfeas.api import solve as solve
    from dfeas.cli.remote import cancel as cancel
    from dfeas.cli.remote import fetch as fetch
    from dfeas.cli.remote import status as status
    from dfeas.cli.remote import submit as submit
    from dfeas.data.cones.groups import svec as svec
    from dfeas.data.cones.writer import from_scs as from_scs
    from dfeas.data.cones.writer import ingest_scs as ingest_scs
    from dfeas.data.generate.points import Instance as Instance
    from dfeas.data.generate.points import generate as generate
    from dfeas.data.writers.append import append as append
    from dfeas.errors import BadInputError as BadInputError
    from dfeas.errors import CheckFailedError as CheckFailedError
    from dfeas.errors import CorruptDataError as CorruptDataError
    from dfeas.errors import DfeasError as DfeasError
    from dfeas.errors import UndecidedError as UndecidedError
    from dfeas.errors import UsageError as UsageError
    from dfeas.geometry.cones.space import CONE_METHODS as CONE_METHODS
    from dfeas.geometry.kernel.space import KERNEL_METHODS as KERNEL_METHODS
    from dfeas.methods.registry import METHODS as METHODS
    from dfeas.problem import Goal as Goal
    from dfeas.problem import Kernel as Kernel
    from dfeas.problem import Limits as Limits
    from dfeas.problem import Objective as Objective
    from dfeas.problem import Output as Output
    from dfeas.problem import Problem as Problem
    from dfeas.problem import Resources as Resources
    from dfeas.problem import View as View
    from dfeas.report.compare import compare as compare
    from dfeas.report.page import report as report
    from dfeas.run.cost.plan import Plan as Plan
    from dfeas.run.cost.plan import plan as plan
    from dfeas.run.result_sets import OneVsRest as OneVsRest
    from dfeas.run.result_sets import Race as Race
    from dfeas.run.results import Result as Result
    from dfeas.run.soft_margin.result import SoftMarginResult as SoftMarginResult
    from dfeas.verify.certificate import Certificate as Certificate
    from dfeas.verify.evidence import Check as Check

    KERNELS: tuple[str, ...]

_PUBLIC = {
    "analysis.check_separation": "Separated check_separation",
    "analysis.hard_margin": "HardMargin hard_margin",
    "analysis.hull": "Hull in_hull",
    "analysis.ingest": "ingest",
    "analysis.predict": "ClassPrediction ConePrediction Prediction predict",
    "analysis.recheck": "Recheck recheck",
    "analysis.separation": "Separation separation",
    "analysis.verify": "verify_certificate verify_classes verify_run",
    "api": "race resume soft_margin solve",
    "cli.remote": "cancel fetch status submit",
    "data.cones.groups": "svec",
    "data.cones.writer": "from_scs ingest_scs",
    "data.generate.points": "Instance generate",
    "data.writers.append": "append",
    "errors": "BadInputError CheckFailedError CorruptDataError DfeasError UndecidedError UsageError",
    "geometry.cones.space": "CONE_METHODS",
    "geometry.kernel.kernel": "KERNELS",
    "geometry.kernel.space": "KERNEL_METHODS",
    "methods.registry": "METHODS",
    "problem": "Goal Kernel Limits Objective Output Problem Resources View",
    "report.compare": "compare",
    "report.page": "report",
    "run.cost.plan": "Plan plan",
    "run.result_sets": "OneVsRest Race",
    "run.results": "Result",
    "run.soft_margin.result": "SoftMarginResult",
    "verify.certificate": "Certificate",
    "verify.evidence": "Check",
}
"""Public names of modules."""

_MODULE = {name: f"dfeas.{module}" for module, names in _PUBLIC.items() for name in names.split()}
_NAMED = {"KERNELS": "NAMES"}  # otherwise there

__all__ = [*_MODULE, "__version__"]


class _Package(ModuleType):
    """Where a module and a public function have one name, ``dfeas.NAME`` is the function."""

    def __getattr__(self, name: str) -> Any:
        if name not in _MODULE:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULE[name]), _NAMED.get(name, name))
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _MODULE or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
