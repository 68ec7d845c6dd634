"""Masks of whole cones: the answers of the same cones in an array of their own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dfeas
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Buffers, Cost
from tests.cones.making import keep, write
from tests.cones.plain import cones_of, problem

WIDE: dict[str, Any] = {"l": 9, "q": [2, 5, 5, 3, 4, 4], "s": [2, 4, 4, 3, 3, 3]}
CONES = list(cones_of(WIDE))


@pytest.mark.parametrize(("block_rows", "sparse"), [(10, True), (13, False)])
def test_masked_cones_are_those_of_one_array(block_rows: int, sparse: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(block_rows)
    X = problem(rng, WIDE, 12, 0.3)
    X[rng.random(X.shape) < 0.85 * sparse] = 0
    given = sp.csr_array(X) if sparse else X
    write(tmp_path / "data", given, WIDE, min(block_rows, len(X)))
    for share in (0.1, 0.6):
        mask = rng.random(len(CONES)) < share
        mask[rng.integers(len(CONES))] = True
        cone, rows = keep(WIDE, mask)
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
            np.testing.assert_array_equal(dataset.numbers[label != -1], np.flatnonzero(rows))
            for found in (
                dfeas.solve(tmp_path / "data", mask=tmp_path / f"{name}.npy", **options),
                dfeas.solve(dfeas.from_cone_rows(given, WIDE), mask=entries, **options),
            ):
                assert found.verdict == wanted.verdict
                assert found.margin_lower == pytest.approx(wanted.margin_lower, rel=1e-9, abs=1e-12)
                assert found.margin_upper == pytest.approx(wanted.margin_upper, rel=1e-9, abs=1e-12)


def test_a_masked_run_is_verified_and_names_cones_as_they_are_in_the_data(tmp_path: Path) -> None:
    X = problem(np.random.default_rng(1), WIDE, 5, 0.4)
    X[CONES[4][2]] = 0  # nothing is inside of this one
    write(tmp_path / "data", X, WIDE, 13)
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
    critical = dfeas.predict(found, dfeas.from_cone_rows(X, WIDE)).critical
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
