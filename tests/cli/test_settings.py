"""What is set once: by a site, a user, the environment and a call; ``dfeas info --settings``."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask.config
import numpy as np
import pytest

import dfeas
from dfeas.machine import most_threads, processors
from dfeas.run.resources import Limits
from dfeas.settings import OF_DASK, SETTINGS, dask_places, key_of, variable
from tests.cli.making import require_refused
from tests.typed import DFEAS

SOME: dict[str, tuple[str, Any]] = {
    "memory": ("3GB", 3_000_000_000),
    "threads": ("1", 1),
    "time_limit": ("3600", 3600.0),
    "scheduler": ("tcp://head:8786", "tcp://head:8786"),
    "cluster": ("site:start", "site:start"),
    "cache_dir": ("/kept", "/kept"),
    "scratch": ("/tiles", "/tiles"),
    "checkpoint_every": ("60", 60.0),
    "storage_patience": ("5", 5.0),
    "same_bits": ("true", True),
    "progress": ("off", False),
}
"""A value of each as it is written, and as it is read."""
WRONG = {"size": "2QB", "count": "1.5", "time": "-1", "seconds": "often", "switch": "maybe", "text": "[1, 2]"}
"""What is no value of a kind, where YAML is read."""


class Site:
    """A machine whose administrator and user have files of Dask's configuration; commands there have no other settings."""

    def __init__(self, home: Path) -> None:
        self.system, self.home, self.cwd = home / "etc" / "site.yaml", home / ".config" / "dask" / "mine.yaml", home
        names = ("DFEAS_", "DASK_")
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(names)}
        self.env |= {"HOME": str(home), "DASK_ROOT_CONFIG": str(self.system.parent)}
        for file in (self.system, self.home):
            file.parent.mkdir(parents=True)

    def run(self, *words: Any, **env: str) -> subprocess.CompletedProcess[str]:
        typed = [*DFEAS, *map(str, words)]
        return subprocess.run(typed, env={**self.env, **env}, cwd=self.cwd, capture_output=True, text=True, timeout=120)

    def found(self, **env: str) -> dict[str, tuple[Any, str]]:
        """Value and source of each setting."""
        done = self.run("info", "--settings", "--json", **env)
        assert done.returncode == 0, done.stderr
        return {each["name"]: (each["value"], each["source"]) for each in json.loads(done.stdout)["settings"]}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def written(values: dict[str, str]) -> str:
    return "dfeas:\n" + "".join(f"  {name.replace('_', '-')}: {value}\n" for name, value in values.items())


def test_what_counts_most_is_found_for_each_setting_and_where_it_stands(site: Site) -> None:
    assert SOME.keys() == SETTINGS.keys()
    default = site.found()
    assert {source for _, source in default.values()} == {"default"}
    site.system.write_text(written({name: text for name, (text, _) in SOME.items()}))
    assert site.found() == {name: (value, str(site.system)) for name, (_, value) in SOME.items()}
    # a user has others, or none, and the environment of Dask, that of dfeas count more, in this order
    site.home.write_text(written({"memory": "4GB", "cluster": "null", "time_limit": "60", "threads": "2"}))
    dasks = {f"DASK_DFEAS__{name}": value for name, value in (("TIME_LIMIT", "61"), ("THREADS", "3"), ("MEMORY", "'5GB'"))}
    found = site.found(**dasks, DFEAS_TIME_LIMIT="62", DFEAS_SCRATCH="none", DFEAS_MEMORY="")
    assert found["memory"] == (5_000_000_000, "DASK_DFEAS__MEMORY")  # an empty variable says nothing
    assert found["cluster"] == (None, "default")
    assert found["time_limit"] == (62.0, "DFEAS_TIME_LIMIT")
    assert found["threads"] == (min(3, processors()), "DASK_DFEAS__THREADS")
    assert found["scratch"] == (None, "DFEAS_SCRATCH")
    assert found["scheduler"] == ("tcp://head:8786", str(site.system))
    shown = site.run("info", "--settings", DFEAS_TIME_LIMIT="62").stdout.splitlines()
    assert [line.split()[:3] for line in shown if line.startswith("time-limit")] == [["time-limit", "62", "DFEAS_TIME_LIMIT"]]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_bad_value_is_one_line_that_says_where_it_stands(site: Site, name: str) -> None:
    wrong = WRONG[SETTINGS[name].kind]
    site.system.write_text(written({name: wrong}))
    require_refused(site.run("info", "--settings"), 2, f"{site.system}: {key_of(name)} ", "expected ")
    if SETTINGS[name].kind != "text":
        site.system.unlink()
        require_refused(site.run("info", "--settings", **{variable(name): wrong}), 2, f"{variable(name)} {wrong}: expected ")


