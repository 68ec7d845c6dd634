"""Methods are where the registry says, under their names, in each space where their traits say that they work."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.data.generate.points import Instance
from dfeas.errors import UsageError
from dfeas.methods.protocol import Facts
from dfeas.methods.registry import FOR_CONES, FOR_KERNELS, METHODS, SOFT_MARGINS

SPACES: dict[str, Mapping[str, Any]] = {"points": METHODS, "kernel": FOR_KERNELS, "cones": FOR_CONES}


@pytest.mark.parametrize("space", SPACES)
def test_a_method_has_the_name_under_which_it_is_found(space: str) -> None:
    for name, method in SPACES[space].items():
        assert method.name == name
        assert getattr(method.traits, space) is not None


@pytest.mark.parametrize("space", SPACES)
def test_a_method_is_found_in_each_space_where_it_works(space: str) -> None:
    everywhere = [method for methods in SPACES.values() for method in methods.values()]
    assert {m.name for m in everywhere if getattr(m.traits, space) is not None} == {*SPACES[space]}


def test_a_soft_margin_has_the_name_under_which_it_is_found() -> None:
    assert {name: kind.name for name, kind in SOFT_MARGINS.items()} == {name: name for name in SOFT_MARGINS}


def test_a_method_is_made_once() -> None:
    assert METHODS["winnow"] is METHODS["winnow"]
    with pytest.raises(KeyError, match="unknown"):
        METHODS["unknown"]


OPTIONS = {
    **dict.fromkeys(["ispvn:gamma=1", "ispvn:gamma=e", "ispvn:lambda=m", "ispvn:"], "expected ispvn:lambda=n, ispvn:gamma=G"),
    **dict.fromkeys(
        ["snkpvn:gamma=3", "snkpvn:delta=0", "snkpvn:delta=1"], "expected snkpvn:lambda=n, snkpvn:delta=D between 0 and 1"
    ),
    "mirror-prox:gamma=3": "mirror-prox has no options",
    "perceptron:x": "perceptron has no options",
}
"""Its delta is given to snkpvn, and gamma would say nothing."""


@pytest.mark.parametrize("method", OPTIONS)
def test_options_that_a_method_has_not_are_refused(method: str) -> None:
    for verb, kernel in ((dfeas.solve, None), (dfeas.plan, "rbf"), (dfeas.solve, "rbf")):
        with pytest.raises(UsageError, match=f"^method {method}: {OPTIONS[method]}"):
            verb(np.eye(3), [1, 1, -1], method=method, kernel=kernel)
    with pytest.raises(UsageError, match="method auto:gamma=2"):
        dfeas.solve(np.eye(3), [1, 1, -1], method="auto:gamma=2")
    with pytest.raises(UsageError, match="method perceptron:x: perceptron has no options"):
        FOR_CONES["perceptron:x"]


def test_a_run_goes_on_with_the_options_of_its_method(tmp_path: Path) -> None:
    X, labels = Instance("halfspace", 8, 300, seed=1).block(0)
    more: dict[str, Any] = {"intercept": False, "method": "ispvn:gamma=4:lambda=n", "eps": 1e-9}
    dfeas.solve(X, labels, max_passes=9, out=tmp_path / "run", **more)
    resumed, whole = dfeas.resume(tmp_path / "run", X, labels, max_passes=40), dfeas.solve(X, labels, max_passes=40, **more)
    assert resumed.method == "ispvn:gamma=4:lambda=n"
    assert (resumed.margin_lower, resumed.margin_upper) == (whole.margin_lower, whole.margin_upper)
    plain = dfeas.solve(X, labels, max_passes=40, **more | {"method": "ispvn"})
    assert plain.margin_upper != whole.margin_upper


def test_bounds_are_those_of_the_theorems() -> None:
    facts, log = Facts(100, 10**6), math.log(10**6)
    assert dfeas.METHODS["smooth-perceptron"].bound(facts, 0.01) == pytest.approx(2 + 200 * math.sqrt(2 * log))
    assert dfeas.METHODS["mirror-prox-fixed"].bound(facts, 0.01) == pytest.approx(1 + 100 * math.sqrt(2 * log))
    assert dfeas.METHODS["perceptron"].bound(facts, 0.01) == pytest.approx(1 + 1e4)
    assert dfeas.METHODS["working-set"].bound(facts, 0.01) == pytest.approx(5 + 200 * math.sqrt(2 * log))
