"""Firth's penalised likelihood: published numbers, an exact theorem, and the definition of each number it returns."""

import flint
import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
from numpy.typing import NDArray

import dfeas
from dfeas.analysis.firth import FALL

ENDOMETRIAL = """
0 13 164 0  0 16 226 0  0  8 314 0  0 34 268 0  0 20 128 0  0  5 231 0  0 17 180 0  0 10 168 0  0 26 156 0  0 17 231 0
0  8 201 0  0  7 189 0  0 20 315 0  0 10 123 0  0 18 127 0  0 16 176 0  0 18 200 0  0  8 264 1  0 29  88 1  0 12 127 1
0 20 137 1  1 38  97 1  1 22 114 1  1  7  88 1  1 25  91 1  1 15  58 1  0  7  97 1  0 28 150 0  0 11 133 0  0 19 237 0
0 10 182 0  0 10 313 0  0 18 131 0  0 14 192 0  0 21 164 0  0 11 201 0  0 17 188 0  0 25 193 0  0 16 211 0  0 19 129 0
0 15 172 0  0 33  75 0  0 24 192 0  0 48 184 1  0 12 111 1  0 19 161 1  0  2 118 1  1 22 144 1  1 40 118 1  1  5  93 1
1  0 117 1  0 21 119 1  0 15 106 1  0 29 202 0  0 15 229 0  0 12 233 0  0  3 290 0  0 20 170 0  0 23 141 0  0 12 225 0
0 22 154 0  0 42 197 0  0 15 175 0  0 13 216 0  0 14 257 0  0 19 137 0  0 12 361 0  0 13 204 0  0 10 217 0  0 12 169 1
1 49  27 1  0  6 184 1  0  5 130 1  0 17  96 1  1 11 101 1  1 21  98 1  0  5  35 1  1 19 102 1  0 33  85 1
"""
"""NV, PI, 100 EH and HG of 79 patients: Heinze and Schemper 2002, also ``endometrial`` of brglm2."""


