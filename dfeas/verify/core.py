"""The checker: proves certificates from the stored points and labels, or cones, alone, rounding errors included.

It shares no code with passes and methods. What it has read of a dataset is compared with the fingerprint, whoever read it. How
is said of points in ``points``, of cones in ``cones``, of points in a kernel's space in ``kernel``.

Points that conflict do so whatever the others are: where it is known what all blocks should be, a check of a conflict may read
its blocks only. And where somebody else reads all blocks anyway, the checker may look at a separator on that read: it computes
checksums and scores from the same bytes by itself. It also bounds what a run says of its points beside: their scores, how far
they reach, and how many are of each class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from dfeas import leaves
from dfeas.data.storage.readers import Buffers, Stop, unless_stopped
from dfeas.data.storage.scratch import is_mapped
from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.exact.arithmetic import TINY, UP, Floats, Indices, Wide, gamma
from dfeas.records import replace
from dfeas.verify.blocks import Data, blocks, compare, crc, is_translated, require_features, require_support, share, signs_of
from dfeas.verify.blocks import read as read_block
from dfeas.verify.certificate import Answer, Certificate, Check, Checked, attempt
from dfeas.verify.points import Points, Sight
from dfeas.verify.tallies import Checker, Function, Maps, Node, Tallies, look_at, whole
from dfeas.verify.view import SignedBlock


def checker_of(data: Data, certificate: Certificate, function: Function | None = None) -> Checker:
    """The checker of a certificate about the data: of points, or, imported for these, with a kernel, or of cones. Raises
    BadInputError when its kernel is a ``function`` that is not given.
    """
    if data.kind == "cones":
        cones: Checker = leaves.cone_checker()
        return cones
    if not certificate.kernel:
        return Points()
    kernel = leaves.kernel_of_text(certificate.kernel, function)
    weighs = certificate.kind == "gordan" and not (data.intercept or certificate.y.size)
    checker: Checker = Points() if weighs and kernel.plain else leaves.kernel_checker(kernel)
    return checker


def _groups(data: Data, certificates: Sequence[Certificate], function: Function | None) -> list[tuple[Checker, list[int]]]:
    """Certificates, by their places, that are looked at together."""
    groups: list[tuple[Checker, list[int]]] = []
    for place, certificate in enumerate(certificates):
        checker = checker_of(data, certificate, function)
        if not groups or groups[-1][0] != checker:
            groups.append((checker, []))
        groups[-1][1].append(place)
    return groups


def check_each(
    engine: Maps, data: Data, certificates: Sequence[Certificate], function: Function | None = None, *, quick: bool = False
) -> Checked:
    """Prove certificates on all of the data: one read for all of them, two with a kernel; ``quick`` reads the blocks of
    conflicts only, and takes it that all others are what they should be. Where labels are codes of classes, each certificate
    says which class is meant. Raises CorruptDataError when the data is not what one was made for, BadInputError when its kernel
    is a ``function`` that is not given.
    """
    answers: dict[int, Answer] = {}
    shares: list[float] = []
    for checker, places in _groups(data, certificates, function):
        some = [certificates[place] for place in places]
        answers |= zip(places, _prove_group(engine, data, checker, some, quick, shares.append), strict=True)
    return Checked([answers[place] for place in range(len(certificates))], sum(shares))


def reads(data: Data, certificates: Sequence[Certificate], function: Function | None = None, *, quick: bool = False) -> float:
    """Reads of the data that ``check_each`` takes, as a rule: of cones that conflict it may take one more."""
    total = 0.0
    for checker, places in _groups(data, certificates, function):
        some = [certificates[place] for place in places]
        total += share(data, checker.choose_blocks(some, data) if quick else None) + checker.more(some)
    return total


Told = Callable[[float], None]
"""Takes the share of the data that a read reads."""


def _prove_group(
    engine: Maps, data: Data, checker: Checker, certificates: Sequence[Certificate], quick: bool, told: Told
) -> list[Answer]:
    refusals = [attempt(_require, checker, certificate, data) for certificate in certificates]
    sound = [certificate for certificate, refusal in zip(certificates, refusals, strict=True) if refusal is None]
    try:
        more = iter(_prove_together(engine, data, checker, sound, quick, told) if sound else ())
    except CheckFailedError as error:
        # one of them cannot be looked at: which one shows when each is looked at alone
        alone = [error] if len(sound) == 1 else [_prove_group(engine, data, checker, [each], quick, told)[0] for each in sound]
        more = iter(alone)
    return [next(more) if refusal is None else refusal for refusal in refusals]


def _require(checker: Checker, certificate: Certificate, data: Data) -> None:
    require_features(data, certificate)
    checker.require(certificate, data)


def _prove_together(
    engine: Maps, data: Data, checker: Checker, certificates: Sequence[Certificate], quick: bool, told: Told
) -> list[Answer]:
    def read(look: Callable[..., Any], *args: Any, chosen: Sequence[int] | None = None) -> Any:
        told(share(data, chosen))
        return compare_checksums(engine.map(look, *args, count=None if chosen is None else len(chosen)), chosen)

    def compare_checksums(ranges: Iterable[list[Node[Any]]], chosen: Sequence[int] | None) -> Any:
        part: Any = whole(ranges)
        for mark, view in dict.fromkeys((each.fingerprint, each.view) for each in certificates):
            compare(data, part.checksums, mark, view, chosen)
        return part

    chosen = checker.choose_blocks(certificates, data) if quick else None
    if isinstance(checker, Points) and any(is_mapped(each.support) for each in certificates):
        told(1.0)
        first = compare_checksums(_by_portions(engine, data, checker, certificates), None)
    else:
        first = read(look_at, checker, certificates, chosen, chosen=chosen)
    answers = checker.conclude(first, certificates, data, read)
    looked = round(share(data, None if checker.more(certificates) else chosen) * data.n)
    return [replace(answer, points_read=looked) if isinstance(answer, Check) else answer for answer in answers]


PORTION = 1 << 20
"""Points at most whose weights leave the file at a time."""


def _by_portions(engine: Maps, data: Data, checker: Points, certificates: Sequence[Certificate]) -> Iterator[list[Node[Any]]]:
    """What all blocks show where weights are in files: of some blocks after the others, each with the weights of its points. Of
    each as many as a node of the tree covers, so that the sums are the same, to the bit.
    """
    count = -(-data.n // data.block_rows)
    size = 1 << max(0, (PORTION // data.block_rows).bit_length() - 1)
    for first in range(0, count, size):
        chosen = tuple(range(first, min(first + size, count)))
        some = [each.take_points(first * data.block_rows, (chosen[-1] + 1) * data.block_rows) for each in certificates]
        for nodes in engine.map(look_at, checker, some, chosen, count=len(chosen)):
            yield [(level, index + (first >> level), part) for level, index, part in nodes]


def check(
    engine: Maps, data: Data, certificate: Certificate, function: Function | None = None, *, quick: bool = False
) -> Check:
    """One certificate. Raises CheckFailedError when it does not prove what it claims, and what ``check_each`` does."""
    (answer,) = check_each(engine, data, [certificate], function, quick=quick).answers
    if isinstance(answer, CheckFailedError):
        raise answer
    return answer


def sight(data: Data, certificate: Certificate) -> Sight | None:
    """How a separator is looked at in blocks that somebody else reads as they are stored; None where that cannot be."""
    seen = data.base is not data or is_translated(data.points)
    chosen = data.positive not in (None, -1)  # one class of many: its labels are not kept as they are stored
    if seen or chosen or data.kind == "cones" or certificate.kernel or certificate.kind != "separator":
        return None
    refused = attempt(_require, Points(), certificate, data) is not None
    return None if refused else Sight.of(data, [certificate])


def conclude_separator(data: Data, certificate: Certificate, shown: Tallies) -> Answer:
    """What all blocks have shown of a separator. Raises CorruptDataError when they are not what it was made for."""
    compare(data, shown.checksums, certificate.fingerprint, certificate.view)
    (answer,) = Points().conclude(shown, [certificate], data, _no_read)
    return replace(answer, points_read=data.n) if isinstance(answer, Check) else answer


def _no_read(*args: Any) -> Any:
    raise AssertionError("points are looked at once")


def scores(data: Data, certificate: Certificate) -> tuple[Floats, Floats]:
    """Scores (s,) of the unit columns of the support under the certificate's y, and bounds of their errors."""
    look, support, buffers = Sight.of(data, [certificate]), np.asarray(certificate.support), Buffers()
    parts = []
    for index in np.unique(support // data.block_rows).tolist():
        block = read_block(data, index, buffers, data.base.points)
        here = support[support // data.block_rows == index] - block.start
        signed = look.sign_block(block, look.codes[0])
        score, error, norm = _score_rows(signed, here, certificate.y)
        size = norm if signed.length is None else np.full(len(here), signed.length)
        with np.errstate(divide="ignore", invalid="ignore"):
            parts.append((score / size, error / size * UP + 2 * gamma(len(certificate.y) + 8) * np.abs(score / size)))
    score, error = (np.concatenate(each) for each in zip(*parts, strict=True))
    return score, error


def _score_rows(block: SignedBlock, rows: Indices, y: Floats) -> tuple[Floats, Floats, Floats]:
    """l_j z_j'y (r,) of some points as they are seen, bounds of their errors, and lengths."""
    points = block.wide(rows)
    terms = points.terms + block.roundings + 1
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        error = gamma(terms) * (1 + 2 * gamma(terms)) * points.magnitude(np.arange(len(rows)), y) * UP
        error += 4 * terms * TINY * (1 + float(np.abs(y).max()))
        return points.score(y) * block.label[rows], error, points.norm()


def check_conflicts(engine: Maps, data: Data, certificates: Sequence[Certificate], *, quick: bool = False) -> Checked:
    """The same of many conflicts of few points, whose hulls are not measured."""
    from dfeas.verify.conflicts import Conflicts  # for suspects alone

    shares: list[float] = []
    return Checked(_prove_group(engine, data, Conflicts(), certificates, quick, shares.append), sum(shares))


def find_wrong(engine: Maps, data: Data, separators: Sequence[Certificate]) -> list[tuple[Indices, list[int]]]:
    """Of each, all points that it does not have on its positive side, and those of them on the hyperplane, decided exactly by
    one read. Raises what ``check_each`` does.
    """
    part = whole(engine.map(look_at, Points(data.n), separators, None))
    compare(data, part.checksums, separators[0].fingerprint, separators[0].view)
    return [(np.array(tally.wrong, np.int64), tally.flat) for tally in part.tallies]


class Reach(Struct, frozen=True):
    """How near to a hyperplane and how far from the origin points are, as they are seen."""

    low: float  # the least l_j z_j'y is not below this,
    high: float  # and not above this
    longest: float  # length of a point, rounded
    apart: HullDistance | None = None


class HullDistance(Struct, frozen=True):
    """Of two points, one of the hull of each class: no hyperplane is farther from all points than half of it."""

    half: float  # not below it
    rounding: float  # what that allows for rounding errors
    weights: Floats  # (s,) of points, half of them in each class


Hulls = tuple[Indices, Floats]
"""Points (s,), ascending, and weights of at least 0: of each class they make a point of its hull."""


def reach(engine: Maps, data: Data, certificate: Certificate, hulls: Hulls | None = None) -> Reach:
    """Of all points and a separator, in one read. Raises CorruptDataError when it was made for other data."""
    if hulls is not None:
        require_support(hulls[0], data.n)
    parts = engine.map(_reach_of_range, certificate, np.empty(0, np.int64) if hulls is None else hulls[0])
    compare(data, b"".join(checksums for checksums, _, _ in parts), certificate.fingerprint, certificate.view)
    low, high, longest = np.array([each for _, some, _ in parts for each in some]).T
    held = [each for _, _, some in parts for each in some]
    apart = None if hulls is None else _bound_distance(held, hulls[1], data.m)
    return Reach(float(low.min()), float(high.min()), float(longest.max()), apart)


def _bound_distance(held: list[tuple[Wide, Floats]], weights: Floats, m: int) -> HullDistance | None:
    """From sums of s weighted points over sums of s weights; None where a class has no weight."""
    label, place = np.concatenate([each for _, each in held]), np.cumsum([0, *(len(each) for _, each in held)])
    total, spread, halves = np.zeros(m), np.zeros(m), np.zeros(len(weights))
    for sign in (1, -1):
        amount = np.where(label == sign, weights, 0.0)
        if not amount.any():
            return None
        amount /= amount.sum()
        halves += amount / 2
        for (points, _), first in zip(held, place, strict=False):
            sums = points.sums(amount[first : first + points.size])
            total, spread = total + sign * sums[0][:m], spread + sums[1][:m]
    terms = 2 * len(weights) + len(held) + 12
    error = gamma(terms) / (1 - 2 * gamma(terms)) * spread * UP + terms * TINY
    half = float(np.linalg.norm(np.abs(total) + error)) / 2 * (1 + gamma(m + 4)) * UP
    return HullDistance(half, float(np.linalg.norm(error)), halves) if np.isfinite(half) else None


def _reach_of_range(
    data: Data, first: int, stop: int, certificate: Certificate, support: Indices, stopped: Stop | None = None
) -> tuple[bytes, list[tuple[float, float, float]], list[tuple[Wide, Floats]]]:
    look, checksums, found, held = Sight.of(data, [certificate]), b"", [], []
    for _, block in blocks(data, range(first, stop), stopped, data.base.points):
        checksums += block.checksums
        signed = look.sign_block(block, look.codes[0])
        rows = np.arange(signed.size)
        chosen = support[slice(*np.searchsorted(support, [block.start, block.start + signed.size]))] - block.start
        if len(chosen):
            held.append((signed.wide(chosen), signed.label[chosen]))
        for piece in signed.cut(rows, len(certificate.y)):
            score, error, norm = _score_rows(signed, rows[piece], certificate.y)
            low, high = score - error, score + error
            if not np.isfinite(high).all():
                raise CheckFailedError(f"{data.where}: a score is too large to be bounded")
            found.append((float(low.min()), float(high.min()), float(norm.max())))
    return checksums, found, held


def positives(engine: Maps, data: Data) -> int:
    """How many points have the label +1, by a read of all. Raises CorruptDataError for labels that its ingest did not write."""
    return sum(engine.map(_positives_of_range, data.positive))


def _positives_of_range(data: Data, first: int, stop: int, code: int | None, stopped: Stop | None = None) -> int:
    base, buffers, count = data.base, Buffers(), 0
    expected = None if base.header is None else base.expected
    together = data.block_rows // data.chunk_rows
    for index in unless_stopped(range(first, stop), stopped):
        label = data.labels.read(index, buffers)
        for place in range(-(-len(label) // data.chunk_rows)):
            chunk, rows = index * together + place, slice(place * data.chunk_rows, (place + 1) * data.chunk_rows)
            if expected is not None and crc(label[rows]) != expected[chunk, 1]:
                raise CorruptDataError(f"{data.where}: chunk {chunk} of label is damaged; restore or ingest again")
        count += int((signs_of(label, code) > 0).sum())
    return count
