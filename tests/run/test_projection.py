"""What is projected before a run holds in the run: peaks of memory, as the kernel keeps them, and bytes of a pass."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.data.dataset import FILE_READS
from dfeas.data.generate.points import Instance, generate
from dfeas.data.source import DataSpec
from dfeas.data.storage.readers import Buffers, Cost
from dfeas.engine.memory import cache_bytes, held_bytes, require, thread_bytes, threads_that_fit
from dfeas.errors import UsageError, enough
from dfeas.geometry.points import PointSpace, prefer_method
from dfeas.geometry.protocol import Load
from dfeas.methods.mixture import most_softmaxes
from dfeas.methods.protocol import Facts
from dfeas.methods.registry import METHODS
from dfeas.methods.working_set import AT
from dfeas.methods.working_set.batches import basis_bytes, capacity, passes_ahead, solver_room
from dfeas.passes.select import Select
from dfeas.passes.survey import Survey
from dfeas.problem import Goal, Problem
from dfeas.records import replace
from dfeas.run.cost import PROCESS_BYTES, Probe, choose_method, limit_passes, project
from dfeas.run.resources import Limits, Resources
from dfeas.run.session import open_session
from dfeas.run.spec import Request, RunSpec
from dfeas.run.verdict import VerdictTarget
from dfeas.verify.certificate import Certificate
from dfeas.verify.points import Points as CheckedPoints
from dfeas.verify.tallies import look_at
from tests.run.making import events_of, opened, run_until

POINTS = PointSpace()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inseparable points of nearly five times the least that a budget may be."""
    path = tmp_path_factory.mktemp("large") / "data"
    generate(Instance("gaussian", 100, 200_000, block_rows=5000), path)
    return path


@pytest.mark.parametrize("memory", [30_000_000, 60_000_000, 400_000_000])
def test_bytes_of_a_pass_are_as_projected(large: Path, memory: int) -> None:
    data = opened(large)
    projection = project(POINTS, data, ["mirror-prox"], memory, 1e-3, threads=1)
    data.enable_cache(cache_bytes(data, memory, 1, worker=False))
    assert projection.kept_after == FILE_READS
    for expected in (*[projection.first_bytes] * (FILE_READS + 1), projection.later_bytes, projection.later_bytes):
        cost = Cost()
        assert sum(block.size for block in data.read_blocks(range(data.blocks), cost, keep=True)) == 200_000
        # the last block is short, and is kept where a whole one does not fit
        assert abs(cost.bytes_read - expected) < data.block_bytes
    assert (projection.later_bytes == 0) == (memory >= 400_000_000)


def test_more_workers_keep_more_and_read_less(large: Path) -> None:
    some = [project(POINTS, opened(large), ["mirror-prox"], 60_000_000, 1e-3, workers=w, threads=1) for w in (1, 2, 8)]
    assert some[0].later_bytes > some[1].later_bytes > some[2].later_bytes == 0
    assert len({each.worker_bytes for each in some}) == 1


def test_every_method_has_a_projection_within_its_budget_for_large_data(large: Path) -> None:
    data, budget = opened(large), 20_000_000
    for method in METHODS:
        projection = project(POINTS, data, [method], budget, 1e-3, threads=1)
        assert projection.memory_bytes <= PROCESS_BYTES + 2.5 * budget, method
        assert projection.first_bytes == data.bytes


def test_arrays_in_memory_are_not_kept_twice() -> None:
    data = opened(np.ones((1000, 5)), np.arange(1000) % 2)
    assert project(POINTS, data, ["mirror-prox"], 10**9, 1e-3).cache_bytes == 0


def test_a_run_says_what_it_will_take_before_it_begins(large: Path, tmp_path: Path) -> None:
    methods = ("mirror-prox", "perceptron")
    dfeas.race(large, methods=methods, memory=60_000_000, out=tmp_path / "race", max_passes=1)
    for name in methods:
        kinds = [event["event"] for event in events_of(tmp_path / "race" / name)]
        assert kinds.index("projection") < kinds.index("pass")
        (said,) = events_of(tmp_path / "race" / name, "projection")
        expected = project(POINTS, opened(large), methods, 60_000_000, 1e-3, max_passes=1).to_json()
        assert {key: said[key] for key in expected} == expected
        after = "from pass 4 on" if said["later_bytes"] < said["first_bytes"] else "a later one"
        assert f"a pass reads 76.29 MiB, {after} {said['later_bytes'] / 2**20:.2f} MiB" in said["text"]


