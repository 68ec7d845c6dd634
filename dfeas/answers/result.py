"""What a solve returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Context, Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas import leaves
from dfeas.answers.base import FLOATS, Answer, Plotted, Predictor
from dfeas.answers.files import CERTIFICATE, TRACE, certificate_of, load_result
from dfeas.answers.trace import Trace
from dfeas.answers.words import Proof, Stop, Verdict
from dfeas.data.dataset import Dataset
from dfeas.data.source import DataSpec, parse_view
from dfeas.data.storage.places import Place, place
from dfeas.display import Part, Row
from dfeas.errors import CheckFailedError, UndecidedError, format_bytes
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Sparse
from dfeas.passes.block import Columns
from dfeas.problem import Function
from dfeas.records import replace
from dfeas.settings import require_type
from dfeas.verify.certificate import Certificate, Check

if TYPE_CHECKING:
    from dfeas.answers.prediction.model import FittedModel


class Side(Struct, frozen=True):
    """The points of one label, and how many."""

    name: str | None  # of the class in the data; None: it has no labels
    points: int


Sides = dict[str, Side]
"""By the label, ``-1`` and ``+1``; ``+1`` alone where points have no labels."""


def sides_from(values: Mapping[str, Any] | None) -> Sides | None:
    """From the keys of a result."""
    return None if values is None else {label: Side(**side) for label, side in values.items()}


def class_names(sides: Sides | None) -> tuple[str, str] | None:
    """Of -1 and +1; None where points have no labels."""
    names = [] if sides is None else [side.name for side in sides.values()]
    return (names[0], names[1]) if len(names) == 2 and names[0] is not None and names[1] is not None else None


def plane_of(y: Floats, m: int, view: str = "") -> tuple[Floats, float]:
    """(w, bias) in the units of the stored points, from y (m,) or (m+1,) of points as a certificate's ``view`` sees them."""
    transform = parse_view(view)[1]
    return (y[:m], float(y[m:].sum())) if transform is None else transform.restore_plane(y, m)


STRICTLY = {"feasible": "strictly feasible", "infeasible": "not strictly feasible"}
"""What verdicts on cones are called: with no point in the interior there may be one on the boundary."""
ALL_POSITIVE_ROW = Row("labels", "none: all points count as +1")
"""Of the homogeneous question, which was asked by name."""


def cost_row(passes: float, method: str, reads: float, size: int, seconds: float) -> Row:
    """What a run took, with a size in bytes, as a row."""
    return Row("cost", f"{passes:.4g} passes of {method}, {reads:.4g} reads in all, {format_bytes(size)}, {seconds:.2f} s")


class Fitted(Answer, Plotted, Predictor):
    """A result that has one direction, or none, and its certificate."""

    stopped: Stop
    iterations: int
    sides: Sides | None
    certificate: str | None
    trace: Trace | None = None
    points: Dataset | None = None
    function: Function | None = None
    loaded: bool = False  # from files, which anybody may have written

    @property
    def success(self) -> bool:
        """Whether what was asked for was reached and verified: a verdict, the margin up to its tolerance, or the gaps."""
        return self.stopped == Stop.VERDICT

    @property
    def nit(self) -> int:
        return self.iterations

    @property
    def classes(self) -> tuple[str, str] | None:
        """Names of the classes -1 and +1; None for points without labels."""
        return class_names(self.sides)

    def _traces(self) -> Mapping[str, Any]:
        return {"": self.trace or ()}

    def to_model(self) -> FittedModel:
        from dfeas.answers.prediction.model import FittedModel

        files = (self.certificate or "the result",)
        model = FittedModel.of("the result", self.to_json(), (self._certificate,), files, None)
        return replace(model, points=self.points, function=self.function, follow=not self.loaded)


