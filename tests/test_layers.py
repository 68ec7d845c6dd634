"""Imports point one way: from a floor of the house to those below it."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "dfeas"

ROOMS = """
records:
errors:
machine:
display: errors
exact: errors
leaves: errors
cones: data display engine errors exact geometry linalg machine methods passes problem settings verify
kernels: data display engine errors exact geometry linalg machine methods passes problem settings verify
linalg: machine
passes: linalg
methods: errors linalg passes
data: display errors leaves linalg machine passes settings
settings: errors machine
problem: data errors settings
engine: data errors linalg machine passes settings
geometry: data display engine errors leaves linalg machine methods passes problem settings
verify: data display errors exact leaves
figures: data errors linalg passes
answers: data display engine errors exact figures geometry leaves linalg methods passes problem settings verify
run: answers data display engine errors exact figures geometry linalg machine methods passes problem settings verify
reports: answers data display engine errors figures linalg methods passes problem run settings verify
analysis: answers data display engine errors exact geometry linalg machine methods passes problem run settings verify
api: analysis answers data engine errors figures problem reports run settings verify
estimators: analysis answers api data engine errors geometry leaves linalg methods problem run settings
cli: analysis answers api data display engine errors geometry leaves linalg machine methods problem reports run settings verify
__main__: cli engine machine
"""
"""A room, and the rooms that it may import; all may import records."""
ALLOWED = {
    room: {*below.split(), "records"} - {room} for room, _, below in (line.partition(":") for line in ROOMS.split("\n") if line)
}
LEAVES = ("cones", "kernels")
MATPLOTLIB_ONLY_IN = {"figures.py"}
DASK_ONLY_IN = {
    "engine/anchors.py",
    "engine/distributed.py",
    "engine/clusters.py",
    "engine/collection.py",
    "engine/crew.py",
    "engine/protocol.py",
    "engine/question.py",
    "engine/task_pool.py",
    "engine/turnover.py",
    "engine/watch.py",
    "engine/worker.py",
    "run/progress/cluster_log.py",
}
METHODS_MAY_NOT = {"os", "sys", "time", "random", "logging", "pathlib", "dask", "distributed", "zarr", "io", "threading"}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below, but for those in ``if TYPE_CHECKING``."""
    unread = [node]
    while unread:
        node = unread.pop()
        yield node
        for_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        unread += node.orelse if for_types else ast.iter_child_nodes(node)


@cache
def _imports(path: Path) -> frozenset[str]:
    """Modules, and names in them, that are imported when the module or one of its functions runs."""
    names: list[str] = []
    for node in _at_run_time(_tree(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return frozenset(names)


FILES = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}


def _room(name: str) -> str:
    return Path(name).parts[0].removesuffix(".py")


def _rooms_of(path: Path) -> set[str]:
    """Our rooms that a file imports; the package itself holds the version and the lazy table of public names."""
    ours = [name.split(".")[1] for name in _imports(path) if name.split(".")[0] == "dfeas"]
    return {room for room in ours if room != "__version__"}


def test_a_room_imports_only_the_rooms_below_it() -> None:
    wrong = []
    for name, path in FILES.items():
        room = _room(name)
        if room == "__init__":
            assert not _rooms_of(path), "public names are imported when they are used"
            continue
        assert room in ALLOWED, f"{room}: a new room needs its place in this test"
        wrong += [f"{name} imports {other}" for other in _rooms_of(path) - ALLOWED[room] - {room}]
    assert not wrong


def _ours(path: Path) -> set[str]:
    """Our modules that importing a file, or calling its functions, loads."""
    named = {name for name in _imports(path) if name.split(".")[0] == "dfeas"}
    packages = {".".join(name.split(".")[:end]) for name in named for end in range(1, name.count(".") + 2)}
    return {name for name in packages if _file(name) is not None}


def _file(module: str) -> Path | None:
    """Where a module is; None for a name that is none."""
    place = PACKAGE.parent / module.replace(".", "/")
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def _closure(folder: str) -> set[str]:
    """All of ours that the modules below a folder load, however far away it is imported."""
    unread = {".".join(("dfeas", *Path(name).with_suffix("").parts)) for name in FILES if name.startswith(f"{folder}/")}
    loaded = {name.removesuffix(".__init__") for name in unread}
    unread = set(loaded)
    while unread:
        path = _file(unread.pop())
        assert path is not None, "it was found as a file"
        unread |= _ours(path) - loaded
        loaded |= unread
    return loaded


def test_storage_knows_errors_settings_and_the_machine_only() -> None:
    others = {name for name in _closure("data/storage") if not name.startswith("dfeas.data.storage")}
    assert others == {
        "dfeas",
        "dfeas.data",
        "dfeas.display",
        "dfeas.errors",
        "dfeas.machine",
        "dfeas.records",
        "dfeas.settings",
    }


def test_the_checker_knows_storage_errors_settings_and_the_machine_only() -> None:
    """By closure, and when it is loaded: of what the search computes with it has integers and bounds of rounding, ``exact``."""
    mine = ("dfeas.verify", "dfeas.exact", "dfeas.data.storage", "dfeas.records")
    others = {name for name in _closure("verify") if not name.startswith(mine)}
    assert others == {"dfeas", "dfeas.data", "dfeas.display", "dfeas.errors", "dfeas.leaves", "dfeas.machine", "dfeas.settings"}
    for leaf in LEAVES:  # nor of a leaf, whose checker is loaded by its name
        more = {name for name in _closure(f"{leaf}/checker") - _closure("verify") if not name.startswith(mine[1:3])}
        assert {name for name in more if not name.startswith(f"dfeas.{leaf}.checker")} == {f"dfeas.{leaf}"}
    modules = sorted(name for name in _closure("verify") if name.startswith("dfeas.verify"))
    script = f"import sys, {', '.join(modules)}\nprint(*(name for name in sys.modules if name.split('.')[0] == 'dfeas'))"
    loaded = set(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split())
    assert loaded <= _closure("verify")


def test_no_module_of_the_core_imports_a_leaf() -> None:
    """``leaves`` loads them by name; the package knows their public names for type checkers only."""
    core = [path for name, path in FILES.items() if _room(name) not in LEAVES]
    assert not [path for path in core if _rooms_of(path) & {*LEAVES}]


def test_the_rooms_stand_on_at_most_twelve_floors_without_a_circle() -> None:
    below = {room: others - {"records"} for room, others in ALLOWED.items()}
    floors = 0
    while below:
        ground = {room for room, others in below.items() if not others}
        assert ground, f"a circle among {sorted(below)}"
        below = {room: others - ground for room, others in below.items() if room not in ground}
        floors += 1
    assert floors <= 12


def _that_import(*packages: str) -> set[str]:
    """Files that import one of these packages at run time."""
    return {name for name, path in FILES.items() if {part.split(".")[0] for part in _imports(path)} & set(packages)}


def test_dask_is_imported_by_the_cluster_engine_only() -> None:
    assert not _that_import("dask", "distributed") - DASK_ONLY_IN


def test_matplotlib_is_imported_where_figures_are_drawn_only() -> None:
    assert not _that_import("matplotlib") - MATPLOTLIB_ONLY_IN


def test_methods_have_no_clock_no_randomness_no_io() -> None:
    for path in (PACKAGE / "methods").rglob("*.py"):
        text = path.read_text()
        assert not {part.split(".")[0] for part in _imports(path)} & METHODS_MAY_NOT, path
        assert "np.random" not in text, path
        assert "open(" not in text, path
