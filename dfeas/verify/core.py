"""The checker: proves certificates from the stored points and labels, or cones, alone, rounding errors included.

It shares no code with passes and methods. What it has read of a dataset is compared with the fingerprint, whoever read it. How
is said of points in ``points``, of cones in ``cones``, of points in a kernel's space in ``kernel``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dfeas.data.storage.readers import Stop
from dfeas.errors import CheckFailedError
from dfeas.verify.blocks import Data, Maps, Node, compare, require_features, whole
from dfeas.verify.certificate import Answer, Certificate, Check, attempt
from dfeas.verify.cones import Cones
from dfeas.verify.kernel import Kernels
from dfeas.verify.kernel_bounds import Function, Kernel
from dfeas.verify.points import Points


class Checker(Protocol):
    """How certificates of one kind are proved."""

    def require(self, certificate: Certificate, data: Data) -> None:
        """Raise CheckFailedError when a certificate cannot be one of the data, whatever its blocks hold."""

    def look(
        self, data: Data, first: int, stop: int, certificates: Sequence[Certificate], stopped: Stop | None = None
    ) -> list[Node[Any]]:
        """What blocks first .. stop-1 show of each."""

    def conclude(self, part: Any, certificates: Sequence[Certificate], data: Data, read: Callable[..., Any]) -> list[Answer]:
        """What all blocks show of each, or why that proves nothing; ``read`` has them looked at again, in another way.

        Raises CheckFailedError when one of them cannot be looked at.
        """


def checker_of(data: Data, certificate: Certificate, function: Function | None = None) -> Checker:
    """The checker of a certificate about the data: of points, with a kernel, or of cones.

    Raises BadInputError when its kernel is a ``function`` that is not given.
    """
    if data.kind == "cones":
        return Cones()
    if not certificate.kernel:
        return Points()
    kernel = Kernel.from_text(certificate.kernel, function)
    weighs = certificate.kind == "gordan" and not (data.intercept or certificate.y.size)
    return Points() if weighs and kernel.plain else Kernels(kernel)


def check_each(engine: Maps, data: Data, certificates: Sequence[Certificate], function: Function | None = None) -> list[Answer]:
    """Prove certificates on all of the data: one read for all of them, two with a kernel.

    Where labels are codes of classes, each certificate says which class is meant. Raises CorruptDataError when the data is not
    what one was made for, BadInputError when its kernel is a ``function`` that is not given.
    """
    groups: list[tuple[Checker, list[int]]] = []
    for place, certificate in enumerate(certificates):
        checker = checker_of(data, certificate, function)
        if not groups or groups[-1][0] != checker:
            groups.append((checker, []))
        groups[-1][1].append(place)
    answers: dict[int, Answer] = {}
    for checker, places in groups:
        answers |= zip(places, _proved(engine, data, checker, [certificates[place] for place in places]), strict=True)
    return [answers[place] for place in range(len(certificates))]


def _proved(engine: Maps, data: Data, checker: Checker, certificates: Sequence[Certificate]) -> list[Answer]:
    refusals = [attempt(_require, checker, certificate, data) for certificate in certificates]
    sound = [certificate for certificate, refusal in zip(certificates, refusals, strict=True) if refusal is None]
    try:
        more = iter(_together(engine, data, checker, sound) if sound else ())
    except CheckFailedError as error:
        # one of them cannot be looked at: which one shows when each is looked at alone
        more = iter([error] if len(sound) == 1 else [_proved(engine, data, checker, [each])[0] for each in sound])
    return [next(more) if refusal is None else refusal for refusal in refusals]


def _require(checker: Checker, certificate: Certificate, data: Data) -> None:
    require_features(data, certificate)
    checker.require(certificate, data)


def _together(engine: Maps, data: Data, checker: Checker, certificates: Sequence[Certificate]) -> list[Answer]:
    def read(look: Callable[..., Any], *args: Any) -> Any:
        part: Any = whole(engine.map(look, *args))
        for certificate in certificates:
            compare(data, part.checksums, certificate.fingerprint, certificate.view)
        return part

    return checker.conclude(read(checker.look, certificates), certificates, data, read)


def check(engine: Maps, data: Data, certificate: Certificate, function: Function | None = None) -> Check:
    """One certificate. Raises CheckFailedError when it does not prove what it claims, and what ``check_each`` does."""
    (answer,) = check_each(engine, data, [certificate], function)
    if isinstance(answer, CheckFailedError):
        raise answer
    return answer
