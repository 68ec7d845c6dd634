"""Iterated smooth perceptron - von Neumann: the smooth perceptron with Euclidean prox, which ends either way.

Reference: Ramdas and Pena 2014, Algorithms 6 and 7 for the linear kernel; Soheili and Pena 2013. Around a point q of the
simplex, first 1/n, and with lambda >= |A|^2:

    p^q_mu(y) = argmin over the simplex of <A'y, p> + (mu / 2) |p - q|^2
    y_0 = A q,  mu_0 = 2 lambda,  p_0 = p^q_mu0(y_0),  theta_k = 2 / (k + 3)
    y_k+1  = (1 - theta) (y_k + theta A p_k) + theta^2 A p^q_muk(y_k)
    mu_k+1 = (1 - theta) mu_k
    p_k+1  = (1 - theta) p_k + theta p^q_muk+1(y_k+1)

until A'y_k > 0, or |A p_k| < delta = |A q| / gamma; then q <- p_k and again. gamma is 2, or that of ``ispvn:gamma=4``. One loop
to a given delta, 0.0005 or that of ``snkpvn:delta=0.01``, is Algorithm 6, ``snkpvn``.

The papers take lambda = n. The largest eigenvalue of A A' is far smaller: one pass gives A A' where m^2 numbers are little;
beyond that, and for ``ispvn:lambda=n``, n it is. q, v = q - A'y / mu and p are n-vectors on scratch storage, a block of rows
at a time; the driver holds m-vectors.

Passes: one at the start; then two reads a step, for v and least score, and for A p; between them the threshold of the
projection is found from v alone, by Newton's method with several thresholds at once.
Guarantee: -|A p_k|^2 / 2 >= L_mu(y_k) at every step, with L_mu(y) = max over p of -<A'y, p> - (mu / 2) |p - q|^2, + |y|^2 / 2;
hence an inner loop ends within 2 sqrt(2 lambda) / rho steps when the margin rho is positive.
Evidence: both ends; x = p_k.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from math import ceil, inf, log, sqrt
from typing import Protocol

import numpy as np

from dfeas.errors import UsageError, format_bytes
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Bracket, Evidence, Facts, Method, MethodCost, ScratchVector, Traits, weights_text
from dfeas.methods.smooth_perceptron import theta
from dfeas.passes.protocol import OnVectors, Question
from dfeas.passes.softmin import Softmin, SoftminAnswer
from dfeas.passes.survey import Gram, GramAnswer
from dfeas.passes.vectors import Combine, CombineAnswer, Excess, ExcessAnswer, Shift, ShiftAnswer
from dfeas.records import replace

GAMMA = 2.0
"""delta = |A q| / gamma, as Yu et al. 2014 chose it."""
DELTA = 5e-4
"""Of one loop."""
OPTIONS = re.compile(r"(?::(gamma|delta)=([0-9.e+-]+))?(:lambda=n)?")
"""What may stand after the name of this method, and after that in the space of a kernel."""


@dataclass(frozen=True, slots=True)
class Search:
    """The threshold of a projection: sum of max(v - tau, 0) = 1 for some tau in low .. high."""

    low: float
    high: float
    count: float = -1.0  # entries above the point from which a Newton step led to low


@dataclass(frozen=True, slots=True)
class Threshold:
    """A projection is max(v - tau, 0) / total; total is 1 up to rounding."""

    tau: float
    total: float


@dataclass(frozen=True, slots=True)
class IspvnState:
    """Within an inner loop; which question comes next follows from what is known."""

    n: int
    lambda_: float  # |A|^2 is not above it; 0 before the first pass
    rounds: int  # inner loops begun
    steps: int  # of all inner loops
    k: int  # step of this inner loop whose p is awaited
    q: str  # name of the centre; empty for 1 / n
    delta: float  # the inner loop ends when |A p_k| is below
    y: Floats  # (m,) y_k, whose projection is sought
    mu: float  # mu_k
    Ap: Floats  # (m,) A p_k-1
    p: str  # name of p_k-1; empty before the first of an inner loop
    search: Search | None  # once v is written
    threshold: Threshold | None  # once it is found
    bracket: Bracket
    best: str  # name of the p with |A p| = bracket.upper
    gamma: float  # of delta; 0 where that is given, and there is one loop
    owner: str  # the method: in a race several have vectors on one scratch storage

    @property
    def v(self) -> str:
        """Name of q - A'y / mu."""
        return f"{self.owner}.v-{self.steps}"

    @property
    def next_p(self) -> str:
        return f"{self.owner}.p-{self.steps}"


