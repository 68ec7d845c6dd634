"""``dfeas config``: what is shipped stands where Dask reads it, and nothing of anybody else is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dfeas.engine.clusters import load_configuration, read_configuration


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, dict[str, str]]:
    """Where the file belongs, and the environment that says so."""
    home = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")} | {"HOME": str(tmp_path)}
    kind = getattr(request, "param", "home")
    if kind == "home":
        return tmp_path / ".config" / "dask" / "dfeas.yaml", home
    where = tmp_path / ("dask" if kind == "folder" else "dask.yaml")
    return where / "dfeas.yaml" if kind == "folder" else where, home | {"DASK_CONFIG": str(where)}


def run(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("place", ["home", "folder", "file"], indirect=True)
def test_dask_reads_what_is_written(place: tuple[Path, dict[str, str]]) -> None:
    path, env = place
    done = run(env, "-m", "dfeas", "config", "--write")
    assert (done.returncode, done.stdout.strip()) == (0, str(path)), done.stderr
    assert path.read_text() == read_configuration()
    assert [each.name for each in path.parent.iterdir() if each.name.endswith(".part")] == []
    names = ("distributed.scheduler.worker-ttl", "distributed.nanny.pre-spawn-environ", "distributed.worker.memory.pause")
    look = "import json, sys, dask.config, distributed; print(json.dumps([dask.config.get(name) for name in sys.argv[1:]]))"
    found = dict(zip(names, json.loads(run(env, "-c", look, *names).stdout), strict=True))
    shipped = load_configuration()
    assert found[names[0]] == shipped[names[0]]
    assert found[names[2]] == shipped[names[2]]
    assert found[names[1]]["MALLOC_TRIM_THRESHOLD_"] == shipped[f"{names[1]}.MALLOC_TRIM_THRESHOLD_"]
    assert run(env, "-m", "dfeas", "config", "--write").returncode == 0  # once more changes nothing


def test_a_file_that_says_something_else_stays(place: tuple[Path, dict[str, str]]) -> None:
    path, env = place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("distributed:\n  scheduler:\n    worker-ttl: 1h\n")
    done = run(env, "-m", "dfeas", "config", "--write")
    assert (done.returncode, "--force" in done.stderr, done.stderr.count("\n")) == (2, True, 1)
    assert "1h" in path.read_text()
    assert run(env, "-m", "dfeas", "config", "--write", "--force").returncode == 0
    assert path.read_text() == read_configuration()


def test_it_is_shown_without_being_written(place: tuple[Path, dict[str, str]]) -> None:
    path, env = place
    done = run(env, "-m", "dfeas", "config")
    assert yaml.safe_load(done.stdout) == yaml.safe_load(read_configuration())
    found = json.loads(run(env, "-m", "dfeas", "config", "--json").stdout)
    assert found == {"path": str(path), "written": False, "configuration": load_configuration()}
    assert not path.exists()
    assert run(env, "-m", "dfeas", "config", "--force").returncode == 2
