"""One class against the rest: the answers of separate solves, on the reads of one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dfeas
from dfeas.errors import BadInputError, CheckFailedError, UsageError
from dfeas.geometry.points import PointSpace
from dfeas.linalg.points import norms
from dfeas.passes.block import Block
from dfeas.passes.protocol import of_class, together
from dfeas.passes.select import Sample, Select
from dfeas.passes.softmin import Softmin
from dfeas.run.cost import abreast
from dfeas.verify.certificate import load
from tests.exact import conflict
from tests.fuzzing.oracle import whole
from tests.run.making import after, opened, run_until
from tests.typed import dfeas as typed

NAMES = ("a/b", "cat", "dog", "eel")


def clusters(n: int = 3000, m: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Four classes; some points of the first two have changed places."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 4, n)
    X = (3 * rng.standard_normal((4, m))[place] + 0.5 * rng.standard_normal((n, m))).astype(np.float32)
    label = np.array(NAMES)[place]
    label[np.flatnonzero(place == 0)[:5]] = "cat"
    return X, label


@pytest.fixture
def data(tmp_path: Path) -> Path:
    X, label = clusters()
    np.savez(tmp_path / "a.npz", X=X, y=label)
    dfeas.ingest(tmp_path / "a.npz", tmp_path / "data", block_rows=256)
    return tmp_path / "data"


def test_classes_on_one_read_answer_as_they_do_alone(data: Path, tmp_path: Path) -> None:
    every = dfeas.one_vs_rest(data, out=tmp_path / "run", intercept=True)
    assert [result.verdict for result in every.results.values()] == ["infeasible", "infeasible", "feasible", "feasible"]
    alone = {name: dfeas.solve(data, positive=name, intercept=True) for name in NAMES}
    for name, one in alone.items():
        mine = every.results[name]
        assert (mine.verdict, mine.proof, mine.fingerprint) == (one.verdict, one.proof, one.fingerprint)
        assert mine.passes == one.passes
        # the checker looks at a separator on the pass of all classes; of one class of many it reads labels as they are stored
        assert one.reads - mine.reads == int(one.verdict == "feasible")
    assert len({one.fingerprint for one in alone.values()} | {every.fingerprint}) == 5
    rows = zarr.open_group(data, mode="r")["X"].chunks[0]
    conflicts = [one.support // rows for one in alone.values() if one.support is not None]
    shares = [
        np.clip(one.n - np.unique(some) * rows, 0, rows).sum() / one.n for some in (*conflicts, np.concatenate(conflicts))
    ]
    # the sample, the check of its two conflicts from their blocks, and the pass of the others with its check
    assert every.reads == pytest.approx(2 + shares[-1])
    assert sum(one.reads for one in alone.values()) == pytest.approx(2 * 3 + 2 + sum(shares[:2]))
    listed = json.loads((tmp_path / "run" / "result.json").read_text())
    assert listed["classes"]["a/b"]["folder"] == "class-a%2Fb"
    checks = dfeas.verify_run(tmp_path / "run").classes
    assert [check and check.verdict for check in checks.values()] == [one.verdict for one in alone.values()]
    assert dfeas.verify_run(tmp_path / "run" / "class-dog").verdict == "feasible"
    dog = tmp_path / "run" / "class-dog" / "certificate.npz"
    assert dfeas.verify_certificate(data, dog, intercept=True).verdict == "feasible"
    with pytest.raises(CheckFailedError, match="about class dog against the rest, not eel"):
        dfeas.verify_certificate(data, dog, intercept=True, positive="eel")


def hostile(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three classes of points whose features are up to 2**120 apart, or that are an ulp from each other."""
    rng = np.random.default_rng(seed)
    X, label = rng.standard_normal((12, 3)), rng.integers(0, 3, 12)
    if seed % 2:
        return np.vstack([X, np.nextafter(X, np.inf)]), np.append(label, rng.integers(0, 3, 12))
    return X * 2.0 ** rng.integers(-60, 61, 3), label


@pytest.mark.parametrize("seed", range(4))
def test_each_class_is_decided_exactly_where_float64_is_at_its_end(seed: int, tmp_path: Path) -> None:
    X, label = hostile(seed)
    np.savez(tmp_path / "a.npz", X=X, y=label)
    every = dfeas.one_vs_rest(tmp_path / "a.npz", intercept=False, out=tmp_path / "run")
    for name, result in every.results.items():
        conflicting = conflict(whole(X, np.where(label == int(name), 1, -1)))[0]
        assert result.verdict == ("feasible" if conflicting is None else "infeasible")
        assert result.proof in ("exact", "rigorous")
    assert every.reads >= max(result.reads for result in every.results.values())
    checks = dfeas.verify_run(tmp_path / "run").classes
    assert [check and check.verdict for check in checks.values()] == [result.verdict for result in every.results.values()]


