"""Runs that look for a verdict: their tasks, what they will take, and what is returned of one task, or of several together."""

from __future__ import annotations

import json
import math
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from dfeas.answers.files import versions
from dfeas.answers.result import STRICTLY, Result, Side, Sides
from dfeas.answers.trace import Sink
from dfeas.answers.words import EPS_INFEASIBLE, FEASIBLE, INFEASIBLE, UNDECIDED, Proof, Stop, Verdict
from dfeas.data.collections import collection_of, fetched_share
from dfeas.data.dataset import Dataset
from dfeas.errors import CheckFailedError
from dfeas.geometry.protocol import Geometry, facts_of
from dfeas.linalg.points import working_type
from dfeas.methods.protocol import Sparse, weights_at_once
from dfeas.methods.working_set.start import TRAITS
from dfeas.passes.softmin import roundings
from dfeas.problem import EPS, LEAST_EPS, OWN_METHODS
from dfeas.records import replace
from dfeas.run.cost import PROBE, Probe, Projection, abreast, project
from dfeas.run.recovery import Portions
from dfeas.run.resources import RunOptions, never
from dfeas.run.session import Session, Surveyed
from dfeas.run.spec import SEPARATED, RunSpec
from dfeas.run.task import Outcome, VerdictTask, without_a_pass
from dfeas.run.termination import Goal, Record, describe_ending
from dfeas.verify.certificate import Certificate, Check

if TYPE_CHECKING:
    from dfeas.answers.several import OneVsRest, Race


