"""What ``result.json`` of a run claims, compared with what was proved of it, with its certificate, and with the data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dfeas.data.dataset import Dataset
from dfeas.errors import CheckFailedError
from dfeas.geometry.registry import geometry_of
from dfeas.problem import LEAST_EPS
from dfeas.run.recovery import MOST, carriers
from dfeas.run.result_files import CLASSES, RESULT
from dfeas.run.termination import EPS_INFEASIBLE, FEASIBLE, INFEASIBLE, UNDECIDED, Proof, Stop, Verdict
from dfeas.verify.certificate import Certificate, Check

PROOFS = list(Proof)
SAME = 1e-9
"""Relative difference of a bound between machines, whose sums run in other orders."""
SAME_KERNEL = 1e-3
"""The same with a kernel, where a margin depends on what else was checked: several times ``verify.kernel.SHARP``."""

Values = Mapping[str, Any]


def require_claims(where: Path, values: Values, proved: Check, certificate: Certificate, dataset: Dataset) -> None:
    """Raise CheckFailedError when what a run with a verdict claims is not what is proved, or not so of the data.

    Not looked at: how it came to its verdict (method, why, passes, reads, seconds, versions), and sentences.
    """
    _require_verdict(where, values, proved)
    facts = {
        "m": dataset.m,
        "n": dataset.n,
        "intercept": dataset.intercept,
        "fingerprint": certificate.fingerprint,
        "kernel": json.loads(certificate.kernel) if certificate.kernel else None,
    }
    if values.get("stopped") == Stop.VERDICT:  # of others it said only that there is a verdict, once
        facts["success"] = True
    for name, true in facts.items():
        if values.get(name) != true:
            raise CheckFailedError(f"{where}: {name} is {values.get(name)!r}, that of the data is {true!r}")
    _require_bracket(where, values, proved)
    _require_conflicts(where, values, certificate, dataset)


def _require_verdict(where: Path, values: Values, proved: Check) -> None:
    """The verdict, why the run ended, and how sure it is."""
    claimed, eps = values["verdict"], values["eps"]
    if not LEAST_EPS <= eps < 1:
        raise CheckFailedError(f"{where}: eps is {eps!r}, expected a number from {LEAST_EPS:g} to below 1")
    weaker = claimed == EPS_INFEASIBLE and proved.verdict == INFEASIBLE
    if claimed != proved.verdict and not weaker:
        raise CheckFailedError(f"{where}: the certificate proves {proved.verdict}, the run claims {claimed}")
    if claimed == EPS_INFEASIBLE and not proved.margin_upper <= eps:
        raise CheckFailedError(f"{where}: |Ax| <= {proved.margin_upper:.6g} is proved, the run claims {eps:g}")
    stopped = values.get("stopped")
    if stopped not in list(Stop) or (claimed != FEASIBLE and stopped != "verdict"):
        raise CheckFailedError(f"{where}: stopped is {stopped!r}, which no run is that ended {claimed}")
    proof = values.get("proof")
    if proof not in PROOFS or PROOFS.index(proof) > PROOFS.index(Proof(proved.proof)):
        raise CheckFailedError(f"{where}: proof is {proof!r}, the certificate is a proof of level {proved.proof}")


def _require_bracket(where: Path, values: Values, proved: Check) -> None:
    """The end that is proved, as far as rounding lets it be the same; and that the other one is on its side."""
    lower, upper = (_finite(where, values, name) for name in ("margin_lower", "margin_upper"))
    if lower > upper:
        raise CheckFailedError(f"{where}: margin_lower is {lower!r}, above margin_upper, {upper!r}")
    if proved.verdict == FEASIBLE:
        name, end, known = "margin_lower", lower, proved.margin_lower
    else:
        name, end, known = "margin_upper", upper, proved.margin_upper
    if values["verdict"] == EPS_INFEASIBLE and proved.verdict == INFEASIBLE and 0 <= end <= values["eps"]:
        return  # a bound of zero
    same = (SAME_KERNEL if values.get("kernel") else SAME) * abs(known) + 2 * proved.rounding
    if not abs(end - known) <= same:
        raise CheckFailedError(f"{where}: {name} is {end!r}, {known!r} is proved")


def _finite(where: Path, values: Values, name: str) -> float:
    number = values.get(name)
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise CheckFailedError(f"{where}: {name} is {number!r}, expected a finite number")
    return number


def _require_conflicts(where: Path, values: Values, certificate: Certificate, dataset: Dataset) -> None:
    """Points that are named carry the certificate, with these labels and weights; and all do, or none, as |Ax| says."""
    listed = values.get("conflicts")
    accused = values["verdict"] == INFEASIBLE and geometry_of(dataset).names_points
    count = min(MOST, len(certificate.support)) if accused else 0
    if not isinstance(listed, list) or len(listed) != count:
        said = len(listed) if isinstance(listed, list) else repr(listed)
        raise CheckFailedError(f"{where}: conflicts names {said} points, those of the certificate that conflict are {count}")
    if not listed:
        return
    named = (entry.get("point") for entry in listed if isinstance(entry, dict))
    true = carriers(dataset, certificate, [point for point in named if isinstance(point, int)])
    for entry in listed:
        point, label, weight = (entry.get(name) if isinstance(entry, dict) else None for name in ("point", "label", "weight"))
        if not isinstance(point, int) or true.pop(point, None) != (label, weight):
            raise CheckFailedError(
                f"{where}: conflicts has point {point!r} with label {label!r} and weight {weight!r}, which is not one of the "
                "certificate and the data, or is there twice"
            )


CLAIMED = ("verdict", "stopped", "proof", "margin_lower", "margin_upper", "conflicts", "fingerprint")
SHARED = ("m", "n", "intercept", "eps")
"""What a run of several classes claims of each, and of all of them, as their own runs do."""
OF_ALL = {"positive": None, "many": True}
"""Where data is seen with all its classes."""


def has_verdict(run: Path, values: dict[str, Any]) -> bool:
    """Whether a run has a verdict. Raises CheckFailedError for what is none."""
    if values["verdict"] not in list(Verdict):
        raise CheckFailedError(f"{run / RESULT}: verdict is {values['verdict']!r}, which is none")
    return bool(values["verdict"] != UNDECIDED)


def require_listed(where: Path, whole: dict[str, Any], name: str, values: dict[str, Any]) -> None:
    """Raise CheckFailedError when a run of classes lists a class as other than it is, or it is of other data."""
    listed = whole[CLASSES][name]
    for key in (*CLAIMED, *SHARED):
        if listed.get(key) != values.get(key):
            raise CheckFailedError(f"{where}: it lists {name} with {key} {listed.get(key)!r}, its run says {values.get(key)!r}")
    for key in SHARED:
        if whole[key] != values[key]:
            raise CheckFailedError(f"{where}: {key} is {whole[key]!r}, that of {name} is {values[key]!r}")
    if not isinstance(values["data"], dict) or {**values["data"], **OF_ALL} != {**whole["data"], **OF_ALL}:
        raise CheckFailedError(f"{where}: the run of {name} is about other data")