@pytest.mark.parametrize("method", ["working-set", "mirror-prox"])
def test_an_interrupted_run_goes_on_with_the_same_bits(data: Path, tmp_path: Path, method: str) -> None:
    options: dict[str, Any] = {"method": method, "eps": 0.3, "memory": "20MB"}
    dfeas.one_vs_rest(data, out=tmp_path / "whole", **options)
    begun = run_until(after(1), dfeas.one_vs_rest, data, out=tmp_path / "run", **options)
    assert begun.stopped == "interrupted"
    resumed = dfeas.resume(tmp_path / "run")
    assert isinstance(resumed, dfeas.OneVsRest)
    for name in ("class-a%2Fb", "class-cat", "class-dog", "class-eel"):
        ours, theirs = load(tmp_path / "run" / name / "certificate.npz"), load(tmp_path / "whole" / name / "certificate.npz")
        assert (ours.y.tobytes(), ours.weights.tobytes()) == (theirs.y.tobytes(), theirs.weights.tobytes())
    assert not (tmp_path / "run" / "checkpoint").exists()


@pytest.mark.parametrize(("intercept", "dtype"), [(False, np.float32), (True, np.float64)])
def test_passes_of_classes_answer_as_each_alone(intercept: bool, dtype: type) -> None:
    rng = np.random.default_rng(1)
    X, code = rng.standard_normal((500, 6)).astype(dtype), rng.integers(0, 3, 500).astype(np.int16)
    X[7] = 0
    d, questions = 6 + intercept, []
    for k in range(3):
        y = rng.standard_normal(d)
        questions += [(k, Select(y, 0.2, 50, 30)), (k, together([Select(-y, 0.0, 500, 500), Softmin(y[:, None], np.ones(1))]))]
    questions.append((0, Sample(d, 5, 0)))
    both = together([of_class(question, k) for k, question in questions])
    block = Block.of(0, X, code, norms(X), intercept)
    answers = both.finish(both.merge(both.scan(block), both.scan(Block.of(500, X, code, norms(X), intercept))))
    for (k, question), answer in zip(questions, answers, strict=True):
        sign = np.where(code == k, 1, -1)
        parts = [question.scan(Block.of(first, X, sign, norms(X), intercept)) for first in (0, 500)]
        expected = question.finish(question.merge(*parts))
        for mine, theirs in zip(*((each if isinstance(each, tuple) else (each,)) for each in (answer, expected)), strict=True):
            if hasattr(mine, "violated"):
                assert (mine.violated, mine.low, mine.arg) == (theirs.violated, theirs.low, theirs.arg)
                assert np.array_equal(mine.columns.index, theirs.columns.index)
                assert np.array_equal(mine.score, theirs.score)
            elif hasattr(mine, "lse"):
                assert np.array_equal(mine.mean, theirs.mean)


def test_two_classes_and_one_point_of_a_class(tmp_path: Path) -> None:
    X, label = clusters(400)
    yes = label == "dog"
    every = dfeas.one_vs_rest(X, np.where(yes, "yes", "no"), intercept=True)
    assert [(name, result.verdict) for name, result in every.results.items()] == [("no", "feasible"), ("yes", "feasible")]
    label[:] = "many"
    label[17], label[18] = "one", "other"
    X[17], X[18] = 50 * X[17], -50 * X[17]
    lonely = dfeas.one_vs_rest(X, label, intercept=True)
    assert lonely.results["one"].verdict == "feasible"
    assert ((X[17] @ lonely.results["one"].separator[:-1] + lonely.results["one"].separator[-1]) > 0).all()