@dataclass(frozen=True, slots=True)
class Ispvn(Method[IspvnState]):
    """lambda follows from A A' up to so many features, and is n beyond. Loop after loop, or one to the accuracy ``delta``."""

    # 2048: A A' is computed up to so many features: 32 MB
    gram_features: int = 2048
    gamma: float = GAMMA
    delta: float = 0.0
    traits: Traits = Traits(
        "ispvn", "two reads a step, and n-vectors on scratch storage", points=4e-4, weighs_all=True, stored=True
    )

    def with_options(self, name: str) -> Ispvn:
        gamma, delta, of_n = read_options(self, name)
        features = 0 if of_n else self.gram_features
        return replace(self, gamma=gamma, delta=delta, gram_features=features, traits=replace(self.traits, name=name))

    def init(self, facts: Facts) -> IspvnState:
        zero = np.zeros(facts.m)
        gamma, owner = 0.0 if self.delta else self.gamma, self.name.replace(":", ",")
        return IspvnState(facts.n, 0.0, 0, 0, 0, "", self.delta, zero, 0.0, zero, "", None, None, Bracket(), "", gamma, owner)

    def ask(self, state: IspvnState) -> Question:
        """|A|^2 and A 1/n; or scores; or a threshold; or the projection."""
        m = len(state.y)
        if state.lambda_ == 0:
            return Gram() if m <= self.gram_features else Softmin(np.zeros((m, 1)), np.ones(1))
        kept = (state.q, state.p, state.best, state.v)
        if state.search is None:
            shift = Shift(state.y, state.mu, 1 / state.n)
            return OnVectors(shift, _filter_names(state.q), (state.v,), points=True, keeps=_filter_names(*kept))
        if state.threshold is None:
            return OnVectors(Excess(_candidates(state.search)), (state.v,), (), points=False, keeps=_filter_names(*kept))
        combine = Combine(m, state.threshold.tau, state.threshold.total, _share(state))
        new = state.next_p
        return OnVectors(combine, _filter_names(state.v, state.p), (new,), points=True, keeps=_filter_names(*kept, new))

    def tell(self, state: IspvnState, answer: object) -> IspvnState:
        if isinstance(answer, ShiftAnswer):
            bracket = state.bracket.with_separator(state.y, answer.low)
            # no entry of a projection is above 1, and at most all of them are positive
            low = max(answer.greatest - 1, (answer.total - 1) / state.n)
            return replace(state, bracket=bracket, search=Search(low, answer.greatest))
        if isinstance(answer, ExcessAnswer):
            assert state.search is not None
            return _narrow_search(state, state.search, answer)
        if isinstance(answer, CombineAnswer):
            return _step(state, answer.Ap)
        if isinstance(answer, GramAnswer):
            greatest = float(np.linalg.eigvalsh(answer.square)[-1])
            # 1.0 + 1e-9: rounding in A A' and in its eigenvalues is below this
            return _around("", answer.total / state.n, replace(state, lambda_=(1.0 + 1e-9) * greatest))
        assert isinstance(answer, SoftminAnswer)
        return _around("", answer.mean[:, 0], replace(state, lambda_=float(state.n)))

    def bound(self, facts: Facts, margin: float) -> float:
        """One, and two for each of 2 sqrt(2 n) / margin steps of each of log(1 / margin) inner loops."""
        loops = 1 if self.delta else max(1, ceil(log(1 / margin) / log(self.gamma)))
        return 1 + 2 * loops * (1 + 2 * sqrt(2 * facts.n) / margin)

    def cost(self, facts: Facts) -> MethodCost:
        storage = f"and {format_bytes(40 * facts.n)} of scratch storage; {weights_text(facts)}, if there is no separator"
        return MethodCost(kept=8 * facts.m * min(facts.m, self.gram_features) * 4, remark=storage)

    def evidence(self, state: IspvnState) -> Evidence:
        best = ScratchVector(state.best)
        # 1e-6: a projection whose entries sum to 1 up to this is one; v = q - A'y / mu is rounded the more, the smaller mu is
        lost = state.threshold is not None and abs(state.threshold.total - 1) > 1e-6
        stalled = "the projection is lost in rounding: mu is too small" if lost else ""
        if self.delta and state.bracket.upper < self.delta:
            stalled = f"|Ax| is below delta = {self.delta:g}, which is where it ends"
        return Evidence(state.bracket, (lambda: best) if state.best else None, state.steps, stalled=stalled)


