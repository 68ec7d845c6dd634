"""Checkers of tests, as the driver calls them."""

from collections.abc import Callable, Sequence
from typing import Any

from dfeas.errors import CheckFailedError
from dfeas.verify.certificate import Certificate, Check


def each(check: Callable[[Certificate], Any]) -> Callable[[Sequence[Certificate]], list[Check | CheckFailedError]]:
    """Checks certificates one by one; what is raised is the answer."""

    def checked(certificates: Sequence[Certificate]) -> list[Check | CheckFailedError]:
        answers = []
        for certificate in certificates:
            try:
                answers.append(check(certificate))
            except CheckFailedError as error:
                answers.append(error)
        return answers

    return checked
