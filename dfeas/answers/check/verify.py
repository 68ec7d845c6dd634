"""Certificates checked: of runs, of their classes, of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np

from dfeas.answers.check.claims import has_verdict, not_checked, require_claims, require_listed, require_whole
from dfeas.answers.check.proof import as_seen, find_data, prove_again
from dfeas.answers.files import CERTIFICATE, CLASSES, RESULT, SEPARATION, SUSPECTS, classes_of, load_result, load_values
from dfeas.answers.hard_margin import MARGIN, MarginClaim, distances
from dfeas.answers.load import load as load_answer
from dfeas.answers.words import FEASIBLE
from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source, resolve
from dfeas.data.source import DataSpec, Source, Transform, parse_view
from dfeas.data.storage.files import read_json
from dfeas.data.storage.places import Place, place
from dfeas.engine.local import LocalEngine, local_engine
from dfeas.errors import CheckFailedError, UndecidedError
from dfeas.problem import Function, Problem, Transforms
from dfeas.records import replace
from dfeas.settings import parse_bytes, require_type
from dfeas.verify.certificate import BALL, Certificate, Check, Kind, load
from dfeas.verify.core import Reach, check, check_each, positives, reach
from dfeas.verify.separation import CLAIMED as SEPARATION_KEYS
from dfeas.verify.separation import dimension_of, load_claim, prove, require_idle


def verify_run(
    run: str | Path,
    X: Any = None,
    y: Any = None,
    *,
    mask: Any = None,
    kernel: Function | None = None,
    quick: bool = False,
    memory: str | int | None = None,
    follow: bool = False,
) -> Check:
    """Check the certificates of a finished run against its data, and what all its files say against both.

    The certificates of all classes of a one-vs-rest run are checked in one read, with a kernel in two.

    Parameters
    ----------
    run : path
        Folder of the run.
    X, y, mask : optional
        The data, if it was in memory or has been moved, as of ``dfeas.solve``; of a run of ``dfeas.feasible`` A and b.
    kernel : callable, optional
        The Python function that was the kernel, if one was: no file keeps it.
    quick : bool
        For conflicts read only their blocks, and take all others to be what their stored checksums say. For a separator all
        points are read anyway.
    memory : int or str
        Budget in bytes for blocks.
    follow : bool
        Whether to read the data at a URL that only the run names. Who wrote the run chose it, and requests are signed with your
        credentials.

    Returns
    -------
    Check
        What was proved, and what the run says that nothing proves; for each class in ``classes``.

    Raises
    ------
    CheckFailedError
        The certificate does not prove the verdict, or a file claims something false.
    UndecidedError
        There is no verdict.
    UsageError
        The run has a URL as the place of its data, and neither ``X`` is given nor ``follow``.
    BadInputError, CorruptDataError
        There is no such run, its data was in memory and is not given, or files are damaged.

    Examples
    --------
    >>> import dfeas
    >>> import numpy as np
    >>> header = dfeas.ingest(np.array([[1.0, 2.0], [-1.0, -1.0]]), "data", y=["ham", "spam"])
    >>> result = dfeas.solve("data", out="run")
    >>> print(dfeas.verify_run("run").verdict)
    feasible
    """
    require_type("follow", follow, "bool")
    run_folder = place(run)
    if (run_folder / SUSPECTS).is_file():
        listed: Any = load_answer(run)
        return cast(Check, listed.verify(X, y, mask=mask, memory=memory, follow=follow))
    values = load_result(run_folder)
    if "violated" in values:
        answer: Any = load_answer(run)
        shown: Check = answer.verify(X, y, memory=memory, follow=follow)
        files = sorted(path.name for path in run_folder.iterdir() if path.name != RESULT)
        beside = [name for name in values if name not in (*OF_SYSTEMS, "asked")]
        beside += ["names of conflict"] if X is not None and values.get("conflict") else []
        return replace(shown, not_checked=(*beside, *files))
    given = DataSpec(X, y, mask=mask)
    if CLASSES in values:
        return _verify_classes(run_folder, values, given, kernel, quick, memory, follow)
    if not has_verdict(run_folder, values):
        raise UndecidedError(f"{run_folder}: the run ended undecided ({values.get('stopped')}): it claims nothing to check")
    values = load_values(run_folder)
    certificate, claim = load(run_folder / CERTIFICATE), MarginClaim.load(run_folder)
    spec = find_data(run_folder, values, given, certificate.view, follow)
    dataset = open_source(Source(spec, cones=True).within(parse_bytes(memory)))
    with local_engine(dataset, parse_bytes(memory)) as engine:
        proved = _prove_run(engine, dataset, certificate, claim, kernel, quick)
        count, reached = positives(engine, dataset), None
        if claim is not None and proved.verdict == FEASIBLE:
            hulls = claim.upper() if dataset.intercept else None
            reached = reach(engine, dataset, certificate, hulls)
            proved = _prove_distance(proved, reached, certificate, dataset)
        free = claim is not None and dataset.intercept  # the tolerance is that of the distance, which the claim has
        plain = {**values, "margin_tolerance": None} if free else values
        require_claims(run_folder / RESULT, plain, proved, certificate, dataset, count)
        kind = _prove_kind(run_folder / SEPARATION, engine, dataset, certificate.fingerprint, proved)
    beside = not_checked(values, proved, certificate)
    if claim is not None:
        beside.extend(claim.require(values, certificate, reached))
    if kind is not None:
        beside.extend(f"{name} of {SEPARATION}" for name in read_json(run_folder / SEPARATION) if name not in SEPARATION_KEYS)
    beside.extend(sorted(path.name for path in run_folder.iterdir() if path.name not in OPENED))
    transform, text = dataset.transform, proved.message
    if transform is not None and transform.features and transform.points < dataset.n:
        text += f"; features are seen with the numbers of the first {transform.points} of {dataset.n} points"
    return replace(proved, message=text, separation=kind, not_checked=tuple(beside))


OPENED = (RESULT, CERTIFICATE, SEPARATION, MARGIN)
"""Files of a run that are opened."""


OF_SYSTEMS = (
    *("verdict", "proof", "m", "n", "fingerprint", "x", "violated", "exact"),
    *("rows", "u", "v", "upper", "lower", "conflict"),
)
"""Keys of a result of ``dfeas.feasible`` that are proved or compared with the system."""


def _prove_run(
    engine: LocalEngine,
    dataset: Dataset,
    certificate: Certificate,
    claim: MarginClaim | None,
    kernel: Function | None,
    quick: bool,
) -> Check:
    """What a certificate proves; with weights that the margin is the widest, with a ball beside how infeasible all are."""
    conflict = certificate.kind == "gordan"
    upper = None if claim is None or (dataset.intercept and not conflict) else claim.upper()
    if claim is None or upper is None:
        return check(engine, dataset, certificate, kernel, quick=quick)
    kind, y = (BALL, np.array([float(each) for each in claim.values["w"] or []])) if conflict else ("gordan", np.empty(0))
    weights = replace(certificate, kind=kind, y=y, support=upper[0], weights=upper[1])
    proved, above = check_each(engine, dataset, [certificate, weights], kernel, quick=quick).answers
    for answer in (proved, above):
        if isinstance(answer, CheckFailedError):
            raise answer
    assert isinstance(proved, Check)
    assert isinstance(above, Check)
    if conflict:
        text = f"{proved.message}; {above.message}"
        return replace(proved, margin_upper=above.margin_upper, rounding=above.rounding, message=text)
    if proved.verdict != FEASIBLE or above.margin_upper < proved.margin_lower:
        raise CheckFailedError(f"{MARGIN}: its weights contradict the certificate")
    share = 1 - proved.margin_lower / above.margin_upper
    text = f"{proved.message}; no unit vector has more than {above.margin_upper:.6g}: it is the maximum up to {share:.2g} of it"
    return replace(proved, margin_upper=above.margin_upper, rounding=above.rounding, message=text)


def _prove_distance(proved: Check, reached: Reach, certificate: Certificate, dataset: Dataset) -> Check:
    """With how near a hyperplane with a free bias is to the farthest from its nearest point, where weights show it."""
    lower, upper = distances(certificate.y, dataset.m, reached)
    if lower is None or upper is None:
        return proved
    if upper < lower:
        raise CheckFailedError(f"{MARGIN}: its weights contradict the certificate")
    text = f"its distance is at least {lower:.6g}, and that of no hyperplane above {upper:.6g}: it is the widest up to"
    return replace(proved, message=f"{proved.message}; {text} {1 - lower / upper:.2g} of it")


def _prove_kind(where: Place, engine: LocalEngine, dataset: Dataset, fingerprint: str, proved: Check) -> Kind | None:
    """What ``separation.json`` of a run on data with a fingerprint says beyond what is ``proved``; None when there is none.
    Raises CheckFailedError when it does not follow from the data, or is not proved as it says.
    """
    if not where.exists():
        return None
    claim = load_claim(where)
    try:
        if claim.fingerprint != fingerprint:
            raise CheckFailedError("it is about other data than the run")
        if not claim.kind:
            if claim.y is not None or len(claim.weights) or claim.flat.size or claim.on or claim.proof != "none":
                raise CheckFailedError("it decides nothing, and has evidence of something")
            return Kind("not decided", "none")
        proof = prove(engine, dataset, claim, proved)
        require_idle(claim, dimension_of(dataset))
        if claim.proof != proof:
            raise CheckFailedError(f"it says that {claim.kind} is proved {claim.proof}; the proof is {proof}")
    except CheckFailedError as error:
        raise CheckFailedError(f"{where}: {error}") from None
    return Kind(claim.kind, proof)


def _verify_classes(
    path: Place,
    whole: dict[str, Any],
    given: DataSpec,
    kernel: Function | None,
    quick: bool,
    memory: str | int | None,
    follow: bool,
) -> Check:
    folders = classes_of(path) or {}
    answers: dict[str, Check | None] = dict.fromkeys(folders)
    values = {name: load_result(folder) for name, folder in folders.items()}
    for name, each in values.items():
        require_listed(path / RESULT, whole, name, each)
    decided = [name for name, each in values.items() if has_verdict(folders[name], each)]
    if not decided:
        raise UndecidedError(f"{path}: no class has a verdict ({whole.get('stopped')}): they claim nothing to check")
    evidence = [load(folders[name] / CERTIFICATE) for name in decided]
    spec = find_data(path, {**whole, "sides": None}, given, evidence[0].view, follow)
    spec = replace(spec, positive=None, one_vs_rest=True)
    dataset = open_source(Source(spec).within(parse_bytes(memory)))
    if dataset.fingerprint not in ("", whole["fingerprint"]):
        raise CheckFailedError(f"{path / RESULT}: fingerprint is {whole['fingerprint']!r}, which is not that of the data")
    with local_engine(dataset, parse_bytes(memory)) as engine:
        checked = check_each(engine, dataset, evidence, kernel, quick=quick)
        counts = {name: positives(engine, dataset.against_rest(name)) for name in decided}
    beside = require_whole(path / RESULT, whole, values)
    for name, certificate, proved in zip(decided, evidence, checked.answers, strict=True):
        if isinstance(proved, CheckFailedError):
            raise CheckFailedError(f"{folders[name]}: {proved}")
        viewed = dataset.against_rest(name)
        if parse_view(certificate.view) != parse_view(viewed.view):
            raise CheckFailedError(f"{folders[name]}: the certificate is about another class")
        require_claims(folders[name] / RESULT, values[name], proved, certificate, viewed, counts[name])
        more = [*not_checked(values[name], proved, certificate), *beside]
        more.extend(sorted(each.name for each in folders[name].iterdir() if each.name not in OPENED))
        answers[name] = replace(proved, not_checked=tuple(more))
    return Check.of_classes(answers)


def verify_certificate(
    X: Any,
    certificate: str | Path | Certificate,
    *,
    y: Any = None,
    positive: str | None = None,
    intercept: bool | None = None,
    mask: Any = None,
    transform: Transforms = (),
    kernel: Function | None = None,
    quick: bool = False,
    memory: str | int | None = None,
) -> Check:
    """Check a certificate against data, by path or in memory, in one read.

    The certificate itself says how features are scaled and centred, and its numbers are compared with the data; if you give
    ``transform``, it must be about that.

    Parameters
    ----------
    X : array (n, m), data frame, path, paths, or cones
        As ``dfeas.solve`` takes them.
    certificate : path, or Certificate
        The file, ``certificate.npz``, or ``evidence`` of a result.
    y, positive, intercept, mask, transform : optional
        As in ``dfeas.solve``.
    kernel, quick, memory : optional
        As in ``dfeas.verify_run``.

    Returns
    -------
    Check
        What was proved.

    Raises
    ------
    CheckFailedError
        The certificate proves nothing about this data.
    UsageError, BadInputError, CorruptDataError
        As in ``dfeas.solve``.

    Examples
    --------
    >>> import dfeas
    >>> import numpy as np
    >>> header = dfeas.ingest(np.array([[1.0, 2.0], [-1.0, -1.0]]), "data", y=["ham", "spam"])
    >>> result = dfeas.solve("data", out="run")
    >>> print(dfeas.verify_certificate("data", "run/certificate.npz").proof)
    rigorous
    """
    asked = Problem.of(X, y, positive=positive, intercept=intercept, mask=mask, transform=transform).spec
    made = certificate if isinstance(certificate, Certificate) else load(place(certificate))
    where = "the certificate" if made is certificate else certificate
    about, seen = parse_view(made.view)
    if about is not None and asked.positive not in (None, about):
        raise CheckFailedError(f"{where}: it is about class {about} against the rest, not {asked.positive}")
    own = seen or Transform()
    if asked.transform and asked.transform != Transform(own.scale, own.center, own.normalize):
        raise CheckFailedError(f"{where}: it is about points {own.words}, not {asked.transform.words}")
    asked = replace(asked, intercept=False if asked.intercept is None and made.kernel else asked.intercept)
    source = resolve(Source(asked))
    return prove_again(where, as_seen(source.spec, made.view), made, kernel, quick, memory, source.there)
