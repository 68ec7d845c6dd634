"""Text, mutated: read at once it is what it is line by line, and a file is ingested or refused in one line."""

import bz2
import gzip
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dfeas import ingest
from dfeas.data.ingest import svmlight
from dfeas.data.ingest import text as lines
from dfeas.data.ingest.csv_file import CsvLines, CsvPoints
from dfeas.data.ingest.options import IngestOptions
from dfeas.data.ingest.svmlight import Svmlight
from dfeas.errors import DfeasError
from tests.data.making import stored

SVMLIGHT = b"+1 1:0.5 3:-2e-3\n-1 2:1.25 # note\n+1 qid:3 1:7 2:8 3:9\r\n-1 3:1e2 \n"
CSV = b'a,b,y\n0.5,-2e-3,u\n1.25,7,"v"\r\n8,9,u\n'
TOKENS = [
    *(bytes([each]) for each in b'\0\r\n\t :,"#+-e.09\xff\x0b\x01'),
    *(b"nan", b"inf", b"1e400", b"1e-400", b"0x1", b"1_0", b"1:", b":1", b"\n\n", b"qid:", b"00", b"e2", b"1e308", b"\xc2\xb2"),
]


def mutated(content: bytes) -> st.SearchStrategy[bytes]:
    """Some pieces of a text are cut out or replaced by tokens that mean something."""
    edit = st.tuples(st.integers(0, len(content)), st.integers(0, 3), st.sampled_from(TOKENS) | st.binary(max_size=3))

    def apply(edits: list[tuple[int, int, bytes]]) -> bytes:
        text = content
        for place, size, token in sorted(edits, reverse=True):
            text = text[:place] + token + text[place + size :]
        return text

    return st.lists(edit, min_size=1, max_size=4).map(apply)


def outcome(action: Callable[[], Any]) -> tuple[Any, DfeasError | None]:
    """What an action returned, or how it was refused."""
    try:
        return action(), None
    except DfeasError as error:
        return None, error


@settings(max_examples=150)
@given(mutated(SVMLIGHT), st.booleans())
@example(b"1 1e2:3\n", False)
@example(b"1 1.5e4:3\n", False)
@example(b"1 -0:3\n", True)
@example(b"+-1 1:3\n", False)
@example(b"+e1 1:3\n", False)
@example(b"+ 1:3\n", False)
@example(b"+. 1:3\n", False)
def test_svmlight_at_once_and_line_by_line_are_the_same(text: bytes, zero_based: bool) -> None:
    found = svmlight._parse_run(text, 200, 0 if zero_based else 1)
    reader = Svmlight.__new__(Svmlight)
    reader.where, reader.m, reader._base, reader._given = "here", 200, 0 if zero_based else 1, True
    expected, error = outcome(lambda: reader._parse_lines(lines.Lines(1, text)))
    if error is not None:
        assert found is None, text
        assert str(error).startswith("here: line ")
        return
    labels, values, _, _ = expected
    assert np.isfinite(labels).all()
    assert np.isfinite(values).all()
    if found is not None:
        assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


@settings(max_examples=150)
@given(mutated(CSV.partition(b"\n")[2]))
@example(b'1,2,"u\n3,4,v"\n')
@example(b'"1"5,2,u\n')
@example(b"1,2,\n")
@example(b"1,2,\0\n")
@example(b"\xef\xbb\xbf0.5,-2e-3,u\n")
def test_csv_at_once_and_line_by_line_are_the_same(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.csv"
    path.write_bytes(CSV)
    options = IngestOptions(label_column="y")
    reader = CsvPoints(CsvLines(path, "csv", options), options)
    found = reader._parse_run(text)
    expected, error = outcome(lambda: reader._parse_lines(lines.Lines(1, text)))
    if error is not None:
        assert found is None, text
        assert "fuzzed.csv: line " in str(error)
        return
    assert np.isfinite(expected.points).all()
    if found is not None:
        assert np.array_equal(found.points, expected.points)
        labels = [[batch.labels.values[code] for code in batch.labels.codes] for batch in (found, expected)]
        assert labels[0] == labels[1]


FUZZED = [
    ("a.svm", SVMLIGHT, {}),
    ("a.svm", SVMLIGHT, {"features": 4}),
    ("a.svm", SVMLIGHT, {"zero_based": True}),
    ("a.csv", CSV, {"label_column": "y"}),
    ("a.csv", CSV, {"label_column": "0", "header": False}),
    ("a.tsv", CSV.replace(b",", b"\t"), {"label_column": "y", "positive": "u"}),
]


@settings(max_examples=50)
@given(st.data())
def test_mutated_files_are_ingested_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    name, content, options = data.draw(st.sampled_from(FUZZED))
    packed = data.draw(st.sampled_from(["", "", ".gz", ".bz2"] if name == "a.svm" else ["", "", ".gz"]))
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}[packed]
    damaged = packed and data.draw(st.booleans())  # after it was packed
    content = data.draw(mutated(pack(content))) if damaged else pack(data.draw(mutated(content)))
    (folder / f"{name}{packed}").write_bytes(content)
    _, error = outcome(lambda: ingest(folder / f"{name}{packed}", folder / "out", **options))
    if error is None:
        assert np.isfinite(stored(folder / "out")).all()
    else:
        assert error.exit_code in ((2, 4, 5) if damaged else (2, 4))
        assert "\n" not in str(error)
        assert not (folder / "out").exists()
