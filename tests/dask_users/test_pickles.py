"""Functions of a script that use dfeas, and what dfeas returns, go to other processes and come back, as Dask, joblib and
``concurrent.futures`` send them.
"""

import pickle
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import dfeas
from dfeas.problem import Problem

SCRIPT = """
import sys
import numpy as np
import dfeas

X = np.random.default_rng(0).standard_normal((60, 3))
y = X @ [1.0, 2.0, -1.0] > 0
wrong = y.copy()
wrong[[3, 40]] = ~y[[3, 40]]
LABELS = [y, wrong]

def verdict(labels):
    return dfeas.solve(X, labels).verdict

def main(client_of):
{flow}

def client_of():
    from distributed import Client
    return Client(sys.argv[1])

if __name__ == "__main__":
    print(*main(client_of))
"""
FRAME = """
    import dask.dataframe as dd
    import pandas as pd
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    both = pd.concat([frame.assign(kind=kind, label=labels) for kind, labels in enumerate(LABELS)], ignore_index=True)
    def ask(part):
        return dfeas.solve(part[["a", "b", "c"]], part["label"]).verdict
"""
FLOWS = {
    "map": "client = client_of(); return client.gather(client.map(verdict, 8 * LABELS, pure=False))[-2:]",
    "map_partitions": f"""{FRAME}
    client = client_of()
    parts = dd.from_pandas(both, npartitions=2)
    asked = parts.map_partitions(lambda part: pd.Series([ask(part)]), meta=pd.Series([], dtype=object))
    return list(asked.compute())
    """,
    "groupby": f"""{FRAME}
    client = client_of()
    asked = dd.from_pandas(both, npartitions=3).groupby("kind").apply(ask, meta=("verdict", object))
    return list(asked.compute().sort_index())
    """,
    "delayed_threads": """
    import dask
    results = dask.compute(*(dask.delayed(dfeas.solve)(X, labels) for labels in LABELS), scheduler="threads")
    return [result.verdict for result in results]
    """,
    "delayed_processes": """
    import dask
    results = dask.compute(*(dask.delayed(dfeas.solve)(X, labels) for labels in LABELS), scheduler="processes", num_workers=2)
    own = dask.compute(*(dask.delayed(verdict)(labels) for labels in LABELS), scheduler="processes", num_workers=2)
    assert [result.verdict for result in results] == list(own)
    return own
    """,
    "loky": "import joblib; return joblib.Parallel(2, backend='loky')(joblib.delayed(verdict)(labels) for labels in LABELS)",
    "pool_by_fork": """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context
    verdict(y)
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        return list(pool.map(verdict, LABELS))
    """,
}


@pytest.mark.parametrize("flow", FLOWS)
def test_a_function_of_a_script_goes_elsewhere(flow: str, client: Any, tmp_path: Path) -> None:
    lines = FLOWS[flow] if "\n" in FLOWS[flow] else f"    {FLOWS[flow]}"
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.replace("{flow}", lines))
    words = [sys.executable, str(path), client.scheduler.address]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert done.stdout.split() == ["feasible", "infeasible"], done.stderr


def test_the_module_and_a_function_of_main_that_names_it_are_pickled() -> None:
    assert pickle.loads(cloudpickle.dumps(dfeas)) is dfeas
    script: dict[str, Any] = {"__name__": "__main__"}
    exec("import dfeas\ndef ask():\n    return dfeas.solve", script)
    assert pickle.loads(cloudpickle.dumps(script["ask"]))() is dfeas.solve


def test_no_submodule_has_the_name_of_a_public_function() -> None:
    """Its import would set ``dfeas.NAME`` to the module."""
    assert not {module.name for module in pkgutil.iter_modules(dfeas.__path__)} & set(dfeas.__all__)


X = np.random.default_rng(0).standard_normal((60, 3))
Y = X @ [1.0, 2.0, -1.0] > 0
WRONG = Y ^ (np.arange(60) == 3)
KINDS = np.digitize(X[:, 0], [-0.5, 0.5])


def parabola(one: Any, other: Any) -> Any:
    return (1 + one @ other.T) ** 2


MADE: dict[str, Callable[[], Any]] = {
    "solve": lambda: dfeas.solve(X, Y),
    "conflict": lambda: dfeas.solve(X, WRONG),
    "kernel": lambda: dfeas.solve(X, Y, kernel="rbf"),
    "own_kernel": lambda: dfeas.solve(X, Y, kernel=parabola),
    "race": lambda: dfeas.race(X, Y, methods=["perceptron", "mirror-prox"]),
    "one_vs_rest": lambda: dfeas.one_vs_rest(X, KINDS),
    "soft_margin": lambda: dfeas.soft_margin(X, WRONG),
    "soft_margin_classes": lambda: dfeas.soft_margin_classes(X, KINDS),
    "hard_margin": lambda: dfeas.hard_margin(X, Y),
    "in_hull": lambda: dfeas.in_hull(np.zeros(3), X),
    "feasible": lambda: dfeas.feasible(X, np.ones(60)),
    "separation": lambda: dfeas.separation(X, Y),
    "check_separation": lambda: dfeas.check_separation(X, WRONG),
    "suspects": lambda: dfeas.suspects(X, WRONG),
    "plan": lambda: dfeas.plan(X, Y),
}
PREDICT = {"solve", "soft_margin", "soft_margin_classes"}


def sent(client: Any, value: Any) -> Any:
    """It, from here to a worker and back."""
    return client.submit(lambda each: each, value, pure=False).result()


@pytest.mark.parametrize("verb", MADE)
def test_what_a_verb_returns_comes_back(verb: str, client: Any) -> None:
    result = MADE[verb]()
    back = sent(client, result)
    assert type(back) is type(result)
    assert back.to_json() == result.to_json()
    if verb in PREDICT:
        np.testing.assert_array_equal(back.decision_function(X), result.decision_function(X))


@pytest.mark.parametrize("name", ["LinearSVC", "LinearSVCCV", "Separator", "KernelSeparator"])
def test_an_estimator_comes_back_and_is_fitted_there(name: str, client: Any) -> None:
    estimators = pytest.importorskip("dfeas.estimators")
    made = getattr(estimators, name)()
    fitted = client.submit(lambda each: each.fit(X, Y), made, pure=False).result()
    np.testing.assert_array_equal(fitted.predict(X), made.fit(X, Y).predict(X))
    np.testing.assert_array_equal(sent(client, made).predict(X), made.predict(X))


@pytest.mark.parametrize("kernel", ["rbf", parabola, lambda one, other: (1 + one @ other.T) ** 2])
def test_kernels_and_problems_come_back(kernel: Any, client: Any) -> None:
    back = sent(client, dfeas.Kernel(kernel))
    assert back == dfeas.Kernel(kernel) if isinstance(kernel, str) else (back.kernel(X, X) == kernel(X, X)).all()
    solved = client.submit(lambda each: dfeas.solve(X, Y, kernel=each).verdict, dfeas.Kernel(kernel), pure=False)
    assert solved.result() == "feasible"
    problem = sent(client, Problem.of(X, Y, kernel=kernel))
    np.testing.assert_array_equal(problem.spec.where, X)


def test_an_error_comes_back_with_its_line(client: Any) -> None:
    with pytest.raises(dfeas.BadInputError, match="expected 60 labels") as told:
        client.submit(dfeas.solve, X, Y[1:], pure=False).result()
    with pytest.raises(dfeas.BadInputError) as here:
        dfeas.solve(X, Y[1:])
    assert str(told.value) == str(here.value)
