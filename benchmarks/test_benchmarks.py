"""Every benchmark runs, small, as a plain test: it measures nothing here, but it cannot rot."""

import importlib.util
import sys
from pathlib import Path

import pytest

SMALL = {
    "softmin_scan": ["--blocks", "2", "--turns", "1"],
    "pass_speed": ["--gb", "0.02", "--turns", "1"],
    "cluster_speed": ["--gb", "0.01", "--turns", "1"],
    "memory_budget": ["--budget-mb", "40", "--features", "20", "--passes", "2", "--methods", "perceptron"],
    "working_set": ["--scale", "0.002", "--points", "1000", "--limit", "60", "--peers", "working-set,HiGHS,LinearSVC"],
    "method_passes": ["--scale", "0.01", "--max-passes", "10"],
    "paper_tables": ["--scale", "0.01", "--max-passes", "10", "--limit", "2", "--margins", "2", "--seeds", "1"],
    "checkpoints": ["--writing-kills", "8", "--driver-kills", "3", "--points", "20000", "--passes", "30", "--every", "0.1"],
    "corruption": ["--count", "40", "--verified", "12"],
    "faults": [
        "--runs",
        "1",
        "--workers",
        "2",
        "--points",
        "20000",
        "--features",
        "10",
        "--life",
        "2",
        "--singles",
        "1",
        "--frozen",
        "0",
    ],
    "scaling": ["--workers", "1,2", "--tasks", "4", "--mb", "2", "--turns", "1"],
    "kernel_working_set": ["--points", "200", "--alone", "300", "--features", "4"],
    "proofs": ["--instances", "90", "--features", "10", "--points", "2000", "--gb", "0.01", "--turns", "1"],
    "ingest_speed": ["--points", "2000", "--features", "5", "--turns", "1"],
    "object_store": ["--mb", "8", "--latency", "0", "--requests", "4", "--turns", "1"],
    "gram_pass": ["--points", "600", "--features", "10", "--turns", "1"],
    "kernel_digits": ["--train", "100", "--iterations", "3,10"],
    "iteration_cost": ["--gb", "0.01", "--warm-up", "1", "--turns", "2"],
}


def test_every_benchmark_is_listed() -> None:
    found = {path.stem for path in Path(__file__).parent.glob("*.py")} - {"test_benchmarks"}
    assert found == set(SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_prints_its_table(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    module.main(SMALL[name])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(lines) > 1
    assert "nan" not in "".join(lines)
