"""dfeas without a leaf, whose folder is removed: what remains works, and what is asked of the leaf is refused in one line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dfeas

ROOT = Path(__file__).parents[1]
USE = """
import contextlib, io, sys
import numpy as np
import dfeas
from dfeas.cli.main import commands

rng = np.random.default_rng(1)
X = rng.standard_normal((4000, 10))
dfeas.ingest(X, "a.data", y=X[:, 0] > 0)
assert dfeas.solve("a.data", out="run").verdict == "feasible"
assert dfeas.verify_run("run").verdict == "feasible"
y = rng.integers(0, 2, 4000)
assert dfeas.solve(X, y, method="perceptron", max_passes=3, out="open").verdict == "undecided"
assert dfeas.resume("open", X, y, max_passes=5).passes == 5
assert dfeas.solve(X[:400], y[:400]).verdict == "infeasible"
assert dfeas.soft_margin(X[:400], y[:400]).gap >= 0
for words in (["--help"], ["solve", "--help"], ["generate", "--help"]):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert commands.main(words, standalone_mode=False) in (None, 0)
    assert "Usage" in said.getvalue() or "dfeas" in said.getvalue()
assert not [name for name in sys.modules if name.startswith(("dfeas.cones", "dfeas.kernels"))]
"""
CALLED = """
import sys
import dfeas

for name in sys.argv[2:]:
    try:
        getattr(dfeas, name)
    except dfeas.UsageError as error:
        assert str(error).startswith(f"this installation of dfeas has no {sys.argv[1]}")
    else:
        raise AssertionError(name)
"""
ALONE = "import sys; sys.meta_path = [each for each in sys.meta_path if 'editable' not in repr(each)]"
"""An installation in development finds modules that the copy does not have."""
ASKED = {
    "cones": ("generate", "cones", "out", "--features", "3", "--cones", "q:5x10"),
    "kernels": ("solve", "a.data", "--kernel", "rbf"),
}


def _copy(folder: Path, *leaves: str) -> None:
    """The package without leaves, and nothing else of it can be imported."""
    shutil.copytree(ROOT / "dfeas", folder / "dfeas", ignore=shutil.ignore_patterns("__pycache__", *leaves))
    assert not [leaf for leaf in leaves if (folder / "dfeas" / leaf).exists()]
    (folder / "sitecustomize.py").write_text(ALONE)


def _python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, *words], cwd=folder, env=env, capture_output=True, text=True)


@pytest.mark.parametrize("leaf", sorted(ASKED))
def test_what_remains_works_without_a_leaf(leaf: str, tmp_path: Path) -> None:
    _copy(tmp_path, leaf)
    used = _python(tmp_path, "-c", USE)
    assert used.returncode == 0, used.stderr
    asked = _python(tmp_path, "-m", "dfeas", *ASKED[leaf])
    assert (asked.returncode, asked.stdout) == (2, ""), asked.stderr
    assert f"this installation of dfeas has no {leaf}: the folder dfeas/{leaf} was removed" in asked.stderr
    assert len(asked.stderr.splitlines()) == 1
    names = [name for name, module in dfeas._MODULE.items() if module.startswith(f"dfeas.{leaf}.")]
    assert bool(names) == (leaf == "cones")
    called = _python(tmp_path, "-c", CALLED, leaf, *names)
    assert called.returncode == 0, called.stderr


@pytest.mark.long
def test_passes_are_tested_without_leaves(tmp_path: Path) -> None:
    _copy(tmp_path, *ASKED)
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__", *ASKED))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    some = ("tests/passes", "tests/methods/test_registry.py", "-m", "not long", "-k", "not rbf and not options_that")
    ran = _python(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *some)
    assert ran.returncode == 0, ran.stdout[-3000:]
