"""``dfeas.info``: what a dataset is, without reading its points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dfeas.data.open import open_source
from dfeas.data.source import Source
from dfeas.data.storage.features import shown
from dfeas.data.storage.layout import rows_described
from dfeas.errors import format_bytes, visible
from dfeas.linalg.points import working
from dfeas.run.session import labels_by_path

MOST_NAMED = 20
"""Classes, and names of features, that are listed."""


@dataclass(frozen=True)
class Info:
    """What is known of a dataset; print it for sentences."""

    path: str
    values: Mapping[str, Any]  # the header that it was written with, or what an array tells

    @property
    def n(self) -> int:
        """Points, or rows of cones."""
        return int(self.values["n"])

    @property
    def m(self) -> int:
        """Features of a point."""
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
        entries = self.values.get("entries")
        if entries is None:
            return self.n * self.m * self.dtype.itemsize
        return int(entries) * (self.dtype.itemsize + (4 if self.m < 2**31 else 8)) + 8 * self.n

    @property
    def blocks(self) -> int:
        """In how many pieces it is read."""
        return -(-self.n // int(self.values["block_rows"]))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, those of the command."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in self.values.items()}
        return {"path": self.path, "bytes": self.bytes, "blocks": self.blocks, **plain}

    def __str__(self) -> str:
        return "\n".join(map(visible, self._lines()))

    def _lines(self) -> Iterator[str]:
        values = self.values
        (what, cones), entries, most = rows_described(dict(values)), values.get("entries"), values.get("block_entries")
        worked = working(self.dtype).name
        work = "" if worked == values["dtype"] else f" (worked on as {worked})"
        yield self.path
        yield f"  {what:12} {self.n} of {self.m} features, {values['dtype']}{work}, {format_bytes(self.bytes)}"
        if self.features:
            yield f"  names        {_few(list(map(shown, self.features[: MOST_NAMED + 1])))}"
        yield f"  blocks       {self.blocks} of {values['block_rows']} {what}"
        if cones:
            yield f"  cones        {cones}"
        if entries is not None:
            yield f"  entries      {entries}, {entries / self.n / self.m:.3g} of all; at most {most} in a block"
        if len(self.classes) > 2:
            yield f"  classes      {len(self.classes)}: {self._counted()}"
        elif self.classes:
            negative, positive = self.classes
            counts = f" ({self.n - values['positive']} and {values['positive']})" if "positive" in values else ""
            yield f"  classes      {negative} is -1, {positive} is +1{counts}"
        if "norm_min" in values:
            zero = "" if cones else f", {values['zero']} zero points"
            yield f"  norms        {values['norm_min']:.6g} .. {values['norm_max']:.6g}{zero}"
        if values.get("generator"):
            yield "  generated    " + ", ".join(f"{name} {value}" for name, value in values["generator"].items())
        if values.get("notes"):
            yield f"  ingested     {'; '.join(values['notes'])}"
        yield f"  fingerprint  {self.fingerprint or 'computed when it is solved'}"

    def _counted(self) -> str:
        """The classes with their points, the first of many."""
        counts = self.values.get("counts") or [None] * len(self.classes)
        return _few([name if count is None else f"{name} ({count})" for name, count in zip(self.classes, counts, strict=True)])


def _few(said: Sequence[str]) -> str:
    """The first of many."""
    return ", ".join(said[:MOST_NAMED]) + (", ..." if len(said) > MOST_NAMED else "")


def info(data: str | Path, labels: str | Path | None = None) -> Info:
    """Say what a dataset is, without reading its points.

    Parameters
    ----------
    data : path of what ``dfeas.solve`` takes: a dataset, a zarr array, or a small file, which is read.
    labels : of an array or a file, as ``dfeas.solve`` takes them by path.

    Returns
    -------
    Info : ``n``, ``m``, ``dtype``, ``bytes``, ``blocks``, ``classes``, ``features`` and ``fingerprint``; ``values`` has all of
        a header.

    Raises
    ------
    BadInputError : nothing that could be solved is there. CorruptDataError : it is damaged, or its ingest did not finish.
    """
    dataset = open_source(Source(str(data), labels_by_path(data, labels), cones=True))
    if dataset.header is not None:
        return Info(str(data), dataset.header.to_json())
    known = {name: getattr(dataset, name) for name in ("n", "m", "block_rows")}
    named = {"features": list(dataset.features)} if dataset.features else {}
    types = {"dtype": dataset.dtype.name, "classes": list(dataset.classes)}
    return Info(str(data), {**known, **types, **named, "fingerprint": None})