def test_more_classes_than_memory_holds_take_turns(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    code = rng.integers(0, 30, 3000)
    X = (rng.standard_normal((30, 20)) * 4)[code] + 0.1 * rng.standard_normal((3000, 20))
    dataset = opened(X, code, one_vs_rest=True)
    count = abreast(PointSpace(), "auto", 30, dataset, 30_000_000)
    assert 1 < count < 30
    every = dfeas.one_vs_rest(X, code, memory="30MB", intercept=True, out=tmp_path / "run")
    assert every.success
    assert f"{count} at a time" in every.results["0"].why
    plans = {memory: dfeas.plan(X, code, one_vs_rest=True, memory=memory, intercept=True) for memory in ("30MB", "2GB")}
    (ours,), (roomy,) = ([each for each in some.estimates if each.auto] for some in plans.values())
    assert (plans["30MB"].classes, ours.remark) == (30, f"{count} of 30 classes at a time")
    assert roomy.remark == ""
    assert ours.passes >= -(-30 // count) * roomy.passes
    assert ours.memory_bytes < roomy.memory_bytes
    alone = dfeas.solve(X, code, positive="29", intercept=True)
    assert every.results["29"].verdict == alone.verdict
    assert every.reads < 30 * alone.reads / 2
    timed = dfeas.one_vs_rest(X, code, memory="30MB", time_limit=1e-9)
    assert {result.stopped for result in timed.results.values()} <= {"time_limit", "verdict"}


def test_predict_gives_the_class_with_the_largest_score(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    place = rng.integers(0, 4, 2000)
    X, label = (np.eye(4)[place] + rng.uniform(-0.4, 0.4, (2000, 4))).astype(np.float32), np.array(NAMES)[place]
    np.savez(tmp_path / "a.npz", X=X, y=label)
    dfeas.ingest(tmp_path / "a.npz", tmp_path / "data", block_rows=200)
    assert dfeas.one_vs_rest(tmp_path / "data", out=tmp_path / "run", intercept=True).success
    prediction = dfeas.predict(tmp_path / "run", tmp_path / "data", out=tmp_path / "out.npy")
    Y = np.array([load(tmp_path / "run" / f"class-{n.replace('/', '%2F')}" / "certificate.npz").y for n in NAMES])
    scores = X.astype(float) @ Y[:, :-1].T + Y[:, -1]
    predicted = np.load(tmp_path / "out.npy")
    assert np.array_equal(predicted, scores.argmax(axis=1))
    truth = np.array([NAMES.index(name) for name in label])
    assert prediction.accuracy == pytest.approx((scores.argmax(axis=1) == truth).mean())
    assert prediction.confusion == [[int(((truth == i) & (predicted == j)).sum()) for j in range(4)] for i in range(4)]
    some = dfeas.predict(tmp_path / "run", X[:50], label[:50])
    assert some.labels == tuple(sorted(set(label[:50])))
    with pytest.raises(BadInputError, match="points of 2 features, the run"):
        dfeas.predict(tmp_path / "run", np.ones((4, 2)))


@pytest.mark.parametrize(
    ("ask", "refused", "said"),
    [
        (dfeas.solve, BadInputError, r"4 classes .*, as positive='.*', or solve for all, by one_vs_rest"),
        (
            lambda data: dfeas.solve(data, positive="cow"),
            BadInputError,
            "no point has the label cow; the classes are a/b, cat, dog",
        ),
        (lambda data: dfeas.one_vs_rest(data, method="ispvn"), UsageError, "ispvn reads the data in a way of its own"),
        (
            lambda _: dfeas.one_vs_rest(np.eye(5), [0, 1, 2, np.nan, 1]),
            BadInputError,
            "label of point 3 is not a finite number",
        ),
        (lambda _: dfeas.one_vs_rest(np.eye(5)), UsageError, "no labels"),
        (lambda _: dfeas.one_vs_rest(np.eye(5), "all-positive"), BadInputError, "no labels"),
    ],
)
def test_what_cannot_be_asked_is_said(ask: Callable[[Path], Any], refused: type[Exception], said: str, data: Path) -> None:
    with pytest.raises(refused, match=said):
        ask(data)


def test_a_zero_point_conflicts_in_every_class() -> None:
    X, label = clusters(100)
    X[3] = 0
    assert [r.proof for r in dfeas.one_vs_rest(X, label, intercept=False).results.values()] == ["exact"] * 4


def test_the_command_line(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert typed("solve", data, "--one-vs-rest", "--intercept", "--out", run).returncode == 0
    for words, said in (
        (("verify", run), "dog: proved feasible (rigorous)"),
        (("verify", run / "class-eel"), "feasible"),
        (("status", run), "4 of 4 classes decided"),
        (("compare", run), "class-dog"),
        (("resume", run), f"{run} is finished\n"),
    ):
        done = typed(*words)
        assert (done.returncode, said in done.stdout) == (0, True), done
    shutil.copy(run / "class-eel" / "certificate.npz", run / "class-dog" / "certificate.npz")
    failed = typed("verify", run)
    assert (failed.returncode, "about another class" in failed.stderr) == (6, True)