def test_the_speed_of_large_data_is_measured_before_it_begins(large: Path) -> None:
    request = Request.begun(Goal(), Limits(), Resources())
    job = RunSpec(request, ("perceptron",), ("asked for",), False, False, DataSpec(large, intercept=False))
    with open_session(Problem.of(large), Resources()) as session:
        expected = VerdictTarget(session, job, Probe(bytes=1, share=0.1)).project_cost()
        session.engine.run(Survey())
        assert expected.seconds is not None
        assert 0 < expected.seconds < 20 * session.engine.cost.wall_seconds
        assert VerdictTarget(session, job, Probe(bytes=1, share=1e-9)).project_cost().seconds is None
    assert f"a pass reads 76.29 MiB in about {expected.seconds:.2g} s" in str(expected)


def test_mistakes_of_all_points_that_do_not_fit_are_refused_with_the_number_needed() -> None:
    load = Load(opened(np.ones((1_000_000, 2), np.float32), "all-positive"), 40_000_000)
    assert choose_method(POINTS, "online-perceptron", load) == ("online-perceptron", "asked for")
    with pytest.raises(
        UsageError, match=r"online-perceptron needs memory='40MB' for what it keeps of 1000000 points, .* use working"
    ):
        choose_method(POINTS, "online-perceptron", replace(load, memory=39_999_996))


@pytest.mark.parametrize("method", ["mirror-prox", "smooth-perceptron", "ispvn"])
def test_weights_of_all_points_that_do_not_fit_are_on_storage(method: str) -> None:
    facts = Facts(20, 1_000_000, 40_000_000 // 4, 100, 4, None, 1.0)
    assert "15.26 MiB for weights, if" in METHODS[method].cost(replace(facts, memory=80_000_000)).remark
    assert METHODS[method].cost(facts).least == 0
    assert "30.52 MiB of storage for weights, if" in METHODS[method].cost(facts).remark
    assert prefer_method(replace(facts, memory=1000))[0] == "mirror-prox-one-pass"


@pytest.mark.parametrize(
    ("m", "n", "itemsize"),
    [
        *((20, 10**7, 4), (400, 50_000, 8), (1000, 30_000, 4), (3000, 40_000, 8)),
        *((4000, 12_000, 4), (6000, 10**5, 8), (20_000, 20_000, 4)),
    ],
)
def test_auto_takes_a_working_set_where_four_columns_for_each_feature_fit(m: int, n: int, itemsize: int) -> None:
    least = min(n, 4 * (m + 1)) * (m * itemsize + 100)
    for memory in (least, 10 * least, 1 << 40):
        facts = Facts(m, n, memory, 100, itemsize)
        assert prefer_method(facts)[0] == "working-set"
        assert min(n, 4 * (m + 1)) <= capacity(facts) <= n
        held = capacity(facts) * (m * itemsize + 100)
        systems = 8 * min(solver_room(facts), basis_bytes(facts))
        assert max(2.5 * held, 2 * held + systems * (solver_room(facts) > AT.least_room)) <= 2.5 * memory
        assert METHODS["working-set"].cost(facts).least <= 4 * memory
        assert ("leads for 8 passes" in prefer_method(facts)[1]) == bool(passes_ahead(facts))
    method, why = prefer_method(Facts(m, n, least - 1, 100, itemsize))
    assert (method, why) == ("mirror-prox-one-pass", f"auto: a working set would need {enough(4 * least)} of memory")


@pytest.mark.parametrize(("m", "entries", "method"), [(6000, 0.0, "mirror-prox-one-pass"), (6000, 60.0, "working-set")])
def test_auto_takes_mirror_prox_for_the_widest_margin_of_wide_dense_points(m: int, entries: float, method: str) -> None:
    """Halfspace 6000 x 6000 to a tenth: 4.5 s of processor time, and a working set was not done after 21 s."""
    facts = Facts(m, 6000, 1 << 36, 100, 4, 0.1, entries=entries)
    assert prefer_method(facts)[0] == method
    assert prefer_method(replace(facts, tolerance=None))[0] == "working-set"


@pytest.mark.parametrize(("method", "m", "each"), [("von-neumann-away", 20, 16), ("mirror-prox-one-pass", 2000, 32 * 2000)])
def test_passes_that_a_method_remembers_fit_or_are_refused(method: str, m: int, each: int) -> None:
    dataset = opened(np.ones((1000, m), np.float32), "all-positive", intercept=False)

    def limit(eps: float, max_passes: int | None, name: str = method) -> tuple[int | None, str]:
        return limit_passes({name: POINTS.cost(name, Load(dataset, 4 * 10**8, margin=eps))}, 4 * 10**8, max_passes)

    fit = 2 * 10**8 // each
    assert limit(0.01, None) == (fit, "")
    assert limit(1e-9, None) == (fit, f"; at most {fit} passes, {each} bytes of each are kept")
    for eps, asked in ((1e-9, fit), (0.01, 100 * fit)):
        assert limit(eps, asked) == (asked, "")
    assert limit(1e-9, None, "perceptron") == (None, "")
    with pytest.raises(UsageError, match=rf"{method} keeps {each} bytes .* MiB .*max_passes={fit}, a larger eps, or"):
        limit(1e-9, 2 * fit)


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.traits.weighs_all])
def test_methods_that_weigh_every_point_make_any_number_of_passes(method: str) -> None:
    dataset = opened(np.ones((1000, 100), np.float32), "all-positive", intercept=False)
    cost = POINTS.cost(method, Load(dataset, 4 * 10**8, margin=1e-9, max_passes=1e6))
    assert limit_passes({method: cost}, 4 * 10**8, 10**6) == (10**6, "")
    assert cost.own <= 32 * 100 * most_softmaxes(100)


