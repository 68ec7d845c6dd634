"""``dfeas.info``: what a dataset is, without reading its points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dfeas.data.open import open_source, resolve
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.layout import describe_header, stored_bytes
from dfeas.display import Displayed, Part, Row
from dfeas.errors import UsageError


@dataclass(frozen=True, repr=False)
class Info(Displayed):
    """What is known of a dataset; print it for sentences.

    Attributes
    ----------
    path : str
        Where it is.
    values : dict
        The header that it was written with, or what an array tells.

    Examples
    --------
    >>> import dfeas
    >>> import numpy as np
    >>> header = dfeas.ingest(np.array([[1.0, 2.0], [-1.0, -1.0]]), "mail.data", y=["ham", "spam"])
    >>> dfeas.info("mail.data")
    <Info data mail.data>
    """

    path: str
    values: Mapping[str, Any]

    @property
    def n(self) -> int:
        """Points, or rows of cones."""
        return int(self.values["n"])

    @property
    def m(self) -> int:
        """How many features a point has."""
        return int(self.values["m"])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type in which entries are stored."""
        dtype: np.dtype[Any] = np.dtype(self.values["dtype"])
        return dtype

    @property
    def classes(self) -> tuple[str, ...]:
        """Negative and positive, or all in their order; none without labels."""
        return tuple(self.values["classes"])

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features; none where they have none."""
        return tuple(self.values.get("features") or ())

    @property
    def fingerprint(self) -> str | None:
        """Hash of points and labels; None where nobody has read them."""
        mark: str | None = self.values["fingerprint"]
        return mark

    @property
    def bytes(self) -> int:
        """Of all points as they are stored."""
        return stored_bytes(self.values)

    @property
    def blocks(self) -> int:
        """In how many pieces it is read."""
        return -(-self.n // int(self.values["block_rows"]))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, those of the command."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in self.values.items()}
        return {"path": self.path, "bytes": self.bytes, "blocks": self.blocks, **plain}

    def _parts(self) -> Iterator[Part]:
        yield Row("data", self.path)
        yield from describe_header(self.values)


def info(X: str | Path, y: str | Path | None = None) -> Info:
    """Describe a dataset, without reading its points.

    Parameters
    ----------
    X : path
        What ``dfeas.solve`` takes: a dataset, a zarr array, or a small file, which is read.
    y : path, or str, optional
        Labels of an array or a file, as ``dfeas.solve`` takes them by path.

    Returns
    -------
    Info
        ``n``, ``m``, ``dtype``, ``bytes``, ``blocks``, ``classes``, ``features`` and ``fingerprint``; ``values`` has the whole
        header.

    Raises
    ------
    UsageError
        X is no path.
    BadInputError
        X is nothing that could be solved.
    CorruptDataError
        X is damaged, or its ingest did not finish.

    Examples
    --------
    >>> import dfeas
    >>> import numpy as np
    >>> header = dfeas.ingest(np.array([[1.0, 2.0], [-1.0, -1.0]]), "mail.data", y=["ham", "spam"])
    >>> print(dfeas.info("mail.data").classes)
    ('ham', 'spam')
    """
    if not isinstance(X, str | Path):
        raise UsageError(f"X: expected a path, got {type(X).__name__}; arrays and frames say themselves what they are")
    dataset = open_source(resolve(Source(DataSpec(X, y), cones=True)))
    if dataset.header is not None:
        return Info(str(X), dataset.header.to_json())
    known = {name: getattr(dataset, name) for name in ("n", "m", "block_rows")}
    named = {"features": list(dataset.features)} if dataset.features else {}
    types = {"dtype": dataset.dtype.name, "classes": list(dataset.classes)}
    return Info(str(X), {**known, **types, **named, "fingerprint": None})
