"""What is projected of a run with a kernel: points that are read, memory, refusals; and how a plan is printed."""

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine import scan
from dfeas.engine.local import LocalEngine
from dfeas.errors import UsageError
from dfeas.kernels.gram import GramProduct
from dfeas.kernels.kernel import kernel_of
from dfeas.kernels.space import KERNEL_METHODS, KernelSpace, vector_bytes
from dfeas.methods.protocol import Facts
from dfeas.run.cost import project
from tests.kernels.dense import in_blocks

RBF = kernel_of("rbf", 0.5)[0]


def points(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, m)).astype(np.float32), np.where(rng.random(n) < 0.5, -1, 1)


@pytest.mark.parametrize("block_rows", [7, 20, 160, 480])
def test_a_product_reads_what_is_projected(block_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "LEAST_ROWS", 40)
    monkeypatch.setattr(scan, "MOST_RUNS", 10**6)
    dataset = in_blocks(*points(480, 4), block_rows)
    engine = LocalEngine(dataset, 1)
    engine.run(GramProduct(RBF, np.ones((480, 1))))
    engine.close()
    assert engine.cost.points <= 480 * scan.reads(dataset) <= 1.5 * engine.cost.points


@pytest.mark.parametrize("name", ["mirror-prox", "perceptron", "von-neumann"])
def test_memory_of_n_vectors_is_as_projected(name: str) -> None:
    n = 8000
    facts = Facts(2, n, itemsize=4)
    method, engine = (
        KernelSpace(RBF).method(name),
        LocalEngine(open_source(Source(DataSpec(*points(n, 2), intercept=False))), 2),
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
    X, labels = points(200_000, 2)
    with pytest.raises(UsageError, match=r"mirror-prox needs .* for what it keeps of 200000 points, and 19.07 MiB"):
        dfeas.solve(X, labels, kernel="rbf", method="mirror-prox", memory="20MB")
    found = dfeas.plan(X, labels, kernel="rbf", memory="20MB")
    remarks = {estimate.method: estimate.remark for estimate in found.estimates}
    assert list(remarks) == list(KERNEL_METHODS)
    need = remarks["mirror-prox"].removeprefix("does not fit: ").removesuffix(" of memory are needed")
    classes = dfeas.plan(X, np.arange(200_000) % 5, kernel="rbf", memory="200MB", one_vs_rest=True)
    assert next(each.remark for each in classes.estimates if each.method == "mirror-prox") == "1 of 5 classes at a time"
    enough = dfeas.plan(X, labels, kernel="rbf", method="mirror-prox", memory=need)
    assert enough.estimates[0].remark == ""
    for options, words in [
        ({"kernel": "rbf", "method": "winnow"}, "does not work with a kernel"),
        ({"method": "snkpv"}, "unknown method"),
        ({"one_vs_rest": True, "positive": "1"}, "asks about every class"),
        ({"one_vs_rest": True, "method": "ispvn"}, "classes share their reads"),
    ]:
        with pytest.raises(UsageError, match=words):
            dfeas.plan(X, labels, **options)


def test_the_commands_take_a_kernel(dataset: Callable[..., Any], tmp_path: Path) -> None:
    path, _ = dataset("planted", 4, 400, margin=0.2)
    done = CliRunner().invoke(commands, ["plan", str(path), "--kernel", "rbf", "--gamma", "0.5"])
    assert done.exit_code == 0
    assert "rbf(gamma=0.5): a product with the Gram matrix evaluates 8.02e+04 values" in done.output
    assert "does not fit" not in done.output
    alone = CliRunner().invoke(commands, ["plan", str(path), "--gamma", "0.5"])
    assert alone.exit_code == 2
    assert "none is given" in alone.output
    done = CliRunner().invoke(commands, ["plan", str(path), "--kernel", "linear", "--json"])
    values = json.loads(done.output)
    assert [estimate["method"] for estimate in values["estimates"]] == list(KERNEL_METHODS)
    assert all(estimate["seconds"] > 0 for estimate in values["estimates"])
    words = [
        "race",
        str(path),
        "--out",
        str(tmp_path / "race"),
        "--methods",
        "snkpvn,working-set",
        "--kernel",
        "cosine",
        "--json",
    ]
    done = CliRunner().invoke(commands, words)
    assert done.exit_code == 0
    assert {result["kernel"]["name"] for result in json.loads(done.stdout)["results"].values()} == {"cosine"}
    for name in ("snkpvn", "working-set"):
        events = [json.loads(line) for line in (tmp_path / "race" / name / "trace.jsonl").read_text().splitlines()]
        assert [event["event"] for event in events].count("projection") == 1
