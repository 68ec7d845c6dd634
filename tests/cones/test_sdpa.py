"""SDPA's sparse format: read at once as line by line, and nothing else."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dfeas
from dfeas.cones import sdpa as cones

HEAD = '"a comment\n 3 = m\n 2 =nblocks\n (3, -2)\n{1.0, 2.0,\n 3.0}\n'
LAYOUT = cones.Layout(3, [3, -2])

number = st.sampled_from(["0", "1", "2", "3", "4", "-1", "+1", "1.0", "x"])
value = st.sampled_from(["1", "-2.5", "+3e-2", ".5", "1e400", "nan", "1_0", "0x1", "", "1 2"])
between = st.sampled_from([" ", "  ", "\t", ", ", " \r"])
words = st.tuples(number, number, number, number, value)
line = st.builds(lambda each, gap, end: gap.join(each) + end, words, between, between)
places = st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 3))
good = st.builds(lambda place, value: f"{place[0]} 1 {place[1]} {place[2]} {value!r}", places, st.floats(-9, 9))


def dense(entries: cones.MatrixEntries) -> np.ndarray:
    X, _ = LAYOUT.product(entries)
    return X.toarray()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(good, good, good, line, st.just("* comment"), st.just("")), max_size=6))
def test_entries_are_read_at_once_as_line_by_line_or_not_at_all(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    at_once = cones._at_once(text.encode(), LAYOUT)
    if at_once is not None:
        np.testing.assert_array_equal(dense(at_once), dense(cones._by_lines(Path("f"), text, 1, LAYOUT)))


def test_plain_entries_are_read_at_once() -> None:
    pytest.importorskip("pyarrow")
    text = b"0 1 1 1 -1.5\n1, 1, 2, 1, 2.0 \n  2 2 2 2 1e-3\n\n3\t1 3 3 4\n"
    found = cones._at_once(text, LAYOUT)
    assert found is not None
    np.testing.assert_array_equal(found.value, [-1.5, 2.0, 1e-3, 4.0])
    np.testing.assert_array_equal(found.i, [0, 0, 1, 2])


def blocks_of(entries: cones.MatrixEntries, sizes: list[int], y: np.ndarray) -> list[np.ndarray]:
    """The matrices of all blocks at y."""
    found = [np.zeros((abs(size), abs(size))) for size in sizes]
    for matrix, block, i, j, value in zip(*vars(entries).values(), strict=True):
        found[block][[i, j], [j, i]] = found[block][i, j] + y[matrix] * value
    return found


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.sampled_from([-3, -1, 1, 2, 5, 9]), min_size=1, max_size=4), st.floats(0.0, 0.4))
def test_blocks_fall_apart_into_those_that_all_matrices_have(seed: int, sizes: list[int], share: float) -> None:
    rng, found = np.random.default_rng(seed), []
    for block, size in enumerate(sizes):
        for matrix in range(4):
            full = np.eye(abs(size)) if size < 0 else np.triu(rng.random((size, size)) < share)
            found += [(matrix, block, i, j, float(rng.integers(-1, 3))) for i, j in np.argwhere(full)]
    columns = np.array(found).T.reshape(5, -1)
    entries = cones.MatrixEntries(*columns[:4].astype(np.int64), columns[4])
    layout, others = cones.apart(cones.Layout(3, sizes), entries)
    assert sum(map(abs, layout.sizes)) == sum(map(abs, sizes))
    assert 1 not in layout.sizes
    y = rng.standard_normal(4)
    values = [np.sort(np.concatenate([np.linalg.eigvalsh(each) for each in blocks])) for blocks in
              (blocks_of(entries, sizes, y), blocks_of(others, layout.sizes, y))]  # fmt: skip
    np.testing.assert_allclose(values[0], values[1], atol=1e-12)
    for block, size in enumerate(layout.sizes):  # and none of them falls apart further
        if size > 0:
            joined = np.eye(size)
            own = (others.block == block) & (others.i != others.j)
            joined[others.i[own], others.j[own]] = joined[others.j[own], others.i[own]] = 1
            assert (np.linalg.matrix_power(joined, size) > 0).all()


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_file_is_read_with_its_head(ends: str, tmp_path: Path) -> None:
    body = "0 1 1 1 -1.5\n1 1 2 1 2.0\n2 2 2 2 1e-3\n3 1 3 3 4\n"
    (tmp_path / "a.dat-s").write_text((HEAD + body).replace("\n", ends), newline="")
    X, cone = cones.read_sdpa(tmp_path / "a.dat-s")
    assert cone == {"l": 4, "s": [2]}  # the third row of the matrices is alone
    expected = np.zeros((7, 4))
    expected[4 + 0, 3], expected[4 + 1, 0], expected[2, 1], expected[0, 2], expected[3, 3] = 1.5, 2 * np.sqrt(2), 1e-3, 4, 1
    np.testing.assert_array_equal(X.toarray(), expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD, None),
        ("3\n2\n", "too short"),
        ("3\n1\n2\n1.0 2.0\n", "ends before the 3 numbers"),
        (HEAD + "0 1 1 1 1\n9 1 1 1 1\n", "line 8: matrix 9, block 1"),
        (HEAD + "0 1 1 2 1\n* so\n0 1 2 1 2\n", "line 9: .* not symmetric"),
        (HEAD + "0 1 1 2 1\n0 1 1 2 2\n", "line 8: .* given twice"),
        (HEAD + "0 2 1 2 1\n", "line 7: .* off the diagonal"),
        (HEAD + "0 2 1 2\n", "line 7: expected matrix"),
        (HEAD + "0 1 1 1 1_0\n", "line 7: '1_0' is no number"),
        (HEAD + "0 1 1_0 1 1\n", "line 7: '1_0' is no whole number"),
        ("3\n1\n2\n1.0 2.0\n1 1 1 1 1\n2 1 1 1 1\n", "line 5: the cost has 2 numbers .* 7 with it, expected 3"),
        ("2\n2\n2\n-2\n1 1\n1 1 1 1 1\n", "line 3: expected the sizes of 2 blocks"),
        ("2\n0\n\n1 1\n1 1 1 1 1\n", "line 4: expected the sizes of 1 blocks"),
        ("1\n1\n2000000000\n1\n1 1 1 1 1\n", "line 3: blocks of 2e.18 rows"),
        ("1\n1\n3000\n1\n" + "".join(f"1 1 {i} {i + 1} 1\n" for i in range(1, 3000)), "a matrix of order 3000; at most 2000"),
        ("1\n1\n-20000000000000\n1\n1 1 1 1 1\n", "line 3: blocks of 2e.13 rows"),
        (f"1\n1\n-{'9' * 300}\n1\n1 1 1 1 1\n", "line 3: blocks of 1e.300 rows"),
        (f"1\n1\n-{'9' * 5000}\n1\n1 1 1 1 1\n", "line 3: .* is no whole number"),
        (f"{'9' * 5000}\n1\n1\n1\n", "line 1: expected a whole number"),
    ],
)
def test_what_is_no_such_file_is_refused_with_its_line(text: str, said: str | None, tmp_path: Path) -> None:
    (tmp_path / "a.dat-s").write_text(text)
    if said is None:
        assert cones.read_sdpa(tmp_path / "a.dat-s")[0].shape == (5, 3)  # all rows of the matrices are alone
        return
    with pytest.raises(dfeas.BadInputError, match=said):
        cones.read_sdpa(tmp_path / "a.dat-s")
