"""Certificates: evidence that stands alone, its file, and what is proved by it.

``certificate.npz`` holds ``kind`` (``separator`` or ``gordan``), ``y`` (m,) or (m+1,) with the intercept last, ``support``
int64 indices of points, ``weights`` float64 on the simplex of signed unit columns, and ``fingerprint`` of the data. A
conflict that is scored has the direction of its scores as ``y``; what a kind does not use is empty. LP people call a Gordan
certificate a Farkas certificate or dual ray. Nothing is compressed: where there are many, support and weights are mapped from
the file, and neither written nor read at once.

With a kernel there is one array more, ``kernel``: its name and parameters as JSON. Columns are then the signed unit vectors of
the kernel's space, and a separator is ``weights`` of any sign on those of ``support``: y is their sum. Where the data is not
taken as it is stored there is ``view``: what it is seen as, as JSON, of which the fingerprint is one, too. Where features have
names there is ``features``, a JSON list of them. A separator in whole numbers has ``integers``, a JSON list of their decimal
digits, which are what is proved: y is their rounding, divided by a power of two. With a kernel whose space is that of the
points they weigh those of ``support`` as they are stored, with their signs, and the weights, of unit vectors, are the rounding.
``format`` is the number of the format: 2 with names, 1 without.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from msgspec import Struct, field
from numpy.lib import format as npy
from numpy.typing import NDArray

from dfeas.data.storage import files
from dfeas.data.storage.features import are_names
from dfeas.data.storage.files import atomic_write, damage, parse_json
from dfeas.data.storage.places import Place, seekable
from dfeas.data.storage.scratch import map_vector, part, pieces
from dfeas.data.storage.zarr_arrays import read_header
from dfeas.display import Displayed, Part, Row
from dfeas.errors import BadInputError, CheckFailedError, CorruptDataError, DfeasError, NewerFormatError
from dfeas.records import replace

if TYPE_CHECKING:
    from zipfile import ZipFile

_FIELDS = ("kind", "y", "support", "weights", "fingerprint")
_LONG = ("support", "weights")
_MORE = ("kernel", "view", "features", "integers")
"""Texts that are there when they are not empty."""
MANY = 1 << 20
"""Weights of points above which they stay in the file."""
HYPERPLANE = "hyperplane"
"""Kind of a direction that proves nothing: the one of a soft margin."""
BALL = "ball"
"""Kind of points whose hull has a ball about the origin, with a direction in which it is thin; never in a file of its own."""


class Certificate(Displayed, Struct, frozen=True):
    """A separator y with A'y > 0, or weights on the simplex with |Ax| small.

    Attributes
    ----------
    kind : str
        "separator" or "gordan"; or "hyperplane", which proves nothing.
    fingerprint : str
        Fingerprint of the data that it is about.
    y : array (m,) or (m+1,) of float64
        The separator, with the intercept last; for a conflict the direction that scores its points, if there is one.
    support : array (s,) of int64
        Indices of points, ascending.
    weights : array (s,) of float64
        Weights on the simplex, or any with a kernel.
    kernel : str
        Name and parameters, if there is one.
    view : str
        How the data is seen, if not as it is stored.
    features : tuple of str
        Names of the m features of the data; empty if it has none.
    integers : tuple of int
        The separator as integers, whose rounding is y, or integer weights of stored points, whose rounding are the weights;
        empty if y or the weights themselves are proved.
    whole : int
        Number of all weights of the certificate, if these are only some; 0: these are all.

    Examples
    --------
    >>> import dfeas
    >>> dfeas.solve([[1.0, 2.0], [-1.0, -1.0]], [1, -1]).evidence
    <Certificate kind separator>
    >>> dfeas.solve([[1.0], [2.0]], [1, -1], intercept=False).evidence
    <Certificate kind gordan>
    """

    kind: str
    fingerprint: str
    y: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    support: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    weights: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    kernel: str = ""
    view: str = ""
    features: tuple[str, ...] = ()
    integers: tuple[int, ...] = ()
    whole: int = 0

    def _parts(self) -> Iterator[Part]:
        yield Row("kind", self.kind)
        if len(self.y):
            yield Row("entries", str(len(self.y)))
        if len(self.support):
            yield Row("weights", f"of {len(self.support)} points")
        for word, text in (("kernel", self.kernel), ("view", self.view), ("data", self.fingerprint)):
            if text:
                yield Row(word, text)

    @property
    def many(self) -> int:
        return self.whole or len(self.support)

    def take_points(self, first: int, stop: int) -> Certificate:
        """What it says of the points first .. stop-1: of a separator all of it, of weights theirs."""
        if self.kind != "gordan":
            return self
        from bisect import bisect_left

        # in a file they need not be aligned, and NumPy would copy all of them to search
        low, high = bisect_left(self.support, first), bisect_left(self.support, stop)
        support, weights = part(self.support, low, high), part(self.weights, low, high)
        return replace(self, support=support, weights=weights, whole=self.many)

    def save(self, path: Place) -> None:
        """Write the file whole or not at all."""
        import zipfile

        with atomic_write(path) as file:
            number = files.NAMED if self.features else files.PLAIN
            plain: dict[str, Any] = {files.KEY: number, "kind": self.kind, "fingerprint": self.fingerprint}
            more = {"kernel": self.kernel, "view": self.view, "features": json.dumps(self.features) if self.features else ""}
            more["integers"] = json.dumps([str(v) for v in self.integers]) if self.integers else ""
            plain |= {name: text for name, text in more.items() if text}
            with zipfile.ZipFile(file, "w") as archive:
                for name, vector in (("y", self.y), ("support", self.support), ("weights", self.weights)):
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        npy.write_array_header_1_0(member, npy.header_data_from_array_1_0(vector))
                        for (piece,) in pieces(vector):
                            member.write(piece.tobytes())
                for name, value in plain.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        npy.write_array(member, np.array(value), allow_pickle=False)


def load(path: Place) -> Certificate:
    """Read a certificate; nothing is unpickled, and no array larger than the file is allocated. Many weights are mapped.

    Raises BadInputError when the path is no certificate, CorruptDataError when the file is damaged or of a newer format.
    """
    import zipfile

    if not path.is_file():
        raise BadInputError(f"{path}: no such certificate")
    try:
        with zipfile.ZipFile(seekable(path)) as archive:
            there = archive.namelist()
            number = _array(path, archive, files.KEY).item() if f"{files.KEY}.npy" in there else 0
            files.require_readable(path, number, files.CERTIFICATE)
            more = [name for name in _MORE if f"{name}.npy" in there]
            arrays = {name: _array(path, archive, name) for name in (*_FIELDS, *more)}
        kind, y, support, weights, mark = (arrays[name] for name in _FIELDS)
        texts = {name: str(arrays[name]) for name in more}
        features = tuple(parse_json(texts.pop("features", "[]"), list))
        integers = tuple(int(digits) for digits in parse_json(texts.pop("integers", "[]"), [str]))
        if not are_names(features):
            raise ValueError("its names of features are no text")
        for text in texts.values():
            parse_json(text, dict)
    except NewerFormatError:
        raise
    except damage(DfeasError) as error:
        raise CorruptDataError(f"{path}: not a readable certificate: {error}") from None
    sound = (
        str(kind) in ("separator", "gordan", HYPERPLANE)
        and y.ndim == support.ndim == weights.ndim == 1
        and y.dtype == weights.dtype == np.float64
        and support.dtype == np.int64
        and support.shape == weights.shape
    )
    if not sound:
        raise CorruptDataError(f"{path}: the arrays of the certificate have wrong types or shapes")
    kernel, view = (texts.get(name, "") for name in ("kernel", "view"))
    return Certificate(str(kind), str(mark), y, support, weights, kernel, view, features, integers)


def direction(path: object, certificate: Certificate, entries: int) -> NDArray[np.float64]:
    """Its y (entries,), to score points with. Raises CorruptDataError when it has none of so many finite entries."""
    y = certificate.y
    if y.shape != (entries,) or not np.isfinite(y).all():
        raise CorruptDataError(f"{path}: damaged: expected a direction of {entries} finite entries; solve again")
    return y


def _array(path: Place, archive: ZipFile, name: str) -> NDArray[Any]:
    """An array of the archive; a long vector is mapped. What its header declares must be there before anything is allocated."""
    from zipfile import ZIP_STORED

    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as stream:
        shape, dtype, _ = read_header(stream, info.file_size, f"{path}:{name}")
        if info.file_size > 64 + 1032 * info.compress_size:
            raise ValueError(f"{name} is compressed beyond what deflate can")
        long = name in _LONG and len(shape) == 1 and shape[0] > MANY
        if not long or info.compress_type != ZIP_STORED or not isinstance(path, Path):
            stream.seek(0)
            return np.asarray(npy.read_array(stream, allow_pickle=False))
        header = stream.tell()
        # bytes of such a file that are read at a time for their checksum
        while stream.read(4 << 20):  # to the end, where its checksum is compared
            pass
    with path.open("rb") as file:
        file.seek(info.header_offset)
        words = struct.unpack("<HH", file.read(30)[26:])  # lengths of its name, and of what follows that
        return map_vector(file, dtype, shape[0], info.header_offset + 30 + sum(words) + header)


class Kind(Struct, frozen=True):
    """How the points are separated, and how surely that is proved."""

    kind: str  # "complete" | "quasi-complete" | "overlap"
    proof: str  # "exact" | "rigorous"


class Check(Displayed, Struct, frozen=True):
    """What a certificate proves of the data that it is about.

    Attributes
    ----------
    verdict : str
        "feasible", "infeasible" or "eps-infeasible"; of a list of suspects also "undecided".
    proof : str
        "exact" or "rigorous".
    margin_lower : float
        Proved: some unit y has at least this margin (-1 if nothing is known).
    margin_upper : float
        Proved: no unit y has more (1 if nothing is known).
    points : int
        Points of the data.
    exact_points : int
        Of them, decided beyond float64.
    message : str
        What was proved, in words.
    rounding : float
        What margin_upper allows for rounding errors, which other orders of summation share.
    separation : Kind, optional
        How the points are separated, where the run says it.
    not_checked : tuple of str
        What the run says beside, and nothing proves: keys of its result, or of another file, and files.
    points_read : int
        Points that were read: all, or of a quick check those of the blocks that a conflict is in; all other blocks are taken to
        be what their stored checksums say.
    classes : dict of Check
        Of a one-vs-rest run: of each class, None where it is undecided. Verdict and message then say how many are decided, and
        proof and margins are the least that is proved of one.
    counted : str
        What ``points`` counts: of a run of ``dfeas.feasible`` inequalities, about whose margins nothing is proved.

    Examples
    --------
    >>> import dfeas
    >>> import numpy as np
    >>> header = dfeas.ingest(np.array([[1.0, 2.0], [-1.0, -1.0]]), "data", y=["ham", "spam"])
    >>> result = dfeas.solve("data", out="run")
    >>> check = dfeas.verify_run("run")
    >>> check.verdict, check.proof, check.points
    ('feasible', 'rigorous', 2)
    """

    HIDDEN: ClassVar = ("classes", "counted")

    verdict: str
    proof: str
    margin_lower: float
    margin_upper: float
    points: int
    exact_points: int
    message: str
    rounding: float = 0.0
    points_read: int = 0
    separation: Kind | None = None
    not_checked: tuple[str, ...] = ()
    classes: dict[str, Check | None] = field(default_factory=dict)
    counted: str = "points"

    @classmethod
    def of_classes(cls, classes: Mapping[str, Check | None]) -> Check:
        """Of some of which one is decided at least."""
        known = [each for each in classes.values() if each is not None]
        least = next((each for each in known if each.proof != "exact"), known[0])
        beside = dict.fromkeys(name for each in known for name in each.not_checked)
        said = f"{len(known)} of {len(classes)} classes decided"
        lower, upper = min(each.margin_lower for each in known), max(each.margin_upper for each in known)
        whole = replace(least, verdict=said, margin_lower=lower, margin_upper=upper, message=said, classes=dict(classes))
        return replace(whole, not_checked=tuple(beside))

    def _parts(self) -> Iterator[Part]:
        for name, each in self.classes.items():
            said = "nothing, it is undecided" if each is None else f"{each.verdict} ({each.proof}): {each.message}"
            yield Row(None, f"{name}: proved {said}")
        if self.classes:
            yield from [Row("not checked", ", ".join(self.not_checked))] if self.not_checked else []
            return
        yield Row("proved", f" ({self.proof})", self.verdict)
        yield Row("", self.message)
        if self.points_read == self.points:
            yield Row("read", f"all {self.points} {self.counted}")
        else:
            yield Row(
                "read", f"{self.points_read} of {self.points} points, in the blocks of the conflict; of others the checksums"
            )
        if self.separation is not None:
            yield Row("separation", f"{self.separation.kind} ({self.separation.proof})")
        if self.not_checked:
            yield Row("not checked", ", ".join(self.not_checked))


T = TypeVar("T")
Answer = Check | CheckFailedError
"""What was proved, or why nothing was."""


class Checked(Struct, frozen=True):
    """What was proved of some certificates."""

    answers: list[Answer]  # of each, in their order
    reads: float  # of the data that this took, in all


def attempt(prove: Callable[..., T], *words: Any) -> T | CheckFailedError:
    """What it proves; what it raises for want of a proof is an answer, too."""
    try:
        return prove(*words)
    except CheckFailedError as error:
        return error
