"""What all predictions share: the points as those of the run were seen, expansions of kernels, and one read of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.lib import format as npy
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset, stored_rows
from dfeas.data.open import open_source
from dfeas.data.source import source_of
from dfeas.data.storage.files import placed
from dfeas.data.transform import seen_as
from dfeas.data.views import transformed
from dfeas.engine.local import LocalEngine
from dfeas.engine.memory import threads_that_fit
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.geometry.kernel.kernel import Function, Kernel, seen
from dfeas.geometry.kernel.select import scores
from dfeas.linalg.blas import processors
from dfeas.linalg.points import Points, dense, in_type, is_dense
from dfeas.passes.block import against
from dfeas.problem import parse_bytes
from dfeas.verify.certificate import Certificate


def trained_on(values: dict[str, Any], needed: bool, run: str | Path) -> Dataset | None:
    """The data that the run of a ``result.json`` was on; None when it is gone and not ``needed``."""
    if values["data"] is None:
        if needed:
            raise BadInputError(f"{run}: the data was in memory, and the points of the expansion went with it")
        return None
    try:
        found = open_source(source_of(values["data"], cones=True))
    except (BadInputError, CorruptDataError):
        if needed:
            raise
        return None
    if found.cones is not None:
        raise BadInputError(f"{run}: a run on cones; its direction is for cones, not for points")
    if (found.stored or found).header is not None and found.fingerprint != values["fingerprint"]:
        if needed:
            raise CorruptDataError(f"{found.where}: no longer the data of the run {run} (fingerprints differ)")
        return None
    return found


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


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Expansions:
    """Separators y = sum_i amount_i a_i of one kernel."""

    kernel: Kernel
    points: Points  # (s, m) of all of them
    amounts: Floats  # (s, k) of unit vectors without signs

    @classmethod
    def of(
        cls,
        trained: Dataset,
        certificates: Sequence[Certificate],
        codes: Sequence[int | None],
        function: Function | None = None,
    ) -> Expansions:
        """Those of certificates on data, each about the class of a code; None: labels are as the data is seen."""
        index = np.unique(np.concatenate([certificate.support for certificate in certificates]))
        points, labels = stored_rows(trained, index)
        amounts = np.zeros((len(index), len(certificates)))
        for column, (certificate, code) in enumerate(zip(certificates, codes, strict=True)):
            rows = np.searchsorted(index, certificate.support)
            signs = trained.signs(labels) if code is None else against(labels, code)
            amounts[rows, column] = certificate.weights * signs[rows]
        return cls(Kernel.from_text(certificates[0].kernel, function), seen(points), amounts)

    def scores(self, points: Points) -> Floats:
        """Scores (b, k) of points (b, m), which may be sparse or not, whatever those of the expansion are."""
        others = seen(points)
        if is_dense(others) != is_dense(self.points):
            others = scipy.sparse.csr_array(others) if is_dense(others) else dense(others)
        return scores(self.kernel, in_type(self.points, np.float64), self.amounts, others, False)