def test_a_run_that_would_remember_too_much_is_refused_or_ends_in_time(dataset: Callable[..., Any], tmp_path: Path) -> None:
    path, _ = dataset("halfspace", 5, 100)
    more: dict[str, Any] = {"intercept": False, "out": tmp_path / "run"}
    long: dict[str, Any] = {"eps": 1e-9, "max_passes": 10**9}
    with pytest.raises(UsageError, match="von-neumann keeps 16 bytes"):
        dfeas.solve(path, method="von-neumann", **long, **more)
    with pytest.raises(UsageError, match="von-neumann-away keeps 16 bytes"):
        dfeas.race(path, methods=("von-neumann-away", "perceptron"), **long, **more)
    assert not (tmp_path / "run").exists()
    result = run_until(lambda: True, dfeas.solve, path, method="von-neumann", eps=1e-12, memory=60_000_000, **more)
    assert result.why == "asked for; at most 1875000 passes, 16 bytes of each are kept"
    (said,) = events_of(tmp_path / "run", "projection")
    assert said["memory_bytes"] < 3e8


def test_threads_fit_the_budget_and_too_little_is_refused_with_the_number_needed() -> None:
    data = opened(np.zeros((100_000, 50)) + 1)
    need = thread_bytes(data)
    assert [threads_that_fit(data, many * need, 8) for many in (1, 3, 100)] == [1, 3, 8]
    require(data, 8 * need, 8)
    for refused, least in (
        (lambda: threads_that_fit(data, need - 1, 8), need),
        (lambda: require(data, 8 * need - 1, 8), 8 * need),
    ):
        with pytest.raises(UsageError, match=f"at least memory='{enough(least)}' is needed"):
            refused()


def test_a_question_is_answered_within_a_budget_of_one_block(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 100, 50_000)
    result = dfeas.solve(path, method="perceptron", memory=thread_bytes(opened(path)), max_passes=2)
    assert result.passes > 0


def test_blocks_of_short_rows_are_small_and_their_scores_are_projected(tmp_path: Path) -> None:
    """A byte a point: labels, norms, scores and bounds of a block take many times what it does."""
    path = tmp_path / "bytes"
    dfeas.generate(dfeas.Instance("gaussian", m=1, n=700_000, dtype="uint8"), path)
    dataset = opened(path, intercept=False)
    assert dataset.blocks > 1
    tracemalloc.start()
    buffers, question = Buffers(), Select(np.ones(1), 0.5, 10, 10)
    question.scan(dataset.read(0, buffers, Cost()))  # what is made once
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    question.scan(dataset.read(1, buffers, Cost()))
    scanned = tracemalloc.get_traced_memory()[1] - before
    certificate = Certificate("separator", dataset.fingerprint, np.ones(1))
    tracemalloc.reset_peak()
    look_at(dataset, 0, 1, CheckedPoints(), [certificate], None)
    looked = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert max(scanned, looked) <= thread_bytes(dataset) <= 40 << 20


@pytest.mark.parametrize("what", ["labels", "also", "mask", "point"])
def test_what_a_process_holds_of_each_point_is_projected(dataset: Callable[..., Any], tmp_path: Path, what: str) -> None:
    n = 300_000
    path, _ = dataset("gaussian", 1, n)
    np.save(tmp_path / "labels.npy", np.arange(n) % 2)
    np.save(tmp_path / "mask.npy", np.arange(n) % 3 > 0)
    seen: dict[str, dict[str, Any]] = {
        "labels": {"labels": str(tmp_path / "labels.npy")},
        "also": {"also": (str(path),)},
        "mask": {"mask": str(tmp_path / "mask.npy")},
        "point": {"point": (2.0,)},
    }
    opened(path, **seen[what])  # what is made once
    tracemalloc.start()
    data = opened(path, **seen[what])
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held <= held_bytes(data) + 60_000
    assert held_bytes(data) <= min(held, 2 * n + 60_000)
    plain = project(POINTS, opened(path), ["perceptron"], 10**9, 1e-3)
    assert project(POINTS, data, ["perceptron"], 10**9, 1e-3).memory_bytes > plain.memory_bytes
