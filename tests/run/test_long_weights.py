"""Weights of more points than memory should hold: written, read and checked part by part, with the bits of the whole."""

import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dfeas
from dfeas.data.dataset import SIDES_WIDTH
from dfeas.data.storage import scratch
from dfeas.data.storage.scratch import is_mapped, part, pieces, spool, total
from dfeas.engine.local import LocalEngine
from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.geometry.points import PointSpace
from dfeas.run.cost import PROCESS_BYTES, project
from dfeas.verify import certificate as certificates
from dfeas.verify import core
from dfeas.verify import points as checked_points
from dfeas.verify.certificate import Certificate, load
from dfeas.verify.core import check
from tests.run.making import opened

N = 3000


def pretend(monkeypatch: pytest.MonkeyPatch, piece: int, many: int, portion: int) -> None:
    """That fewer weights are many."""
    monkeypatch.setattr(scratch, "PIECE", piece)
    monkeypatch.setattr(certificates, "MANY", many)
    monkeypatch.setattr(core, "PORTION", portion)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, 70, 100, 450)


@pytest.fixture
def points(tmp_path: Path) -> Path:
    """Inseparable points in blocks of 100."""
    dfeas.generate(dfeas.Instance("gaussian", 4, N, seed=3, block_rows=100), tmp_path / "data")
    return tmp_path / "data"


def uneven(points: Path, seed: int = 0) -> Certificate:
    """Weights on some points, none on those of the last third."""
    rng = np.random.default_rng(seed)
    support = np.sort(rng.choice(2 * N // 3, 1100, replace=False))
    weights = rng.exponential(size=len(support))
    return Certificate("gordan", opened(points).fingerprint, support=support, weights=weights / total(weights))


def same(first: Certificate, second: Certificate) -> bool:
    return bool((first.support == second.support).all() and (first.weights == second.weights).all())


@pytest.mark.usefixtures("short")
def test_a_vector_in_a_file_is_the_vector_and_so_are_its_parts_pieces_and_sum(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=1000)
    (there, none) = spool(((values[i : i + 300], values[:0]) for i in range(0, 1000, 300)), (np.float64, np.int64), tmp_path)
    assert is_mapped(there)
    assert not is_mapped(values)
    assert not there.flags.writeable
    assert (there == values).all()
    assert none.shape == (0,)
    assert (part(there, 100, 450) == values[100:450]).all()
    assert all((a == b).all() for a, b in pieces(values, there))
    assert total(there) == total(values)
    assert list(tmp_path.iterdir()) == []  # it has no name


@pytest.mark.usefixtures("short")
def test_a_certificate_of_many_weights_stays_in_its_file(points: Path, tmp_path: Path) -> None:
    certificate = uneven(points)
    certificate.save(tmp_path / "certificate.npz")
    back = load(tmp_path / "certificate.npz")
    assert is_mapped(back.support)
    assert is_mapped(back.weights)
    assert same(back, certificate)
    assert repr(back) == repr(certificate)
    with np.load(tmp_path / "certificate.npz", allow_pickle=False) as arrays:  # the format that others read
        assert (arrays["support"] == certificate.support).all()
        assert arrays["weights"].dtype == np.float64
    back.save(tmp_path / "again.npz")
    assert same(load(tmp_path / "again.npz"), certificate)
    few = Certificate("gordan", "mark", support=np.arange(100), weights=np.full(100, 0.01))
    few.save(tmp_path / "few.npz")
    assert not is_mapped(load(tmp_path / "few.npz").weights)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("share", [0.3, 0.9, None])
def test_damage_to_weights_in_a_file_is_noticed(points: Path, tmp_path: Path, share: float | None) -> None:
    path = tmp_path / "certificate.npz"
    uneven(points).save(path)
    content = bytearray(path.read_bytes())
    if share is None:
        content = content[:9000]
    else:
        content[int(share * len(content))] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptDataError, match=r"certificate\.npz"):
        load(path)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("threads", [1, 2])
def test_portions_prove_what_the_whole_proves_to_the_bit(points: Path, tmp_path: Path, threads: int) -> None:
    dataset, certificate = opened(points), uneven(points)
    certificate.save(tmp_path / "certificate.npz")
    with closing(LocalEngine(dataset, threads)) as engine:
        expected = check(engine, dataset, certificate)
        for quick in (False, True):
            assert check(engine, dataset, load(tmp_path / "certificate.npz"), quick=quick) == expected
    assert expected.points_read == N


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda support, weights: (support, weights * 1.1), "their sum is 1.1"),
        (lambda support, weights: (support, np.where(support == support[900], -weights, weights)), "negative"),
        (lambda support, weights: (support, np.where(support == support[900], np.nan, weights)), "not finite"),
        (lambda support, weights: (np.where(support == support[70], support[69], support), weights), "not an ascending list"),
        (lambda support, weights: (np.where(support == support[900], support[899], support), weights), "not an ascending list"),
        (lambda support, weights: (support - support[0] - 1, weights), "not an ascending list"),
        (lambda support, weights: (np.where(support == support[-1], N, support), weights), "not an ascending list"),
    ],
)
def test_what_is_no_certificate_is_refused_piece_by_piece(
    points: Path, tmp_path: Path, change: Callable[..., tuple[NDArray[Any], NDArray[Any]]], message: str
) -> None:
    good = uneven(points)
    support, weights = change(good.support, good.weights)
    Certificate("gordan", good.fingerprint, support=support, weights=weights).save(tmp_path / "certificate.npz")
    dataset = opened(points)
    with closing(LocalEngine(dataset)) as engine, pytest.raises(CheckFailedError, match=message):
        check(engine, dataset, load(tmp_path / "certificate.npz"))


