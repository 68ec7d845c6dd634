"""One thread of BLAS: in any thread of Python, until the last has left, and as it was before afterwards."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_limits

from dfeas.linalg.basic import LOADING, solve_triangular
from dfeas.linalg.blas import controller, one_thread, side_by_side
from dfeas.linalg.separation.conflict import conflict
from dfeas.linalg.separation.solver import solve
from dfeas.linalg.separation.sparse_columns import column_matrix


def threads() -> set[int]:
    """Of the libraries of NumPy and SciPy."""
    return {each.num_threads for each in controller(of_scipy=True).lib_controllers if each.user_api == "blas"}


@pytest.fixture
def three() -> Iterator[None]:
    """Three threads each, as somebody has set them in the main thread, who may set them again."""
    controller(of_scipy=True)  # loads both
    with threadpool_limits(3, user_api="blas"):
        if threads() != {3}:
            pytest.skip("this BLAS does not take three threads")
        yield
        assert threads() == {3}


@pytest.mark.usefixtures("three")
def test_it_holds_in_a_thread_that_is_not_the_first_to_set_it() -> None:
    def seen() -> tuple[set[int], set[int]]:
        with one_thread(of_scipy=True):
            inside = threads()
        return inside, threads()

    assert seen() == ({1}, {3})
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(seen).result() == ({1}, {3})
    assert seen() == ({1}, {3})


@pytest.mark.usefixtures("three")
def test_it_holds_until_the_last_has_left() -> None:
    entered, left = Event(), Event()

    def stay() -> set[int]:
        with one_thread(of_scipy=True):
            entered.set()
            assert left.wait(10)
            return threads()

    with ThreadPoolExecutor(1) as pool:
        with one_thread(of_scipy=True):
            staying = pool.submit(stay)
            assert entered.wait(10)
            with one_thread():
                pass
            assert threads() == {1}
        left.set()
        assert staying.result() == {1}
    assert threads() == {3}


@pytest.mark.usefixtures("three")
def test_an_error_gives_back_what_was() -> None:
    with pytest.raises(ZeroDivisionError), one_thread(of_scipy=True):
        raise ZeroDivisionError
    assert threads() == {3}


@pytest.mark.parametrize("size", [1, 2, 20, LOADING, LOADING + 1, 200])
@pytest.mark.parametrize("transposed", [False, True])
def test_triangles_of_any_size_are_solved(size: int, transposed: bool) -> None:
    rng = np.random.default_rng(size)
    factor = np.triu(rng.standard_normal((size, size))) + 9 * np.diag(2.0 ** -rng.integers(0, 40, size))
    wanted = rng.standard_normal(size)
    x = solve_triangular(factor, wanted, transposed=transposed)
    matrix = factor.T if transposed else factor
    assert (abs(matrix @ x - wanted) <= 1e-13 * (abs(matrix) @ abs(x) + abs(wanted))).all()  # backward stable, row by row
    with pytest.raises(np.linalg.LinAlgError):
        solve_triangular(np.triu(np.ones((size, size)), 1), wanted, transposed=transposed)


@pytest.mark.usefixtures("three")
def test_scipy_has_one_thread_wherever_a_solver_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where ``scipy.linalg`` was not loaded when the solver began."""
    called: set[str] = set()

    def watch(name: str, own: Any, *given: Any, **named: Any) -> Any:
        assert threads() == {1}
        called.add(name)
        return own(*given, **named)

    for module, name in ((scipy.linalg, "qr"), (scipy.linalg, "solve_triangular"), (scipy.linalg.lapack, "dposv")):
        monkeypatch.setattr(module, name, partial(watch, name, getattr(module, name)))
    points = np.random.default_rng(0).standard_normal((900, LOADING + 20))
    assert solve(column_matrix(points * np.sign(points @ points[0])[:, None], 1 / np.linalg.norm(points, axis=1))).margin > 0
    solve_triangular(np.eye(LOADING + 1), np.ones(LOADING + 1))
    pairs = np.vstack([points[:5], -points[:5]])
    assert conflict(column_matrix(pairs, 1 / np.linalg.norm(pairs, axis=1)), np.full(10, 0.1)) is not None
    assert called == {"qr", "solve_triangular", "dposv"}


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_pieces_side_by_side_come_in_their_order(count: int) -> None:
    assert side_by_side(lambda i: i * i, count) == [i * i for i in range(count)]


@pytest.mark.parametrize("bad", [0, 3, 6])
def test_pieces_side_by_side_have_all_ended_when_one_has_failed(bad: int) -> None:
    begun: list[int] = []
    ended: list[int] = []

    def work(i: int) -> None:
        begun.append(i)
        if i == bad:
            raise ZeroDivisionError
        np.ones(1 << 18).sum()
        ended.append(i)

    with pytest.raises(ZeroDivisionError):
        side_by_side(work, 7)
    assert sorted(begun) == sorted([*ended, bad])
