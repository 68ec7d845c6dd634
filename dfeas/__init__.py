"""dfeas decides linear separability, with a certificate either way, for data larger than memory.

A public name is imported when it is used first: a command need not wait for all of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers: the same names
    from dfeas.analysis.check_separation import check_separation as check_separation
    from dfeas.analysis.feasibility import feasible as feasible
    from dfeas.analysis.firth import firth as firth
    from dfeas.analysis.hard_margin import hard_margin as hard_margin
    from dfeas.analysis.hull import in_hull as in_hull
    from dfeas.analysis.info import info as info
    from dfeas.analysis.plan import plan as plan
    from dfeas.analysis.predict import predict as predict
    from dfeas.analysis.separation import separation as separation
    from dfeas.analysis.suspects import suspects as suspects
    from dfeas.answers.check.verify import verify_certificate as verify_certificate
    from dfeas.answers.check.verify import verify_run as verify_run
    from dfeas.answers.feasibility import Feasibility as Feasibility
    from dfeas.answers.hard_margin import HardMargin as HardMargin
    from dfeas.answers.load import load as load
    from dfeas.answers.result import Result as Result
    from dfeas.answers.separation import Hull as Hull
    from dfeas.answers.separation import Separation as Separation
    from dfeas.answers.several import OneVsRest as OneVsRest
    from dfeas.answers.several import Race as Race
    from dfeas.answers.soft_margin import SoftMarginClasses as SoftMarginClasses
    from dfeas.answers.soft_margin import SoftMarginResult as SoftMarginResult
    from dfeas.answers.suspects import Suspects as Suspects
    from dfeas.api import generate as generate
    from dfeas.api import ingest as ingest
    from dfeas.api import one_vs_rest as one_vs_rest
    from dfeas.api import race as race
    from dfeas.api import resume as resume
    from dfeas.api import soft_margin as soft_margin
    from dfeas.api import soft_margin_classes as soft_margin_classes
    from dfeas.api import solve as solve
    from dfeas.cones.algebra import svec as svec
    from dfeas.cones.cvxpy import from_cvxpy as from_cvxpy
    from dfeas.cones.writer import from_cone_rows as from_cone_rows
    from dfeas.cones.writer import from_scs as from_scs
    from dfeas.data.generate.points import Instance as Instance
    from dfeas.data.table import table as table
    from dfeas.errors import BadInputError as BadInputError
    from dfeas.errors import CheckFailedError as CheckFailedError
    from dfeas.errors import CorruptDataError as CorruptDataError
    from dfeas.errors import DfeasError as DfeasError
    from dfeas.errors import UndecidedError as UndecidedError
    from dfeas.errors import UsageError as UsageError
    from dfeas.methods.registry import METHODS as METHODS
    from dfeas.problem import KERNELS as KERNELS
    from dfeas.problem import Kernel as Kernel
    from dfeas.reports.compare import compare as compare
    from dfeas.reports.page import report as report
    from dfeas.verify.certificate import Certificate as Certificate

__version__ = "0.1.0"

_PUBLIC = {
    "analysis.check_separation": "check_separation",
    "analysis.feasibility": "feasible",
    "analysis.firth": "firth",
    "analysis.hard_margin": "hard_margin",
    "analysis.hull": "in_hull",
    "analysis.info": "info",
    "analysis.plan": "plan",
    "analysis.predict": "predict",
    "analysis.separation": "separation",
    "analysis.suspects": "suspects",
    "answers.check.verify": "verify_certificate verify_run",
    "answers.feasibility": "Feasibility",
    "answers.hard_margin": "HardMargin",
    "answers.load": "load",
    "answers.result": "Result",
    "answers.separation": "Hull Separation",
    "answers.several": "OneVsRest Race",
    "answers.soft_margin": "SoftMarginClasses SoftMarginResult",
    "answers.suspects": "Suspects",
    "api": "generate ingest one_vs_rest race resume soft_margin soft_margin_classes solve",
    "cones.algebra": "svec",
    "cones.cvxpy": "from_cvxpy",
    "cones.writer": "from_cone_rows from_scs",
    "data.generate.points": "Instance",
    "data.table": "table",
    "errors": "BadInputError CheckFailedError CorruptDataError DfeasError UndecidedError UsageError",
    "methods.registry": "METHODS",
    "problem": "KERNELS Kernel",
    "reports.compare": "compare",
    "reports.page": "report",
    "verify.certificate": "Certificate",
}
"""Public names of modules."""
_MODULE = {name: f"dfeas.{module}" for module, names in _PUBLIC.items() for name in names.split()}

__all__ = [*_MODULE, "__version__"]


if not TYPE_CHECKING:  # type checkers know each name, and would take any other for one

    def __getattr__(name: str) -> Any:
        """Import a public name."""
        if name not in _MODULE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module("dfeas.leaves").load(_MODULE[name]), name)
        return value

    def __dir__() -> list[str]:
        """The public names, and not what is imported for them."""
        return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
