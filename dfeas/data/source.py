"""Where data is and how it is seen, as values that travel, and a dataset from any reader of points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.labels import encode_array
from dfeas.data.storage.layout import looks_like_dataset
from dfeas.data.storage.places import place
from dfeas.data.storage.readers import PointReader, SliceReader
from dfeas.data.transform import Transform
from dfeas.data.views import SeenFrom
from dfeas.errors import BadInputError


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


def encode(labels: Any, n: int, source: Source, where: str) -> tuple[tuple[str, ...], NDArray[Any]]:
    """The classes, and labels (n,) in memory as they are stored."""
    return encode_array(labels, n, f"labels of {where}", None if source.many else source.positive, source.many)


def assemble(
    where: str, points: PointReader, n: int, m: int, dtype: np.dtype[Any], block_rows: int, labels: Any, source: Source
) -> Dataset:
    """A dataset from any reader of points and any label array; without labels every label is +1."""
    classes: tuple[str, ...] = ()
    if labels is None:
        signs = np.ones(n, np.int8)
    else:
        classes, signs = encode(labels, n, source, where)
    return Dataset(
        where=where,
        n=n,
        m=m,
        dtype=dtype,
        block_rows=block_rows,
        points=points,
        labels=SliceReader("label", signs, n, block_rows, signs.dtype, overlaps=True),
        stored_norms=None,
        classes=classes,
        intercept=source.intercept,
    )


def seen_from(dataset: Dataset, point: Sequence[float]) -> Dataset:
    """The points x_j as differences x_j - p, all with label +1. Raises BadInputError when p has another number of features."""
    p = np.asarray(point, np.float64)
    if p.shape != (dataset.m,) or not np.isfinite(p).all():
        raise BadInputError(f"the point has {p.size} entries, expected {dataset.m} that are finite, as {dataset.where} has")
    reader = SeenFrom(dataset, p)
    source = Source(dataset.where, point=tuple(p.tolist()))
    return assemble(dataset.where, reader, dataset.n, dataset.m, np.dtype(np.float64), dataset.block_rows, None, source)
