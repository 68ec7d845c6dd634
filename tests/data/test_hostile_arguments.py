"""Every argument that becomes numbers, of every verb and estimator: hostile values are refused in one line."""

import inspect
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from copy import deepcopy
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import zarr

import dfeas
from dfeas import estimators

X = np.array([[1.0, 2], [2, 1], [-1, -1], [-2, -1], [3, 1], [-3, -2]])
Y = np.array([1, 1, 0, 0, 1, 0])
ONES = np.ones(6)
FILLERS: dict[str, Any] = {
    "A": X,
    "S": np.eye(2),
    "X": X,
    "b": ONES,
    "bounds": np.array([[-1.0, 1.0], [-2.0, 2.0]]),
    "classes": np.array([0, 1]),
    "equal": (X[:1], ONES[:1]),
    "mask": Y >= 0,
    "point": X[0],
    "sample_weight": ONES,
    "start": np.ones(3),
    "strata": Y,
    "weights": ONES,
    "y": Y,
}
"""A clean value for each argument that becomes numbers, by its name; of a pair each one is tried."""
NO_ARRAYS = {"cones", "kernel", "method", "positive", "problem"}
"""Arguments of any type that are none."""
OWN: dict[str, dict[str, Any]] = {"from_scs": {"A": X, "b": ONES, "cones": {"l": 6}}, "from_cone_rows": {"cones": {"l": 6}}}
OWN |= {"race": {"methods": ["working-set", "perceptron"]}, "plan": {"method": "auto"}, "from_cvxpy": {}}
"""What a verb needs beside them."""
LABELS = {"y", "classes", "strata"}
"""Values of any kind, of which only equal ones are alike."""


def holes(clean: Any, path: Path) -> Any:
    kept = zarr.create_array(path / "hole.zarr", shape=clean.shape, chunks=(1, *clean.shape[1:]), dtype="f8", overwrite=True)
    kept[:1] = 1.0
    return kept


def virtual(clean: Any, path: Path) -> Any:
    file, name = h5py.File(path / "virtual.h5", "a"), f"of shape {clean.shape}"
    if name not in file:
        file.create_virtual_dataset(name, h5py.VirtualLayout(clean.shape, "f8"))
    return file[name]


def with_first(clean: Any, value: Any, dtype: Any = object) -> Any:
    changed = clean.astype(dtype)
    changed[(0,) * clean.ndim] = value
    return changed


HOSTILE: dict[str, Callable[[Any, Path], Any]] = {
    "masked": lambda clean, path: np.ma.array(clean, mask=with_first(np.zeros(clean.shape, bool), True, bool)),
    "wide": lambda clean, path: with_first(clean, 2**53 + 1, np.int64),
    "wide beside floats": lambda clean, path: with_first(clean, 2**53 + 1),
    "NA": lambda clean, path: with_first(clean, pd.NA),
    "None": lambda clean, path: np.full(clean.shape, None),
    "list with NA": lambda clean, path: with_first(clean, pd.NA).tolist(),
    "StringDType": lambda clean, path: with_first(clean.astype("U8"), None, np.dtypes.StringDType(na_object=None)),
    "complex": lambda clean, path: clean + 1j,
    "3-d": lambda clean, path: np.zeros((*clean.shape, 2, 2)),
    "ragged": lambda clean, path: [[1.0], *clean.tolist()[1:-1], [1.0, 2.0, 3.0]],
    "hole": holes,
    "virtual": virtual,
    "dates": lambda clean, path: clean.astype("i8").astype("M8[s]"),
    "text": lambda clean, path: clean.astype("U8"),
    "generator": lambda clean, path: (each for each in clean.tolist()),
    "object": lambda clean, path: object(),
    "set": lambda clean, path: set(clean.ravel().tolist()),
    "function": lambda clean, path: len,
    "future": lambda clean, path: Future(),
    "bytes": lambda clean, path: clean.tobytes(),
    "date": lambda clean, path: date(2020, 1, 1),
    "mapping": lambda clean, path: {"a": clean},
    "empty": lambda clean, path: clean[:0],
    "empty list": lambda clean, path: [],
    "nothing at a path": lambda clean, path: str(path / "nothing.npy"),
    "number": lambda clean, path: 1.5,
    "NaN": lambda clean, path: with_first(clean, np.nan, float),
    "infinite": lambda clean, path: with_first(clean, -np.inf, float),
    "decimal NaN": lambda clean, path: with_first(clean, Decimal("NaN")),
    "records": lambda clean, path: np.zeros(clean.shape, [("a", "f8"), ("b", "f8")]),
    "arrays in arrays": lambda clean, path: with_first(clean, np.ones(2)),
    "frame with text": lambda clean, path: pd.DataFrame({"a": ["u"] * len(clean), "b": 1.0}),
}
TAKEN = {("S", "3-d"), ("sample_weight", "number"), ("X", "frame with text")}
TAKEN |= {(name, kind) for name in LABELS for kind in ("text", "wide", "wide beside floats")}
"""What may have an answer."""
OF_SCIKIT_LEARN = ("Input X contains NaN", "Expected 2D array, got")
"""Beginnings of its errors, which have several lines: its own checks of estimators look for them."""