@pytest.mark.parametrize("text", ["dfeas: 4GB\n", "dfeas: [memory]\n", "dfeas: {memory: [\n"])
def test_a_file_that_cannot_be_read_is_one_line(site: Site, text: str) -> None:
    site.system.write_text(text)
    dfeas.ingest(np.eye(2), site.cwd / "data", y=[-1, 1])
    for words in (["info", "--settings"], ["solve", "data"], ["svm", "data", "--C", "1"]):
        require_refused(site.run(*words), 2, str(site.system))


def test_what_is_no_setting_is_said_with_the_nearest_one(site: Site) -> None:
    site.system.write_text("dfeas: {mem: 4GB, workers: [node7]}\n")
    done = site.run("info", "--settings", DFEAS_TIMELIMIT="60")
    assert f"dfeas.mem in {site.system}; did you mean dfeas.memory?" in done.stdout
    assert "DFEAS_TIMELIMIT in the environment; did you mean DFEAS_TIME_LIMIT?" in done.stdout
    assert json.loads(site.run("info", "--settings", "--json").stdout)["unknown"] == {"dfeas.mem": str(site.system)}
    assert site.found()["workers"] == (["node7"], str(site.system))


def test_settings_of_a_site_hold_in_commands_and_in_python_and_what_is_given_counts_more(site: Site) -> None:
    rng = np.random.default_rng(0)
    dfeas.ingest(rng.standard_normal((2000, 5)), site.cwd / "data", y=rng.random(2000) > 0.5)
    site.system.write_text(written({"time_limit": "1e-9", "progress": "false", "threads": "1"}))
    endless = ("--method", "mirror-prox", "--eps", "1e-12", "--max-passes", "3", "--json")
    done = site.run("solve", "data", "--out", "a", *endless)
    assert (done.returncode, json.loads(done.stdout)["stopped"]) == (3, "time_limit")
    assert "projected" not in done.stderr
    for more, env in ((["--time-limit", "1e3"], {}), ([], {"DFEAS_TIME_LIMIT": "none"})):
        done = site.run("solve", "data", "--force", "--out", "b", *endless, *more, **env)
        assert (done.returncode, json.loads(done.stdout)["stopped"]) == (3, "pass_limit")
    # a run that goes on has the limits with which it began
    done = site.run("resume", "b", "--max-passes", "4", "--json")
    assert json.loads(done.stdout)["stopped"] == "pass_limit"
    code = "import dfeas; print(dfeas.solve('data', method='mirror-prox', eps=1e-12{}).stopped)"
    env = {**site.env, "PYTHONPATH": os.pathsep.join(sys.path)}
    for given, stopped in (("", "time_limit"), (", time_limit=float('inf'), max_passes=3", "pass_limit")):
        typed = [sys.executable, "-c", code.format(given)]
        done = subprocess.run(typed, env=env, cwd=site.cwd, capture_output=True, text=True, check=True)
        assert (done.stdout.strip(), done.stderr) == (stopped, "")


