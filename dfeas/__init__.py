"""dfeas: can a hyperplane through the origin separate the points? A checked answer for data larger than memory.

A public name is imported when it is used first: a command need not wait for all of them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dfeas.version import __version__ as __version__

if TYPE_CHECKING:
    from dfeas.certificate import Certificate as Certificate
    from dfeas.check_separation import Separated as Separated
    from dfeas.check_separation import check_separation as check_separation
    from dfeas.checking import verify_certificate as verify_certificate
    from dfeas.checking import verify_classes as verify_classes
    from dfeas.checking import verify_run as verify_run
    from dfeas.class_prediction import ClassPrediction as ClassPrediction
    from dfeas.cone_prediction import ConePrediction as ConePrediction
    from dfeas.coned import CONE_METHODS as CONE_METHODS
    from dfeas.cones.spectrum import svec as svec
    from dfeas.cones.writing import from_scs as from_scs
    from dfeas.cones.writing import ingest_scs as ingest_scs
    from dfeas.errors import BadInputError as BadInputError
    from dfeas.errors import CheckFailedError as CheckFailedError
    from dfeas.errors import CorruptDataError as CorruptDataError
    from dfeas.errors import DfeasError as DfeasError
    from dfeas.errors import UndecidedError as UndecidedError
    from dfeas.errors import UsageError as UsageError
    from dfeas.estimate import Plan as Plan
    from dfeas.hard_margin import HardMargin as HardMargin
    from dfeas.hard_margin import hard_margin as hard_margin
    from dfeas.hull import Hull as Hull
    from dfeas.hull import in_hull as in_hull
    from dfeas.ingesting import ingest as ingest
    from dfeas.instances import Instance as Instance
    from dfeas.instances import generate as generate
    from dfeas.kernelled import KERNEL_METHODS as KERNEL_METHODS
    from dfeas.methods import METHODS as METHODS
    from dfeas.one_vs_rest import OneVsRest as OneVsRest
    from dfeas.planning import plan as plan
    from dfeas.predicting import Prediction as Prediction
    from dfeas.predicting import predict as predict
    from dfeas.racing import Race as Race
    from dfeas.racing import race as race
    from dfeas.rechecking import Recheck as Recheck
    from dfeas.rechecking import recheck as recheck
    from dfeas.report.compare import compare as compare
    from dfeas.report.writing import report as report
    from dfeas.result import Result as Result
    from dfeas.resuming import resume as resume
    from dfeas.separation import Separation as Separation
    from dfeas.separation import separation as separation
    from dfeas.soft_margin import soft_margin as soft_margin
    from dfeas.soft_margin_result import SoftMarginResult as SoftMarginResult
    from dfeas.solving import solve as solve
    from dfeas.store.append import append as append
    from dfeas.verify import Check as Check

    KERNELS: tuple[str, ...]

_PUBLIC = {
    "certificate": "Certificate",
    "check_separation": "Separated check_separation",
    "checking": "verify_certificate verify_classes verify_run",
    "class_prediction": "ClassPrediction",
    "cone_prediction": "ConePrediction",
    "coned": "CONE_METHODS",
    "cones.spectrum": "svec",
    "cones.writing": "from_scs ingest_scs",
    "errors": "BadInputError CheckFailedError CorruptDataError DfeasError UndecidedError UsageError",
    "estimate": "Plan",
    "hard_margin": "HardMargin hard_margin",
    "hull": "Hull in_hull",
    "ingesting": "ingest",
    "instances": "Instance generate",
    "kernelled": "KERNEL_METHODS",
    "kernels": "KERNELS",
    "methods": "METHODS",
    "one_vs_rest": "OneVsRest",
    "planning": "plan",
    "predicting": "Prediction predict",
    "racing": "Race race",
    "rechecking": "Recheck recheck",
    "report": "compare report",
    "result": "Result",
    "resuming": "resume",
    "separation": "Separation separation",
    "soft_margin": "soft_margin",
    "soft_margin_result": "SoftMarginResult",
    "solving": "solve",
    "store.append": "append",
    "verify": "Check",
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
