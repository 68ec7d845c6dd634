"""Where data is and how it is seen, as values that travel.

A transform has the numbers that centre and scale features, and the length that all points are divided by: points are
z = (x - shift) * factor, and columns z over its own length, or, not normalised, over the length of the longest of all, so that
no column is longer than 1.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.files import COUNT, Number, conform, parse_json
from dfeas.data.storage.layout import looks_like_dataset
from dfeas.data.storage.places import Place, place
from dfeas.errors import CorruptDataError

SCALES: tuple[str, ...] = ("maxabs", "std")
FACTORS = (1e-130, 1e130)
"""What a feature is multiplied by is within; beyond it a feature is as good as zero, or as infinite."""
LENGTHS = (1e-140, 1e140)
"""The length that points are divided by is within."""

SHARE = 4
"""A file that is opened as it is takes at most memory over this."""
FILE_BYTES = 2_000_000_000 // SHARE
"""Of such a file, where nobody said how much memory there is."""

Floats = NDArray[np.float64]


_SHAPE = {
    "scale": str | None,
    "center": bool,
    "normalize": bool,
    "points": COUNT,
    "shift": [Number(-1e308, 1e308)],
    "factor": [Number(*FACTORS)],
    "length": Number(*LENGTHS, none=True),
}


@dataclass(frozen=True)
class Transform:
    """What was asked for, and the numbers that it took: the same ones for all who read these points."""

    scale: str | None = None  # "maxabs" | "std"
    center: bool = False
    normalize: bool = True
    points: int = 0  # the numbers are those of so many first points
    shift: tuple[float, ...] = ()  # (m,) means; empty when not centred
    factor: tuple[float, ...] = ()  # (m,) positive; empty when not scaled
    length: float | None = None  # of the longest point, with its intercept, when not normalised

    @property
    def features(self) -> bool:
        """Whether features change, and not lengths only."""
        return self.center or self.scale is not None

    def __bool__(self) -> bool:
        return self.features or not self.normalize

    @property
    def words(self) -> str:
        """What was asked for, for people."""
        scaled = [] if self.scale is None else [f"scaled by {self.scale}"]
        words = [*scaled, *(["centred"] if self.center else []), *([] if self.normalize else ["not normalised"])]
        return " and ".join(words) or "as they are stored"

    def to_json(self) -> dict[str, Any]:
        values = asdict(self)
        return {**values, "shift": list(self.shift), "factor": list(self.factor)}

    @classmethod
    def from_json(cls, values: Any) -> Transform:
        """The same again. Raises CorruptDataError when it is none."""
        try:
            conform(values, _SHAPE)
            transform = cls(
                None if values["scale"] is None else str(values["scale"]),
                values["center"],
                values["normalize"],
                values["points"],
                tuple(map(float, values["shift"])),
                tuple(map(float, values["factor"])),
                None if values["length"] is None else float(values["length"]),
            )
        except (LookupError, TypeError, ValueError) as error:
            raise CorruptDataError(f"not a readable transform of the points: {error}") from None
        least, greatest = FACTORS
        sound = (
            transform.scale in (None, *SCALES)
            and transform.center == bool(transform.shift)
            and (transform.scale is not None) == bool(transform.factor)
            and transform.normalize == (transform.length is None)
            and np.isfinite(transform.shift).all()
            and all(least <= f <= greatest for f in transform.factor)
            and (transform.length is None or LENGTHS[0] < transform.length < LENGTHS[1])
            and transform.points > 0
        )
        if not sound:
            raise CorruptDataError("not a readable transform of the points: its numbers are not what it says")
        return transform

    def folded(self, y: Floats, m: int) -> tuple[Floats, float]:
        """(w, bias) of stored points from y (m,) or (m+1,) of transformed ones: x'w + bias is z'y, up to rounding."""
        w = y[:m] * np.asarray(self.factor) if self.factor else y[:m]
        bias = float(y[m:].sum())
        return w, bias - float(np.asarray(self.shift) @ w) if self.shift else bias


def said(positive: str | None, transform: Transform | None) -> str:
    """What certificates say of how the data is seen, as JSON; empty when it is taken as it is stored."""
    view: dict[str, Any] = {} if positive is None else {"positive": positive}
    if transform:
        view["transform"] = transform.to_json()
    return json.dumps(view) if view else ""


def seen_as(view: str) -> tuple[str | None, Transform | None]:
    """The positive class and the transform in what a certificate says. Raises CorruptDataError when it cannot be read."""
    if not view:
        return None, None
    try:
        values = parse_json(view, {"positive?": str, "transform?": dict})
        positive = str(values["positive"]) if "positive" in values else None
        transform = Transform.from_json(values["transform"]) if "transform" in values else None
    except (ValueError, LookupError, TypeError) as error:
        raise CorruptDataError(f"not a readable certificate: its view {view[:80]!r}: {error}") from None
    if positive is None and transform is None:
        raise CorruptDataError(f"not a readable certificate: its view {view[:80]!r} says nothing")
    return positive, transform


@dataclass(frozen=True)
class Source:
    """Where data is, small enough to travel with every task."""

    path: str
    labels: str | None = None  # a path, or of a file of points the name of a column or an array in it
    positive: str | None = None
    intercept: bool | None = None  # None: where points have labels
    many: bool = False  # labels of an array become codes of classes, which ``positive`` then chooses from
    also: tuple[str, ...] = ()  # datasets whose points follow
    mask: str | None = None  # path of booleans, one a point or cone: those that count
    run: str = ""  # blocks are checked on first touch once a run
    direct: bool = True  # False: read through zarr only
    fingerprint: str = ""  # of the dataset that is meant; none for a foreign array
    cache_bytes: int = 0  # that each process may keep of the blocks it read
    cache_dir: str = ""  # folder of each machine that keeps blocks of object stores
    point: tuple[float, ...] | None = None  # the points are seen from there, without labels
    cones: bool = False  # whoever opens it knows what to do with cones
    transform: Transform | None = None  # of features and lengths
    file_bytes: int = FILE_BYTES  # that a file of points may have, on disk and in memory
    known: tuple[str, ...] = ()  # classes that labels have which come with points or beside them; none: those that they show
    features: int | None = None  # of a file of svmlight, whose lines leave out zeros; None: up to the last that one of them has

    def intercepts(self, labelled: bool) -> bool:
        """Whether points have an intercept, which may depend on whether they have labels."""
        return labelled if self.intercept is None else self.intercept

    def within(self, memory: int) -> Source:
        """The same for whoever has so much memory."""
        return replace(self, file_bytes=memory // SHARE)

    @property
    def place(self) -> dict[str, Any]:
        """What a result keeps of it; ``source_of`` makes it again."""
        names = ("path", "labels", "positive", "intercept", "point", "many", "also", "mask")
        transform = None if self.transform is None else self.transform.to_json()
        return {**{name: getattr(self, name) for name in names}, "transform": transform}


def source_of(values: dict[str, Any], cones: bool = False) -> Source:
    """The data of a finished run, from ``data`` of its result; ``cones`` if the caller knows what to do with them."""
    point = None if values.get("point") is None else tuple(map(float, values["point"]))
    many, also = bool(values.get("many", False)), tuple(map(str, values.get("also") or ()))
    place = values["path"], values["labels"], values["positive"], values["intercept"]
    transform = None if values.get("transform") is None else Transform.from_json(values["transform"])
    return Source(*place, many, also, values.get("mask"), point=point, cones=cones, transform=transform)


def for_checker(source: Source) -> Source:
    """The same data by the checker's way to it.

    What it reads of a dataset is compared with the fingerprint of its ingest, so that any reader will do. The fingerprint of a
    foreign array is of what the run's own reader gave: another one has to give the same.
    """
    return replace(source, direct=looks_like_dataset(place(source.path)))


def is_file(path: Place) -> bool:
    """Whether it is points in a file, which an ingest reads from its beginning, or a folder of Parquet; no array of chunks."""
    if not path.is_dir():
        return path.is_file()
    arrays = any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")) or looks_like_dataset(path)
    return not arrays and any(path.rglob("*.parquet"))
