"""What the checker adds up of blocks, takes from other certificates, and reads in claims: nothing is lost on the way."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source, Transform
from dfeas.data.storage.readers import Buffers, SliceReader
from dfeas.data.views import transform_features
from dfeas.engine.local import LocalEngine
from dfeas.errors import CheckFailedError, CorruptDataError, NewerFormatError
from dfeas.exact.arithmetic import _try_cholesky, without_zeros
from dfeas.exact.dyadic import Dyadic
from dfeas.kernels.kernel import kernel_of
from dfeas.passes.survey import Survey
from dfeas.records import replace
from dfeas.run.transform import mark_of
from dfeas.verify.blocks import Block, checksums_of, signs_of
from dfeas.verify.certificate import MANY, Certificate, Check, attempt, load
from dfeas.verify.core import check, check_each, conclude_separator, find_wrong, positives, sight
from dfeas.verify.points import Points, Sight
from dfeas.verify.separation import COMPLETE, OVERLAP, QUASI, Claim, load_claim, prove, require_idle
from dfeas.verify.tallies import append_node
from tests.verify.test_verify import marked

LINE = np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 1.0], [1.0, 2.0], [1.0, 2.0]])
"""Two points are the first one again."""


def in_blocks(X: np.ndarray, labels: list[int], rows: int) -> Dataset:
    """Points in memory, in blocks of so many, which are what is expected."""
    dataset = open_source(Source(DataSpec(X, intercept=False)))
    dataset.block_rows = rows
    dataset.points = SliceReader("X", X, len(X), rows, X.dtype)
    dataset.labels = SliceReader("label", np.array(labels, np.int8), len(X), rows, np.dtype(np.int8))
    dataset.expected = LocalEngine(dataset, 1).run(Survey()).checksums
    dataset.fingerprint = mark_of(dataset, dataset.expected)
    return dataset


def weighing(dataset: Dataset, *points: int) -> Certificate:
    weights = np.full(len(points), 1 / len(points))
    return Certificate("gordan", dataset.fingerprint, support=np.array(points), weights=weights)


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
@pytest.mark.parametrize("zero", [0, 2, 4])
def test_a_point_of_zero_is_a_conflict_in_whichever_block_it_is(rows: int, zero: int) -> None:
    X = LINE.copy()
    X[zero] = 0
    data = in_blocks(X, [1, 1, 1, 1, 1], rows)
    proved = check(LocalEngine(data, 1), data, weighing(data, 0, 1, 2, 4))
    assert (proved.verdict, proved.proof) == ("infeasible", "exact")


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_labels_that_are_no_signs_are_seen_in_whichever_block_they_are(rows: int) -> None:
    data = in_blocks(LINE, [1, 1, 1, 0, 1], rows)
    for one in (weighing(data, 0, 3), Certificate("separator", data.fingerprint, y=np.ones(2))):
        with pytest.raises(CheckFailedError, match="label is neither"):
            check(LocalEngine(data, 1), data, one)


@pytest.mark.parametrize("pieces", [1, 2, 4])
@pytest.mark.parametrize("points", [(0, 2), (1, 3), (0, 1), (2, 3)])
def test_a_conflict_seen_from_a_point_is_one_in_whichever_blocks_it_is(pieces: int, points: tuple[int, int]) -> None:
    X, place = np.array([[0.5, 0.0], [0.0, 0.25], [-0.25, 0.0], [0.0, -0.125]]), np.array([0.125, 0.25])
    if points in ((0, 1), (2, 3)):
        X = X[[0, 2, 1, 3]]
    data = open_source(Source(DataSpec(X + place, point=tuple(place.tolist()))))
    one = Certificate("gordan", "", support=np.array(points), weights=np.full(2, 0.5), view=data.view)
    look, places, label = Sight.of(data, [one]), np.array_split(np.arange(4), pieces), np.ones(4, np.int8)
    found = [look.look(Block(0, int(rows[0]), (X + place)[rows], X[rows], label[rows], b"")) for rows in places]
    for other in found[1:]:
        found[0].add(other)
    (proved,) = Points().conclude(found[0], [one], data, lambda: None)
    assert isinstance(proved, Check)
    assert (proved.verdict, proved.proof) == ("infeasible", "exact")


@pytest.mark.parametrize("wrong", [0, 1])
def test_integers_and_floats_that_are_checked_together_prove_their_own(wrong: int) -> None:
    data = marked(LINE.astype(np.float32))
    # the other one is wrong of points that the right one has far beyond its nearest
    said = {True: (np.array([0.5, 0.5]), (1, 1)), False: (np.array([0.5, -0.375]), (4, -3))}
    y, integers = said[wrong != 0]
    ones = [Certificate("separator", data.fingerprint, y=y, integers=integers)]
    ones.append(Certificate("separator", data.fingerprint, y=said[wrong != 1][0]))
    for order in (ones, ones[::-1]):
        answers = check_each(LocalEngine(data, 1), data, order).answers
        assert [isinstance(each, Check) for each in answers] == [bool(one.y[1] > 0) for one in order]


def test_certificates_of_points_and_of_a_kernel_are_checked_each_by_its_own() -> None:
    """The unit vectors of the points conflict, and in the kernel's space they do not."""
    data = marked(np.array([[1.0, 0.0], [-1.0, 0.0]]))
    plain = weighing(data, 0, 1)
    rbf = replace(plain, kernel=kernel_of("rbf", 1.0)[0].to_text())
    alone = [check(LocalEngine(data, 1), data, one) for one in (plain, rbf)]
    assert [each.verdict for each in alone] == ["infeasible", "eps-infeasible"]
    for order in ((0, 1), (1, 0), (0, 1, 0)):
        answers = check_each(LocalEngine(data, 1), data, [(plain, rbf)[i] for i in order]).answers
        assert answers == [alone[i] for i in order]


