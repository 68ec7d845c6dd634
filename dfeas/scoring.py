"""What all predictions share: the points as those of the run were seen, one read of them, and a file for what came out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from dfeas.blas import processors
from dfeas.certificate import Certificate
from dfeas.engine import LocalEngine
from dfeas.errors import BadInputError, UsageError
from dfeas.memory import parse_bytes, threads_that_fit
from dfeas.store import Dataset, transformed
from dfeas.store.placing import placed
from dfeas.store.transform import seen_as


def as_in_run(dataset: Dataset, certificate: Certificate, m: int, run: str | Path) -> Dataset:
    """Points as those of the run were seen, with the numbers of the run.

    Raises BadInputError for points of other than m features, UsageError where they cannot be seen so.
    """
    if dataset.m != m:
        raise BadInputError(f"{dataset.where}: points of {dataset.m} features, the run {run} had {m}")
    transform = seen_as(certificate.view)[1]
    if transform is None or not transform.features:
        return dataset
    if transform.center and dataset.entries is not None:
        raise UsageError(f"{dataset.where}: sparse points cannot be centred as those of the run were; ingest them with --dense")
    return transformed(dataset, replace(transform, points=dataset.n))


def read_once(
    dataset: Dataset, scored: Callable[..., tuple[np.ndarray, ...]], direction: Any, memory: str | int, out: str | Path | None
) -> list[np.ndarray]:
    """What ``scored`` gives of all blocks, arrays in the order of the points; the first one is written to ``out``, a .npy file.

    The last but one are scores. Raises BadInputError when a score is not finite.
    """
    with closing(LocalEngine(dataset, threads_that_fit(dataset, parse_bytes(memory), processors()))) as engine:
        parts = engine.map(scored, direction)
    found = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
    wrong = ~np.isfinite(found[-2])
    if wrong.any():
        raise BadInputError(f"{dataset.where}: point {int(wrong.argmax())} has entries that are not finite")
    if out is not None:
        with placed(Path(out)) as file:
            npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(found[0]))
            file.write(found[0].data)  # np.save does not say why it could not
    return found