class VerdictTarget(Struct, frozen=True, dict=True):
    """A verdict for each task."""

    session: Session
    job: RunSpec
    probe: Probe = PROBE

    @property
    def geometry(self) -> Geometry:
        return self.session.geometry(self.job.kernel)

    @property
    def abreast(self) -> int:
        """Only classes wait for memory."""
        job = self.job
        if not job.classes:
            return len(job.names)
        return abreast(self.geometry, job.methods[0], len(job.classes), self.session.dataset, job.asked.memory)

    @cached_property
    def projection(self) -> Projection:
        session, request = self.session, self.job.asked
        return project(
            self.geometry,
            session.dataset,
            self.job.methods,
            request.memory,
            request.margin,
            workers=session.workers,
            threads=session.threads,
            classes=self.abreast if self.job.classes else 1,
            max_passes=request.max_passes,
        )

    def project_cost(self) -> Projection:
        """The speed is measured on large data, whose first pass is long."""
        session, dataset = self.session, self.session.dataset
        if self.job.kernel or dataset.header is None or not self.probe.worth(session.engine, dataset):
            return self.projection
        return replace(self.projection, seconds=self.probe.seconds(session.engine, dataset))

    def ask_first(self) -> tuple[Surveyed | None, dict[str, Outcome] | None]:
        """The sum of all points in memory, dense ones that nobody has read, where any separator is asked for and a working set
        would look for it.
        """
        job = self.job
        if job.several or job.kernel or job.start is not None or job.tolerance is not None or job.then:
            return None, None
        (name,) = job.names
        dataset, asked = self.session.dataset, job.asked
        read = dataset.header is not None or dataset.surveyed is not None
        if name != TRAITS.name or read or dataset.entries is not None or not dataset.in_memory or dataset.blocks == 1:
            return None, None
        from dfeas.run.centroid import ask_centroid  # of arrays in memory only
        from dfeas.run.columns import ColumnSolver

        facts = facts_of(dataset, asked.memory)
        columns = ColumnSolver.for_run(dataset, facts, asked.memory, asked.limits.until(never))
        surveyed, outcome = ask_centroid(self.session, name, columns)
        return surveyed, None if outcome is None else {name: outcome}

    def settle(self, surveyed: Surveyed) -> dict[str, Outcome] | None:
        """A zero point is a Gordan certificate by itself, for any labels. Raises CheckFailedError if the checker sees none."""
        session, job = self.session, self.job
        if surveyed.zero is None or session.dataset.intercept or not self.geometry.zero_is_origin:
            return None
        certificates = []
        for name in job.names:
            labelled = session.dataset.against_rest(name) if job.classes else session.dataset
            at, one = np.array([surveyed.zero]), np.ones(1)
            zero = Certificate("gordan", labelled.fingerprint, support=at, weights=one, kernel=job.kernel, view=labelled.view)
            certificates.append(zero)
        outcomes, checked = {}, session.checking(certificates)
        for name, certificate, check in zip(job.names, certificates, checked.answers, strict=True):
            if isinstance(check, CheckFailedError):
                raise check
            outcomes[name] = without_a_pass(job.method_of(name)[0], certificate, check, checked.reads)
        return outcomes

    def tasks(self, surveyed: Surveyed, sinks: dict[str, list[Sink]]) -> list[VerdictTask]:
        session, job, dataset, request = self.session, self.job, self.session.dataset, self.job.asked
        geometry, count = self.geometry, self.abreast
        make = geometry.maker(dataset, request.memory, count if job.classes else None)
        if geometry.expands:
            session.engine.keep_pairs(self.projection.tile_bytes, session.tiles)
        eps = request.eps or 0.0
        facts = facts_of(dataset, request.memory // count, job.tolerance, surveyed.radius, eps)
        facts = replace(facts, start=job.start)
        portions = Portions()
        if geometry.weighs_by_block and collection_of(dataset) is None:
            portions = Portions.of(dataset, weights_at_once(facts), session.scratch)
        tasks = []
        for name in job.names:
            method = make(job.method_of(name)[0])
            labelled, code = dataset, None
            if job.classes:
                labelled, code = dataset.against_rest(name), dataset.codes[dataset.classes.index(name)]
            task = VerdictTask(method, method.init(facts), Goal(request.eps, job.tolerance), sinks[name], code=code)
            task.kernel, task.view, task.fingerprint = job.kernel, labelled.view, labelled.fingerprint
            if method.traits.weighs_all and geometry.weighs_by_block:
                kind = working_type(dataset.dtype) if job.tolerance is None else np.dtype(np.float64)
                task.rounded = roundings(kind, dataset.entries is not None, labelled.n, labelled.dimension)
            task.inspector, task.portions, task.brief = session.checking, portions, geometry.brief(facts)
            tasks.append(task)
        return tasks

    def together(self, results: dict[str, Any], reads: float) -> Race | OneVsRest:
        from dfeas.answers.several import OneVsRest, Race

        if self.job.race:
            return Race.of(results, reads)
        return OneVsRest(results, reads, max(result.seconds for result in results.values()), self.session.dataset.fingerprint)

    def result(self, name: str, outcome: Outcome, surveyed: Surveyed, how: RunOptions) -> Result:
        """What is returned of a task; one that was no race goes through the exact search where float64 leaves it open."""
        session, job = self.session, self.job
        if job.classes:
            spec = replace(session.source.spec, positive=name)
            viewed = session.dataset.against_rest(name)
            checking = replace(session.checking, dataset=session.checking.dataset.against_rest(name))
            session = replace(session, dataset=viewed, source=replace(session.source, spec=spec), checking=checking)
        dataset = session.dataset
        exact = not job.race and self.geometry.exact and not (dataset.transform or job.then == SEPARATED)
        if exact and outcome.is_open:
            from dfeas.run.exact.search import exact_outcome

            outcome = exact_outcome(session, job, outcome, how)
        positive = surveyed.positive
        if job.classes:
            positive = dataset.count(self.session.dataset.codes[self.session.dataset.classes.index(name)])
        return result_of(session, job, outcome, job.method_of(name)[1], surveyed.reads + outcome.reads, positive)


def result_of(session: Session, job: RunSpec, outcome: Outcome, why: str, reads: float, positive: int) -> Result:
    """What is returned of an outcome; ``reads`` in all, and so many points have the label +1."""
    dataset, record, proved = session.dataset, outcome.record, outcome.check
    request, certificate = job.asked, outcome.certificate
    if certificate is not None and dataset.features:
        certificate = replace(certificate, features=dataset.features)
    separated = proved is not None and proved.verdict == FEASIBLE
    lower, upper = bracket(record, proved)
    detail = describe_ending(outcome.decision, record) if proved is None else proved.message
    detail += _advice(dataset, job, record, proved)
    x = dual = None
    if dataset.program is not None and proved is not None:
        if proved.verdict == FEASIBLE and certificate is not None:
            x = dataset.program.x(certificate.y)
        elif certificate is not None:
            dual = dataset.program.dual(dataset.unscale(certificate.support, certificate.weights))
        detail = dataset.program.explain(proved.verdict, detail, dual)
    if proved is not None and dataset.cones is not None and proved.verdict in STRICTLY:
        detail = f"{STRICTLY[proved.verdict]}: {detail}"
    named: list[dict[str, Any]] = []
    if (
        proved is not None
        and proved.verdict == INFEASIBLE
        and session.geometry(job.kernel).names_points
        and outcome.certificate is not None
    ):
        from dfeas.answers.check.conflicts import conflicts

        named, y = conflicts(dataset, outcome.certificate, outcome.evidence)
        names = dataset.name_points([each["point"] for each in named])
        if any(name != point for point, name in names.items()):
            named = [{**each, "name": names[each["point"]]} for each in named]
        certificate = certificate if certificate is None or y is None else replace(certificate, y=y)
    reads += fetched_share(dataset)
    return Result(
        verdict=UNDECIDED if proved is None else Verdict(proved.verdict),
        stopped=Stop(outcome.decision.stopped),
        proof=Proof.NONE if proved is None else Proof(proved.proof),
        method=record.method,
        why=why,
        m=dataset.m,
        n=dataset.n,
        intercept=dataset.intercept,
        margin_lower=lower,
        margin_upper=upper,
        eps=request.eps,
        margin_tolerance=request.margin_tolerance,
        passes=record.passes,
        reads=reads,
        iterations=record.iterations,
        bytes_read=round(reads * dataset.stored_bytes),
        seconds=time.monotonic() - request.began if outcome.ended is None else outcome.ended,
        certificate=None,
        fingerprint=dataset.fingerprint,
        versions=versions(),
        **session.crew(),
        data=session.source.spec.to_json(),
        conflicts=named,
        detail=detail,
        kernel=json.loads(job.kernel) if job.kernel else None,
        sides=sides_of(session, job, positive),
        features=list(dataset.features) or None,
        evidence=certificate,
        weighed=_sparse_weights(outcome) if separated else None,
        nearest=outcome.evidence.nearest()
        if separated and outcome.evidence.nearest and not (job.several or job.then)
        else None,
        points=session.dataset.without_cache() if job.kernel and not job.data.by_path else None,
        function=session.checking.function,
        x=x,
        dual=dual,
    )


def _advice(dataset: Dataset, job: RunSpec, record: Record, proved: Check | None) -> str:
    """How to ask about more hyperplanes, where none through the origin separates points with labels; for which eps the
    upper end of an undecided bracket is an answer; and what the eps of the papers leaves open, where nobody said one.
    """
    method, upper = record.method, record.sums
    if proved is None:
        enough = max(2 * upper, LEAST_EPS)
        low = job.asked.eps is None and enough <= EPS
        return f"; margins are at most {upper:.3g}, which eps={enough:.1g} (--eps) takes for an answer" if low else ""
    wider = proved.verdict != FEASIBLE and dataset.classes and not (dataset.intercept or job.kernel or job.data.point)
    advice = "; intercept=True (--intercept) asks about any hyperplane" if wider else ""
    ours = method in OWN_METHODS or dataset.cones is not None
    if proved.verdict == EPS_INFEASIBLE and job.asked.eps == EPS and not ours:
        eps = f"; {method} looks for margins above eps={EPS:g} where no other eps is given: a hyperplane with a margin of up to"
        advice = f"{eps} {upper:.3g} may still separate the points, which method=auto (--method auto) decides{advice}"
    return advice


def sides_of(session: Session, job: RunSpec, positive: int) -> Sides | None:
    """Which class is which label, and points of each; None where points have no labels to have."""
    if job.data.point is not None or not session.geometry(job.kernel).labelled:
        return None
    return {label: Side(*side) for label, side in session.dataset.sides(positive).items()}


def bracket(record: Record, proved: Check | None) -> tuple[float, float]:
    """Both ends as they are reported. What is not proved is as good as the arithmetic of the method: it may be on the wrong
    side of what is proved by rounding, and tells nothing where it is not finite.
    """
    lower = float(record.margin_lower) if math.isfinite(record.margin_lower) else -1.0
    upper = float(record.margin_upper) if math.isfinite(record.margin_upper) else 1.0
    if proved is None:
        return min(lower, upper), max(lower, upper)
    if proved.verdict == FEASIBLE:
        return proved.margin_lower, max(proved.margin_lower, min(upper, proved.margin_upper))
    return max(proved.margin_lower, min(lower, proved.margin_upper)), proved.margin_upper


def _sparse_weights(outcome: Outcome) -> Sparse | None:
    """Weights of points with |Ax| = margin_upper, if the method has few of them."""
    build = outcome.evidence.gordan
    gordan = None if build is None else build()
    return gordan if isinstance(gordan, Sparse) else None
