"""The budget of the house: what each room and the whole may have, what they have, and what they are to have.

tests/budget.toml holds it. A value above its limit fails; ``scripts/architecture --lower`` writes what is lower now.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from import_graph import Graph, House

LEAVES = ("cones", "cones/checker", "kernels", "kernels/checker")
"""Rooms that can be removed."""
PARTICIPLE = re.compile("[a-z]+(ed|ing|en|own|ught|aid|ept|elt|old)")
"""Names of functions that say neither what is done nor to what, but for the words below."""
NO_PARTICIPLES = re.compile(
    "(accept|bold|binding|bounded|bring|ceiling|down|embed|encoding|exceed|feed|fold|given|gold|hold|indexed|intercept|"
    "listen|need|open|padding|proceed|reading|ring|rounding|scaling|seed|sibling|speed|spring|string|thing|threshold|timing|"
    "token|unbounded|writing)"
)
QUOTES = r"match=|stderr|\.err\b|in str\(|str\([a-z]+\.value\)"
"""Tests that ask what a message says."""
PATCHES = r"\bsetattr\(|patch\.(object|dict)\("
"""Tests that put something of their own in the place of a name of ours."""


class Source(Protocol):
    """A module."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def nodes(self) -> tuple[ast.AST, ...]: ...


def count_code_lines(module: Source) -> int:
    """Lines that are no docstring, import, comment, and not empty."""
    other: set[int] = set()
    for node in module.nodes:
        match node:
            case ast.Expr(ast.Constant(str())) | ast.Import() | ast.ImportFrom():
                other |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(module.text.splitlines(), 1)
    return sum(1 for number, line in lines if line.strip() and not line.strip().startswith("#") and number not in other)


def name_room(module: Source) -> str:
    """The folder that a module is in, below the package."""
    return "/".join(Path(module.path).parts[1:-1]) or "top"


def count_class_names(modules: Iterable[Source]) -> int:
    """Names that stand for classes of two or more modules."""
    places: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                places[node.name].add(module.name)
    return sum(len(where) > 1 for where in places.values())


