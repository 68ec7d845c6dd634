"""What tests of data share: the same points from every source, datasets as they are opened and read, and files with damage."""

import bz2
import gzip
import json
import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import dask.array
import dask.dataframe
import h5py
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
import zarr

from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Cost


def opened(where: Any, labels: Any = None, **seen: Any) -> Dataset:
    """A dataset as it is seen."""
    return open_source(Source(DataSpec(where, labels, **seen)))


def read_rows(dataset: Dataset) -> Any:
    """All points (n, m), as an array or a CSR matrix."""
    rows = [block.points.copy() for block in dataset.read_blocks(range(dataset.blocks), Cost())]
    return sp.csr_array(sp.vstack(rows, format="csr")) if sp.issparse(rows[0]) else np.concatenate(rows)


def stored(where: Any) -> np.ndarray:
    """All points (n, m) of a dataset, dense."""
    rows = read_rows(opened(where))
    return rows.toarray() if sp.issparse(rows) else rows


def read_bytes(dataset: Dataset) -> tuple[bytes, Cost]:
    """Points, labels and norms of all blocks of dense points, and what they cost."""
    cost = Cost()
    blocks = dataset.read_blocks(range(dataset.blocks), cost, keep=True)
    return b"".join(b.points.tobytes() + b.label.tobytes() + b.norm.tobytes() for b in blocks), cost


def content(folder: Path) -> dict[str, Any]:
    """Every file of a dataset; metadata as values."""
    files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    return {name: json.loads(text) if name.endswith(".json") else text for name, text in files.items()}


def flip(file: Any, place: int = 9) -> bytes:
    """Change a bit of a file, or of an object; returns what was there."""
    intact: bytes = file.read_bytes()
    changed = bytearray(intact)
    changed[place] ^= 1
    file.write_bytes(bytes(changed))
    return intact


def spread(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """A pool as workers are: what travels is pickled, and pieces end in another order."""
    for item in reversed(list(items)):
        yield pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(work))(pickle.loads(pickle.dumps(item)))))


def write_csr(file: Any, X: Any, kind: str = "csr_matrix") -> None:
    """A sparse matrix as anndata 0.8 writes it."""
    group = file.create_group("X")
    group.attrs.update({"encoding-type": kind, "encoding-version": "0.1.0", "shape": X.shape})
    for part in ("data", "indices", "indptr"):
        group[part] = getattr(X, part)


NAMES = ("age (years)", "Größe, cm", 'say "hi"', "ZIP")
N, M = 120, len(NAMES)