def verbs(run: Path, certificate: Any) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """All public functions, and methods of estimators, with what they need beside the arguments."""
    given = {"run": run, "certificate": certificate}
    for name in dfeas.__all__:
        verb = getattr(dfeas, name)
        if inspect.isfunction(verb):
            yield name, verb, OWN.get(name, {}) | {key: each for key, each in given.items() if key in parameters(verb)}
    for name in estimators.__all__:
        kind = getattr(estimators, name)
        options = {"probability": True, "folds": 2} if hasattr(kind, "probability") else {}
        for method in ("fit", "partial_fit", "predict", "decision_function", "predict_proba", "score"):
            if method in dir(kind):
                made = kind(**options) if "fit" in method else kind(**options).fit(X, Y)
                yield f"{name}.{method}", getattr(made, method), {}


def parameters(verb: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(verb).parameters)


def arrays_of(verb: Callable[..., Any]) -> list[str]:
    """Arguments that become numbers: those of any type, of arrays, and of those names."""
    names = [name for name, each in parameters(verb).items() if str(each.annotation).startswith(("Any", "ArrayLike", "Floats"))]
    return [name for name in names if name not in NO_ARRAYS]


def tries(name: str) -> Iterator[tuple[Any, Callable[[Any], Any]]]:
    """Clean arrays, and the argument with another one in their place."""
    clean = FILLERS[name]
    if not isinstance(clean, tuple):
        yield clean, lambda value: value
        return
    yield clean[0], lambda value: (value, clean[1])
    yield clean[1], lambda value: (clean[0], value)


def test_hostile_values_of_every_argument_are_refused_in_one_line(tmp_path: Path) -> None:
    dfeas.solve(X, Y, out=tmp_path / "run")
    certificate, wrong = tmp_path / "run" / "certificate.npz", list[str]()
    warnings.simplefilter("ignore")
    for verb_name, verb, own in verbs(tmp_path / "run", certificate):
        names = arrays_of(verb)
        unknown = [name for name in names if name not in FILLERS]
        assert not unknown, f"{verb_name}: add {unknown} to FILLERS, or to NO_ARRAYS"
        needed = {
            name: FILLERS[name] for name in names if parameters(verb)[name].default is inspect.Parameter.empty or name == "y"
        }
        if "out" in parameters(verb) and parameters(verb)["out"].default is inspect.Parameter.empty:
            own = own | {"out": tmp_path / "out"}
        for name in names:
            for clean, place in tries(name):
                for kind, make in HOSTILE.items():
                    said = outcome(verb, {**needed, **own, name: place(make(clean, tmp_path))})
                    if said and not (said.startswith("taken") and (name, kind) in TAKEN):
                        wrong.append(f"{verb_name}({name}: {kind}): {said}")
    assert not wrong, "\n".join(wrong)


def outcome(verb: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """What is wrong with how a call ended; nothing where it was refused in one line."""
    if hasattr(verb, "__self__"):  # of an estimator, which remembers
        verb = getattr(deepcopy(verb.__self__), verb.__name__)
    try:
        return f"taken: {str(verb(**arguments))[:60]!r}"
    except (dfeas.DfeasError, ValueError) as error:
        lines = 1 if str(error).startswith(OF_SCIKIT_LEARN) else len(str(error).splitlines())
        return f"several lines: {str(error)[:80]!r}" if lines > 1 else ""
    except Exception as error:  # noqa: BLE001  whatever it is
        return f"{type(error).__name__}: {str(error)[:100]!r}"
