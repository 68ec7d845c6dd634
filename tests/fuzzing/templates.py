"""Whole files of every kind that dfeas reads, small, with the commands that read them."""

from __future__ import annotations

import bz2
import gzip
import io
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import scipy.sparse
import zarr

import dfeas

FOLDER = "@FOLDER@"
"""Stands for the folder of the files, in files and in words of a command."""

Words = tuple[str, ...]
Files = dict[str, bytes]


@dataclass(frozen=True)
class Template:
    name: str
    files: Files
    targets: tuple[str, ...]  # files that are to be damaged
    commands: tuple[Words, ...]  # each reads all of them


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def of_folder(folder: Path, *parts: str) -> Files:
    """All files of some folders in a folder, by their path there."""
    paths = sorted(path for part in parts for path in (folder / part).rglob("*") if path.is_file())
    held = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    return {name: moved(name, data, str(folder), FOLDER) for name, data in held.items()}


def moved(name: str, data: bytes, old: str, new: str) -> bytes:
    """A file as it is when the folder is another one; in archives it stays."""
    return data.replace(old.encode(), new.encode()) if name.endswith(".json") else data


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5)).round(3)
    return X, np.where(X @ rng.standard_normal(5) + 0.4 * rng.standard_normal(40) > 0, 1, -1)


def arrays() -> list[Template]:
    X, y = data()
    whole, thin = io.BytesIO(), io.BytesIO()
    np.savez(whole, X=X, y=y)
    scipy.sparse.save_npz(thin, scipy.sparse.csr_array(np.where(X > 0.9, X, 0)), compressed=False)
    points, labels = {"x.npy": npy(X)}, {"y.npy": npy(y)}
    ingest = ("ingest", "x.npy", "out", "--labels", "y.npy")
    return [
        Template("npy", points | labels, ("x.npy", "y.npy"), (ingest,)),
        Template("npy integers", {"x.npy": npy((9 * X).astype(np.int8)), **labels}, ("x.npy", "y.npy"), (ingest,)),
        Template("npz", {"x.npz": whole.getvalue()}, ("x.npz",), (("ingest", "x.npz", "out"),)),
        Template("csr", {"x.npz": thin.getvalue(), **labels}, ("x.npz",), (("ingest", "x.npz", "out", "--labels", "y.npy"),)),
    ]


def texts() -> list[Template]:
    X, y = data()
    lines = ["class,a,b,c,d,e", *(",".join([str(label), *map(str, row)]) for row, label in zip(X.tolist(), y, strict=True))]
    svm = "".join(
        f"{label} " + " ".join(f"{k + 1}:{v}" for k, v in enumerate(row)) + "\n"
        for row, label in zip(X.tolist(), y, strict=True)
    ).encode()
    csv = ("\n".join(lines) + "\n").encode()
    named = ("--label-column", "class")
    return [
        Template("csv", {"x.csv": csv}, ("x.csv",), (("ingest", "x.csv", "out", *named),)),
        Template("tsv", {"x.tsv": csv.replace(b",", b"\t")}, ("x.tsv",), (("ingest", "x.tsv", "out", *named),)),
        Template("csv.gz", {"x.csv.gz": gzip.compress(csv)}, ("x.csv.gz",), (("ingest", "x.csv.gz", "out", *named),)),
        Template("svmlight", {"x.svm": svm}, ("x.svm",), (("ingest", "x.svm", "out"),)),
        Template("svmlight.bz2", {"x.svm.bz2": bz2.compress(svm)}, ("x.svm.bz2",), (("ingest", "x.svm.bz2", "out"),)),
        Template("sdpa", {"x.dat-s": SDPA}, ("x.dat-s",), (("ingest", "x.dat-s", "out"),)),
    ]


SDPA = b""""Example"
2 = mDIM
2 = nBLOCK
{2, -2}
{10.0, 20.0}
0 1 1 1 1.0
0 1 2 2 2.0
0 2 1 1 3.0
0 2 2 2 4.0
1 1 1 1 1.0
1 1 2 2 1.0
2 1 2 2 1.0
2 2 1 1 5.0
2 2 1 2 0.5
2 2 2 2 6.0
"""


