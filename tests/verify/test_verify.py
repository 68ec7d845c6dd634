"""The checker against rational arithmetic: it accepts nothing that is false, and says what it proved."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dfeas.answers.check.verify import verify_certificate
from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import SliceReader
from dfeas.engine.local import LocalEngine
from dfeas.errors import BadInputError, CheckFailedError, CorruptDataError
from dfeas.kernels.kernel import kernel_of
from dfeas.passes.survey import Survey
from dfeas.run.transform import mark_of
from dfeas.verify.certificate import Certificate, Check, load
from dfeas.verify.core import check


def marked(X: np.ndarray, labels: np.ndarray | None = None, *, intercept: bool = False, **options: Any) -> Dataset:
    """A dataset in memory with its fingerprint."""
    return mark(open_source(Source(DataSpec(X, labels, intercept=intercept, **options))))


def mark(dataset: Dataset) -> Dataset:
    """With the fingerprint of what it holds."""
    found = LocalEngine(dataset, 1).run(Survey())
    dataset.fingerprint = mark_of(dataset, found.checksums)
    return dataset


def examine(dataset: Dataset, **fields: Any) -> Check:
    return check(LocalEngine(dataset, 1), dataset, Certificate(fingerprint=dataset.fingerprint, **fields))


def separates(X: np.ndarray, y: np.ndarray) -> bool:
    """In rational arithmetic."""
    return all(sum(Fraction(a) * Fraction(b) for a, b in zip(row, y.tolist(), strict=True)) > 0 for row in X.tolist())


NUMBERS = st.one_of(
    st.floats(-4, 4).map(lambda v: round(v, 1)),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-8, 1e8, 1e16, -1e16, 1 / 3, 1e-30, 2.0**-60, 1 + 2.0**-52]),
)


@given(st.integers(1, 6), st.integers(1, 5), st.data())
@settings(max_examples=300)
def test_a_separator_is_accepted_exactly_when_it_separates(n: int, m: int, data: st.DataObject) -> None:
    X = np.array(data.draw(st.lists(st.lists(NUMBERS, min_size=m, max_size=m), min_size=n, max_size=n)))
    y = np.array(data.draw(st.lists(NUMBERS, min_size=m, max_size=m)))
    if not y.any():
        return
    if separates(X, y):
        proved = examine(marked(X), kind="separator", y=y)
        assert (proved.verdict, proved.proof) == ("feasible", "rigorous")
        for row in X.tolist():  # margin_lower <= x'y / (|x||y|), squared to stay rational
            score = sum(Fraction(a) * Fraction(b) for a, b in zip(row, y.tolist(), strict=True))
            squares = sum(Fraction(a) ** 2 for a in row) * sum(Fraction(b) ** 2 for b in y.tolist())
            assert Fraction(proved.margin_lower) ** 2 * squares <= score**2
    else:
        with pytest.raises(CheckFailedError):
            examine(marked(X), kind="separator", y=y)


TINY = 5e-324


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1.4, TINY], [0, 1.0]),
        ([1e-130, 3 * TINY], [0, 0.3]),
        ([1e-130, TINY], [0, 0.75]),
        ([4, 7 * TINY], [0, 1]),
        ([1e3, 1e-310], [0, 1]),
    ],
)
def test_a_margin_that_underflows_is_rounded_down(x: list[float], y: list[float]) -> None:
    proved = examine(marked(np.array([x])), kind="separator", y=np.array(y, np.float64))
    score = sum(Fraction(a) * Fraction(b) for a, b in zip(x, y, strict=True))
    squares = sum(Fraction(a) ** 2 for a in x) * sum(Fraction(b) ** 2 for b in y)
    assert Fraction(proved.margin_lower) ** 2 * squares <= score**2


def test_cancellation_that_fools_floating_point_is_decided_exactly() -> None:
    rng = np.random.default_rng(0)
    y = rng.standard_normal(60)
    X = rng.standard_normal((300, 60)) * 10.0 ** rng.integers(-8, 8, (300, 60))
    X[::2] -= np.outer(X[::2] @ y, y) / (y @ y)
    good = np.array([separates(row[None], y) for row in X])
    signs = np.where(good, 1.0, -1.0)
    exact_zero = np.array([not separates(row[None], y) and not separates(-row[None], y) for row in X])
    X, signs = X[~exact_zero], signs[~exact_zero]
    proved = examine(marked(X, signs), kind="separator", y=y)
    assert proved.exact_points > 50
    naive = (X @ y) * signs
    assert (naive <= 0).any()  # float64 alone gets some of them wrong
    signs[7] *= -1
    with pytest.raises(CheckFailedError, match="point 7 "):
        examine(marked(X, signs), kind="separator", y=y)


def test_the_intercept_is_the_last_entry() -> None:
    X, labels = np.array([[1.0], [2.0], [4.0], [5.0]]), np.array([-1, -1, 1, 1])
    assert examine(marked(X, labels, intercept=True), kind="separator", y=np.array([1.0, -3.0])).verdict == "feasible"
    with pytest.raises(CheckFailedError, match="has 1 entries, the data 2"):
        examine(marked(X, labels, intercept=True), kind="separator", y=np.array([1.0]))


@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 999))
def test_the_bound_of_a_gordan_certificate_holds_for_every_direction(n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (n, m)).astype(np.float64)
    X[~X.any(axis=1)] = 1
    weights = rng.random(n)
    weights /= weights.sum()
    proved = examine(marked(X), kind="gordan", support=np.arange(n), weights=weights)
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    assert proved.margin_upper >= min(1, np.linalg.norm(weights @ unit) * (1 - 1e-14))
    assert proved.margin_upper <= np.linalg.norm(weights @ unit) + 1e-12
    directions = rng.standard_normal((200, m))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    assert (unit @ directions.T).min(axis=0).max() <= proved.margin_upper


@pytest.mark.parametrize(
    ("X", "support", "weights", "verdict"),
    [
        ([[1.5, 2.0], [-1.5, -2.0]], [0, 1], [0.5, 0.5], "infeasible"),
        ([[1.0, 1.0], [0.0, 0.0]], [1], [1.0], "infeasible"),
        ([[3.0, 4.0], [-3.0, -4.0], [1.0, 0.0]], [0, 1], [0.5, 0.5], "infeasible"),
        ([[1.0, 2.0], [-1.0, -2.0 - 2**-50]], [0, 1], [0.5, 0.5], "eps-infeasible"),
        ([[1.0, 0.0], [0.0, 1.0]], [0, 1], [0.5, 0.5], "eps-infeasible"),
    ],
)
def test_a_support_that_vanishes_in_rational_arithmetic_is_exact(X: Any, support: Any, weights: Any, verdict: str) -> None:
    proved = examine(marked(np.array(X)), kind="gordan", support=np.array(support), weights=np.array(weights))
    assert proved.verdict == verdict
    assert (proved.proof == "exact") == (verdict == "infeasible")
    assert (proved.margin_upper == 0) == (verdict == "infeasible")


def test_a_feasible_instance_never_gets_a_bound_below_its_margin() -> None:
    X = np.array([[1.0, 1e-9], [-1.0, 1e-9]])
    proved = examine(marked(X), kind="gordan", support=np.array([0, 1]), weights=np.array([0.5, 0.5]))
    assert proved.verdict == "eps-infeasible"
    assert proved.margin_upper >= 1e-9


@pytest.mark.parametrize("kernel", ["", "linear"])
def test_weights_a_little_off_the_simplex_prove_what_their_shares_do(kernel: str) -> None:
    """Of two orthogonal points: no unit y has a margin above sqrt(1/2), which one has."""
    text = kernel_of(kernel)[0].to_text() if kernel else ""

    def weigh(off: float) -> Check:
        return examine(marked(np.eye(2)), kind="gordan", support=np.arange(2), weights=np.full(2, (1 + off) / 2), kernel=text)

    for off in (-9e-7, 0.0, 9e-7):
        assert 1 <= 2 * Fraction(weigh(off).margin_upper) ** 2 < 1 + Fraction(1, 10**12)
    for off in (-1.1e-6, 1.1e-6):
        with pytest.raises(CheckFailedError, match="simplex"):
            weigh(off)


BAD = {
    "descending": ([1, 0], [0.5, 0.5]),
    "twice": ([0, 0], [0.5, 0.5]),
    "beyond": ([0, 9], [0.5, 0.5]),
    "negative index": ([-1, 0], [0.5, 0.5]),
    "negative weight": ([0, 1], [1.5, -0.5]),
    "nan": ([0, 1], [np.nan, 1]),
    "zero": ([0, 1], [0.0, 0.0]),
    "empty": ([], []),
}


@pytest.mark.parametrize("name", BAD)
def test_malformed_weights_are_refused(name: str) -> None:
    support, weights = BAD[name]
    dataset = marked(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]))
    with pytest.raises(CheckFailedError):
        examine(dataset, kind="gordan", support=np.array(support, np.int64), weights=np.array(weights, float))


def test_forged_scales_are_refused() -> None:
    large = np.array([[1e100, 1e100], [-1e100, -1e100]])
    data = marked(large, np.array([1, -1]))
    for support, weights in (([0], [1e-250]), ([0, 1], [1e-300] * 2), ([0, 1], [1.7e308] * 2), ([0, 1], [1e300] * 2)):
        with pytest.raises(CheckFailedError, match="simplex"):
            examine(data, kind="gordan", support=np.array(support), weights=np.array(weights))
    with pytest.raises(CheckFailedError, match="outside 1e-100"):
        examine(data, kind="separator", y=np.array([2.7e-162, 0.0]))


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_scales_that_are_accepted_are_decided(scale: float, arrays: Callable[..., Any]) -> None:
    import dfeas

    for kind, verdict in (("planted", "feasible"), ("gaussian", "infeasible")):
        X, labels = arrays(kind, 3, 300, margin=0.1, dtype="float64")
        assert dfeas.solve(X * scale, labels, intercept=False, eps=0.05, max_passes=500).verdict == verdict
    with pytest.raises(BadInputError, match="norms outside"):
        dfeas.solve(X * scale * scale, labels, intercept=False)


@pytest.mark.parametrize("y", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [1.0], [1.0, 1.0, 1.0]])
def test_a_malformed_separator_is_refused(y: list[float]) -> None:
    with pytest.raises(CheckFailedError):
        examine(marked(np.array([[1.0, 1.0]])), kind="separator", y=np.array(y))


def test_other_data_is_told_from_a_failed_check(dataset: Callable[..., Any], tmp_path: Path) -> None:
    path, header = dataset("planted", 4, 200, block_rows=50)
    other, _ = dataset("planted", 4, 200, name="other", seed=1, block_rows=50)
    Certificate("separator", header.fingerprint, y=np.ones(4)).save(tmp_path / "c.npz")
    with pytest.raises(CheckFailedError, match="not on the positive side"):
        verify_certificate(path, tmp_path / "c.npz", intercept=False)
    with pytest.raises(CorruptDataError, match="not what the certificate was made for"):
        verify_certificate(other, tmp_path / "c.npz", intercept=False)


@pytest.mark.parametrize("kernel", ["", "linear"])
def test_labels_that_are_no_signs_prove_nothing(kernel: str) -> None:
    dataset = open_source(Source(DataSpec(np.array([[1.0, 0], [0, 1], [-1, -1]]), np.array([1, 1, -1]), intercept=False)))
    dataset.labels = SliceReader("label", np.array([1, 0, 0], np.int8), 3, dataset.block_rows, np.dtype(np.int8))
    mark(dataset)
    text = kernel_of(kernel)[0].to_text() if kernel else ""
    positive = {"support": np.arange(3), "weights": np.ones(3)} if kernel else {"y": np.array([1.0, 2.0])}
    for certificate in (
        Certificate("gordan", dataset.fingerprint, support=np.array([1, 2]), weights=np.full(2, 0.5), kernel=text),
        Certificate("separator", dataset.fingerprint, **positive, kernel=text),
    ):
        with pytest.raises(CheckFailedError, match="a label is neither -1 nor"):
            check(LocalEngine(dataset, 1), dataset, certificate)


def test_any_changed_byte_of_the_data_is_seen(dataset: Callable[..., Any], tmp_path: Path) -> None:
    from dfeas.data.generate.points import Instance

    instance = Instance("planted", 4, 200, margin=0.2, block_rows=50)
    path, header = dataset("planted", 4, 200, margin=0.2, block_rows=50)
    Certificate("separator", header.fingerprint, y=instance.plane()).save(tmp_path / "c.npz")
    assert verify_certificate(path, tmp_path / "c.npz", intercept=False).margin_lower == pytest.approx(0.2, rel=1e-5)
    rng = np.random.default_rng(0)
    files = [p for p in path.rglob("*") if p.is_file()]
    for _ in range(150):
        file = files[rng.integers(len(files))]
        intact = file.read_bytes()
        at = rng.integers(len(intact))
        file.write_bytes(intact[:at] + bytes([intact[at] ^ (1 << int(rng.integers(8)))]) + intact[at + 1 :])
        try:
            proved = verify_certificate(path, tmp_path / "c.npz", intercept=False)
            assert proved.margin_lower == pytest.approx(0.2, rel=1e-5), file  # a byte that says nothing of the data
        except (CorruptDataError, BadInputError, CheckFailedError):
            pass
        file.write_bytes(intact)


def test_any_changed_byte_of_a_certificate_is_rejected_or_leaves_it_true(dataset: Callable[..., Any], tmp_path: Path) -> None:
    X = np.array([[1.0, 0.2], [1.0, -0.2], [0.9, 0.1]])
    data = marked(X)
    file = tmp_path / "c.npz"
    Certificate("separator", data.fingerprint, y=np.array([1.0, 0.0])).save(file)
    intact = file.read_bytes()
    accepted = 0
    for at in range(len(intact)):
        file.write_bytes(intact[:at] + bytes([intact[at] ^ 0x41]) + intact[at + 1 :])
        try:
            certificate = load(file)
            check(LocalEngine(data, 1), data, certificate)
        except (CorruptDataError, CheckFailedError):
            continue
        accepted += 1
        assert separates(X, certificate.y)
    assert accepted < len(intact) / 2


def test_certificates_survive_the_file(tmp_path: Path) -> None:
    one = Certificate("gordan", "ab", support=np.array([2, 5]), weights=np.array([0.25, 0.75]))
    one.save(tmp_path / "c.npz")
    two = load(tmp_path / "c.npz")
    assert (two.kind, two.fingerprint) == ("gordan", "ab")
    assert two.support.tolist() == [2, 5]
    assert two.weights.tolist() == [0.25, 0.75]
    assert two.y.size == 0


def test_certificate_files_that_could_do_harm_are_refused(tmp_path: Path) -> None:
    plain = {"kind": np.array("gordan"), "y": np.ones(0), "fingerprint": np.array("")}
    rest = {"support": np.zeros(1, np.int64), "weights": np.ones(1)}
    np.savez(tmp_path / "pickle.npz", **{**plain, **rest, "y": np.array([print], object)})
    np.savez(tmp_path / "kind.npz", **{**plain, **rest, "kind": np.array("other")})
    np.savez(tmp_path / "dtype.npz", **{**plain, **rest, "support": np.zeros(1)})
    np.savez(tmp_path / "missing.npz", **plain)
    (tmp_path / "text.npz").write_text("hello")
    for name in ("pickle", "kind", "dtype", "missing", "text"):
        with pytest.raises(CorruptDataError):
            load(tmp_path / f"{name}.npz")
    with pytest.raises(BadInputError):
        load(tmp_path / "none.npz")


def test_own_chunks_are_read_ahead_by_the_kernel_and_foreign_arrays_by_a_thread(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("planted", 4, 200)
    assert open_source(Source(DataSpec(path))).points.overlaps
    assert not open_source(Source(DataSpec(path / "X"))).points.overlaps


def _float32(rng: np.random.Generator, n: int, m: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Points in float32 on both sides of y, some of them as near to it as float32 can tell, or nearer."""
    y = rng.standard_normal(m)
    X = rng.standard_normal((n, m))
    share = rng.integers(0, n, max(1, n // 20))
    X[share] += np.outer(10.0 ** -rng.uniform(2, 9, len(share)) - (X[share] @ y) / (y @ y), y)
    if kind == "huge":
        X[rng.integers(n)] *= 1e25
    if kind == "tiny":
        X[rng.integers(n)] *= 1e-25
    if kind == "even":
        X[:] = X[:1]
    X[::2] *= -1
    return X.astype(np.float32), y


@pytest.mark.parametrize("kind", ["plain", "huge", "tiny", "even"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_margins_by_way_of_float32_are_sharp_and_never_too_large(kind: str, intercept: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = _float32(rng, 600, int(rng.integers(1, 40)), kind)
    if intercept:
        y = np.append(y, 1e-3)
    columns = np.hstack([X, np.ones((len(X), 1))]) if intercept else X.astype(float)
    exact = [sum(map(Fraction.__mul__, map(Fraction, row), map(Fraction, y))) for row in columns.tolist()]
    labels = np.array([1 if score > 0 else -1 for score in exact])
    found = examine(marked(X, labels, intercept=intercept), kind="separator", y=y)
    squares = [sum(Fraction(v) ** 2 for v in row) for row in columns.tolist()]
    size = sum(Fraction(v) ** 2 for v in y.tolist())
    least = min(score**2 / square for score, square in zip(exact, squares, strict=True)) / size
    assert Fraction(found.margin_lower) ** 2 <= least
    assert found.margin_lower >= (1 - 1e-6) * float(least) ** 0.5 - 1e-14
    labels[7] *= -1
    with pytest.raises(CheckFailedError, match="point 7 "):
        examine(marked(X, labels, intercept=intercept), kind="separator", y=y)
