"""Masks of whole cones: the answers of the same cones in an array of their own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.cones.product import Placing, Product
from dfeas.cones.space import ConeSpace
from dfeas.cones.writer import read_product, writer_of
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Buffers, Cost
from dfeas.data.subsets import SubsetReader, join_datasets
from dfeas.data.writers.dataset import fill, output_place
from dfeas.engine.memory import held_bytes
from dfeas.run.cost import project
from tests.cones.plain import cones_of, problem

CONE: dict[str, Any] = {"l": 9, "q": [2, 5, 5, 3, 4, 4], "s": [2, 4, 4, 3, 3, 3]}
CONES = list(cones_of(CONE))


def written(path: Path, X: Any, block_rows: int) -> None:
    """The cones as a dataset with short blocks."""
    product = Product.from_scs(CONE)
    rows = read_product(X, product)
    placing = Placing(product, block_rows)
    with output_place(path) as place:
        target = writer_of(place, placing, rows.m, rows.dtype, rows.entries)
        fill(target, lambda index: rows.block(placing, index))
        target.finish(())


def kept(mask: np.ndarray) -> tuple[dict[str, Any], np.ndarray]:
    """The cones that a mask keeps, and which of their rows."""
    some = [cone for cone, keeps in zip(CONES, mask, strict=True) if keeps]
    cone: dict[str, Any] = {"l": sum(kind == "l" for kind, _, _ in some)}
    cone |= {name: [size for kind, size, _ in some if kind == name] for name in ("q", "s")}
    rows = [np.full(r.stop - r.start, keeps) for (_, _, r), keeps in zip(CONES, mask, strict=True)]
    return cone, np.concatenate(rows)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("block_rows", [10, 13, 1000])
def test_masked_cones_are_those_of_one_array(block_rows: int, sparse: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(block_rows)
    X = problem(rng, CONE, 12, 0.3)
    X[rng.random(X.shape) < 0.85 * sparse] = 0
    given = sp.csr_array(X) if sparse else X
    written(tmp_path / "data", given, min(block_rows, len(X)))
    for share in (0.1, 0.5, 0.9):
        mask = rng.random(len(CONES)) < share
        mask[rng.integers(len(CONES))] = True
        cone, rows = kept(mask)
        plain = dfeas.from_cone_rows(given[rows], cone)
        options: dict[str, Any] = {"method": "mirror-prox", "max_passes": 3, "eps": 1e-9}
        wanted = dfeas.solve(plain, **options)
        for name, entries in (("cones", mask), ("rows", rows)):
            np.save(tmp_path / f"{name}.npy", entries)
            source = Source(DataSpec(tmp_path / "data", mask=str(tmp_path / f"{name}.npy")), cones=True)
            dataset = open_source(source)
            assert (dataset.rank, str(dataset.cones)) == (plain.rank, str(plain.cones))
            blocks = [dataset.read(index, Buffers(), Cost()) for index in range(dataset.blocks)]
            stored = np.concatenate([b.points if isinstance(b.points, np.ndarray) else b.points.toarray() for b in blocks])
            label = np.concatenate([b.label for b in blocks])
            np.testing.assert_array_equal(stored[label != -1], X[rows])
            assert not stored[label == -1].any()
            assert dataset.numbers is not None
            np.testing.assert_array_equal(dataset.numbers[label != -1], np.flatnonzero(rows))
            for found in (
                dfeas.solve(tmp_path / "data", mask=tmp_path / f"{name}.npy", **options),
                dfeas.solve(dfeas.from_cone_rows(given, CONE), mask=entries, **options),
            ):
                assert found.verdict == wanted.verdict
                assert found.margin_lower == pytest.approx(wanted.margin_lower, rel=1e-9, abs=1e-12)
                assert found.margin_upper == pytest.approx(wanted.margin_upper, rel=1e-9, abs=1e-12)


def test_a_masked_run_is_verified_resumed_and_names_cones_as_they_are_in_the_data(tmp_path: Path) -> None:
    X = problem(np.random.default_rng(1), CONE, 5, 0.4)
    X[CONES[4][2]] = 0  # nothing is inside of this one
    written(tmp_path / "data", X, 13)
    data, where = tmp_path / "data", tmp_path / "mask.npy"
    whole = dfeas.solve(data)
    assert (whole.verdict, "row 4" in whole.message) == ("infeasible", True)
    mask = np.ones(len(CONES), bool)
    mask[[0, 1, 2, 4]] = False
    np.save(where, mask)
    found = dfeas.solve(data, mask=where, out=tmp_path / "run")
    assert (found.verdict, found.proof) == ("feasible", "rigorous")
    assert dfeas.verify_run(tmp_path / "run").margin_lower == found.margin_lower
    proved = dfeas.verify_certificate(data, tmp_path / "run" / "certificate.npz", mask=where)
    assert proved.margin_lower == found.margin_lower
    critical = dfeas.predict(found, dfeas.from_cone_rows(X, CONE)).critical
    rows = {each.row for each in critical if each.row > 4}
    named = int(found.message.split("at row ")[1].rstrip(")"))
    assert named in rows
    for other in (None, "all.npy"):  # a certificate is about the cones that it was made for
        if other:
            np.save(tmp_path / other, np.ones(len(CONES), bool))
        with pytest.raises((dfeas.CorruptDataError, dfeas.CheckFailedError)):
            dfeas.verify_certificate(
                data, tmp_path / "run" / "certificate.npz", **({"mask": tmp_path / other} if other else {})
            )
    # the row of zeros alone, and others behind it
    mask[:] = False
    mask[[4, 7, 12]] = True
    np.save(where, mask)
    with pytest.raises((dfeas.CorruptDataError, dfeas.CheckFailedError)):
        dfeas.verify_run(tmp_path / "run")
    conflict = dfeas.solve(data, mask=where, out=tmp_path / "conflict")
    assert (conflict.verdict, conflict.proof) == ("infeasible", "exact")
    assert "row 4" in conflict.message
    assert dfeas.verify_run(tmp_path / "conflict").proof == "exact"
    mask[:] = True
    mask[[0, 4]] = False
    np.save(where, mask)
    options: dict[str, Any] = {"mask": where, "method": "mirror-prox", "margin_tolerance": 0.3}
    straight = dfeas.solve(data, **options)
    dfeas.solve(data, out=tmp_path / "begun", max_passes=7, **options)
    gone_on = dfeas.resume(tmp_path / "begun", max_passes=100_000)
    assert (gone_on.passes, gone_on.fingerprint) == (straight.passes, straight.fingerprint)
    assert (gone_on.margin_lower, gone_on.margin_upper) == (straight.margin_lower, straight.margin_upper)
    assert straight.passes > 7


def test_workers_and_the_command_line_take_the_same_cones(client: Any, tmp_path: Path) -> None:
    written(tmp_path / "data", problem(np.random.default_rng(2), CONE, 6, 0.2), 13)
    mask = np.arange(len(CONES)) % 3 > 0
    np.save(tmp_path / "mask.npy", mask)
    more: dict[str, Any] = {"mask": tmp_path / "mask.npy", "method": "mirror-prox", "max_passes": 4}
    here, there = dfeas.solve(tmp_path / "data", **more), dfeas.solve(tmp_path / "data", client=client, **more)
    assert (here.margin_lower, here.margin_upper, here.fingerprint) == (
        there.margin_lower,
        there.margin_upper,
        there.fingerprint,
    )
    assert here.n < open_source(Source(DataSpec(tmp_path / "data"), cones=True)).n

    def run(*words: Any) -> Any:
        return CliRunner().invoke(commands, [str(word) for word in words])

    masked = ("--mask", tmp_path / "mask.npy")
    assert run("solve", tmp_path / "data", *masked, "--out", tmp_path / "run").exit_code == 0
    assert run("verify", tmp_path / "run").exit_code == 0
    assert run("verify", tmp_path / "data", tmp_path / "run" / "certificate.npz", *masked).exit_code == 0
    assert run("plan", tmp_path / "data", *masked).exit_code == 0
    assert run("report", tmp_path / "run").exit_code == 0
    raced = run("race", tmp_path / "data", *masked, "--out", tmp_path / "race", "--methods", "mirror-prox,working-set")
    assert raced.exit_code == 0


def test_a_mask_that_cuts_a_cone_is_refused_in_one_line(tmp_path: Path) -> None:
    X = problem(np.random.default_rng(3), CONE, 4, 0.2)
    cones = dfeas.from_cone_rows(X, CONE)
    part = np.ones(len(X), bool)
    part[[13, 14]] = False
    for mask, words in (
        (part, r"cuts the cone q 5 at row 11 of X: it keeps 3 of its 5 rows"),
        (np.ones(len(CONES) + 1, bool), rf"expected {len(CONES)} booleans, one for each cone of X, or {len(X)}"),
        (np.ones(len(CONES)), "type float64"),
        (np.zeros(len(CONES), bool), f"keeps none of the {len(CONES)} cones"),
    ):
        with pytest.raises(dfeas.BadInputError, match=words) as raised:
            dfeas.solve(cones, mask=mask)
        assert "\n" not in str(raised.value)
    written(tmp_path / "data", X, 13)
    np.save(tmp_path / "mask.npy", np.ones(len(CONES), bool))
    with pytest.raises(dfeas.UsageError, match="a dataset of cones"):
        dfeas.solve([tmp_path / "data", tmp_path / "data"], mask=tmp_path / "mask.npy")


@pytest.mark.parametrize("rows", [0, 3 * 2**31])
def test_numbers_of_picked_rows_are_wide_and_counted(tmp_path: Path, rows: int) -> None:
    """Also where there are more rows than 32 bits count; the arrays of all of these are views of one entry."""
    written(tmp_path / "data", problem(np.random.default_rng(0), CONE, 4, 0.4), 12)
    stored = open_source(Source(DataSpec(tmp_path / "data"), cones=True))
    mask = np.arange(len(CONES)) % 3 > 0
    dataset = join_datasets([stored], mask)
    reader, n = dataset.points, rows or dataset.n
    assert isinstance(reader, SubsetReader)

    def wide(array: Any, expected: type) -> Any:
        assert array.dtype == expected
        return np.broadcast_to(array[:1], (n,)) if rows else array

    sides = [(dataset.labels, np.int32), (dataset.stored_norms, np.float64)]
    label, norm = (replace(each, n=n, array=wide(each.array, expected)) for each, expected in sides)
    points = replace(reader, n=n, rows=wide(reader.rows, np.int64))
    dataset = replace(dataset, n=n, points=points, labels=label, stored_norms=norm, numbers=wide(dataset.numbers, np.int64))
    held = n * (8 + 8 + 8 + 4)
    assert held_bytes(dataset) == held
    memory, methods = 10**9 + held + 100 * n, ["mirror-prox"]
    with_all = project(ConeSpace(), dataset, methods, memory, 0.1, threads=1).memory_bytes
    before = replace(dataset, points=stored.points, labels=stored.labels, stored_norms=stored.stored_norms, numbers=None)
    without = project(ConeSpace(), before, methods, memory, 0.1, threads=1).memory_bytes
    assert with_all - without >= held
