"""Answers of several runs on the same reads: of the methods of a race, or of each class against the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dfeas.answers.base import Answer, Plotted, Predictor
from dfeas.answers.files import CLASSES, RACE, VERDICTS, classes_of, folder_of, load_result, versions
from dfeas.answers.result import ALL_POSITIVE_ROW, Result
from dfeas.answers.words import UNDECIDED, Stop, Verdict
from dfeas.data.storage import files
from dfeas.data.storage.files import read_json
from dfeas.data.storage.places import Place, place
from dfeas.display import Part, Row
from dfeas.linalg.points import Floats
from dfeas.records import replace

if TYPE_CHECKING:
    from dfeas.answers.prediction.model import FittedModel


class PerClass(Answer, Predictor):
    """Results of classes, each against the rest, and what is the same of all of them."""

    SHARED: ClassVar[tuple[str, ...]]  # fields of each result that are the same
    EACH: ClassVar[Any]  # the class of each result

    results: Mapping[str, Any]  # each is Fitted, in the order of the classes
    reads: float
    seconds: float
    fingerprint: str

    @classmethod
    def load(cls, run: str | Place) -> Self:
        """Read it back from its folder, which has those of all classes."""
        run = place(run)
        classes, values = classes_of(run) or {}, load_result(run, soft=True)
        make: Callable[..., Self] = cls  # a dataclass, of whichever results
        results = {name: cls.EACH.load(folder) for name, folder in classes.items()}
        return make(results, values["reads"], values["seconds"], values["fingerprint"])

    @property
    def _results(self) -> Mapping[str, Answer]:
        return {folder_of(name, place): result for place, (name, result) in enumerate(self.results.items())}

    @property
    def success(self) -> bool:
        """Whether every class has what was asked for."""
        return all(result.success for result in self.results.values())

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in their order."""
        return tuple(self.results)

    @property
    def stopped(self) -> Stop:
        """Why the run ended: ``Stop.VERDICT``, or the reason of the first class that has none."""
        return next((result.stopped for result in self.results.values() if result.stopped != Stop.VERDICT), Stop.VERDICT)

    @property
    def coef(self) -> Floats | Any:
        """(classes, m), in the units of X; None where a class has no hyperplane."""
        rows = [result.coef for result in self.results.values()]
        return None if any(row is None for row in rows) else np.stack(rows)

    @property
    def bias(self) -> Floats | Any:
        """(classes,) what X @ coef.T is added to."""
        biases = [result.bias for result in self.results.values()]
        return None if None in biases else np.array(biases)

    def to_model(self) -> FittedModel:
        from dfeas.answers.prediction.model import FittedModel

        first = next(iter(self.results.values()))
        files = tuple(result.certificate or f"class {name}" for name, result in self.results.items())
        evidence = [result._certificate for result in self.results.values()]
        model = FittedModel.of("the result", {**first.to_json(), "sides": None}, evidence, files, self.classes)
        return replace(model, points=first.points, function=first.function, follow=not first.loaded)

    def to_json(self) -> dict[str, Any]:
        first = next(iter(self.results.values()))
        return {
            "stopped": self.stopped,
            "message": self.stopped.sentence,
            **{name: getattr(first, name) for name in self.SHARED},
            "reads": self.reads,
            "bytes_read": round(self.reads * first.bytes_read / first.reads) if first.reads else 0,
            "seconds": self.seconds,
            "fingerprint": self.fingerprint,
            "versions": versions(),
            "data": None if first.data is None else {**first.data, "positive": None, "many": True},
            CLASSES: {
                name: {"folder": folder_of(name, place), **result.to_json()}
                for place, (name, result) in enumerate(self.results.items())
            },
        }


def _several(results: dict[str, Result], reads: float) -> Iterator[Part]:
    yield VERDICTS.grid([VERDICTS.row(name, Path(), vars(result)) for name, result in results.items()])
    if any(result.all_positive for result in results.values()):
        yield ALL_POSITIVE_ROW
    yield Row(None, f"{reads:.4g} reads of the data for all of them; seconds count from their common beginning")


