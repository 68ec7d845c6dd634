"""Workers that run in another folder than the driver: relative paths mean the driver's, and what a worker lacks is said."""

import os
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.engine.clusters import local_cluster

X = np.random.default_rng(0).standard_normal((40, 3))
Y = X @ [1.0, 2.0, -1.0] > 0
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=Y.astype(int))


def write_hdf5(path: str) -> None:
    with h5py.File(path, "w") as file:
        file["X"], file["y"] = X, Y


def write_parquet(folder: str) -> None:
    os.mkdir(folder)
    FRAME[:20].to_parquet(f"{folder}/first.parquet")
    FRAME[20:].to_parquet(f"{folder}/then.parquet")


def write_svmlight(path: str) -> None:
    lines = (f"{'+1' if label else '-1'} 1:{x[0]!r} 2:{x[1]!r} 3:{x[2]!r}\n" for x, label in zip(X.tolist(), Y, strict=True))
    Path(path).write_text("".join(lines))


FORMATS: dict[str, tuple[Callable[[str], object], dict[str, Any]]] = {
    "t.csv": (lambda path: FRAME.to_csv(path, index=False), {"label_column": "label"}),
    "t.tsv": (lambda path: FRAME.to_csv(path, sep="\t", index=False), {"label_column": "label"}),
    "t.parquet": (lambda path: FRAME.to_parquet(path), {"label_column": "label"}),
    "parts": (write_parquet, {"label_column": "label"}),
    "t.svm": (write_svmlight, {}),
    "t.npy": (lambda path: np.save(path, X), {"y": "y.npy"}),
    "t.h5": (write_hdf5, {}),
    "t.zarr": (lambda path: zarr.save_array(path, X), {"y": "y.npy"}),
    "t.npz": (lambda path: scipy.sparse.save_npz(path, scipy.sparse.csr_array(X)), {"y": "y.npy"}),
}


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client whose workers are in a folder of their own."""
    with local_cluster(2) as client:
        client.run(os.chdir, str(tmp_path_factory.mktemp("workers")))
        yield client


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("y.npy", Y)


@pytest.mark.parametrize("name", FORMATS)
def test_a_relative_path_means_the_folder_of_the_driver(name: str, away: Any) -> None:
    write, options = FORMATS[name]
    write(name)
    labels = options.get("label_column", options.get("y"))
    assert dfeas.solve(name, labels, client=away).verdict == "feasible"
    if name == "t.npz":  # an archive, which one process reads
        return
    made = dfeas.ingest(name, "made.data", **options, client=away)
    assert made.fingerprint == dfeas.ingest(name, "alone.data", **options).fingerprint
    assert dfeas.solve("made.data", client=away, out="run", mask="y.npy").n == Y.sum()


@pytest.mark.parametrize("name", ["t.csv", "parts", "t.svm"])
def test_so_it_does_for_commands(name: str, away: Any) -> None:
    write, options = FORMATS[name]
    write(name)
    words = [f"--{option.replace('_', '-')}={value}" for option, value in options.items()]
    for command in (["ingest", name, "made.data", *words], ["solve", "made.data", "--out", "run"]):
        done = CliRunner().invoke(commands, [*command, "--scheduler", away.scheduler.address])
        assert done.exit_code == 0, done.output


def test_a_file_that_a_worker_does_not_see_is_said_with_worker_and_host(away: Any, tmp_path: Path) -> None:
    """A link to the folder of each process: this one finds the file, and workers do not."""
    write_parquet("parts")
    Path("parts/then.parquet").rename("then.parquet")
    Path("parts/then.parquet").symlink_to("/proc/self/cwd/then.parquet")
    with pytest.raises(dfeas.CorruptDataError) as told:
        dfeas.ingest("parts", "made.data", label_column="label", client=away)
    path = re.escape(str(tmp_path / "parts/then.parquet"))
    workers = "|".join(map(re.escape, away.scheduler_info(n_workers=-1)["workers"]))
    expected = rf"{path}: No such file or directory \(worker ({workers}) on {re.escape(socket.gethostname())}\)"
    assert re.fullmatch(expected, str(told.value))
    assert told.value.exit_code == 5
    assert not Path("made.data").exists()


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.svm", "t.npy", "t.h5"])
def test_a_file_that_no_worker_sees_is_no_damage(name: str, away: Any) -> None:
    write, options = FORMATS[name]
    write(f"real-{name}")
    Path(name).symlink_to(f"/proc/self/cwd/real-{name}")
    if name in ("t.csv", "t.svm"):  # text is read here
        assert dfeas.ingest(name, "made.data", **options, client=away).n
    else:
        with pytest.raises(dfeas.BadInputError) as told:
            dfeas.ingest(name, "made.data", **options, client=away)
        path = re.escape(str(Path(name).absolute()))
        assert re.search(rf"tcp://\S+ on \S+: {path}: no such file or folder there", str(told.value))
    with pytest.raises(dfeas.BadInputError, match="no such file or folder there"):
        dfeas.solve(name, options.get("label_column", options.get("y")), client=away)
