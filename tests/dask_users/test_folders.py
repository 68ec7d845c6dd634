"""Workers that run in another folder than the driver: relative paths mean the driver's, and what a worker lacks is said."""

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.engine.clusters import local_cluster
from tests.data.making import N, source

FORMATS = ("plain.csv", "plain.tsv", "plain.parquet", "folder", "plain.svm", "plain.npy", "attribute.h5", "zarr3", "csr.npz")


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client whose workers are in a folder of their own."""
    with local_cluster(2) as client:
        client.run(os.chdir, str(tmp_path_factory.mktemp("workers")))
        yield client


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", FORMATS)
def test_a_relative_path_means_the_folder_of_the_driver(name: str, away: Any) -> None:
    _, options, _ = source(name, Path())
    labels = options.get("label_column", options.get("y"))
    expected = dfeas.solve(name, labels, max_passes=1).fingerprint
    assert dfeas.solve(name, labels, client=away, max_passes=1).fingerprint == expected
    if name == "csr.npz":  # an archive, which one process reads
        return
    made = dfeas.ingest(name, "made.data", **options, client=away)
    assert made.fingerprint == dfeas.ingest(name, "alone.data", **options).fingerprint
    np.save("mask.npy", np.arange(N) % 3 == 0)
    assert dfeas.solve("made.data", client=away, out="run", mask="mask.npy", max_passes=1).n == N // 3


def test_so_it_does_for_commands(away: Any) -> None:
    source("folder", Path())
    for command in (["ingest", "folder", "made.data", "--label-column=class"], ["solve", "made.data", "--out", "run"]):
        done = CliRunner().invoke(commands, [*command, "--scheduler", away.scheduler.address])
        assert done.exit_code == 0, done.output


def test_a_file_that_a_worker_does_not_see_is_said_with_worker_and_host(away: Any, tmp_path: Path) -> None:
    """A link to the folder of each process: this one finds the file, and workers do not."""
    source("folder", Path())
    Path("folder/part-2.parquet").rename("then.parquet")
    Path("folder/part-2.parquet").symlink_to("/proc/self/cwd/then.parquet")
    with pytest.raises(dfeas.CorruptDataError) as told:
        dfeas.ingest("folder", "made.data", label_column="class", client=away)
    path = re.escape(str(tmp_path / "folder/part-2.parquet"))
    workers = "|".join(map(re.escape, away.scheduler_info(n_workers=-1)["workers"]))
    expected = rf"{path}: No such file or directory \(worker ({workers}) on {re.escape(socket.gethostname())}\)"
    assert re.fullmatch(expected, str(told.value))
    assert told.value.exit_code == 5
    assert not Path("made.data").exists()


@pytest.mark.parametrize("name", ["plain.csv", "plain.parquet", "plain.npy", "attribute.h5"])
def test_a_file_that_no_worker_sees_is_no_damage(name: str, away: Any) -> None:
    given, options, _ = source(name, Path())
    given.rename(f"real-{name}")
    Path(name).symlink_to(f"/proc/self/cwd/real-{name}")
    if name == "plain.csv":  # text is read here
        assert dfeas.ingest(name, "made.data", **options, client=away).n
    else:
        with pytest.raises(dfeas.BadInputError) as told:
            dfeas.ingest(name, "made.data", **options, client=away)
        path = re.escape(str(Path(name).absolute()))
        assert re.search(rf"tcp://\S+ on \S+: {path}: no such file or folder there", str(told.value))
    with pytest.raises(dfeas.BadInputError, match="no such file or folder there"):
        dfeas.solve(name, options.get("label_column", options.get("y")), client=away)
