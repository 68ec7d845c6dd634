"""Points with features centred and scaled, or lengths as they are: the reads that take the numbers for it.

One read takes means, spreads and greatest values, and with it the survey of an array; another one surveys the points as they
are seen then. ``std`` is the root of the mean squared difference from the mean; ``maxabs`` the greatest magnitude, after
centring. A feature that is the same everywhere is not scaled.
"""

from __future__ import annotations

from contextlib import closing
from math import hypot
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfeas.data.collections import collection_of
from dfeas.data.dataset import Dataset, refuse_unusable
from dfeas.data.source import FACTORS, Source, Transform
from dfeas.data.storage.layout import fingerprint
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.local import LocalEngine
from dfeas.engine.memory import threads_that_fit
from dfeas.engine.protocol import Engine
from dfeas.errors import UsageError, format_bytes
from dfeas.machine import threads_here
from dfeas.passes.protocol import Together
from dfeas.passes.survey import Moments, MomentsAnswer, Summary, Survey
from dfeas.records import replace

if TYPE_CHECKING:
    from distributed import Client

    from dfeas.engine.distributed import DaskEngine

Data = tuple[Source, Dataset]


def with_transform(data: Data, transform: Transform, memory: int, client: Client | None = None, progress: bool = False) -> Data:
    """Opened data as it is to be seen; with ``points`` in the transform its numbers are known already, and are used. Reads are
    said on stderr where ``progress`` is shown. Raises UsageError for sparse points that are to be centred, and what the survey
    of points raises.
    """
    source, dataset = data
    if not transform:
        return data
    _refuse_sparse(dataset, transform)
    known = transform.points > 0
    wanted = Moments(exact=transform.center) if transform.features and not known else None
    summary: Summary | None = None
    reads = 0
    if wanted is not None or (dataset.header is None and (transform.features or not known)):
        summary, moments = _look(data, memory, client, progress, wanted)
        reads = 1
        if moments is not None:
            transform = _numbers(transform, moments)
        if summary is not None:
            mark = mark_of(dataset, summary.checksums)
            dataset = replace(dataset.without_cache(), mark=mark, expected=summary.checksums)
    if known:
        return _see_with((source, dataset), transform)
    transform = replace(transform, points=dataset.n)
    if transform.features:
        unit = _see_with((source, dataset), replace(transform, length=None, normalize=True))
        summary, reads = _look(unit, memory, client, progress, None)[0], reads + 1
    if not transform.normalize:
        about = dataset.header if summary is None else summary
        assert about is not None, "surveyed, if it is no dataset"
        transform = replace(transform, length=radius_of(dataset, about.norm_max) or 1.0)
    source, dataset = _see_with((source, dataset), transform)
    dataset.surveyed = None if summary is None else (summary, reads)
    return source, dataset


def radius_of(dataset: Dataset, norm_max: float) -> float:
    """Length of the longest point, with its intercept."""
    return hypot(norm_max, 1.0) if dataset.intercept else norm_max


def as_planned(dataset: Dataset, transform: Transform) -> Dataset:
    """Data as it will be seen, as far as what it costs goes: with any numbers. Raises UsageError as ``with_transform``."""
    if not transform:
        return dataset
    _refuse_sparse(dataset, transform)
    shift = (0.0,) * dataset.m if transform.center else ()
    factor = (1.0,) * dataset.m if transform.scale is not None else ()
    length = None if transform.normalize else 1.0
    return _see_with_numbers(dataset, replace(transform, points=dataset.n, shift=shift, factor=factor, length=length))


def _refuse_sparse(dataset: Dataset, transform: Transform) -> None:
    if transform.center and dataset.entries is not None:
        raise UsageError(f"{dataset.where}: sparse points would fill up when they are centred; scale them without centring")


def _see_with(data: Data, transform: Transform) -> Data:
    source, dataset = data
    return replace(source, spec=replace(source.spec, transform=transform)), _see_with_numbers(dataset, transform)


def _see_with_numbers(dataset: Dataset, transform: Transform) -> Dataset:
    from dfeas.data.views import transform_features

    return transform_features(dataset, transform)


def _look(
    data: Data, memory: int, client: Client | None, progress: bool, moments: Moments | None
) -> tuple[Summary | None, MomentsAnswer | None]:
    """One read: a survey of what no ingest did, and moments if asked for. Raises BadInputError for unusable points."""
    from dfeas.run.progress.screen import print_status

    dataset = data[1]
    summary: Summary | None = None
    moments_answer: MomentsAnswer | None = None
    what = "means and spreads of features" if moments is not None else "lengths of points"
    print_status(progress, f"{dataset.where}: one read for {what}")
    with closing(_engine(data, memory, client)) as engine:
        if dataset.header is not None:
            assert moments is not None, "a dataset is surveyed"
            moments_answer = engine.run(moments)
        elif moments is not None:
            summary, moments_answer = engine.run(Together((Survey(), moments)))
        else:
            summary = engine.run(Survey())
        cost = engine.cost
    speed = format_bytes(cost.bytes_read / max(cost.wall_seconds, 1e-9))
    print_status(progress, f"{what}: {speed}/s  {cost.wall_seconds:.1f} s")
    if summary is not None:
        refuse_unusable(summary, dataset.where, dataset.features, dataset.files)
    return summary, moments_answer


def _engine(data: Data, memory: int, client: Client | None) -> Engine:
    source, dataset = data
    if client is None:
        return LocalEngine(dataset, threads_that_fit(dataset, memory, threads_here()))
    return engine_there(client, source, dataset)


def engine_there(client: Client, source: Source, dataset: Dataset, scratch: Scratch | None = None) -> DaskEngine:
    """Workers of a cluster on data by path, or on a Dask array or frame. Raises UsageError for other arrays in memory."""
    if source.spec.by_path:
        from dfeas.engine.distributed import DaskEngine

        return DaskEngine(client, source, dataset, scratch)
    if collection_of(dataset) is None:
        raise UsageError(
            "a cluster reads data by path, or in the partitions of a Dask array or frame: ingest the arrays first, make a "
            "Dask array of them, or client=False"
        )
    from dfeas.engine.collection import CollectionEngine

    return CollectionEngine(client, dataset, scratch)


def _numbers(transform: Transform, moments: MomentsAnswer) -> Transform:
    least, greatest = moments.least, moments.greatest
    same = least == greatest
    shift = moments.center if transform.center else np.empty(0)
    factor = np.empty(0)
    if transform.scale is not None:
        middle = shift if transform.center else 0.0
        spread = moments.std if transform.scale == "std" else np.maximum(greatest - middle, middle - least)
        plain = same if transform.scale == "std" or transform.center else spread == 0
        with np.errstate(divide="ignore", over="ignore"):
            factor = np.where(plain, 1.0, np.clip(1 / spread, *FACTORS))
    return replace(transform, shift=tuple(shift.tolist()), factor=tuple(factor.tolist()))


def mark_of(dataset: Dataset, checksums: NDArray[np.uint32]) -> str:
    """The fingerprint of points and labels as they are stored."""
    return fingerprint(dataset.n, dataset.m, dataset.dtype.name, dataset.chunk_rows, checksums, dataset.all_classes)
