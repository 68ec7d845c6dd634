"""Markers that tests get by what they do: ``property``, ``cluster``, ``slow`` by what they took when recorded, and ``long``."""

import os
import types
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

SLOW = Path(__file__).with_name("slow.txt")
SLOW_SECONDS = 2.0
"""Of processors, children of the test included: on a machine that is shared the clock says little."""

STARTS = {"local_cluster", "LocalCluster", "Room", "getfixturevalue"}
"""Names of what starts workers or submits: a room does by its scripts, and only examples ask for a fixture by themselves."""
WORDS = {"--local", "--scheduler-file", "--scheduler"}
"""Options of the command line that do."""
ROOM = Path(__file__).parent
LONG = {"faults", "cluster", "benchmarks"}
"""Folders whose tests are for ``scripts/test --long``: whole programs that are killed, real schedulers, benchmarks."""
CLUSTERS = {"engine"}
"""Where clusters are what is tested: the only ones that the short part of the tests starts."""


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function, and of those within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _words(values: Iterable[Any]) -> set[str]:
    """The strings among some values, and in tuples of them."""
    flat = (each for value in values for each in (value if isinstance(value, tuple | frozenset) else (value,)))
    return {value for value in flat if isinstance(value, str)}


@cache
def starts_workers(function: Callable[..., Any]) -> bool:
    """Whether a function of the tests, or one of them that it names, starts workers or joins those of others."""
    seen: set[types.CodeType] = set()
    unread = [function]
    while unread:
        plain = unread.pop()
        plain = getattr(plain, "__wrapped__", plain)
        code = getattr(plain, "__code__", None)
        if code is None or code in seen or not Path(code.co_filename).is_relative_to(ROOM):
            continue
        seen.add(code)
        for each in _codes(code):
            if STARTS & set(each.co_names) or WORDS & _words(each.co_consts):
                return True
            named = (plain.__globals__.get(name) for name in each.co_names)
            unread += [value for value in named if isinstance(value, types.FunctionType)]
    return False


def mark(items: list[pytest.Item]) -> None:
    """Add the markers."""
    slow = set(SLOW.read_text().split()) if SLOW.exists() else set[str]()
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        if getattr(item.obj, "is_hypothesis_test", False):
            item.add_marker("property")
        fixtures = item._fixtureinfo.name2fixturedefs.values()
        given = item.callspec.params.values() if hasattr(item, "callspec") else ()
        functions = (getattr(item.obj, "__func__", item.obj), *(each[-1].func for each in fixtures))
        if WORDS & _words(given) or any(map(starts_workers, functions)):
            item.add_marker("cluster")
        if name_of(item.nodeid) in slow:
            item.add_marker("slow")
        folders = set(item.path.relative_to(ROOM.parent).parts[:-1])
        elsewhere = item.get_closest_marker("cluster") is not None and not folders & CLUSTERS
        if folders & LONG or elsewhere or name_of(item.nodeid) in slow:
            item.add_marker("long")


def name_of(node: str) -> str:
    """A test without its parameters."""
    return node.split("[")[0]


def processor_seconds() -> float:
    """Of this process and of children that have ended."""
    return sum(os.times()[:4])


class Recorder:
    """``--record-slow``: writes which of the tests that ran are slow; what is known of others stays."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = name_of(report.nodeid)
        spent = dict(report.user_properties).get(f"processor_seconds_{report.when}", 0.0)
        self.seconds[name] = max(self.seconds.get(name, 0.0), float(spent))

    def pytest_sessionfinish(self) -> None:
        known = set(SLOW.read_text().split()) if SLOW.exists() else set[str]()
        slow = {name for name, seconds in self.seconds.items() if seconds > SLOW_SECONDS}
        SLOW.write_text("".join(f"{name}\n" for name in sorted(known - self.seconds.keys() | slow)))
