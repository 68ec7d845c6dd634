"""A run that begins from another one: fewer reads, the same verdicts and proofs, and nothing believed of a foreign run."""

import os
import shutil
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dfeas
from dfeas.cli.remote import _absolute_paths
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.records import replace
from dfeas.run.checkpoint.codec import dump
from dfeas.run.resources import attend_runs
from tests.exact import small_instance
from tests.typed import dfeas as typed

N, NEW, ROWS = 40_000, 400, 400
"""Points of the earlier run, others, and those of a block."""


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory, arrays: Callable[..., Any]) -> Callable[..., Path]:
    """Points on both sides of a plane, some labels changed: those of the earlier run, or all, as a dataset."""
    X, labels = arrays("halfspace", 20, N + NEW, seed=2)
    folder = tmp_path_factory.mktemp("halves")

    def make(n: int, *wrong: int, order: int | None = None) -> Path:
        signs, path = labels.copy(), folder / f"points{n}-{hash(wrong)}-{order}"
        signs[list(wrong)] *= -1
        if not path.exists():
            rows = np.arange(n) if order is None else np.random.default_rng(order).permutation(n)
            dfeas.ingest(X[rows], path, y=signs[rows], block_rows=ROWS)
        return path

    return make


def test_a_separator_that_holds_is_proved_in_one_read_and_that_of_the_new_points(halves: Callable[..., Path]) -> None:
    before = dfeas.solve(halves(N))
    after = dfeas.solve(halves(N + NEW), start=before)
    assert (after.verdict, after.proof, after.iterations) == ("feasible", "rigorous", 0)
    assert 1 < after.reads < 1.05
    assert after.separator == pytest.approx(before.separator)
    assert dfeas.solve(halves(N // 2), start=before).reads == 1


def test_new_points_that_are_nearly_right_turn_the_plane_before_all_are_read(
    arrays: Callable[..., Any], tmp_path: Path
) -> None:
    """The earlier run left the points that it was nearest to, in its folder and in its result."""
    X, labels = arrays("halfspace", 20, N + NEW, seed=1)
    dfeas.ingest(X, tmp_path / "data", y=labels, block_rows=ROWS)
    known = dfeas.solve(X[:N], labels[:N], out=tmp_path / "run")
    assert (known.decision_function(X[N:]) * labels[N:]).min() < 0
    for start in (known, tmp_path / "run"):
        after = dfeas.solve(tmp_path / "data", start=start)
        assert (after.verdict, after.proof) == ("feasible", "rigorous")
        assert after.reads < 1.05
    left = tmp_path / "run" / "nearest.state"
    whole = left.read_bytes()
    for wrong in (np.nan, 1e300):
        with left.open("wb") as file:
            dump(replace(known.nearest, scale=wrong * known.nearest.scale), file)
        with pytest.raises(CorruptDataError, match=r"nearest\.state.*unit vectors"):
            dfeas.solve(tmp_path / "data", start=tmp_path / "run")
    left.write_bytes(whole[:-1])
    with pytest.raises(CorruptDataError, match=r"nearest\.state"):
        dfeas.solve(tmp_path / "data", start=tmp_path / "run")
    left.unlink()
    assert dfeas.solve(tmp_path / "data", start=tmp_path / "run").reads > 1.05


def test_one_wrong_new_label_takes_its_block_a_sample_and_a_check(halves: Callable[..., Path], tmp_path: Path) -> None:
    known = dfeas.solve(halves(N), out=tmp_path / "run")
    farthest = N + int(np.abs(known.decision_function(halves(N + NEW)))[N:].argmax())
    data = halves(N + NEW, farthest)
    after = dfeas.solve(data, start=tmp_path / "run")
    assert (after.verdict, after.proof) == ("infeasible", "exact")
    assert after.conflicts[0]["point"] == farthest
    assert after.reads < 0.5 < dfeas.solve(data).reads


def test_a_conflict_that_is_still_there_is_read_twice_and_no_other_block(halves: Callable[..., Path]) -> None:
    before = dfeas.solve(halves(N, 7))
    after = dfeas.solve(halves(N + NEW, 7), start=before)
    assert (after.verdict, after.proof) == ("infeasible", "exact")
    assert after.reads == pytest.approx(2 * after.passes)
    assert after.reads <= 1 < before.reads
    assert set(after.support) <= set(before.support)
    assert [each["point"] for each in after.conflicts] == [each["point"] for each in before.conflicts]


@pytest.mark.parametrize(
    ("before", "after", "order"),
    [
        ((), (3, 40, N + 1), None),
        ((7,), (7,), 1),
        (range(0, N, 9), (), 2),
        ((), range(0, N, 9), None),
    ],
)
def test_whatever_a_run_left_the_verdict_is_that_of_a_run_of_its_own(
    halves: Callable[..., Path], before: Any, after: Any, order: int | None
) -> None:
    known, data = dfeas.solve(halves(N, *before)), halves(N + NEW, *after, order=order)
    own, started = dfeas.solve(data), dfeas.solve(data, start=known)
    assert (started.verdict, started.proof) == (own.verdict, own.proof)
    assert started.reads <= own.reads + 1.1


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_foreign_start_changes_no_verdict(seed: int, other: int) -> None:
    """Of small instances, separable or not: the earlier run was about points that may have nothing to do with these."""
    X, Z = small_instance(seed).T.astype(float), small_instance(other).T.astype(float)
    m = min(X.shape[1], Z.shape[1])
    known = dfeas.solve(Z[:, :m], "all-positive")
    own, started = dfeas.solve(X[:, :m], "all-positive"), dfeas.solve(X[:, :m], "all-positive", start=known)
    assert (started.verdict, started.proof) == (own.verdict, own.proof)


def test_planes_are_seen_as_the_data_is(halves: Callable[..., Path], arrays: Callable[..., Any]) -> None:
    """Transforms, their numbers, an intercept and which class is +1 may be others."""
    known = dfeas.solve(halves(N), transform=("std", "center"))
    assert dfeas.solve(halves(N + NEW), start=known).iterations == 0
    assert dfeas.solve(halves(N + NEW), start=dfeas.solve(halves(N)), transform=("maxabs", "center")).iterations == 0
    X, labels = arrays("halfspace", 5, 8000, seed=2)
    plain = dfeas.solve(X, labels, intercept=False)
    assert dfeas.solve(X + 3.0, labels, start=plain).verdict == "feasible"
    assert dfeas.solve(X, labels, start=plain, transform="std").iterations == 0
    names = np.where(labels > 0, "a", "b")
    for mine, other in ("ab", "ba"):
        assert dfeas.solve(X, names, positive=mine, start=dfeas.solve(X, names, positive=other)).iterations == 0


def test_a_started_run_has_the_same_bits_wherever_it_is_stopped(
    halves: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DFEAS_CHECKPOINT_EVERY", "0")
    known, data = dfeas.solve(halves(N)), halves(N + NEW, 5, N + 3)
    whole = dfeas.solve(data, start=known)
    for passes in range(4):
        left, run = iter(range(passes)), tmp_path / f"run{passes}"
        with attend_runs(lambda left=left: next(left, None) is None):
            part = dfeas.solve(data, start=known, out=run)
        resumed = dfeas.resume(run) if part.stopped == "interrupted" else part
        assert np.array_equal(resumed.support, whole.support)
        assert np.array_equal(resumed.weights, whole.weights)
        assert resumed.reads == pytest.approx(whole.reads)


def test_a_soft_margin_begins_from_another_one(halves: Callable[..., Path], tmp_path: Path) -> None:
    wrong = range(0, N, 11)
    known = dfeas.soft_margin(halves(N, *wrong), out=tmp_path / "run")
    data = halves(N + NEW, *wrong)
    own, started = dfeas.soft_margin(data), dfeas.soft_margin(data, start=tmp_path / "run")
    assert started.success
    assert started.reads == 1 < own.reads
    assert started.lower <= own.objective
    assert own.lower <= started.objective
    again = dfeas.soft_margin(data, start=known)
    assert again.objective == started.objective
    with pytest.raises(BadInputError, match="not the run of a soft margin"):
        dfeas.soft_margin(data, start=dfeas.solve(halves(N)))
    assert dfeas.solve(halves(N), start=known).verdict == "feasible"


def test_a_kernel_begins_from_the_points_of_an_expansion(tmp_path: Path) -> None:
    X = np.random.default_rng(1).standard_normal((4100, 3)).astype(np.float32)
    labels = np.where((X**2).sum(axis=1) > 2.5, "out", "in")
    dfeas.ingest(X, tmp_path / "data", y=labels, block_rows=100)
    known = dfeas.solve(X[:4000], labels[:4000], kernel="rbf", out=tmp_path / "run")
    own = dfeas.solve(tmp_path / "data", kernel="rbf")
    started = dfeas.solve(tmp_path / "data", kernel="rbf", start=tmp_path / "run")
    assert (started.verdict, started.proof) == (own.verdict, own.proof)
    assert started.reads < own.reads
    assert dfeas.solve(X[:1000], labels[:1000], kernel="exponential", start=known).verdict == "feasible"
    with pytest.raises(UsageError, match="a run with one, and the question is without a kernel"):
        dfeas.solve(X, labels, start=known)


def test_what_does_not_fit_is_refused_by_name(tmp_path: Path, arrays: Callable[..., Any]) -> None:
    X, labels = arrays("halfspace", 5, 400, seed=0)
    run, file = tmp_path / "run", tmp_path / "run" / "certificate.npz"
    known = dfeas.solve(X, labels, out=run)
    dfeas.ingest(X, tmp_path / "data", y=labels)
    dfeas.in_hull(np.full(5, 9.0), tmp_path / "data", out=tmp_path / "hull")
    dfeas.one_vs_rest(X, labels, out=tmp_path / "classes")
    kernel, nothing = dfeas.solve(X, labels, kernel="rbf"), dfeas.solve(X, labels, method="perceptron", max_passes=1)
    names = np.where(labels > 0, "x", "y")
    for ask, refused, said in (
        (lambda: dfeas.solve(X[:, :4], labels, start=known), BadInputError, "4 features"),
        (lambda: dfeas.solve(X, names, start=known), BadInputError, "its classes are"),
        (lambda: dfeas.solve(X, labels, start=known, kernel="rbf"), UsageError, "kernel"),
        (lambda: dfeas.solve(X, labels, start=known, method="perceptron"), UsageError, "perceptron"),
        (lambda: dfeas.solve(X, labels, start=3), UsageError, "expected a result of solve"),
        (lambda: dfeas.solve(X, labels, start=tmp_path), BadInputError, "no finished run"),
        (lambda: dfeas.solve(X, labels, start=kernel), UsageError, "kernel"),
        (lambda: dfeas.solve(X, labels, start=nothing), BadInputError, "nothing to start from"),
        (lambda: dfeas.solve(X, labels, start=tmp_path / "hull"), BadInputError, "a run of a hull"),
        (lambda: dfeas.solve(X, labels, start=tmp_path / "classes"), BadInputError, "several classes"),
        (lambda: os.truncate(file, 500) or dfeas.solve(X, labels, start=run), CorruptDataError, "not a readable certificate"),
        (
            lambda: shutil.copy(tmp_path / "classes/class--1/certificate.npz", file) and dfeas.solve(X, labels, start=run),
            CorruptDataError,
            "different data",
        ),
    ):
        with pytest.raises(refused, match=said):
            ask()


def test_the_command_line_says_where_it_begins(halves: Callable[..., Path], tmp_path: Path) -> None:
    old, new, run = halves(N), halves(N + NEW), tmp_path / "run"
    assert typed("solve", old, "--out", run).returncode == 0
    started = typed("solve", new, "--start", run, "--out", tmp_path / "again")
    assert started.returncode == 0
    assert "1.01 reads" in started.stdout
    lost = typed("solve", new, "--start", tmp_path / "none", "--out", tmp_path / "more")
    assert (lost.returncode, lost.stderr.count("\n")) == (4, 1)


def test_soft_margins_of_classes_begin_from_those_of_the_same_classes(arrays: Callable[..., Any]) -> None:
    X, _ = arrays("gaussian", 4, 3000, seed=3)
    names = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    known = dfeas.soft_margin_classes(X[:2900], names[:2900])
    own, started = dfeas.soft_margin_classes(X, names), dfeas.soft_margin_classes(X, names, start=known)
    assert started.success
    assert started.reads < own.reads
    with pytest.raises(BadInputError, match="other classes"):
        dfeas.soft_margin_classes(X, np.char.add(names, "x"), start=known)


def test_workers_in_other_folders_find_where_a_submitted_run_begins(tmp_path: Path) -> None:
    with chdir(tmp_path):
        assert _absolute_paths("data", {"start": "run"}) == {"start": str(tmp_path / "run")}
