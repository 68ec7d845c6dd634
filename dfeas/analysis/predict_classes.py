"""``dfeas.predict`` of a one-vs-rest run: each point gets the class with the largest score, in one read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.analysis.scoring import Expansions, as_in_run, read_once, trained_on
from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Cost, Stop, unless_stopped
from dfeas.errors import BadInputError
from dfeas.geometry.kernel.kernel import Function
from dfeas.linalg.points import row_slice
from dfeas.problem import DEFAULT_MEMORY, View
from dfeas.run.results import CERTIFICATE, load_result
from dfeas.run.session import open_data
from dfeas.verify.certificate import Certificate, direction, load

Floats = NDArray[np.float64]

SCORES_BYTES = 8 << 20
"""Scores of all classes at a time."""


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


def predict_classes(
    run: Path,
    folders: dict[str, Path],
    X: Any,
    labels: Any,
    *,
    out: str | Path | None,
    memory: str | int = DEFAULT_MEMORY,
    kernel: Function | None = None,
) -> ClassPrediction:
    """Give each point of X the class whose separator of unit length scores it highest, the first one of equal scores.

    ``folders`` are those of the run's classes, ``kernel`` is a function of Python that was the kernel.

    Raises BadInputError when a class has no separator, or the points have other features, or are not finite.
    """
    values, certificates = load_result(run), _certificates(run, folders)
    Y = _separators(run, values, folders, certificates, kernel)
    dataset = open_data(X, labels, View(one_vs_rest=True))[1]
    seen = as_in_run(dataset, next(iter(certificates.values())), int(values["m"]), run)
    predicted, score, label = read_once(seen, scored, Y, memory, out)
    classes = tuple(folders)
    if not dataset.classes:
        return ClassPrediction(predicted, score, classes, (), None, None)
    confusion = np.zeros((len(dataset.classes), len(classes)), np.int64)
    for row, code in enumerate(dataset.codes):
        confusion[row] = np.bincount(predicted[label == code], minlength=len(classes))
    right = sum(int(confusion[row, classes.index(name)]) for row, name in enumerate(dataset.classes) if name in classes)
    return ClassPrediction(predicted, score, classes, dataset.classes, right / len(predicted), confusion.tolist())


def _certificates(run: Path, folders: dict[str, Path]) -> dict[str, Certificate]:
    found, without = {}, []
    for name, folder in folders.items():
        certificate = load(folder / CERTIFICATE) if (folder / CERTIFICATE).exists() else None
        if certificate is None or certificate.kind != "separator":
            without.append(name)
            continue
        found[name] = certificate
    if without:
        shown = ", ".join(without[:6]) + (", ..." if len(without) > 6 else "")
        raise BadInputError(
            f"{run}: {len(without)} of {len(folders)} classes have no separator ({shown}); each class needs one to predict"
        )
    return found


def _separators(
    run: Path, values: dict[str, Any], folders: dict[str, Path], certificates: dict[str, Certificate], kernel: Function | None
) -> Floats | Expansions:
    """Separators (d, K) of unit length, or the expansions of a kernel, which are."""
    if not next(iter(certificates.values())).kernel:
        entries = int(values["m"]) + bool(values["intercept"])
        found = [direction(folders[name] / CERTIFICATE, certificate, entries) for name, certificate in certificates.items()]
        return np.column_stack([y / np.linalg.norm(y) for y in found])
    trained = trained_on(values, True, run)
    assert trained is not None, "it is needed"
    codes = [trained.codes[trained.classes.index(name)] for name in certificates]
    return Expansions.of(trained, list(certificates.values()), codes, kernel)


def scored(
    dataset: Dataset, first: int, stop: int, Y: Floats | Expansions, stopped: Stop | None = None
) -> tuple[NDArray[np.int16], Floats, NDArray[Any]]:
    """Class with the largest score, that score, and label, of the points of some blocks, in order."""
    best: list[NDArray[np.int16]] = []
    most: list[Floats] = []
    labels: list[NDArray[Any]] = []
    rows = max(1, SCORES_BYTES // (8 * max(Y.amounts.shape if isinstance(Y, Expansions) else Y.shape)))
    for block in unless_stopped(dataset.read_blocks(range(first, stop), Cost()), stopped):
        m = block.points.shape[1]
        for start in range(0, block.size, rows):
            points = row_slice(block.points, slice(start, start + rows))
            score = Y.scores(points) if isinstance(Y, Expansions) else points.astype(np.float64) @ Y[:m] + Y[m:].sum(axis=0)
            place = score.argmax(axis=1)
            best.append(place.astype(np.int16))
            most.append(np.take_along_axis(score, place[:, None], axis=1)[:, 0])
        labels.append(block.label.copy())
    return np.concatenate(best), np.concatenate(most), np.concatenate(labels)
