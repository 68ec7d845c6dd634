"""Names of features: kept from any source that has them, and the same ones in another order refused, wherever points meet."""

import json
from pathlib import Path

import dask.dataframe
import numpy as np
import pandas
import pytest

import dfeas
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source, Transform
from dfeas.errors import BadInputError, CheckFailedError, CorruptDataError
from dfeas.records import replace
from dfeas.verify.certificate import load
from tests.data.making import NAMES, opened
from tests.typed import dfeas as typed

N = 400


@pytest.fixture
def people() -> pandas.DataFrame:
    """As a registry has them, with an index of its own; separable by age and height."""
    rng = np.random.default_rng(0)
    age, height = rng.integers(18, 90, N).astype(float), rng.normal(170, 9, N)
    columns = [age, height, rng.normal(size=N), rng.integers(10_000, 99_999, N).astype(float)]
    frame = pandas.DataFrame(dict(zip(NAMES, columns, strict=True)))
    frame.insert(2, "kind", np.where(age + height > 220, "good", "bad"))
    return frame


@pytest.fixture
def moved(people: pandas.DataFrame) -> pandas.DataFrame:
    """The same features in another order."""
    return people[[NAMES[1], NAMES[0], *NAMES[2:], "kind"]]


def points(frame: pandas.DataFrame) -> np.ndarray:
    return np.ascontiguousarray(frame.drop(columns="kind").to_numpy())


@pytest.fixture
def room(tmp_path: Path, people: pandas.DataFrame, moved: pandas.DataFrame) -> Path:
    """data and a run of it; moved with another order, and without any names plain."""
    dfeas.ingest(people, tmp_path / "data", label_column="kind", block_rows=150)
    dfeas.ingest(moved, tmp_path / "moved", label_column="kind")
    np.save(tmp_path / "X.npy", points(people))
    np.save(tmp_path / "y.npy", people.kind.to_numpy(str))
    dfeas.ingest(tmp_path / "X.npy", tmp_path / "plain", y=tmp_path / "y.npy", block_rows=150)
    dfeas.solve(tmp_path / "data", intercept=True, transform=["std", "center"], out=tmp_path / "run")
    return tmp_path


ORDER = "the same features in another order"


def test_views_keep_names(room: Path) -> None:
    data, mask = str(room / "data"), np.arange(N) % 2 == 0
    np.save(room / "mask.npy", mask)
    transform = Transform("std", True, True, N, (0.0,) * 4, (1.0,) * 4)
    sources = [
        Source(DataSpec(data, intercept=True)),
        Source(DataSpec(data, positive="bad")),
        Source(DataSpec(data, mask=str(room / "mask.npy"))),
        Source(DataSpec(data, also=(str(room / "plain"),))),
        Source(DataSpec(room / "plain", also=(data,))),
        Source(DataSpec(data, transform=transform)),
        Source(DataSpec(data, point=(1.0, 2.0, 3.0, 4.0))),
    ]
    assert {open_source(source).features for source in sources} == {NAMES}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("solve", "data", "--also", "moved", "--out", "both"), 4),
        (("predict", "run", "moved", "scores.npy"), 4),
        (("verify", "moved", "run/certificate.npz", "--intercept"), 6),
    ],
)
def test_another_order_is_refused(room: Path, moved: pandas.DataFrame, words: tuple[str, ...], code: int) -> None:
    moved.to_csv(room / "moved.csv", index=False)
    before = (room / "data" / "zarr.json").read_bytes()
    done = typed(*words, cwd=room)
    (line,) = done.stderr.splitlines()[-1:]
    assert ORDER in line
    assert NAMES[0] in line
    assert done.returncode == code
    assert (room / "data" / "zarr.json").read_bytes() == before


def test_other_names_are_said(room: Path, people: pandas.DataFrame) -> None:
    other = people.rename(columns={"ZIP": "postcode"})
    with pytest.raises(BadInputError, match="without ZIP, with postcode"):
        dfeas.predict(room / "run", other, "kind")


