"""What a run would take, as ``dfeas.plan`` says it: of each method memory, passes and time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dfeas.display import Displayed, Grid, Part, Row
from dfeas.errors import format_bytes


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run with one method would cost."""

    method: str
    auto: bool  # whether ``auto`` takes it
    memory_bytes: int  # of this process, at the peak
    passes: float  # usual; with a kernel a product with the Gram matrix is one
    most_passes: float | None  # by its theorem, for a margin, or |Ax|, of ``margin``; None: there is none
    seconds: float  # usual
    remark: str


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Displayed):
    """Estimates for a dataset, of each method that can.

    Attributes
    ----------
    n : int
        Points.
    m : int
        Features.
    bytes : int
        Of stored points: what one read of the data takes.
    later_bytes : int
        What a later pass reads from storage, as this process does not keep it.
    threads : int
        Threads that read.
    first_seconds : float
        Time of a pass as the data is now, measured.
    later_seconds : float
        Time of one after it.
    margin : float, optional
        For which theorems bound the passes; None of a soft margin.
    estimates : tuple of Estimate
        What each method would take.
    classes : int
        Classes that are set against the rest on the same reads.
    kernel : str
        The kernel with its parameters, if there is one.
    product_bytes : int
        What a product with its Gram matrix reads from storage.
    value_seconds : float
        Time of one value of it, with all threads, measured.
    cones : str
        Which ones there are, if any; n counts their rows.
    data : str
        What messages call it.
    why : str
        Why ``auto`` takes what it takes.

    Examples
    --------
    >>> import dfeas
    >>> X, labels = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]], [1, 1, -1]
    >>> plan = dfeas.plan(X, labels, method="perceptron")
    >>> plan.n, plan.m, plan.bytes, [each.method for each in plan.estimates]
    (3, 2, 48, ['perceptron'])
    """

    n: int
    m: int
    bytes: int
    later_bytes: int
    threads: int
    first_seconds: float
    later_seconds: float
    margin: float | None
    estimates: tuple[Estimate, ...]
    classes: int = 1
    kernel: str = ""
    product_bytes: int = 0
    value_seconds: float = 0.0
    cones: str = ""
    data: str = "X"
    why: str = ""

    def _parts(self) -> Iterator[Part]:
        classes = f"; {self.classes} classes, each against the rest, on the same reads" if self.classes > 1 else ""
        what = f"rows of cones ({self.cones})" if self.cones else "points"
        yield Row(None, f"{self.data}: {self.n} {what} of {self.m} features, {format_bytes(self.bytes)}{classes}")
        first, later = self.first_seconds, self.later_seconds
        ends = f"({format_bytes(self.bytes / first)}/s), a later one {_time(later)} ({format_bytes(self.bytes / later)}/s)"
        yield Row(None, f"a pass takes {_time(first)} {ends}: measured now, {self.threads} threads")
        if self.kernel:
            yield Row(None, self._products())
        elif self.later_bytes:
            kept = format_bytes(self.bytes - self.later_bytes)
            yield Row(None, f"memory keeps {kept} of the data: a later pass reads the rest")
        else:
            yield Row(None, "memory keeps the data: a later pass reads nothing from storage")
        yield Row(None, "")
        yield self._grid()
        yield Row(None, "")
        if self.why and any(each.auto for each in self.estimates):
            yield Row(None, f"auto: {self.why}")
        if self.margin is None:
            yield Row(None, "passes and time as a relative gap of 1e-3 usually takes them; no theorem bounds them")
            return
        passes = "products (of a working set: passes)" if self.kernel else "passes"
        bound = f"at most: by theorem, for a margin or |Ax| of {self.margin:g}"
        yield Row(None, f"{passes} and time as they usually are, without the check; {bound}")

    def _grid(self) -> Grid:
        rows = []
        for e in self.estimates:
            remark = "; ".join(text for text in ("this is auto" if e.auto else "", e.remark) if text)
            most = "-" if e.most_passes is None else f"{e.most_passes:.3g}"
            rows.append([e.method, format_bytes(e.memory_bytes), f"{e.passes:.4g}", most, _time(e.seconds), remark])
        return Grid(["method", "memory", "products" if self.kernel else "passes", "at most", "time"], rows)

    def _products(self) -> str:
        """What a product with the Gram matrix of all points takes."""
        values = self.n * (self.n + 1) / 2
        read = format_bytes(self.product_bytes) if self.product_bytes else "nothing"
        seconds, whole = _time(values * self.value_seconds), format_bytes(8 * self.n**2)
        return (
            f"{self.kernel}: a product with the Gram matrix evaluates {values:.3g} values, {seconds}, and reads {read} from "
            f"storage; the matrix, which is never stored, has {whole}"
        )


def _time(seconds: float) -> str:
    """A length of time for people."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"
