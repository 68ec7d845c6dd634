"""Imports point one way."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "dfeas"

# room -> what of ours it may import
ALLOWED = {
    "errors": set(),
    "blas": set(),
    "csr": set(),
    "version": set(),
    "passes": {"csr", "passes"},
    "workingset": {"workingset", "blas", "csr"},
    "methods": {"methods", "passes", "workingset"},
    "store": {"csr", "store", "passes", "errors"},
    "engine": {"engine", "blas", "csr", "store", "passes", "errors", "signals", "termination"},
    "certificate": {"store", "errors"},
    "proof": {"proof"},
    "kernels": {"kernels", "blas", "csr", "errors", "methods", "passes", "store", "workingset"},
    "verify": {"verify", "certificate", "errors", "proof", "store"},
    "cones": {"cones", "errors", "methods", "passes", "store"},
    "verify_cones": {"verify_cones", "certificate", "errors", "store", "verify"},
    "verify_any": {"certificate", "errors", "kernels", "store", "verify", "verify_cones", "verify_kernel"},
    "verify_sums": {"kernels", "passes"},
    "verify_kernel": {"certificate", "errors", "kernels", "passes", "store", "verify", "verify_sums"},
    "closed": {"errors", "proof", "store", "verify"},
    "termination": set(),
    "trace": {"termination"},
    "table": set(),
    "written": {"trace"},
    "scoreboard": {"table", "termination", "trace"},
    "memory": {"errors", "passes", "store"},
    "svm": {"svm", "blas", "methods", "passes", "workingset"},
    "margin_lane": {"certificate", "engine", "errors", "svm", "termination", "trace", "verify"},
    "recovery": {"certificate", "methods", "passes", "termination", "workingset"},
    "conflicts": {"certificate", "methods", "store"},
    "lane": {"certificate", "engine", "errors", "methods", "passes", "recovery", "termination", "trace", "verify"},
    "runner": {"certificate", "engine", "errors", "passes", "termination", "verify"},
    "driver": {"certificate", "engine", "errors", "lane", "methods", "passes", "runner", "termination", "trace"},
    "checkpoint": {"checkpoint", "csr", "errors", "store", "version"},
    "signals": set(),
    "instances": {"errors", "passes", "store"},
    "texts": {"csr", "errors", "instances", "store"},
    "report": {
        "report",
        "blas",
        "certificate",
        "engine",
        "errors",
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
    "planning_kernel",
    "planning_cones",
    "projection_cones",
    "cone_prediction",
    "projection",
    "projection_kernel",
    "hull",
    "separation",
    "kind",
    "kernelled",
    "hard_margin",
    "soft_margin",
    "estimators",
    "check_separation",
    "soft_margin_result",
    "predicting",
    "scoring",
    "expansions",
    "training",
    "printing",
    "checking",
    "commands",
    "cli",
    "__init__",
}
MATPLOTLIB_ONLY_IN = {"report/drawing.py", "report/plots.py", "report/distributions.py", "report/soft_path.py"}
DASK_ONLY_IN = {"engine/cluster.py", "engine/clusters.py", "engine/spreading.py", "engine/watching.py", "engine/work.py"}
METHODS_MAY_NOT = {"os", "sys", "time", "random", "logging", "pathlib", "dask", "distributed", "zarr", "io", "threading"}


def _imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def _runtime_imports(path: Path) -> list[str]:
    """Imports outside ``if TYPE_CHECKING``."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    return [
        name
        for node in ast.walk(tree)
        for name in (
            [a.name for a in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    ]


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_room_imports_only_the_rooms_below_it(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if room in FRONTS:
        return
    assert room in ALLOWED, f"{room}: a new room needs its place in this test"
    for name in _imports(path):
        parts = name.split(".")
        if parts[0] == "dfeas":
            assert parts[1] in ALLOWED[room], f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_dask_is_imported_by_the_cluster_engine_only(path: Path) -> None:
    if str(path.relative_to(PACKAGE)) not in DASK_ONLY_IN:
        assert not {name.split(".")[0] for name in _runtime_imports(path)} & {"dask", "distributed"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_matplotlib_is_imported_where_figures_are_drawn_only(path: Path) -> None:
    if str(path.relative_to(PACKAGE)) not in MATPLOTLIB_ONLY_IN:
        assert "matplotlib" not in {name.split(".")[0] for name in _runtime_imports(path)}


METHOD_FILES = sorted([*(PACKAGE / "methods").glob("*.py"), *(PACKAGE / "svm").glob("*.py")])


@pytest.mark.parametrize("path", METHOD_FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_methods_have_no_clock_no_randomness_no_io(path: Path) -> None:
    text = path.read_text()
    assert not {name.split(".")[0] for name in _runtime_imports(path)} & METHODS_MAY_NOT
    assert "np.random" not in text
    assert "open(" not in text


def test_the_checker_shares_no_code_with_passes_methods_and_engine() -> None:
    rooms = {room: [n for path in (PACKAGE / room).glob("*.py") for n in _imports(path)] for room in ("verify", "verify_cones")}
    ours = {room: {n.split(".")[1] for n in names if n.startswith("dfeas")} for room, names in rooms.items()}
    assert ours["verify"] == {"verify", "certificate", "errors", "proof", "store"}
    assert ours["verify_cones"] == {"verify_cones", "verify", "certificate", "errors", "store"}
