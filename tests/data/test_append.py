"""Appending: the same bits as one ingest of all, whenever it is cut off; and what is left of a run then."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.layout import MARKER
from dfeas.data.storage.scratch import claim, release
from dfeas.data.writers.sparse import SparseWriter
from dfeas.errors import BadInputError, CheckFailedError, CorruptDataError, DfeasError, UsageError
from dfeas.verify.certificate import load


def pieces(tmp_path: Path, n: int = 1000, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """all.npz, and old.npz and new.npz that it is made of; separable with an intercept."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, classes, n)
    X = (4 * np.eye(classes, 5)[label] + rng.uniform(-1, 1, (n, 5))).astype(np.float32)
    label[:classes] = np.arange(classes)
    X[:classes] = 4 * np.eye(classes, 5)
    for name, rows in (("all", slice(None)), ("old", slice(0, 700)), ("new", slice(700, n))):
        np.savez(tmp_path / f"{name}.npz", X=X[rows], y=label[rows])
    return X, label


def content(path: Path) -> dict[str, bytes]:
    """Every file of a dataset; metadata as values."""
    files = {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}
    return {k: json.dumps(json.loads(v), sort_keys=True).encode() if k.endswith(".json") else v for k, v in files.items()}


@pytest.mark.parametrize(("classes", "chunk"), [(2, 0), (4, 0), (2, 300), (4, 10_000)])
@pytest.mark.parametrize("rows", [100, 128, 700])
def test_an_appended_dataset_is_one_ingest_of_all(
    tmp_path: Path, rows: int, classes: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces(tmp_path, classes=classes)
    monkeypatch.setattr(SparseWriter, "chunk_entries", chunk)
    whole = dfeas.ingest(tmp_path / "all.npz", tmp_path / "whole", block_rows=rows, sparse=chunk > 0)
    assert (whole.entries is not None) == (chunk > 0)
    dfeas.ingest(tmp_path / "old.npz", tmp_path / "data", block_rows=rows, sparse=chunk > 0)
    assert dfeas.append(tmp_path / "data", tmp_path / "new.npz") == whole
    assert content(tmp_path / "data") == content(tmp_path / "whole")
    assert dfeas.append(tmp_path / "data") == whole


STORED: list[dict[str, Any]] = [{}, {"sparse": True}, {"shard": 3 * (128 * 5 * 4 + 4)}, {"sparse": True, "shard": 10**8}]


@pytest.mark.parametrize("stored", STORED, ids=["dense", "sparse", "shards", "sparse shards"])
def test_an_append_that_is_cut_off_leaves_the_old_or_can_be_finished(
    tmp_path: Path, stored: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces(tmp_path)
    monkeypatch.setattr(SparseWriter, "chunk_entries", 1500)
    whole = dfeas.ingest(tmp_path / "all.npz", tmp_path / "whole", block_rows=128, **stored)
    old = dfeas.ingest(tmp_path / "old.npz", tmp_path / "old", block_rows=128, **stored)
    seen = {"old": 0, "cut off": 0}
    step, done = 0, False
    while not done:  # killed before one of the moves
        data = tmp_path / f"data{step}"
        shutil.copytree(tmp_path / "old", data)
        left = iter(range(step))
        with monkeypatch.context() as patch:
            patch.setattr("dfeas.data.writers.append.move", lambda *files, left=left: _move_or_die(*files, left))
            patch.setattr("dfeas.data.writers.append.shutil.rmtree", lambda *_, **__: None)  # nor would a kill
            try:
                dfeas.append(data, tmp_path / "new.npz")
                done = True
            except KeyboardInterrupt:
                (data / "dfeas.lock").touch()
        if not (data / MARKER).exists():
            with pytest.raises(CorruptDataError, match="an append was interrupted at its end"):
                open_source(Source(DataSpec(data)))
            with pytest.raises(UsageError, match="exists already"):
                dfeas.ingest(tmp_path / "all.npz", data)
            seen["cut off"] += 1
            assert dfeas.append(data) == whole
        else:
            assert open_source(Source(DataSpec(data))).header == (whole if done else old)
            seen["old"] += not done
            if dfeas.append(data) != whole:
                dfeas.append(data, tmp_path / "new.npz")
        assert content(data) == content(tmp_path / "whole")
        step += 1 if step < 2 else 4 if "sparse" in stored else 2
    assert seen["old"] > 1
    assert seen["cut off"] > 4


def _move_or_die(file: Path, place: Path, left: Any) -> None:
    if next(left, None) is None:
        raise KeyboardInterrupt
    file.replace(place)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X[:, :4], y), "points of 4 features, .*data has 5"),
        (lambda X, y: (X, np.where(y == 1, 7, y)), "class 7 is not one of the dataset's .0, 1."),
        (lambda X, y: (X.astype(float) + 1e-12, y), "point 0 feature 0 of the new points: .* is not exact in float32"),
        (lambda X, y: (np.where(np.arange(5) == 2, np.nan, X), y), "not finite"),
        (lambda X, y: (X, y[1:]), "expected 300 labels"),
        (lambda X, y: (X, np.where(np.arange(300) == 5, np.nan, y)), "not a finite number"),
    ],
)
def test_what_does_not_fit_leaves_the_dataset_as_it_was(tmp_path: Path, change: Any, words: str) -> None:
    X, label = pieces(tmp_path)
    dfeas.ingest(tmp_path / "old.npz", tmp_path / "data", block_rows=128)
    before = content(tmp_path / "data")
    X, label = change(X[700:], label[700:])
    np.savez(tmp_path / "new.npz", X=X, y=label)
    with pytest.raises(DfeasError, match=words) as caught:
        dfeas.append(tmp_path / "data", tmp_path / "new.npz")
    assert caught.value.exit_code == 4
    assert content(tmp_path / "data") == before


