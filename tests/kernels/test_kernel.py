"""Tiles of kernels against their definitions, entry by entry."""

from collections.abc import Callable

import numpy as np
import pytest

from dfeas.errors import BadInputError, UsageError
from dfeas.kernels.kernel import NormalisedKernel, kernel_of, usual_gamma

DEFINED: dict[str, tuple[dict[str, float], Callable[[np.ndarray, np.ndarray], float]]] = {
    "rbf": ({"gamma": 0.3}, lambda x, z: np.exp(-0.3 * ((x - z) ** 2).sum())),
    "exponential": ({"gamma": 0.3}, lambda x, z: np.exp(-0.3 * np.sqrt(((x - z) ** 2).sum()))),
    "polynomial": ({"gamma": 0.3, "degree": 4, "coef0": 0.7}, lambda x, z: (0.3 * x @ z + 0.7) ** 4),
    "linear": ({}, lambda x, z: x @ z),
    "cosine": ({}, lambda x, z: x @ z / np.sqrt((x @ x) * (z @ z))),
}


def normalised(function: Callable[[np.ndarray, np.ndarray], float], X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.array([[function(x, z) / np.sqrt(function(x, x) * function(z, z)) for z in Z] for x in X])


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("name", DEFINED)
def test_a_tile_is_the_normalised_kernel(name: str, single: bool) -> None:
    options, function = DEFINED[name]
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((9, 5)), rng.standard_normal((7, 5))
    kernel, open_gamma = kernel_of(name, **options)
    assert not open_gamma
    tile = kernel.tile(kernel.prepare(X, single)[0], kernel.prepare(Z, single)[1])
    assert np.allclose(tile, normalised(function, X, Z), rtol=1e-5 if single else 1e-13, atol=1e-6 if single else 1e-14)
    assert kernel.nonzero(X).all()


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_powers(degree: int) -> None:
    X = np.random.default_rng(1).standard_normal((6, 3))
    kernel, _ = kernel_of("polynomial", 0.5, degree, 0.0)
    tile = kernel.tile(*kernel.prepare(X, False))
    assert np.allclose(tile, normalised(lambda x, z: (x @ z) ** degree, X, X))


def test_a_function_is_normalised_too() -> None:
    X = np.random.default_rng(2).standard_normal((100, 3))
    kernel, _ = kernel_of(lambda a, b: 5 * (a @ b.T + 1))
    assert np.allclose(kernel.tile(*kernel.prepare(X, False)), normalised(lambda x, z: x @ z + 1, X, X))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda a, b: np.ones((3, 3)), "returned shape \\(3, 3\\) for blocks of 2 and 2 points, expected \\(2, 2\\)"),
        (lambda a, b: np.full((len(a), len(b)), np.nan), "not finite"),
        (lambda a, b: -np.ones((len(a), len(b))), "not positive: K\\(x, x\\) = -1"),
    ],
)
def test_a_function_that_is_no_kernel_is_said(function: Callable[..., np.ndarray], words: str) -> None:
    kernel, _ = kernel_of(function)
    with pytest.raises(BadInputError, match=words):
        kernel.tile(*kernel.prepare(np.ones((2, 2)), False))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("other",), "unknown kernel other; expected rbf"),
        (("rbf", 0.0), "gamma 0 of the rbf kernel: expected a number above 0"),
        (("rbf", -1), "gamma -1"),
        (("rbf", "x"), "gamma 'x': expected a number"),
        (("rbf", 1.0, 3), "the rbf kernel has no degree"),
        (("linear", 1.0), "the linear kernel has no gamma"),
        (("polynomial", 1.0, 0), "degree 0"),
        (("polynomial", 1.0, 2, -1), "coef0 -1"),
        ((lambda a, b: a @ b.T, 1.0), "its own parameters"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: tuple[object, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        kernel_of(*options)  # type: ignore[arg-type]


def test_zero_points_have_no_direction() -> None:
    kernel, _ = kernel_of("linear")
    X = np.array([[0.0, 0], [3, 4]])
    assert kernel.nonzero(X).tolist() == [False, True]
    assert kernel.tile(*kernel.prepare(X, False)).tolist() == [[0, 0], [0, 1]]


def test_the_usual_gamma_is_one_over_the_median() -> None:
    X = np.array([[0.0], [2.0], [2.0], [5.0]])  # distances 2, 2, 5, 3, 3, and one 0 that does not count
    assert usual_gamma(kernel_of("rbf")[0], X) == 1 / 9
    assert usual_gamma(kernel_of("exponential")[0], X) == 1 / 3
    assert usual_gamma(kernel_of("exponential")[0], np.ones((3, 2))) == 1.0


def test_text_and_back() -> None:
    kernel, _ = kernel_of("polynomial", 0.1, 2, 3.0)
    assert NormalisedKernel.from_text(kernel.to_text()) == kernel
    assert str(kernel) == "polynomial(gamma=0.1, degree=2, coef0=3)"
    for text in ("", "{}", "[]", '{"name": "rbf", "gamma": "x", "degree": 0, "coef0": 0}'):
        with pytest.raises(BadInputError, match="cannot be read"):
            NormalisedKernel.from_text(text)
    with pytest.raises(BadInputError, match="kernel=function"):
        NormalisedKernel.from_text(kernel_of(lambda a, b: a @ b.T)[0].to_text())
