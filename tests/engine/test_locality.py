"""Homes of ranges: where their blocks were last, and never more than a worker's share."""

from hypothesis import given
from hypothesis import strategies as st

from dfeas.engine.distributed import Locality
from dfeas.engine.scan import cut

WORKERS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 4), min_size=1)


def ranges_for(threads: dict[str, int]) -> list[tuple[int, int]]:
    return cut(1000, 2 * sum(threads.values()))


@given(st.lists(WORKERS, min_size=1, max_size=4))
def test_every_worker_gets_its_share_whoever_came_and_went(history: list[dict[str, int]]) -> None:
    locality = Locality()
    for threads in history:
        ranges = ranges_for(threads)
        placed = locality.place(ranges, threads)
        assert {worker: placed.count(worker) for worker in threads} == {w: 2 * count for w, count in threads.items()}
        locality.remember(ranges, placed)
        assert locality.place(ranges, threads) == placed


@given(WORKERS, st.data())
def test_a_range_stays_with_the_worker_that_took_it_within_its_share(threads: dict[str, int], data: st.DataObject) -> None:
    locality, ranges = Locality(), ranges_for(threads)
    taken = data.draw(st.lists(st.sampled_from(sorted(threads)), min_size=len(ranges), max_size=len(ranges)))
    locality.remember(ranges, taken)
    placed = locality.place(ranges, threads)
    for worker, count in threads.items():
        mine = [i for i, who in enumerate(taken) if who == worker]
        assert all(placed[i] == worker for i in mine[: 2 * count])


def test_only_ranges_of_a_worker_that_is_gone_move() -> None:
    locality, before = Locality(), {"a": 1, "b": 1, "c": 1}
    ranges = ranges_for(before)
    first = locality.place(ranges, before)
    locality.remember(ranges, first)
    again = locality.place(ranges, {"a": 1, "c": 1, "d": 1})  # b was restarted under another address
    assert [w for w, v in zip(again, first, strict=True) if v != "b"] == [v for v in first if v != "b"]
    assert [w for w, v in zip(again, first, strict=True) if v == "b"] == ["d", "d"]