def test_a_cluster_of_a_site_is_used_unless_another_is_named(site: Site) -> None:
    dfeas.ingest(np.array([[1.0], [2.0], [-1.0]]), site.cwd / "data", y=[1, 1, -1])
    (site.cwd / "place.py").write_text(
        "from distributed import LocalCluster\n"
        "def start():\n"
        "    return LocalCluster(1, threads_per_worker=1, host='127.0.0.1', dashboard_address=None)\n"
    )
    site.system.write_text(written({"cluster": "place:start", "scheduler": "nonsense"}))
    require_refused(site.run("solve", "data"), 2, "two clusters are set", str(site.system), "--scheduler or --cluster")
    site.system.write_text(written({"cluster": "place:start"}))
    done = site.run("solve", "data", "--json")
    assert json.loads(done.stdout)["verdict"] == "feasible", done.stderr
    assert "in each worker" in done.stderr
    done = site.run("solve", "data", DFEAS_CLUSTER="none")
    assert (done.returncode, "in each worker" in done.stderr) == (0, False)
    require_refused(site.run("solve", "data", DFEAS_CLUSTER="nowhere:start"), 2, "nowhere")
    require_refused(site.run("solve", "data", DFEAS_SCHEDULER="no address"), 2, "no address")  # the environment counts more
    require_refused(site.run("solve", "data", "--scheduler-file", "none.json", DFEAS_SCHEDULER="no address"), 2, "none.json")


def test_threads_are_as_many_as_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFEAS_THREADS", "1")
    assert most_threads() == 1
    monkeypatch.setenv("DFEAS_THREADS", str(processors() + 5))
    assert most_threads() == processors()


def test_places_are_those_of_dask_and_each_setting_is_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(dfeas.__file__).parents[1] / "docs" / "reference" / "configuration.md").read_text()
    for name in SETTINGS:
        assert f"| `{variable(name)}` | `{key_of(name)}` |" in page
    assert all(f"`dfeas.{name}`" in page for name in OF_DASK)
    for value in (None, "/tmp/some.yaml"):
        monkeypatch.delenv("DASK_CONFIG", raising=False) if value is None else monkeypatch.setenv("DASK_CONFIG", value)
        monkeypatch.setenv("DASK_ROOT_CONFIG", "/opt/dask")
        assert [str(place) for place in dask_places()] == dask.config._get_paths()


def test_a_call_takes_the_limit_that_is_set_and_a_run_that_goes_on_does_not() -> None:
    with dask.config.set({"dfeas.time-limit": 7}):
        assert Limits.begun(None, None).time_limit == 7.0
        assert Limits.begun(None, 5.0).time_limit == 5.0
        assert Limits().time_limit is None


def test_runs_below_a_folder_are_listed_though_the_cluster_of_the_site_does_not_answer(site: Site) -> None:
    dfeas.ingest(np.eye(4), site.cwd / "data", y=[0, 1, 0, 1])
    dfeas.solve(site.cwd / "data", out=site.cwd / "run")
    nobody = {"DFEAS_SCHEDULER": "tcp://127.0.0.1:1", "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
    done = site.run("status", **nobody)
    assert (done.returncode, done.stdout.startswith("run: feasible")) == (0, True)
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in done.stderr
    assert site.run("status", "--scheduler", "tcp://127.0.0.1:1", **nobody).returncode == 2


def test_an_error_names_the_variable_that_was_set_and_not_an_option_that_nobody_typed(site: Site) -> None:
    dfeas.ingest(np.eye(4), site.cwd / "data", y=[0, 1, 0, 1])
    require_refused(site.run("solve", "data", DFEAS_MEMORY="lots"), 2, "error: DFEAS_MEMORY=lots: expected a size")
    require_refused(
        site.run("solve", "data", "--memory", "lots", DFEAS_MEMORY="1GB"), 2, "error: --memory lots: expected a size"
    )
    require_refused(site.run("solve", "data", DFEAS_CLUSTER="json"), 2, "error: DFEAS_CLUSTER=json: TypeError")
    words = ("--kernel", "rbf", "--method", "mirror-prox")
    require_refused(
        site.run("solve", "data", *words, DFEAS_SCRATCH="/proc/nope"), 2, "error: DFEAS_SCRATCH=/proc/nope: no folder"
    )