class Accurate(Protocol):
    """Loops, each to delta = |Aq| / gamma, or one to a delta."""

    @property
    def name(self) -> str: ...
    @property
    def gamma(self) -> float: ...
    @property
    def delta(self) -> float: ...


def read_options(method: Accurate, name: str) -> tuple[float, float, bool]:
    """The gamma, or the delta of one loop, that stands after the name of a method, and whether lambda = n does."""
    found, own = OPTIONS.fullmatch(name.removeprefix(method.name)), method.name
    what, low, high, said = ("delta", 0.0, 1.0, "D between 0 and 1") if method.delta else ("gamma", 1.0, inf, "G above 1")
    with suppress(ValueError):
        if found is not None and found[1] in (None, what):
            value = float(found[2] or method.delta or method.gamma)
            if low < value < high:
                return (method.gamma, value, found[3] is not None) if method.delta else (value, 0.0, found[3] is not None)
    raise UsageError(f"method {name}: expected {own}:lambda=n, {own}:{what}={said}, or {own}:{what}={said[0]}:lambda=n")


def _around(q: str, Aq: Floats, state: IspvnState) -> IspvnState:
    delta, mu = float(np.linalg.norm(Aq)) / state.gamma if state.gamma else state.delta, 2 * state.lambda_
    state = replace(state, rounds=state.rounds + 1, k=0, q=q, delta=delta, p="")
    return replace(state, y=Aq, mu=mu, Ap=Aq, search=None, threshold=None)


def _step(state: IspvnState, projected: Floats) -> IspvnState:
    """p_k is known from A p^q_mu(y_k): the next y, or the next centre."""
    share = _share(state)
    Ap = (1 - share) * state.Ap + share * projected
    upper = float(np.linalg.norm(Ap))
    best = state.next_p if upper < state.bracket.upper else state.best
    p = state.next_p
    state = replace(state, steps=state.steps + 1, bracket=state.bracket.with_upper(upper), best=best)
    if state.gamma and upper < state.delta:
        return _around(p, Ap, state)
    step = theta(state.k)
    y, mu = (1 - step) * (state.y + step * Ap) + step**2 * projected, (1 - step) * state.mu
    return replace(state, k=state.k + 1, y=y, mu=mu, Ap=Ap, p=p, search=None, threshold=None)


def _share(state: IspvnState) -> float:
    """Weight of the projection in p_k."""
    return theta(state.k - 1) if state.p else 1.0


def _candidates(search: Search) -> Floats:
    # 24: thresholds that are tried in one reduction
    return np.linspace(search.low, search.high, 24, endpoint=False)


def _narrow_search(state: IspvnState, search: Search, answer: ExcessAnswer) -> IspvnState:
    """A Newton step from the last threshold that is too low; it ends when no entry was passed."""
    tau = _candidates(search)
    value = answer.total - answer.count * tau - 1
    if answer.count[0] == search.count or value[0] <= 0:
        return replace(state, threshold=Threshold(float(tau[0]), float(value[0] + 1)))
    last = int(np.flatnonzero(value > 0)[-1])
    high = float(tau[last + 1]) if last + 1 < len(tau) else search.high
    low = float((answer.total[last] - 1) / answer.count[last])
    return replace(state, search=Search(min(low, high), high, float(answer.count[last])))


def _filter_names(*names: str) -> tuple[str, ...]:
    return tuple(name for name in names if name)


ONE_LOOP = Ispvn(delta=DELTA, traits=replace(Ispvn().traits, name="snkpvn"))
"""Algorithm 6: one loop, to a given accuracy."""
ON_CONES = Ispvn(gram_features=0, traits=replace(Ispvn().traits, points=None, cones=0.07))
"""n is the rank, and so is lambda; the prox is half of the squares of eigenvalues (``dfeas/cones/projection.py``)."""
