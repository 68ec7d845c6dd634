"""``dfeas.predict``: what a finished run says of points or cones, in one read of them.

Points are seen as those of the run were. A run of two classes scores them by its direction, in a kernel's space by an
expansion; of a one-vs-rest run each point gets the class with the largest score; of cones it is the least eigenvalue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.analysis.scoring import Expansions, Largest, LeastEigenvalue, Sign, read_once
from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import seen_as, source_of
from dfeas.data.storage.layout import kind_of, rows_of
from dfeas.data.storage.places import require_apart
from dfeas.data.views import transformed
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.geometry.kernel.kernel import Function
from dfeas.linalg.points import Floats
from dfeas.problem import DEFAULT_MEMORY, View
from dfeas.run.results import CERTIFICATE, classes_of, load_result
from dfeas.run.session import open_data
from dfeas.verify.certificate import Certificate, direction, load

SHOWN = 5
"""Critical cones that are named."""


@dataclass(frozen=True)
class Prediction:
    """Scores, and how they compare with labels, where there are any."""

    score: Floats  # (n,) y'x_j, of unit length in a kernel's space; above 0 is the positive class
    classes: tuple[str, str]  # negative, positive, of the run's data
    accuracy: float | None  # share of points whose class is that of their label
    confusion: list[list[int]] | None  # points: a row for each label, a column for each class that was predicted

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values without the scores."""
        positive = int((self.score > 0).sum())
        return {
            "points": len(self.score),
            "predicted": dict(zip(self.classes, (len(self.score) - positive, positive), strict=True)),
            "accuracy": self.accuracy,
            "confusion": self.confusion,
        }


@dataclass(frozen=True)
class ClassPrediction:
    """Classes, and how they compare with labels, where there are any."""

    predicted: NDArray[np.int16]  # (n,) positions in ``classes``
    score: Floats  # (n,) y'x_j of that class, |y| = 1
    classes: tuple[str, ...]  # of the run
    labels: tuple[str, ...]  # of the data; empty without labels
    accuracy: float | None  # share of points whose class is that of their label
    confusion: list[list[int]] | None  # points: a row for each label of the data, a column for each class of the run

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values without those of points."""
        counts = np.bincount(self.predicted, minlength=len(self.classes)).tolist()
        return {
            "points": len(self.predicted),
            "classes": list(self.classes),
            "labels": list(self.labels),
            "predicted": dict(zip(self.classes, counts, strict=True)),
            "accuracy": self.accuracy,
            "confusion": self.confusion,
        }


@dataclass(frozen=True, slots=True)
class CriticalCone:
    """A cone whose least eigenvalue is among the lowest."""

    least: float
    row: int  # its first row, counted without padding: as in the X that was given
    kind: str
    size: int

    def __str__(self) -> str:
        name = self.kind if self.kind == "l" else f"{self.kind} {self.size}"
        return f"{name} at row {self.row} ({self.least:.6g})"


@dataclass(frozen=True)
class ConePrediction:
    """Where A*y lies in each cone."""

    least: Floats  # (cones,) in their order: least eigenvalue of X_c y / |y|, over the norm of the cone
    critical: tuple[CriticalCone, ...]  # the lowest

    @property
    def outside(self) -> int:
        """Cones that A*y is not in the interior of."""
        return int((self.least <= 0).sum())

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values without those of all cones."""
        return {
            "cones": len(self.least),
            "outside": self.outside,
            "margin": float(self.least.min()),
            "critical": [asdict(cone) for cone in self.critical],
        }


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
    trained = _Trained.of(Path(run), folders)
    dataset = open_data(X, labels, View(positive=positive, one_vs_rest=many), cones=not many)[1]
    if dataset.cones is not None:
        return _predict_cones(trained, dataset, memory, out)
    return (_predict_classes if many else _predict_signs)(trained, dataset, kernel, memory, out)


