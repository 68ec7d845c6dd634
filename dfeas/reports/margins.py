"""What the data of runs says of itself, and how far its points are from the final hyperplane: one read for all runs on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.layout import Header, seen_fingerprint
from dfeas.engine.local import local_engine
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.linalg.points import Floats
from dfeas.passes.protocol import Together
from dfeas.passes.survey import Histogram, HistogramAnswer, Moments, Survey
from dfeas.records import replace
from dfeas.reports.compare import Run
from dfeas.run.transform import mark_of
from dfeas.settings import parse_bytes


@dataclass(frozen=True)
class Seen:
    """What is known of the data of a run."""

    why: str = ""  # a sentence: there are no margins
    margins: HistogramAnswer | None = None  # scores of all points under the y of the run
    deviation: Floats | None = None  # (m,) standard deviations of the features, as the run saw them
    header: Header | None = None  # of a dataset of ours that is still the one of the run
    bytes: int = 0  # of its points, as they are stored

    @property
    def wrong(self) -> int:
        """Points on the wrong side, or in the bin around zero."""
        return 0 if self.margins is None else int(self.margins.counts[:, : len(self.margins.edges) // 2].sum())


NOT_READ = Seen("The distances of the points are not shown: the report was made without reading the data.")


def look(runs: Sequence[Run], memory: str | int) -> dict[str, Seen]:
    """By the name of each run: what its data says, and margins where it ended with a separator or a direction. Runs on the same
    data share one read. Raises UsageError when the memory does not hold a block.
    """
    answers: dict[str, Seen] = {}
    by_source: dict[str, list[Run]] = {}
    for run in runs:
        if run.values["data"] is None:
            answers[run.name] = _explain("the run was on arrays in memory")
        else:
            by_source.setdefault(json.dumps(run.values["data"], sort_keys=True), []).append(run)
    for group in by_source.values():
        try:
            answers |= _look_at_source(group, memory)
        except (BadInputError, CorruptDataError, UsageError, OSError) as error:
            answers |= {run.name: _explain(str(error)) for run in group}
    return answers


def _explain(why: str) -> Seen:
    return Seen(f"The distances of the points are not shown: {why}.")


def _look_at_source(runs: Sequence[Run], memory: str | int) -> dict[str, Seen]:
    dataset = open_source(Source(DataSpec.from_json(runs[0].values["data"]), cones=True).within(parse_bytes(memory)))
    reasons = {run.name: _find_obstacle(run, dataset) for run in runs}
    fitting = [run for run in runs if not reasons[run.name]]
    answers = {name: _explain(why) for name, why in reasons.items() if why}
    answers |= _read_margins(dataset, fitting, memory) if fitting else {}
    stored = dataset.stored or dataset
    same = {run.name for run in runs if stored.header is not None and dataset.fingerprint == run.values["fingerprint"]}
    own: dict[str, Any] = {"header": stored.header, "bytes": stored.bytes}
    return {name: replace(seen, **own) if name in same else seen for name, seen in answers.items()}


def _find_obstacle(run: Run, dataset: Dataset) -> str:
    """Why the distances of the points of a run cannot be known; empty where they can."""
    certificate, data, stored = run.certificate, run.values["data"], dataset.stored or dataset
    if certificate is None or not certificate.y.size:
        return "the run left no direction"
    if certificate.kernel:
        return "they are in the space of a kernel"
    if dataset.cones is not None:
        return "the run was on cones"
    if not (np.isfinite(certificate.y).all() and certificate.y.any()):
        return "the run left no direction"
    if data.get("many") and data.get("labels"):
        return "the run was on one class of an array with labels"
    if stored.header is None and dataset.stored is not None:
        return "the run was on features of an array"
    same = stored.header is None or dataset.fingerprint == run.values["fingerprint"]
    fits = certificate.y.shape == (dataset.dimension,) and same and dataset.n == run.values["n"]
    return "" if fits else _explain_change(dataset)


def _explain_change(dataset: Dataset) -> str:
    return f"{dataset.where} is no longer the data of the run (fingerprints differ)"


def _read_margins(dataset: Dataset, runs: Sequence[Run], memory: str | int) -> dict[str, Seen]:
    """Margins of runs on a dataset, which is compared with theirs as it is read."""
    questions: tuple[Any, ...] = tuple(Histogram(run.certificate.y) for run in runs if run.certificate is not None)
    # checksums of a dataset of ours are compared as it is read; those of a foreign array are taken on the same read
    surveys = (Survey(),) if (dataset.stored or dataset).header is None else ()
    with local_engine(dataset, parse_bytes(memory)) as engine:
        *counted, moments = engine.run(Together((*questions, *surveys, Moments())))
    mark = dataset.fingerprint
    if surveys:
        mark = seen_fingerprint(mark_of(dataset, counted[-1].checksums), dataset.view)
    changed = _explain(_explain_change(dataset))
    return {
        run.name: Seen(margins=counts, deviation=moments.std) if run.values["fingerprint"] == mark else changed
        for run, counts in zip(runs, counted, strict=False)
    }