def test_a_table_with_other_columns_is_refused_before_it_is_read(tmp_path: Path) -> None:
    for name, column in (("old", "b"), ("new", "z")):
        (tmp_path / f"{name}.csv").write_text(f"a,{column},y\n1,2,0\n2,1,1\n")
    with (tmp_path / "new.csv").open("a") as file:
        file.write("3,no number,1\n")  # which reading would come to
    dfeas.ingest(tmp_path / "old.csv", tmp_path / "data", label_column="y")
    with pytest.raises(BadInputError, match=r"the new points: other features \(without b, with z\) than .*data; give"):
        dfeas.append(tmp_path / "data", tmp_path / "new.csv", label_column="y")
    assert not (tmp_path / "data" / "append.part").exists()


def test_svmlight_without_the_last_features_is_appended(tmp_path: Path) -> None:
    (tmp_path / "old.svm").write_text("0 1:1 3:2\n1 2:1\n")
    (tmp_path / "new.svm").write_text("1 1:2\n0 2:3\n")
    dfeas.ingest(tmp_path / "old.svm", tmp_path / "data")
    header = dfeas.append(tmp_path / "data", tmp_path / "new.svm")
    assert (header.n, header.m, header.zero) == (4, 3, 0)
    (tmp_path / "wide.svm").write_text("1 4:2\n")
    with pytest.raises(BadInputError, match="line 1: index 4 is beyond the 3 features"):
        dfeas.append(tmp_path / "data", tmp_path / "wide.svm")


