"""Dual variables of a soft margin: in their box, worth the lower end, and y is made of them, on either engine."""

import json
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import zarr
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.local import LocalEngine
from dfeas.methods.protocol import Facts
from dfeas.methods.soft_margin.hinge import HingeMargin
from dfeas.methods.soft_margin.problem import make_costs
from dfeas.methods.soft_margin.squared_hinge import SquaredHingeMargin
from dfeas.passes.protocol import Partial
from dfeas.passes.slacks import SampleCosts
from tests.methods.making import overlapping, worth
from tests.run.test_resume import run_until


def boxed(alpha: np.ndarray, cost: np.ndarray, squared: bool) -> bool:
    """Whether they may be these."""
    return bool((alpha >= 0).all() and (alpha[cost == 0] == 0).all() and (squared or (alpha <= cost).all()))


@pytest.mark.parametrize(("squared", "cap"), [(False, 60), (False, 1200), (True, 0)])
def test_after_every_read_each_problem_has_those_that_are_worth_its_lower_end(squared: bool, cap: int) -> None:
    X, y = overlapping(1200, 6)
    X[3] = 0
    weight = np.random.default_rng(1).integers(0, 3, 1200).astype(float)
    costs = make_costs([0.1, 1.0], 2, (1.0, 0.5), weight)
    array = zarr.create_array(store={}, shape=X.shape, chunks=(300, 6), dtype=X.dtype)
    array[:] = X
    dataset = open_source(Source(DataSpec(array, y, intercept=False)))
    method: Any = SquaredHingeMargin(costs, np.ones(6), 1e-8) if squared else HingeMargin(costs, np.ones(6), 1e-4, cap=cap)
    engine, state = LocalEngine(dataset, 2), method.init(Facts(6, 1200, blocks=dataset.blocks))
    all_costs, signed = costs.matrix(np.arange(1200), y), X * y[:, None]
    for _ in range(7):
        state = method.tell(state, engine.run(method.ask(state)))
        found = method.evidence(state)
        assert len(found.duals) == 6
        for i, dual in enumerate(found.duals):
            answer = engine.run(Partial(dual.question(costs.take(np.array([i]))), range(dataset.blocks)))
            alpha = np.concatenate([piece for _, piece in answer.pieces])
            cost, lower = all_costs[:, i], found.best.lower[i]
            assert boxed(alpha, cost, squared)
            assert worth(alpha, cost, signed, squared) == pytest.approx(lower, rel=1e-9, abs=1e-12)
            assert answer.total - answer.pull @ answer.pull / 2 == pytest.approx(lower, rel=1e-9, abs=1e-12)
            assert (answer.support, answer.full) == ((alpha > 0).sum(), 0 if squared else ((alpha == cost) & (cost > 0)).sum())
            residual = np.linalg.norm(found.best.Y[:, i] - alpha @ signed)
            if np.isfinite(found.best.objective[i]):
                assert residual <= np.sqrt(2 * max(0.0, found.best.objective[i] - lower)) + 1e-6
    engine.close()
    assert (found.best.lower > 0.5 * found.best.objective).any()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_file_holds_those_of_the_chosen_value(loss: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = overlapping(900, 5)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0
    more: dict[str, Any] = {"loss": loss, "C": [0.1, 1.0], "folds": 2, "intercept": True, "tol": 1e-9, "class_weight": (1, 2)}
    found = dfeas.soft_margin(X, y, dual=tmp_path / "a.npy", **more)
    alpha = np.load(tmp_path / "a.npy")
    cost = found.C * np.where(y > 0, 2.0, 1.0)
    assert (alpha.shape, alpha.dtype) == ((900,), np.float64)
    assert boxed(alpha, cost, loss != "hinge")
    assert worth(alpha, cost, X * y[:, None], loss != "hinge") == pytest.approx(found.lower, rel=1e-8)
    assert abs(alpha @ y) <= 1e-9 * alpha.sum()
    assert found.dual.value == pytest.approx(found.lower, rel=1e-9)
    assert found.dual.residual == pytest.approx(np.linalg.norm(found.coef - (alpha * y) @ X), abs=1e-9)
    assert found.dual.residual <= found.dual.most + 1e-9
    assert found.dual.most <= np.sqrt(2e-9 * found.objective) * 1.01
    assert found.dual.support == (alpha > 0).sum()
    plain = dfeas.soft_margin(X, y, **more)
    assert found.reads == plain.reads + 1
    assert found.y.tobytes() == plain.y.tobytes()
    monkeypatch.setattr("dfeas.run.soft_margin.dual.GROUP_BYTES", 1)
    sparse = dfeas.soft_margin(scipy.sparse.csr_array(X), y, dual=tmp_path / "b.npy", **more)
    assert sparse.dual.value == pytest.approx(found.lower, rel=1e-8)
    np.testing.assert_allclose(np.load(tmp_path / "b.npy") @ (X * y[:, None]), alpha @ (X * y[:, None]), atol=1e-3)


def test_those_of_points_far_away_sum_to_zero_and_prove_the_bound(tmp_path: Path) -> None:
    X, y = overlapping(400, 3)
    X += 1e4
    found = dfeas.soft_margin(X, y, C=10.0, loss="squared_hinge", tol=1e-3, dual=tmp_path / "a.npy")
    alpha = np.load(tmp_path / "a.npy")
    assert abs(alpha @ y) <= 1e-14 * alpha.sum()
    assert worth(alpha, np.full(400, 10.0), (X - 1e4) * y[:, None], True) == pytest.approx(found.lower, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_what_the_bias_may_be_is_no_more_than_the_bound_allows(loss: str, tmp_path: Path) -> None:
    # the sum of alpha_j l_j is rounding, times the length of the points, which is as large as its inverse
    X, y = overlapping(100, 5)
    found = dfeas.soft_margin(1e7 * X, y, C=2e7, loss=loss, tol=1e-6, dual=tmp_path / "a.npy")
    alpha = [Fraction(each) for each in np.load(tmp_path / "a.npy").tolist()]
    pull = [sum(a * Fraction(x * side) for a, x, side in zip(alpha, column, y.tolist(), strict=True)) for column in 1e7 * X.T]
    curved = sum(a * a / Fraction(8e7) for a in alpha) if loss != "hinge" else 0
    exact = float(sum(alpha) - curved - sum(each * each for each in pull) / 2)
    assert found.success
    assert found.dual.value == pytest.approx(exact, rel=1e-7)


def test_an_interrupted_writing_leaves_nothing_and_goes_on_with_the_same_bits(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = overlapping(2000, 5, dtype="float32")
    np.savez(tmp_path / "a.npz", X=X, y=y)
    dfeas.ingest(tmp_path / "a.npz", tmp_path / "data", block_rows=300)
    monkeypatch.setattr("dfeas.run.soft_margin.dual.GROUP_BYTES", 8 * 700)
    more: dict[str, Any] = {"C": 0.5, "tol": 1e-6, "mask": str(tmp_path / "mask.npy"), "memory": "50MB"}
    np.save(tmp_path / "mask.npy", np.arange(2000) % 7 > 0)
    there = dfeas.soft_margin(tmp_path / "data", dual=tmp_path / "there.npy", client=client, **more)
    asked = iter([False] * round(there.passes + 1))
    run = tmp_path / "run"
    begun = run_until(partial(next, asked, True), dfeas.soft_margin, tmp_path / "data", dual=run / "alpha.npy", out=run, **more)
    assert (begun.stopped, begun.dual) == ("interrupted", None)
    assert not list(run.glob("*alpha*"))
    resumed = dfeas.resume(run)
    assert isinstance(resumed, dfeas.SoftMarginResult)
    assert np.load(there.dual.path).size == 1714
    assert (tmp_path / "there.npy").read_bytes() == (run / "alpha.npy").read_bytes()
    assert (resumed.dual.value, resumed.dual.residual) == (there.dual.value, there.dual.residual)
    assert not (run / "checkpoint").exists()


def test_a_plan_and_a_run_say_what_a_soft_margin_takes(tmp_path: Path) -> None:
    X, y = overlapping(30_000, 20, dtype="float32")
    np.savez(tmp_path / "a.npz", X=X, y=y)
    dfeas.ingest(tmp_path / "a.npz", tmp_path / "data")
    data, runner = str(tmp_path / "data"), CliRunner()
    found = dfeas.plan(data, C=[0.1, 1.0], folds=3, loss="squared_hinge")
    assert [(e.method, e.auto, e.most_passes) for e in found.estimates] == [("squared-hinge", True, None)]
    hinge, sgd = dfeas.plan(data, C=1).estimates
    assert (hinge.method, hinge.auto, sgd.method, sgd.auto) == ("hinge", True, "sgd", False)
    result = dfeas.soft_margin(data, C=1, out=tmp_path / "run")
    assert result.passes <= hinge.passes
    events = [json.loads(line) for line in (tmp_path / "run" / "trace.jsonl").read_text().splitlines()]
    (said,) = (event for event in events if event["event"] == "projection")
    assert said["memory_bytes"] == hinge.memory_bytes
    assert "a pass reads 2.29 MiB, from pass 4 on nothing" in said["text"]
    shown = runner.invoke(commands, ["plan", data, "--C", "1"]).stdout
    assert "no theorem bounds them" in shown
    refused = runner.invoke(commands, ["plan", data, "--C", "0.1,1", "--folds", "4000", "--memory", "30MB"])
    assert (refused.exit_code, "8002 values of C and folds: at least" in refused.stderr) == (2, True)
    with pytest.raises(dfeas.UsageError) as error:
        dfeas.soft_margin(data, C=[0.1, 1], folds=4000, memory="30MB")
    assert str(error.value) in refused.stderr
    for words, said in ((["--C", "1", "--kernel", "rbf"], "leave out method, kernel"), (["--folds", "3"], "give C, too")):
        mixed = runner.invoke(commands, ["plan", data, *words])
        assert (mixed.exit_code, said in mixed.stderr) == (2, True)


def test_the_command_writes_them_and_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    X, y = overlapping(300, 3)
    np.savez(tmp_path / "a.npz", X=X, y=y)
    dfeas.ingest(tmp_path / "a.npz", tmp_path / "data")
    words = ["svm", str(tmp_path / "data"), "--out", str(tmp_path / "run"), "--dual"]
    for name, more, said in (
        ("a.txt", [], ".npy file"),
        ("a.npz", [], ".npy file"),
        ("no/such/a.npy", [], "no such folder"),
        ("a.npy", ["--method", "sgd"], "sgd keeps nothing"),
    ):
        done = CliRunner().invoke(commands, [*words, str(tmp_path / name), *more])
        assert (done.exit_code, said in done.stderr) == (2, True)
    assert not (tmp_path / "run").exists()
    alpha = tmp_path / "alpha.npy"
    done = CliRunner().invoke(commands, [*words, str(alpha), "--max-passes", "1"])  # the sample alone: nothing is proved
    assert done.exit_code == 3
    assert not np.load(alpha).any()
    done = CliRunner().invoke(commands, ["svm", str(tmp_path / "data"), "--out", str(tmp_path / "other"), "--dual", str(alpha)])
    assert (done.exit_code, "exists already" in done.stderr) == (2, True)
    done = CliRunner().invoke(commands, ["resume", str(tmp_path / "run"), "--max-passes", "20"])
    assert done.exit_code == 0, done.stderr
    assert str(alpha) in done.stdout
    signed = np.hstack([X, np.ones((300, 1))]) * y[:, None]
    cost = SampleCosts(np.ones(1), np.full(1, -1)).matrix(np.arange(300), y)[:, 0]
    lower = dfeas.answers.files.load_result(tmp_path / "run", soft=True)["lower"]
    assert worth(np.load(alpha), cost, signed, False) == pytest.approx(lower, rel=1e-9)
