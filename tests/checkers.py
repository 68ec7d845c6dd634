"""Checkers of tests, as the driver calls them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dfeas.errors import CheckFailedError
from dfeas.verify.certificate import Answer, Certificate


@dataclass(frozen=True)
class Each:
    """Checks certificates one by one; what is raised is the answer."""

    check: Callable[[Certificate], Any]
    last: list[float] = field(default_factory=list)

    def __call__(self, certificates: Sequence[Certificate]) -> list[Answer]:
        answers: list[Answer] = []
        self.last[:] = [self.reads(certificates)]
        for certificate in certificates:
            try:
                answers.append(self.check(certificate))
            except CheckFailedError as error:
                answers.append(error)
        return answers

    def reads(self, certificates: Sequence[Certificate]) -> float:
        """One for all; two where points are gathered first."""
        return max(2.0 if each.kernel and each.kind == "separator" else 1.0 for each in certificates)

    @property
    def last_reads(self) -> float:
        """Those of the last call."""
        return self.last[0]
