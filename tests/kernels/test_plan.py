"""Memory of a run with a kernel, as it is projected, measured and refused."""

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.local import LocalEngine
from dfeas.errors import UsageError
from dfeas.kernels.kernel import kernel_of
from dfeas.kernels.space import KERNEL_METHODS, KernelSpace, vector_bytes
from dfeas.methods.protocol import Facts
from dfeas.run.cost import abreast, project
from tests.kernels.making import points, rings

RBF = kernel_of("rbf", 0.5)[0]


@pytest.mark.parametrize("name", ["mirror-prox", "von-neumann"])
def test_memory_of_n_vectors_is_as_projected(name: str) -> None:
    n = 8000
    facts = Facts(2, n, itemsize=4)
    method, engine = (
        KernelSpace(RBF).method(name),
        LocalEngine(open_source(Source(DataSpec(*points(n, 2, dtype="float32"), intercept=False))), 2),
    )
    tracemalloc.start()
    state = method.init(facts)
    for _ in range(2):
        state = method.tell(state, engine.run(method.ask(state)))
        method.evidence(state)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    engine.close()
    tiles = 2 * 5_000_000  # of each thread
    assert peak <= vector_bytes(method, facts, 2) + tiles
    assert vector_bytes(method, facts, 2) <= 4 * peak


CHILD = """
import sys
import dfeas

path, method = sys.argv[1:]
dfeas.solve(path, kernel="rbf", method=method, memory="500MB", max_passes=2)
print(1024 * int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))))
"""


@pytest.mark.parametrize("method", ["working-set", "mirror-prox"])
def test_the_peak_of_a_process_is_as_projected(dataset: Callable[..., Any], method: str) -> None:
    path, _ = dataset("gaussian", 8, 6_000)
    done = subprocess.run([sys.executable, "-c", CHILD, path, method], check=True, capture_output=True, text=True)
    found = project(
        KernelSpace(RBF), open_source(Source(DataSpec(path, intercept=False))), [method], 500_000_000, 1e-3, threads=2
    )
    assert int(done.stdout) <= 1.1 * found.memory_bytes
    assert found.memory_bytes <= 3 * int(done.stdout)


def test_what_does_not_fit_is_refused_with_the_number() -> None:
    X, labels = points(200_000, 2, dtype="float32")
    with pytest.raises(UsageError, match=r"mirror-prox needs .* for what it keeps of 200000 points, and 20MB"):
        dfeas.solve(X, labels, kernel="rbf", method="mirror-prox", memory="20MB")
    found = dfeas.plan(X, labels, kernel="rbf", memory="20MB")
    remarks = {estimate.method: estimate.remark for estimate in found.estimates}
    assert list(remarks) == list(KERNEL_METHODS)
    need = remarks["mirror-prox"].removeprefix("does not fit: ").removesuffix(" of memory are needed")
    classes = dfeas.plan(X, np.arange(200_000) % 5, kernel="rbf", memory="200MB", one_vs_rest=True)
    assert next(each.remark for each in classes.estimates if each.method == "mirror-prox") == "1 of 5 classes at a time"
    enough = dfeas.plan(X, labels, kernel="rbf", method="mirror-prox", memory=need)
    assert enough.estimates[0].remark == ""


def test_classes_wait_where_memory_holds_some_of_them() -> None:
    X, labels = rings(3000)
    dataset = open_source(Source(DataSpec(X, labels, intercept=False, one_vs_rest=True)))
    space = KernelSpace(kernel_of("rbf", 1.0)[0])
    assert abreast(space, "working-set", 3, dataset, 10**9) == 3
    assert abreast(space, "mirror-prox", 1000, dataset, 10**8) < 100
    X, labels = rings(400)
    found = dfeas.one_vs_rest(X, labels, kernel="rbf", method="mirror-prox", memory="20MB")
    assert [result.verdict for result in found.results.values()] == ["feasible"] * 3


def test_the_command_plans_for_a_kernel(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("planted", 4, 400, margin=0.2)
    done = CliRunner().invoke(commands, ["plan", str(path), "--kernel", "rbf", "--gamma", "0.5"])
    assert done.exit_code == 0
    assert "rbf(gamma=0.5): a product with the Gram matrix evaluates 8.02e+04 values" in done.output
    assert "does not fit" not in done.output
    alone = CliRunner().invoke(commands, ["plan", str(path), "--gamma", "0.5"])
    assert alone.exit_code == 2
    assert "need a --kernel" in alone.output
    done = CliRunner().invoke(commands, ["plan", str(path), "--kernel", "linear", "--json"])
    values = json.loads(done.output)
    assert [estimate["method"] for estimate in values["estimates"]] == list(KERNEL_METHODS)
    assert all(estimate["seconds"] > 0 for estimate in values["estimates"])
