"""What a solve returns, and the files of a run."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage import formats
from dfeas.data.storage.files import COUNT, Number, conform, read_json, write_json
from dfeas.errors import BadInputError, CorruptDataError
from dfeas.methods.protocol import Sparse
from dfeas.run.termination import STOPPED, UNDECIDED
from dfeas.verify.certificate import Certificate

RESULT, CERTIFICATE, TRACE, RACE = "result.json", "certificate.npz", "trace.jsonl", "race.json"
SOFT_MARGIN = "soft_margin"
"""``kind`` in the result of a soft margin, whose hyperplane is in ``certificate.npz`` but proves nothing."""
CHECKPOINT = "checkpoint"
CLASSES = "classes"
"""The key of a result that lists one run for each class."""

_STATUS = {"verdict": 0, "pass_limit": 1, "time_limit": 2, "interrupted": 3, "stalled": 4, "numerical_error": 5, "outrun": 6}


def versions() -> dict[str, str]:
    """Versions of what computed the result."""
    return {**_installed(), "python": platform.python_version()}


@cache
def _installed() -> dict[str, str]:
    """Looking them up takes as long as a small solve: once for each process."""
    return {name: version(name) for name in ("dfeas", "numpy", "scipy", "zarr", "dask", "distributed")}


@dataclass(frozen=True)
class Result:
    """A verdict with its evidence. Shaped like SciPy's ``OptimizeResult``: success, status, message, nit."""

    verdict: str  # "feasible" | "infeasible" | "eps-infeasible" | "undecided"
    stopped: str  # why the run ended
    proof: str  # "exact" | "rigorous" | "none"
    method: str
    why: str  # why this method
    m: int  # features
    n: int  # points
    intercept: bool
    margin_lower: float  # margin_lower <= best margin <= margin_upper
    margin_upper: float
    eps: float
    margin_tolerance: float | None
    passes: float  # reads that the method asked for; a partial read counts as its share
    reads: float  # all reads: also survey, recovery and check
    iterations: int
    bytes_read: int  # of these reads, from storage or from blocks that were kept in memory
    seconds: float
    certificate: str | None  # path of the file
    fingerprint: str
    versions: dict[str, str]
    data: dict[str, Any] | None  # path, labels, positive, intercept; None for arrays in memory
    conflicts: list[dict[str, Any]]  # point, label, weight, score of an infeasible verdict, the most suspect first
    detail: str  # what the checker proved, in words
    kernel: dict[str, Any] | None = None  # name and parameters
    evidence: Certificate | None = field(default=None, repr=False, compare=False)
    weighed: Sparse | None = field(default=None, repr=False, compare=False)  # of a separator: what margin_upper comes from

    @property
    def success(self) -> bool:
        """Whether a verdict was reached and verified."""
        return self.verdict != UNDECIDED

    @property
    def status(self) -> int:
        """0 for a verdict, otherwise a number for the reason why the run stopped."""
        return _STATUS[self.stopped]

    @property
    def message(self) -> str:
        return self.detail or STOPPED[self.stopped]

    @property
    def nit(self) -> int:
        return self.iterations

    @property
    def y(self) -> NDArray[np.float64] | None:
        """The separator (m,) or (m+1,) with the intercept last; for an undecided run the best direction, which is none.

        With a kernel it has no entries: it is the sum of the unit vectors of the points ``support`` times ``weights``.
        """
        separates = self.evidence is not None and self.evidence.kind == "separator" and not self.evidence.kernel
        return self.evidence.y if self.evidence is not None and separates else None

    @property
    def support(self) -> NDArray[np.int64] | None:
        """Points of the Gordan certificate, or of a separator with a kernel."""
        return None if self._weighing is None else self._weighing.support

    @property
    def _weighing(self) -> Certificate | None:
        """The evidence, if it weighs points."""
        found = self.evidence
        return found if found is not None and (found.kind == "gordan" or found.kernel) else None

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """Their weights on signed unit columns: on the simplex, or, of a separator, of any sign."""
        return None if self._weighing is None else self._weighing.weights

    def to_json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("evidence", "weighed")}
        return {**values, "success": self.success, "status": self.status, "message": self.message}

    def save(self, run: Path) -> Result:
        """Write certificate and result, the result last: a run without it did not end. Returns what was written."""
        written = self
        if self.evidence is not None:
            self.evidence.save(run / CERTIFICATE)
            written = replace(self, certificate=str(run / CERTIFICATE))
        write_json(run / RESULT, written.to_json(), formats.RESULT)
        return written


def classes_of(run: Path) -> dict[str, Path] | None:
    """The folder of each class of a finished one-vs-rest run; None for any other run.

    Raises BadInputError when there is none, CorruptDataError when it is damaged.
    """
    values = load_result(run, soft=True)
    if CLASSES not in values:
        return None
    try:
        folders = {str(name): run / Path(str(entry["folder"])).name for name, entry in values[CLASSES].items()}
    except (LookupError, TypeError, AttributeError) as error:
        raise CorruptDataError(f"{run / RESULT}: not a readable result: {error}") from None
    if not folders:
        raise CorruptDataError(f"{run / RESULT}: not a readable result: it lists no class")
    return folders


_TEXT_OR_NONE = str | None
_PLACE = {
    "path": str,
    "intercept": bool,
    "labels": _TEXT_OR_NONE,
    "positive": _TEXT_OR_NONE,
    "mask?": _TEXT_OR_NONE,
    "many?": bool,
    "also?": [str],
    "point?": list | None,
    "transform?": dict | None,
}
"""Where data is, and how it is seen."""
_SHAPE = {
    "data": dict | None,
    "fingerprint": str,
    "m": COUNT,
    "n": COUNT,
    "intercept": bool,
    "versions?": {str: str},
    "classes?": {str: dict},
    "kernel?": dict | None,
}
"""What every result says."""
_VERDICT = {"verdict": str, "eps": Number(0, 1), "margin_tolerance?": Number(0, 1, none=True)}
"""What that of a verdict says, too."""


def load_result(run: Path, soft: bool = False) -> dict[str, Any]:
    """The keys of a finished run, of a soft margin only where that will do.

    Raises BadInputError when there is none, CorruptDataError when it is damaged.
    """
    if (run / RACE).is_file():
        raise BadInputError(f"{run}: a race; name the folder of one of its methods")
    if not (run / RESULT).is_file():
        raise BadInputError(f"{run}: no finished run, {RESULT} is missing")
    values: dict[str, Any] = read_json(run / RESULT, _SHAPE, "result", formats.RESULT)
    try:
        if values["data"] is not None:
            conform(values["data"], _PLACE, "data")
            conform(values["data"].get("point") or [], [Number()], "data.point")
        if values.get("kind") != SOFT_MARGIN:
            conform(values, _VERDICT)
            values.setdefault("margin_tolerance", None)
    except ValueError as error:
        raise CorruptDataError(f"{run / RESULT}: not a readable result: {error}") from None
    if values.get("kind") == SOFT_MARGIN and not soft:
        raise BadInputError(f"{run}: the run of a soft margin, which has no verdict; expected one of solve")
    return values