def test_the_margin_is_a_share_of_the_longest_point_where_points_keep_their_lengths() -> None:
    X = np.array([[2.0**-7, 0.0], [1.0, 1.0]], np.float32)
    data = marked(X)
    seen = transform_features(data, Transform(normalize=False, points=2, length=float(np.sqrt(2))))
    found = sight_of(seen, Certificate("separator", "", y=np.array([1.0, 0.0]), view=seen.view), X)
    assert 0.999 * 2.0**-7.5 <= found.margin_lower <= 2.0**-7.5 * (1 + 1e-15)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("off", "sound"), [(0.0, True), (2.0**-52, True), (1e-14, False), (-1e-14, False), (-0.5, False), (1.0, False)]
)
def test_the_length_that_points_are_divided_by_is_that_of_the_longest(off: float, sound: bool, intercept: bool) -> None:
    X = np.array([[3.0, 4.0], [1.0, 1.0]])
    length = float(np.sqrt(25.0 + intercept)) * (1 + off)
    data = transform_features(marked(X, intercept=intercept), Transform(normalize=False, points=2, length=length))
    one = Certificate("separator", "", y=np.ones(2 + intercept), view=data.view)
    if sound:
        assert sight_of(data, one, X).verdict == "feasible"
    else:
        with pytest.raises(CheckFailedError, match="the longest point is said to be"):
            sight_of(data, one, X)


def sight_of(data: Dataset, one: Certificate, X: Any, pieces: int = 1) -> Any:
    """What pieces of signed points show, added up."""
    look, places = Sight.of(data, [one]), [rows.tolist() for rows in np.array_split(np.arange(X.shape[0]), pieces)]
    parts = [look(rows[0], X[rows[0] : rows[-1] + 1], np.ones(len(rows), np.int8)) for rows in places]
    for other in parts[1:]:
        parts[0].add(other)
    (answer,) = Points().conclude(parts[0], [one], data, lambda: None)
    if isinstance(answer, CheckFailedError):
        raise answer
    return answer


