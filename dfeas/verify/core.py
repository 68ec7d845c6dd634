"""The checker: proves a certificate from the stored points and labels alone, rounding errors included.

It shares no code with passes and methods. What it has read of a dataset is compared with the fingerprint, whoever read it.

With u = 2**-53 and float64 arithmetic, for any order of summation |fl(x'y) - x'y| <= m u / (1 - m u) |x|'|y|, and
underflow adds at most m 2**-1074 (Higham, Accuracy and Stability, section 3.1). Entries are exact in float64.

* Separator: every point's score must exceed its own bound; those that do not are decided by compensated products, and then in
  integers, so that every one is decided. For points that float32 holds exactly products in float32 come first, with bounds of
  their own. A positive norm does not change a sign, so signs are those of the stored points. The margin is rounded down.
* Gordan certificate: |Ax| of the signed unit columns, with the bounds of norms, products and sums added, rounded up, over a
  rounded-down sum of weights: no unit y has a larger margin. When that is next to nothing, it is proved where possible that
  weights near these, on the same points, make the sum exactly zero (``dfeas.proof.balance``).

Points seen from another one, p, are differences x_j - p with one more rounding. What is decided exactly is decided from
x_j and p themselves: the score is [x_j, p]'[y, -y], and sum w_j (x_j - p) = 0 is sum w_j (x_j, 1) + (sum w_j) (-p, -1) = 0. For
features that are centred and scaled see ``dfeas.verify.transform``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Buffers, Stop, unless_stopped
from dfeas.data.transform import seen_as
from dfeas.data.views import TranslatedReader
from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.verify.certificate import HYPERPLANE, Certificate
from dfeas.verify.evidence import Check, Found, Looked, Node, joined
from dfeas.verify.separator import by_float32, look_at_scores, separator
from dfeas.verify.stored import Stored, compare, crc
from dfeas.verify.transform import Numbers, Seen
from dfeas.verify.weights import gordan, look_at_weights

SHOWN = 120
"""Characters of a view in a message."""
AHEAD = 8
"""Blocks that the kernel is asked to read ahead."""


class Maps(Protocol):
    """What the checker needs of an engine."""

    def map(self, function: Any, *args: Any) -> list[Any]:
        """``function(dataset, first, stop, *args)`` over ranges of blocks, in order; where it can be stopped in the middle also
        with ``stopped=``, which says so.
        """


def check(engine: Maps, dataset: Dataset, certificate: Certificate) -> Check:
    """Prove the certificate on all of the data, in one read.

    Raises CheckFailedError when it does not prove what it claims, CorruptDataError when the data is not what it was made for.
    """
    (found,) = check_all(engine, dataset, [certificate])
    if isinstance(found, CheckFailedError):
        raise found
    return found


def check_all(engine: Maps, dataset: Dataset, certificates: Sequence[Certificate]) -> list[Check | CheckFailedError]:
    """Prove several certificates on all of the data, in one read: what is proved of each, or why it proves nothing.

    Where the labels are codes of classes, each certificate says which class is meant. Raises CorruptDataError when the data is
    not what one of them was made for.
    """
    answers: dict[int, Check | CheckFailedError] = {}
    sound: dict[int, Certificate] = {}
    for place, certificate in enumerate(certificates):
        try:
            require_evidence(certificate, dataset)
            code_of(dataset, certificate)
            sound[place] = certificate
        except CheckFailedError as error:
            answers[place] = error
    if sound:
        try:
            answers |= dict(zip(sound, _looked(engine, dataset, tuple(sound.values())), strict=True))
        except CheckFailedError as error:
            # one of them cannot be looked at: which one shows when each is looked at alone
            if len(sound) == 1:
                return [answers.get(place, error) for place in range(len(certificates))]
            for place, certificate in sound.items():
                (answers[place],) = check_all(engine, dataset, [certificate])
    return [answers[place] for place in range(len(certificates))]


def _looked(engine: Maps, dataset: Dataset, certificates: tuple[Certificate, ...]) -> list[Check | CheckFailedError]:
    nodes: list[Node] = []
    for node in (node for part in engine.map(check_range, certificates) for node in part):
        joined(nodes, node)
    looked = nodes[0][2]
    for _, _, rest in nodes[1:]:
        looked.add(rest)
    answers: list[Check | CheckFailedError] = []
    for certificate in certificates:
        compare(dataset, looked.checksums, certificate.fingerprint, certificate.view)
    if dataset.transform is not None and looked.numbers is not None:
        looked.numbers.refuse(dataset.transform, dataset.where)
    require_signs(looked.signs, dataset.where)
    for certificate, found in zip(certificates, looked.found, strict=True):
        try:
            answers.append(separator(found) if certificate.kind == "separator" else gordan(found, certificate))
        except CheckFailedError as error:
            answers.append(error)
    return answers


def code_of(dataset: Dataset, certificate: Certificate) -> int | None:
    """The label that counts as +1 for a certificate; None: labels are signs. Raises CheckFailedError when it is not said."""
    if certificate.view == dataset.view:
        if dataset.coded:
            raise CheckFailedError(f"{dataset.where}: it has {len(dataset.classes)} classes, the certificate names none")
        return dataset.positive
    try:
        name, transform = seen_as(certificate.view)
        if name is None or dataset.positive is not None or transform != dataset.transform:
            raise LookupError
        return dataset.codes[dataset.classes.index(name)]
    except (ValueError, LookupError, CorruptDataError):
        seen, meant = (view[:SHOWN] or "nothing but its labels" for view in (dataset.view, certificate.view))
        raise CheckFailedError(f"{dataset.where}: it is seen with {seen}, the certificate with {meant}") from None


def signs_of(label: NDArray[Any], code: int | None) -> NDArray[np.int8]:
    """Labels (b,) as -1 and +1, the latter where they are the code; without one 0 where they are neither."""
    if code is not None:
        return np.asarray((label == code).view(np.int8) * np.int8(2) - np.int8(1))
    return np.asarray(label * (np.abs(label) == 1), np.int8)


def require_signs(signs: bool, where: str) -> None:
    """Raise CheckFailedError when not all labels are signs."""
    if not signs:
        raise CheckFailedError(f"{where}: a label is neither -1 nor +1; nothing can be proved")


def require_evidence(certificate: Certificate, dataset: Dataset) -> None:
    """Raise CheckFailedError when a certificate cannot be one of the data, whatever the points are."""
    if certificate.kind == HYPERPLANE:
        raise CheckFailedError("it is the hyperplane of a soft margin, which proves nothing")
    dimension = dataset.m + int(dataset.intercept)
    if certificate.kind == "separator":
        if certificate.y.shape != (dimension,):
            raise CheckFailedError(f"the separator has {certificate.y.size} entries, the data {dimension} features")
        if not np.isfinite(certificate.y).all() or not certificate.y.any():
            raise CheckFailedError("the separator is zero or not finite")
        if not 1e-100 < np.abs(certificate.y).max() < 1e100:
            raise CheckFailedError("the entries of the separator are outside 1e-100 .. 1e100; scale it to length 1")
        return
    support, weights = certificate.support, certificate.weights
    if not len(support) or (support[1:] <= support[:-1]).any() or support[0] < 0 or support[-1] >= dataset.n:
        raise CheckFailedError(f"the support is not an ascending list of points below {dataset.n}")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights <= 2).all()):
        raise CheckFailedError("the weights are not on the simplex: negative, not finite, or above 1")
    if abs(float(weights.sum()) - 1) > 1e-6:
        raise CheckFailedError(f"the weights are not on the simplex: their sum is {float(weights.sum())!r}")


def check_range(
    dataset: Dataset, first: int, stop: int, certificates: tuple[Certificate, ...], stopped: Stop | None = None
) -> list[Node]:
    """Look at blocks first .. stop-1."""
    nodes: list[Node] = []
    buffers = Buffers()
    codes = [code_of(dataset, certificate) for certificate in certificates]
    known = [math.inf] * len(certificates)  # the least margins so far
    separators = [certificate.y for certificate in certificates if certificate.kind == "separator"]
    base, transform = dataset.stored or dataset, dataset.transform
    applied, length = Seen.of(transform), None if transform is None else transform.length
    seen = dataset.points if isinstance(dataset.points, TranslatedReader) else None
    for index in unless_stopped(range(first, stop), stopped):
        if index + AHEAD < stop:
            dataset.points.advise(index + AHEAD)
        plain = None if seen is None else seen.stored(index, buffers)
        stored = base.points.read(index, buffers) if seen is None or plain is None else seen.change(plain, buffers)
        label = dataset.labels.read(index, buffers)
        origin = None if seen is None or plain is None else (plain, seen.point)
        start = index * dataset.block_rows
        looked = Looked([(crc(stored), crc(label))], [])
        if transform is not None and start < transform.points:
            looked.numbers = Numbers.of(stored[: transform.points - start], applied, dataset.intercept)
        fast = iter(by_float32(stored, separators if length is None else [], dataset.intercept, applied))
        for place, (certificate, code) in enumerate(zip(certificates, codes, strict=True)):
            found = Found(points=stored.shape[0])
            looked.found.append(found)
            sign = signs_of(label, code)
            looked.signs = looked.signs and bool(sign.all())
            block = Stored(dataset.where, start, stored, sign, dataset.intercept, origin, applied, length)
            if certificate.kind == "separator":
                look_at_scores(found, block, certificate.y, next(fast, None), known[place])
                known[place] = min(known[place], found.margin)
            else:
                look_at_weights(found, block, certificate)
        joined(nodes, (0, index, looked))
    return nodes
