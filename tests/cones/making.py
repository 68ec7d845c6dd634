"""What tests of cones share: some cones, datasets of short chunks, the cones that a mask keeps."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dfeas.cones.product import Placing, Product
from dfeas.cones.writer import read_product, writer_of
from dfeas.data.writers.dataset import fill, output_place
from tests.cones.plain import cones_of, problem, spectrum, unit

CONE: dict[str, Any] = {"l": 3, "q": [2, 5, 5, 3], "s": [2, 4, 4, 3]}


def write(path: Path, X: Any, cone: dict[str, Any], chunk_rows: int, shard: int = 0) -> None:
    """The cones as a dataset with short chunks, of which so many bytes lie in a file."""
    product = Product.from_scs(cone)
    rows = read_product(X, product)
    placing = Placing(product, chunk_rows)
    with output_place(path) as place:
        target = writer_of(place, placing, rows.m, rows.dtype, rows.entries, shard)
        fill(target, lambda index: rows.block(placing, index))
        target.finish(())


def keep(cone: dict[str, Any], mask: np.ndarray) -> tuple[dict[str, Any], np.ndarray]:
    """The cones that a mask keeps, and which of their rows."""
    every = list(cones_of(cone))
    some = [each for each, keeps in zip(every, mask, strict=True) if keeps]
    kept: dict[str, Any] = {"l": sum(kind == "l" for kind, _, _ in some)}
    kept |= {name: [size for kind, size, _ in some if kind == name] for name in ("q", "s")}
    return kept, np.repeat(mask, [rows.stop - rows.start for _, _, rows in every])


def least(s: np.ndarray, cone: dict[str, Any]) -> float:
    """The least eigenvalue of an element, plainly."""
    return min(float(spectrum(kind, size, s[rows])[0].min()) for kind, size, rows in cones_of(cone))


def sparse_problem(rng: np.random.Generator, cone: dict[str, Any], m: int, margin: float | None, share: float = 0.15) -> Any:
    """Rows of which few entries are stored; with a planted y = e_0 where there is a margin."""
    X = problem(rng, cone, m, None)
    X *= rng.random(X.shape) < share
    if margin is not None:
        X[:, 0] = margin * np.concatenate([unit(kind, size) for kind, size, _ in cones_of(cone)])
    return sp.csr_array(X)
