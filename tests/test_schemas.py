"""Schemas of docs/reference/schemas say what real files hold: all of their keys, with their types."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import zarr

import dfeas

SCHEMAS = Path(__file__).parents[1] / "docs" / "reference" / "schemas"


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text())
    return found


def require(name: str, value: Any) -> None:
    """A value is of its schema, and has no key that the schema does not know."""
    jsonschema.validate(value, closed(schema(name)))


def closed(node: Any) -> Any:
    """The same schema, in which objects have no other keys than those that are named, where any are."""
    if isinstance(node, list):
        return [closed(each) for each in node]
    if not isinstance(node, dict):
        return node
    found = {key: closed(value) for key, value in node.items()}
    if (
        "properties" in node
        and "additionalProperties" not in node
        and "oneOf" not in node
        and node.get("title") != "anything else"
    ):
        found["additionalProperties"] = False
    return found


def arrays_of(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name].tolist() for name in arrays.files}


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines():
        yield json.loads(line)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Datasets and runs of all kinds."""
    room = tmp_path_factory.mktemp("schemas")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    y = X @ [1, 1, -1, 2] > 0
    wrong = y.copy()
    wrong[5] = not wrong[5]
    np.savez(room / "points.npz", X=X, y=wrong, feature_names=list("abcd"))
    dfeas.ingest(room / "points.npz", room / "named")
    dfeas.ingest(X, room / "plain", y=y)
    (room / "ids.csv").write_text("name,a,y\n" + "".join(f"k{place},{place},{int(place > 3)}\n" for place in range(9)))
    dfeas.ingest(room / "ids.csv", room / "ids", label_column="y", id="name")
    dfeas.ingest(X, room / "three", y=np.digitize(X[:, 0], [-0.5, 0.5]))
    sparse = np.where(rng.uniform(size=(120, 40)) < 0.05, 1.0, 0.0)
    dfeas.ingest(sparse, room / "sparse", y=y, sparse=True)
    dfeas.ingest(dfeas.from_cone_rows(np.tile([[3.0, 1.0], [1.0, 0.5], [0.2, 1.0]], (20, 1)), {"q": [3] * 20}), room / "cones")
    dfeas.solve(room / "plain", out=room / "feasible")
    dfeas.solve(room / "named", out=room / "infeasible")
    dfeas.solve(room / "named", kernel="rbf", out=room / "kernel")
    dfeas.solve(room / "cones", out=room / "conic")
    dfeas.solve(dfeas.from_scs([[-1.0], [1.0]], [-1.0, 2.0], {"l": 2}), out=room / "program")
    dfeas.solve(room / "plain", transform="std", intercept=True, out=room / "scaled")
    dfeas.one_vs_rest(room / "three", out=room / "classes")
    dfeas.solve(room / "plain", method="mirror-prox", max_passes=2, out=room / "limited")
    dfeas.soft_margin(room / "named", C=[0.1, 1], folds=2, probability=True, dual=room / "dual.npy", out=room / "soft")
    dfeas.soft_margin_classes(room / "three", out=room / "soft-classes")
    dfeas.race(room / "plain", methods=["mirror-prox", "winnow"], out=room / "race")
    dfeas.separation(room / "named", out=room / "overlap")
    dfeas.separation(room / "plain", out=room / "complete")
    dfeas.hard_margin(room / "plain", out=room / "hard")
    return room


@pytest.mark.parametrize("name", sorted(path.stem for path in SCHEMAS.glob("*.json")))
def test_schemas_are_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    with pytest.raises(jsonschema.ValidationError):
        require(name, {"format": 99, "event": 1})


@pytest.mark.parametrize("name", ["named", "plain", "three", "sparse", "cones", "ids"])
def test_datasets(room: Path, name: str) -> None:
    require("dataset", zarr.open_group(room / name, mode="r").attrs["dfeas"])


RUNS = ["feasible", "infeasible", "kernel", "conic", "program", "scaled", "classes", "limited", "soft", "soft-classes"]
RUNS += ["overlap", "complete", "hard"]


@pytest.mark.parametrize("name", RUNS)
def test_runs(room: Path, name: str) -> None:
    require("result", json.loads((room / name / "result.json").read_text()))
    for path in (room / name).rglob("certificate.npz"):
        require("certificate", arrays_of(path))
    for path in (room / name).rglob("trace.jsonl"):
        events = list(lines_of(path))
        assert events[0]["format"] == 1
        for event in events:
            require("trace", event)


def test_evidence_beside_certificates(room: Path) -> None:
    require("race", json.loads((room / "race" / "race.json").read_text()))
    require("margin", json.loads((room / "hard" / "margin.json").read_text()))
    for name in ("overlap", "complete"):
        require("separation", json.loads((room / name / "separation.json").read_text()))


def test_checkpoints(room: Path) -> None:
    (path, *_) = sorted((room / "limited" / "checkpoint").glob("*.state"))
    require("checkpoint", json.loads(path.read_bytes().partition(b"\n")[0]))


@pytest.mark.parametrize(
    "spoil",
    [lambda values: values.update(verdict="perhaps"), lambda values: values.pop("fingerprint"), lambda v: v.update(odd=1)],
)
def test_what_is_none_is_found(room: Path, spoil: Callable[[dict[str, Any]], Any]) -> None:
    values = json.loads((room / "feasible" / "result.json").read_text())
    spoil(values)
    with pytest.raises(jsonschema.ValidationError):
        require("result", values)
