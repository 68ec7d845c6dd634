"""One thread of BLAS: in any thread of Python, until the last has left, and as it was before afterwards."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from threadpoolctl import threadpool_limits

from dfeas.linalg.blas import controller, one_thread


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
