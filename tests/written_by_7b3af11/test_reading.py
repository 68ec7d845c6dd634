"""What commit 7b3af11 wrote is read: datasets, certificates, results, traces; its runs go on, its datasets grow."""

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import dfeas
from dfeas.analysis.verify import verify_separation
from dfeas.cli.status import run_status
from dfeas.data.ingest.cones import append_cones
from dfeas.data.open import open_source
from dfeas.data.source import Source
from dfeas.errors import CheckFailedError
from dfeas.run.result_files import load_run

ARCHIVE = Path(__file__).with_name("written.tar.xz")
REFUSED = {
    **dict.fromkeys(("quasi-complete", "overlap"), r"separation\.json: it has no weights of its support, .*: solve again"),
    "hard-margin": r"margin\.json: not readable",  # its share has another name
}
"""Runs that say what was not proved then."""
WRITTEN_AT = b"/tmp/written_by_7b3af11"


def runs(folder: str) -> list[str]:
    with tarfile.open(ARCHIVE) as archive:
        return sorted({Path(name).parts[1] for name in archive.getnames() if name.startswith(f"{folder}/")})


DATASETS, UNFINISHED = (runs(folder) for folder in ("datasets", "unfinished"))
FINISHED = [name for name in runs("finished") if not name.startswith("soft") and name not in ("race", "classes", "dual.npy")]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of it, as if it had been written here; nothing in it is changed."""
    path = tmp_path_factory.mktemp("written")
    with tarfile.open(ARCHIVE) as archive:
        # Python 3.11.3 and older have no filters, 3.12 and 3.13 warn where none is named
        archive.extractall(path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    for file in path.rglob("*.json"):
        file.write_bytes(file.read_bytes().replace(WRITTEN_AT, str(path).encode()))
    return path


def said(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "result.json").read_text())
    return found


@pytest.mark.parametrize("name", [name for name in DATASETS if name != "mask.npy"])
def test_a_dataset_is_read_whole(room: Path, name: str) -> None:
    path = room / "datasets" / name
    dataset = open_source(Source(str(path), cones="cone" in name))
    assert dataset.header is not None
    assert dataset.header.format == 1
    found = dfeas.solve(path, one_vs_rest=name == "half")
    assert found.fingerprint == dataset.fingerprint
    assert found.stopped == "verdict"


@pytest.mark.parametrize("name", FINISHED)
def test_a_verdict_is_proved_again(room: Path, name: str) -> None:
    run = room / "finished" / name
    values = said(run)
    refused = REFUSED.get(name)
    if refused is not None:
        with pytest.raises(CheckFailedError, match=refused):
            dfeas.verify_run(run)
        return
    proved = dfeas.verify_run(run)
    stronger = ("infeasible", "exact") if name == "cones-infeasible" else None  # nobody proved that of cones then
    assert (proved.verdict, proved.proof) == (stronger or (values["verdict"], values["proof"]))
    loaded = load_run(name, run)
    assert loaded.certificate is not None
    assert len(loaded.records) >= loaded.values["passes"]
    assert run_status(run).state == "finished"


def test_a_separation_is_proved_again(room: Path) -> None:
    complete = room / "finished" / "complete"
    found = verify_separation(complete, dfeas.verify_run(complete))
    assert found is not None
    assert found.kind == "complete"


def test_classes_and_methods_of_a_race_are_proved_again(room: Path) -> None:
    classes = dfeas.verify_classes(room / "finished" / "classes")
    assert {name: check and check.verdict for name, check in classes.items()} == dict.fromkeys("abc", "feasible")
    decided = [run for run in (room / "finished" / "race").iterdir() if run.is_dir() and said(run)["verdict"] != "undecided"]
    assert {dfeas.verify_run(run).verdict for run in decided} == {"feasible"}


def test_pages_and_tables_are_made(room: Path, tmp_path: Path) -> None:
    verdicts = [room / "finished" / name for name in (*FINISHED, "classes", "race")]
    assert {row["verdict"] for row in dfeas.compare(verdicts)} >= {"feasible", "infeasible", "eps-infeasible"}
    soft = [room / "finished" / name for name in ("soft", "soft-path")]
    assert [row["loss"] for row in dfeas.compare(soft)] == ["hinge", "squared_hinge"]
    for run in (room / "finished" / "infeasible", soft[0]):
        assert run.name in dfeas.report([run], tmp_path / f"{run.name}.html").read_text()


@pytest.mark.parametrize(
    ("run", "data"),
    [
        ("feasible", "dense"),
        ("feasible-intercept", "dense"),
        ("hard-margin", "dense"),
        ("kernel", "overlapping"),
        ("cones", "cones"),
        ("classes", "half"),
        ("soft", "overlapping"),
        ("soft-path", "overlapping"),
    ],
)
def test_points_are_predicted(room: Path, run: str, data: str) -> None:
    found = dfeas.predict(room / "finished" / run, room / "datasets" / data)
    if run in ("feasible", "feasible-intercept", "hard-margin", "kernel"):
        assert found.accuracy == 1


def test_points_are_appended_and_verdicts_rechecked(room: Path, tmp_path: Path) -> None:
    data, finished = Path(shutil.copytree(room / "datasets", tmp_path / "datasets")), room / "finished"
    rng = np.random.default_rng(5)
    np.savez(tmp_path / "more.npz", X=rng.standard_normal((40, 4)).astype(np.float32), y=np.repeat([-1, 1], 20))
    assert dfeas.append(data / "flipped", tmp_path / "more.npz").n == 140
    assert dfeas.recheck(finished / "infeasible", data / "flipped").holds
    X = scipy.sparse.random_array((40, 8), density=0.2, rng=3, format="csr")
    assert dfeas.append(data / "sparse", X, labels=np.repeat([-1, 1], 20)).n == 130
    assert dfeas.recheck(finished / "infeasible-sparse", data / "sparse").holds
    rows = open_source(Source(str(data / "cones"), cones=True)).n
    np.save(tmp_path / "rows.npy", rng.standard_normal((6, 4)))
    assert append_cones(data / "cones", tmp_path / "rows.npy", "l:6").n == rows + 6
    assert dfeas.recheck(finished / "cones", data / "cones").new_points == 6


@pytest.mark.parametrize("name", UNFINISHED)
def test_a_run_goes_on(room: Path, tmp_path: Path, name: str) -> None:
    run = Path(shutil.copytree(room / "unfinished" / name, tmp_path / "run"))
    assert run_status(run).state == "resumable"
    parts = [path.parent for path in run.rglob("trace.jsonl")]  # of each class or method
    before = [(said(part), (part / "trace.jsonl").read_bytes()) for part in parts]
    dfeas.resume(run, str(data_of(parts[0])), max_passes=7)
    for part, (values, trace) in zip(parts, before, strict=True):
        assert said(part)["passes"] > values["passes"]
        assert said(part)["stopped"] in ("verdict", "pass_limit", "stalled")
        assert (part / "trace.jsonl").read_bytes().startswith(trace[: trace.index(b'"event": "pass"')])


def data_of(run: Path) -> Path:
    return Path(said(run)["data"]["path"])