@dataclass(frozen=True, repr=False)
class Result(Fitted):
    """A verdict with its evidence. Shaped like SciPy's ``OptimizeResult``: success, status, message, nit.

    ``coef`` and ``bias`` are in the units of X, whatever scaling was asked for: X @ coef + bias is above 0 if a point is
    predicted to be of the class ``classes[1]``. ``separator`` is what the certificate holds and what is proved, for points as
    they were seen: of points that were scaled or centred, or with ``evidence.integers``, ``coef`` and ``bias`` are its
    rounding. Points nearer than rounding errors may be on the wrong side of it, as ``predict`` knows. Type checkers assume that
    fields are there which a result may lack, as ``verdict`` tells.

    Attributes
    ----------
    verdict : Verdict
        ``feasible``, ``infeasible``, ``eps-infeasible`` or ``undecided``.
    stopped : Stop
        Why the run ended: ``verdict``, or the limit that was reached.
    proof : Proof
        ``exact``, ``rigorous``, ``floating_point`` or ``none``.
    method : str
        The method that found the verdict.
    why : str
        Why this method.
    m : int
        Features.
    n : int
        Points.
    intercept : bool
        Whether there is a feature equal to 1.
    margin_lower : float
        The lower end of the bracket: margin_lower <= best margin <= margin_upper. Proved if feasible, otherwise float64's.
    margin_upper : float
        The upper end; no unit vector has a greater margin on the unit points. Below 0 if the points are infeasible and their
        hull is proved to have a ball of radius -margin_upper about the origin. If feasible it is float64's.
    eps : float, optional
        The |Ax| that counted as an answer, if one did.
    margin_tolerance : float, optional
        The tolerance that was asked for, if any.
    passes : float
        Reads that the method asked for; a partial read counts as its share.
    reads : float
        All reads, also those of survey, recovery and check.
    iterations : int
        Steps of the method.
    bytes_read : int
        Bytes of these reads, from storage or from blocks kept in memory.
    seconds : float
        Wall time of the run.
    certificate : str, optional
        Path of its file.
    fingerprint : str
        Hash of the data.
    versions : dict of str
        Versions of dfeas and the libraries that computed the result.
    data : dict, optional
        Path, labels, positive, intercept; None for arrays in memory.
    conflicts : list of dict
        Point, label, weight, score of an infeasible verdict, the most suspect first; with the name of its row, where a frame
        of pandas has an index or a table an ``id``.
    detail : str
        What the checker proved, in words.
    bits : str, optional
        ``same``; ``mixed`` if a worker had other software or another processor than this process; None: there were no
        workers.
    workers : list of dict, optional
        These workers, and those left out, with the reason; None: there are none.
    kernel : dict, optional
        Name and parameters.
    sides : dict of Side, optional
        Which class is -1 and which is +1, and how many points each has; None for cones, or if not known.
    features : list of str, optional
        Names of the features; None if the data has none.
    evidence : Certificate, optional
        What the file of the certificate holds.
    weighed : Sparse, optional
        For a separator: the weights that give margin_upper.
    nearest : Columns, optional
        For a separator: points nearest to it, for a run that begins from this one.
    points : Dataset, optional
        Points in memory: a kernel needs some to predict.
    function : Function, optional
        The Python function that is the kernel.
    trace : Trace, optional
        What was known after each pass, as ``trace.jsonl`` has it: a sequence of dictionaries, ``to_frame()`` makes a table.
    x : array (m,) of float64, optional
        For a feasible problem of ``dfeas.from_scs``: the solution that y stands for, rounded.
    dual : array (N,) of float64, optional
        For an infeasible one: z in the dual cone with A'z = 0 and b'z <= 0, rounded. No file has it.
    loaded : bool
        Whether it comes from the files of a run, which another person may have written.

    Examples
    --------
    >>> import dfeas
    >>> X, labels = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]], [1, 1, -1]
    >>> result = dfeas.solve(X, labels)
    >>> print(result.verdict, result.success, result.margin_lower <= result.margin_upper)
    feasible True True
    >>> result.predict([[3.0, 1.0], [-2.0, 0.0]]).tolist()
    [1, -1]
    >>> print(str(result).splitlines()[0])
    verdict      feasible (proof: rigorous)
    """

    HIDDEN: ClassVar = ("evidence", "weighed", "nearest", "points", "function", "dual", "trace", "loaded")
    DERIVED: ClassVar = ("success", "status", "message")
    READ: ClassVar = {"verdict": Verdict, "stopped": Stop, "proof": Proof, "sides": sides_from, "x": FLOATS}

    verdict: Verdict
    stopped: Stop
    proof: Proof
    method: str
    why: str
    m: int
    n: int
    intercept: bool
    margin_lower: float
    margin_upper: float
    eps: float | None
    margin_tolerance: float | None
    passes: float
    reads: float
    iterations: int
    bytes_read: int
    seconds: float
    certificate: str | None
    fingerprint: str
    versions: dict[str, str]
    data: dict[str, Any] | None
    conflicts: list[dict[str, Any]]
    detail: str
    bits: str | None = None
    workers: list[dict[str, str]] | None = None
    kernel: dict[str, Any] | None = None
    sides: Sides | None = None
    features: list[str] | Any = None
    evidence: Certificate | None = field(default=None, repr=False, compare=False)
    weighed: Sparse | None = field(default=None, repr=False, compare=False)
    nearest: Columns | None = field(default=None, repr=False, compare=False)
    points: Dataset | None = field(default=None, repr=False, compare=False)
    function: Function | None = field(default=None, repr=False, compare=False)
    x: Floats | Any = field(default=None, repr=False, compare=False)
    dual: Floats | None = field(default=None, repr=False, compare=False)
    trace: Trace | Any = field(default=None, repr=False, compare=False)
    loaded: bool = field(default=False, repr=False, compare=False)

    @classmethod
    def load(cls, run: str | Place) -> Result:
        """Read it back from the folder of its run, with its certificate."""
        from dfeas.answers.prediction.model import named_as_there

        run = place(run)
        values = named_as_there(load_result(run))
        certificate = certificate_of(run, values)
        file = None if certificate is None else str(run / CERTIFICATE)
        return cls.from_json(values, evidence=certificate, certificate=file, trace=Trace(run / TRACE), loaded=True)

    def unpack(self, problem: Any) -> None:
        """Set the values of the variables of a problem of cvxpy, or the dual values of its constraints.

        Parameters
        ----------
        problem : cvxpy.Problem
            What ``dfeas.from_cvxpy`` made the data of.

        Raises
        ------
        UndecidedError
            There are no such values.
        BadInputError
            The problem is another one.
        """
        leaves.unpack_cvxpy(problem, self.x, self.dual)

    def verify(
        self,
        X: Any = None,
        y: Any = None,
        *,
        mask: Any = None,
        kernel: Function | None = None,
        quick: bool = False,
        memory: str | int | None = None,
        follow: bool = False,
    ) -> Check:
        """Check the certificate against the data, by code that shares nothing with the search.

        Parameters
        ----------
        X, y, mask : optional
            The data, as of ``dfeas.solve``, if it was in memory or has been moved.
        kernel, quick, memory : optional
            As in ``dfeas.verify_run``.
        follow : bool
            As there, of a result that ``dfeas.load`` has read; what a call returned is about the data that the call named.

        Returns
        -------
        Check
            What was proved.

        Raises
        ------
        UndecidedError
            There is no verdict.
        CheckFailedError
            The certificate does not prove the verdict of this data.
        BadInputError, CorruptDataError
            The data is not given, or is other data.
        UsageError
            The files have a URL as the place of the data, and neither ``X`` is given nor ``follow``.
        """
        from dfeas.answers.check.proof import find_data, prove_again

        require_type("follow", follow, "bool")
        if self.evidence is None or self.verdict == Verdict.UNDECIDED:
            raise UndecidedError(f"the result is undecided ({self.stopped}): it claims nothing to check")
        spec = find_data("the result", self.to_json(), DataSpec(X, y, mask=mask), self.evidence.view, follow or not self.loaded)
        proved = prove_again("the result", spec, self.evidence, kernel or self.function, quick, memory)
        if self.verdict != proved.verdict and (self.verdict, proved.verdict) != (Verdict.EPS_INFEASIBLE, Verdict.INFEASIBLE):
            raise CheckFailedError(f"the result says {self.verdict}, its certificate proves {proved.verdict}")
        return proved

    @property
    def status(self) -> int:
        """0 for a verdict, otherwise a number for the reason why the run stopped."""
        return list(Stop).index(self.stopped)

    @property
    def message(self) -> str:
        return self.detail or self.stopped.sentence

    @property
    def term(self) -> str:
        """The verdict, in the words of its field: of cones strictly feasible, or not."""
        return next((word for word in STRICTLY.values() if self.detail.startswith(f"{word}: ")), self.verdict)

    @property
    def separator(self) -> NDArray[np.float64] | Any:
        """The separator (m,) or (m+1,) with the intercept last; for an undecided run the best direction, which is none.

        Where float64 has none that is proved it is the rounding of integers, ``evidence.integers``.
        With a kernel it has no entries: it is the sum of the unit vectors of the points ``support`` times ``weights``.
        """
        separates = self.evidence is not None and self.evidence.kind == "separator" and not self.evidence.kernel
        return self.evidence.y if self.evidence is not None and separates else None

    @property
    def coef(self) -> Floats | Any:
        """(m,) of the hyperplane, in the units of X; None with a kernel, and where no direction is left."""
        return None if self._plane is None else self._plane[0]

    @property
    def bias(self) -> float | Any:
        """What X @ coef is added to; 0 without an intercept, unless points were centred."""
        return None if self._plane is None else self._plane[1]

    @property
    def _plane(self) -> tuple[Floats, float] | None:
        if self.separator is None or self.evidence is None:
            return None
        return plane_of(self.separator, self.m, self.evidence.view)

    @property
    def support(self) -> NDArray[np.int64] | Any:
        """Points of the Gordan certificate, or of a separator with a kernel."""
        return None if self._combination is None else self._combination.support

    @property
    def _combination(self) -> Certificate | None:
        """The evidence, if it weighs points."""
        evidence = self.evidence
        return evidence if evidence is not None and (evidence.kind == "gordan" or evidence.kernel) else None

    @property
    def weights(self) -> NDArray[np.float64] | Any:
        """Their weights on signed unit columns: on the simplex, or, of a separator, of any sign."""
        return None if self._combination is None else self._combination.weights

    @property
    def _certificate(self) -> Certificate | None:
        return self.evidence

    def __getstate__(self) -> dict[str, Any]:
        """Points stay where they are: a result that travels, or is kept, has none, and with a kernel cannot predict there."""
        return {**vars(self), "points": None, "function": None}

    @property
    def all_positive(self) -> bool:
        """Whether the question was asked without labels: A'y > 0 for all points as they are."""
        return self.sides is not None and len(self.sides) == 1

    def _parts(self) -> Iterator[Part]:
        smaller = f", margins up to {self.margin_upper:.3g} are not excluded" if self.verdict == Verdict.EPS_INFEASIBLE else ""
        yield Row("verdict", f" (proof: {self.proof}){smaller}", self.term)
        yield Row("", self.message.removeprefix(f"{self.term}: "))
        if self.all_positive:
            yield ALL_POSITIVE_ROW
        yield self.margin_row
        if self.margin_upper < 0 and self.evidence is not None:
            view = parse_view(self.evidence.view)[1]
            norm = "each point's norm" if view is None or view.normalize else "the largest norm"
            # rounded down: the claim is proved for this number
            percent = Context(prec=3, rounding=ROUND_DOWN).multiply(Decimal(-self.margin_upper), 100)
            yield Row("", f"remains infeasible under any perturbation of less than {percent:g} % of {norm}")
        yield cost_row(self.passes, self.method, self.reads, self.bytes_read, self.seconds)
        yield from self._conflict_rows()

    @property
    def margin_row(self) -> Row:
        return Row("margin", f"{self.margin_lower:.6g} .. {self.margin_upper:.6g}")

    def _conflict_rows(self) -> Iterator[Row]:
        if not self.conflicts:
            return
        total, first = 0 if self.support is None else len(self.support), self.conflicts[:5]
        scored = first[0]["score"] is not None
        rest = f", {'the most suspect' if scored else 'the heaviest'} of them:" if total > len(first) else ":"
        yield Row("conflict", f"{total} points{rest}")
        for entry in first:
            score = f"  score {entry['score']:+.6f}" if scored else ""
            name = f" ({entry['name']})" if entry.get("name") is not None else ""
            yield Row("", f"point {entry['point']}{name}  label {entry['label']}{score}  weight {entry['weight']:.6g}")
