"""Labels as they are given, before they are encoded."""

from typing import Any

import numpy as np
import pytest

from dfeas.data.labels import plain_labels


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([True, False, np.True_], "b"),
        ([1, 2, np.int8(3)], "i"),
        ([1, 0.5], "f"),
        ([2**53 + 1, 0.5], "O"),  # which float64 has not
        ([True, 2], "O"),
        (["a", "b"], "O"),
        ([1, None], "O"),
        ([float("nan"), 1.0], "O"),
    ],
)
def test_objects_of_one_plain_type_are_of_numpys_and_no_value_changes(labels: list[Any], kind: str) -> None:
    given = np.array(labels, object)
    found = plain_labels(given)
    assert found.dtype.kind == kind
    assert all(a is b or a == b for a, b in zip(found.tolist(), given.tolist(), strict=True))
