"""What a run says of points or cones, in one read of them: scores, classes, and how they compare with labels.

Points are seen as those of the run were. A run of two classes scores them by its direction, in a kernel's space by an
expansion; of a one-vs-rest run each point gets the class with the largest score; of cones it is the least eigenvalue.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfeas.answers.files import CERTIFICATE, classes_of, find_url, load_result, require_followed
from dfeas.data.dataset import Dataset
from dfeas.data.frames import columns_of
from dfeas.data.ingest.options import is_file
from dfeas.data.open import open_data, open_source
from dfeas.data.source import ALL_POSITIVE, Choice, ChosenTable, DataSpec, Source, parse_view
from dfeas.data.storage.places import Place, absolute, is_url, place
from dfeas.data.views import require_names, transform_features
from dfeas.errors import BadInputError, CorruptDataError, UsageError, spell
from dfeas.geometry.points import of_cones
from dfeas.geometry.protocol import Geometry, Rule, Trained
from dfeas.geometry.registry import geometry_again
from dfeas.linalg.points import Floats
from dfeas.methods.vector import Expansion
from dfeas.problem import Function
from dfeas.records import replace
from dfeas.settings import parse_bytes
from dfeas.verify.certificate import HYPERPLANE, Certificate, direction, load

if TYPE_CHECKING:
    pass


def named_as_there(values: dict[str, Any]) -> dict[str, Any]:
    """The keys of a result, with the names of the classes and of the ids that its data has, where that is there. A file would
    have to be read as a whole for that, and a URL is not asked for what only a run says: there, as where the data is gone or
    another one, those of the run stand.
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
    return {**values, "sides": renamed, "id": None if dataset.ids is None else dataset.ids.name}


def read_points(
    model: FittedModel,
    X: Any,
    memory: str | int | None,
    labels: Any = None,
    positive: str | None = None,
    kernel: Function | None = None,
) -> tuple[Dataset, Dataset, Rule]:
    """Points to be scored, as they are and as the run saw its own, and what scores them. Labels may be of some of its classes
    only.
    """
    many = model.classes is not None
    left_out, named = (), None
    if isinstance(X, ChosenTable):  # features are found by name
        X, labels, left_out, named = X.X, X.y if labels is None else labels, X.left_out, X.choice.id
    columns = model.columns_of(X)
    columns = None if columns is None else tuple(name for name in columns if name not in left_out)
    if named is None and model.id in (columns or ()) and model.has_features(columns or ()):  # as in the table of the run
        named, columns = model.id, tuple(name for name in columns or () if name != model.id)
    column = model.labels_of(X, columns) if labels is None else None

    def open_with(labels: Any, known: tuple[str, ...]) -> Dataset:
        chosen = model.choose(X, columns, labels, named, not left_out)
        spec = DataSpec(chosen, labels, positive=positive, intercept=False, one_vs_rest=many)
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
    geometry = geometry_again(dataset, model.certificates[0].kernel, model.function if kernel is None else kernel)
    rule = geometry.rule(model.make_trained(geometry, dataset), dataset)
    return dataset, model.see(dataset, geometry), rule


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

    @property
    def id(self) -> str | None:
        """The column that named the rows of its table or dataset."""
        named: str | None = (self.values.get("data") or {}).get("id") or self.values.get("id")
        return named

    def columns_of(self, X: Any) -> tuple[str, ...] | None:
        """Names of the columns of a table; None of what is none, whose features have no names or are in a dataset."""
        if not isinstance(X, str | Path):
            return columns_of(X)
        if not is_file(place(X)):
            return None
        from dfeas.data.ingest.readers import columns_of_file  # with readers of all formats

        return columns_of_file(X, self.label, Choice(self.features or None, id=self.id))

    def labels_of(self, X: Any, columns: tuple[str, ...] | None) -> str | None:
        """Where a table, or another file, has its labels, where nobody said it: in the column that is called as the labels of
        the run, or, if that is not known, in the only one that is no feature of it. Datasets, cones and arrays say themselves
        what they have. Raises BadInputError for a table with other features.
        """
        path = isinstance(X, str | Path)
        if columns is None:
            from dfeas.data.ingest.readers import own_labels  # with readers of all formats

            return own_labels(X) or ALL_POSITIVE if is_file(place(X)) else None
        whole = self.has_features(columns)
        others = [name for name in columns if name not in self.features] if whole else []
        only = others[0] if len(others) == 1 and self.label is None else None
        found = [name for name in columns if name in self.features]  # others may stand beside them
        require_names(self.features if whole else found or columns, self.features, str(X) if path else "X", self.title)
        return self.label if self.label in others else only or (ALL_POSITIVE if path else None)

    def has_features(self, columns: Sequence[str]) -> bool:
        return bool(self.features) and {*self.features} <= {*columns}

    def choose(self, X: Any, columns: tuple[str, ...] | None, label: Any, named: str | None, whole: bool) -> Any:
        """Of a table with all features of the run, in any order or with others beside them, those, and the column that is
        ``named`` for ids; else X as it is. ``columns`` are all of the ``whole`` table, or but for some.
        """
        given = tuple(name for name in columns or () if not isinstance(label, str) or name != label)
        if named is None and ((whole and given == self.features) or not self.has_features(given)):
            return X
        where = absolute(X) if isinstance(X, str | Path) else X
        features = self.features or given
        return ChosenTable(where, None, None, features, (), Choice(features, id=named))

    def make_trained(self, geometry: Geometry, dataset: Dataset) -> Trained:
        """Its directions, to score a dataset. Raises CorruptDataError when one has other entries than the run had features."""
        m, intercept = self.m, bool(self.values["intercept"])
        directions: list[Floats | Expansion] = []
        for file, each in zip(self.files, self.certificates, strict=True):
            expansion = Expansion(each.support, each.weights) if geometry.expands else None
            directions.append(direction(file, each, m + intercept) if expansion is None else expansion)
        data = self._data(needed=geometry.expands)
        sided = self.classes is not None or self.values.get("sides") is not None  # as all runs on points are
        if data is None and not sided and dataset.rows.take_labels:
            raise of_cones(self.name)
        names = () if self.classes is not None else self.names
        trained = Trained(self.name, intercept, self.certificates[0].view, tuple(directions), self.classes, data, names)
        trained = replace(trained, fitted=self.certificates[0].kind == HYPERPLANE)
        if dataset.cones is not None or any(each.kind != "separator" for each in self.certificates):
            return trained
        from dfeas.answers.prediction.signs import TrueSigns, plane_of, signs_of_sums

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
