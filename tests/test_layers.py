"""Imports point one way."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "dfeas"

# room -> what of ours it may import
ALLOWED = {
    "visible": set(),
    "errors": {"visible"},
    "formats": {"errors", "version"},
    "blas": set(),
    "csr": set(),
    "version": set(),
    "passes": {"csr", "passes"},
    "workingset": {"workingset", "blas", "csr"},
    "methods": {"methods", "passes", "workingset"},
    "store": {"formats", "csr", "store", "passes", "errors"},
    "engine": {"engine", "blas", "csr", "store", "passes", "errors", "signals", "termination"},
    "certificate": {"formats", "store", "errors"},
    "proof": {"proof"},
    "kernels": {"kernels", "blas", "csr", "errors", "methods", "passes", "store", "workingset"},
    "verify": {"verify", "certificate", "errors", "proof", "store"},
    "cones": {"cones", "errors", "methods", "passes", "store"},
    "verify_cones": {"verify_cones", "certificate", "errors", "store", "verify"},
    "verify_any": {"certificate", "errors", "kernels", "store", "verify", "verify_cones", "verify_kernel"},
    "verify_sums": {"kernels", "passes"},
    "verify_kernel": {"certificate", "errors", "kernels", "passes", "store", "verify", "verify_sums"},
    "closed": {"errors", "proof", "store", "verify"},
    "kinds": set(),
    "termination": set(),
    "trace": {"formats", "termination"},
    "table": set(),
    "written": {"trace"},
    "scoreboard": {"table", "termination", "trace", "visible"},
    "memory": {"errors", "passes", "store"},
    "svm": {"svm", "blas", "methods", "passes", "workingset"},
    "margin_lane": {"certificate", "engine", "errors", "svm", "termination", "trace", "verify"},
    "recovery": {"certificate", "methods", "passes", "termination", "workingset"},
    "conflicts": {"certificate", "methods", "store"},
    "lane": {"certificate", "engine", "errors", "methods", "passes", "recovery", "termination", "trace", "verify"},
    "runner": {"certificate", "engine", "errors", "passes", "termination", "verify"},
    "driver": {"certificate", "engine", "errors", "lane", "methods", "passes", "runner", "termination", "trace"},
    "checkpoint": {"formats", "checkpoint", "csr", "errors", "store", "version"},
    "signals": set(),
    "instances": {"errors", "passes", "store"},
    "texts": {"csr", "errors", "instances", "store"},
    "report": {
        "report",
        "blas",
        "certificate",
        "engine",
        "errors",
        "formats",
        "memory",
        "passes",
        "result",
        "store",
        "table",
        "termination",
        "version",
    },
}
FRONTS = {
    "coned",
    "result",
    "request",
    "setting",
    "keeping",
    "running",
    "showing",
    "solving",
    "racing",
    "one_vs_rest",
    "class_prediction",
    "rechecking",
    "resuming",
    "ingesting",
    "looking",
    "submitting",
    "estimate",
    "transforming",
    "planning",
    "cone_prediction",
    "projection",
    "hull",
    "separation",
    "exact_search",
    "fixed_effects",
    "presolve",
    "exact_verdict",
    "kind",
    "kernelled",
    "hard_margin",
    "soft_margin",
    "estimators",
    "check_separation",
    "soft_margin_result",
    "predicting",
    "scoring",
    "dual_variables",
    "fitting",
    "soft_margin_classes",
    "soft_margin_options",
    "expansions",
    "training",
    "printing",
    "checking",
    "claims",
    "commands",
    "cli",
    "__init__",
    "__main__",
}
MATPLOTLIB_ONLY_IN = {"report/drawing.py", "report/plots.py", "report/distributions.py", "report/soft_path.py"}
DASK_ONLY_IN = {
    "engine/cluster.py",
    "engine/clusters.py",
    "engine/persistence.py",
    "engine/spreading.py",
    "engine/watching.py",
    "engine/work.py",
}
METHODS_MAY_NOT = {"os", "sys", "time", "random", "logging", "pathlib", "dask", "distributed", "zarr", "io", "threading"}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def _at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below, but for those in ``if TYPE_CHECKING``."""
    unread = [node]
    while unread:
        node = unread.pop()
        yield node
        for_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        unread += node.orelse if for_types else ast.iter_child_nodes(node)


@cache
def _runtime_imports(path: Path) -> frozenset[str]:
    """Packages imported outside ``if TYPE_CHECKING``."""
    names: list[str] = []
    for node in _at_run_time(_tree(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(str(node.module))
    return frozenset(name.split(".")[0] for name in names)


FILES = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}


def test_a_room_imports_only_the_rooms_below_it() -> None:
    wrong = []
    for name, path in FILES.items():
        room = Path(name).parts[0].removesuffix(".py")
        if room in FRONTS:
            continue
        assert room in ALLOWED, f"{room}: a new room needs its place in this test"
        ours = [imported for imported in _imports(path) if imported.split(".")[0] == "dfeas"]
        wrong += [f"{name} imports {imported}" for imported in ours if imported.split(".")[1] not in ALLOWED[room]]
    assert not wrong


def _that_import(*packages: str) -> set[str]:
    """Files that import one of these packages at run time."""
    return {name for name, path in FILES.items() if _runtime_imports(path) & set(packages)}


def test_dask_is_imported_by_the_cluster_engine_only() -> None:
    assert not _that_import("dask", "distributed") - DASK_ONLY_IN


def test_matplotlib_is_imported_where_figures_are_drawn_only() -> None:
    assert not _that_import("matplotlib") - MATPLOTLIB_ONLY_IN


METHOD_FILES = sorted([*(PACKAGE / "methods").glob("*.py"), *(PACKAGE / "svm").glob("*.py")])


def test_methods_have_no_clock_no_randomness_no_io() -> None:
    for path in METHOD_FILES:
        text = path.read_text()
        assert not _runtime_imports(path) & METHODS_MAY_NOT, path
        assert "np.random" not in text, path
        assert "open(" not in text, path


def test_the_checker_shares_no_code_with_passes_methods_and_engine() -> None:
    rooms = {room: [n for path in (PACKAGE / room).glob("*.py") for n in _imports(path)] for room in ("verify", "verify_cones")}
    ours = {room: {n.split(".")[1] for n in names if n.startswith("dfeas")} for room, names in rooms.items()}
    assert ours["verify"] == {"verify", "certificate", "errors", "proof", "store"}
    assert ours["verify_cones"] == {"verify_cones", "verify", "certificate", "errors", "store"}