@pytest.mark.parametrize("pieces", [1, 2, 4])
@pytest.mark.parametrize("factor", [(0.5, 1.0), (0.25, 1.0)])
def test_factors_are_those_of_the_first_points_whatever_the_blocks(pieces: int, factor: tuple[float, float]) -> None:
    X = np.array([[1.0, 1.0], [2.0, 1.0], [8.0, 0.5], [1.0, 4.0]])
    data = transform_features(marked(X), Transform("maxabs", points=2, factor=factor))
    one = Certificate("separator", "", y=np.ones(2), view=data.view)
    if factor[0] == 0.5:
        assert sight_of(data, one, X, pieces).verdict == "feasible"
    else:
        with pytest.raises(CheckFailedError, match="scaled by 1 / maxabs"):
            sight_of(data, one, X, pieces)


@pytest.mark.parametrize("scale", [2.0**-90, 1.0, 2.0**90])
@pytest.mark.parametrize("off", [0, 1])
def test_points_are_centred_at_their_mean_to_the_last_bit_whatever_their_scale(scale: float, off: int) -> None:
    X = np.array([[3.0, 1.0], [4.0, 5.0], [4.0, -9.0]]) * scale
    mean = [float(Fraction(11, 3) * Fraction(scale)), -scale]
    shift = (float(np.nextafter(mean[0], np.inf)) if off else mean[0], mean[1])
    data = transform_features(marked(X), Transform(center=True, points=3, shift=shift))
    one = Certificate("gordan", "", support=np.arange(3), weights=np.full(3, 1 / 3), view=data.view)
    if off:
        with pytest.raises(CheckFailedError, match="centred at"):
            sight_of(data, one, X)
    else:
        assert sight_of(data, one, X).verdict.endswith("infeasible")


@pytest.mark.parametrize("factor", [0.5, 1.0])
def test_a_constant_feature_is_not_scaled(factor: float) -> None:
    X = np.array([[1.0, 2.0], [3.0, 2.0]])
    data = transform_features(marked(X), Transform("std", points=2, factor=(1.0, factor)))
    one = Certificate("separator", "", y=np.ones(2), view=data.view)
    if factor == 1.0:
        assert sight_of(data, one, X).verdict == "feasible"
    else:
        with pytest.raises(CheckFailedError, match="scaled by"):
            sight_of(data, one, X)


@pytest.mark.parametrize(("scale", "factor"), [("std", (2.0, 1.0)), ("maxabs", (0.5, 0.25))])
def test_a_standard_deviation_may_be_rounded_and_a_greatest_value_not(scale: str, factor: tuple[float, float]) -> None:
    X = np.array([[1.0, 2.0], [2.0, 4.0]])
    near = Transform(scale, points=2, factor=(factor[0] * (1 + 1e-11), factor[1]))
    data = transform_features(marked(X), near)
    one = Certificate("separator", "", y=np.ones(2), view=data.view)
    if scale == "std":
        assert sight_of(data, one, X).verdict == "feasible"
    else:
        with pytest.raises(CheckFailedError, match="scaled by 1 / maxabs"):
            sight_of(data, one, X)


@pytest.mark.parametrize(("factor", "sound"), [(0.5, True), (0.5 * (1 + 1e-8), False), (0.25, False), (1.0, False)])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_a_standard_deviation_is_that_of_all_entries(factor: float, sound: bool, sparse: bool, pieces: int) -> None:
    """Of 1, 5, 1, 5 and of 0, 4, 0, 4 it is 2, whatever the blocks."""
    dense = np.array([[1.0, 0.0], [5.0, 4.0], [1.0, 0.0], [5.0, 4.0]])
    X = scipy.sparse.csr_array(dense) if sparse else dense
    data = transform_features(marked(X), Transform("std", points=4, factor=(0.5, factor)))
    one = Certificate("separator", "", y=np.array([1.0, 0.5]), view=data.view)
    if sound:
        assert sight_of(data, one, X, pieces).verdict == "feasible"
    else:
        with pytest.raises(CheckFailedError, match="scaled by 1 / std"):
            sight_of(data, one, X, pieces)


