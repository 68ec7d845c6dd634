"""Opening data: a dfeas dataset, a user's zarr array with labels, or arrays in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import zarr
import zarr.codecs
import zarr.errors
import zarr.storage
from numpy.typing import NDArray

from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.passes.survey import checksum
from dfeas.store.across import Across, View
from dfeas.store.chunks import check_codecs, direct_reader, files_of, rows_of_whole_chunks, slice_reader
from dfeas.store.dataset import Dataset
from dfeas.store.frames import without_labels
from dfeas.store.labels import LabelMap, map_labels
from dfeas.store.layout import (
    ATTRIBUTE,
    Header,
    default_block_rows,
    fingerprint,
    looks_like_dataset,
    require_complete,
    seal,
    sparse_block_rows,
)
from dfeas.store.links import refuse_links
from dfeas.store.numbers import cast, stored_dtype
from dfeas.store.picked import open_mask, picked
from dfeas.store.places import Place, place, speaking, zarr_store
from dfeas.store.reading import PointReader, RowReader, SliceReader
from dfeas.store.seen_from import SeenFrom
from dfeas.store.sparse import CsrRows, Entries, index_size
from dfeas.store.sparse_opening import ARRAYS as SPARSE_ARRAYS
from dfeas.store.sparse_opening import open_sparse
from dfeas.store.transform import Transform
from dfeas.store.transformed import transformed
from dfeas.store.zarr2 import is_zarr2, open_zarr2


@dataclass(frozen=True)
class Source:
    """Where data is, small enough to travel with every task."""

    path: str
    labels: str | None = None
    positive: str | None = None
    intercept: bool = False
    many: bool = False  # labels of an array become codes of classes, which ``positive`` then chooses from
    also: tuple[str, ...] = ()  # datasets whose points follow
    mask: str | None = None  # path of booleans, one a point: those that count
    run: str = ""  # blocks are checked on first touch once a run
    direct: bool = True  # False: read through zarr only
    fingerprint: str = ""  # of the dataset that is meant; none for a foreign array
    cache_bytes: int = 0  # that each process may keep of the blocks it read
    cache_dir: str = ""  # folder of each machine that keeps blocks of object stores
    point: tuple[float, ...] | None = None  # the points are seen from there, without labels
    cones: bool = False  # whoever opens it knows what to do with cones
    view: View | None = None  # the points are seen across a subspace
    transform: Transform | None = None  # of features and lengths

    @property
    def place(self) -> dict[str, Any]:
        """What a result keeps of it; ``source_of`` makes it again."""
        names = ("path", "labels", "positive", "intercept", "point", "many", "also", "mask")
        transform = None if self.transform is None else self.transform.to_json()
        return {**{name: getattr(self, name) for name in names}, "transform": transform}


def source_of(values: dict[str, Any], cones: bool = False) -> Source:
    """The data of a finished run, from ``data`` of its result; ``cones`` if the caller knows what to do with them."""
    point = None if values.get("point") is None else tuple(map(float, values["point"]))
    many, also = bool(values.get("many", False)), tuple(map(str, values.get("also") or ()))
    place = values["path"], values["labels"], values["positive"], values["intercept"]
    transform = None if values.get("transform") is None else Transform.from_json(values["transform"])
    return Source(*place, many, also, values.get("mask"), point=point, cones=cones, transform=transform)


def for_checker(source: Source) -> Source:
    """The same data by the checker's way to it.

    What it reads of a dataset is compared with the fingerprint of its ingest, so that any reader will do. The fingerprint of a
    foreign array is of what the run's own reader gave: another one has to give the same.
    """
    return replace(source, direct=looks_like_dataset(place(source.path)))


def open_source(source: Source) -> Dataset:
    """Open a dataset by path, without reading points.

    Raises BadInputError when there is nothing usable at the path, CorruptDataError when it is damaged or incomplete.
    """
    if source.also or source.mask is not None:
        return _picked(source)
    path = place(source.path)
    if not path.exists():
        raise BadInputError(f"{path}: no such file or folder")
    with speaking(path), speaking(path if source.labels is None else place(source.labels)):
        dataset = _open_dataset(path, source) if looks_like_dataset(path) else _open_foreign(path, source)
        if dataset.header is not None:
            if dataset.cones is not None:
                _require_plain(source)
            if source.labels is not None:
                dataset = _relabelled(dataset, open_labels(place(source.labels)), source)
            _require_same(dataset, source.fingerprint)
    chosen = source.many or (dataset.header is not None and source.labels is None)
    if source.transform is not None:
        dataset = transformed(dataset, source.transform)
    if source.positive is not None and chosen:
        dataset = dataset.against_rest(source.positive)
    if source.point is not None:
        return seen_from(dataset, source.point)
    return dataset if source.view is None else seen_across(dataset, source.view)


def _require_plain(source: Source) -> None:
    """Raise UsageError when something is asked of a dataset of cones that has a meaning for points only."""
    if not source.cones:
        raise UsageError(
            f"{source.path}: a dataset of cones; solve, resume, verify, race, status and info work on it, this does not"
        )
    asked = source.labels, source.positive, source.point, source.transform
    if source.intercept or any(each is not None for each in asked):
        raise UsageError(f"{source.path}: cones have no labels, classes, intercept, transform or hull; leave them out")


def _picked(source: Source) -> Dataset:
    """The points that the mask keeps, of all stores."""
    chosen = None if source.many else source.positive
    plain = Source("", source.labels, chosen, source.intercept, source.many, direct=source.direct, cache_dir=source.cache_dir)
    parts = [open_source(replace(plain, path=path)) for path in (source.path, *source.also)]
    found = picked(parts, None if source.mask is None else open_mask(Path(source.mask)))
    if source.transform is not None:
        found = transformed(found, source.transform)
    return found.against_rest(source.positive) if source.many and source.positive is not None else found


def _require_same(dataset: Dataset, fingerprint: str) -> None:
    """Raise CorruptDataError when a dataset is not the one that is meant."""
    if fingerprint not in ("", dataset.fingerprint):
        raise CorruptDataError(
            f"{dataset.where}: not the dataset that the run began with (fingerprint {dataset.fingerprint[:12]}, expected "
            f"{fingerprint[:12]}); it was replaced, or another machine sees another one: let all workers see the same data, "
            "and run again"
        )


def _open_node(path: Place) -> Any:
    """The zarr array or group at a path, its metadata checked before any chunk is read."""
    if not path.is_dir() or not any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")):
        raise BadInputError(f"{path}: neither a dfeas dataset nor a zarr array; see dfeas ingest --help for other formats")
    if not (path / "zarr.json").exists():
        raise BadInputError(f"{path}: zarr format 2; only format 3 is read, convert it with zarr or use dfeas ingest")
    if isinstance(path, Path):
        refuse_links(path)
    try:
        return zarr.open(zarr_store(path, read_only=True), mode="r")
    except (KeyError, ValueError, TypeError, AttributeError, zarr.errors.BaseZarrError) as error:
        raise CorruptDataError(f"{path}: its zarr metadata cannot be read: {type(error).__name__}: {error}") from None


def _open_array(path: Place, name: str) -> Any:
    array = _open_node(path)
    if not isinstance(array, zarr.Array):
        raise BadInputError(f"{path}: a zarr group, expected the {name} array; give the path of the array in it")
    check_codecs(array, path)
    return array


def _open_dataset(path: Place, source: Source) -> Dataset:
    marked = require_complete(path)
    group = _open_node(path)
    try:
        header = Header.from_json(group.attrs[ATTRIBUTE], str(path))
        sparse = header.entries is not None
        names = SPARSE_ARRAYS if sparse else ("X",)
        arrays = {name: group[name] for name in (*names, "label", "norm", "checksum")}
    except (KeyError, ValueError, TypeError, AttributeError, zarr.errors.BaseZarrError):
        raise CorruptDataError(f"{path}: the dataset's attributes or arrays are missing; ingest it again") from None
    blocks = -(-header.n // header.block_rows)
    shapes: dict[str, tuple[int, ...]] = {
        "X": (header.n, header.m),
        "X/data": (header.entries or 0,),
        "X/indices": (header.entries or 0,),
        "X/indptr": (header.n + 1,),
        "offset": (blocks + 1,),
        "label": (header.n,),
        "norm": (header.n,),
        "checksum": (blocks, 3),
    }
    for name in arrays:
        shape = shapes[name]
        if arrays[name].shape != shape:
            raise CorruptDataError(f"{path}: {name} has shape {arrays[name].shape}, expected {shape}; ingest it again")
        check_codecs(arrays[name], path / name)
    try:
        expected = np.asarray(arrays["checksum"][:], np.uint32)
    except (ValueError, RuntimeError, OSError) as error:
        raise CorruptDataError(f"{path}: the list of checksums cannot be read: {error}; ingest it again") from None
    found = fingerprint(header.n, header.m, header.dtype, header.block_rows, expected)
    if found != header.fingerprint:
        raise CorruptDataError(f"{path}: the fingerprint does not match the list of checksums; ingest it again")
    if marked != seal(header):
        raise CorruptDataError(f"{path}: the dataset's attributes are not those that its ingest sealed; ingest it again")

    def reader(name: str) -> RowReader:
        array, rows, folder = arrays[name], header.block_rows, path / name
        direct = direct_reader(name, folder, array, rows, source.cache_dir) if source.direct else None
        return direct or slice_reader(SliceReader(str(folder), array, header.n, rows, array.dtype), folder, array)

    stored = open_sparse(path, arrays, header) if sparse else None
    return Dataset(
        where=str(path),
        n=header.n,
        m=header.m,
        dtype=np.dtype(header.dtype),
        block_rows=header.block_rows,
        points=reader("X") if stored is None else stored.points,
        labels=reader("label"),
        stored_norms=reader("norm"),
        classes=header.classes,
        intercept=source.intercept,
        expected=expected,
        header=header,
        fingerprint=header.fingerprint,
        entries=None if stored is None else stored.entries,
        cones=header.cones,
    )


def _relabelled(dataset: Dataset, labels: Any, source: Source) -> Dataset:
    """A dataset with other labels: the same as if it had been ingested with them, checksums and fingerprint too."""
    assert dataset.header is not None, "a dataset has a header"
    assert dataset.expected is not None, "a dataset has checksums"
    mapping, label = _mapped(labels, dataset.n, source, dataset.where)
    expected = dataset.expected.copy()
    for index in range(dataset.blocks):
        expected[index, 1] = checksum(label[index * dataset.block_rows : (index + 1) * dataset.block_rows])
    mark = fingerprint(dataset.n, dataset.m, dataset.dtype.name, dataset.block_rows, expected)
    return replace(
        dataset,
        labels=SliceReader("label", label, dataset.n, dataset.block_rows, label.dtype, overlaps=True),
        classes=mapping.classes,
        expected=expected,
        header=replace(dataset.header, fingerprint=mark),
        fingerprint=mark,
    )


def _mapped(labels: Any, n: int, source: Source, where: str) -> tuple[LabelMap, NDArray[Any]]:
    """Labels (n,) in memory: one byte a point, or two."""
    mapping = map_labels(labels, n, None if source.many else source.positive, f"labels of {where}", source.many)
    label = np.empty(n, mapping.dtype)
    for first in range(0, n, 1 << 20):
        label[first : first + (1 << 20)] = mapping(np.asarray(labels[first : first + (1 << 20)]).reshape(-1))
    return mapping, label


def check_shape(shape: tuple[int, ...] | None, where: str) -> tuple[int, int]:
    """(n, m) of an array of points; raises BadInputError when it is not two-dimensional or is empty."""
    if shape is None or not all(isinstance(s, int | np.integer) for s in shape):
        raise BadInputError(f"{where}: its shape is not known; for a Dask array call compute_chunk_sizes() first")
    if len(shape) != 2:
        raise BadInputError(f"{where}: expected points as an array (n, m), got shape {tuple(shape)}")
    n, m = int(shape[0]), int(shape[1])
    if n == 0 or m == 0:
        raise BadInputError(f"{where}: no {'points' if n == 0 else 'features'}, shape {tuple(shape)}")
    return n, m


def _open_foreign(path: Place, source: Source) -> Dataset:
    array = _open_array(path, "points")
    n, m = check_shape(array.shape, str(path))
    dtype = stored_dtype(array.dtype, str(path))
    labels = None if source.labels is None else open_labels(place(source.labels))
    block_rows = rows_of_whole_chunks(array, dtype.itemsize)
    direct = None
    if source.direct and array.dtype == dtype:
        direct = direct_reader("X", path, array, block_rows, source.cache_dir)
    points = direct or slice_reader(SliceReader(str(path), array, n, block_rows, dtype, convert=cast), path, array)
    return _assemble(str(path), points, n, m, dtype, block_rows, labels, source)


def open_labels(path: Place) -> Any:
    """A label array by path: zarr, or .npy."""
    if not path.exists():
        raise BadInputError(f"{path}: no such file or folder (labels)")
    if path.suffix == ".npy":
        try:
            with path.open("rb") as file:
                return np.load(file, allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise CorruptDataError(f"{path}: not a readable .npy file: {error}") from None
    return open_zarr2(path) if is_zarr2(path) else _open_array(path, "label")


def _assemble(
    where: str, points: PointReader, n: int, m: int, dtype: np.dtype[Any], block_rows: int, labels: Any, source: Source
) -> Dataset:
    """A dataset from any reader of points and any label array; without labels every label is +1."""
    classes: tuple[str, ...] = ()
    if labels is None:
        signs = np.ones(n, np.int8)
    else:
        mapping, signs = _mapped(labels, n, source, where)
        classes = mapping.classes
    return Dataset(
        where=where,
        n=n,
        m=m,
        dtype=dtype,
        block_rows=block_rows,
        points=points,
        labels=SliceReader("label", signs, n, block_rows, signs.dtype, overlaps=True),
        stored_norms=None,
        classes=classes,
        intercept=source.intercept,
    )


def seen_from(dataset: Dataset, point: Sequence[float]) -> Dataset:
    """The points x_j as differences x_j - p, all with label +1. Raises BadInputError when p has another number of features."""
    p = np.asarray(point, np.float64)
    if p.shape != (dataset.m,) or not np.isfinite(p).all():
        raise BadInputError(f"the point has {p.size} entries, expected {dataset.m} that are finite, as {dataset.where} has")
    reader = SeenFrom(dataset, p)
    source = Source(dataset.where, point=tuple(p.tolist()))
    return _assemble(dataset.where, reader, dataset.n, dataset.m, np.dtype(np.float64), dataset.block_rows, None, source)


def seen_across(dataset: Dataset, view: View) -> Dataset:
    """Signed points as their coordinates in a view, all with label +1."""
    basis = np.frombuffer(view.basis).reshape(dataset.dimension, -1)
    reference = np.frombuffer(view.reference) if view.reference else None
    reader = Across(dataset, basis, reference)
    where, width, source = dataset.where, basis.shape[1], Source(dataset.where, view=view)
    return _assemble(where, reader, dataset.n, width, np.dtype(np.float64), dataset.block_rows, None, source)


def _as_array(values: Any, where: str) -> Any:
    """Something with shape, dtype and row slices; raises BadInputError when there is no such thing in it."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if not hasattr(values, "dtype"):
        try:
            values = np.asarray(values)
        except ValueError:
            raise BadInputError(f"{where}: rows of different lengths; give a rectangular array") from None
    if np.ma.isMaskedArray(values):
        raise BadInputError(f"{where}: a masked array; fill or drop the masked entries first")
    if isinstance(values, zarr.Array):
        check_codecs(values, where)
    return values