def count_participles(modules: Iterable[Source]) -> int:
    """Names of functions that are one participle."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    names = {n.name.lstrip("_") for module in modules for n in module.nodes if isinstance(n, functions)}
    return sum(bool(PARTICIPLE.fullmatch(name)) and not NO_PARTICIPLES.fullmatch(name) for name in names)


def count_thresholds(modules: Iterable[Source]) -> int:
    """Constants of modules, in capitals, that are numbers."""

    def is_number(value: ast.AST) -> bool:
        if isinstance(value, ast.Constant):
            return isinstance(value.value, int | float) and not isinstance(value.value, bool)
        if not isinstance(value, ast.BinOp | ast.UnaryOp):
            return False
        return all(is_number(part) for part in ast.iter_child_nodes(value) if isinstance(part, ast.expr))

    count = 0
    for module in modules:
        for node in ast.parse(module.text).body:
            for target in node.targets if isinstance(node, ast.Assign) else ():
                several, value = isinstance(target, ast.Tuple), getattr(node, "value", None)
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                values = value.elts if several and isinstance(value, ast.Tuple) else [value] * len(names)
                pairs = zip(names, values, strict=True)
                count += sum(isinstance(name, ast.Name) and name.id.isupper() and is_number(of) for name, of in pairs if of)
    return count


def count_lines(root: Path, *folders: str) -> int:
    """Of Python in some folders, those that are there."""
    files = (path for folder in folders for path in (root / folder).rglob("*.py"))
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def count_matches(root: Path, pattern: str) -> int:
    """Lines of the tests with a pattern."""
    files = (path.read_text(encoding="utf-8").splitlines() for path in (root / "tests").rglob("*.py"))
    return sum(re.search(pattern, line) is not None for lines in files for line in lines)


def count_public(root: Path) -> tuple[int, int]:
    """Parameters of solve, and public names, as Python has them of a checkout."""
    script = "import inspect, dfeas; print(len(inspect.signature(dfeas.solve).parameters), len(dfeas.__all__))"
    environment = {**os.environ, "PYTHONPATH": str(root)}
    told = subprocess.run([sys.executable, "-c", script], env=environment, cwd=root, capture_output=True, text=True, check=True)
    parameters, names = map(int, told.stdout.split())
    return parameters, names


def measure(modules: dict[str, Source], graph: Graph, root: Path) -> dict[str, dict[str, int]]:
    """Of the house and of each room; the graph of imports counts those for types."""
    inner = {name for name, module in modules.items() if not module.path.endswith("__init__.py")}
    house = House({name: graph[name] & inner for name in inner})
    rooms: dict[str, dict[str, int]] = defaultdict(lambda: {"modules": 0, "lines": 0, "code": 0})
    for module in modules.values():
        rooms[name_room(module)]["modules"] += 1
        rooms[name_room(module)]["lines"] += len(module.text.splitlines())
        rooms[name_room(module)]["code"] += count_code_lines(module)
    parameters, public = count_public(root)
    core = {name: module for name, module in modules.items() if name_room(module) not in LEAVES}
    to_leaves = [name for name in core if any(other.split(".")[1] in LEAVES for other in graph[name] if "." in other)]
    whole = {
        "lines": sum(len(module.text.splitlines()) for module in modules.values()),
        "code": sum(room["code"] for room in rooms.values()),
        "lines of the core": sum(len(module.text.splitlines()) for module in core.values()),
        "code of the core": sum(map(count_code_lines, core.values())),
        "core modules that import a leaf": len(to_leaves),
        "classes": sum(isinstance(node, ast.ClassDef) for module in modules.values() for node in module.nodes),
        "thresholds": count_thresholds(modules.values()),
        "lines of tests": count_lines(root, "tests"),
        "lines of tests that quote messages": count_matches(root, QUOTES),
        "lines of tests that patch": count_matches(root, PATCHES),
        "lines of benchmarks, scripts, cluster": count_lines(root, "benchmarks", "scripts", "cluster"),
        "pages": len([*(root / "docs").rglob("*.md")]),
        "modules": len(modules),
        "floors of modules": max(house.floors.values()),
        "circles of modules": len(house.circles),
        "class names used twice": count_class_names(modules.values()),
        "functions named by a participle": count_participles(modules.values()),
        "parameters of solve": parameters,
        "public names": public,
    }
    return {"house": whole, **{name: dict(room) for name, room in sorted(rooms.items())}}


@dataclass(frozen=True)
class Entry:
    """A figure of a room, what it may be at most, and what it is to become."""

    room: str
    figure: str
    value: int
    limit: int
    goal: int | None

    def __str__(self) -> str:
        mark = (
            "ABOVE ITS LIMIT" if self.value > self.limit else "" if self.goal is None or self.value <= self.goal else "not yet"
        )
        goal = "" if self.goal is None else f"{self.goal:,}"
        return f"{self.room:22} {self.figure:32} {self.value:8,} {self.limit:8,} {goal:>8} {mark}".rstrip()


def compare(measured: dict[str, dict[str, int]], budget: Path) -> list[Entry]:
    """Each figure beside its limit; a room that the file does not have may have nothing."""
    limits = tomllib.loads(budget.read_text(encoding="utf-8"))
    entries = []
    for room, figures in measured.items():
        for figure, value in figures.items():
            limit = limits.get(room, {}).get(figure, [0])
            entries.append(Entry(room, figure, value, limit[0], limit[1] if len(limit) > 1 else None))
    return entries


def table(entries: Iterable[Entry]) -> Iterator[str]:
    """As it is printed."""
    yield f"{'room':22} {'figure':32} {'today':>8} {'limit':>8} {'goal':>8}"
    yield from map(str, entries)


def lower(entries: Iterable[Entry], budget: Path) -> None:
    """Write today's values where they are lower than the limits; rooms that are gone leave."""
    text = budget.read_text(encoding="utf-8").partition("\n[")[0] + "\n"
    rooms: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        rooms[entry.room].append(entry)
    for room, figures in rooms.items():
        text += f'["{room}"]\n'
        for entry in figures:
            goal = "" if entry.goal is None else f", {entry.goal}"
            text += f'"{entry.figure}" = [{min(entry.value, entry.limit)}{goal}]\n'
        text += "\n"
    budget.write_text(text.rstrip() + "\n", encoding="utf-8")
