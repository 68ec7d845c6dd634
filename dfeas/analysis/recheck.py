"""``dfeas.recheck``: what a finished run still proves after points were appended, from the new blocks alone.

That the old points are as they were is proved by the fingerprint: it is a hash over the checksums of all blocks, and those of
the old data are the first ones of the new data, but for a last block that was not full, which is read. Weights on old points
whose sum is zero, or small, are that for more points, too. A separator is checked on the new points.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source, is_file, seen_as
from dfeas.data.storage.layout import fingerprint, seen_fingerprint
from dfeas.data.storage.places import absolute, local, place, require_apart
from dfeas.data.storage.readers import Buffers, Cost, Stop
from dfeas.data.views import transformed
from dfeas.display import Displayed, Part, Row
from dfeas.engine.local import local_engine
from dfeas.errors import BadInputError, CheckFailedError, CorruptDataError
from dfeas.geometry.registry import geometry_of
from dfeas.run.checkpoint.folder import run_folder
from dfeas.run.result_files import CERTIFICATE, TRACE, classes_of, load_values, versions
from dfeas.run.results import Result
from dfeas.run.termination import FEASIBLE, UNDECIDED
from dfeas.run.trace import TraceFile
from dfeas.run.verdict import OneVsRest
from dfeas.settings import parse_bytes, require_type
from dfeas.verify.blocks import Node, Tallies, Tally, crc, nodes_of, require_features, whole
from dfeas.verify.certificate import Certificate, load
from dfeas.verify.core import checker_of


@dataclass(frozen=True, repr=False)
class Recheck(Displayed):
    """What is left of a run.

    Attributes
    ----------
    results : dict of Result
        Of each class, or of the one question under its empty name; those that hold.
    refuted : dict of list
        The first new points on the wrong side, where a separator does not hold.
    new_points : int
        How many were appended.
    reads : float
        Share of the data that was read.
    named : str
        What the number of a row names.
    rows : str
        What the data has n of.

    Examples
    --------
    >>> import dfeas
    >>> import numpy as np
    >>> header = dfeas.ingest(np.array([[1.0, 2.0], [-1.0, -1.0]]), "data", labels=["ham", "spam"])
    >>> result = dfeas.solve("data", out="run")
    >>> header = dfeas.append("data", np.array([[-5.0, -5.0]]), labels=["ham"])
    >>> answer = dfeas.recheck("run", "data")
    >>> answer.holds, answer.refuted
    (False, {'': [2]})
    """

    results: dict[str, Result]
    refuted: dict[str, list[int]]
    new_points: int
    reads: float
    named: str = "point"
    rows: str = "points"

    def _brief(self) -> str:
        return f"{'holds' if self.holds else 'no longer holds'}, with {self.new_points} new {self.rows}"

    def _parts(self) -> Iterator[Part]:
        for name, result in self.results.items():
            yield Row(None, f"{name + ': ' if name else ''}{result.verdict} holds (proof: {result.proof}): {result.message}")
        for name, points in self.refuted.items():
            which, wrong = f"class {name}: " if name else "", ", ".join(map(str, points))
            yield Row(None, f"{which}no longer separated: {self.named} {wrong} on the wrong side; solve again")
        yield Row("read", f"{self.reads:.3g} of the data, for {self.new_points} new {self.rows}")

    @property
    def holds(self) -> bool:
        """Whether all verdicts are those of the larger data, too."""
        return not self.refuted

    def to_json(self) -> dict[str, Any]:
        return {
            "holds": self.holds,
            "verdicts": {name: result.verdict for name, result in self.results.items()},
            "refuted": self.refuted,
            "new_points": self.new_points,
            "reads": self.reads,
        }


@dataclass(frozen=True)
class _Verdict:
    """Of a finished run, with its certificate."""

    values: dict[str, Any]
    certificate: Certificate


def recheck(
    run: str | Path,
    data: str | Path,
    *,
    labels: str | Path | None = None,
    out: str | Path | None = None,
    memory: str | int | None = None,
) -> Recheck:
    """Say whether the verdict of a run, or of each of its classes, holds after points were appended to its data.

    Reads the blocks of new points only.

    Parameters
    ----------
    run : path
        Folder of a finished run.
    data : path
        Of the dfeas dataset that has grown.
    labels : path, optional
        Those that the run had beside it.
    out : path, optional
        Folder for a run that is one of the larger data, written if all verdicts hold.
    memory : int or str
        Budget in bytes for blocks.

    Returns
    -------
    Recheck
        The results that hold, and new points on the wrong side where one does not.

    Raises
    ------
    BadInputError
        A run without a verdict, or of another kind of data.
    CorruptDataError
        The data is not that of the run with points appended.
    CheckFailedError
        A certificate is no evidence for its verdict.

    Examples
    --------
    >>> import dfeas
    >>> import numpy as np
    >>> header = dfeas.ingest(np.array([[1.0, 2.0], [-1.0, -1.0]]), "data", labels=[1, -1])
    >>> result = dfeas.solve("data", out="run")
    >>> header = dfeas.append("data", np.array([[3.0, 3.0]]), labels=[1])
    >>> dfeas.recheck("run", "data")
    <Recheck holds, with 1 new points>
    """
    began, path = time.monotonic(), Path(run)
    folders = classes_of(path)
    old = {name: _load(folder) for name, folder in (folders or {"": path}).items()}
    first = next(iter(old.values())).values
    beside = None if labels is None else absolute(labels)
    source = Source(DataSpec(data, beside, intercept=bool(first["intercept"]), one_vs_rest=True), cones=True)
    require_type("out", out, "str | Path | None")
    if out is not None:
        require_apart(out, source.spec.where)
    dataset = None if is_file(place(data)) else open_source(source)
    transform = seen_as(next(iter(old.values())).certificate.view)[1]
    if dataset is None or dataset.header is None:
        raise BadInputError(f"{data}: not a dfeas dataset, so nothing tells old points from new ones; solve again")
    n = int(first["n"])
    _require_prefix(path, dataset, int(first["m"]), n, [each.certificate for each in old.values()])
    viewed = dataset if transform is None else transformed(dataset, transform)
    for name, each in old.items():
        _require_evidence(path if folders is None else folders[name], name, each, viewed)
    separators = {name: each.certificate for name, each in old.items() if each.certificate.kind == "separator"}
    shown, points = _on_new_points(dataset, viewed, n, list(separators.values()), memory)
    refuted = {name: each.wrong for name, each in zip(separators, shown, strict=True) if each.wrong}
    margins = dict(zip(separators, (each.margin for each in shown), strict=True))
    reads = points / dataset.n
    results = {}
    for name, each in old.items():
        if name not in refuted:
            margin = min(margins[name], float(each.values["margin_lower"])) if name in margins else None
            results[name] = _renewed(each, dataset, source, margin, reads, began, run)
    geometry = geometry_of(dataset)
    checked = Recheck(results, refuted, dataset.n - n, reads, geometry.named, geometry.rows)
    if out is not None and checked.holds:
        _write(local(out, "--out"), checked, folders, dataset, time.monotonic() - began)
    return checked


def _load(folder: Path) -> _Verdict:
    values = load_values(folder)
    if values["verdict"] == UNDECIDED or not isinstance(values["data"], dict):
        raise BadInputError(f"{folder}: no verdict on data by path that could hold; solve again")
    if values.get("kernel") or values["data"].get("point"):
        raise BadInputError(f"{folder}: a verdict with a kernel, or of a hull, is not rechecked; solve again")
    return _Verdict(values, load(folder / CERTIFICATE))


def _require_evidence(run: Path, name: str, old: _Verdict, dataset: Dataset) -> None:
    """Raise CheckFailedError when a certificate can be none of the verdict; old points are not looked at."""
    verdict, certificate = old.values["verdict"], old.certificate
    if certificate.kernel or certificate.kind != ("separator" if verdict == FEASIBLE else "gordan"):
        raise CheckFailedError(f"{run}: the run claims {verdict}, its certificate is of another kind; solve again")
    if name and certificate.view != dataset.against_rest(name).view:
        raise CheckFailedError(f"{run}: the certificate is about another class; solve again")
    try:
        require_features(dataset, certificate)
        checker_of(dataset, certificate).require(certificate, dataset)
    except CheckFailedError as error:
        raise CheckFailedError(f"{run}: {error}; solve again") from None


def _require_prefix(run: Path, dataset: Dataset, m: int, n: int, certificates: Sequence[Certificate]) -> None:
    """Raise CorruptDataError unless the first n points are those of the certificates, by the checksums of their blocks."""
    if dataset.m != m or dataset.n < n:
        raise CorruptDataError(
            f"{dataset.where}: {dataset.n} points of {dataset.m} features, the run {run} had {n} of {m}: not the same with "
            "points appended"
        )
    assert dataset.expected is not None, "a dataset has checksums"
    kept, rest = n // dataset.chunk_rows, n % dataset.chunk_rows
    checksums: NDArray[np.uint32] = dataset.expected[:kept, :2]
    if rest:
        block = dataset.read(kept // dataset.together, Buffers(), Cost())
        rows = slice(kept * dataset.chunk_rows - block.start, n - block.start)
        tail = np.array([[crc(block.points[rows]), crc(block.label[rows])]], np.uint32)
        checksums = np.concatenate([checksums, tail])
    mark = fingerprint(n, m, dataset.dtype.name, dataset.chunk_rows, checksums, dataset.named)
    for certificate in certificates:
        if seen_fingerprint(mark, certificate.view) != certificate.fingerprint:
            raise CorruptDataError(
                f"{dataset.where}: its first {n} points are not those of the run {run} (fingerprint "
                f"{seen_fingerprint(mark, certificate.view)[:12]}, certificate {certificate.fingerprint[:12]}); solve again"
            )


def _on_new_points(
    dataset: Dataset, viewed: Dataset, n: int, separators: list[Certificate], memory: str | int | None
) -> tuple[list[Tally], int]:
    """What separators show on the blocks that hold new points, and how many points were read."""
    assert dataset.expected is not None, "a dataset has checksums"
    first = n // dataset.block_rows
    count = dataset.blocks - first
    if not separators or not count:
        return [Tally() for _ in separators], 0
    with local_engine(viewed, parse_bytes(memory)) as engine:
        looked = whole(engine.map(_later_range, first, tuple(separators), count=count))
    chunk = first * dataset.together
    damaged = np.flatnonzero(
        (np.frombuffer(looked.checksums, "<u4").reshape(-1, 2) != dataset.expected[chunk:, :2]).any(axis=1)
    )
    if len(damaged):
        raise CorruptDataError(f"{dataset.where}: chunk {chunk + damaged[0]} is damaged; restore or ingest again")
    return looked.tallies, dataset.n - first * dataset.block_rows


def _later_range(
    dataset: Dataset, first: int, stop: int, offset: int, certificates: tuple[Certificate, ...], stopped: Stop | None = None
) -> list[Node[Tallies]]:
    """The checker's look at some blocks behind the first ``offset`` ones."""
    looked = checker_of(dataset, certificates[0]).look(dataset, range(offset + first, offset + stop), certificates, stopped)
    return nodes_of((first + place, part) for place, part in looked)


