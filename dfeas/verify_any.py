"""The checker that a certificate needs: of points, with a kernel, or of cones."""

from __future__ import annotations

from dfeas.certificate import Certificate
from dfeas.kernels.kernel import Function
from dfeas.store import Dataset
from dfeas.verify import Check, Maps
from dfeas.verify_cones import check as check_cones
from dfeas.verify_kernel import check_any as check_points


def check_any(engine: Maps, dataset: Dataset, certificate: Certificate, function: Function | None = None) -> Check:
    """Prove a certificate on all of the data.

    Raises CheckFailedError when it does not prove what it claims, CorruptDataError when the data is not what it was made for,
    BadInputError when its kernel is a ``function`` that is not given.
    """
    if dataset.cones is not None:
        return check_cones(engine, dataset, certificate)
    return check_points(engine, dataset, certificate, function)
