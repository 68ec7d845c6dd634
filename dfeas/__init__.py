"""dfeas: can a hyperplane separate the points? A checked answer for data larger than memory.

A public name is imported when it is used first: a command need not wait for all of them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

try:
    __version__ = version("dfeas")
except PackageNotFoundError:  # sources on the path of Python, never installed
    __version__ = "0+unknown"

_PUBLIC = {
    "analysis.check_separation": "check_separation",
    "analysis.hard_margin": "HardMargin hard_margin",
    "analysis.hull": "Hull in_hull",
    "analysis.info": "Info info",
    "run.prediction": "predict",
    "run.resources": "Limits Output Resources",
    "analysis.load": "load",
    "analysis.regression.answer": "Separated",
    "analysis.separation": "Separation separation",
    "analysis.verify": "verify_certificate verify_classes verify_run",
    "api": "ingest race resume soft_margin solve",
    "cli.remote": "cancel fetch status submit",
    "data.cones": "svec",
    "data.writers.cones": "from_cone_rows from_scs ingest_cone_rows",
    "data.generate.points": "Instance generate",
    "errors": "BadInputError CheckFailedError CorruptDataError DfeasError UndecidedError UsageError",
    "geometry.cones.space": "CONE_METHODS",
    "geometry.kernel.kernel": "KERNELS",
    "geometry.kernel.space": "KERNEL_METHODS",
    "geometry.prediction": "ClassPrediction ConePrediction Prediction",
    "methods.registry": "METHODS",
    "problem": "Goal Kernel Objective Problem View",
    "report.compare": "compare",
    "report.page": "report",
    "run.cost": "plan",
    "run.estimate": "Plan",
    "run.verdict": "OneVsRest Race",
    "run.results": "Result",
    "run.soft_margin.result": "SoftMarginClasses SoftMarginResult",
    "verify.certificate": "Certificate Check",
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
