"""Names in checkpoints: whatever can stand in one has a name, and each is that of one class."""

import importlib
import io
import pkgutil
from collections.abc import Iterator
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from numpy.typing import NDArray

import dfeas
from dfeas.methods.protocol import LedState
from dfeas.methods.working_set.start import StartState
from dfeas.run.checkpoint.codec import PLACES, class_of, dump, name_of
from dfeas.run.checkpoint.folder import Checkpoint, Sealed
from dfeas.run.soft_margin.fit import SoftMarginState
from dfeas.run.task import TaskState
from dfeas.verify.tallies import BlockTally
from tests.records import is_record, names_of

OF_ANY_CLASS = {
    "Sealed.value",  # a checkpoint
    "DataSpec.where",  # paths; of what is in memory nothing is kept
    "DataSpec.ids",
    "DataSpec.labels",
    "DataSpec.mask",
    "DataSpec.system",  # nothing is kept of one
    "RunState.lanes",  # of both kinds
    "TaskState.state",
    "SoftMarginState.state",
    "RecalledState.inner",
    "LedState.leader",
    "LedState.first",
    "RideAlongState.first",
    "RideAlongState.rider",
}
"""Fields whose annotation does not say what they hold: states of methods, all of which are looked at."""


def modules() -> list[Any]:
    names = [module.name for module in pkgutil.walk_packages(dfeas.__path__, "dfeas.") if module.name != "dfeas.__main__"]
    return [importlib.import_module(name) for name in names]


def states() -> Iterator[type]:
    """What ``init`` of the methods returns, of all classes that are told answers."""
    yield from (LedState, StartState)  # of methods that have it for some passes only
    for module in modules():
        for cls in vars(module).values():
            method = isinstance(cls, type) and all(hasattr(cls, name) for name in ("init", "ask", "tell"))
            if method and cls.__module__ == module.__name__:
                hint = get_type_hints(cls.init)["return"]
                if hint is not Any and not isinstance(hint, TypeVar):  # a method that wraps another one, or a base of methods
                    yield get_origin(hint) or hint


def parts(hint: Any) -> Iterator[Any]:
    """Types that a hint is made of."""
    if get_origin(hint) is not np.ndarray:
        yield get_origin(hint) or hint
        for inner in get_args(hint):
            yield from parts(inner)


def closure(roots: set[type]) -> tuple[set[type], set[str]]:
    """Records that these hold, all the way down, and fields that may hold anything."""
    classes, unread, loose = set[type](), list(roots), set[str]()
    while unread:
        cls = unread.pop()
        if cls in classes:
            continue
        classes.add(cls)
        hints = get_type_hints(cls, localns={"csr_array": NDArray, "Array": NDArray})
        for name in names_of(cls):
            for part in parts(hints[name]):
                if part is Any or isinstance(part, TypeVar) or getattr(part, "_is_protocol", False):
                    loose.add(f"{cls.__name__}.{name}")
                elif is_record(part) and isinstance(part, type):
                    unread.append(part)
    return classes, loose


def test_whatever_stands_in_a_checkpoint_has_a_name() -> None:
    classes, loose = closure({Sealed, Checkpoint, TaskState, SoftMarginState, *states()})
    assert loose == OF_ANY_CLASS
    assert {name_of(cls) for cls in classes} == set(PLACES)


def test_each_name_is_that_of_one_record() -> None:
    assert len(set(PLACES.values())) == len(PLACES)
    for name, place in PLACES.items():
        cls = class_of(name)
        assert is_record(cls)
        assert place == f"{cls.__module__}:{cls.__qualname__}"


def test_a_name_that_none_has_is_refused() -> None:
    with pytest.raises(ValueError, match="no class is called"):
        class_of("os.system")


def test_a_dataclass_without_a_name_cannot_be_written() -> None:
    with pytest.raises(TypeError, match=r"dfeas\.verify\.\w+\.BlockTally cannot be written"):
        dump(BlockTally(), io.BytesIO())
