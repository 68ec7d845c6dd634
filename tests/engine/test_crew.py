"""What is asked of the tasks of a run, before any cluster is."""

from typing import Any

import dask
import pytest

from dfeas.engine.crew import asked_of_tasks
from dfeas.errors import UsageError


def test_annotations_hold_before_the_configuration() -> None:
    with dask.config.set({"dfeas.workers": ["a", "b"], "dfeas.priority": 3}), dask.annotate(workers="c", resources={"GPU": 1}):
        assert asked_of_tasks() == {"workers": ["c"], "resources": {"GPU": 1}, "priority": 3}
    assert asked_of_tasks() == {}


SAID = r"^{0} of dask.annotate or dfeas.{0} of Dask's configuration: expected "


@pytest.mark.parametrize(
    ("name", "value"), [("workers", 5), ("resources", "GPU"), ("resources", {"GPU": "a"}), ("priority", "high")]
)
def test_what_a_configuration_cannot_ask_is_said(name: str, value: Any) -> None:
    with dask.config.set({f"dfeas.{name}": value}), pytest.raises(UsageError, match=SAID.format(name)):
        asked_of_tasks()


def test_workers_by_a_function_are_refused() -> None:
    with dask.annotate(workers=lambda key: "a"), pytest.raises(UsageError, match=SAID.format("workers")):
        asked_of_tasks()