def made(folder: Path, n: int) -> Path:
    """Inseparable points of one feature, in blocks of 65,536."""
    dfeas.generate(dfeas.Instance("gaussian", 1, n, dtype="int8", seed=1, block_rows=1 << 16), folder / "data")
    return folder / "data"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More points than a small budget holds weights of."""
    return made(tmp_path_factory.mktemp("many"), 400_000)


METHODS = ("mirror-prox", "ispvn")
SMALL = 20_000_000


@pytest.mark.parametrize("method", METHODS)
def test_weights_that_memory_does_not_hold_are_those_that_it_does(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    pretend(monkeypatch, 1 << 15, 1 << 16, 1 << 17)
    more: dict[str, Any] = {"method": method, "eps": 0.3, "intercept": True}
    small = dfeas.solve(many, memory=SMALL, out=tmp_path / "small", **more)
    large = dfeas.solve(many, memory="2GB", out=tmp_path / "large", **more)
    assert small.verdict == large.verdict == "eps-infeasible"
    assert small.evidence is not None
    assert large.evidence is not None
    assert is_mapped(small.evidence.weights)
    assert not is_mapped(large.evidence.weights)
    assert len(small.evidence.support) > 200_000
    assert same(small.evidence, large.evidence)
    assert (small.margin_upper, small.reads, small.passes) == (large.margin_upper, large.reads, large.passes)
    assert dfeas.verify_run(tmp_path / "small", memory=SMALL) == dfeas.verify_run(tmp_path / "large", memory="2GB")
    assert {path.name for path in (tmp_path / "small").iterdir()} == {path.name for path in (tmp_path / "large").iterdir()}


def test_memory_does_not_grow_with_the_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of all points would take 40 bytes for each while they are gathered, 16 afterwards; 13 are for label and norm, which
    are kept up to a size.
    """
    pretend(monkeypatch, 1 << 15, 1 << 16, 1 << 17)
    monkeypatch.setattr(checked_points, "SUPPORT_ENTRIES", 1 << 16)  # of fewer points the checker keeps all
    peaks, memory = [], 17_000_000  # no room to keep points
    for n in (500_000, 500_000, 2_000_000):  # the first one loads what is made once
        folder = tmp_path / str(len(peaks))
        folder.mkdir()
        path = made(folder, n)
        tracemalloc.start()
        dfeas.solve(path, method="mirror-prox", eps=0.3, intercept=True, memory=memory, out=folder / "run")
        solved = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        dfeas.verify_run(folder / "run", memory=memory)
        peaks.append((solved, tracemalloc.get_traced_memory()[1]))
        tracemalloc.stop()
        dataset = opened(path, intercept=True)
        assert solved <= project(PointSpace(), dataset, ["mirror-prox"], memory, 0.3, threads=1).memory_bytes - PROCESS_BYTES
    for less, more in zip(*peaks[1:], strict=True):
        assert more - less < 1_500_000 * SIDES_WIDTH
