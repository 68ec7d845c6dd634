"""Values in a file: the same bits, the same layout in memory, no code, and damage is noticed."""

import ast
import io
import json
import random
from dataclasses import dataclass
from typing import Any

import crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dfeas.errors import CorruptDataError
from dfeas.methods.protocol import Bracket
from dfeas.run.checkpoint.codec import _ARRAYS_OF, _SCALARS, _UNIONS, PLACES, _hints, class_of, dump, load, require_fields
from tests.records import is_record, names_of


def copied(value: Any) -> Any:
    file = io.BytesIO()
    dump(value, file)
    file.seek(0)
    return load(file, "here")


def same(a: Any, b: Any) -> bool:
    """Types, bits, strides, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        layout = a.strides == b.strides or 1 in a.shape or a.size == 0 or a.flags.c_contiguous
        return bool(a.dtype == b.dtype and a.shape == b.shape and layout and a.tobytes() == b.tobytes())
    if isinstance(a, np.generic):
        return bool(a.dtype == b.dtype and a.tobytes() == b.tobytes())
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if is_record(a):
        return all(same(getattr(a, name), getattr(b, name)) for name in names_of(a))
    return repr(a) == repr(b)


plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | arrays.arrays(
        arrays.boolean_dtypes() | arrays.integer_dtypes() | arrays.floating_dtypes(), arrays.array_shapes(min_side=0)
    )
    | st.builds(np.float64, st.floats())
    | st.builds(np.int64, st.integers(-5, 5))
)
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(), inner)
        | st.builds(Bracket, st.floats(), st.floats())
    ),
    max_leaves=12,
)


@given(values)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    assert same(copied(value), value)


def test_strides_and_shared_arrays_come_back() -> None:
    wide = np.arange(24.0).reshape(4, 6)
    column, turned, reverse = wide[:, 2], wide.T, wide[::-1]
    back = copied((column, turned, reverse, wide, wide))
    assert (back[0].strides, back[1].strides) == (column.strides, turned.strides)
    assert np.array_equal(back[2], reverse)
    assert back[3] is back[4]
    assert back[3].flags.writeable


def test_what_it_cannot_hold_is_refused_when_it_is_written() -> None:
    @dataclass
    class Foreign:
        a: int = 1

    for value in (object(), lambda: 1, {1: 2}, np.array(["a"]), np.array([None]), Foreign(), {1, 2}):
        with pytest.raises(TypeError, match="cannot be written"):
            dump(value, io.BytesIO())


@pytest.mark.parametrize(
    "tree",
    [
        {"arrays": [], "value": {"object": ["os", "system", {}]}},
        {"arrays": [], "value": {"object": ["os.system", {}]}},
        {"arrays": [], "value": {"object": ["Bracket", {"colour": 1}]}},
        {"arrays": [], "value": {"object": [{}]}},
        {"arrays": [], "value": {"object": ["dfeas.errors:UsageError", {}]}},
        {"arrays": [], "value": {"object": ["dfeas.methods.protocol:Bracket", {"colour": 1}]}},
        {"arrays": [], "value": {"object": ["Bracket", {}, {}]}},
        {"arrays": [["|O", [1], None]], "value": {"array": 0}},
        {"arrays": [["<f8", [10**12], None]], "value": {"array": 0}},
        {"arrays": [["<f8", [-1], None]], "value": {"array": 0}},
        {"arrays": [], "value": {"array": 0}},
        {"arrays": [], "value": {"set": []}},
        {"arrays": [], "value": [1]},
        {"value": 1},
        {"version": "0", "arrays": [], "value": {"object": ["Gone", {}]}},
        [],
    ],
)
def test_a_file_that_says_something_else_is_refused(tree: Any) -> None:
    content = json.dumps({"version": "here", **tree} if tree else tree).encode() + b"\n"
    file = io.BytesIO(content + crc32c.crc32c(content).to_bytes(4, "little"))
    with pytest.raises(CorruptDataError, match="not a readable checkpoint") as caught:
        load(file, "here")
    assert "written by dfeas" in str(caught.value) or not tree


@pytest.mark.parametrize("name", PLACES)
def test_each_field_says_what_it_holds_in_words_that_the_codec_knows(name: str) -> None:
    cls = class_of(name)
    known = {place.rpartition(":")[2] for place in PLACES.values()} | {
        *_SCALARS,
        *_ARRAYS_OF,
        *_UNIONS,
        "NDArray",
        "dict",
        "tuple",
        "np",
    }
    for field, hint in _hints(cls).items():
        assert {node.id for node in ast.walk(hint) if isinstance(node, ast.Name)} <= known
        if ast.unparse(hint) != "Any":
            with pytest.raises(TypeError, match=f"{field} of {cls.__name__} is "):
                require_fields(cls, {field: {"some": object()}})


def test_damage_is_noticed() -> None:
    value = (np.arange(50.0), {"a": 1.5, "b": np.arange(7)}, Bracket(0.1, 0.9, np.ones(3)))
    file = io.BytesIO()
    dump(value, file)
    whole, draw = file.getvalue(), random.Random(0)
    for turn in range(200):
        damaged = bytearray(whole)
        if turn % 3 == 0:
            damaged = damaged[: draw.randrange(len(whole))]
        else:
            damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        with pytest.raises(CorruptDataError):
            load(io.BytesIO(bytes(damaged)), "here")
