"""Opening data of every kind, on one way: ``resolve`` says what is there, one of ``OPENERS`` opens it, ``VIEWS`` change it."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.arrays import accept_stored, assemble, encode, open_arrays, stored_dtype
from dfeas.data.collections import is_collection, open_lazily
from dfeas.data.dataset import Dataset, array_reader, damaged_chunk
from dfeas.data.frames import bring_here, require_aligned
from dfeas.data.labels import points_of, too_many
from dfeas.data.rows import rows_of
from dfeas.data.source import DataSpec, Source, There
from dfeas.data.storage.files import refuse_links
from dfeas.data.storage.layout import (
    Header,
    chunks_together,
    every,
    fingerprint,
    sparse_together,
)
from dfeas.data.storage.patience import once_more
from dfeas.data.storage.places import Place, absolute, place, translate_errors_at
from dfeas.data.storage.readers import AnyArray, PointReader, RowReader, SliceReader
from dfeas.data.storage.zarr_arrays import check_shape, open_array, open_labels, rows_of_whole_chunks, slice_reader
from dfeas.errors import BadInputError, CorruptDataError, UsageError, absent
from dfeas.passes.survey import checksums
from dfeas.records import replace

if TYPE_CHECKING:
    from dfeas.data.ids import Ids
    from dfeas.data.storage.sparse_readers import Entries
    from dfeas.data.storage.stored_array import StoredArray

Opener = Callable[[Source], Dataset]
ARRAYS = ("X/data", "X/indices", "X/indptr", "offset")


def _open_sparse(path: Place, arrays: dict[str, StoredArray], header: Header) -> tuple[PointReader, Entries, int]:
    """X of a sparse dataset, and how many chunks are a block. Raises CorruptDataError when it is not stored as dfeas does."""
    from dfeas.data.storage.chunks import ChunkReader, chunk_reader, open_folder
    from dfeas.data.storage.sparse_readers import CsrChunks, Entries, EntryChunks

    offsets, rows = _offsets(path, arrays, header), header.block_rows
    data, indices = (EntryChunks(ChunkReader(name, open_folder(path / name), arrays[name])) for name in ("X/data", "X/indices"))
    sizes = data.dtype.itemsize, indices.dtype.itemsize
    together = sparse_together(rows, rows_of(header).block_rows(header, sum(sizes)), offsets, sum(sizes))
    indptr = chunk_reader("X/indptr", path / "X/indptr", arrays["X/indptr"], together=together)
    points: PointReader = CsrChunks(str(path), header.n, header.m, rows, offsets, data, indices, indptr, together)
    if not isinstance(path, Path):
        from dfeas.data.storage.object_readers import Ahead

        points = Ahead(points)
    return points, Entries.of(header.n, every(offsets, together), together * rows, *sizes), together


def _offsets(path: Place, arrays: dict[str, StoredArray], header: Header) -> NDArray[np.int64]:
    offsets: NDArray[np.int64] = _read_list(path / "offset", arrays["offset"], "offsets")
    sizes = np.diff(offsets)
    if offsets[0] != 0 or offsets[-1] != header.entries or sizes.min() < 0 or sizes.max() != header.block_entries:
        raise CorruptDataError(f"{path}: the list of offsets is damaged; ingest it again")
    return offsets


def locate(spec: DataSpec) -> There:
    """What kind of data there is. Raises CorruptDataError for a dataset whose ingest did not finish."""
    if isinstance(spec.where, Dataset):
        return "rows of cones", None
    if not spec.by_path:
        return "collection" if is_collection(spec.where) else "memory", None
    from dfeas.data.ingest.options import is_file  # with what reads datasets and files, of which memory has none
    from dfeas.data.storage.stored_array import ATTRIBUTE, find_root

    path = place(spec.where)
    with translate_errors_at(path):
        root = find_root(path)
        if root is not None:
            return "dataset" if ATTRIBUTE in root["attributes"] else "array", root
        if is_file(path):
            return "file", None
        return "array" if path.exists() else "nothing", None


def find_columns(kept: DataSpec, given: DataSpec) -> DataSpec:
    """What is given anew as the data of a run, with the columns that the run had of a file where nobody names any."""
    if not given.by_path or locate(given)[0] != "file":
        return given
    from dfeas.data.ingest.options import TABLES, format_of

    kind, named = format_of(given.where), isinstance(kept.labels, str) and absolute(kept.labels) != kept.labels
    labels = kept.labels if given.labels is None and named and kind != "svmlight" else given.labels
    return replace(given, labels=labels, choice=given.choice or (kept.choice if kind in TABLES else given.choice))


def resolve(source: Source) -> Source:
    """Data as a verb has it, with what is there, and with labels by path from any folder, or as a file of points has them: a
    column, or an array in it.
    """
    spec, there = source.spec, locate(source.spec)
    source = replace(source, there=there)
    if spec.choice and there[0] in ("dataset", "array"):
        raise UsageError(f"{spec.where}: columns are chosen of a table, CSV, TSV or Parquet; this is none")
    if not spec.by_path or spec.point is not None or spec.all_positive:
        return source
    if there[0] == "file":
        from dfeas.data.ingest.readers import labels_in  # with readers of all formats

        return replace(source, spec=replace(spec, labels=labels_in(spec.where, spec.labels, spec.choice)))
    if spec.labels is None:
        return source
    if spec.also:
        raise UsageError("also is for datasets with labels of their own: leave out labels")
    return replace(source, spec=replace(spec, labels=absolute(spec.labels)))


def open_data(source: Source, lazily: Opener | None = None) -> tuple[Source, Dataset]:
    """Data that a question is asked about, and how others open it again: with intercept and point as they are here. Labels of
    many classes stay codes where each is set against the rest. A collection stays where it lies if somebody opens
    it so ``lazily``. Raises BadInputError for more than two classes otherwise.
    """
    source = resolve(source)
    dataset = open_source(source, lazily)
    if len(dataset.classes) > 2 and dataset.positive is None and not source.spec.one_vs_rest:
        raise too_many(dataset.classes, dataset.where)
    point = None if source.spec.point is None else _order_point(dataset, source)
    spec = replace(source.spec, intercept=dataset.intercept, point=point, point_features=())
    return replace(source, spec=spec, there=None), dataset


def open_source(source: Source, lazily: Opener | None = None) -> Dataset:
    """Open data, without reading points, but those of a file, which are read into memory. Raises BadInputError when there is
    nothing usable at a path, CorruptDataError when it is damaged or incomplete.
    """
    spec, there = source.spec, source.there or locate(source.spec)
    source = replace(source, there=there)
    places = [place(each) if spec.by_path and each is not None else None for each in (spec.where, spec.beside)]
    opener = lazily if lazily is not None and there[0] == "collection" else OPENERS[there[0]]
    with translate_errors_at(places[0]), translate_errors_at(places[1]):
        dataset = opener(source)
        for view in VIEWS:
            dataset = view(dataset, source)
    return dataset


def _name_points(dataset: Dataset, source: Source) -> Dataset:
    """By the column or the index of a frame; those of a file and of a dataset came with it."""
    spec = source.spec
    if spec.by_path or not hasattr(spec.where, "columns"):
        return dataset
    from dfeas.data.index import ids_in_memory  # of frames only

    return replace(dataset, ids=ids_in_memory(spec.where, spec.ids))


def _refuse_cones(dataset: Dataset, source: Source) -> Dataset:
    """Raise UsageError when something is asked of cones that has a meaning for points only."""
    if dataset.rows.take_labels:
        return dataset
    if not source.cones:
        text = "cones: solve, race, resume, plan, verify, predict and info work on them, this does not"
        raise UsageError(f"{dataset.where}: {text}")
    spec = source.spec
    asked = {"labels": spec.beside, "positive": spec.positive, "intercept": spec.intercept or None, "point": spec.point}
    wrong = [name for name, value in {**asked, "transform": spec.transform}.items() if value is not None]
    if wrong:
        raise UsageError(f"{dataset.where}: cones have no {' and no '.join(wrong)}; leave it out")
    return dataset


def _replace_labels(dataset: Dataset, source: Source) -> Dataset:
    """A dataset with other labels: the same as if it had been ingested with them, checksums and fingerprint too."""
    beside = source.spec.beside
    if dataset.header is None or dataset.expected is None or beside is None:  # other labels came with the points
        return dataset
    classes, label = encode(open_labels(place(beside)), dataset.n, source, dataset.where)
    expected = dataset.expected.copy()
    expected[:, 1] = checksums(label, dataset.chunk_rows)
    mark = fingerprint(dataset.n, dataset.m, dataset.dtype.name, dataset.chunk_rows, expected, classes)
    header = replace(dataset.header, classes=classes, **points_of(label, classes), fingerprint=mark)
    reader = array_reader("label", label, dataset.block_rows)
    return replace(dataset, labels=reader, **_facts_of_labels(header, expected))


def _join(dataset: Dataset, source: Source) -> Dataset:
    """With the points of other datasets behind these, those that the mask keeps, or the cones."""
    spec = source.spec
    if not spec.also and spec.mask is None:
        return dataset
    chosen = None if spec.one_vs_rest else spec.positive
    each = replace(source, spec=replace(spec, also=(), mask=None, positive=chosen, transform=None), fingerprint="", there=None)
    parts, mask = [_choose_class(dataset, each)], spec.mask
    parts += [open_source(replace(each, spec=replace(each.spec, where=where))) for where in spec.also]
    if spec.also and not all(part.rows.take_labels for part in parts):
        raise UsageError(f"{spec.where}: a dataset of cones is asked about by itself; leave out also")
    if not spec.by_path:
        mask = accept_stored(bring_here(mask), "mask")
        require_aligned(spec.where, mask, "mask", dataset.names)
    from dfeas.data.subsets import join_datasets

    return replace(join_datasets(parts, mask), opened=sum(part.opened for part in parts))


def _require_the_same(dataset: Dataset, source: Source) -> Dataset:
    """Raise CorruptDataError for another dataset than the one that is meant."""
    if dataset.header is not None and source.fingerprint not in ("", dataset.fingerprint):
        raise CorruptDataError(
            f"{dataset.where}: not the dataset that the run began with (fingerprint {dataset.fingerprint[:12]}, expected "
            f"{source.fingerprint[:12]}); it was replaced, or another machine sees another one: let all workers see the same "
            "data, and run again"
        )
    return dataset


def _choose_class(dataset: Dataset, source: Source) -> Dataset:
    """One class of a dataset against the rest, or of codes; other labels were encoded so."""
    spec = source.spec
    stored = dataset.header is not None and spec.beside is None
    if spec.positive is None or not (spec.one_vs_rest or stored):
        return dataset
    return dataset.against_rest(spec.positive)


def _add_intercept(dataset: Dataset, source: Source) -> Dataset:
    """By default where points have labels."""
    intercept = bool(dataset.classes) if source.spec.intercept is None else source.spec.intercept
    return dataset if dataset.intercept == intercept else replace(dataset, intercept=intercept)


def _transform(dataset: Dataset, source: Source) -> Dataset:
    """By numbers that are known."""
    transform = source.spec.transform
    if transform is None or not transform.points:
        return dataset
    from dfeas.data.views import transform_features

    return transform_features(dataset, transform)


def _see_from_point(dataset: Dataset, source: Source) -> Dataset:
    if source.spec.point is None:
        return dataset
    from dfeas.data.views import translate

    return translate(dataset, _order_point(dataset, source))


def _order_point(dataset: Dataset, source: Source) -> Any:
    from dfeas.data.views import order_point

    return order_point(dataset, source.spec)


def _make_inequalities(dataset: Dataset, source: Source) -> Dataset:
    """Points for rows of a system, with those of its other constraints behind."""
    return dataset if source.spec.system is None else source.spec.system.see(dataset)


VIEWS = (
    _name_points,
    _refuse_cones,
    _replace_labels,
    _join,
    _require_the_same,
    _choose_class,
    _add_intercept,
    _transform,
    _see_from_point,
    _make_inequalities,
)
"""What is done with opened data, one after the other: each returns it as it is where nothing of that kind is asked for."""


def _open_dataset(source: Source) -> Dataset:
    from dfeas.data.storage.chunks import chunk_reader
    from dfeas.data.storage.stored_array import SEAL, seal

    assert source.there is not None, "it was looked for"
    path, (_, root) = place(source.spec.where), source.there
    assert root is not None, "a dataset has one"
    header, arrays = _arrays(path, root)
    expected = _checksums(path, arrays["checksum"], header)
    if root["attributes"].get(SEAL) != seal(root):
        raise CorruptDataError(f"{path}: the dataset's attributes are not those that its ingest sealed; ingest it again")

    kept = None
    if source.cache_dir and not isinstance(path, Path):
        from dfeas.data.storage.object_readers import KeptBlocks

        kept = KeptBlocks.at(source.cache_dir, sha256(expected.tobytes()).hexdigest())

    def reader(name: str) -> RowReader:
        known = expected[:, ("X", "label", "norm").index(name)]

        def compare(index: int, entries: AnyArray) -> None:
            found, first = checksums(entries, header.block_rows), index * together
            for at in np.flatnonzero(found != known[first : first + len(found)])[:1].tolist():
                raise damaged_chunk(path, f"{first + at} of {name}", found[at], known[first + at])

        return chunk_reader(name, path / name, arrays[name], kept, together, compare)

    rows = rows_of(header)
    points, entries, together = None, None, chunks_together(header.block_rows, rows.block_rows(header, 0), header.n)
    if header.entries is not None:
        points, entries, together = _open_sparse(path, arrays, header)
    block_rows = together * header.block_rows
    return Dataset(
        where=str(path),
        n=header.n,
        m=header.m,
        dtype=np.dtype(header.dtype),
        block_rows=block_rows,
        together=together,
        points=points or reader("X"),
        labels=reader("label"),
        stored_norms=reader("norm"),
        features=header.features,
        ids=None if header.ids is None else _open_ids(path, header.ids, header.n),
        entries=entries,
        rows=rows,
        **_facts_of_labels(header, expected),
    )


def _open_ids(path: Place, about: dict[str, str], n: int) -> Ids:
    from dfeas.data.ids import read_ids  # few datasets have some

    return read_ids(path, about, n)


def _facts_of_labels(header: Header, expected: NDArray[np.uint32]) -> dict[str, Any]:
    """What a dataset has of its header that other labels would change."""
    counts: dict[int, int] | None = {1: header.positive, -1: header.n - header.positive} if len(header.classes) == 2 else None
    return {
        "header": header,
        "classes": header.classes,
        "counts": dict(enumerate(header.counts)) if header.counts else counts,
        "expected": expected,
        "fingerprint": header.fingerprint,
    }


def _arrays(path: Place, root: dict[str, Any]) -> tuple[Header, dict[str, StoredArray]]:
    """What a dataset says of itself, and its arrays, which are as it says. That no file is missing is seen here. An object
    store says a thousand names a request: there it is seen when they are read.
    """
    from dfeas.data.storage.stored_array import ATTRIBUTE, parse_arrays

    if isinstance(path, Path):
        refuse_links(path)
    header = Header.from_json(root["attributes"][ATTRIBUTE], str(path))
    names = ("X",) if header.entries is None else ARRAYS
    arrays = parse_arrays(root, (*names, "label", "norm", "checksum"), path)
    n, rows, blocks, entries = header.n, header.block_rows, -(-header.n // header.block_rows), header.entries or 0
    label = rows_of(header).label_type(header.classes)
    forms: dict[str, tuple[tuple[int, ...], tuple[str, ...], int]] = {  # shape, types, and rows of a chunk; 0: any
        "X": ((n, header.m), (header.dtype,), rows),
        "X/data": ((entries,), (header.dtype,), 0),
        "X/indices": ((entries,), ("int32", "int64"), 0),
        "X/indptr": ((n + 1,), ("int64",), rows),
        "offset": ((blocks + 1,), ("int64",), blocks + 1),
        "label": ((n,), (label.name,), rows),
        "norm": ((n,), ("float64",), rows),
        "checksum": ((blocks, 3), ("uint32",), blocks),
    }
    for name, array in arrays.items():
        shape, kinds, chunk = forms[name]
        if array.shape != shape:
            raise CorruptDataError(f"{path}: {name} has shape {array.shape}, expected {shape}; ingest it again")
        if array.dtype.name not in kinds:
            expected = " or ".join(kinds)
            raise CorruptDataError(f"{path}: {name} has type {array.dtype}, expected {expected}; ingest it again")
        if chunk not in (0, array.rows):
            raise CorruptDataError(f"{path}: {name} is not stored as its ingest did; ingest it again")
        if isinstance(path, Path):
            array.require_files(path / name)
    return header, arrays


def _checksums(path: Place, array: StoredArray, header: Header) -> NDArray[np.uint32]:
    """Those of all chunks (chunks, 3), which make the fingerprint."""
    expected: NDArray[np.uint32] = _read_list(path / "checksum", array, "checksums")
    mark = fingerprint(header.n, header.m, header.dtype, header.block_rows, expected, header.classes)
    if mark != header.fingerprint:
        raise CorruptDataError(f"{path}: the fingerprint does not match the list of checksums; ingest it again")
    return expected


def _read_list(folder: Place, array: StoredArray, what: str) -> NDArray[Any]:
    from dfeas.data.storage.stored_array import read_list

    def read() -> NDArray[Any]:
        try:
            return read_list(folder, array)
        except (OSError, ValueError) as error:
            raise CorruptDataError(f"{folder}: the list of {what} cannot be read: {error}; ingest it again") from None

    return once_more(read, not isinstance(folder, Path))


def _open_foreign(source: Source) -> Dataset:
    path, beside = place(source.spec.where), source.spec.beside
    array = open_array(path, "points")
    n, m = check_shape(array.shape, str(path))
    dtype = stored_dtype(array.dtype, str(path))
    labels = None if beside is None else open_labels(place(beside))
    reader = SliceReader(str(path), array, n, rows_of_whole_chunks(array, dtype.itemsize), dtype)
    dataset = assemble(str(path), reader, (n, m), labels, source)
    return replace(dataset, points=slice_reader(reader, path, array))


def _open_nothing(source: Source) -> Dataset:
    raise BadInputError(absent(place(source.spec.where)))


def _open_file(source: Source) -> Dataset:
    from dfeas.data.ingest.readers import open_file  # with readers of all formats

    return open_file(source)


OPENERS: dict[str, Opener] = {
    "dataset": _open_dataset,
    "array": _open_foreign,
    "file": _open_file,
    "nothing": _open_nothing,
    "memory": open_arrays,  # and frames
    "collection": open_lazily,  # or ``engine.collection.open_collection``, where it lies
    "rows of cones": lambda source: source.spec.where,
}
"""What kind of data there is -> what opens it."""
