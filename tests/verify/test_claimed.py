"""The page of verdicts says of each field of each result who proves it: a new field without a row of its table fails here."""

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import dfeas
from dfeas.display import Displayed
from tests.records import is_record, names_of

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "verdicts.md"
ROOMS = ("dfeas.analysis", "dfeas.answers", "dfeas.cones", "dfeas.geometry", "dfeas.kernels", "dfeas.run", "dfeas.verify")
CHECKERS = ("exact.", "verify.", "cones.checker.", "kernels.checker.")
"""Where results are; what they hold of other rooms, such as points in memory, claims nothing."""
NOBODY = "nobody"


def rows() -> list[tuple[str, str, str, str]]:
    """Of the table: what is claimed, in which fields, who proves it, and by which theorem or why not."""
    lines = PAGE.read_text().partition("## What is claimed, and who proves it")[2].partition("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")][1:]
    return [(a, b, c, d) for a, b, c, d in cells]


def listed() -> list[str]:
    """``Class.field`` for each field of a row; ``Class.*`` for all of a class."""
    groups = [re.findall(r"`([^`]+)`", group) for _, fields, _, _ in rows() for group in fields.split(";")]
    return [f"{name}.{field}" for name, *fields in groups for field in fields]


def below(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from below(each)


def held(kind: type) -> Iterator[type]:
    """Records of results in the fields of one."""
    for name in names_of(kind):
        hint = next(base.__annotations__[name] for base in kind.__mro__ if name in getattr(base, "__annotations__", {}))
        for word in re.findall(r"\w+", str(hint)):
            value = getattr(sys.modules[kind.__module__], word, None)
            for found in (value, *get_args(value)):  # of Sides, Side
                if inspect.isclass(found) and is_record(found) and found.__module__.startswith(ROOMS):
                    yield found


def claimed() -> dict[str, set[str]]:
    """Public fields, and properties, of all results and their records, by class."""
    for module in pkgutil.walk_packages(dfeas.__path__, "dfeas."):
        if module.name.startswith(ROOMS):
            importlib.import_module(module.name)
    classes = {each for each in below(Displayed) if is_record(each) and names_of(each)}
    classes = {each for each in classes if each.__module__.startswith(ROOMS)}
    while more := {other for each in classes for other in held(each)} - classes:
        classes |= more
    found: dict[str, set[str]] = {}
    for each in classes:
        names = {*names_of(each)}
        names |= {name for base in each.__mro__ for name, value in vars(base).items() if isinstance(value, property)}
        found[each.__name__] = {name for name in names - vars(Displayed).keys() if not name.startswith("_")}
    return found


def test_each_field_of_each_result_has_one_row() -> None:
    known, said = claimed(), listed()
    whole = {name.removesuffix(".*") for name in said if name.endswith(".*")}
    real = {f"{name}.{field}" for name, fields in known.items() if name not in whole for field in fields}
    single = [name for name in said if not name.endswith(".*")]
    assert sorted(real - {*single}) == []
    assert sorted({*single} - real) == []
    assert [name for name in single if single.count(name) > 1] == []
    assert whole <= known.keys()
    assert len(real) > 150


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_who_proves_it_is_there(row: tuple[str, str, str, str]) -> None:
    _, _, who, why = row
    names = re.findall(r"`(\w+(?:\.\w+)+)`", who)
    assert bool(names) != who.startswith(NOBODY), who
    assert len(why) > 10
    for name in names:
        assert callable(pkgutil.resolve_name(f"dfeas.{name}"))


def test_what_the_checker_proves_is_told_from_what_other_code_does() -> None:
    """Each proof is one of the checker, but for those in whole numbers that the page names as such."""
    others = {
        name for _, _, who, _ in rows() for name in re.findall(r"`(\w+(?:\.\w+)+)`", who) if not name.startswith(CHECKERS)
    }
    text = PAGE.read_text()
    assert [name for name in others if not re.search(rf"`{re.escape(name)}` \((?:exact code|a comparison)\)", text)] == []
