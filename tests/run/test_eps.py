"""``eps`` is an answer to who asks for it: without one, ``auto`` ends feasible, infeasible, or undecided with a bracket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import dfeas
from dfeas.geometry.protocol import LoadCost
from dfeas.problem import Goal
from dfeas.run import cost, spec
from dfeas.run.cost import bound_passes
from dfeas.run.resources import Limits
from dfeas.run.task import blank
from dfeas.run.termination import Decision, decide
from dfeas.run.termination import Goal as Bar

PARABOLA = dfeas.Kernel("polynomial", gamma=1.0, degree=2)


def hopeless(n: int = 1000) -> tuple[Any, Any]:
    """Points that no quadric separates, and no rounding tells from points which one nearly does: they have too many monomials
    for a proof in integers.
    """
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 25)), rng.choice([-1, 1], n)


@pytest.mark.parametrize(
    ("methods", "eps"),
    [(("auto",), None), (("working-set",), None), (("perceptron",), 1e-3), (("working-set", "ispvn"), 1e-3)],
)
def test_methods_of_the_papers_have_an_eps_and_others_have_none(methods: tuple[str, ...], eps: float | None) -> None:
    assert Goal().of_methods(methods).eps == eps
    assert Goal(eps=0.5).of_methods(methods).eps == 0.5


def test_a_small_image_of_weights_is_an_answer_only_to_who_asks(tmp_path: Path) -> None:
    points, labels = hopeless()
    found = dfeas.solve(points, labels, kernel=PARABOLA)
    assert (found.verdict, found.stopped, found.proof, found.eps) == ("undecided", "stalled", "none", None)
    assert found.margin_lower <= 0 < found.margin_upper < 1e-5
    assert f"eps={2 * found.margin_upper:.1g}" in found.message  # what to ask for
    asked = dfeas.solve(points, labels, kernel=PARABOLA, eps=1e-5)
    assert (asked.verdict, asked.proof, asked.eps) == ("eps-infeasible", "rigorous", 1e-5)
    assert f"margins up to {asked.margin_upper:.3g} are not excluded" in str(asked).splitlines()[0]
    named = dfeas.solve(points, labels, kernel=PARABOLA, method="mirror-prox", max_passes=2000)
    assert (named.verdict, named.eps) == ("eps-infeasible", 1e-3)


def test_without_an_eps_passes_are_bounded_and_more_can_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1700, 400))
    labels = np.where(points[:, 0] > 0, 1, -1)
    points[7], labels[7] = points[3], -labels[3]  # one conflict, of two points, which mirror prox is slow to find
    dfeas.ingest(points, tmp_path / "data", y=labels, block_rows=100)
    monkeypatch.setattr(cost, "PATIENCE", 5)
    monkeypatch.setattr(spec, "EPS", 0.02)  # what passes are counted for
    usual = next(each for each in dfeas.plan(tmp_path / "data", memory="17MiB", margin=0.02).estimates if each.auto)
    found = dfeas.solve(tmp_path / "data", memory="17MiB", out=tmp_path / "run")
    assert (found.method, found.verdict, found.stopped) == ("mirror-prox-one-pass", "undecided", "pass_limit")
    assert usual.passes <= found.passes == int(found.passes) < usual.passes + 1
    assert f"at most {found.passes:g} passes, as neither eps nor max_passes is given" in found.why
    more = dfeas.resume(tmp_path / "run", max_passes=int(found.passes) + 3)
    assert (more.stopped, more.passes) == ("pass_limit", found.passes + 3)


def test_the_bound_is_of_the_theorem_where_the_widest_margin_is_wanted() -> None:
    costs = {"mirror-prox": LoadCost(own=0, asked=0, passes=150.5, most=4000.2)}
    assert bound_passes(costs, widest=False)[0] == 151
    assert bound_passes(costs, widest=True)[0] == 4001
    assert bound_passes({"working-set": LoadCost(own=0, asked=0, passes=2.1)}, widest=False) == (cost.PATIENCE, "")


def test_what_cannot_be_zero_is_not_brought_to_the_checker() -> None:
    assert decide(blank("m", 1e-4), Bar(), Limits()) is None
    assert decide(blank("m", 1e-7), Bar(), Limits()) == Decision("verdict", "eps-infeasible")


@pytest.mark.parametrize(("eps", "said"), [(None, True), (0.01, False)])
def test_an_eps_that_nobody_gave_is_said_with_what_it_leaves_open(eps: float | None, said: bool) -> None:
    """Points are separable, by a margin below the eps of the papers."""
    X, y = load_breast_cancer(return_X_y=True)
    assert dfeas.solve(X, y).verdict == "feasible"
    thin = dfeas.solve(X, y, method="smooth-perceptron", eps=eps)
    assert thin.verdict == "eps-infeasible"
    assert ("smooth-perceptron looks for margins above eps=0.001 where no other eps is given" in thin.message) == said
    assert (f"a margin of up to {thin.margin_upper:.3g} may still separate the points" in thin.message) == said
