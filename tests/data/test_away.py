"""Storage that does not answer for a while: it is waited for, the run can be ended meanwhile, and nothing is called damaged."""

import errno
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dfeas
from dfeas.cli.main import main
from dfeas.data.dataset import Dataset
from dfeas.data.generate.points import Instance, generate
from dfeas.data.storage import object_store, patience
from dfeas.data.storage.object_path import ObjectPath
from dfeas.errors import StorageAwayError
from tests.data.s3 import Door, lead

RUN: dict[str, Any] = {"method": "mirror-prox", "max_passes": 8, "margin_tolerance": 1e-6, "eps": 1e-9}


@pytest.fixture
def data(door: Door, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(Dataset, "enable_cache", lambda self, budget: None)  # every pass reads all blocks
    monkeypatch.delenv("DFEAS_STORAGE_PATIENCE")
    where = "s3://bucket/away/data"
    if not ObjectPath.of(where).exists():
        generate(Instance("planted", 5, 700, 0.001, block_rows=100), where)
    return where


def bits(result: Any) -> tuple[int, float, float]:
    return result.passes, result.margin_lower, result.margin_upper


def away_from(door: Door, read: int) -> Callable[[Any], None]:
    """A callback after whose ``read`` the points are away."""
    seen = []

    def look(record: Any) -> None:
        seen.append(record)
        if len(seen) == read:
            door.fault = lambda method, path: "refuse" if "/X/c." in path else ""

    return look


def test_a_store_that_is_away_for_a_while_is_waited_for(data: str, door: Door, caplog: pytest.LogCaptureFixture) -> None:
    calm = bits(dfeas.solve(data, **RUN))

    def fault(method: str, path: str) -> str:
        away = "does not answer" not in caplog.text  # until somebody said that it waits
        return "refuse" if away and "/X/c." in path and len(told) > 2 else ""

    told: list[Any] = []
    door.fault = fault
    with caplog.at_level(logging.WARNING, "dfeas"):
        assert bits(dfeas.solve(data, callback=told.append, **RUN)) == calm
    assert "s3://bucket/away/data/X/c." in caplog.text
    assert "(503 Service Unavailable); trying again for 300 s" in caplog.text


def test_a_store_that_stays_away_ends_the_run_which_goes_on_later(
    data: str, door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = bits(dfeas.solve(data, **RUN))
    monkeypatch.setenv("DFEAS_STORAGE_PATIENCE", "0.2")
    for read, name in ((0, "first"), (4, "later")):
        door.reset()
        look = away_from(door, max(1, read))
        if not read:
            door.fault = lambda method, path: "refuse" if "/X/c." in path else ""
        with pytest.raises(
            StorageAwayError, match=r"does not answer.*503 Service Unavailable.*DFEAS_STORAGE_PATIENCE"
        ) as caught:
            dfeas.solve(data, out=tmp_path / name, callback=look if read else None, **RUN)
        assert caught.value.exit_code == 75
        assert "dfeas.resume(" in str(caught.value)
        door.reset()
        assert bits(dfeas.resume(tmp_path / name)) == calm


def test_commands_say_so_in_a_line_and_exit_with_75(
    data: str, door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dfeas.solve(data, out=tmp_path / "run")
    monkeypatch.setenv("DFEAS_STORAGE_PATIENCE", "0")
    door.fault = lambda method, path: "refuse"
    run = str(tmp_path / "run")
    for words in (
        ["info", data],
        ["verify", run, "--follow"],
        ["predict", run, data, str(tmp_path / "p.npy")],
        ["ingest", data, str(tmp_path / "d")],
    ):
        monkeypatch.setattr(sys, "argv", ["dfeas", *words])
        with pytest.raises(SystemExit) as caught:
            main()
        assert caught.value.code == 75, words
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        assert "the object store does not answer" in said


def test_a_time_limit_and_an_interrupt_end_the_wait(data: str, door: Door, tmp_path: Path) -> None:
    began = time.monotonic()
    result = dfeas.solve(data, time_limit=2.0, callback=away_from(door, 3), **RUN)
    assert result.stopped == "time_limit"
    door.reset()
    away_from(door, 1)(None)
    signal.setitimer(signal.ITIMER_REAL, 3.0)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            dfeas.solve(data, out=tmp_path / "run", **RUN)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 100
    door.reset()
    assert dfeas.resume(tmp_path / "run").passes == 8


def test_a_request_that_is_never_answered_is_made_again(data: str, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    calm = bits(dfeas.solve(data, **RUN))
    monkeypatch.setattr(object_store, "SILENT_SECONDS", 1)
    monkeypatch.setattr(object_store, "RETRY_SECONDS", 0.5)  # which one silent request uses up
    object_store.store_of.cache_clear()
    seen: set[str] = set()

    def fault(method: str, path: str) -> str:
        first = path not in seen and "/X/c.3" in path
        seen.add(path)
        return "hang" if first else ""

    door.fault = fault
    assert bits(dfeas.solve(data, **RUN)) == calm
    assert door.count("GET", "/X/c.3") >= 2


def test_workers_leave_the_wait_to_the_driver(
    data: str, door: Door, server: Any, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = bits(dfeas.solve(data, **RUN))
    lead(client, server[1])

    def hurry(seconds: float, keep: Any) -> tuple[float, Any]:
        """Keep nothing, wait no longer than that; what it was before."""
        from dfeas.data.dataset import Dataset
        from dfeas.data.storage import object_store
        from dfeas.engine import worker

        object_store.store_of.cache_clear()  # that of another server

        before = worker.SHORT_SECONDS, Dataset.enable_cache
        worker.SHORT_SECONDS, Dataset.enable_cache = seconds, keep  # type: ignore[method-assign]
        return before

    before = client.run(hurry, 0.2, lambda self, budget: None)
    monkeypatch.setenv("DFEAS_STORAGE_PATIENCE", "0.5")
    with pytest.raises(StorageAwayError, match=r"does not answer at .*DFEAS_STORAGE_PATIENCE"):
        dfeas.solve(data, out=tmp_path / "run", callback=away_from(door, 3), client=client, **RUN)
    door.reset()
    assert bits(dfeas.resume(tmp_path / "run", client=client)) == calm
    client.run(hurry, *next(iter(before.values())))


def test_a_file_system_whose_server_is_away_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate(Instance("planted", 5, 700, 0.1, block_rows=100), tmp_path / "data")
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.01)
    real, stale = os.preadv, [errno.ESTALE, errno.ETIMEDOUT]

    def preadv(descriptor: int, buffers: Any, offset: int, flags: int = 0) -> int:
        if stale and not flags:  # with one it is asked what the page cache has
            raise OSError(stale[0], os.strerror(stale.pop(0)))
        return real(descriptor, buffers, offset, flags)

    monkeypatch.setattr(os, "preadv", preadv)
    assert dfeas.solve(str(tmp_path / "data")).verdict == "feasible"
    assert not stale
    stale += [errno.ESTALE] * 100
    monkeypatch.setenv("DFEAS_STORAGE_PATIENCE", "0")
    with pytest.raises(StorageAwayError, match="Stale file handle"):
        dfeas.solve(str(tmp_path / "data"))
