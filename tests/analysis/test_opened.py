"""``verify`` opens every file of a run: what it says is so of the data, or is listed as what nobody checked."""

import hashlib
import json
import shutil
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import crc32c
import numpy as np
import pytest
import zarr

import dfeas
from dfeas.data.storage.stored_array import seal
from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.passes.survey import Moments, MomentsAnswer, _of
from dfeas.records import replace
from dfeas.verify.certificate import load
from dfeas.verify.view import FeatureMoments, FeatureScaling
from tests.analysis.making import Edit, forged


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Whole points on both sides of a plane; of ``flip`` the farthest has the wrong label."""
    room, rng = tmp_path_factory.mktemp("opened"), np.random.default_rng(5)
    X = rng.integers(-5, 6, (60, 3)).astype(float)
    score = X @ np.array([1, 2, -1.0]) + 0.5
    names = np.where(score > 0, "ham", "spam")
    dfeas.ingest(X, room / "data", y=names, block_rows=16)
    names[score.argmax()] = "spam"
    dfeas.ingest(X, room / "flip-data", y=names, block_rows=16)
    dfeas.solve(room / "data", intercept=True, out=room / "run")
    dfeas.solve(room / "flip-data", intercept=True, out=room / "flip")
    dfeas.hard_margin(room / "data", intercept=True, out=room / "hard")
    dfeas.hard_margin(room / "data", intercept=True, transform=["std", "center"], out=room / "seen")
    names = np.where((score > 0.5)[score != 0.5], "ham", "spam")
    dfeas.ingest(X[score != 0.5], room / "origin-data", y=names, block_rows=16)
    dfeas.hard_margin(room / "origin-data", intercept=False, out=room / "origin")
    dfeas.hard_margin(room / "origin-data", intercept=False, method="mirror-prox", max_passes=300, out=room / "no-weights")
    return room


def exchanged(values: dict[str, Any]) -> None:
    sides = values["sides"]
    sides["-1"]["name"], sides["+1"]["name"] = sides["+1"]["name"], sides["-1"]["name"]


def test_names_of_classes_are_those_of_the_data(room: Path) -> None:
    X = np.asarray(zarr.open_group(room / "data", mode="r")["X"])
    run, true = forged(room / "run", exchanged), dfeas.load(room / "run").predict(X).tolist()
    with pytest.raises(CheckFailedError, match="sides is"):
        dfeas.verify_run(run)
    assert dfeas.load(run).predict(X).tolist() == true
    assert dfeas.predict(run, X).classes == ("ham", "spam")
    with pytest.raises(CheckFailedError, match="sides is"):
        dfeas.verify_run(forged(room / "run", lambda values: values["sides"]["-1"].update(points=7)))
    for change in ({"status": 1}, {"success": 1}, {"features": ["a", "b", "c"]}):
        with pytest.raises(CheckFailedError, match=next(iter(change))):
            dfeas.verify_run(forged(room / "run", lambda values, change=change: values.update(change)))


def test_names_that_were_exchanged_are_another_fingerprint(room: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(room / "data", tmp_path / "data"))
    node = json.loads((data / "zarr.json").read_text())
    values = node["attributes"]["dfeas"]
    values["classes"] = values["classes"][::-1]
    node["attributes"]["seal"] = seal(node)
    (data / "zarr.json").write_text(json.dumps(node))
    run = forged(room / "run", lambda values: values["data"].update(path=str(data)))
    with pytest.raises(CorruptDataError, match="the fingerprint does not match"):
        dfeas.verify_run(run)
    X, names = np.array([[1.0, 0], [0, 1], [-1, -1]]), np.array(["a", "b", "b"])
    marks = [dfeas.solve(X, labels, intercept=True).fingerprint for labels in (names, np.where(names == "a", "c", "d"))]
    assert marks[0] != marks[1]
    assert dfeas.ingest(X, tmp_path / "a", y=names).fingerprint == marks[0]


def test_a_maximum_margin_of_unit_points_is_proved_from_its_weights(room: Path) -> None:
    proved, name = dfeas.verify_run(room / "origin"), "origin"
    assert proved.margin_lower >= 0.999 * proved.margin_upper
    assert "it is the maximum" in proved.message
    assert "margin_upper" not in proved.not_checked
    lower = proved.margin_lower
    for change in (5.0, 1.0, lower, lower * (1 - 1e-6), proved.margin_upper * (1 + 1e-6)):
        if abs(change - proved.margin_upper) > 1e-9:
            with pytest.raises(CheckFailedError, match=r"margin_upper is|above margin_upper"):
                dfeas.verify_run(forged(room / name, lambda values, change=change: values.update(margin_upper=change)))


@pytest.mark.parametrize("name", ["origin", "hard", "seen"])
def test_what_a_hard_margin_says_is_proved(room: Path, name: str) -> None:
    proved, values = dfeas.verify_run(room / name), json.loads((room / name / "margin.json").read_text())
    assert not {each for each in proved.not_checked if each.endswith("of margin.json")} - {"format of margin.json"}
    if name != "origin":
        assert values["lower"] >= 0.999 * values["upper"]
        assert "it is the widest up to" in proved.message
        for more in ({"lower": values["lower"] * (1 - 1e-6)}, {"upper": values["upper"] * (1 - 1e-6)}, {"lower": None}):
            with pytest.raises(CheckFailedError):
                dfeas.verify_run(forged(room / name, lambda values, more=more: values.update(more), "margin.json"))
        for weight in (0.5, 1.5):  # one weight is another share of its class
            with pytest.raises(CheckFailedError):
                dfeas.verify_run(forged(room / name, lambda values, weight=weight: _scale_first(values, weight), "margin.json"))
        none = {"weights": None, "support": None, "leave_one_out": None, "upper": None}
        with pytest.raises(CheckFailedError):
            dfeas.verify_run(forged(room / name, lambda values: values.update(none), "margin.json"))
    changes: dict[str, Any] = {
        "margin": values["margin"] * (1 + 1e-6), "w": [w + 1e-6 for w in values["w"]], "bias": values["bias"] + 1e-6,
        "radius": values["radius"] * 1.001, "corrections": 1.0, "dimension": values["dimension"] + 1, "margin_tolerance": 0.5,
        "leave_one_out": 0.5, "fingerprint": "0" * 64, "weights": values["weights"][::-1], "support": values["support"][:-1],
    }  # fmt: skip
    for key, value in changes.items():
        if value != values[key]:
            with pytest.raises(CheckFailedError):
                dfeas.verify_run(
                    forged(room / name, lambda values, key=key, value=value: values.update({key: value}), "margin.json")
                )


def _scale_first(values: dict[str, Any], factor: float) -> None:
    values["weights"][0] *= factor


def test_an_upper_end_without_weights_is_not_checked(room: Path) -> None:
    assert json.loads((room / "no-weights" / "margin.json").read_text())["weights"] is None
    proved = dfeas.verify_run(room / "no-weights")
    assert proved.margin_upper == 1
    assert "margin_upper" in proved.not_checked
    assert "not checked  " in str(proved)
    with pytest.raises(CheckFailedError, match="no unit vector"):
        dfeas.verify_run(forged(room / "no-weights", lambda values: values.update(margin_upper=5.0)))


def test_the_most_suspect_come_first_with_their_scores(room: Path) -> None:
    values, held = json.loads((room / "flip" / "result.json").read_text()), load(room / "flip" / "certificate.npz")
    group = zarr.open_group(room / "flip-data", mode="r")
    points = np.hstack([np.asarray(group["X"]), np.ones((60, 1))])
    score = np.asarray(group["label"]) * (points @ held.y) / np.linalg.norm(points, axis=1)
    listed = values["conflicts"]
    assert len(listed) > 1
    assert [entry["score"] for entry in listed] == pytest.approx(sorted(score[held.support]), abs=1e-12)
    assert "scores of conflicts" not in dfeas.verify_run(room / "flip").not_checked
    edits: list[Edit] = [
        lambda values: values["conflicts"].reverse(),
        lambda values: values["conflicts"].insert(0, values["conflicts"].pop()),
        lambda values: values["conflicts"][0].update(score=values["conflicts"][0]["score"] - 1e-6),
        lambda values: values["conflicts"][0].update(score=None),
        lambda values: values["conflicts"][0].update(point=True),
        lambda values: [entry.update(score=None) for entry in values["conflicts"]],
    ]
    for edit in edits:
        with pytest.raises(CheckFailedError, match="conflicts"):
            dfeas.verify_run(forged(room / "flip", edit))
    run = forged(room / "flip", lambda values: None)
    replace(held, y=-held.y).save(run / "certificate.npz")
    with pytest.raises(CheckFailedError, match="has score"):
        dfeas.verify_run(run)
    replace(held, y=np.empty(0)).save(run / "certificate.npz")
    assert "scores of conflicts" in dfeas.verify_run(run).not_checked


def quasi(folder: Path) -> Path:
    X = np.array([[1.0, 0], [1, 0], [2, 0], [2, 0], [0, 1], [0, 1], [0, 2], [1, 5]])
    dfeas.ingest(X, folder / "data", y=[1, -1, 1, -1, 1, 1, 1, 1], block_rows=4)
    assert dfeas.separation(folder / "data", intercept=False, out=folder / "run").kind == "quasi-complete"
    return folder / "run"


def test_a_quick_check_compares_the_blocks_of_a_separation(tmp_path: Path) -> None:
    run = quasi(tmp_path)
    (chunk,) = (path for path in (tmp_path / "data" / "X").iterdir() if path.name == "c.1.0")
    points = np.frombuffer(chunk.read_bytes()[:64]).reshape(4, 2).copy()
    points[1] = [0, -1]
    entries = points.tobytes()
    chunk.write_bytes(entries + struct.pack("<I", crc32c.crc32c(entries)))
    claim = {"kind": "overlap", "on": 0, "rank": 2, "y": None, "support": [0, 1, 4, 5], "weights": [1, 1, 1, 1], "flat": []}
    with pytest.raises(CorruptDataError, match="chunk 1 of X is damaged"):
        dfeas.verify_run(forged(run, lambda values: values.update(claim), "separation.json"), quick=True)


def test_exact_sums_are_those_of_fractions_however_points_are_cut() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((int(rng.integers(2, 50)), 3)) * 10.0 ** rng.integers(-100, 100, (1, 3))
        if seed % 3 == 0:
            X = np.vstack([X, -X, np.full((1, 3), 1e-30)])
        if seed % 5 == 0:
            X = X * 10.0 ** rng.integers(-150, 20, X.shape)
        right = [float(sum(map(Fraction, column), Fraction(0)) / len(X)) for column in X.T.tolist()]
        cut = int(rng.integers(1, len(X)))
        numbers = FeatureMoments.of(X[:cut], FeatureScaling(np.zeros(3), None), False)
        numbers.add(FeatureMoments.of(X[cut:], FeatureScaling(np.zeros(3), None), False))
        assert numbers._means().tolist() == right
        moments: MomentsAnswer = Moments().merge(_of(X[:cut], True), _of(X[cut:], True))
        assert moments.center.tolist() == right


@pytest.mark.parametrize(
    ("points", "labels"), [([1, 2, 3], [-1, 1, 1]), ([-1, 0, 1], [-1, 1, 1]), ([-1e9, 3e-7, 1e9 - 9e-7], [-1, 1, 1])]
)
def test_a_centre_that_is_not_the_mean_is_refused(tmp_path: Path, points: list[float], labels: list[int]) -> None:
    X = np.array(points, float)[:, None]
    header = dfeas.ingest(X, tmp_path / "data", y=labels)
    result = dfeas.solve(tmp_path / "data", transform="center", intercept=False, out=tmp_path / "run")
    mean = float(sum(map(Fraction, X[:, 0].tolist()), Fraction(0)) / 3)
    true = load(tmp_path / "run" / "certificate.npz")
    assert json.loads(true.view)["transform"]["shift"] == [mean]
    dfeas.verify_run(tmp_path / "run")
    for shift in (np.nextafter(mean, np.inf), np.nextafter(mean, -np.inf), mean + 1.5e-9, mean - 1e-12, mean + 1e-31):
        if float(shift) == mean:
            continue
        view = true.view.replace(f'"shift": [{mean!r}]', f'"shift": [{float(shift)!r}]')
        mark = hashlib.sha256(f"{header.fingerprint} {view}".encode()).hexdigest()

        def off(values: dict[str, Any], mark: str = mark, shift: float = float(shift)) -> None:
            values["fingerprint"] = mark
            values["data"]["transform"]["shift"] = [shift]

        run = forged(tmp_path / "run", off)
        replace(true, fingerprint=mark, view=view).save(run / "certificate.npz")
        with pytest.raises(CheckFailedError, match=r"feature 0 is said to be centred|a point of the support has a norm"):
            dfeas.verify_run(run)
    assert result.verdict in ("infeasible", "feasible")


def test_classes_list_what_their_runs_say_and_what_nobody_checked(tmp_path: Path) -> None:
    sizes = [20, 30, 41]
    X = np.random.default_rng(0).standard_normal((91, 3)) + 9 * np.repeat(np.eye(3), sizes, axis=0)
    dfeas.ingest(X, tmp_path / "data", y=np.repeat(["ant", "bee", "cat"], sizes), block_rows=8)
    assert dfeas.one_vs_rest(tmp_path / "data", intercept=True, out=tmp_path / "run").success
    checks = dfeas.verify_run(tmp_path / "run").classes
    assert all(each is not None and "seconds of all classes" in each.not_checked for each in checks.values())
    edits: list[Edit] = [
        lambda values: values.update(verdict="2 of 3 classes decided"),
        lambda values: values["classes"]["bee"]["sides"]["+1"].update(points=3),
        lambda values: values["classes"]["bee"].update(passes=99),
        lambda values: values.update(stopped="time_limit"),
    ]
    for edit in edits:
        with pytest.raises(CheckFailedError, match=r"result\.json: "):
            dfeas.verify_run(forged(tmp_path / "run", edit))

    def swapped(values: dict[str, Any]) -> None:
        classes = values["classes"]
        classes["ant"]["folder"], classes["bee"]["folder"] = classes["bee"]["folder"], classes["ant"]["folder"]

    with pytest.raises(CorruptDataError, match="has the certificate of"):
        dfeas.predict(forged(tmp_path / "run", swapped), X)