def frame_of(classes: tuple[Any, Any]) -> pd.DataFrame:
    """Points of many scales with zeros, and between them a column ``class``, whose first label is the greater."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N, M)) * 10.0 ** rng.integers(-12, 12, (N, M))
    X[rng.random((N, M)) < 0.3] = 0
    greater = rng.random(N) < 0.4
    greater[0] = True
    frame = pd.DataFrame(X, columns=[*NAMES])
    frame.insert(2, "class", [classes[each] for each in greater.astype(int)])
    return frame


def points_of(frame: pd.DataFrame) -> np.ndarray:
    return np.ascontiguousarray(frame[[*NAMES]].to_numpy())


Write = Callable[[pd.DataFrame, Path], Any]
"""Makes a source of a frame: what ``ingest`` is given."""
NUMBERS, TEXT, SIGNS, QUOTED = (0, 1), ("no", "yes"), (-1, 1), ('a "b", 0', 'a "b", 1')
NAMED, PLACE = {"label_column": "class"}, {"label_column": "2"}


def as_csv(change: Callable[[bytes], bytes] = bytes, **options: Any) -> Write:
    def write(frame: pd.DataFrame, path: Path) -> Path:
        frame.to_csv(path, **{"index": False, "lineterminator": "\n", **options})
        path.write_bytes(change(path.read_bytes()))
        return path

    return write


def as_svmlight(change: Callable[[bytes], bytes] = bytes, base: int = 1, label: str = "{}") -> Write:
    def write(frame: pd.DataFrame, path: Path) -> Path:
        lines = []
        for row, each in zip(points_of(frame).tolist(), frame["class"], strict=True):
            lines.append(" ".join([label.format(each), *(f"{j + base}:{v!r}" for j, v in enumerate(row) if v)]) + "\n")
        path.write_bytes(change("".join(lines).encode()))
        return path

    return write


def beside(save: Callable[[Path, np.ndarray], Any]) -> Write:
    """Points alone, and labels in a file ``y.npy`` beside them."""

    def write(frame: pd.DataFrame, path: Path) -> Path:
        save(path, points_of(frame))
        np.save(path.with_name("y.npy"), frame["class"].to_numpy())
        return path

    return write


def as_npz(frame: pd.DataFrame, path: Path) -> Path:
    np.savez(path, X=points_of(frame), y=frame["class"].to_numpy(), feature_names=NAMES)
    return path


def as_packed_npz(frame: pd.DataFrame, path: Path) -> Path:
    np.savez_compressed(path, points=np.asfortranarray(points_of(frame)), labels=frame["class"].to_numpy())
    return path


def as_hdf5(frame: pd.DataFrame, path: Path) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=points_of(frame), chunks=(50, 3), compression="gzip")
        file["y"] = frame["class"].to_numpy()
        file["X"].attrs["feature_names"] = list(NAMES)
    return path


def with_a_scale(frame: pd.DataFrame, path: Path) -> Path:
    with h5py.File(path, "w") as file:
        file["X"], file["columns"] = points_of(frame), list(NAMES)
        file["y"] = np.array(frame["class"], dtype=h5py.string_dtype())
        file["columns"].make_scale("columns")
        file["X"].dims[1].attach_scale(file["columns"])
    return path


def as_h5ad(frame: pd.DataFrame, path: Path, sparse: bool = False, var: tuple[str, ...] = NAMES) -> Path:
    with h5py.File(path, "w") as file:
        if sparse:
            write_csr(file, sp.csr_array(points_of(frame)))
        else:
            file["X"] = points_of(frame)
            file["X"].attrs["encoding-type"] = "array"
        for table, index in (("obs", [f"cell-{i}" for i in range(len(frame))]), ("var", list(var))):
            file.create_group(table).attrs.update({"encoding-type": "dataframe", "_index": "_index"})
            file[table]["_index"] = index
        words = frame["class"].astype(str)
        file["obs"]["class"] = words.to_numpy(h5py.string_dtype())
        file["obs"]["number"] = (words == max(words)).to_numpy(int)
        kind = file["obs"].create_group("kind")
        kind.attrs["encoding-type"] = "categorical"
        kind["codes"], kind["categories"] = (words == min(words)).to_numpy(np.int8), [max(words), min(words)]
    return path


def as_folder(frame: pd.DataFrame, path: Path) -> Path:
    """Files whose columns come in another order."""
    path.mkdir()
    for place, rows in enumerate(np.array_split(np.arange(len(frame)), 3)):
        part = frame.iloc[rows]
        (part[part.columns[::-1]] if place else part).to_parquet(path / f"part-{place}.parquet", index=False)
    return path


def as_parquet(frame: pd.DataFrame, path: Path) -> Path:
    """In groups of rows, with an index of its own."""
    indexed = frame.set_axis(pd.Index(np.arange(len(frame))[::-1] + 10**9, name="customer"))
    pq.write_table(pa.Table.from_pandas(indexed), path, row_group_size=50)
    return path


def save_zarr(**options: Any) -> Callable[[Path, np.ndarray], Any]:
    return lambda path, X: zarr.create_array(path, data=X, chunks=(50, 3), **options)


FILES: dict[str, tuple[tuple[Any, Any], Write, dict[str, Any]]] = {
    "plain.csv": (NUMBERS, as_csv(), NAMED),
    "text.csv": (TEXT, as_csv(), PLACE),
    "quoted.csv": (QUOTED, as_csv(), NAMED),
    "excel.csv": (TEXT, as_csv(encoding="utf-8-sig", lineterminator="\r\n"), NAMED),
    "bare.csv": (TEXT, as_csv(lambda text: text[:-1], header=False), {**PLACE, "header": False}),
    "blank.csv": (NUMBERS, as_csv(lambda text: b"\n" + text.replace(b"\n", b"\n\n")), NAMED),
    "plain.tsv": (NUMBERS, as_csv(sep="\t"), NAMED),
    "packed.csv.gz": (NUMBERS, as_csv(), NAMED),
    "plain.svm": (NUMBERS, as_svmlight(), {}),
    "plus.svm": (SIGNS, as_svmlight(lambda text: text.replace(b"\n", b" \n"), label="{:+d}"), {}),
    "zero.svm": (NUMBERS, as_svmlight(base=0), {"zero_based": True, "features": M}),
    "notes.svm": (
        NUMBERS, as_svmlight(lambda text: b"# by hand\n\n" + text.replace(b"\n", b" # p=1:2\r\n"), label="{0}  qid:{0}"), {},
    ),
    "tabs.svm": (NUMBERS, as_svmlight(lambda text: text.replace(b" ", b"\t")[:-1]), {}),
    "packed.libsvm.gz": (NUMBERS, as_svmlight(gzip.compress), {}),
    "packed.svmlight.bz2": (NUMBERS, as_svmlight(bz2.compress), {}),
    "plain": (NUMBERS, as_svmlight(), {"format": "svmlight"}),
    "plain.npy": (NUMBERS, beside(np.save), {"y": "y.npy"}),
    "fortran.npy": (NUMBERS, beside(lambda path, X: np.save(path, np.asfortranarray(X))), {"y": "y.npy"}),
    "plain.npz": (NUMBERS, as_npz, {}),
    "packed.npz": (NUMBERS, as_packed_npz, {"points": "points", "y": "labels"}),
    "csr.npz": (NUMBERS, beside(lambda path, X: sp.save_npz(path, sp.csr_array(X))), {"y": "y.npy", "sparse": False}),
    "attribute.h5": (NUMBERS, as_hdf5, {}),
    "scale.h5": (TEXT, with_a_scale, {}),
    "text.h5ad": (TEXT, as_h5ad, NAMED),
    "number.h5ad": (NUMBERS, as_h5ad, {"label_column": "number"}),
    "categories.h5ad": (TEXT, as_h5ad, {"label_column": "kind"}),
    "csr.h5ad": (TEXT, lambda frame, path: as_h5ad(frame, path, sparse=True), {**NAMED, "sparse": False}),
    "zarr2": (NUMBERS, beside(save_zarr(zarr_format=2, order="F", compressors=None)), {"y": "y.npy"}),
    "zarr3": (NUMBERS, beside(save_zarr()), {"y": "y.npy"}),
    "plain.parquet": (TEXT, as_parquet, NAMED),
    "folder": (TEXT, as_folder, NAMED),
}  # fmt: skip
"""Of each format its files: the labels, what writes it, and what ``ingest`` needs to know."""


def in_chunks(frame: pd.DataFrame, path: Path) -> Any:
    return dask.array.from_array(points_of(frame), chunks=(50, 2))


def coded(frame: pd.DataFrame, path: Path) -> Any:
    return polars.from_pandas(frame).with_columns(polars.col("class").cast(polars.Categorical))


OBJECTS: dict[str, tuple[tuple[Any, Any], Write, dict[str, Any]]] = {
    "pandas": (TEXT, lambda frame, path: frame, NAMED),
    "nullable": (TEXT, lambda frame, path: frame.convert_dtypes(), NAMED),
    "types of Arrow": (TEXT, lambda frame, path: frame.convert_dtypes(dtype_backend="pyarrow"), NAMED),
    "categories": (TEXT, lambda frame, path: frame.astype({"class": "category"}), NAMED),
    "polars": (TEXT, lambda frame, path: polars.from_pandas(frame), NAMED),
    "categories of polars": (TEXT, coded, NAMED),
    "arrow": (TEXT, lambda frame, path: pa.Table.from_pandas(frame), NAMED),
    "dask": (TEXT, lambda frame, path: dask.dataframe.from_pandas(frame, npartitions=3), NAMED),
    "numpy": (NUMBERS, lambda frame, path: points_of(frame)[:, ::-1][:, ::-1], {"y": "beside"}),
    "chunks": (NUMBERS, in_chunks, {"y": "beside"}),
}
"""What libraries have in memory."""
SOURCES = {**FILES, **OBJECTS}


def source(name: str, folder: Path) -> tuple[Any, dict[str, Any], pd.DataFrame]:
    """What ``ingest`` is given, its options, and the frame that it is made of."""
    labels, write, options = SOURCES[name]
    frame = frame_of(labels)
    given = write(frame, folder / name)
    if options.get("y") == "beside":
        options = {"y": frame["class"].to_numpy()}
    elif options.get("y") == "y.npy":
        options = {**options, "y": folder / "y.npy"}
    return given, options, frame
