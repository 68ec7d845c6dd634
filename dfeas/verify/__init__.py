"""The checker: proves a certificate from the stored points and labels alone, rounding errors included."""

from dfeas.verify.checker import Maps, check, check_all, check_range, code_of, require_evidence, require_signs, signs_of
from dfeas.verify.found import WRONG, Check, Found, Node, joined
from dfeas.verify.rounding import U
from dfeas.verify.stored import PIECE_BYTES, compare, crc

__all__ = [
    "PIECE_BYTES",
    "WRONG",
    "Check",
    "Found",
    "Maps",
    "Node",
    "U",
    "check",
    "check_all",
    "check_range",
    "code_of",
    "compare",
    "crc",
    "joined",
    "require_evidence",
    "require_signs",
    "signs_of",
]
