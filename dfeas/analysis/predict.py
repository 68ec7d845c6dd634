"""``dfeas.predict``: scores of points under the separator of a finished run, streaming, with a kernel or without."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.analysis.predict_classes import ClassPrediction, predict_classes
from dfeas.analysis.predict_cones import ConePrediction, predict_cones
from dfeas.analysis.scoring import Expansions, as_in_run, read_once, trained_on
from dfeas.data.dataset import Dataset
from dfeas.data.storage.places import require_apart
from dfeas.data.storage.readers import Cost, Stop, unless_stopped
from dfeas.errors import BadInputError, UsageError
from dfeas.geometry.kernel.kernel import Function
from dfeas.problem import DEFAULT_MEMORY, View
from dfeas.run.results import CERTIFICATE, classes_of, load_result
from dfeas.run.session import open_data
from dfeas.verify.certificate import direction as direction_of
from dfeas.verify.certificate import load

Floats = NDArray[np.float64]


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
    if folders is not None:
        if positive is not None:
            raise UsageError(f"{run}: a run of all classes; leave out positive")
        return predict_classes(Path(run), folders, X, labels, out=out, memory=memory, kernel=kernel)
    values, certificate = load_result(Path(run), soft=True), load(Path(run) / CERTIFICATE)
    if certificate.kind == "gordan":
        raise BadInputError(f"{run}: the run ended {values['verdict']} and left no direction that could predict")
    if (values["data"] or {}).get("point") is not None:
        raise BadInputError(
            f"{run}: a run of a hull: its hyperplane goes through the point that was asked about, there are no classes"
        )
    dataset = open_data(X, labels, View(positive=positive), cones=True)[1]
    if dataset.cones is not None:
        if certificate.kernel or certificate.view or values["intercept"]:
            raise BadInputError(f"{run}: a run of points, seen in a way of its own; {dataset.where} is a dataset of cones")
        return predict_cones(dataset, direction_of(Path(run) / CERTIFICATE, certificate, int(values["m"])), memory, out, run)
    trained = trained_on(values, bool(certificate.kernel), run)
    direction: Floats | Expansions
    if certificate.kernel:
        assert trained is not None, "a kernel needs its points"
        direction = Expansions.of(trained, [certificate], [None], kernel)
    else:
        direction = direction_of(Path(run) / CERTIFICATE, certificate, int(values["m"]) + bool(values["intercept"]))
    if trained is not None and trained.classes and dataset.classes and trained.classes != dataset.classes:
        here, there = (" and ".join(names) for names in (dataset.classes, trained.classes))
        raise BadInputError(f"{dataset.where}: its classes are {here}, those of the run {there}")
    classes = trained.classes if trained is not None and trained.classes else ("-1", "+1")
    negative, name = classes
    score, label = read_once(as_in_run(dataset, certificate, int(values["m"]), run), scored, direction, memory, out)
    if not dataset.classes:
        return Prediction(score, (negative, name), None, None)
    confusion = [[int(((label == row) & ((score > 0) == column)).sum()) for column in (False, True)] for row in (-1, 1)]
    return Prediction(score, (negative, name), (confusion[0][0] + confusion[1][1]) / len(score), confusion)


def scored(
    dataset: Dataset, first: int, stop: int, direction: Floats | Expansions, stopped: Stop | None = None
) -> tuple[Floats, NDArray[np.int8]]:
    """Scores and labels of some blocks, in order."""
    found, labels, cost = [], [], Cost()
    for block in unless_stopped(dataset.read_blocks(range(first, stop), cost), stopped):
        if isinstance(direction, Expansions):
            score = direction.scores(block.points)[:, 0]
        else:
            m, score = block.points.shape[1], np.empty(block.size)
            for rows in block.tiles():
                score[rows] = block.tile(rows, False) @ direction[:m]
            score += float(direction[m:].sum())
        found.append(score)
        labels.append(block.label.copy())
    return np.concatenate(found), np.concatenate(labels)