@dataclass(frozen=True)
class _Trained:
    """A finished run that left a direction, or one for each class."""

    run: Path
    values: dict[str, Any]  # the keys of its result
    certificates: tuple[Certificate, ...]
    files: tuple[Path, ...]  # of these
    classes: tuple[str, ...] | None  # of a one-vs-rest run

    @classmethod
    def of(cls, run: Path, folders: dict[str, Path] | None) -> _Trained:
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

    @property
    def kernelled(self) -> bool:
        return bool(self.certificates[0].kernel)

    def directions(self, data: Dataset | None, function: Function | None) -> Floats | Expansions:
        """Of two classes (m,), or (m+1,) with the intercept last; of each class (m, k), or (m+1, k), of unit length.

        With a kernel it takes the ``data`` of the run, and the ``function`` that is the kernel, if one is. Raises
        CorruptDataError when one has other entries.
        """
        if self.kernelled:
            assert data is not None, "a kernel needs its points"
            names = self.classes
            codes = [None] if names is None else [data.codes[data.classes.index(name)] for name in names]
            return Expansions.of(data, self.certificates, codes, function)
        entries = int(self.values["m"]) + bool(self.values["intercept"])
        Y = [direction(file, each, entries) for file, each in zip(self.files, self.certificates, strict=True)]
        return Y[0] if self.classes is None else np.column_stack([y / np.linalg.norm(y) for y in Y])

    def data(self, needed: bool) -> Dataset | None:
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
        if dataset.cones is not None:
            raise BadInputError(f"{self.run}: a run on cones; its direction is for cones, not for points")
        if (dataset.stored or dataset).header is not None and dataset.fingerprint != self.values["fingerprint"]:
            if needed:
                raise CorruptDataError(f"{dataset.where}: no longer the data of the run {self.run} (fingerprints differ)")
            return None
        return dataset

    def see(self, dataset: Dataset) -> Dataset:
        """Points as those of the run were seen, with the numbers of the run.

        Raises BadInputError for points of other features, UsageError where they cannot be seen so.
        """
        m = int(self.values["m"])
        if dataset.m != m:
            raise BadInputError(f"{dataset.where}: points of {dataset.m} features, the run {self.run} had {m}")
        transform = seen_as(self.certificates[0].view)[1]
        if transform is None or not transform.features:
            return dataset
        if transform.center and dataset.entries is not None:
            raise UsageError(
                f"{dataset.where}: sparse points cannot be centred as those of the run were; ingest them with --dense"
            )
        return transformed(dataset, replace(transform, points=dataset.n))


def _predict_signs(
    trained: _Trained, dataset: Dataset, function: Function | None, memory: str | int, out: str | Path | None
) -> Prediction:
    data = trained.data(needed=trained.kernelled)
    directions = trained.directions(data, function)
    names = () if data is None else data.classes
    if names and dataset.classes and names != dataset.classes:
        here, there = (" and ".join(each) for each in (dataset.classes, names))
        raise BadInputError(f"{dataset.where}: its classes are {here}, those of the run {there}")
    negative, positive = names or ("-1", "+1")
    score, label = read_once(trained.see(dataset), Sign(directions), memory, out)
    if not dataset.classes:
        return Prediction(score, (negative, positive), None, None)
    confusion = _confusion((score > 0).astype(np.int8), label, (-1, 1), 2)
    return Prediction(score, (negative, positive), (confusion[0][0] + confusion[1][1]) / len(score), confusion)


def _predict_classes(
    trained: _Trained, dataset: Dataset, function: Function | None, memory: str | int, out: str | Path | None
) -> ClassPrediction:
    classes = trained.classes or ()
    directions = trained.directions(trained.data(needed=True) if trained.kernelled else None, function)
    predicted, score, label = read_once(trained.see(dataset), Largest(directions), memory, out)
    if not dataset.classes:
        return ClassPrediction(predicted, score, classes, (), None, None)
    confusion = _confusion(predicted, label, dataset.codes, len(classes))
    right = sum(row[classes.index(name)] for row, name in zip(confusion, dataset.classes, strict=True) if name in classes)
    return ClassPrediction(predicted, score, classes, dataset.classes, right / len(predicted), confusion)


def _confusion(predicted: NDArray[Any], label: NDArray[Any], codes: Sequence[int], classes: int) -> list[list[int]]:
    """Points of each label code, by the class that was predicted."""
    return [np.bincount(predicted[label == code], minlength=classes).tolist() for code in codes]


def _predict_cones(trained: _Trained, dataset: Dataset, memory: str | int, out: str | Path | None) -> ConePrediction:
    run = trained.run
    if trained.kernelled or trained.certificates[0].view or trained.values["intercept"]:
        raise BadInputError(f"{run}: a run of points, seen in a way of its own; {dataset.where} is a dataset of cones")
    y = trained.directions(None, None)
    assert not isinstance(y, Expansions), "that is of a kernel"
    if dataset.m != len(y):
        raise BadInputError(f"{dataset.where}: cones of {dataset.m} features, the direction of the run {run} has {len(y)}")
    value, codes = read_once(dataset, LeastEigenvalue(y / np.linalg.norm(y)), memory, out)
    kinds = {int(each): kind_of(int(each)) for each in np.unique(codes)}
    sizes = np.zeros(len(codes), np.int64)
    for each, (kind, size) in kinds.items():
        sizes[codes == each] = rows_of(kind, size)
    first = np.cumsum(sizes) - sizes
    lowest = np.argsort(value, kind="stable")[:SHOWN]
    critical = tuple(CriticalCone(float(value[i]), int(first[i]), *kinds[int(codes[i])]) for i in lowest)
    return ConePrediction(value, critical)
