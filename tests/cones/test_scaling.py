"""The scaling of Nesterov and Todd: what defines it, for each kind of cone."""

import numpy as np
import pytest

from dfeas.cones.algebra import Group, elements
from dfeas.cones.scaling import inside, scaling

KINDS = [("l", 1), ("q", 2), ("q", 6), ("s", 2), ("s", 5)]
COUNT = 4


def group(kind: str, size: int) -> Group:
    d = size * (size + 1) // 2 if kind == "s" else size
    return Group(kind, size, d * np.arange(COUNT))


def drawn(rng: np.random.Generator, kind: str, size: int) -> np.ndarray:
    """Elements (COUNT, d) inside, some of them near to the boundary."""
    if kind == "s":
        G = rng.standard_normal((COUNT, size, size))
        return elements(G @ np.swapaxes(G, 1, 2) + 1e-3 * np.eye(size))
    u = rng.standard_normal((COUNT, size - 1))
    return np.concatenate([np.linalg.norm(u, axis=1, keepdims=True) + rng.uniform(0.01, 2, (COUNT, 1)), u], axis=1)


def logarithm(kind: str, size: int, s: np.ndarray) -> float:
    """The barrier, plainly."""
    if kind == "s":
        square = np.zeros((len(s), size, size))
        columns, rows = np.triu_indices(size)
        square[:, rows, columns] = square[:, columns, rows] = s / np.where(rows == columns, 1, np.sqrt(2))
        return float(-np.log(np.linalg.det(square)).sum())
    return float(-np.log(s[:, 0] if kind == "l" else s[:, 0] ** 2 - (s[:, 1:] ** 2).sum(axis=1)).sum())


@pytest.mark.parametrize(("kind", "size"), KINDS)
def test_the_hessian_between_takes_one_element_to_the_other(kind: str, size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(20):
        s, x = drawn(rng, kind, size), drawn(rng, kind, size)
        found = scaling(group(kind, size), s, x)
        np.testing.assert_allclose(found.apply_hessian(s), x, rtol=1e-8, atol=1e-9 * np.abs(x).max())
        ds, dx = rng.standard_normal((2, *s.shape))
        # it is symmetric, and the product of second order is that of the steps
        assert (found.apply_hessian(ds) * dx).sum() == pytest.approx((found.apply_hessian(dx) * ds).sum(), rel=1e-8)
        np.testing.assert_allclose((s * found.cross_term(ds, dx)).sum(axis=1), (ds * dx).sum(axis=1), rtol=1e-6, atol=1e-8)
        rows = rng.standard_normal((COUNT, s.shape[1], 3))
        image = np.stack([found.apply_hessian(rows[:, :, j]) for j in range(3)], axis=2)
        plain = np.swapaxes(rows, 1, 2) @ image
        np.testing.assert_allclose(found.grams(rows, np.arange(COUNT)), plain, rtol=1e-7, atol=1e-9 * np.abs(plain).max())
        np.testing.assert_allclose(found.gram(rows[1:3], slice(1, 3)), plain[1:3].sum(axis=0), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("kind", "size"), KINDS)
def test_on_the_path_it_is_that_of_the_barrier(kind: str, size: int) -> None:
    rng = np.random.default_rng(7)
    s = drawn(rng, kind, size) + np.eye(1, size * (size + 1) // 2 if kind == "s" else size)
    inverse = scaling(group(kind, size), s, s).inverse()
    step = 1e-6 * rng.standard_normal(s.shape)
    change = (logarithm(kind, size, s + step) - logarithm(kind, size, s - step)) / 2
    assert -(inverse * step).sum() == pytest.approx(change, rel=1e-5)
    found = scaling(group(kind, size), s, inverse)  # w is s
    beside = [scaling(group(kind, size), s + sign * step, s).inverse() for sign in (1, -1)]
    np.testing.assert_allclose(found.apply_hessian(step), (beside[1] - beside[0]) / 2, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize(("kind", "size"), KINDS)
def test_the_boundary_is_not_inside(kind: str, size: int) -> None:
    s = drawn(np.random.default_rng(1), kind, size)
    assert inside(group(kind, size), s)
    s[2] = 0
    assert not inside(group(kind, size), s)
    s[2] = np.nan
    assert not inside(group(kind, size), s)
