"""The checker that certificates need: of points, with a kernel, or of cones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dfeas.data.dataset import Dataset
from dfeas.errors import CheckFailedError
from dfeas.geometry.kernel.kernel import Function, Kernel
from dfeas.verify.certificate import Certificate
from dfeas.verify.cones import check as check_cones
from dfeas.verify.core import Maps, check_all
from dfeas.verify.evidence import Check
from dfeas.verify.kernel import check_kernels


def check_each(
    engine: Maps, dataset: Dataset, certificates: Sequence[Certificate], function: Function | None = None
) -> list[Check | CheckFailedError]:
    """Prove certificates on all of the data: one read for all of them, two with a kernel, one for each of cones.

    Raises CorruptDataError when the data is not what one was made for, BadInputError when its kernel is a ``function`` that is
    not given.
    """
    if dataset.cones is not None:
        return [_of_cones(engine, dataset, certificate) for certificate in certificates]
    if not any(certificate.kernel for certificate in certificates):
        return check_all(engine, dataset, certificates)
    plain = [certificate if _of_points(dataset, certificate, function) else None for certificate in certificates]
    found = iter(check_all(engine, dataset, [replace(each, kernel="") for each in plain if each is not None]))
    rest = [certificate for certificate, each in zip(certificates, plain, strict=True) if each is None]
    others = iter(check_kernels(engine, dataset, rest, function) if rest else ())
    return [next(others if each is None else found) for each in plain]


def _of_points(dataset: Dataset, certificate: Certificate, function: Function | None) -> bool:
    """Whether it weighs points that are themselves the vectors of its kernel's space."""
    weighs = certificate.kernel and certificate.kind == "gordan" and not (dataset.intercept or certificate.y.size)
    return bool(weighs) and Kernel.from_text(certificate.kernel, function).plain


def _of_cones(engine: Maps, dataset: Dataset, certificate: Certificate) -> Check | CheckFailedError:
    try:
        return check_cones(engine, dataset, certificate)
    except CheckFailedError as error:
        return error


def check_any(engine: Maps, dataset: Dataset, certificate: Certificate, function: Function | None = None) -> Check:
    """One certificate. Raises CheckFailedError when it does not prove what it claims, and what ``check_each`` does."""
    (found,) = check_each(engine, dataset, [certificate], function)
    if isinstance(found, CheckFailedError):
        raise found
    return found