def _rank(result: Result) -> tuple[float, ...]:
    """Smaller is better: of two that reached what was asked for, fewer passes, of others the narrower bracket."""
    reached, width = result.stopped == Stop.VERDICT, result.margin_upper - result.margin_lower
    ends = (result.passes, width) if reached else (width, result.passes)
    return ([*Verdict].index(result.verdict), not reached, *ends)


@dataclass(frozen=True, repr=False)
class Race(Answer, Plotted):
    """How each method ended, and what was read for all of them together.

    Attributes
    ----------
    results : dict of Result
        By method, ranked: verdicts first, by their passes; undecided ones by the width of their brackets.
    reads : float
        Of the data: what several methods asked at once counts once.

    Examples
    --------
    >>> import dfeas
    >>> X, labels = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]], [1, 1, -1]
    >>> race = dfeas.race(X, labels, methods=["perceptron", "working-set"])
    >>> print(race.first.verdict, list(race.results))
    feasible ['working-set', 'perceptron']
    """

    FILE: ClassVar = RACE
    FORMAT: ClassVar = files.RACE

    results: dict[str, Result]
    reads: float

    @classmethod
    def load(cls, run: str | Place) -> Race:
        """Read it back from its folder, which has those of all methods."""
        run = place(run)
        values = read_json(run / RACE, {"reads": int | float, "results": {str: dict}}, "race", files.RACE)
        return cls({name: Result.load(run / name) for name in values["results"]}, values["reads"])

    @classmethod
    def of(cls, results: Mapping[str, Result], reads: float) -> Race:
        """Of the results of all methods, the best first."""
        return cls(dict(sorted(results.items(), key=lambda item: _rank(item[1]))), reads)

    def _parts(self) -> Iterator[Part]:
        return _several(self.results, self.reads)

    def _traces(self) -> Mapping[str, Any]:
        return {name: result.trace or () for name, result in self.results.items()}

    @property
    def _results(self) -> Mapping[str, Answer]:
        return self.results

    @property
    def is_decided(self) -> bool:
        return self.first is not None

    @property
    def first(self) -> Result | None:
        """The result that reached what was asked for in the fewest passes; None when there is none."""
        return next((result for result in self.results.values() if result.stopped == Stop.VERDICT), None)

    def to_json(self) -> dict[str, Any]:
        first = self.first
        results = {name: result.to_json() for name, result in self.results.items()}
        return {"first": None if first is None else first.method, "reads": self.reads, "results": results}


@dataclass(frozen=True, repr=False)
class OneVsRest(PerClass):
    """How each class ended, and what was read for all of them together.

    Attributes
    ----------
    results : dict of Result
        In the order of the classes.
    reads : float
        Of the data: what several classes asked at once counts once.
    seconds : float
        Wall time of the run.
    fingerprint : str
        Of the data with all its classes.

    Examples
    --------
    >>> import dfeas
    >>> answer = dfeas.one_vs_rest([[2.0, 0.0], [0.0, 2.0], [-1.0, -1.0]], ["a", "b", "c"])
    >>> answer.classes, answer.coef.shape
    (('a', 'b', 'c'), (3, 2))
    >>> answer.predict([[5.0, 0.5]]).tolist()
    ['a']
    """

    SHARED: ClassVar = ("m", "n", "intercept", "eps", "margin_tolerance", "method", "why")
    EACH: ClassVar = Result

    results: dict[str, Result]
    reads: float
    seconds: float
    fingerprint: str

    def _parts(self) -> Iterator[Part]:
        return _several(self.results, self.reads)

    def to_json(self) -> dict[str, Any]:
        decided = sum(result.verdict != UNDECIDED for result in self.results.values())
        return {"verdict": f"{decided} of {len(self.results)} classes decided", **super().to_json()}