def files(folder: Path) -> list[Template]:
    """HDF5, AnnData, Parquet, and a zarr array of somebody else."""
    X, y = data()
    with h5py.File(folder / "x.h5", "w") as held:
        held["X"], held["y"] = X, y
    with h5py.File(folder / "x.h5ad", "w") as held:
        held.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        thin = scipy.sparse.csr_matrix(np.where(X > 0.9, X, 0))
        group = held.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": thin.shape})
        group["data"], group["indices"], group["indptr"] = thin.data, thin.indices, thin.indptr
        obs = held.create_group("obs")
        obs.attrs.update(
            {"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index", "column-order": ["kind"]}
        )
        obs["_index"], obs["kind"] = np.arange(len(y)).astype("S"), y
    table = pyarrow.table({"class": y, **{name: X[:, k] for k, name in enumerate("abcde")}})
    pyarrow.parquet.write_table(table, folder / "x.parquet")
    array = zarr.create_array(folder / "x.zarr", shape=X.shape, chunks=(16, 5), dtype="float64")
    array[:] = X
    held_ = of_folder(folder, "x.zarr") | {"y.npy": npy(y)}
    of_zarr = tuple(name for name in held_ if name != "y.npy")
    of_zarr = (*of_zarr, "x.zarr/zarr.json", "x.zarr/zarr.json")
    named, one = ("--label-column", "class"), {name: (folder / name).read_bytes() for name in ("x.h5", "x.h5ad", "x.parquet")}
    solve = ("solve", "x.zarr", "--labels", "y.npy", "--out", "run")
    return [
        Template("hdf5", {"x.h5": one["x.h5"]}, ("x.h5",), (("ingest", "x.h5", "out"),)),
        Template("h5ad", {"x.h5ad": one["x.h5ad"]}, ("x.h5ad",), (("ingest", "x.h5ad", "out", "--label-column", "kind"),)),
        Template("parquet", {"x.parquet": one["x.parquet"]}, ("x.parquet",), (("ingest", "x.parquet", "out", *named),)),
        Template("zarr", held_, of_zarr, (solve, ("ingest", "x.zarr", "out", "--labels", "y.npy"))),
    ]  # fmt: skip


def ask(name: str) -> tuple[Words, ...]:
    """What reads a dataset."""
    return ("info", name), ("solve", name, "--out", "run")


def datasets(folder: Path) -> list[Template]:
    """Datasets of dfeas, and what belongs to a question about one."""
    X, y = data()
    dfeas.ingest(X, folder / "d", y=y)
    dfeas.ingest(scipy.sparse.csr_array(np.where(X > 0.9, X, 0)), folder / "s", y=y)
    dense, thin = of_folder(folder, "d"), of_folder(folder, "s")
    beside = {"mask.npy": npy(y > -2), "weights.npy": npy(np.ones(40)), "point.npy": npy(np.zeros(5))}
    return [
        Template("dataset", dense, tuple(dense), ask("d")),
        Template("dataset, sparse", thin, tuple(thin), ask("s")),
        Template("mask", dense | beside, ("mask.npy",), (("solve", "d", "--out", "run", "--mask", "mask.npy"),)),
        Template("weights", dense | beside, ("weights.npy",), (("svm", "d", "--out", "run", "--weights", "weights.npy"),)),
        Template("point", dense | beside, ("point.npy",), (("in-hull", "point.npy", "d", "--out", "run"),)),
    ]


def runs(folder: Path) -> list[Template]:
    """Runs that ended, and one that can go on."""
    dfeas.solve(folder / "d", out=folder / "run", kernel=dfeas.Kernel("rbf", gamma=0.5))
    dfeas.separation(folder / "d", out=folder / "kind")
    dfeas.solve(folder / "d", out=folder / "open", method="mirror-prox", max_passes=4, eps=1e-9)
    found = []
    for name in ("run", "kind"):
        held = of_folder(folder, "d", name)
        asked = (
            ("verify", name),
            ("predict", name, "d", "out.npy"),
            ("compare", name),
            ("status", name),
        )
        found.append(Template(f"a finished {name}", held, tuple(each for each in held if each.startswith(name)), asked))
    held = of_folder(folder, "d", "open")
    points = tuple(name for name in held if name.startswith("open/checkpoint"))
    going = (("resume", "open", "--data", f"{FOLDER}/d", "--max-passes", "9"), ("status", "open"))
    return [*found, Template("checkpoint", held, points, going)]


def templates(folder: Path) -> tuple[Template, ...]:
    """All of them."""
    return (*arrays(), *texts(), *files(folder), *datasets(folder), *runs(folder))
