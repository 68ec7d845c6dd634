"""What the data of runs says of itself, and how far its points are from the final hyperplane: one read for all runs on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.layout import Header, seen_fingerprint
from dfeas.engine.local import LocalEngine
from dfeas.engine.memory import threads_that_fit
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.linalg.blas import processors
from dfeas.passes.protocol import Together
from dfeas.passes.survey import Counts, Histogram, Moments, Survey
from dfeas.run.result_files import Run
from dfeas.run.transform import mark_of
from dfeas.settings import parse_bytes


@dataclass(frozen=True)
class Margins:
    """Scores of all points under the y of a run."""

    counts: Counts
    classes: tuple[str, str]  # how the data calls the labels -1 and +1
    deviation: NDArray[np.float64]  # (m,) standard deviations of the features, as the run saw them

    @property
    def points(self) -> tuple[int, int]:
        """How many are labelled -1 and +1."""
        negative, positive = self.counts.counts.sum(axis=1)
        return int(negative), int(positive)

    @property
    def wrong(self) -> int:
        """Points on the wrong side, or in the bin around zero."""
        return int(self.counts.counts[:, : len(self.counts.edges) // 2].sum())


@dataclass(frozen=True)
class Seen:
    """What is known of the data of a run."""

    why: str = ""  # a sentence: there are no margins
    margins: Margins | None = None
    header: Header | None = None  # of a dataset of ours that is still the one of the run
    bytes: int = 0  # of its points, as they are stored
    classes: tuple[str, ...] = ()  # negative and positive, as the data calls them


NOT_READ = Seen("The distances of the points are not shown: the report was made without reading the data.")


def look(runs: Sequence[Run], memory: str | int) -> dict[str, Seen]:
    """By the name of each run: what its data says, and margins where it ended with a separator or a direction.

    Runs on the same data share one read. Raises UsageError when the memory does not hold a block.
    """
    answers: dict[str, Seen] = {}
    by_source: dict[str, list[Run]] = {}
    for run in runs:
        data = run.values["data"]
        if data is None:
            answers[run.name] = _not_shown("the run was on arrays in memory")
        else:
            by_source.setdefault(json.dumps(data, sort_keys=True), []).append(run)
    for group in by_source.values():
        try:
            answers |= _look(group, memory)
        except (BadInputError, CorruptDataError, UsageError, OSError) as error:
            answers |= {run.name: answers.get(run.name, _not_shown(str(error))) for run in group}
    return answers


def _not_shown(why: str) -> Seen:
    return Seen(f"The distances of the points are not shown: {why}.")


def _look(runs: Sequence[Run], memory: str | int) -> dict[str, Seen]:
    """At one source, for all runs about it."""
    dataset = open_source(Source(DataSpec.from_json(runs[0].values["data"]), cones=True).within(parse_bytes(memory)))
    stored = dataset.stored or dataset
    own: dict[str, Any] = {"header": stored.header, "bytes": stored.bytes, "classes": dataset.classes}
    answers, fitting = {}, []
    for run in runs:
        why = _why_not(run, dataset)
        known = stored.header is not None and dataset.fingerprint == run.values["fingerprint"]
        answers[run.name] = replace(_not_shown(why), **own) if known else _not_shown(why)
        if not why:
            fitting.append(run)
    read = _read(dataset, fitting, memory) if fitting else {}
    return answers | {name: replace(found, **own) if answers[name].header else found for name, found in read.items()}


def _why_not(run: Run, dataset: Dataset) -> str:
    """Why the distances of the points of a run cannot be known; empty where they can."""
    certificate, data = run.certificate, run.values["data"]
    if certificate is None or certificate.kind == "gordan":
        return "the run left no direction"
    if certificate.kernel:
        return "they are in the space of a kernel"
    if dataset.cones is not None:
        return "the run was on cones"
    if not (np.isfinite(certificate.y).all() and certificate.y.any()):
        return "the run left no direction"
    if data.get("many") and data.get("labels"):
        return "the run was on one class of an array with labels"
    stored = dataset.stored or dataset
    if stored.header is None and dataset.stored is not None:
        return "the run was on features of an array"
    same = stored.header is None or dataset.fingerprint == run.values["fingerprint"]
    if certificate.y.shape == (dataset.dimension,) and same and dataset.n == run.values["n"]:
        return ""
    return _changed(dataset)


def _changed(dataset: Dataset) -> str:
    return f"{dataset.where} is no longer the data of the run (fingerprints differ)"


def _read(dataset: Dataset, runs: Sequence[Run], memory: str | int) -> dict[str, Seen]:
    """Margins of runs on a dataset, which is compared with theirs as it is read."""
    engine = LocalEngine(dataset, threads_that_fit(dataset, parse_bytes(memory), processors()))
    questions: tuple[Any, ...] = tuple(Histogram(run.certificate.y) for run in runs if run.certificate is not None)
    # checksums of a dataset of ours are compared as it is read; those of a foreign array are taken on the same read
    surveys = (Survey(),) if (dataset.stored or dataset).header is None else ()
    try:
        *counted, moments = engine.run(Together((*questions, *surveys, Moments())))
    finally:
        engine.close()
    mark = dataset.fingerprint
    if surveys:
        mark = seen_fingerprint(mark_of(dataset, counted[-1].checksums), dataset.view)
    negative, positive = dataset.classes or ("-1", "+1")
    answers = {}
    for run, counts in zip(runs, counted, strict=False):
        if run.values["fingerprint"] == mark:
            margins = Margins(counts, (negative, positive), moments.std)
            answers[run.name] = Seen(margins=margins, classes=(negative, positive))
        else:
            answers[run.name] = _not_shown(_changed(dataset))
    return answers
