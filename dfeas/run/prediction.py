"""What a run says of points or cones, in one read of them: scores, classes, and how they compare with labels.

Points are seen as those of the run were. A run of two classes scores them by its direction, in a kernel's space by an
expansion; of a one-vs-rest run each point gets the class with the largest score; of cones it is the least eigenvalue.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.collections import is_collection, is_frame, map_rows
from dfeas.data.dataset import Dataset
from dfeas.data.frames import columns_of
from dfeas.data.ingest.options import is_file
from dfeas.data.open import open_data, open_source
from dfeas.data.source import ALL_POSITIVE, Choice, ChosenTable, DataSpec, Source, parse_view
from dfeas.data.storage.numbers import unwrap_array
from dfeas.data.storage.outputs import SCORES, replace_output
from dfeas.data.storage.places import Place, absolute, is_url, local, place
from dfeas.data.views import require_names, transform_features
from dfeas.data.writers.dataset import Progress
from dfeas.errors import BadInputError, CorruptDataError, UsageError, spell
from dfeas.geometry.points import Largest, Scores
from dfeas.geometry.protocol import Geometry, Trained
from dfeas.geometry.registry import geometry_again
from dfeas.linalg.points import Floats
from dfeas.methods.vector import Expansion
from dfeas.problem import Function
from dfeas.run.progress import who_is_told
from dfeas.run.result_files import CERTIFICATE, classes_of, find_url, load_result, require_followed
from dfeas.run.scores import class_values, read_once, require_name, write_scores
from dfeas.settings import parse_bytes, require_type
from dfeas.verify.certificate import HYPERPLANE, Certificate, direction, load

if TYPE_CHECKING:
    from dfeas.geometry.prediction import Prediction


class Predictor(ABC):
    """A result that left a direction, or one for each class. Points are scored with it as they are given, in their units."""

    @abstractmethod
    def to_model(self) -> FittedModel:
        """Its directions. Raises BadInputError where there is none."""

    def decision_function(self, X: Any, *, memory: str | int | None = None) -> Floats:
        """Score points, in one read of them.

        Parameters
        ----------
        X : array (n, m), data frame, path, or cones
            As ``dfeas.solve`` takes them, with the same features. A frame or a table has them by name, in any order and with
            other columns beside them; an array, or a dataset, in the same order. Nothing of a Dask array or frame is computed
            here: the answer is one, too.
        memory : int or str
            Budget in bytes for blocks.

        Returns
        -------
        array (n,) or (n, classes)
            Scores, above 0 for the class +1; of classes each against the rest, of separators by directions of unit length; of
            cones the least eigenvalue of each.

        Raises
        ------
        BadInputError
            Other features, entries that are not finite, or a run that left no direction.
        """
        if is_collection(X):
            return self._lazily(Predictor.decision_function, X, memory)
        model = self.to_model()
        dataset, geometry = open_points(model, X, memory)
        rule = geometry.rule(model.make_trained(geometry, dataset), dataset)
        rule = Scores(rule.directions) if isinstance(rule, Largest) else rule
        return np.asarray(read_once(model.see(dataset, geometry), rule, memory)[0])

    def predict(self, X: Any, *, memory: str | int | None = None) -> NDArray[Any]:
        """Classify points, in one read of them; see ``decision_function``.

        Parameters
        ----------
        X : array (n, m), data frame, or path
            As there.
        memory : int or str
            Budget in bytes for blocks.

        Returns
        -------
        array (n,)
            The class of each point, as labels have it: numbers where all classes are numbers, truth values, or text.

        Raises
        ------
        UsageError
            Cones, which have no classes.
        BadInputError
            As there.
        """
        if is_collection(X):
            return self._lazily(Predictor.predict, X, memory)
        from dfeas.geometry.prediction import Prediction

        prediction = predict(self, X, memory=memory)
        if not isinstance(prediction, Prediction):
            raise UsageError("cones have no classes; see decision_function")
        return np.asarray(class_values(prediction.classes)[prediction.predicted])

    def predict_proba(self, X: Any, *, memory: str | int | None = None) -> Floats:
        """Estimate the probability of each class, in one read of the points; see ``decision_function``.

        Parameters
        ----------
        X : array (n, m), data frame, or path
            As there.
        memory : int or str
            Budget in bytes for blocks.

        Returns
        -------
        array (n, classes)
            In the order of the classes. Nothing about them is proved.

        Raises
        ------
        UsageError
            A result of no soft margin, or of one that was not calibrated by folds.
        BadInputError
            As there.
        """
        if is_collection(X):
            return self._lazily(Predictor.predict_proba, X, memory)
        found: list[Any] = [getattr(fit, "calibration", None) for fit in getattr(self, "results", {"": self}).values()]
        if None in found:
            raise UsageError("no probabilities: they are of dfeas.soft_margin(X, y, folds=5, probability=True)")
        from dfeas.run.soft_margin.calibration import probabilities

        return probabilities(self.decision_function(X, memory=memory), found)

    def _lazily(self, ask: Callable[..., NDArray[Any]], X: Any, memory: str | int | None) -> NDArray[Any]:
        """What ``ask`` makes of each chunk of a Dask array, or partition of a frame, when somebody computes it."""
        X = unwrap_array(X)
        if X.ndim != 2:
            raise BadInputError(f"X: expected points (n, m), got a Dask collection of {X.ndim} dimensions")
        model = self.to_model()
        if is_frame(X) and (column := model.labels_of(X._meta, model.columns_of(X._meta))) is not None:
            X = X.drop(columns=[column])
        zero = np.zeros((1, len(X.columns) if is_frame(X) else int(X.shape[1])))
        example = ask(self, type(X._meta)(zero, columns=X.columns) if is_frame(X) else zero)  # what is wrong is said now

        def answer(points: Any) -> NDArray[Any]:
            return ask(self, points, memory=memory)

        lazy: NDArray[Any] = map_rows(answer, X, zero.shape[1], example, named=True)
        return lazy


def predict(
    run: str | Path | Predictor,
    X: Any,
    y: Any = None,
    *,
    out: str | Path | None = None,
    force: bool = False,
    positive: str | None = None,
    kernel: Function | None = None,
    memory: str | int | None = None,
    progress: bool | Progress | None = None,
    follow: bool = False,
) -> Prediction | Any:
    """Score points by the best direction of a run, or by those of all classes of a one-vs-rest run, in one read.

    Parameters
    ----------
    run : result, or path
        A run of ``dfeas.solve`` or ``dfeas.soft_margin`` that left a direction. With a kernel its data is read again for the
        points of the expansion.
    X : array (n, m), data frame, path, or cones
        What ``dfeas.solve`` takes.
    y : array (n,), path, or str, optional
        Labels to compare with the scores. By default the column of a frame or table that is called as the labels of the run;
        where that is not known, as they were beside the points, the column that is no feature of it, if there is one only.
    out : path, optional
        A .npy file for the scores (n,), float64, or for the classes (n,), int16, of a one-vs-rest run; or a .parquet file or
        a .zarr folder with ``score`` and ``class``. It appears when it is whole; memory holds only some blocks.
    force : bool
        Replace what such a call has written to ``out``, once the new one is written.
    positive : str, optional
        The class that counts as +1, as for ``dfeas.solve``.
    kernel : callable, optional
        The Python function that was the kernel, if one was.
    memory : int or str
        Budget in bytes for blocks, and for the scores of some of them.
    progress : bool, or callable, optional
        Show how many points are in ``out``, or be told ``(done, of)``; by default the setting.
    follow : bool
        Read the points of an expansion at a URL that only the run names: who wrote its files would choose where requests go,
        which are signed with your credentials.

    Returns
    -------
    Prediction or ConePrediction
        Scores and classes, unless they are in ``out``; for cones the least eigenvalue of each, over its norm.

    Raises
    ------
    UsageError
        ``run`` is no such run, ``positive`` is given with a run of all classes, or ``out`` has another suffix; or the files
        of the run say that the points of its expansion are at a URL, and ``follow`` is not given.
    BadInputError
        The run has no direction, or the points have other features or classes, or are not finite.

    Examples
    --------
    >>> import dfeas
    >>> result = dfeas.solve([[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]], [1, 1, -1])
    >>> answer = dfeas.predict(result, [[3.0, 3.0], [-2.0, 0.5]], [1, -1])
    >>> answer.accuracy, answer.confusion
    (1.0, [[1, 0], [0, 1]])
    """
    if not isinstance(run, Predictor | str | Path):
        kind = type(run).__name__
        hint = f"; {kind} has one in .result" if isinstance(getattr(run, "result", None), Predictor) else ""
        raise UsageError(f"run: expected a result of solve or soft_margin, or its folder, got {kind}{hint}")
    require_type("out", out, "str | Path | None")
    require_type("kernel", kernel, "Callable | None")
    require_type("force", force, "bool")
    require_type("follow", follow, "bool")
    file = None if out is None else local(out, "out")
    if file is not None:
        require_name(file, X, y)
    model = run.to_model() if isinstance(run, Predictor) else FittedModel.load(place(run))
    model = replace(model, follow=model.follow or follow)
    if model.classes is not None and positive is not None:
        raise UsageError(f"{model.name}: a run of all classes; leave out positive")
    dataset, geometry = open_points(model, X, memory, y, positive, kernel)
    rule = geometry.rule(model.make_trained(geometry, dataset), dataset)
    seen = model.see(dataset, geometry)
    if file is not None:
        with replace_output(file, SCORES, force):
            return write_scores(seen, rule, memory, file, who_is_told(progress))
    answer: Prediction | Any = rule.prediction(read_once(seen, rule, memory), dataset)
    return answer


def named_as_there(values: dict[str, Any]) -> dict[str, Any]:
    """The keys of a result, with the names of the classes that its data has, where that is there. A file would have to be read
    as a whole for that, and a URL is not asked for what only a run says: there, as where the data is gone or another one,
    those of the run stand.
    """
    place_of, sides = values["data"], values.get("sides") or {}
    if find_url(values) is not None:
        return values
    if not isinstance(place_of, dict) or len(sides) != 2 or place_of.get("also") or is_file(place(place_of["path"])):
        return values
    try:
        dataset = open_source(Source(DataSpec.from_json(place_of)))
    except (BadInputError, CorruptDataError, UsageError):
        return values
    known, names = (dataset.stored or dataset).header is not None, [side["name"] for side in sides.values()]
    if dataset.fingerprint != values["fingerprint"] if known else sorted(dataset.classes) != sorted(map(str, names)):
        return values
    renamed = {label: {**side, "name": name} for (label, side), name in zip(sides.items(), dataset.classes, strict=True)}
    return {**values, "sides": renamed}


def open_points(
    model: FittedModel,
    X: Any,
    memory: str | int | None,
    labels: Any = None,
    positive: str | None = None,
    kernel: Function | None = None,
) -> tuple[Dataset, Geometry]:
    """Points to be scored, and the space in which a run has its directions. Labels may be of some of its classes only."""
    many = model.classes is not None
    if isinstance(X, ChosenTable):  # features are found by name
        X, labels = X.X, X.y if labels is None else labels
    columns = model.columns_of(X)
    column = model.labels_of(X, columns) if labels is None else None

    def open_with(labels: Any, known: tuple[str, ...]) -> Dataset:
        spec = DataSpec(model.choose(X, columns, labels), labels, positive=positive, intercept=False, one_vs_rest=many)
        source = Source(spec, cones=not many, features=model.m, known=known)
        return open_data(source.within(parse_bytes(memory)))[1]

    try:
        dataset = open_with(column or labels, () if positive is not None else model.names)
    except BadInputError as error:
        if column not in (None, ALL_POSITIVE) and str(error).startswith("labels of"):  # it holds no classes
            where = X if isinstance(X, str | Path) else "X"
            if column == model.label:
                classes = f"classes of the run ({', '.join(model.names[:6])})" if model.names else "labels"
                raise BadInputError(
                    f"{where}: column {column} is no feature of {model.title}, and holds no {classes}: leave it out, or "
                    "say which column has the labels"
                ) from None
            column = ALL_POSITIVE if where is X else None  # it may name the rows
        dataset = open_with(column or labels, ())  # maybe labels are of other classes
    return dataset, geometry_again(dataset, model.certificates[0].kernel, model.function if kernel is None else kernel)


@dataclass(frozen=True)
class FittedModel:
    """A run that left a direction, or one for each class."""

    name: str  # what messages call it
    values: dict[str, Any]  # the keys of its result
    certificates: tuple[Certificate, ...]
    files: tuple[object, ...]  # of these, for messages
    classes: tuple[str, ...] | None  # of a one-vs-rest run
    points: Dataset | None = None  # that it was on, where they are in memory
    function: Function | None = None  # of Python, that was the kernel
    follow: bool = False  # whether its data is read at a URL, too

    @classmethod
    def load(cls, run: Place) -> FittedModel:
        """From the folder of a run. Raises BadInputError when there is no direction, or that of a hull."""
        folders = classes_of(run)
        values = named_as_there(load_result(run, soft=True))
        files = tuple(folder / CERTIFICATE for folder in ([run] if folders is None else folders.values()))
        certificates = [load(file) if folders is None or file.exists() else None for file in files]
        return cls.of(str(run), values, certificates, files, None if folders is None else tuple(folders))

    @classmethod
    def of(
        cls,
        name: str,
        values: dict[str, Any],
        certificates: Sequence[Certificate | None],
        files: tuple[object, ...],
        classes: tuple[str, ...] | None,
    ) -> FittedModel:
        """Of one run, or of classes. Raises BadInputError when there is no direction, or that of a hull."""
        if classes is not None:
            for one, each in zip(classes, certificates, strict=True):
                if each is not None and parse_view(each.view)[0] not in (None, one):
                    raise CorruptDataError(f"{name}: the run of class {one} has the certificate of {parse_view(each.view)[0]}")
            separators = [each for each in certificates if each is not None and each.kind != "gordan"]
            without = [c for c, each in zip(classes, certificates, strict=True) if each is None or each.kind == "gordan"]
            if without:
                shown = ", ".join(without[:6]) + (", ..." if len(without) > 6 else "")
                what = f"{len(without)} of {len(classes)} classes have no separator ({shown})"
                raise BadInputError(f"{name}: {what}; each class needs one to predict")
            return cls(name, values, tuple(separators), files, classes)
        (certificate,) = certificates
        if certificate is None or certificate.kind == "gordan" or values.get("objective", 0.0) is None:
            verdict = values.get("verdict", "before it found one")
            raise BadInputError(f"{name}: the run ended {verdict} and left no direction that could predict")
        if (values["data"] or {}).get("point") is not None:
            raise BadInputError(
                f"{name}: a run of a hull: its hyperplane goes through the point that was asked about, there are no classes"
            )
        return cls(name, values, (certificate,), files, None)

    @property
    def title(self) -> str:
        """In the middle of a message."""
        return self.name if self.name == "the result" else f"the run {self.name}"

    @property
    def m(self) -> int:
        return int(self.values["m"])

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(self.values.get("features") or self.certificates[0].features)

    @property
    def names(self) -> tuple[str, ...]:
        """Of its classes, where it says them."""
        if self.classes is not None:
            return self.classes
        sides = [side["name"] for side in (self.values.get("sides") or {}).values()]
        return tuple(sides) if len(sides) == 2 and None not in sides else ()

    @property
    def label(self) -> str | None:
        """What the column of labels was called, if that is known: where labels were beside the points it is not."""
        label = (self.values.get("data") or {}).get("labels")
        beside = label is None or is_url(label) or Path(label).is_absolute() or re.fullmatch(r"-?\d+", label)
        return None if beside else label

    def columns_of(self, X: Any) -> tuple[str, ...] | None:
        """Names of the columns of a table; None of what is none, whose features have no names or are in a dataset."""
        if not isinstance(X, str | Path):
            return columns_of(X)
        if not is_file(place(X)):
            return None
        from dfeas.data.ingest.readers import columns_of_file  # with readers of all formats

        return columns_of_file(X, self.label, Choice(self.features or None))

    def labels_of(self, X: Any, columns: tuple[str, ...] | None) -> str | None:
        """Where a table, or another file, has its labels, where nobody said it: in the column that is called as the labels of
        the run, or, if that is not known, in the only one that is no feature of it. Datasets, cones and arrays say themselves
        what they have. Raises BadInputError for a table with other features.
        """
        path = isinstance(X, str | Path)
        if columns is None:
            from dfeas.data.ingest.readers import own_labels  # with readers of all formats

            return own_labels(X) or ALL_POSITIVE if is_file(place(X)) else None
        whole = self._has_features(columns)
        others = [name for name in columns if name not in self.features] if whole else []
        only = others[0] if len(others) == 1 and self.label is None else None
        require_names(self.features if whole else columns, self.features, str(X) if path else "X", self.title)
        return self.label if self.label in others else only or (ALL_POSITIVE if path else None)

    def _has_features(self, columns: Sequence[str]) -> bool:
        return bool(self.features) and {*self.features} <= {*columns}

    def choose(self, X: Any, columns: tuple[str, ...] | None, label: Any) -> Any:
        """Of a table with all features of the run, in any order or with others beside them, those; else X as it is."""
        given = tuple(name for name in columns or () if not isinstance(label, str) or name != label)
        if given == self.features or not self._has_features(given):
            return X
        where = absolute(X) if isinstance(X, str | Path) else X
        return ChosenTable(where, None, None, self.features, (), Choice(self.features))

    def make_trained(self, geometry: Geometry, dataset: Dataset) -> Trained:
        """Its directions, to score a dataset. Raises CorruptDataError when one has other entries than the run had features."""
        m, intercept = self.m, bool(self.values["intercept"])
        directions: list[Floats | Expansion] = []
        for file, each in zip(self.files, self.certificates, strict=True):
            expansion = Expansion(each.support, each.weights) if geometry.expands else None
            directions.append(direction(file, each, m + intercept) if expansion is None else expansion)
        data = self._data(needed=geometry.expands)
        names = () if self.classes is not None else self.names
        trained = Trained(self.name, intercept, self.certificates[0].view, tuple(directions), self.classes, data, names)
        trained = replace(trained, fitted=self.certificates[0].kind == HYPERPLANE)
        if dataset.cones is not None or any(each.kind != "separator" for each in self.certificates):
            return trained
        from dfeas.run.signs import TrueSigns, plane_of, signs_of_sums

        if geometry.expands:
            return replace(trained, mend=None if data is None else signs_of_sums(self.certificates, data, self.classes))
        planes = tuple(plane_of(each, m) for each in self.certificates)
        transform = parse_view(trained.view)[1]
        stored = dataset if transform is not None and transform.features else None  # else blocks have what is stored
        return replace(trained, mend=TrueSigns(planes, trained.entries, stored))

    def _data(self, *, needed: bool) -> Dataset | None:
        """What the run was on; None when it is gone and not ``needed``."""
        if self.points is not None:
            return self.points
        if self.values["data"] is None:
            if needed:
                raise BadInputError(f"{self.name}: the data was in memory, and the points of the expansion went with it")
            return None
        if not needed and self.values.get("sides"):
            return None  # the run says itself what its classes are
        if not self.follow:
            if not needed and find_url(self.values):
                return None
            require_followed(self.title, self.values, "score where its data is")
        try:
            dataset = open_source(Source(DataSpec.from_json(self.values["data"]), cones=True))
        except (BadInputError, CorruptDataError):
            if needed:
                raise
            return None
        if (dataset.stored or dataset).header is not None and dataset.fingerprint != self.values["fingerprint"]:
            if needed:
                raise CorruptDataError(f"{dataset.where}: no longer the data of {self.title} (fingerprints differ)")
            return None
        return dataset

    def require_points(self, dataset: Dataset, geometry: Geometry) -> None:
        """Raise BadInputError for points of other features."""
        require_names(dataset.features, self.features, dataset.where, self.title)
        if dataset.m != self.m:
            text = f"{dataset.where}: {geometry.scored} of {dataset.m} features, {self.title} had {self.m}"
            short = dataset.m < self.m and not dataset.features and geometry.labelled
            hint = f"; where svmlight left out the last ones, ingest it with {spell('features', self.m)}" if short else ""
            raise BadInputError(f"{text}{hint}")

    def see(self, dataset: Dataset, geometry: Geometry) -> Dataset:
        """Points seen as in the run, by its numbers. Raises BadInputError for other features, UsageError where it cannot be."""
        self.require_points(dataset, geometry)
        transform = parse_view(self.certificates[0].view)[1]
        if transform is None or not transform.features:
            return dataset
        if transform.center and dataset.entries is not None:
            raise UsageError(
                f"{dataset.where}: sparse points cannot be centred as the run was; ingest them with {spell('sparse', False)}"
            )
        return transform_features(dataset, replace(transform, points=dataset.n))