def _from_sparse(X: Any, labels: Any, source: Source) -> Dataset:
    """A dataset from a SciPy sparse matrix (n, m), which is not copied if it is CSR with ascending indices."""
    n, m = check_shape(X.shape, "X")
    dtype = stored_dtype(np.dtype(X.dtype), "X")
    matrix = X.tocsr()
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise BadInputError(f"X: not a CSR matrix: {error}") from None
    if not matrix.has_canonical_format:
        matrix = matrix.copy() if matrix is X else matrix
        matrix.sum_duplicates()
    rows = sparse_block_rows(matrix.nnz / n, dtype.itemsize + index_size(m), n)
    ends = np.append(matrix.indptr[:-1:rows], matrix.indptr[-1])
    entries = Entries.of(n, ends.astype(np.int64), rows, dtype.itemsize, index_size(m))
    points = CsrRows(matrix, rows, dtype, cast)
    return replace(_assemble("X", points, n, m, dtype, rows, labels, source), entries=entries)


def from_arrays(
    X: Any, labels: Any = None, *, positive: str | None = None, intercept: bool = False, many: bool = False
) -> Dataset:
    """A dataset from an array (n, m) that has shape, dtype and row slices (NumPy, zarr, HDF5, Dask), or a SciPy
    sparse matrix, and labels (n,).

    Points are not copied. Labels of ``many`` classes become codes. Raises BadInputError for a wrong shape, type or labels.
    """
    X, labels = without_labels(X, labels)
    if hasattr(X, "tocsr"):
        if labels is not None:
            labels = open_labels(place(labels)) if isinstance(labels, str | Path) else _as_array(labels, "labels")
        return _from_sparse(X, labels, Source("", None, positive, intercept, many))
    X = _as_array(X, "X")
    n, m = check_shape(X.shape, "X")
    dtype = stored_dtype(np.dtype(X.dtype), "X")
    if labels is not None:
        labels = open_labels(place(labels)) if isinstance(labels, str | Path) else _as_array(labels, "labels")
    in_memory = isinstance(X, np.ndarray)
    chunks = getattr(X, "chunks", None)
    regular = chunks is not None and all(isinstance(c, int) for c in chunks)
    block_rows = rows_of_whole_chunks(X, dtype.itemsize) if regular else default_block_rows(m, dtype.itemsize, n)
    files = files_of(X, block_rows)
    points = SliceReader("X", X, n, block_rows, dtype, convert=cast, overlaps=in_memory, files=files)
    return _assemble("X", points, n, m, dtype, block_rows, labels, Source("", None, positive, intercept, many))


__all__ = [
    "Source",
    "check_shape",
    "for_checker",
    "from_arrays",
    "open_labels",
    "open_source",
    "seen_across",
    "seen_from",
    "source_of",
]
