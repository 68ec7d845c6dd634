"""Mirror prox in one pass a step, for min over x in the simplex, max over y in the unit ball, of y'Ax; and winnow accelerated.

Reference: Chambolle and Pock 2016, Algorithm 1 with Bregman distances (ergodic rate); Malitsky and Pock 2018, Algorithm 1 (line
search, for Euclidean distances; the proof below has it for these). Of methods that use the last gradient again (Popov 1980;
Malitsky and Tam 2020) it is the one whose x step sees the y step just made, and so may step twice as far. Scaling as in mirror
prox, alpha_x = 1 / log n, alpha_y = 2:

    y+ = project(y + (gamma Ax + d) / alpha_y)      d = gamma_last A(x - x_last): the step before, once more
    g+ = g + (gamma/alpha_x) y+                     x+ = softmax(-A'g+)

g is the running sum of (gamma/alpha_x) y, so that nothing n-dimensional is kept, and its direction is that of the average of y:
min_j a_j'y of the average is ``low`` of the soft question itself. The averages of x+ and y+, weighted by gamma, are the answer.

Test of a step, all of it known after the one read at g+:   gamma^2 |A(x+ - x)|^2 / (2 alpha_y) <= alpha_x KL(x+, x).
Guarantee: with steps that pass, |A x_average| - min_j a_j'y_average <= 2 / (sum of gamma) after every step, plus the 1e-6 that
``Steps.accept`` allows for rounding. gamma = 1/L = sqrt(alpha_x alpha_y) always passes (Pinsker, |a_j| <= 1), and then the gap
after t steps, which are t + 1 passes, is at most sqrt(2 log n) / t: that of mirror prox in half the passes.
Proof: for every p on the simplex and q in the ball, with D(x, y) = alpha_x KL(p, x) + alpha_y/2 |q - y|^2, the three-point
inequalities of the two steps add up to

    gamma (q'Ax+ - y+'Ap) <= D(x, y) - D(x+, y+) + d+'(q - y+) - d'(q - y)
                             + d'(y+ - y) - alpha_y/2 |y+ - y|^2 - alpha_x KL(x+, x)

where d'(y+ - y) <= |d|^2 / (2 alpha_y) + alpha_y/2 |y+ - y|^2, and the test of the step before pays the first from its KL.
The sum telescopes to D(x_0, y_0) <= 2, less the last D, plus d'(q - y), less the last KL: at most 2 by the last test.
Passes: one for Ax at the start, then one a step, however many steps are tried on it.
Evidence: both ends of the bracket; x is a mixture of the softmaxes.

Over two simplices it is winnow accelerated, of which Ramdas and Pena 2014, section 1.1, say that it exists: |y|_1 <= 1, as
weights u of 2 m features, those of A and their negatives, with entropy and alpha_y = 1 / log(2 m):

    z+ = z + (gamma Ax + d) / alpha_y      (u+, u-) = softmax(z, -z),   y = u+ - u-

Guarantee: the proof above needs of half the squared norm that it is strongly convex, which the entropy is for |.|_1 (Pinsker).
With KL in its place and |.|_inf for |d| in the test, |A x_average|_inf - min_j a_j'y_average <= 2 / (sum of gamma). Steps of
1/L = sqrt(alpha_x alpha_y) / (the largest |a_ij|) pass, so that with rho_1 = max over |y|_1 <= 1 of min_j a_j'y, y separates
after 2 sqrt(log n log 2m) max |a_ij| / rho_1 steps, where winnow makes 2 log(2 m) / rho_1^2 corrections.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dfeas.methods.mirror_prox import TWO, CrossPolytope, EuclideanBall, Ladder, LadderState, Steps, add_average, raise_lower
from dfeas.methods.protocol import Facts, Traits
from dfeas.methods.vector import Vector, column, softmin
from dfeas.records import replace

FIVE = Steps((0.35, 0.6, 1.0, 1.7, 2.8), 0.2, (TWO,))
"""Five steps on one read. Three, (0.5, 1, 2), need about as many passes on halfspaces and a few more on short runs."""


class OnePassState(LadderState, frozen=True, kw_only=True):
    """The average is one of x+."""

    z: Vector  # tells y: it is y, or tells the weights of features
    Ax: Vector | None = None  # None before the first pass
    d: Vector  # gamma A(x - x before)
    alpha: float  # alpha_y


class OnePassMirrorProx(Ladder[OnePassState], Struct, frozen=True):
    """One pass a step, with a rule for it."""

    rule: Steps = FIVE
    traits: Traits = Traits(
        "mirror-prox-one-pass", "one read a step, half the work", points=0.025, cones=0.025, weighs_all=True
    )
    ball: EuclideanBall = EuclideanBall()

    def init(self, facts: Facts) -> OnePassState:
        return OnePassState(z=facts.zero, d=facts.zero, alpha=self.ball.alpha(facts.m), **self.begin(facts))

    def ask(self, state: OnePassState) -> Any:
        """Soft questions, one for each gamma that is tried, and hard ones for candidates that ride along."""
        return softmin(*self._questions(state))

    def _questions(self, state: OnePassState) -> tuple[list[Vector], list[Vector]]:
        if state.Ax is None:
            return [state.g], []
        gammas = self.gammas(state)
        ys = [self.ball.y(self._next_z(state, gamma)) for gamma in gammas]
        hard = [ys[-1], state.Ax_sum][: 2 if state.steps else 1]
        return [state.g + gamma * state.log_n * y for gamma, y in zip(gammas, ys, strict=True)], hard

    def _next_z(self, state: OnePassState, gamma: float) -> Any:
        assert state.Ax is not None
        return self.ball.move(state.z, (gamma * state.Ax + state.d) / state.alpha)

    def tell(self, state: OnePassState, answer: Any) -> OnePassState:
        if state.Ax is None:
            return replace(state, Ax=column(answer, 0), lse=float(answer.lse[0]))
        last, (soft, hard) = state.Ax, self._questions(state)
        state = replace(state, bracket=raise_lower(state.bracket, [*soft, *hard], answer))

        def excess(i: int, gamma: float) -> float:
            g, Ax = soft[i], column(answer, i)
            d = gamma * (Ax - last)
            kl = float((state.g - g) @ Ax) - float(answer.lse[i]) + state.lse
            return self.ball.square(d) / (2 * state.alpha) - kl / state.log_n

        i = self.choose_step(state, excess)
        if i is None:
            return replace(state, gamma=self.shorter(state))
        gamma, Ax, lse = self.gammas(state)[i], column(answer, i), float(answer.lse[i])
        known = add_average(state, soft[i], lse, gamma, Ax)
        return replace(state, g=soft[i], z=self._next_z(state, gamma), Ax=Ax, lse=lse, d=gamma * (Ax - last), **known)

    def questions(self, rule: Steps) -> int:
        return len(rule.factors) + 2

    def bound(self, facts: Facts, margin: float) -> float:
        """One pass, and one a step, the last of which must pass the margin."""
        return 2 + self.steps(facts, margin)


SMOOTH_WINNOW = OnePassMirrorProx(
    traits=Traits("smooth-winnow", "one read a step; for separators of few features", points=0.0015, weighs_all=True),
    ball=CrossPolytope(),
)