def test_the_endometrial_data_gives_what_logistf_publishes() -> None:
    table = pd.DataFrame(np.array(ENDOMETRIAL.split(), float).reshape(-1, 4), columns=["NV", "PI", "EH", "HG"])
    table = table.assign(EH=(table["EH"] / 100).round(2), HG=table["HG"].astype(int))
    found = dfeas.check_separation(table, "HG")
    assert {each.name: each.estimate for each in found.estimates}["NV"] == "+Inf"
    fit = dfeas.firth(table, "HG")
    assert fit.names == ["NV", "PI", "EH", "intercept"]
    np.testing.assert_allclose(fit.coef, [2.92927330, -0.03475175, -2.60416387, 3.77455951], rtol=1e-7, atol=1.5e-8)
    np.testing.assert_allclose(fit.low, [0.6097244, -0.1244587, -4.3651832, 1.0825371], rtol=1e-5)
    np.testing.assert_allclose(fit.high, [7.85463171, 0.04045547, -1.23272106, 7.20928050], rtol=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_a_table_of_two_by_two_has_the_log_odds_with_a_half_in_each_cell(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 6, (2, 2)) * (rng.random((2, 2)) < 0.8)
    cells[:, 0] += cells.sum(axis=1) == 0
    cells[0, 1] += not cells[:, 1].any()  # both outcomes are there
    cells[1, 0] += not cells[:, 0].any()
    x, y = np.repeat([0, 0, 1, 1], cells.ravel()), np.repeat([0, 1, 0, 1], cells.ravel())
    fit = dfeas.firth(x[:, None], y)
    odds = np.log((cells[:, 1] + 0.5) / (cells[:, 0] + 0.5))
    np.testing.assert_allclose(fit.coef, [odds[1] - odds[0], odds[0]], atol=1e-8)
    shares = scipy.special.expit(odds)
    variances = 1 / (cells.sum(axis=1) * shares * (1 - shares))
    np.testing.assert_allclose(fit.standard_errors, np.sqrt([variances.sum(), variances[0]]), rtol=1e-7)
    counts = dfeas.firth(x[:, None], y, outcome="poisson")  # of counts: a half beside each sum
    sums = np.log((cells[:, 1] + 0.5) / cells.sum(axis=1))
    np.testing.assert_allclose(counts.coef, [sums[1] - sums[0], sums[0]], atol=1e-8)


class Penalised:
    """The definition, of rows (n, p), with derivatives by steps along the imaginary axis."""

    def __init__(self, Z: NDArray[np.float64], y: NDArray[np.int64], offset: NDArray[np.float64], counts: bool) -> None:
        self.Z, self.y, self.offset, self.counts = Z, y, offset, counts

    def __call__(self, b: NDArray[np.float64]) -> complex:
        t = self.Z @ b + self.offset
        e = np.exp(t)
        weight, normal = (e, e) if self.counts else (e / (1 + e) ** 2, np.log(1 + e))
        return complex(self.y @ t - normal.sum() + np.log(np.linalg.det(self.Z.T @ (weight[:, None] * self.Z))) / 2)

    def slope(self, b: NDArray[np.float64], free: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.array([self(b + 1e-30j * np.eye(len(b))[place]).imag / 1e-30 for place in free])

    def maximise(self, b: NDArray[np.float64], free: NDArray[np.int64]) -> NDArray[np.float64]:
        def whole(some: NDArray[np.float64]) -> NDArray[np.float64]:
            other = b.copy()
            other[free] = some
            return other

        near = scipy.optimize.minimize(
            lambda some: -self(whole(some)).real, b[free], jac=lambda some: -self.slope(whole(some), free), method="BFGS"
        )
        return whole(scipy.optimize.root(lambda some: self.slope(whole(some), free), near.x, tol=1e-13).x)


@pytest.mark.parametrize("seed", range(6))
def test_estimates_maximise_the_definition_and_ends_are_those_of_profiles(seed: int) -> None:
    rng, counts = np.random.default_rng(seed), bool(seed % 2)
    n, m = int(rng.integers(12, 50)), int(rng.integers(1, 4))
    X, scale = rng.normal(size=(n, m)), 10.0 ** rng.integers(-8, 9, m)
    y = rng.poisson(1.0, n) if counts else (rng.random(n) < 0.5).astype(int)
    y = (X[:, 0] > 0).astype(int) if seed % 3 == 0 and not counts else y  # separated
    years = rng.integers(1, 9, n) if seed % 4 > 1 else np.ones(n)
    table = pd.DataFrame(X * scale, columns=[f"x{j}" for j in range(m)]).assign(y=y, years=years)
    formula = "y ~ " + " + ".join(f"x{j}" for j in range(m)) + (" + offset(log(years))" if seed % 4 > 1 else "")
    fit = dfeas.firth(formula, table, outcome="poisson" if counts else "binary")
    units = np.append(scale, 1.0)
    asked = Penalised(np.hstack([X, np.ones((n, 1))]), y, np.log(years), counts)
    every = np.arange(m + 1)
    best = asked.maximise(np.zeros(m + 1), every)
    errors = fit.standard_errors * units
    np.testing.assert_allclose(fit.coef * units, best, atol=1e-8 * errors.max())
    assert fit.log_likelihood == pytest.approx(asked(best).real + np.log(scale).sum(), rel=1e-12)
    for place in every:
        free = np.delete(every, place)
        for end in (fit.low[place], fit.high[place], 0.0):
            held = fit.coef * units
            held[place] = end * units[place]
            fall = 2 * (asked(best).real - asked(asked.maximise(held, free)).real)
            if end:
                assert fall == pytest.approx(scipy.stats.chi2.ppf(0.95, 1), rel=1e-7)
            else:
                assert fit.p[place] == pytest.approx(scipy.stats.chi2.sf(fall, 1), rel=1e-6)
    assert (fit.low < fit.coef).all()
    assert (fit.coef < fit.high).all()


def test_levels_classes_gaps_and_frames_are_those_of_check_separation() -> None:
    assert scipy.stats.chi2.ppf(0.95, 1) == FALL
    frame = pd.DataFrame({"age": [31, 44, 52, 38, 61, 47, None, 29], "ward": list("aabbccab"), "died": list("nynyyyyn")})
    fit = dfeas.firth(frame, "died", missing="drop")
    found = dfeas.check_separation(frame, "died", missing="drop")
    assert fit.names == [each.name for each in found.estimates]
    assert fit.notes == found.notes == ["1 of 8 rows miss a value, and is dropped"]
    other = dfeas.firth(frame, "died", positive="n", missing="drop")
    np.testing.assert_allclose(other.coef, -fit.coef, rtol=1e-6, atol=1e-9)
    assert fit.to_frame()["coefficient"].tolist() == fit.names
    assert fit.classes == ("n", "y")
    assert "that y comes rather than n, 7 rows" in str(fit)
    shares = dfeas.firth([[0.0], [1.0], [2.0], [5.0]], [0.25, 0.5, 1.0, 0.5], outcome="binary")
    assert np.isfinite(shares.coef).all()


def test_columns_that_follow_from_others_have_no_estimates() -> None:
    X, y = np.arange(24.0).reshape(8, 3) % 7, np.arange(8) > 4
    wide = np.column_stack([np.ones(8), X[:, 0], X[:, 0] * 3 - 1, X[:, 1], np.zeros(8)])
    fit, plain = dfeas.firth(wide, y), dfeas.firth(X[:, :2], y)
    assert np.isnan(fit.coef).tolist() == np.isnan(fit.p).tolist() == [True, False, True, False, True, False]
    np.testing.assert_allclose(fit.coef[[1, 3, 5]], plain.coef, rtol=1e-7)
    assert fit.notes[-1] == "no estimates of 0, 2, 4: as far as float64 tells, they follow from columns before them"


def distance(Z: NDArray[np.float64], y: NDArray[np.int64], b: NDArray[np.float64]) -> float:
    """That of coefficients b to the maximum of a logistic regression, in standard errors, by one step with 300 bits."""
    with flint.ctx.workprec(300):
        rows = flint.arb_mat(Z.tolist())
        t = rows * flint.arb_mat([[value] for value in b.tolist()])
        mean = [1 / (1 + (-t[i, 0]).exp()) for i in range(len(Z))]
        rest = [1 / (1 + t[i, 0].exp()) for i in range(len(Z))]
        half = flint.arb_mat([[(mean[i] * rest[i]).sqrt() * value for value in row] for i, row in enumerate(Z.tolist())])
        inverse = (half.transpose() * half).inv()
        other = half * inverse
        hat = [sum(other[i, j] * half[i, j] for j in range(len(b))) for i in range(len(Z))]
        residual = [(rest[i] if y[i] else -mean[i]) + hat[i] * (flint.arb("0.5") - mean[i]) for i in range(len(Z))]
        score = rows.transpose() * flint.arb_mat([[value] for value in residual])
        return float((score.transpose() * inverse * score)[0, 0].sqrt())


@pytest.mark.parametrize(("n", "m"), [(300, 1), (300, 4), (1000, 2), (2000, 1)])
def test_many_rows_that_a_hyperplane_separates_have_a_maximum(n: int, m: int) -> None:
    """It is far away: hundreds of standard deviations, where both sums of the likelihood are large and cancel."""
    rng = np.random.default_rng(n + m)
    X = rng.normal(size=(n, m))
    y = (X @ rng.normal(size=m) > 0).astype(int)
    fit = dfeas.firth(X, y)
    assert np.abs(fit.coef).max() > 40
    assert distance(np.hstack([X, np.ones((n, 1))]), y, fit.coef) < 1e-7
    ends = np.array([fit.low, fit.high])
    assert np.isfinite(ends).all()
    assert (ends[0] < fit.coef).all()
    assert (fit.coef < ends[1]).all()
