"""Both engines, however they are set up, keep the laws of the protocol."""

from collections.abc import Callable
from threading import Event
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from dfeas.data.open import open_source
from dfeas.data.source import Source
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.distributed import DaskEngine
from dfeas.engine.local import LocalEngine
from dfeas.engine.worker import open_cached
from dfeas.methods.registry import METHODS
from dfeas.records import replace
from tests.conformance.engines import BYTES, PASSES, EngineTests, source

__all__ = ["source"]  # a fixture of the tests below


class LocalEngineTests(EngineTests):
    threads = 1
    budget = 0  # bytes of blocks that are kept

    def make(self, source: Source, scratch: Scratch | None) -> LocalEngine:
        here = replace(source, cache_bytes=self.budget, run=uuid4().hex)
        return LocalEngine(open_cached(here), self.threads, scratch)


class TestOneThread(LocalEngineTests):
    methods = ()  # it is what the others are compared with

    def test_who_watches_is_told_of_every_block(self, start: Callable[..., Any], source: Source) -> None:
        engine, told = start(source), list[int]()
        engine.watch(lambda done, blocks, size: told.append(done))
        engine.run(PASSES["softmin"])
        assert told == [0, *range(17)]


class TestFiveThreads(LocalEngineTests):
    threads, methods = 5, tuple(METHODS)

    def test_who_watches_is_told_while_threads_are_at_work(self, start: Callable[..., Any], source: Source) -> None:
        """They go on when two blocks were seen to be begun: by nobody else than who watches."""
        seen, engine = Event(), start(source)
        engine.watch(lambda done, blocks, size: seen.set() if done >= 2 else None)

        def look(dataset: Any, first: int, stop: int, stopped: Callable[[], bool]) -> bool:
            asked = [stopped() for _ in range(first, stop)]
            return not any(asked) and seen.wait(60)

        assert all(engine.map(look))


class TestSomeBlocksKept(LocalEngineTests):
    threads, budget, keeps_blocks = 4, BYTES // 3, True
    test_pairs_that_are_kept_change_no_bit = None  # of no block that is kept


class DaskEngineTests(EngineTests):
    options: ClassVar[dict[str, Any]] = {}
    cache_bytes = 0

    @pytest.fixture(autouse=True)
    def connected(self, client: Any) -> None:
        self.client = client

    def make(self, source: Source, scratch: Scratch | None) -> DaskEngine:
        there = replace(source, cache_bytes=self.cache_bytes)
        return DaskEngine(self.client, there, open_source(source), scratch, **self.options)


class TestTwoWorkers(DaskEngineTests):
    pass


class TestARangeForEachBlock(DaskEngineTests):
    """17 of them, which are merged on two levels; folds in small pieces."""

    options: ClassVar[dict[str, Any]] = {"fold_bytes": 1}
    methods = ("mirror-prox", "online-perceptron")
    test_pairs_that_are_kept_change_no_bit = None  # pairs have ranges of their own

    @pytest.fixture(autouse=True)
    def cut_finely(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for room in ("anchors", "distributed"):
            monkeypatch.setattr(f"dfeas.engine.{room}.pieces", lambda size, threads, more: 1000)


class TestBlocksKeptOnWorkers(DaskEngineTests):
    cache_bytes, keeps_blocks = BYTES // 5, True
    test_pairs_that_are_kept_change_no_bit = None
