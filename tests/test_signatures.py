"""Signatures are written where the calls are, and editors and type checkers see the names that there are."""

import ast
import inspect
from pathlib import Path
from typing import Any, get_args

import pytest

import dfeas
from dfeas import problem
from dfeas.methods.registry import FOR_CONES, FOR_KERNELS, METHODS
from dfeas.run.spec import SOFT_METHODS

VERBS = [name for name in dfeas.__all__ if inspect.isfunction(getattr(dfeas, name))]
MOST = 25
"""Arguments of a verb."""


def imported_for_types() -> dict[str, str]:
    """Names that ``dfeas`` imports for type checkers, with the modules that they are from."""
    block = next(node for node in ast.parse(Path(dfeas.__file__).read_text()).body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    each = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: str(node.module) for node in each for alias in node.names}


def test_what_is_imported_for_types_is_what_is_imported_when_it_is_used() -> None:
    assert imported_for_types() == dfeas._MODULE


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_a_function_whose_arguments_are_written(name: str) -> None:
    verb = getattr(dfeas, name)
    assert not hasattr(verb, "__wrapped__")
    parameters = inspect.signature(verb).parameters.values()
    assert len(parameters) <= MOST
    assert all(each.annotation is not each.empty for each in parameters)
    assert not any(each.kind is each.VAR_KEYWORD for each in parameters)
    assert inspect.signature(verb).return_annotation not in ("Any", inspect.Signature.empty)


@pytest.mark.parametrize(
    ("alias", "names"),
    [
        (get_args(problem.Method)[1], {"auto", *METHODS, *FOR_KERNELS, *FOR_CONES}),
        (get_args(problem.SoftMethod)[1], {*SOFT_METHODS}),
        (get_args(problem.KernelName)[1], {*problem.KERNELS}),
        (problem.Loss, {*problem.LOSSES}),
    ],
)
def test_names_that_editors_complete_are_those_that_there_are(alias: Any, names: set[str]) -> None:
    assert {*get_args(alias)} == names