def _renewed(
    old: _Verdict, dataset: Dataset, source: Source, margin: float | None, reads: float, began: float, run: str | Path
) -> Result:
    """The result of the larger data; ``margin`` that of its separator."""
    values, certificate = old.values, old.certificate
    mark = seen_fingerprint(dataset.fingerprint, certificate.view)
    geometry = geometry_of(dataset)
    what, rows = geometry.scored, geometry.rows
    text = f"the old {what} conflict as before" if margin is None else f"the margin of all {what} is at least {margin:.6g}"
    tolerance = values.get("margin_tolerance")
    if margin is not None and tolerance is not None and margin < (1 - tolerance) * values["margin_upper"]:
        text += ", no longer within the margin tolerance: solve again for the maximum"
        tolerance = None
    positive = seen_as(certificate.view)[0]
    seen = dataset if positive is None else dataset.against_rest(positive)
    sides = seen.sides(seen.count(1 if seen.positive is None else seen.positive)) if geometry.labelled else None
    renewed: dict[str, Any] = {
        "n": dataset.n,
        "sides": None if sides is None else {each: dict(zip(("name", "points"), sides[each], strict=True)) for each in sides},
        "margin_tolerance": tolerance,
        "margin_lower": -1.0 if margin is None else margin,
        "why": f"{values['why']}; rechecked after {dataset.n - int(values['n'])} {rows} were appended to the data of {run}",
        "passes": 0.0,
        "reads": reads,
        "iterations": 0,
        "bytes_read": round(reads * dataset.bytes),
        "seconds": time.monotonic() - began,
        "certificate": None,
        "fingerprint": mark,
        "versions": versions(),
        "data": {**values["data"], "path": source.spec.where, "labels": source.spec.labels},
        "detail": text if values["verdict"] == FEASIBLE else f"{text}: {values['message']}",
    }
    return Result.from_json(values, **renewed, evidence=replace(certificate, fingerprint=mark))


def _write(out: Path, checked: Recheck, folders: dict[str, Path] | None, dataset: Dataset, seconds: float) -> None:
    with run_folder(out) as folder:
        saved = {}
        for name, result in checked.results.items():
            place = folder if folders is None else folder / folders[name].name
            place.mkdir(exist_ok=True)
            trace = TraceFile(place / TRACE)
            trace.note("recheck", result.message, n=result.n, reads=result.reads)
            trace.close()
            saved[name] = result.save(place)
        if folders is not None:
            OneVsRest(saved, checked.reads, seconds, dataset.fingerprint).save(folder)
