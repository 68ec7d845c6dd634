"""Where data is and how it is seen, as values that travel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dfeas.data.storage.layout import looks_like_dataset
from dfeas.data.storage.places import place
from dfeas.data.transform import Transform


@dataclass(frozen=True)
class Source:
    """Where data is, small enough to travel with every task."""

    path: str
    labels: str | None = None
    positive: str | None = None
    intercept: bool = False
    many: bool = False  # labels of an array become codes of classes, which ``positive`` then chooses from
    also: tuple[str, ...] = ()  # datasets whose points follow
    mask: str | None = None  # path of booleans, one a point: those that count
    run: str = ""  # blocks are checked on first touch once a run
    direct: bool = True  # False: read through zarr only
    fingerprint: str = ""  # of the dataset that is meant; none for a foreign array
    cache_bytes: int = 0  # that each process may keep of the blocks it read
    cache_dir: str = ""  # folder of each machine that keeps blocks of object stores
    point: tuple[float, ...] | None = None  # the points are seen from there, without labels
    cones: bool = False  # whoever opens it knows what to do with cones
    transform: Transform | None = None  # of features and lengths

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