@pytest.mark.parametrize(("off", "sound"), [(-90, False), (-50, True), (0, True), (50, True), (90, False)])
def test_a_standard_deviation_of_points_far_from_the_origin_is_as_sharp_as_float64_there(off: int, sound: bool) -> None:
    """Of 2**30 - 1 and 2**30 + 1: so many units of 2**30 beside 1."""
    X = np.array([[2.0**30 - 1], [2.0**30 + 1]])
    data = transform_features(marked(X), Transform("std", points=2, factor=(1 / (1 + off * 2.0**-23),)))
    one = Certificate("separator", "", y=np.ones(1), view=data.view)
    if sound:
        assert sight_of(data, one, X).verdict == "feasible"
    else:
        with pytest.raises(CheckFailedError, match="scaled by 1 / std"):
            sight_of(data, one, X)


@pytest.mark.parametrize("sparse", [True, False])
def test_points_that_are_scaled_are_zero_where_they_were(sparse: bool) -> None:
    dense = np.array([[2.0, 0.0], [0.0, 4.0], [0.0, 0.0], [1.0, 1.0]])
    X = scipy.sparse.csr_array(dense) if sparse else dense
    data = transform_features(marked(X), Transform("maxabs", points=3, factor=(0.5, 0.25)))
    one = Certificate("gordan", "", support=np.arange(2), weights=np.full(2, 0.5), view=data.view)
    assert sight_of(data, one, X).verdict == "eps-infeasible"
    assert sight_of(data, replace(one, support=np.arange(1, 3)), X).verdict == "infeasible"
    assert sight_of(data, replace(one, support=np.array([0, 3])), X).verdict == "eps-infeasible"


def test_labels_of_one_class_are_signs_of_one() -> None:
    for code, sign in ((0, [1, -1, -1, -1]), (1, [-1, 1, -1, 1]), (3, [-1, -1, -1, -1])):
        assert signs_of(np.array([0, 1, 2, 1], np.int8), code).tolist() == sign
    assert signs_of(np.array([1, -1, 0, 2, -2, 127, -128], np.int8), None).tolist() == [1, -1, 0, 0, 0, 0, 0]


def test_bits_that_scaling_loses_at_the_end_of_float64_are_no_separator() -> None:
    """Half of 3 and of -5 units in the last place are 2 and -2, rounded: 1.1 3 < 5, and 1.1 2 > 2."""
    X = np.array([[1.0, 3 * 5e-324, -5 * 5e-324], [0.0, 2.0, 2.0]])
    data = transform_features(marked(X), Transform("maxabs", points=2, factor=(1.0, 0.5, 0.5)))
    with pytest.raises(CheckFailedError, match="not a separator: point 0"):
        sight_of(data, Certificate("separator", "", y=np.array([0.0, 1.1e99, 1e99]), view=data.view), X)


def test_a_quick_check_reads_blocks_of_the_conflict_unless_a_transform_is_about_all() -> None:
    X = np.array([[1.0, 2.0], [-1.0, -2.0], [1.0, 1.0], [4.0, 1.0]])
    data = in_blocks(X, [1, 1, 1, 1], 2)
    assert check(LocalEngine(data, 1), data, weighing(data, 0, 1), quick=True).points_read == 2
    assert check(LocalEngine(data, 1), data, weighing(data, 0, 1)).points_read == 4


def test_a_look_at_blocks_of_others_shows_what_a_check_does() -> None:
    data = marked(LINE)
    one = Certificate("separator", data.fingerprint, y=np.ones(2))
    look = sight(data, one)
    assert look is not None
    shown = look(0, LINE, np.ones(len(LINE), np.int8))
    assert shown is not None
    assert conclude_separator(data, one, shown) == check(LocalEngine(data, 1), data, one)
    assert look(0, LINE * np.nan, np.ones(len(LINE), np.int8)) is None
    for other in (weighing(data, 0, 1), replace(one, y=np.zeros(2)), replace(one, kernel=kernel_of("linear")[0].to_text())):
        assert sight(data, other) is None


