"""What answers share: their keys, their files, and points that they are applied to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dfeas.answers.files import CERTIFICATE, RESULT
from dfeas.data.collections import is_collection, is_frame, map_rows
from dfeas.data.storage import files
from dfeas.data.storage.files import read_json, write_json
from dfeas.data.storage.numbers import unwrap_array
from dfeas.data.storage.places import Place, place, require_folder
from dfeas.display import Displayed
from dfeas.errors import BadInputError, UsageError
from dfeas.geometry.points import Largest, Scores
from dfeas.linalg.points import Floats
from dfeas.records import replace
from dfeas.verify.certificate import Certificate

if TYPE_CHECKING:
    from dfeas.answers.prediction.model import FittedModel

_NOT_ALWAYS = ("x", "bits", "workers")
FLOATS, PLACES = partial(np.array, dtype=np.float64), partial(np.array, dtype=np.int64)
"""Arrays of what JSON has."""


@dataclass(frozen=True, repr=False)
class Answer(Displayed):
    """What a run leaves in its folder as JSON: its fields, and properties beside them."""

    FILE: ClassVar[str] = RESULT
    FORMAT: ClassVar[int] = files.RESULT
    READ: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}  # how fields are made of what the file says of them

    def save(self, run: str | Place) -> Self:
        """Write certificate and JSON, the JSON last: a run without it did not end; before it the results that it is of, each in
        a folder there. Returns what was written. Raises BadInputError where there is no folder for it.
        """
        require_folder(run := place(run))
        run.mkdir(exist_ok=True)
        for name, result in self._results.items():
            result.save(run / name)
        saved, certificate = self, self._certificate
        if certificate is not None:
            certificate.save(run / CERTIFICATE)
            saved = replace(self, **{"certificate": str(run / CERTIFICATE)})
        write_json(run / self.FILE, saved.to_json(), self.FORMAT)
        return saved

    def to_json(self) -> dict[str, Any]:
        """The keys of the file; some only where they apply."""
        return {name: value for name, value in super().to_json().items() if value is not None or name not in _NOT_ALWAYS}

    @classmethod
    def from_json(cls, values: Mapping[str, Any], **known: Any) -> Self:
        """Of the keys of its file, and fields that are ``known`` from elsewhere. What is missing or null there, and has a
        default, is the default. Raises TypeError, ValueError or ArithmeticError for values that are none.
        """
        found = {}
        for each in fields(cls):
            value = values.get(each.name)
            required = each.default is MISSING and each.default_factory is MISSING
            if each.name not in known and (required or value is not None):
                if each.name not in values:
                    raise ValueError(f"{each.name} is missing")
                read = cls.READ.get(each.name)
                found[each.name] = value if read is None else read(value)
        return cls(**found, **known)

    @property
    def _results(self) -> Mapping[str, Answer]:
        """Those that are read with it, by their folders in its own."""
        return {}

    @property
    def _certificate(self) -> Certificate | None:
        """What ``certificate.npz`` holds; None where this is not what writes it."""
        return None


class Conclusion(Answer):
    """What follows from the result of a solve."""

    HIDDEN: ClassVar[tuple[str, ...]] = ("result",)
    SHAPE: ClassVar[Mapping[str, Any]]  # of what the file says, as ``conform`` takes it

    result: Any

    def save(self, run: str | Place) -> Self:
        """Write it, and the result behind it last: a run without that did not end. Returns what was written."""
        saved = super().save(run)
        return saved if self.FILE == RESULT else replace(saved, **{"result": self.result.save(run)})

    @classmethod
    def load(cls, run: Place, result: Any) -> Self:
        """Read it back from the folder of its run, beside the result. Raises CorruptDataError, and what ``from_json`` does."""
        return cls.from_json(read_json(run / cls.FILE, cls.SHAPE, Path(cls.FILE).stem, cls.FORMAT), result=result)


class Plotted(ABC):
    """An answer of runs whose traces are drawn over each other."""

    @abstractmethod
    def _traces(self) -> Mapping[str, Any]:
        """What was known after each pass, by the names of the runs."""

    def plot(self, ax: Any = None, *, gap: bool = False, against: str = "passes") -> Any:
        """Draw what was known after each pass: both ends of the bracket, or of a soft margin the objective and its bound; with
        ``gap`` how far they are from each other. ``against`` is ``passes``, ``reads`` or ``seconds``. Returns ``ax``, axes of
        matplotlib, or those of a new figure; raises UsageError where matplotlib is not there. Methods of a race, and runs of a
        comparison, are drawn over each other.
        """
        from dfeas.figures import plot_traces

        return plot_traces(self._traces(), ax, gap, against)


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
        from dfeas.answers.prediction.model import read_points
        from dfeas.answers.prediction.scores import read_once

        _, seen, rule = read_points(self.to_model(), X, memory)
        return np.asarray(read_once(seen, Scores(rule.directions) if isinstance(rule, Largest) else rule, memory)[0])

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
        from dfeas.answers.prediction.model import read_points
        from dfeas.answers.prediction.scores import class_values, read_once
        from dfeas.geometry.prediction import Prediction

        dataset, seen, rule = read_points(self.to_model(), X, memory)
        prediction = rule.prediction(read_once(seen, rule, memory), dataset)
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
        from dfeas.answers.prediction.scores import probabilities

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
