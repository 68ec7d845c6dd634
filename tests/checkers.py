"""Checkers of tests, as the driver calls them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dfeas.errors import CheckFailedError
from dfeas.verify.certificate import Answer, Certificate, Checked


@dataclass(frozen=True)
class Each:
    """Checks certificates one by one; what is raised is the answer."""

    check: Callable[[Certificate], Any]

    def __call__(self, certificates: Sequence[Certificate]) -> Checked:
        answers: list[Answer] = []
        for certificate in certificates:
            try:
                answers.append(self.check(certificate))
            except CheckFailedError as error:
                answers.append(error)
        return Checked(answers, self.reads(certificates))

    def reads(self, certificates: Sequence[Certificate]) -> float:
        """One for all; two where points are gathered first."""
        return max(2.0 if each.kernel and each.kind == "separator" else 1.0 for each in certificates)