@given(st.integers(0, 10_000))
def test_all_points_on_the_wrong_side_are_found_by_way_of_float32(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, labels, y = rng.integers(-3, 4, (12, 3)).astype(np.float32), np.tile([1, -1], 6), np.array([1.0, -2.0, 1.0])
    data = marked(X, labels)
    ((wrong, flat),) = find_wrong(LocalEngine(data, 1), data, [Certificate("separator", data.fingerprint, y=y)])
    assert wrong.tolist() == np.flatnonzero(X @ y * labels <= 0).tolist()
    assert flat == np.flatnonzero(X @ y == 0).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_points_are_not_multiplied_as_dense_ones(dtype: str) -> None:
    X = LINE.astype(dtype)
    for y, sound in (([1.0, 1.0], True), ([0.5, -0.375], False)):
        one = Certificate("separator", "", y=np.array(y))
        found = [attempt(sight_of, marked(points), one, points) for points in (X, scipy.sparse.csr_array(X))]
        assert [isinstance(each, Check) for each in found] == [sound, sound]


def test_of_several_matrices_those_that_are_not_positive_definite_are_told() -> None:
    S = np.stack([np.eye(2), -np.eye(2), 3 * np.eye(2), np.ones((2, 2)) - 2 * np.eye(2)])
    assert _try_cholesky(S).tolist() == [True, False, True, False]


def test_of_classes_the_least_proof_is_said() -> None:
    exact, rigorous = (Check("feasible", proof, 0.1, 1.0, 3, 0, "") for proof in ("exact", "rigorous"))
    assert Check.of_classes({"a": exact, "b": rigorous}).proof == "rigorous"
    assert Check.of_classes({"a": exact, "b": None}).proof == "exact"


def test_all_of_a_certificate_survives_the_file(tmp_path: Path) -> None:
    whole = {"kernel": "{}", "view": "{}", "features": ("a", "b"), "integers": (1, 2**70)}
    for more in ({}, whole):
        one = Certificate("separator", "ab", y=np.array([1.0, 2.0]), **more)
        one.save(tmp_path / "c.npz")
        found = load(tmp_path / "c.npz")
        assert [getattr(found, name) for name in whole] == [getattr(one, name) for name in whole]
        with np.load(tmp_path / "c.npz") as arrays:
            np.savez(tmp_path / "newer.npz", **{**arrays, "format": np.array(9)})
        with pytest.raises(NewerFormatError):
            load(tmp_path / "newer.npz")


@pytest.mark.parametrize(("rows", "together", "chunk"), [(50, 1, 2), (2, 2, 11)])
def test_labels_are_counted_as_they_were_ingested(dataset: Callable[..., Any], rows: int, together: int, chunk: int) -> None:
    path, _ = dataset("planted", 4, 200, block_rows=rows)
    data = open_source(Source(DataSpec(path)))
    assert data.together == together
    label = np.concatenate([data.labels.read(index, Buffers()) for index in range(200 // data.block_rows)])
    assert positives(LocalEngine(data, 1), data) == (label > 0).sum()
    file = path / "label" / "c.0"
    held = bytearray(file.read_bytes())
    held[chunk * (rows + 4) + 1] ^= 2  # each chunk has a checksum behind it
    file.write_bytes(held)
    data = open_source(Source(DataSpec(path)))
    with pytest.raises(CorruptDataError, match=f"chunk {chunk} of label is damaged"):
        positives(LocalEngine(data, 1), data)


def test_many_weights_are_read_to_the_end_before_they_are_mapped(tmp_path: Path) -> None:
    weights = np.full(MANY + 1, 0.5)
    weights[-1] = 0.123
    Certificate("gordan", "ab", support=np.arange(MANY + 1), weights=weights).save(tmp_path / "c.npz")
    assert load(tmp_path / "c.npz").weights[-1] == 0.123
    held = bytearray((tmp_path / "c.npz").read_bytes())
    held[held.rindex(weights[-1:].tobytes())] ^= 1
    (tmp_path / "c.npz").write_bytes(held)
    with pytest.raises(CorruptDataError, match="not a readable certificate"):
        load(tmp_path / "c.npz")


@pytest.mark.parametrize("sparse", [False, True])
def test_checksums_of_several_chunks_are_those_of_each(sparse: bool) -> None:
    X, labels = np.arange(14.0).reshape(7, 2) % 3, np.arange(7, dtype=np.int8)
    points: Any = scipy.sparse.csr_array(X) if sparse else X
    single = b"".join(checksums_of(points[i : i + 3], labels[i : i + 3], 3) for i in (0, 3, 6))
    assert checksums_of(points, labels, 3) == single


def test_features_that_some_point_has_stay() -> None:
    X = np.array([[0.0, 2.0, 0.0, 3.0], [0.0, 0.0, 0.0, 4.0]])
    points, used = without_zeros(scipy.sparse.csr_array(X))
    assert used.tolist() == [1, 3]
    assert points.toarray().tolist() == X[:, used].tolist()
    points, used = without_zeros(scipy.sparse.csr_array(0 * X))
    assert (points.shape, used.tolist()) == ((2, 1), [0])


def test_integers_beyond_float64_keep_their_signs() -> None:
    assert Dyadic(np.array([2**1100 + 1, -(2**1100) - 1], object), -1100).floats().tolist() == [1.0, -1.0]
    for exponent, size in ((2**70, np.inf), (-(2**70), 0.0)):
        assert Dyadic(np.array([3, -3], object), exponent).floats().tolist() == [size, -size]


class Text:
    """What blocks showed, as the sum of it is taken."""

    checksums = b""

    def __init__(self, said: str) -> None:
        self.said = said

    def add(self, other: Any) -> None:
        self.said = f"({self.said}{other.said})"


def test_blocks_are_added_up_in_pairs() -> None:
    nodes: list[Any] = []
    for index in range(7):
        append_node(nodes, (0, index, Text(str(index))))
    assert [part.said for _, _, part in nodes] == ["((01)(23))", "(45)", "6"]


NONE = Claim(OVERLAP, "exact", "", 0, None, None, np.empty(0, np.int64), np.empty(0, object), np.zeros((0, 0), object))


def whole(*values: Any) -> Any:
    return np.array(values, object)


@pytest.mark.parametrize(
    ("other", "sound"), [([2, 2, 0, 0], True), ([1, -1, 0, 0], False), ([0, 0, 0, 1], False), ([0, 0, 0, -1], False)]
)
def test_a_point_on_the_hyperplane_beside_what_the_conflict_spans_is_refused(other: list[int], sound: bool) -> None:
    """Another hyperplane may have it beyond, so that this one does not have the most points there."""
    data = marked(np.array([[1.0, 1, 0, 0], [-1, -1, 0, 0], other, [0, 0, 1, 0]]))
    claim = replace(NONE, kind=QUASI, fingerprint=data.fingerprint, on=3, rank=1, y=whole(0, 0, 1, 0))
    claim = replace(claim, support=np.arange(2), weights=whole(1, 1))
    if sound:
        assert prove(LocalEngine(data, 1), data, claim) == "exact"
        for y in (None, whole(0, 0, 0, 0), whole(0, 0, 1)):
            with pytest.raises(CheckFailedError, match="y is missing or zero"):
                prove(LocalEngine(data, 1), data, replace(claim, y=y))
    else:
        with pytest.raises(CheckFailedError, match="point 2 is on the hyperplane and not in"):
            prove(LocalEngine(data, 1), data, claim)


@pytest.mark.parametrize("flat", [[], [[1, -1, 0]], [[1, -1, 0], [0, 0, 1]]])
def test_vectors_of_a_claim_are_columns(flat: list[list[int]], tmp_path: Path) -> None:
    values = {"kind": OVERLAP, "proof": "exact", "fingerprint": "ab", "on": 0, "rank": 1, "y": None, "support": [0, 1]}
    (tmp_path / "separation.json").write_text(json.dumps({"format": 1, **values, "weights": [1, 1], "flat": flat}))
    assert load_claim(tmp_path / "separation.json").flat.T.tolist() == flat


@pytest.mark.parametrize(("flat", "sound"), [([1, -1], True), ([0, 0], False)])
def test_a_subspace_of_an_overlap_is_named_by_independent_vectors(flat: list[int], sound: bool) -> None:
    other = [2.0, 2.0] if sound else [1.0, 0.0]
    data = marked(np.array([[1.0, 1.0], [-1.0, -1.0], other]))
    claim = replace(NONE, fingerprint=data.fingerprint, rank=1, support=np.arange(2), weights=whole(1, 1))
    claim = replace(claim, flat=whole(flat).T)
    if sound:
        assert prove(LocalEngine(data, 1), data, claim) == "exact"
    else:
        with pytest.raises(CheckFailedError, match="no basis"):
            prove(LocalEngine(data, 1), data, claim)


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_sides_of_points_are_counted_in_whichever_blocks_they_are(rows: int) -> None:
    """Two points conflict on the hyperplane of (0, 1), one is beside them there, and four are beyond."""
    X = np.array([[0.0, 1.0], [1.0, 0.0], [5.0, 2.0], [2.0, 0.0], [-1.0, 0.0], [3.0, 1.0], [-9.0, 4.0]])
    data = in_blocks(X, [1] * len(X), rows)
    conflict = {"support": np.array([1, 4]), "weights": whole(1, 1), "rank": 1, "fingerprint": data.fingerprint}
    claim = replace(NONE, kind=QUASI, y=whole(0, 1), on=3, **conflict)
    assert prove(LocalEngine(data, 1), data, claim) == "exact"
    for on in (2, 4):
        with pytest.raises(CheckFailedError, match="3 points are on the hyperplane and 4 beyond it"):
            prove(LocalEngine(data, 1), data, replace(claim, on=on))
    with pytest.raises(CheckFailedError, match="point 4 is on the negative side"):
        prove(LocalEngine(data, 1), data, replace(claim, y=whole(1, 4)))


def test_complete_separation_without_its_plane_is_what_was_proved_of_a_separator() -> None:
    data, claim = marked(LINE), replace(NONE, kind=COMPLETE)
    for verdict in ("infeasible", "eps-infeasible", None):
        proved = verdict and Check(verdict, "exact", -1.0, 0.0, 5, 0, "")
        with pytest.raises(CheckFailedError, match="is proved"):
            prove(LocalEngine(data, 1), data, claim, proved or None)
    assert prove(LocalEngine(data, 1), data, claim, Check("feasible", "rigorous", 0.1, 1.0, 5, 0, "")) == "rigorous"


@pytest.mark.parametrize(
    ("kind", "changes", "idle"),
    [
        (COMPLETE, {}, False),
        (COMPLETE, {"support": np.arange(2)}, True),
        (COMPLETE, {"weights": whole(1)}, True),
        (COMPLETE, {"rank": 1}, True),
        (COMPLETE, {"flat": whole([1, 2])}, True),
        (COMPLETE, {"on": 1}, True),
        (QUASI, {"support": np.arange(2), "weights": whole(1, 1), "rank": 1, "on": 2}, False),
        (QUASI, {"flat": whole([1, 2])}, True),
        (OVERLAP, {"support": np.arange(2), "weights": whole(1, 1), "rank": 1, "flat": whole([1, 2])}, False),
        (OVERLAP, {"rank": 2, "flat": whole([1, 2])}, True),
        (OVERLAP, {"rank": 2, "y": whole(1, 2)}, True),
        (OVERLAP, {"rank": 2, "on": 1}, True),
    ],
)
def test_a_claim_says_no_more_than_is_proved(kind: str, changes: dict[str, Any], idle: bool) -> None:
    claim = replace(NONE, kind=kind, **changes)
    if idle:
        with pytest.raises(CheckFailedError, match="more than"):
            require_idle(claim, 2)
    else:
        require_idle(claim, 2)