def test_labels_of_a_table_lie_beside_it_and_its_numbers_are_rounded(tmp_path: Path) -> None:
    X, label = pieces(tmp_path, classes=3)
    dfeas.ingest(tmp_path / "old.npz", tmp_path / "data", block_rows=128)
    whole = dfeas.ingest(X, tmp_path / "whole", labels=label, block_rows=128)
    (tmp_path / "new.csv").write_text("a,b,c,d,e\n" + "\n".join(",".join(map(repr, x.astype(float).tolist())) for x in X[700:]))
    np.save(tmp_path / "y.npy", label[700:])
    words = ["append", tmp_path / "data", tmp_path / "new.csv", "--labels", tmp_path / "y.npy", "--dtype", "float32"]
    done = CliRunner().invoke(commands, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    assert open_source(Source(DataSpec(tmp_path / "data"))).header == whole
    with pytest.raises(BadInputError, match="labels of type complex128 cannot be used"):
        dfeas.append(tmp_path / "data", X[:9], labels=label[:9] * 1j)


def test_one_class_alone_and_a_second_writer(tmp_path: Path) -> None:
    X, label = pieces(tmp_path)
    dfeas.ingest(tmp_path / "old.npz", tmp_path / "data", positive="1", block_rows=128)
    lines = [",".join(map(repr, [*x.astype(float).tolist(), int(y)])) for x, y in zip(X[700:], label[700:], strict=True) if y]
    (tmp_path / "ones.csv").write_text("\n".join(["a,b,c,d,e,y", *lines]) + "\n")
    header = dfeas.append(tmp_path / "data", tmp_path / "ones.csv", label_column="y")
    assert header.positive == int(label.sum())
    with pytest.raises(BadInputError, match="not a dfeas dataset"):
        dfeas.append(tmp_path, tmp_path / "new.npz")
    (tmp_path / "data" / MARKER).rename(tmp_path / "marker")
    lock = claim(tmp_path / "other", MARKER)
    with pytest.raises(UsageError, match="another process is writing it"):
        dfeas.append(tmp_path / "other", tmp_path / "new.npz")
    release(tmp_path / "other", lock)


@pytest.mark.parametrize("rows", [100, 128])
def test_a_verdict_is_rechecked_on_new_points_alone(tmp_path: Path, rows: int) -> None:
    X, label = pieces(tmp_path)
    data = tmp_path / "data"
    dfeas.ingest(tmp_path / "old.npz", data, block_rows=rows)
    old = dfeas.solve(data, intercept=True, out=tmp_path / "run")
    assert dfeas.recheck(tmp_path / "run", data).new_points == 0
    dfeas.append(data, tmp_path / "new.npz")
    # blocks of old points are not looked at
    (data / "X" / "c.1.0").unlink()
    (data / "X" / "c.1.0").symlink_to(tmp_path / "data" / "X" / "c.2.0")
    found = dfeas.recheck(tmp_path / "run", data, out=tmp_path / "again")
    assert (found.holds, found.new_points) == (True, 300)
    assert found.reads == pytest.approx((1000 - 700 // rows * rows) / 1000)
    shutil.rmtree(data)
    dfeas.ingest(tmp_path / "all.npz", data, block_rows=rows)
    proved = dfeas.verify_run(tmp_path / "again")
    assert proved.verdict == "feasible"
    assert proved.margin_lower <= old.margin_lower
    # a point on the wrong side
    np.savez(tmp_path / "wrong.npz", X=-4 * np.eye(2, 5, dtype=np.float32)[label[:2]] - X[:2], y=label[:2])
    dfeas.append(data, tmp_path / "wrong.npz")
    certificate = load(tmp_path / "again" / "certificate.npz")
    weighs = {"support": np.array([0]), "weights": np.ones(1)}
    kinds: list[dict[str, Any]] = [{"kind": "gordan", **weighs}, {"kind": "hyperplane"}]
    changes: list[dict[str, Any]] = [*kinds, {"y": certificate.y[:3]}, {"y": np.nan * certificate.y}]
    for forged in changes:
        replace(certificate, **forged).save(tmp_path / "again" / "certificate.npz")
        with pytest.raises(CheckFailedError, match=r"again: .*; solve again"):
            dfeas.recheck(tmp_path / "again", data)
    certificate.save(tmp_path / "again" / "certificate.npz")
    refuted = dfeas.recheck(tmp_path / "again", data, out=tmp_path / "none")
    assert refuted.refuted[""]
    assert set(refuted.refuted[""]) <= {1000, 1001}
    assert not (tmp_path / "none").exists()


def test_a_conflict_holds_for_more_points_and_changed_old_data_is_noticed(tmp_path: Path) -> None:
    X, label = pieces(tmp_path)
    np.savez(tmp_path / "old.npz", X=np.vstack([X[:699], X[1]]), y=np.append(label[:699], 1 - label[1]))
    data = tmp_path / "data"
    dfeas.ingest(tmp_path / "old.npz", data, block_rows=128)
    assert dfeas.solve(data, out=tmp_path / "run").verdict == "infeasible"
    dfeas.append(data, tmp_path / "new.npz")
    found = dfeas.recheck(tmp_path / "run", data, out=tmp_path / "again")
    assert (found.holds, found.reads) == (True, 0)
    assert dfeas.verify_run(tmp_path / "again").proof == "exact"
    changed = X.copy()
    changed[650, 2] += 1
    np.savez(tmp_path / "all.npz", X=changed, y=label)
    dfeas.ingest(tmp_path / "all.npz", tmp_path / "other", block_rows=128)
    with pytest.raises(CorruptDataError, match="its first 700 points are not those of the run"):
        dfeas.recheck(tmp_path / "run", tmp_path / "other")


def test_all_classes_are_rechecked_on_one_read(tmp_path: Path) -> None:
    pieces(tmp_path, classes=4)
    data, run = tmp_path / "data", tmp_path / "run"
    dfeas.ingest(tmp_path / "old.npz", data, block_rows=128)
    assert dfeas.solve(data, one_vs_rest=True, intercept=True, out=run).success

    def dfeas_(*words: Any) -> Any:
        return CliRunner().invoke(commands, [str(word) for word in words])

    assert dfeas_("append", data, tmp_path / "new.npz").exit_code == 0
    done = dfeas_("recheck", run, data, "--out", tmp_path / "again")
    assert done.exit_code == 0, done.output
    assert "3: feasible holds" in done.output
    assert dfeas_("verify", tmp_path / "again").exit_code == 0
    swapped = shutil.copytree(run, tmp_path / "swapped")
    shutil.copy(run / "class-0" / "certificate.npz", swapped / "class-1")
    with pytest.raises(CheckFailedError, match="class-1: the certificate is about another class"):
        dfeas.recheck(swapped, data)
    X = np.zeros((1, 5), np.float32)
    X[0, :2] = 4, 4
    np.savez(tmp_path / "odd.npz", X=X, y=[2])
    dfeas_("append", data, tmp_path / "odd.npz")
    failed = dfeas_("recheck", run, data)
    assert failed.exit_code == 3
    assert "class 2: no longer separated: point 1000 on the wrong side" in failed.output
