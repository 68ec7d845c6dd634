"""The data of a solve, and who reads it: engines for the passes and for the checker, the folder of the run."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from dfeas.answers.trace import Sink
from dfeas.data.collections import collection_of, is_collection
from dfeas.data.dataset import Dataset, refuse_unusable
from dfeas.data.open import open_data, open_source
from dfeas.data.partitions import Compute, compute_here, computed_by
from dfeas.data.source import DataSpec, Source, Transform
from dfeas.data.storage.features import warn_of_others
from dfeas.data.storage.layout import seen_fingerprint
from dfeas.data.storage.places import absolute, local, place, require_apart
from dfeas.data.storage.readers import SliceReader
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.local import LocalEngine
from dfeas.engine.memory import answer_bytes, cache_bytes, require, threads_that_fit
from dfeas.engine.protocol import Engine
from dfeas.errors import UsageError, spell
from dfeas.geometry.protocol import Geometry
from dfeas.geometry.registry import geometry_again, geometry_of
from dfeas.machine import threads_here
from dfeas.methods.protocol import AnyMethod
from dfeas.passes.survey import Survey
from dfeas.problem import Function, Problem
from dfeas.records import replace
from dfeas.run.recovery import Checking
from dfeas.run.resources import Resources
from dfeas.run.transform import Data, engine_there, mark_of, radius_of, with_transform
from dfeas.settings import variable

if TYPE_CHECKING:
    from distributed import Client

    from dfeas.data.storage.object_path import ObjectPath


class Session(Struct, frozen=True, eq=False):
    """The data, and who reads it."""

    source: Source
    dataset: Dataset
    engine: Engine
    checking: Checking
    scratch: Scratch  # of the engine; emptied when the run ends
    threads: int  # of each process that reads
    workers: int = 0  # processes of a cluster that read
    log: Sink | None = None  # of the cluster
    tiles: Path | None = None  # a folder of each machine for tiles of a kernel that memory does not hold
    crew: Callable[[], dict[str, Any]] = dict  # what a result says of workers
    own: Mapping[str, AnyMethod] = field(default_factory=dict)  # methods of the caller
    resumable: bool = True  # whether checkpoints can hold the states of these

    def geometry(self, kernel: str) -> Geometry:
        """That of the data, or of a kernel as a job keeps it."""
        return geometry_again(self.dataset, kernel, self.checking.function).with_methods(self.own)


class Surveyed(Struct, frozen=True):
    """What one look at the data says."""

    zero: int | None  # the first zero point
    radius: float  # length of the longest point, with its intercept
    reads: float  # that it took
    positive: int = 0  # points with label +1


UNSEEN = Surveyed(None, 1.0, 0)
"""Where there was no time to look."""


def source_for(spec: DataSpec, resources: Resources, cones: bool = False) -> Source:
    """Data for a run with these resources, which maybe knows what to do with ``cones``."""
    folder = "" if resources.cache_dir is None else str(local(resources.cache_dir, variable("cache_dir")).absolute())
    return Source(spec, cache_dir=folder, cones=cones).within(resources.memory_bytes)


@contextmanager
def open_session(
    problem: Problem,
    resources: Resources,
    out: str | Path | ObjectPath | None = None,
    *,
    cones: bool = False,
    progress: bool = False,
) -> Iterator[Session]:
    """The data of a problem, and who reads it; reads for a transform whose numbers are not known yet are done, and said where
    ``progress`` is shown. With a client a Dask array or frame stays where it lies. n-vectors of a method will lie in ``out``,
    or where temporary files do; nothing is written yet. Raises what opening does, and UsageError for an ``out`` in the data or
    around it.
    """
    spec, client = problem.spec, resources.client
    data = source, dataset = _open_there(client, source_for(replace(spec, transform=None), resources, cones))
    if is_collection(spec.where) and collection_of(dataset) is None:  # this process reads it
        client, resources = None, replace(resources, client=None)
    if dataset.features and isinstance(dataset.points, SliceReader) and isinstance(dataset.points.array, np.ndarray):
        warn_of_others(dataset.points.array, dataset.features, dataset.where)
    geometry_of(dataset).require(dataset, kernel=problem.kernel, transform=spec.transform)
    if problem.kernel is not None and collection_of(dataset) is not None:
        raise UsageError("a kernel needs points by pairs of blocks: ingest the data first, or client=False")
    data = with_transform(data, spec.transform or Transform(), resources.memory_bytes, client, progress)
    if out is not None:
        require_apart(out, source.spec.where, *source.spec.also)
    with ExitStack() as stack:
        yield _join_readers(stack, data, resources, problem.function, out)


def _open_there(client: Client | None, source: Source) -> Data:
    if client is None or not is_collection(source.spec.where):
        return open_data(source)
    if source.spec.mask is not None or source.spec.point is not None:  # their points come to this process
        with computed_by(client):
            return open_data(source)
    from dfeas.engine.collection import open_collection

    return open_data(source, lambda source: open_collection(client, source.spec))


def compute_by(client: Client | None, *collections: Any) -> Compute:
    """What computes parts of these collections: the workers of a client, or the scheduler that Dask has chosen."""
    if client is None:
        return compute_here(*collections)
    from dfeas.engine.collection import compute_on

    return compute_on(client, *collections)


def _join_readers(
    stack: ExitStack, data: Data, resources: Resources, function: Function | None, out: str | Path | ObjectPath | None
) -> Session:
    """The engine of the passes, and the checker's, which reads by itself; the stack closes them."""
    (source, dataset), memory = data, resources.memory_bytes
    client: Client | None = resources.client
    tiles = None if resources.scratch is None else _make_folder(local(resources.scratch, "scratch").absolute())
    rereads = source.spec.by_path and not dataset.base.in_memory
    other = open_source(source) if rereads else dataset.without_cache()
    scratch = scratch_of(out)
    engine: Engine
    second: Engine
    log: Sink | None = None
    crew: Callable[[], dict[str, Any]] = dict
    if client is None:
        threads = threads_that_fit(dataset, memory, threads_here())
        dataset.enable_cache(cache_bytes(dataset, memory, threads, worker=False))
        workers, engine = 0, LocalEngine(dataset, threads, scratch, answer_bytes(memory))
        second = LocalEngine(other, threads_that_fit(other, memory, threads_here()) if rereads else threads)
    else:
        from dfeas.engine.crew import places_of
        from dfeas.engine.watch import Watch
        from dfeas.run.progress.cluster_log import ClusterLog

        processes = Watch(client, places=places_of(source.spec)).threads()
        threads, workers = max(processes.values(), default=1), max(1, len(processes))
        require(other, memory, threads)
        kept = replace(source, cache_bytes=cache_bytes(dataset, memory, threads, worker=True))
        there, second = engine_there(client, kept, dataset, scratch), engine_there(client, source, other)
        engine, crew = there, there.crew.to_json
        named = dataset.where if out is None else place(out).name
        log = ClusterLog(client, named, None if out is None else absolute(out))
        stack.callback(log.close)
    engine = geometry_of(dataset).wrap(engine)
    stack.callback(engine.close)
    stack.callback(second.close)
    # another reader has to give what the run's own gave of arrays that dfeas did not write
    checking = Checking(second, other, function, not rereads or dataset.header is not None, collection_of(dataset) is None)
    return Session(source, dataset, engine, checking, scratch, threads, workers, log, tiles, crew)