def test_certificates_have_names_and_are_of_them(room: Path) -> None:
    certificate = load(room / "run" / "certificate.npz")
    assert certificate.features == NAMES
    with np.load(room / "run" / "certificate.npz", allow_pickle=False) as held:
        assert int(held["format"]) == 2
        assert tuple(json.loads(str(held["features"]))) == NAMES
    dfeas.solve(room / "plain", intercept=True, out=room / "nameless")
    with np.load(room / "nameless" / "certificate.npz") as held:
        assert int(held["format"]) == 1
        assert "features" not in held
    assert typed("verify", "run", cwd=room).returncode == 0
    replace(certificate, features=NAMES[::-1]).save(room / "other.npz")
    with pytest.raises(CheckFailedError, match=ORDER):
        dfeas.verify_certificate(room / "data", room / "other.npz", intercept=True)


def test_the_same_points_under_other_names_are_other_data_and_without_names_are_not(
    room: Path, people: pandas.DataFrame
) -> None:
    named = dfeas.ingest(people.rename(columns={"ZIP": "postcode"}), room / "new", label_column="kind", block_rows=150)
    dfeas.solve(room / "data", intercept=True, out=room / "own")
    certificate = room / "own" / "certificate.npz"
    assert named.fingerprint == load(certificate).fingerprint
    with pytest.raises(CheckFailedError, match="without ZIP, with postcode"):
        dfeas.verify_certificate(room / "new", certificate, intercept=True)
    assert dfeas.verify_certificate(room / "plain", certificate, intercept=True).verdict == "feasible"


def test_a_soft_margin_keeps_them(room: Path) -> None:
    dfeas.soft_margin(room / "data", C=1.0, out=room / "soft")
    assert load(room / "soft" / "certificate.npz").features == NAMES
    assert json.loads((room / "soft" / "result.json").read_text())["features"] == list(NAMES)


def test_info_shows_names(room: Path) -> None:
    assert "age (years), Größe, cm" in typed("info", "data", cwd=room).stdout
    described = json.loads(typed("info", "data", "--json", cwd=room).stdout)
    assert described["features"] == list(NAMES)
    found = dfeas.info(room / "data")
    assert found.to_json() == {**described, "path": str(room / "data")}
    assert str(found).splitlines()[1:] == typed("info", "data", cwd=room).stdout.splitlines()[1:]
    assert (found.n, found.features, found.classes) == (described["n"], NAMES, tuple(described["classes"]))
    assert "features" not in json.loads(typed("info", "plain", "--json", cwd=room).stdout)


def test_messages_say_the_name(tmp_path: Path, people: pandas.DataFrame) -> None:
    people.loc[11, "Größe, cm"] = np.inf
    for ask in (
        lambda: dfeas.ingest(people, tmp_path / "data", label_column="kind"),
        lambda: dfeas.solve(people, "kind"),
    ):
        with pytest.raises(BadInputError, match="point 11 feature Größe, cm: inf"):
            ask()


def test_names_are_sealed_and_one_for_each_feature(room: Path) -> None:
    meta = room / "data" / "zarr.json"
    values = json.loads(meta.read_text())
    for names in (NAMES[::-1], NAMES[:3], ("a", "a", "b", "c"), (1, 2, 3, 4)):
        values["attributes"]["dfeas"]["features"] = list(names)
        meta.write_text(json.dumps(values))
        with pytest.raises(CorruptDataError):
            opened(room / "data")


@pytest.mark.parametrize("text", ["[1, 2]", '{"a": 1}', "[", '[["a"]]'])
def test_a_certificate_whose_names_are_none_is_damaged(room: Path, text: str) -> None:
    path = room / "run" / "certificate.npz"
    with np.load(path) as held:
        arrays = {**held, "features": np.array(text)}
    np.savez(path, **arrays)
    with pytest.raises(CorruptDataError, match="not a readable certificate"):
        load(path)


def test_frames_whose_columns_share_a_name_are_refused(tmp_path: Path, people: pandas.DataFrame) -> None:
    twice = people.rename(columns={"ZIP": NAMES[0]})
    for frame in (twice, dask.dataframe.from_pandas(twice, npartitions=2)):
        with pytest.raises(BadInputError, match=r"uplicate column names|two columns are called"):
            dfeas.ingest(frame, tmp_path / "data", label_column="kind")
