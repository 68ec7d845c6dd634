"""A number of the format in every file of ours, and one line for a newer one, whoever reads it."""

import json
import shutil
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest

import dfeas
from dfeas.data.storage import files as formats
from dfeas.errors import CorruptDataError
from tests.typed import dfeas as typed

Forge = Callable[[Path], None]


def newer_json(path: Path) -> None:
    values = json.loads(path.read_text())
    path.write_text(json.dumps({formats.KEY: values[formats.KEY] + 1, "all": "that comes"}))


def newer_header(path: Path) -> None:
    values = json.loads(path.read_text())
    values["attributes"]["dfeas"] = {formats.KEY: formats.DATASET + 1}
    path.write_text(json.dumps(values))


def newer_certificate(path: Path) -> None:
    np.savez(path, **{formats.KEY: np.array(formats.CERTIFICATE + 1)})


def newer_trace(path: Path) -> None:
    first, rest = path.read_text().split("\n", 1)
    line = json.loads(first)
    path.write_text(json.dumps({**line, formats.KEY: line[formats.KEY] + 1}) + "\n" + rest)


def newer_checkpoints(path: Path) -> None:
    for file in path.glob("*.state"):
        line, _, rest = file.read_bytes().partition(b"\n")
        tree = json.loads(line)
        file.write_bytes(json.dumps({**tree, formats.KEY: tree[formats.KEY] + 1, "value": "other"}).encode() + b"\n" + rest)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, a finished run with an answer beside it, and one that can go on."""
    path = tmp_path_factory.mktemp("formats")
    with chdir(path):
        dfeas.generate(dfeas.Instance("planted", m=4, n=200, margin=0.2), "data")
        dfeas.separation("data", out="run")
        dfeas.solve("data", method="mirror-prox-fixed", max_passes=3, margin_tolerance=1e-6, out="cut")
    return path


@pytest.fixture
def room(made: Path, tmp_path: Path) -> Path:
    """All of that, to be changed."""
    return Path(shutil.copytree(made, tmp_path / "room"))


CERTIFICATE, RESULT, TRACE = "run/certificate.npz", "run/result.json", "run/trace.jsonl"
PREDICT = ("predict", "run", "data", "scores.npy")


@pytest.mark.parametrize(
    ("file", "forge", "words"),
    [
        ("data/zarr.json", newer_header, ("info", "data")),
        ("data/zarr.json", newer_header, ("verify", "data", CERTIFICATE)),
        ("data/zarr.json", newer_header, PREDICT),
        (RESULT, newer_json, ("report", "run")),
        (RESULT, newer_json, ("compare", "run")),
        (RESULT, newer_json, ("verify", "run")),
        (RESULT, newer_json, ("status", "run")),
        (RESULT, newer_json, PREDICT),
        (CERTIFICATE, newer_certificate, ("report", "run")),
        (CERTIFICATE, newer_certificate, ("verify", "run")),
        (CERTIFICATE, newer_certificate, ("verify", "data", CERTIFICATE)),
        (CERTIFICATE, newer_certificate, PREDICT),
        (TRACE, newer_trace, ("report", "run")),
        (TRACE, newer_trace, ("status", "run")),
        ("run/separation.json", newer_json, ("verify", "run")),
        ("cut/checkpoint", newer_checkpoints, ("resume", "cut")),
    ],
)
def test_a_newer_format_is_refused(room: Path, file: str, forge: Forge, words: tuple[str, ...]) -> None:
    forge(room / file)
    done = typed(*words, cwd=room)
    assert (done.returncode, done.stdout) == (5, "")
    (line,) = done.stderr.splitlines()
    assert Path(file).parts[0] in line
    newest = {newer_header: 4, newer_certificate: 2}.get(forge, 1)
    says = f"written in format {newest + 1} by a newer dfeas; this dfeas {dfeas.__version__} reads formats up to {newest}"
    assert f"{says}: upgrade dfeas" in line


def test_all_json_of_a_run_has_a_number(room: Path) -> None:
    dfeas.hard_margin(room / "data", out=room / "hard")
    dfeas.race(room / "data", methods=["perceptron", "von-neumann"], out=room / "race")
    dfeas.soft_margin(room / "data", C=1.0, out=room / "soft")
    files = list(room.glob("*/*.json"))
    assert {file.name for file in files} >= {"result.json", "race.json", "margin.json", "separation.json"}
    for file in files:
        if file.parent.name != "data":
            assert json.loads(file.read_text())[formats.KEY] == (2 if file.name == "margin.json" else 1), file


def test_a_trace_says_its_format_once_and_a_run_that_goes_on_does_not_repeat_it(room: Path) -> None:
    dfeas.resume(room / "cut", max_passes=6)
    first, *others = (json.loads(line) for line in (room / "cut" / "trace.jsonl").read_text().splitlines())
    assert first[formats.KEY] == formats.TRACE
    assert not any(formats.KEY in line for line in others)


@pytest.mark.parametrize("number", [-1, True, 1.0, "1", None, [1]])
def test_a_number_that_is_none_is_damage(room: Path, number: object) -> None:
    path = room / RESULT
    path.write_text(json.dumps({**json.loads(path.read_text()), formats.KEY: number}))
    with pytest.raises(CorruptDataError, match="its format is"):
        dfeas.compare([room / "run"])
