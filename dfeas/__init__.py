"""dfeas: can a hyperplane through the origin separate the points? A checked answer for data larger than memory."""

from dfeas.certificate import Certificate
from dfeas.check_separation import Separated, check_separation
from dfeas.checking import verify_certificate, verify_classes, verify_run
from dfeas.class_prediction import ClassPrediction
from dfeas.cone_prediction import ConePrediction
from dfeas.coned import CONE_METHODS
from dfeas.cones.spectrum import svec
from dfeas.cones.writing import from_scs, ingest_scs
from dfeas.errors import BadInputError, CheckFailedError, CorruptDataError, DfeasError, UndecidedError, UsageError
from dfeas.estimate import Plan
from dfeas.hard_margin import HardMargin, hard_margin
from dfeas.hull import Hull, in_hull
from dfeas.ingesting import ingest
from dfeas.instances import Instance, generate
from dfeas.kernelled import KERNEL_METHODS
from dfeas.kernels import NAMES as KERNELS
from dfeas.methods import METHODS
from dfeas.one_vs_rest import OneVsRest
from dfeas.planning import plan
from dfeas.predicting import Prediction, predict
from dfeas.racing import Race, race
from dfeas.rechecking import Recheck, recheck
from dfeas.report import compare, report
from dfeas.result import Result
from dfeas.resuming import resume
from dfeas.separation import Separation, separation
from dfeas.soft_margin import soft_margin
from dfeas.soft_margin_result import SoftMarginResult
from dfeas.solving import solve
from dfeas.store.append import append
from dfeas.verify import Check
from dfeas.version import __version__

__all__ = [
    "CONE_METHODS",
    "KERNELS",
    "KERNEL_METHODS",
    "METHODS",
    "BadInputError",
    "Certificate",
    "Check",
    "CheckFailedError",
    "ClassPrediction",
    "ConePrediction",
    "CorruptDataError",
    "DfeasError",
    "HardMargin",
    "Hull",
    "Instance",
    "OneVsRest",
    "Plan",
    "Prediction",
    "Race",
    "Recheck",
    "Result",
    "Separated",
    "Separation",
    "SoftMarginResult",
    "UndecidedError",
    "UsageError",
    "__version__",
    "append",
    "check_separation",
    "compare",
    "from_scs",
    "generate",
    "hard_margin",
    "in_hull",
    "ingest",
    "ingest_scs",
    "plan",
    "predict",
    "race",
    "recheck",
    "report",
    "resume",
    "separation",
    "soft_margin",
    "solve",
    "svec",
    "verify_certificate",
    "verify_classes",
    "verify_run",
]
