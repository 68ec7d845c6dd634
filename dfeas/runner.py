"""What the loop knows of a method on its way, whatever it looks for: a margin bracket, or a soft margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from dfeas.certificate import Certificate
from dfeas.engine import Engine
from dfeas.errors import CheckFailedError
from dfeas.passes import Question
from dfeas.termination import Decision, Limits, Told
from dfeas.verify import Check

E = TypeVar("E", bound="Ended")
E_co = TypeVar("E_co", bound="Ended", covariant=True)


class Ended(Protocol):
    """How a lane ended."""

    @property
    def reads(self) -> float:
        """Of the data."""


class Between(Protocol):
    """A lane between two reads: a frozen dataclass."""

    @property
    def passes(self) -> float:
        """So far."""

    @property
    def record(self) -> Told:
        """Of the last pass."""


class Runner(Protocol[E_co]):
    """A method on its way, as the loop knows it: a lane of ``dfeas.lane``, or one of a soft margin."""

    ended: float | None
    over: bool  # it has ended
    state: Any
    decision: Decision | None
    code: int | None  # of the class that is set against the rest; None for labels as they are

    @property
    def method(self) -> Asking:
        """What asks."""

    @property
    def proved(self) -> bool:
        """Whether it ended with what it was asked for."""

    def begin(self, limits: Limits) -> None:
        """Decide before the first read."""

    def expire(self, limits: Limits, seconds: float) -> None:
        """Decide without an answer, as time has passed."""

    def tell(self, answer: Any, engine: Engine, limits: Limits, now: Callable[[], float]) -> None:
        """Take an answer, and decide."""

    @property
    def claim(self) -> str | None:
        """A verdict whose evidence must be checked; None for none."""

    def evidence(self, verdict: str, engine: Engine, fingerprint: str) -> Certificate:
        """The certificate of a verdict."""

    def judge(self, certificate: Certificate, check: Check | CheckFailedError, limits: Limits, seconds: float) -> None:
        """Take what the checker says of it, so many seconds after the start. What it refuses is not claimed again."""

    def give_up(self, stopped: str) -> None:
        """End without a verdict."""

    def note(self, event: str, text: str, **values: Any) -> None:
        """Tell the sinks."""

    def kept(self) -> Between:
        """What there is now."""

    def restore(self, kept: Any) -> None:
        """Go on from there."""

    def outcome(self, fingerprint: str) -> E_co:
        """How it ended."""


class Asking(Protocol):
    """What asks."""

    def ask(self, state: Any) -> Question:
        """The question of the next pass."""
