"""resume of a run that is finished ends as the run did, and 75 is said only where there is something to go on from."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from tests.typed import dfeas as typed

RUNS: dict[str, tuple[Any, ...]] = {
    "solve": ("solve", "data"),
    "one-vs-rest": ("solve", "data", "--one-vs-rest"),
    "separation": ("solve", "data", "--separation"),
    "hard margin": ("solve", "data", "--hard-margin"),
    "race": ("race", "data", "--methods", "perceptron,working-set"),
    "svm": ("svm", "data", "--C", 1),
    "inside": ("in-hull", "0,0", "data"),
    "outside": ("in-hull", "9,9", "data"),
    "neither": ("in-hull", "0,0", "data", "--eps", 0.9, "--method", "mirror-prox"),
    "feasible": ("feasible", "A.npy", "b.npy"),
    "no reads": ("feasible", "A.npy", "b.npy", "--max-passes", 1),
}
CODES = {"neither": 3}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, X = tmp_path_factory.mktemp("finished"), np.random.default_rng(0).standard_normal((60, 2))
    dfeas.ingest(X, path / "data", y=np.where(X[:, 0] > 0, "a", "b"))
    np.save(path / "A.npy", X)
    np.save(path / "b.npy", np.ones(60))
    return path


@pytest.mark.parametrize("kind", RUNS)
def test_it_has_the_exit_code_of_the_run(room: Path, tmp_path: Path, kind: str) -> None:
    first = typed(*RUNS[kind], "--out", tmp_path / "run", cwd=room)
    assert first.returncode == CODES.get(kind, first.returncode), first.stderr
    for more in ([], ["--json"]):
        again = typed("resume", tmp_path / "run", *more, cwd=room)
        assert again.returncode == first.returncode, (first.stdout, first.stderr, again.stderr)


@pytest.mark.parametrize("stopped", ["stalled", "numerical_error", "interrupted"])
@pytest.mark.parametrize("kind", ["solve", "one-vs-rest", "race", "svm", "inside", "feasible"])
def test_so_has_one_that_ended_undecided(room: Path, tmp_path: Path, kind: str, stopped: str) -> None:
    assert typed(*RUNS[kind], "--out", tmp_path / "run", cwd=room).returncode == 0
    for file in (tmp_path / "run").rglob("result.json"):
        values = json.loads(file.read_text())
        verdict = {"verdict": "undecided", "proof": "none"} if "verdict" in values else {}
        file.write_text(json.dumps({**values, "stopped": stopped, **verdict}))
    again = typed("resume", tmp_path / "run", cwd=room)
    assert (again.returncode, again.stdout) == (3, f"{tmp_path / 'run'} is finished\n")
