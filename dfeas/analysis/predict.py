"""``dfeas.predict``: what a finished run says of points or cones, in one read of them.

Points are seen as those of the run were. A run of two classes scores them by its direction, in a kernel's space by an
expansion; of a one-vs-rest run each point gets the class with the largest score; of cones it is the least eigenvalue.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import seen_as, source_of
from dfeas.data.storage.files import placed
from dfeas.data.storage.places import require_apart
from dfeas.data.storage.readers import Cost, Stop, unless_stopped
from dfeas.data.views import transformed
from dfeas.engine.local import local_engine
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.geometry.cones.space import ConePrediction
from dfeas.geometry.kernel.kernel import Function
from dfeas.geometry.points import ClassPrediction, Prediction
from dfeas.geometry.protocol import Geometry, Rule, Trained
from dfeas.geometry.registry import geometry_again
from dfeas.linalg.points import Floats
from dfeas.methods.vector import Expansion
from dfeas.problem import DEFAULT_MEMORY, View, parse_bytes
from dfeas.run.results import CERTIFICATE, classes_of, load_result
from dfeas.run.session import open_data
from dfeas.verify.certificate import Certificate, direction, load


def predict(
    run: str | Path,
    X: Any,
    labels: Any = None,
    *,
    out: str | Path | None = None,
    positive: str | None = None,
    kernel: Function | None = None,
    memory: str | int = DEFAULT_MEMORY,
) -> Prediction | ClassPrediction | ConePrediction:
    """Score points by the best direction of a finished run, in one read; of a one-vs-rest run by those of all classes.

    Of cones it gives the least eigenvalue of each, over its norm, as a ``ConePrediction``.

    Parameters
    ----------
    run : folder of a run of ``dfeas.solve`` or ``dfeas.soft_margin`` that left a direction. With a kernel its data is read
        again for the points of the expansion.
    X, labels, positive : what ``dfeas.solve`` takes; labels are compared with the scores.
    out : a .npy file for the scores (n,), float64; of a one-vs-rest run for the classes (n,), int16.
    kernel : the function of Python that was the kernel, if one was.

    Raises
    ------
    BadInputError : the run has no direction, or the points have other features or classes, or are not finite.
    """
    if out is not None:
        require_apart(out, X)
    folders = classes_of(Path(run))
    many = folders is not None
    if many and positive is not None:
        raise UsageError(f"{run}: a run of all classes; leave out positive")
    finished = _Finished.of(Path(run), folders)
    dataset = open_data(X, labels, View(positive=positive, one_vs_rest=many), cones=not many)[1]
    geometry = geometry_again(dataset, finished.certificates[0].kernel, kernel)
    rule = geometry.rule(finished.trained(geometry), dataset)
    answer: Prediction | ClassPrediction | ConePrediction
    answer = rule.prediction(read_once(finished.see(dataset, geometry), rule, memory, out), dataset)
    return answer


@dataclass(frozen=True)
class _Finished:
    """A run that left a direction, or one for each class."""

    run: Path
    values: dict[str, Any]  # the keys of its result
    certificates: tuple[Certificate, ...]
    files: tuple[Path, ...]  # of these
    classes: tuple[str, ...] | None  # of a one-vs-rest run

    @classmethod
    def of(cls, run: Path, folders: dict[str, Path] | None) -> _Finished:
        """One run, or those of classes. Raises BadInputError when there is no direction, or that of a hull."""
        values = load_result(run, soft=True)
        files = tuple(folder / CERTIFICATE for folder in ([run] if folders is None else folders.values()))
        if folders is not None:
            certificates = {name: load(file) for name, file in zip(folders, files, strict=True) if file.exists()}
            separators = {name: each for name, each in certificates.items() if each.kind == "separator"}
            without = [name for name in folders if name not in separators]
            if without:
                shown = ", ".join(without[:6]) + (", ..." if len(without) > 6 else "")
                what = f"{len(without)} of {len(folders)} classes have no separator ({shown})"
                raise BadInputError(f"{run}: {what}; each class needs one to predict")
            return cls(run, values, tuple(separators.values()), files, tuple(folders))
        certificate = load(files[0])
        if certificate.kind == "gordan":
            raise BadInputError(f"{run}: the run ended {values['verdict']} and left no direction that could predict")
        if (values["data"] or {}).get("point") is not None:
            raise BadInputError(
                f"{run}: a run of a hull: its hyperplane goes through the point that was asked about, there are no classes"
            )
        return cls(run, values, (certificate,), files, None)

    def trained(self, geometry: Geometry) -> Trained:
        """Its directions. Raises CorruptDataError when one has other entries than the run had features."""
        m, intercept = int(self.values["m"]), bool(self.values["intercept"])
        directions: list[Floats | Expansion] = []
        for file, each in zip(self.files, self.certificates, strict=True):
            expansion = Expansion(each.support, each.weights) if geometry.expands else None
            directions.append(direction(file, each, m + intercept) if expansion is None else expansion)
        data = self._data(needed=geometry.expands)
        return Trained(self.run, intercept, self.certificates[0].view, tuple(directions), self.classes, data)

    def _data(self, *, needed: bool) -> Dataset | None:
        """What the run was on; None when it is gone and not ``needed``."""
        if self.values["data"] is None:
            if needed:
                raise BadInputError(f"{self.run}: the data was in memory, and the points of the expansion went with it")
            return None
        try:
            dataset = open_source(source_of(self.values["data"], cones=True))
        except (BadInputError, CorruptDataError):
            if needed:
                raise
            return None
        if (dataset.stored or dataset).header is not None and dataset.fingerprint != self.values["fingerprint"]:
            if needed:
                raise CorruptDataError(f"{dataset.where}: no longer the data of the run {self.run} (fingerprints differ)")
            return None
        return dataset

    def see(self, dataset: Dataset, geometry: Geometry) -> Dataset:
        """Points as those of the run were seen, with the numbers of the run.

        Raises BadInputError for points of other features, UsageError where they cannot be seen so.
        """
        m = int(self.values["m"])
        if dataset.m != m:
            raise BadInputError(f"{dataset.where}: {geometry.scored} of {dataset.m} features, the run {self.run} had {m}")
        transform = seen_as(self.certificates[0].view)[1]
        if transform is None or not transform.features:
            return dataset
        if transform.center and dataset.entries is not None:
            raise UsageError(
                f"{dataset.where}: sparse points cannot be centred as those of the run were; ingest them with --dense"
            )
        return transformed(dataset, replace(transform, points=dataset.n))


def read_once(dataset: Dataset, rule: Rule, memory: str | int, out: str | Path | None) -> list[NDArray[Any]]:
    """What a rule gives of all blocks, in the order of the points; the first array is written to ``out``, a .npy file.

    Raises BadInputError when a score is not finite.
    """
    with local_engine(dataset, parse_bytes(memory)) as engine:
        parts = engine.map(_score_range, rule)
    arrays = [np.concatenate(each) for each in zip(*parts, strict=True)]
    wrong = ~np.isfinite(arrays[-2])
    if wrong.any():
        raise BadInputError(f"{dataset.where}: point {int(wrong.argmax())} has entries that are not finite")
    if out is not None:
        with placed(Path(out)) as file:
            npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(arrays[0]))
            file.write(arrays[0].data)  # np.save does not say why it could not
    return arrays


def _score_range(dataset: Dataset, first: int, stop: int, rule: Rule, stopped: Stop | None = None) -> tuple[NDArray[Any], ...]:
    blocks = unless_stopped(dataset.read_blocks(range(first, stop), Cost()), stopped)
    return tuple(np.concatenate(each) for each in zip(*(rule.score(block) for block in blocks), strict=True))
