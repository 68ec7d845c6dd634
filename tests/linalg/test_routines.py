"""Compiled routines of SciPy without its packages: the same answers, and nothing that is loaded for them."""

import subprocess
import sys

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from dfeas.linalg import routines
from dfeas.linalg.routines import NNLS, POSITIVE, QR, load_compiled, nnls, pivots, solve_positive

SHAPES = [(1, 1), (3, 7), (5, 5), (20, 60), (60, 20), (0, 3), (3, 0)]


@pytest.fixture(params=["compiled", "public"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "public":
        monkeypatch.setattr(routines, "load_compiled", lambda *names: None)  # as of a SciPy that has them elsewhere
    return str(request.param)


def matrices() -> list[NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    some = [rng.standard_normal(shape) for shape in SHAPES]
    return [*some, *(np.asfortranarray(each) for each in some), rng.standard_normal((4, 2)) @ rng.standard_normal((2, 6))]


@pytest.mark.usefixtures("way")
def test_weights_are_those_of_scipy() -> None:
    for matrix in matrices():
        if matrix.size:
            b = np.arange(len(matrix)) - 1.0
            assert nnls(matrix, b).tobytes() == scipy.optimize.nnls(matrix, b)[0].tobytes()
    assert nnls(np.zeros((3, 0)), np.ones(3)).shape == (0,)
    with pytest.raises(ValueError, match="infs or NaNs"):
        nnls(np.array([[np.nan]]), np.ones(1))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("d", [0, 1, 3, 21, 100])
def test_systems_are_solved_as_by_scipy(d: int) -> None:
    rows, right = np.random.default_rng(d).standard_normal((d + 3, d)), np.random.default_rng(d).standard_normal(d)
    system = rows.T @ rows
    assert np.allclose(solve_positive(system, right), scipy.linalg.solve(system, right), rtol=1e-6, atol=1e-9)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("system", [-np.eye(3), np.zeros((2, 2)), np.array([[1.0, 2.0], [2.0, 1.0]])])
def test_a_system_that_is_not_positive_definite_is_refused(system: NDArray[np.float64]) -> None:
    with pytest.raises(np.linalg.LinAlgError):
        solve_positive(system, np.ones(len(system)))


@pytest.mark.usefixtures("way")
def test_pivots_are_those_of_scipy() -> None:
    for matrix in matrices():
        expected = scipy.linalg.qr(matrix, mode="r", pivoting=True)[1]
        assert pivots(matrix).tolist() == expected.tolist()


def test_this_scipy_has_them_where_they_are_looked_for() -> None:
    if tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 18):
        pytest.skip("older ones may have them elsewhere, which costs time only")
    assert load_compiled(*NNLS) is not None
    assert load_compiled(*QR) is not None
    assert load_compiled(*POSITIVE) is not None


CHECK = """
import sys
import numpy as np
import dfeas
rng = np.random.default_rng(5)
X = rng.standard_normal((100, 4))
print(dfeas.check_separation(X, X @ rng.standard_normal(4) > 0))
print(*(name for name in ("scipy.linalg", "scipy.optimize", "scipy.sparse") if name in sys.modules))
import scipy.optimize
import scipy.linalg
assert scipy.optimize.nnls(np.eye(2), np.ones(2))[0].tolist() == [1, 1]
assert scipy.linalg.qr(np.eye(2), pivoting=True)[2].tolist() == [0, 1]
"""


def test_complete_separation_loads_no_package_of_scipy_and_whoever_does_later_finds_them_whole() -> None:
    if None in (load_compiled(*NNLS), load_compiled(*QR), load_compiled(*POSITIVE)):
        pytest.skip("this SciPy has them elsewhere")
    done = subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("complete separation")
    assert lines[-1] == ""
