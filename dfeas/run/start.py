"""What a finished run knows of other data, for one that begins from it: its hyperplane, seen as that data is, or its conflict.

Files are looked at as those of ``predict`` are; they only say where to look first, and what they say is proved or left.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dfeas.answers.base import Predictor
from dfeas.answers.files import CERTIFICATE, NEAREST, RESULT, certificate_of, classes_of, load_result
from dfeas.answers.prediction.model import FittedModel
from dfeas.answers.result import Fitted, plane_of
from dfeas.data.dataset import Dataset
from dfeas.data.source import parse_view
from dfeas.data.storage.places import place
from dfeas.errors import BadInputError, CorruptDataError, UsageError, spell
from dfeas.geometry.protocol import Geometry
from dfeas.linalg.points import Floats, is_dense
from dfeas.methods.protocol import Facts, Start
from dfeas.methods.registry import METHODS
from dfeas.methods.working_set.batches import least_columns
from dfeas.passes.block import Columns
from dfeas.records import replace
from dfeas.run.checkpoint.codec import load
from dfeas.verify.certificate import HYPERPLANE, Certificate, direction


def load_model(run: Any) -> FittedModel:
    """A run of two classes: a result, or the place of one. Raises UsageError, BadInputError and CorruptDataError for others."""
    if isinstance(run, Fitted):
        name, values, certificate = "the result", run.to_json(), run._certificate
    elif isinstance(run, str | Path):
        folder = place(run)
        if (folder / RESULT).is_file() and classes_of(folder) is not None:
            raise BadInputError(f"{run}: a run of several classes; name the folder of one of them")
        name, values = str(run), load_result(folder, soft=True)
        certificate = certificate_of(folder, values)
    else:
        kind = type(run).__name__
        raise UsageError(f"{spell('start')}: expected a result of solve or soft_margin, or the folder of its run, got {kind}")
    if certificate is None:
        raise BadInputError(f"{name}: the run left neither a hyperplane nor points that conflict: nothing to start from")
    if (values["data"] or {}).get("point") is not None:
        raise BadInputError(f"{name}: a run of a hull, whose hyperplane goes through its point: start from a run about points")
    file = name if isinstance(run, Fitted) else f"{name}/{CERTIFICATE}"
    return FittedModel(name, values, (certificate,), (file,), None)


def find_start(run: Any, dataset: Dataset, geometry: Geometry, facts: Facts, method: str, why: str) -> Start | None:
    """Where a run begins; None where the earlier one tells nothing here. Raises UsageError and BadInputError for misfits."""
    model = load_model(run)
    (certificate,) = model.certificates
    if bool(geometry.text) != bool(certificate.kernel) or not dataset.rows.take_labels:
        asked = dataset.kind if not dataset.rows.take_labels else "with a kernel" if geometry.text else "without a kernel"
        there = "with one" if certificate.kernel else "without one"
        raise UsageError(f"{model.name}: a run {there}, and the question is {asked}: leave {spell('start')} out")
    if method not in METHODS or not METHODS[method].traits.columns:
        raise UsageError(f"{spell('start')} is for working sets, and the method is {method}, {why}: leave it out")
    model.require_points(dataset, geometry)
    sign, rows = _sign_of(model, dataset), np.asarray(certificate.support)
    y = np.zeros(facts.m) if geometry.text else _scale(seen_plane(model, 0, dataset, sign))
    few = len(rows) <= (dataset.n if geometry.text else least_columns(facts))
    rows = np.unique(rows[(rows >= 0) & (rows < dataset.n)]) if few else np.empty(0, np.int64)
    if not (y.any() or len(rows)):
        return None
    new = np.arange(int(model.values["n"]) // dataset.block_rows, dataset.blocks)
    blocks = np.unique(rows // dataset.block_rows) if len(rows) else new
    # blocks with the conflict, or with new points, come before all if they are few
    if len(blocks) > (0.5 if len(rows) else 0.25) * dataset.blocks and y.any():
        blocks = blocks[:0]
    nearest = find_nearest(run, dataset, certificate)
    return Start(y, tuple(blocks.tolist()), rows, nearest and replace(nearest, scale=sign * nearest.scale))


def find_nearest(run: Any, dataset: Dataset, certificate: Certificate) -> Columns | None:
    """Points that a run left, where they are seen as those of a dataset. Raises CorruptDataError for a damaged file."""
    if isinstance(run, Fitted):
        left = getattr(run, "nearest", None)
    else:
        file = place(run) / NEAREST
        if not file.is_file():
            return None
        with file.open("rb") as content:
            left = load(content, str(file))
    transforms = [parse_view(certificate.view)[1], dataset.transform]
    if any(each is not None and each.features for each in transforms) or not isinstance(left, Columns):
        return None
    alike = left.points.shape == (len(left.index), dataset.dimension) and len(left.scale) == len(left.index)
    rows = left.points
    if not alike or is_dense(rows) != (dataset.entries is None):
        return None
    most = np.abs(rows).max(axis=1) if isinstance(rows, np.ndarray) else abs(rows).max(axis=1).toarray().ravel()
    if not np.abs(left.scale * most).max(initial=0.0) <= 2:  # also of numbers that are none
        raise CorruptDataError(f"{NEAREST} of the run to start from: its points are no unit vectors")
    return left


def find_hyperplanes(run: Any, dataset: Dataset, geometry: Geometry, classes: tuple[str, ...]) -> Floats:
    """Those (dimension,) of a soft margin, or (classes, dimension) of one with classes, in their own lengths. Raises
    UsageError, BadInputError and CorruptDataError for other runs.
    """
    model = run.to_model() if isinstance(run, Predictor) else FittedModel.load(place(run))
    if any(each.kind != HYPERPLANE for each in model.certificates):
        raise BadInputError(f"{model.name}: not the run of a soft margin: start from one of those")
    model.require_points(dataset, geometry)
    if not classes and model.classes is None:
        return seen_plane(model, 0, dataset, _sign_of(model, dataset))
    if model.classes != classes:
        raise BadInputError(f"{model.name}: a run of other classes than those of {dataset.where}: start from one of the same")
    return np.stack([seen_plane(model, place, dataset, 1) for place in range(len(classes))])


def seen_plane(model: FittedModel, place: int, dataset: Dataset, sign: int) -> Floats:
    """One hyperplane (dimension,) of a run, times a sign, for points as a dataset sees them; 0 where there is none."""
    certificate, none = model.certificates[place], np.zeros(dataset.dimension)
    if not len(certificate.y):
        return none
    y = direction(model.files[place], certificate, dataset.m + bool(model.values["intercept"]))
    (w, bias), transform = plane_of(y, dataset.m, certificate.view), dataset.transform
    with np.errstate(all="ignore"):
        if transform is not None and transform.shift:
            bias += float(np.asarray(transform.shift) @ w)
        if transform is not None and transform.factor:
            w = w / np.asarray(transform.factor)
    seen = sign * (np.append(w, bias) if dataset.intercept else w)
    return seen if np.isfinite(seen).all() else none


def _scale(y: Floats) -> Floats:
    """To length 1, however large or small its entries are."""
    most = float(np.abs(y).max(initial=0.0))
    return y if most == 0 else y / most / np.linalg.norm(y / most)


def _sign_of(model: FittedModel, dataset: Dataset) -> int:
    """-1 where the class +1 of the run is the class -1 of the data. Raises BadInputError where the classes are others."""
    there, here = model.names, dataset.classes
    if there == here or not (there and here):
        return 1
    if there == here[::-1]:
        return -1
    raise BadInputError(f"{dataset.where}: its classes are {' and '.join(here)}, those of the run {' and '.join(there)}")
