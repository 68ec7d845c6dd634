"""``dfeas verify``: a certificate, or a whole run, against the stored data."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from dfeas.blas import processors
from dfeas.certificate import load
from dfeas.engine import LocalEngine
from dfeas.errors import BadInputError, CheckFailedError, UsageError
from dfeas.kernels.kernel import Function
from dfeas.memory import DEFAULT_MEMORY, parse_bytes, threads_that_fit
from dfeas.result import CERTIFICATE, CLASSES, RESULT, classes_of, load_result
from dfeas.store import Source, Transform, for_checker, open_source, source_of
from dfeas.store.transform import seen_as
from dfeas.termination import EPS_INFEASIBLE, FEASIBLE, INFEASIBLE
from dfeas.transforming import asked_transform
from dfeas.verify import Check
from dfeas.verify_any import check_any, check_each

SAME = 1e-9
"""Relative difference of a bound between machines, whose sums run in other orders."""
SAME_KERNEL = 1e-3
"""The same with a kernel, where a margin depends on what else was checked: several times ``verify_sums.SHARP``."""


def verify_run(run: str | Path, memory: str | int = DEFAULT_MEMORY, kernel: Function | None = None) -> Check:
    """Check the certificate of a finished run against its data, and the verdict against both.

    A ``kernel`` that is a function of Python is not kept in a file, and is needed again.

    Raises CheckFailedError when the certificate does not prove the verdict.
    """
    run_folder = Path(run)
    values = load_result(run_folder)
    if CLASSES in values:
        raise BadInputError(f"{run_folder}: a run of several classes; name the folder of one, or use verify_classes")
    data = values["data"]
    if not isinstance(data, dict):
        raise BadInputError(f"{run_folder}: the data was in memory; use dfeas verify DATA {run_folder / CERTIFICATE}")
    if values["verdict"] not in (FEASIBLE, INFEASIBLE, EPS_INFEASIBLE):
        raise CheckFailedError(f"{run_folder}: the run ended {values['verdict']} ({values.get('stopped')}), nothing to check")
    proved, facts = _checked(source_of(data, cones=True), run_folder / CERTIFICATE, memory, kernel)
    _judge(run_folder, values, proved, facts)
    return proved


def verify_classes(
    run: str | Path, memory: str | int = DEFAULT_MEMORY, kernel: Function | None = None
) -> dict[str, Check | None]:
    """Check the certificates of all classes of a one-vs-rest run in one read, and the verdicts; None for undecided classes.

    With a kernel it takes two reads; one that is a function of Python is not kept in a file, and is needed again.

    Raises CheckFailedError when one does not prove its verdict, or none has any, BadInputError when it is no such run.
    """
    path = Path(run)
    folders = classes_of(path)
    if folders is None:
        raise BadInputError(f"{path}: a run without classes; use verify_run")
    whole = load_result(path)
    if not isinstance(whole["data"], dict):
        raise BadInputError(f"{path}: the data was in memory; a certificate is checked by dfeas verify DATA CERTIFICATE")
    found: dict[str, Check | None] = dict.fromkeys(folders)
    values = {name: load_result(folder) for name, folder in folders.items()}
    decided = [name for name, each in values.items() if each["verdict"] in (FEASIBLE, INFEASIBLE, EPS_INFEASIBLE)]
    if not decided:
        raise CheckFailedError(f"{path}: no class has a verdict, nothing to check")
    evidence = [load(folders[name] / CERTIFICATE) for name in decided]
    dataset = open_source(for_checker(source_of({**whole["data"], "positive": None, "many": True})))
    with closing(LocalEngine(dataset, threads_that_fit(dataset, parse_bytes(memory), processors()))) as engine:
        checks = check_each(engine, dataset, evidence, kernel)
    for name, certificate, check in zip(decided, evidence, checks, strict=True):
        if isinstance(check, CheckFailedError):
            raise CheckFailedError(f"{folders[name]}: {check}")
        if seen_as(certificate.view) != seen_as(dataset.against_rest(name).view):
            raise CheckFailedError(f"{folders[name]}: the certificate is about another class")
        facts = {"m": dataset.m, "n": dataset.n, "fingerprint": certificate.fingerprint}
        _judge(folders[name], values[name], check, facts)
        listed = whole[CLASSES][name]
        if listed.get("verdict") != values[name]["verdict"]:
            raise CheckFailedError(f"{path / RESULT}: it lists {name} as {listed.get('verdict')}, {check.verdict} is proved")
        found[name] = check
    return found


def _judge(run_folder: Path, values: dict[str, Any], proved: Check, facts: dict[str, Any]) -> None:
    """Raise CheckFailedError when what a run claims is not what is proved."""
    claimed, eps = values["verdict"], float(values["eps"])
    if claimed == EPS_INFEASIBLE and proved.verdict == EPS_INFEASIBLE:
        if proved.margin_upper > eps:
            raise CheckFailedError(f"{run_folder}: |Ax| <= {proved.margin_upper:.6g} is proved, the run claims {eps:g}")
    elif claimed != proved.verdict and not (claimed == EPS_INFEASIBLE and proved.verdict == INFEASIBLE):
        raise CheckFailedError(f"{run_folder}: the certificate proves {proved.verdict}, the run claims {claimed}")
    _check_claims(run_folder / RESULT, values, proved, facts)


def _check_claims(where: Path, values: dict[str, Any], proved: Check, facts: dict[str, Any]) -> None:
    """What else the run says of the data and of the proved end of its bracket."""
    for name, true in facts.items():
        if values.get(name) != true:
            raise CheckFailedError(f"{where}: {name} is {values.get(name)!r}, that of the data is {true!r}")
    name = "margin_lower" if proved.verdict == FEASIBLE else "margin_upper"
    end, known = values.get(name), getattr(proved, name)
    same = SAME_KERNEL if values.get("kernel") else SAME
    if not isinstance(end, int | float) or not abs(end - known) <= same * abs(known):
        raise CheckFailedError(f"{where}: {name} is {end!r}, {known!r} is proved")


def verify_certificate(
    path: str | Path,
    certificate: str | Path,
    *,
    labels: str | Path | None = None,
    positive: str | None = None,
    intercept: bool = False,
    also: Sequence[str | Path] = (),
    mask: str | Path | None = None,
    scale: str | None = None,
    center: bool = False,
    normalize: bool = True,
    memory: str | int = DEFAULT_MEMORY,
    kernel: Function | None = None,
) -> Check:
    """Check a certificate file against data by path, in one read. Raises CheckFailedError when it proves nothing.

    A certificate says itself how features are scaled and centred, and its numbers are compared with the data; when ``scale``,
    ``center`` or ``normalize`` say something, it must be about that. A ``kernel`` that is a function of Python is not kept in a
    file, and is needed again.
    """
    asked = asked_transform(scale, center, normalize)
    seen, transform = seen_as(load(Path(certificate)).view)
    if seen is not None and positive not in (None, seen):
        raise CheckFailedError(f"{certificate}: it is about class {seen} against the rest, not {positive}")
    told = Transform() if transform is None else Transform(transform.scale, transform.center, transform.normalize)
    if asked and asked != told:
        raise CheckFailedError(f"{certificate}: it is about points {told.words}, not {asked.words}")
    if also and labels is not None:
        raise UsageError("also is for datasets with labels of their own: leave out labels")
    many = labels is not None and seen is not None
    place = str(path), None if labels is None else str(labels), seen or positive, intercept, many
    picked = tuple(str(each) for each in also), None if mask is None else str(mask)
    cones = not (also or mask is not None or transform is not None)
    return _checked(Source(*place, *picked, cones=cones, transform=transform), Path(certificate), memory, kernel)[0]


def _checked(
    source: Source, certificate: Path, memory: str | int, kernel: Function | None = None
) -> tuple[Check, dict[str, Any]]:
    """What is proved, and what the data is."""
    evidence = load(certificate)
    dataset = open_source(for_checker(source))
    engine = LocalEngine(dataset, threads_that_fit(dataset, parse_bytes(memory), processors()))
    try:
        facts = {"m": dataset.m, "n": dataset.n, "fingerprint": evidence.fingerprint}
        return check_any(engine, dataset, evidence, kernel), facts
    finally:
        engine.close()
