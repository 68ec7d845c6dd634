"""What ``result.json`` of a run claims, compared with what was proved of it, with its certificate, and with the data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dfeas.answers.check.conflicts import MOST, carriers, heaviest, numbers_of
from dfeas.answers.files import CLASSES, RESULT
from dfeas.answers.hard_margin import SAME
from dfeas.answers.words import EPS_INFEASIBLE, FEASIBLE, INFEASIBLE, UNDECIDED, Proof, Stop, Verdict
from dfeas.data.dataset import Dataset
from dfeas.data.storage.files import COUNT, Number, conform
from dfeas.data.storage.places import Place
from dfeas.errors import CheckFailedError
from dfeas.geometry.registry import geometry_of
from dfeas.problem import LEAST_EPS
from dfeas.verify.blocks import point_of
from dfeas.verify.certificate import Certificate, Check
from dfeas.verify.core import scores

PROOFS = list(Proof)
SAME_KERNEL = 1e-3
"""As ``SAME``, with a kernel, where a margin depends on what else was checked: several times ``kernels.checker.core.SHARP``."""
Values = Mapping[str, Any]


def require_claims(
    where: Place, values: Values, proved: Check, certificate: Certificate, dataset: Dataset, positive: int
) -> None:
    """Raise CheckFailedError for claims of a run, on data with so many ``positive`` points, that are not proved, or not so."""
    _require_verdict(where, values, proved)
    stopped = Stop(values["stopped"])
    facts = {
        "m": dataset.m,
        "n": dataset.n,
        "intercept": dataset.intercept,
        "fingerprint": certificate.fingerprint,
        "kernel": json.loads(certificate.kernel) if certificate.kernel else None,
        "success": stopped == Stop.VERDICT,
        "status": list(Stop).index(stopped),
        "features": list(dataset.features) or None,
        "sides": _sides(dataset, positive),
    }
    for name, true in facts.items():
        if type(values.get(name)) is not type(true) or values.get(name) != true:
            raise CheckFailedError(f"{where}: {name} is {values.get(name)!r}, that of the data is {true!r}")
    _require_bracket(where, values, proved)
    _require_conflicts(where, values, certificate, dataset)


def _sides(dataset: Dataset, positive: int) -> dict[str, Any] | None:
    if dataset.cones is not None or point_of(dataset) is not None:
        return None
    return {label: {"name": name, "points": points} for label, (name, points) in dataset.sides(positive).items()}


PROVED = (
    *("verdict", "proof", "m", "n", "intercept", "fingerprint", "kernel", "success", "status", "features", "sides"),
    *("conflicts", "data", "classes"),
)
"""Keys of a result that are compared with what is proved or with the data, whatever the verdict."""


def not_checked(values: Values, proved: Check, certificate: Certificate) -> list[str]:
    """What a result says beside, in the order in which it says it."""
    known = {*PROVED, *(("margin_lower",) if proved.verdict == FEASIBLE else ("margin_upper", "stopped"))}
    if proved.margin_upper < 1 or values["margin_upper"] == 1:  # by weights, or as no unit vector can be above 1
        known |= {"margin_upper"}
    rest = [name for name in values if name not in known]
    scored = any(entry["score"] is not None for entry in values["conflicts"]) and not certificate.y.size
    named = any("name" in entry for entry in values["conflicts"])
    return [*rest, *(["scores of conflicts"] if scored else []), *(["names of conflicts"] if named else [])]


def _require_verdict(where: Place, values: Values, proved: Check) -> None:
    claimed, eps = values["verdict"], values["eps"]
    if eps is not None and not LEAST_EPS <= eps < 1:
        raise CheckFailedError(f"{where}: eps is {eps!r}, expected a number from {LEAST_EPS:g} to below 1")
    weaker = claimed == EPS_INFEASIBLE and proved.verdict == INFEASIBLE
    if claimed != proved.verdict and not weaker:
        raise CheckFailedError(f"{where}: the certificate proves {proved.verdict}, the run claims {claimed}")
    if claimed == EPS_INFEASIBLE and not proved.margin_upper <= (eps or 0.0):
        raise CheckFailedError(f"{where}: |Ax| <= {proved.margin_upper:.6g} is proved, the run claims {eps}")
    stopped = values.get("stopped")
    if stopped not in list(Stop) or (claimed != FEASIBLE and stopped != "verdict"):
        raise CheckFailedError(f"{where}: stopped is {stopped!r}, which no run is that ended {claimed}")
    proof = values.get("proof")
    if proof not in PROOFS or PROOFS.index(proof) > PROOFS.index(Proof(proved.proof)):
        raise CheckFailedError(f"{where}: proof is {proof!r}, the certificate is a proof of level {proved.proof}")


def _require_bracket(where: Place, values: Values, proved: Check) -> None:
    """The end that is proved, as far as rounding lets it be the same; and that the other one is on its side."""
    lower, upper = (_finite(where, values, name) for name in ("margin_lower", "margin_upper"))
    if values["verdict"] == FEASIBLE and upper > 1:
        raise CheckFailedError(f"{where}: margin_upper is {upper!r}, no unit vector has a margin above 1")
    if lower > upper:
        raise CheckFailedError(f"{where}: margin_lower is {lower!r}, above margin_upper, {upper!r}")
    if proved.verdict == FEASIBLE:
        name, end, known = "margin_lower", lower, proved.margin_lower
    else:
        name, end, known = "margin_upper", upper, proved.margin_upper
    if values["verdict"] == EPS_INFEASIBLE and proved.verdict == INFEASIBLE and 0 <= end <= values["eps"]:
        return  # a bound of zero
    if (
        proved.verdict == FEASIBLE
        and proved.margin_upper < 1
        and abs(upper - proved.margin_upper) > (SAME * proved.margin_upper + 2 * proved.rounding)
    ):
        raise CheckFailedError(f"{where}: margin_upper is {upper!r}, {proved.margin_upper!r} is proved")
    _require_widest(where, values, lower, upper)
    same = (SAME_KERNEL if values.get("kernel") else SAME) * abs(known) + 2 * proved.rounding
    if not abs(end - known) <= same:
        raise CheckFailedError(f"{where}: {name} is {end!r}, {known!r} is proved")


def _require_widest(where: Place, values: Values, lower: float, upper: float) -> None:
    """The margin is the maximum, up to the share that was asked for, where the run says that it reached that."""
    tolerance = values.get("margin_tolerance")
    if tolerance is None or values["verdict"] != FEASIBLE or values["stopped"] != Stop.VERDICT:
        return
    if lower < (1 - tolerance - SAME) * upper:
        raise CheckFailedError(
            f"{where}: {lower!r} is not the maximum margin up to a share of {tolerance!r}: that is {upper!r}"
        )


def _finite(where: Place, values: Values, name: str) -> float:
    number = values.get(name)
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise CheckFailedError(f"{where}: {name} is {number!r}, expected a finite number")
    return number


_CONFLICT = {"point": COUNT, "label": str, "weight": Number(0, 2), "score": Number(none=True), "name?": object}
_KEYS = {name.removesuffix("?") for name in _CONFLICT}


def _require_conflicts(where: Place, values: Values, certificate: Certificate, dataset: Dataset) -> None:
    """Points that are named carry the certificate, with their labels, weights and scores, the most suspect first."""
    listed = values.get("conflicts")
    accused = values["verdict"] == INFEASIBLE and geometry_of(dataset).names_points
    count = min(MOST, len(certificate.support)) if accused else 0
    if not isinstance(listed, list) or len(listed) != count:
        said = len(listed) if isinstance(listed, list) else repr(listed)
        raise CheckFailedError(f"{where}: conflicts names {said} points, those of the certificate that conflict are {count}")
    if certificate.kind == "gordan" and certificate.y.size and not listed:
        raise CheckFailedError(f"{where}: the certificate has a direction, and no conflicts that it scores")
    if not listed:
        return
    try:
        conform(listed, [_CONFLICT], "conflicts")
    except ValueError as error:
        raise CheckFailedError(f"{where}: conflicts has points that are none: {error}") from None
    true = carriers(dataset, certificate, [entry["point"] for entry in listed])
    for entry in listed:
        point, label, weight = (entry[name] for name in ("point", "label", "weight"))
        if not entry.keys() <= _KEYS or true.pop(point, None) != (label, weight):
            raise CheckFailedError(
                f"{where}: conflicts has point {point!r} with label {label!r} and weight {weight!r}, which is not one of the "
                "certificate and the data, or is there twice"
            )
    _require_order(where, listed, certificate, dataset)


def _require_order(where: Place, listed: list[dict[str, Any]], certificate: Certificate, dataset: Dataset) -> None:
    """Scores are those of the direction of the certificate, and the lowest come first; without scores the heaviest do."""
    unscored = [entry["score"] is None for entry in listed]
    order: list[Any]
    if all(unscored) and not certificate.y.size:
        order = [entry["point"] for entry in listed]
        expected = numbers_of(dataset, heaviest(certificate)[0]).tolist()
    elif any(unscored):
        raise CheckFailedError(f"{where}: conflicts have no scores, and the certificate has a direction that scores them")
    else:
        order = [(entry["score"], entry["point"]) for entry in listed]
        expected = sorted(order)
        if certificate.y.size:
            _require_scores(where, listed, certificate, dataset)
    if order != expected:
        raise CheckFailedError(f"{where}: conflicts are not in order: the most suspect come first")


def _require_scores(where: Place, listed: list[dict[str, Any]], certificate: Certificate, dataset: Dataset) -> None:
    score, error = scores(dataset, certificate)
    error = error + SAME * float(np.linalg.norm(certificate.y))
    numbers = numbers_of(dataset, np.asarray(certificate.support))
    place = np.searchsorted(numbers, [entry["point"] for entry in listed])
    said = np.array([entry["score"] for entry in listed])
    wrong = np.abs(said - score[place]) > error[place]
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        entry, true = listed[first], float(score[place][first])
        raise CheckFailedError(f"{where}: point {entry['point']} has score {entry['score']!r} in conflicts, it is {true!r}")
    if (np.delete(score + error, place) < said[-1] - float(np.max(error))).any():
        raise CheckFailedError(f"{where}: conflicts leave out a point that is more suspect than those that it names")


OF_ITS_OWN = ("folder", "certificate", "format")
"""What a run of several classes says of each beside what that says itself."""
SHARED = ("m", "n", "intercept", "eps")
"""What a run of several classes claims of each, and of all of them, as their own runs do."""
OF_ALL = {"positive": None, "many": True}
"""Where data is seen with all its classes."""


def has_verdict(run: Place, values: dict[str, Any]) -> bool:
    """Whether a run has a verdict. Raises CheckFailedError for what is none."""
    if values["verdict"] not in list(Verdict):
        raise CheckFailedError(f"{run / RESULT}: verdict is {values['verdict']!r}, which is none")
    return bool(values["verdict"] != UNDECIDED)


def require_whole(where: Place, whole: Values, values: Mapping[str, Values]) -> list[str]:
    """Raise CheckFailedError when a run of classes says of all of them what is not so; returns keys that nothing proves."""
    decided = sum(each["verdict"] != UNDECIDED for each in values.values())
    stopped = next((each["stopped"] for each in values.values() if each["stopped"] != Stop.VERDICT), str(Stop.VERDICT))
    facts = {"verdict": f"{decided} of {len(values)} classes decided", "stopped": stopped}
    for name, true in facts.items():
        if whole.get(name) != true:
            raise CheckFailedError(f"{where}: {name} is {whole.get(name)!r}, from the classes it follows that it is {true!r}")
    return [f"{name} of all classes" for name in whole if name not in (*PROVED, *facts, *SHARED)]


def require_listed(where: Place, whole: dict[str, Any], name: str, values: dict[str, Any]) -> None:
    """Raise CheckFailedError when a run of classes lists a class as other than it is, or it is of other data."""
    listed = whole[CLASSES][name]
    for key in sorted({*listed, *values} - {*OF_ITS_OWN}):
        if listed.get(key) != values.get(key):
            raise CheckFailedError(f"{where}: it lists {name} with {key} {listed.get(key)!r}, its run says {values.get(key)!r}")
    for key in SHARED:
        if whole[key] != values[key]:
            raise CheckFailedError(f"{where}: {key} is {whole[key]!r}, that of {name} is {values[key]!r}")
    of_all, of_one = ({**(each["data"] or {}), **OF_ALL} for each in (whole, values))
    if of_one != of_all or (values["data"] is None) != (whole["data"] is None):
        raise CheckFailedError(f"{where}: the run of {name} is about other data")
