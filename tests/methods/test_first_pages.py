"""The first pages of the default method and of its solver say where each line of the algorithm is."""

import ast
import re
from pathlib import Path

import pytest

import dfeas

PACKAGE = Path(dfeas.__file__).parent
PAGES = {"methods/working_set": 12, "linalg/separation": 12}
"""Folders, and how many lines of their algorithms have a place at least."""


@pytest.mark.parametrize("folder", PAGES)
def test_each_line_of_an_algorithm_is_where_its_page_says(folder: str) -> None:
    """In a file of the folder, or of the room; and no file of the folder is missing."""
    here = PACKAGE / folder
    page = ast.get_docstring(ast.parse((here / "__init__.py").read_text()))
    places = re.findall(r" {2,}(\w+\.py): (\w+)$", page or "", re.MULTILINE)
    assert len(places) >= PAGES[folder]
    for file, name in places:
        path = here / file if (here / file).exists() else here.parent / file
        tree = ast.walk(ast.parse(path.read_text()))
        assert name in {node.name for node in tree if isinstance(node, ast.FunctionDef | ast.ClassDef)}, (file, name)
    named = {file for file, _ in places} | {"__init__.py", "sparse_columns.py"}
    assert {path.name for path in here.glob("*.py")} <= named
