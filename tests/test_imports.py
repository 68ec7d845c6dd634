"""What a first call waits for: modules that are imported before it, and those that it never imports."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dfeas

CONFLICTS = {"flint", "dfeas.run.exact.search", "dfeas.verify.balance", "dfeas.exact.integers"}
"""For exact proofs of conflicts and of what float64 leaves open."""
OTHERS = {
    *("dfeas.kernels", "dfeas.cones", "dfeas.kernels.checker.core", "dfeas.cones.checker.core", "dfeas.cones.algebra"),
    *("dfeas.analysis.separation", "dfeas.methods.soft_margin", "dfeas.answers.soft_margin", "dfeas.methods.winnow"),
    *("dask", "distributed", "zarr", "h5py", "narwhals", "pyarrow", "pandas", "sklearn", "matplotlib", "rich", "psutil"),
}
"""For other questions, and for other data."""
LARGE = {"scipy.linalg", "scipy.sparse", "numpy.ma", "importlib.metadata", "subprocess"}
"""For systems of many features and sparse points, masked arrays and versions: the first two take 0.2 s to load."""
FILES = {
    *("shutil", "zipfile", "tempfile", "concurrent.futures", "threadpoolctl", "dfeas.data.views", "dfeas.data.subsets"),
    *("dfeas.data.storage.locks", "dfeas.run.checkpoint.codec", "dfeas.data.inequalities", "dfeas.run.prediction"),
    *("dfeas.data.storage.chunks", "dfeas.data.storage.stored_array", "dfeas.exact.dyadic", "zlib"),
    *("dataclasses", "logging", "traceback", "string", "shlex", "unicodedata", "base64", "bisect"),
}
"""For pools of threads, archives and folders, checkpoints, datasets on disk, data that is seen otherwise than it is stored,
what float64 leaves open, and texts of errors and warnings.
"""
CALLS = {
    "lookup": ("import dfeas; dfeas.solve", 93, CONFLICTS | OTHERS | LARGE | FILES),
    "separated": (
        "import dfeas, numpy as np; X = np.random.default_rng(0).standard_normal((4000, 200)); dfeas.solve(X, X @ X[0] > 0)",
        113,
        CONFLICTS | OTHERS | LARGE,
    ),
    "command": (
        "import dfeas.__main__\ntry: dfeas.__main__.main()\nexcept SystemExit: pass",
        130,
        CONFLICTS | OTHERS | LARGE,
    ),
}
"""What is called, how many of our modules it may load, and what it leaves alone."""


@pytest.mark.parametrize("call", CALLS)
def test_a_call_imports_what_it_needs(call: str, tmp_path: Path) -> None:
    code, most, unused = CALLS[call]
    dfeas.ingest(np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]]), tmp_path / "data", y=[1, 1, -1])
    words = [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)", "solve", "data", "--out", "run"]
    done = subprocess.run(words, env=dict(os.environ), cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & unused
    ours = sorted(name for name in loaded if name.split(".")[0] == "dfeas")
    assert len(ours) <= most, ours
