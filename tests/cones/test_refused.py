"""What is refused of cones, of their programmes and masks, and by the commands, and the sentence that says why."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.cones.generate import ConeInstance
from dfeas.data.generate.points import generate
from tests.cones.making import CONE
from tests.cones.plain import cones_of, problem

ONE = np.ones((2, 1))
X = problem(np.random.default_rng(3), CONE, 4, 0.2)
COUNT = len(list(cones_of(CONE)))
PART = np.arange(len(X)) // 2 != 3  # without two rows of the second cone
S = np.array([[2.0, 1.0], [1.0, 3.0]])

ROWS: list[tuple[Any, Any, str]] = [
    (np.ones((5, 2)), {"l": 2, "q": [4]}, "X has 5 rows"),
    (np.ones((5, 2)), {"s": [3]}, "X has 5 rows"),
    (np.ones((5, 2)), {"z": 5}, "kind 'z'"),
    (np.ones((5, 2)), {"l": 5, "q": [0]}, "empty cone"),
    (np.ones((5, 2)), {"l": 5.0}, "5.0"),
    (np.ones((5, 2)), {"q": "5"}, "'5'"),
    (np.ones((5, 2)), {}, "no cones"),
    (np.ones((5, 2)), [5], "list"),
    (np.array([[1.0, np.nan], [1, 1]]), {"q": [2]}, "not finite"),
    (sp.csr_array([[1.0, np.nan], [0, 1]]), {"q": [2]}, "not finite"),
    (np.array([[1e200, 1.0], [1, 1]]), {"q": [2]}, "norms outside"),
    (np.ones(5), {"l": 5}, r"shape \(5,\)"),
    (np.array([["a"]]), {"l": 1}, "X"),
]
PROGRAMMES: list[tuple[Any, Any, Any, str]] = [
    (ONE, [1, 2], {"l": 1, "ep": 1}, "'ep' of SCS is not supported"),
    (np.ones((3, 1)), [1, 2, 3], {"l": 1, "bl": [0.0]}, "'bl' of SCS is not supported"),
    (np.ones((3, 1)), [1, 2, 3], {"p": [0.3]}, "'p' of SCS is not supported"),
    (ONE, [1, 2], {"l": 3}, "A has 2 rows, the cones have 3"),
    (ONE, [1, 2], {"z": 1, "l": 3}, "1 equalities and 3"),
    (ONE, [1, 2, 3], {"l": 2}, r"b: expected shape \(2,\).*\(3,\)"),
    (ONE, [1, np.nan], {"l": 2}, "b: entries that are not finite"),
    (sp.csr_array([[np.inf], [1.0]]), [1, 2], {"l": 2}, "A: entries that are not finite"),
    (np.array([[2**53 + 1]]), [1], {"l": 1}, "A: .*2\\*\\*53"),
    (np.array([["a"]]), [1], {"l": 1}, "A: entries of type"),
    (np.ones(2), [1, 2], {"l": 2}, r"A: expected .* shape \(2,\)"),
    (ONE, [1, 2], {"z": -1, "l": 3}, "-1 in 'z'"),
    (ONE, [1, 2], {}, "no cones"),
    (ONE, [1, 2], [2], "list"),
    ([[1e-300, 1.0], [0, 1e-10]], [0, 2], {"z": 1, "l": 1}, "equalities of 'z' have solutions .* too far apart.*leave 'z' out"),
]


def solve(rows: Any = X, cone: Any = CONE, **options: Any) -> Any:
    return dfeas.solve(dfeas.from_cone_rows(rows, cone), **options)


def wide() -> Any:
    """Cones of which a Newton step takes a matrix of 3,000 features."""
    return sp.csr_array((np.ones(3000), (np.arange(3000) % 6, np.arange(3000))), shape=(6, 3000))


BAD: list[tuple[Callable[[], Any], str]] = [
    *((lambda rows=rows, cone=cone: dfeas.from_cone_rows(rows, cone), said) for rows, cone, said in ROWS),
    *((lambda A=A, b=b, cones=cones: dfeas.from_scs(A, b, cones), said) for A, b, cones, said in PROGRAMMES),
    (lambda: solve(mask=PART), r"cuts the cone q 5 at row 5 of X: it keeps 3 of its 5 rows"),
    (lambda: solve(mask=np.ones(COUNT + 1, bool)), rf"expected {COUNT} booleans, one for each cone of X, or {len(X)}"),
    (lambda: solve(mask=np.ones(COUNT)), "type float64"),
    (lambda: solve(mask=np.zeros(COUNT, bool)), f"keeps none of the {COUNT} cones"),
    (lambda: dfeas.predict(solve(), dfeas.from_cone_rows(np.eye(3), {"l": 3})), "3 features"),
    (lambda: dfeas.svec(S[:1]), "square"),
    (lambda: dfeas.svec(np.triu(S)), "not symmetric"),
    (lambda: dfeas.svec(S * np.nan), "not finite"),
]
MISUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: solve(np.eye(4), {"q": [2, 2]}, method="mirror-prox-euclidean"), "one second-order cone"),
    (lambda: dfeas.solve(np.eye(4), "all-positive", method="mirror-prox-euclidean"), "does not work on points"),
    (lambda: dfeas.solve(dfeas.from_scs(ONE, [1, 2], {"l": 2}), mask=np.ones(2, bool)), "A, b and cones"),
    (lambda: dfeas.plan(dfeas.from_cone_rows(X, CONE), C=1), "cones have no C"),
    (lambda: solve(wide(), {"s": [3]}, memory="600MB", method="working-set"), r"working-set needs memory='\d[^\n]*$"),
    (lambda: dfeas.ingest(dfeas.from_scs(-ONE, [-1.0, 2.0], {"l": 2}), "none"), "from_cone_rows"),
    (lambda: dfeas.ingest(dfeas.from_cone_rows(np.eye(2), {"l": 2}), "none", label_column="y"), "label_column is for points"),
]


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [*((ask, dfeas.BadInputError, said) for ask, said in BAD), *((ask, dfeas.UsageError, said) for ask, said in MISUSED)],
)
def test_what_makes_no_sense_is_refused_in_one_line(ask: Callable[[], Any], error: type[dfeas.DfeasError], said: str) -> None:
    with pytest.raises(error, match=said) as raised:
        ask()
    assert "\n" not in str(raised.value)


def test_points_are_not_predicted_by_a_run_on_cones(tmp_path: Path) -> None:
    dfeas.ingest(dfeas.from_cone_rows(X, CONE), tmp_path / "data")
    dfeas.solve(tmp_path / "data", out=tmp_path / "run")
    held = dfeas.solve(dfeas.from_cone_rows(X, CONE), out=tmp_path / "held")
    for run in (tmp_path / "run", tmp_path / "held", held):
        with pytest.raises(dfeas.BadInputError, match="a run on cones"):
            dfeas.predict(run, np.eye(4))
    shutil.rmtree(tmp_path / "data")
    with pytest.raises(dfeas.BadInputError, match="a run on cones"):
        dfeas.predict(tmp_path / "run", np.eye(4))


def test_commands_answer_for_cones_and_refuse_what_is_for_points(tmp_path: Path) -> None:
    data, mask, run = tmp_path / "data", tmp_path / "mask.npy", ("--out", tmp_path / "x")
    generate(ConeInstance("cones", 5, "l:5,q:4x20,s:3x10", 0.1), data)
    np.save(mask, np.ones(35, bool))
    np.save(tmp_path / "X.npy", np.ones((4, 2)))
    answers: dict[tuple[Any, ...], str] = {
        ("info", data): "5 of l, 20 of q 4, 10 of s 3; rank 75",
        ("plan", data): "rows of cones (5 of l, 20 of q 4, 10 of s 3)",
        ("solve", data, "--out", tmp_path / "run"): "feasible",
        ("predict", tmp_path / "run", data, tmp_path / "p.npy"): "35 of 35 have A*y in their interior",
    }
    for words, said in answers.items():
        assert said in CliRunner().invoke(commands, [str(word) for word in words]).output
    refused: list[tuple[Any, ...]] = [
        ("plan", data, "--method", "mirror-prox-euclidean"),
        ("plan", data, "--kernel", "rbf"),
        ("plan", data, "--memory", "1MB"),
        ("svm", data, *run),
        *(("solve", data, *run, word) for word in ("--intercept", "--hard-margin", "--separation", "--one-vs-rest")),
        ("solve", data, *run, "--kernel", "rbf"),
        ("solve", data, *run, "--method", "snkpvn"),
        ("solve", data, *run, "--also", data),
        ("solve", data, *run, "--also", data, "--mask", mask),
        ("solve", data, *run, "--labels", mask),
        ("in-hull", "0,0", data, *run),
        ("generate", "cones", tmp_path / "x", "--features", 5, "--points", 5),
    ]
    for words in refused:
        found = CliRunner().invoke(commands, [str(word) for word in words])
        assert (found.exit_code, "error" in found.output) == (2, True), words
        assert "Traceback" not in found.output
    ill = CliRunner().invoke(commands, ["ingest", str(tmp_path / "X.npy"), str(tmp_path / "y"), "--cones", "q:5"])
    assert ill.exit_code == 4