def scratch_of(out: str | Path | ObjectPath | None) -> Scratch:
    """For the n-vectors of a run: in its folder, or where temporary files are."""
    folder = None if out is None else place(out).absolute()
    if isinstance(folder, Path):
        return Scratch(folder / "scratch")
    import tempfile

    name = uuid.uuid4() if folder is None else uuid.uuid5(uuid.NAMESPACE_URL, f"{os.getpid()} {folder}")
    return Scratch(f"{tempfile.gettempdir()}{os.sep}dfeas-{name.hex}")  # no path object, as most runs write nothing


def _make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{spell('scratch')} {folder}: no folder can be made: {error.strerror}; choose another") from None
    return folder


def survey(session: Session) -> Surveyed:
    """What the header says, or one read of a foreign array, which also gives it its fingerprint. Raises BadInputError for
    non-finite entries and for norms that cannot be squared.
    """
    dataset = session.dataset
    header = dataset.header
    if header is not None:
        zero = header.first_zero[0] if header.zero else None
        positive = header.positive if dataset.positive is None else dataset.count(dataset.positive)
        return Surveyed(zero, radius_of(dataset, header.norm_max), 0, positive)
    summary, reads = dataset.surveyed or (session.engine.run(Survey()), 1)
    zero, positive = geometry_of(dataset).survey_counts(summary.zero, summary.positive)
    summary = replace(summary, zero=zero, positive=positive)
    refuse_unusable(summary, dataset.where, dataset.features, dataset.files)
    if dataset.stored is None:  # otherwise what is stored has them, and compares
        note_checksums(session, summary.checksums)
    session.checking.dataset.fingerprint = dataset.fingerprint
    first_zero = summary.first_zero[0] if summary.zero else None
    return Surveyed(first_zero, radius_of(dataset, summary.norm_max), reads + dataset.opened, summary.positive)


def note_checksums(session: Session, checksums: NDArray[np.uint32]) -> None:
    """Give data that dfeas did not write its fingerprint: what is read from now on is compared with these (chunks, 2)."""
    dataset, others = session.dataset, session.checking.dataset
    dataset.fingerprint = others.fingerprint = seen_fingerprint(mark_of(dataset, checksums), dataset.view)
    dataset.expected = others.expected = checksums
