"""Integers and float16 stay as they are on storage, and mean the same as in float32."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.data.arrays import joint_dtype
from dfeas.data.generate.points import Instance, generate
from dfeas.data.storage.readers import Buffers, Cost
from dfeas.errors import UsageError
from dfeas.kernels.kernel import NormalisedKernel, as_floating, scores
from tests.data.making import opened

LOW = ("int8", "uint16", "float16")


@pytest.mark.parametrize("dtype", LOW)
def test_entries_are_kept_and_the_answer_is_that_of_float32(tmp_path: Path, dtype: str) -> None:
    header = generate(Instance("halfspace", 8, 3000, dtype=dtype, block_rows=512), tmp_path / "low")
    low = opened(tmp_path / "low")
    X = np.concatenate([low.points.read(i, Buffers()) for i in range(low.blocks)])
    labels = np.concatenate([low.labels.read(i, Buffers()) for i in range(low.blocks)])
    assert header.dtype == low.dtype.name == X.dtype.name == dtype
    assert low.bytes == X.nbytes
    np.savez(tmp_path / "wide.npz", X=X.astype(np.float32), y=labels)
    dfeas.ingest(tmp_path / "wide.npz", tmp_path / "wide", block_rows=512)
    np.savez(tmp_path / "low.npz", X=X, y=labels)
    again = dfeas.ingest(tmp_path / "low.npz", tmp_path / "again", block_rows=512)
    assert (again.fingerprint, again.dtype) == (header.fingerprint, dtype)
    found, wide = dfeas.solve(tmp_path / "low"), dfeas.solve(tmp_path / "wide")
    assert (found.verdict, found.proof) == ("feasible", "rigorous")
    assert (found.margin_lower, found.passes) == (wide.margin_lower, wide.passes)
    assert np.array_equal(found.separator, wide.separator)
    cost = Cost()
    list(low.read_blocks(range(low.blocks), cost))
    assert cost.bytes_read == X.nbytes


@pytest.mark.parametrize("dtype", ["bool", *LOW])
def test_points_in_memory_that_conflict_are_proved_exactly(dtype: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2 if dtype == "bool" else 100, (300, 4)).astype(dtype)
    found = dfeas.solve(X, rng.integers(0, 2, 300))
    assert (found.verdict, found.proof) == ("infeasible", "exact")


@pytest.mark.parametrize(("dtype", "extreme"), [("int8", -128), ("int16", -32768), ("uint16", 65535), ("float16", 65504)])
def test_no_product_wraps_around_or_overflows(dtype: str, extreme: int) -> None:
    X = np.full((40, 500), extreme, dtype)
    X[np.arange(40), np.arange(40)] = 0
    labels = np.resize([0, 1], 40)
    found = dfeas.solve(X, labels, intercept=False)
    assert (found.verdict, found.proof) == ("feasible", "rigorous")
    A = X.astype(float) * np.where(labels, 1, -1)[:, None]
    A /= np.linalg.norm(A, axis=1)[:, None]
    assert (A @ found.separator).min() == pytest.approx(found.margin_lower, rel=1e-9)


def test_a_kernel_of_python_sees_floats() -> None:
    block = next(opened(np.full((3, 2), 200, np.uint8), [0, 1, 1]).read_blocks(range(1), Cost()))
    kernel = NormalisedKernel("callable", function=lambda left, right: left @ right.T)
    assert scores(kernel, np.ones((1, 2)), np.ones(1), as_floating(block.points), False) == pytest.approx(1.0)


def test_a_norm_is_that_of_all_entries(tmp_path: Path) -> None:
    X = np.random.default_rng(0).integers(0, 256, (3000, 784)).astype(np.uint8)  # converted in several pieces
    block = next(opened(X, np.resize([0, 1], 3000)).read_blocks(range(1), Cost()))
    assert np.allclose(block.norm, np.linalg.norm(X.astype(float), axis=1), rtol=1e-14)
    assert np.allclose(block.tile(slice(5, 9), True), X[5:9])


def test_columns_of_several_types_meet_in_one_that_holds_them() -> None:
    def joint(*names: str) -> Any:
        return joint_dtype([np.dtype(name) for name in names]).name

    assert joint("int8", "int8") == "int8"
    assert joint("int8", "uint8") == "int16"
    assert joint("int8", "uint16") == "float32"
    assert joint("float16", "int16") == "float32"
    assert joint("int8", "float64") == "float64"


def test_an_exact_margin_is_not_promised_in_integers() -> None:
    with pytest.raises(UsageError, match="exact margin"):
        Instance("planted", 4, 100, dtype="int8")
