"""Words of results, with a sentence for each: what is proved, how surely, and why a run ended."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Word(StrEnum):
    """A word of results, for programs, with its sentence for people."""

    sentence: str

    def __new__(cls, value: str, sentence: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_, member.sentence = value, sentence
        return member

    def __repr__(self) -> str:
        return repr(self.value)

    @classmethod
    def explain(cls, value: str) -> str:
        """The sentence of a word that a file has; the word itself where there is none."""
        return next((member.sentence for member in cls if member == value), value)


class Verdict(Word):
    """What is proved of the data."""

    FEASIBLE = "feasible", "Feasible: a hyperplane separates the points"
    INFEASIBLE = "infeasible", "Infeasible: no hyperplane separates the points"
    EPS_INFEASIBLE = "eps-infeasible", "eps-infeasible: no hyperplane has a margin above eps; smaller ones are not excluded"
    UNDECIDED = "undecided", "Undecided: neither a separator nor a proof that there is none"


class Stop(Word):
    """Why a run ended; its place is the ``status`` of a result."""

    VERDICT = "verdict", "a verdict was reached and verified"
    PASS_LIMIT = "pass_limit", "the limit of passes was reached"
    TIME_LIMIT = "time_limit", "the time limit was reached"
    INTERRUPTED = "interrupted", "the run was interrupted"
    STALLED = "stalled", "no further pass can help"
    NUMERICAL_ERROR = "numerical_error", "the method produced numbers that are not finite"
    OUTRUN = "outrun", "another method of the race was first"


class Proof(Word):
    """How sure a verdict is, from the weakest to the strongest."""

    NONE = "none", "none: no verdict was proved"
    FLOATING_POINT = "floating_point", "floating_point: nothing bounds the rounding errors of a function of the user"
    RIGOROUS = "rigorous", "rigorous: rounding errors are bounded"
    EXACT = "exact", "exact: nothing is left to rounding"


FEASIBLE, INFEASIBLE, EPS_INFEASIBLE, UNDECIDED = Verdict


RESUMABLE = (Stop.INTERRUPTED, Stop.PASS_LIMIT, Stop.TIME_LIMIT)
"""A run that stopped for one of these can go on."""
