"""How far the points are from the final hyperplane: one read of the data for all runs on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import source_of
from dfeas.data.storage.layout import fingerprint, seen_fingerprint
from dfeas.engine.local import LocalEngine
from dfeas.engine.memory import threads_that_fit
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.linalg.blas import processors
from dfeas.passes.protocol import Together
from dfeas.passes.survey import Counts, Histogram, Survey
from dfeas.problem import parse_bytes
from dfeas.run.results import Run


@dataclass(frozen=True)
class Margins:
    """Scores of all points under the y of a run."""

    counts: Counts
    classes: tuple[str, str]  # how the data calls the labels -1 and +1


def margins(runs: Sequence[Run], memory: str | int) -> dict[str, Margins | str]:
    """By the name of each run that ended with a separator or a direction: its margins, or the sentence why there are none.

    Runs on the same data share one read. Raises UsageError when the memory does not hold a block.
    """
    answers: dict[str, Margins | str] = {}
    by_source: dict[str, list[Run]] = {}
    for run in runs:
        if run.certificate is None or run.certificate.kind != "separator":
            continue
        y, data = run.certificate.y, run.values["data"]
        if run.certificate.kernel:
            answers[run.name] = _not_shown("they are in the space of a kernel")
        elif not (np.isfinite(y).all() and y.any()):
            answers[run.name] = _not_shown("the run left no direction")
        elif data is None:
            answers[run.name] = _not_shown("the run was on arrays in memory")
        elif data.get("many") and data.get("labels"):
            answers[run.name] = _not_shown("the run was on one class of an array with labels")
        else:
            by_source.setdefault(json.dumps(data, sort_keys=True), []).append(run)
    for group in by_source.values():
        try:
            answers |= _read(group, memory)
        except (BadInputError, CorruptDataError, UsageError, OSError) as error:
            answers |= dict.fromkeys((run.name for run in group), _not_shown(str(error)))
    return answers


def _not_shown(why: str) -> str:
    return f"The distances of the points are not shown: {why}."


NOT_READ = _not_shown("the report was made without reading the data")


def _read(runs: Sequence[Run], memory: str | int) -> dict[str, Margins | str]:
    """Margins of runs on one source."""
    data = runs[0].values["data"]
    dataset = open_source(source_of(data))
    stored = dataset.stored or dataset
    if stored.header is None and dataset.stored is not None:
        return dict.fromkeys((run.name for run in runs), _not_shown("the run was on features of an array"))
    fitting = [run for run in runs if _may_be_of(run, dataset)]
    other = _not_shown(f"{dataset.where} is no longer the data of the run (fingerprints differ)")
    answers: dict[str, Margins | str] = dict.fromkeys((run.name for run in runs), other)
    if not fitting:
        return answers
    engine = LocalEngine(dataset, threads_that_fit(dataset, parse_bytes(memory), processors()))
    questions = tuple(Histogram(run.certificate.y) for run in fitting if run.certificate is not None)
    # checksums of a dataset of ours are compared as it is read; those of a foreign array are taken on the same read
    surveys = (Survey(),) if stored.header is None else ()
    try:
        counted = engine.run(Together((*questions, *surveys)))
    finally:
        engine.close()
    mark = dataset.fingerprint
    if surveys:
        checksums = np.array([c[1:] for c in counted[-1].checksums], np.uint32)
        mark = fingerprint(dataset.n, dataset.m, dataset.dtype.name, dataset.block_rows, checksums)
        mark = seen_fingerprint(mark, dataset.view)
    negative, positive = dataset.classes or ("-1", "+1")
    for run, counts in zip(fitting, counted, strict=False):
        if run.values["fingerprint"] == mark:
            answers[run.name] = Margins(counts, (negative, positive))
    return answers


def _may_be_of(run: Run, dataset: Dataset) -> bool:
    """Whether the data can be that of the run, before it is read."""
    y = run.certificate.y if run.certificate is not None else np.empty(0)
    same = (dataset.stored or dataset).header is None or dataset.fingerprint == run.values["fingerprint"]
    return y.shape == (dataset.dimension,) and same and dataset.n == run.values["n"]
