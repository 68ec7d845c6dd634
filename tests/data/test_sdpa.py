"""SDPA's sparse format: read at once as line by line, and nothing else."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dfeas
from dfeas.data.ingest import sdpa

HEAD = '"a comment\n 3 = m\n 2 =nblocks\n (3, -2)\n{1.0, 2.0,\n 3.0}\n'
LAYOUT = sdpa.Layout(3, [3, -2])

number = st.sampled_from(["0", "1", "2", "3", "4", "-1", "+1", "1.0", "x"])
value = st.sampled_from(["1", "-2.5", "+3e-2", ".5", "1e400", "nan", "1_0", "0x1", "", "1 2"])
between = st.sampled_from([" ", "  ", "\t", ", ", " \r"])
words = st.tuples(number, number, number, number, value)
line = st.builds(lambda each, gap, end: gap.join(each) + end, words, between, between)
places = st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 3))
good = st.builds(lambda place, value: f"{place[0]} 1 {place[1]} {place[2]} {value!r}", places, st.floats(-9, 9))


def dense(entries: sdpa.Entries) -> np.ndarray:
    X, _ = LAYOUT.product(entries)
    return X.toarray()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(good, good, good, line, st.just("* comment"), st.just("")), max_size=6))
def test_entries_are_read_at_once_as_line_by_line_or_not_at_all(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    at_once = sdpa._at_once(text.encode(), LAYOUT)
    if at_once is not None:
        np.testing.assert_array_equal(dense(at_once), dense(sdpa._by_lines(Path("f"), text, 1, LAYOUT)))


def test_plain_entries_are_read_at_once() -> None:
    pytest.importorskip("pyarrow")
    text = b"0 1 1 1 -1.5\n1, 1, 2, 1, 2.0 \n  2 2 2 2 1e-3\n\n3\t1 3 3 4\n"
    found = sdpa._at_once(text, LAYOUT)
    assert found is not None
    np.testing.assert_array_equal(found.value, [-1.5, 2.0, 1e-3, 4.0])
    np.testing.assert_array_equal(found.i, [0, 0, 1, 2])


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_file_is_read_with_its_head(ends: str, tmp_path: Path) -> None:
    body = "0 1 1 1 -1.5\n1 1 2 1 2.0\n2 2 2 2 1e-3\n3 1 3 3 4\n"
    (tmp_path / "a.dat-s").write_text((HEAD + body).replace("\n", ends), newline="")
    X, cone = sdpa.read_sdpa(tmp_path / "a.dat-s")
    assert cone == {"l": 3, "s": [3]}
    expected = np.zeros((9, 4))
    expected[3 + 0, 3], expected[3 + 1, 0], expected[1, 1], expected[3 + 5, 2], expected[2, 3] = 1.5, 2 * np.sqrt(2), 1e-3, 4, 1
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
        ("1\n1\n2000000000\n1\n1 1 1 1 1\n", "line 3: a matrix of order 2e"),
        ("1\n1\n-20000000000000\n1\n1 1 1 1 1\n", "line 3: blocks of 2e.13 rows"),
        (f"1\n1\n-{'9' * 300}\n1\n1 1 1 1 1\n", "line 3: blocks of 1e.300 rows"),
        (f"1\n1\n-{'9' * 5000}\n1\n1 1 1 1 1\n", "line 3: .* is no whole number"),
        (f"{'9' * 5000}\n1\n1\n1\n", "line 1: expected a whole number"),
    ],
)
def test_what_is_no_such_file_is_refused_with_its_line(text: str, said: str | None, tmp_path: Path) -> None:
    (tmp_path / "a.dat-s").write_text(text)
    if said is None:
        assert sdpa.read_sdpa(tmp_path / "a.dat-s")[0].shape == (8, 3)
        return
    with pytest.raises(dfeas.BadInputError, match=said):
        sdpa.read_sdpa(tmp_path / "a.dat-s")
