"""A limit of time counts from the first second of a call: waiting for a scheduler, for workers and for what is opened, too."""

import json
import math
import socket
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import dask.config
import numpy as np
import pytest
from click.testing import CliRunner
from distributed import Client

import dfeas
from dfeas.cli.main import commands
from dfeas.data.storage.patience import GRACE, one_call
from dfeas.estimators import LinearSVC
from dfeas.run.resources import Limits

LIMIT = 0.5
LATE = LIMIT + GRACE + 6
"""Seconds after which a call with that limit has ended; the rest is for a busy machine."""
X = np.random.default_rng(0).standard_normal((60, 3))
Y = X @ [1, 2, -1] > 0

VERBS: dict[str, Callable[..., Any]] = {
    "solve": dfeas.solve,
    "one_vs_rest": dfeas.one_vs_rest,
    "race": lambda X, y, **to: dfeas.race(X, y, methods="perceptron,working-set", **to),
    "soft_margin": dfeas.soft_margin,
    "soft_margin with folds": lambda X, y, **to: dfeas.soft_margin(X, y, folds=3, probability=True, **to),
    "soft_margin_classes": dfeas.soft_margin_classes,
    "hard_margin": dfeas.hard_margin,
    "separation": dfeas.separation,
    "feasible": lambda X, y, **to: dfeas.feasible(X, np.ones(len(Y)), **to),
}


def lazy() -> Any:
    return da.from_array(X, chunks=(20, 3))


def why_ended(answer: Any) -> set[str]:
    results = getattr(answer, "results", {"": getattr(answer, "result", answer)})
    return {str(each.stopped) for each in results.values()}


@pytest.fixture(scope="module")
def deserted() -> Iterator[Client]:
    """A cluster without workers."""
    quiet = dask.config.set({"distributed.worker.preload": []})
    with quiet, Client(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as found:
        yield found


@pytest.fixture
def stored(tmp_path: Path) -> str:
    dfeas.ingest(X, tmp_path / "data", y=Y)
    return str(tmp_path / "data")


@pytest.fixture(autouse=True)
def _ends_in_time() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < LATE


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_ends_undecided_on_a_cluster_without_workers(verb: str, deserted: Client) -> None:
    assert why_ended(VERBS[verb](lazy(), Y, client=deserted, time_limit=LIMIT)) == {"time_limit"}


def test_data_by_path_and_estimators_likewise(deserted: Client, stored: str) -> None:
    assert why_ended(dfeas.soft_margin(stored, None, client=deserted, time_limit=LIMIT)) == {"time_limit"}
    with warnings.catch_warnings(action="ignore"):  # that it did not converge
        fitted = LinearSVC(client=deserted, time_limit=LIMIT).fit(lazy(), Y)
    assert not fitted.coef_.any()


OPENS: dict[str, Callable[..., Any]] = {
    "labels": lambda **to: dfeas.solve(lazy(), da.from_array(Y, chunks=20), **to),
    "suspects": lambda **to: dfeas.suspects(lazy(), Y, **to),
}


@pytest.mark.parametrize("ask", OPENS)
def test_where_nothing_could_be_opened_one_line_says_what_to_do(ask: str, deserted: Client) -> None:
    with pytest.raises(dfeas.UndecidedError) as refused:
        OPENS[ask](client=deserted, time_limit=LIMIT)
    assert str(refused.value) == "the Dask cluster has no workers, and the time limit is over; start some with dask worker"


def test_what_read_nothing_begins_again(deserted: Client, tmp_path: Path) -> None:
    first = dfeas.solve(lazy(), Y, client=deserted, time_limit=LIMIT, out=tmp_path / "run")
    assert (first.verdict, first.stopped, first.reads, first.sides) == ("undecided", "time_limit", 0, None)
    again: Any = dfeas.resume(tmp_path / "run", X, Y, time_limit=100)
    assert again.verdict == "feasible"
    assert {label: side.points for label, side in again.sides.items()} == {"-1": int((~Y).sum()), "+1": int(Y.sum())}


def test_a_read_of_a_cluster_that_takes_too_long(client: Client, tmp_path: Path) -> None:
    done = str(tmp_path / "done")

    def wait(block: Any, path: str = done) -> Any:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not Path(path).exists():
            time.sleep(0.05)
        return block

    try:
        answer = dfeas.solve(lazy().map_blocks(wait, dtype=float, meta=np.empty((0, 0))), Y, client=client, time_limit=LIMIT)
    finally:
        Path(done).touch()
    assert (answer.verdict, answer.stopped) == ("undecided", "time_limit")
    assert answer.seconds < LATE


@pytest.mark.parametrize("listens", [True, False])
def test_a_scheduler_that_does_not_answer(listens: bool, stored: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:
        address = f"tcp://127.0.0.1:{there.getsockname()[1]}"
        if not listens:
            there.close()
        with pytest.raises(dfeas.UsageError, match="no Dask scheduler answers at"):
            dfeas.solve(stored, client=address, time_limit=LIMIT)


def test_the_command_line(deserted: Client, stored: str, tmp_path: Path) -> None:
    words = ["solve", stored, "--out", str(tmp_path / "run"), "--scheduler", deserted.scheduler.address, "--time-limit", "1"]
    done = CliRunner().invoke(commands, [*words, "--json", "--quiet"])
    told = json.loads(done.stdout)
    assert (done.exit_code, told["stopped"]) == (3, "time_limit")
    assert f"to go on: dfeas resume {tmp_path / 'run'} --time-limit {2 * math.ceil(told['seconds'])}, or" in done.stderr


def test_calls_within_a_call() -> None:
    """A command is one call; what a callback calls has a clock of its own."""
    inner: list[float] = []

    def call(record: Any) -> None:
        inner.append(dfeas.solve(X, Y, time_limit=100).seconds)

    with one_call(50):
        began = Limits().began
        assert Limits(time_limit=50).ends == pytest.approx(began + 50)
        outer = dfeas.solve(X, Y, callback=call)
    assert outer.seconds > sum(inner) > 0
