"""What each kind of bad input gets: the exit code and the words, one line, nothing left behind; and what is no bad input."""

import gzip
import json
import os
import pickle
import resource
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from dfeas import ingest
from dfeas.cli.main import main
from dfeas.data.generate.points import Instance, generate
from dfeas.data.storage.locks import claim

RNG = np.random.default_rng(5)
X = RNG.standard_normal((40, 3))
Y = np.arange(40) % 2
Made = tuple[str, ...]  # words of the command line


@pytest.fixture
def dfeas(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """The command line, in this process, in a folder of its own: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*words: Any) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dfeas", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return (int(ended.value.code or 0), *capsys.readouterr())

    return run


def points(points: Any, labels: Any = Y) -> Callable[[], Made]:
    """Ingest of an .npz."""

    def make() -> Made:
        np.savez("a.npz", X=points, y=labels)
        return "ingest", "a.npz", "out"

    return make


def foreign(points: np.ndarray, labels: Any = Y) -> Callable[[], Made]:
    """A solve of a zarr array as it is, about hyperplanes through the origin, of which points of length zero say something."""

    def make() -> Made:
        zarr.create_array("x", data=points, chunks=(10, *points.shape[1:]), config={"write_empty_chunks": True})
        if labels is None:
            return "solve", "x", "--unlabelled", "--out", "run"
        np.save("y.npy", labels)
        return "solve", "x", "--labels", "y.npy", "--no-intercept", "--out", "run"

    return make


def text(name: str, content: bytes, *words: str) -> Callable[[], Made]:
    """Ingest of a text file."""

    def make() -> Made:
        Path(name).write_bytes(content)
        return "ingest", name, "out", *words

    return make


def put(value: float, *places: tuple[int, int]) -> np.ndarray:
    """The points with a value at some places."""
    changed = X.copy()
    for place in places:
        changed[place] = value
    return changed


class Payload:
    """Whose unpickling would leave a trace."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("unpickled",)


def pickled(where: str) -> Callable[[], Made]:
    def make() -> Made:
        objects = np.array([Payload()] * 40, object)
        if where == "label file":
            np.save("a.npy", X)
            np.save("y.npy", objects, allow_pickle=True)
            return "ingest", "a.npy", "out", "--labels", "y.npy"
        if where == "plain pickle":
            Path("a.npy").write_bytes(pickle.dumps(Payload()))
            return "ingest", "a.npy", "out", "--labels", "a.npy"
        np.savez("a.npz", X=objects.reshape(40, 1) if where == "points" else X, y=objects)
        return "ingest", "a.npz", "out"

    return make


def a_certificate_with_objects() -> Made:
    generate(Instance("planted", 3, 40, 0.1), "data")
    np.savez("c.npz", kind=np.array([Payload()], object))
    return "verify", "data", "c.npz"


def a_compressor_that_runs_code() -> Made:
    Path("x").mkdir()
    about = {"zarr_format": 2, "shape": [40, 3], "chunks": [40, 3], "dtype": "|O", "fill_value": None, "order": "C"}
    Path("x/.zarray").write_text(json.dumps({**about, "compressor": None, "filters": [{"id": "pickle"}]}))
    Path("x/0.0").write_bytes(pickle.dumps([Payload()]))
    np.save("y.npy", Y)
    return "ingest", "x", "out", "--labels", "y.npy"


def a_link_out_of(place: str) -> Callable[[], Made]:
    def make() -> Made:
        generate(Instance("planted", 3, 40, 0.1), "data")
        Path("elsewhere").mkdir()
        shutil.move(f"data/{place}", "elsewhere/it")
        Path(f"data/{place}").symlink_to(Path("elsewhere/it").absolute())
        return "solve", "data", "--out", "run"

    return make


def a_link_in_a_users_array() -> Made:
    words = foreign(X)()
    Path("x/c/2/0").unlink()
    Path("x/c/2/0").symlink_to("/etc/hostname")
    return words


def three_classes() -> Made:
    np.savez("a.npz", X=X, y=np.arange(40) % 3)
    ingest("a.npz", "data")
    return "solve", "data", "--out", "run"


def another_writer() -> Made:
    claim(Path("out"), "zarr.json")  # held until this process ends
    return points(X)()


def little_memory() -> Made:
    generate(Instance("planted", 500, 4000, 0.1), "data")
    return "solve", "data", "--out", "run", "--memory", "3MB"


def typed(*words: str) -> Callable[[], Made]:
    """A command that needs no file, or a folder or a table that is none of ours."""

    def make() -> Made:
        Path("folder").mkdir()
        zarr.create_array("x", data=X, chunks=(10, 3))
        Path("labels.csv").write_text("1\n" * 40)
        return words

    return make


CSV = b"a,b,class\n1,2,u\n3,4,v\n5,6,u\n"
SVM = b"1 1:2 3:4\n-1 2:1\n"

ROWS: dict[str, tuple[Callable[[], Made], int, str]] = {
    # what is asked, and of what
    "nowhere": (typed("solve", "nowhere", "--out", "run"), 4, "nowhere: no such file or folder"),
    "a folder": (typed("solve", "folder", "--out", "run"), 4, "neither a dfeas dataset nor a zarr array"),
    "labels in a table": (typed("solve", "x", "--labels", "labels.csv", "--out", "run"), 4, "are a .npy file or a zarr array"),
    "no size": (typed("solve", "x", "--memory", "much", "--out", "run"), 2, "expected a size"),
    "seed": (typed("generate", "planted", "s", "--features", "3", "--points", "9", "--seed", "-1"), 2, "seed"),
    "margin": (typed("generate", "planted", "s", "--features", "3", "--points", "9", "--margin", "2"), 2, "margin"),
    "a place": (typed("generate", "planted", "a/b", "--features", "3", "--points", "9"), 2, "no such folder"),
    # entries that are not finite
    "nan": (points(put(np.nan, (3, 1))), 4, "1 or more entries are not finite (point 3 feature 1: nan); remove or"),
    "first five": (
        points(put(-np.inf, *((j, 2) for j in range(7)))),
        4,
        "7 or more entries are not finite (" + ", ".join(f"point {j} feature 2: -inf" for j in range(5)) + ")",
    ),
    "nan in a user's array": (foreign(put(np.nan, (25, 2))), 4, "1 or more entries are not finite (point 25 feature 2: nan)"),
    # labels
    "one class": (points(X, np.ones(40)), 4, "labels of a.npz: all 40 labels are 1; two classes are needed"),
    "one class, user's array": (foreign(X, np.zeros(40)), 4, "x: all 40 labels are 0; two classes are needed"),
    "too few labels": (points(X, Y[:-1]), 4, "expected 40 labels, one a point, got an array of shape (39,)"),
    "a label is nan": (points(X, np.where(Y == 1, 1.0, np.nan)), 4, "the label of point 0 is not a finite number; remove or"),
    "three classes": (three_classes, 4, "data: 3 classes (0, 1, 2); choose one against the rest, as --positive 0, or solve"),
    "too many classes": (points(np.ones((1001, 1)), np.arange(1001)), 4, "more than 1000 different labels; is this the label"),
    "complex labels": (points(X, Y * 1j), 4, "labels of type complex128 cannot be used"),
    # shapes
    "no points": (points(np.ones((0, 3)), Y[:0]), 4, "a.npz: no points, shape (0, 3)"),
    "one axis": (points(X[:, 0]), 4, "expected points as an array (n, m), got shape (40,)"),
    # types
    "complex": (points(X * 1j), 4, "entries of type complex128 cannot be used; give real numbers"),
    "integers without a float64": (points(np.full((40, 3), 2**53 + 1)), 4, "an integer beyond 2**53 has no exact float64"),
    # squares
    "squares overflow": (points(X * 1e200), 4, "norms outside 1e-130 .. 1e+130 (point 0, 1, 2, 3, 4); scale the data"),
    # text
    "ragged": (text("a.csv", CSV + b"7,8\n", "--label-column", "class"), 4, "a.csv: line 5: 2 cells, expected 3 as in"),
    "no number": (text("a.csv", CSV + b"7,x,u\n", "--label-column", "class"), 4, "5, column b: expected a number, got 'x'"),
    "not UTF-8": (text("a.csv", CSV + b"7,\xff,u\n", "--label-column", "class"), 4, "line 5: not UTF-8 text"),
    "truncated gz": (text("a.csv.gz", gzip.compress(CSV * 9)[:-9], "--label-column", "class"), 5, "truncated after line"),
    # svmlight
    "svmlight nan": (text("a.svm", SVM + b"1 1:nan\n"), 4, "a.svm: line 3: index 1: 'nan' is not finite"),
    "svmlight index 0": (text("a.svm", b"1 0:1\n-1 1:1\n"), 4, "line 1: index 0, expected 1 or more; if indices begin with 0"),
    "a name that says nothing": (text("a.dat", SVM), 4, "a.dat: unknown format; expected .npy, .npz"),
    # storage
    "another writer": (another_writer, 2, "out: another process is writing it; wait for it or choose another output"),
    "little memory": (little_memory, 2, "--memory 3MB is too little for one block of 4.00 MiB: at least --memory"),
    "a chunk is a link": (a_link_out_of("X/c.0.0"), 4, "data/X/c.0.0: a link to "),
    "a link in a user's array": (a_link_in_a_users_array, 4, "x/c/2/0: a link to /etc/hostname, outside of the data"),
    # pickles
    "points are objects": (pickled("points"), 4, "a.npz:X: an array of Python objects is not accepted; save numbers"),
    "a label file of objects": (pickled("label file"), 4, "y.npy: an array of Python objects is not accepted"),
    "a pickle": (pickled("plain pickle"), 5, "a.npy: not a readable .npy array"),
    "a certificate of objects": (a_certificate_with_objects, 5, "c.npz: not a readable certificate"),
    "a filter that unpickles": (a_compressor_that_runs_code, 4, "its chunks are Python objects (pickle)"),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_bad_input_is_one_line_and_leaves_nothing(row: str, dfeas: Callable[..., Any]) -> None:
    make, code, words = ROWS[row]
    given = make()
    before = sorted(Path().rglob("*"))
    found, out, err = dfeas(*given)
    last = err.splitlines()[-1]
    assert (found, out) == (code, ""), err
    assert last.startswith("dfeas: error: ")
    assert words in last
    assert "Traceback" not in err
    assert not Path("unpickled").exists()
    left = set(Path().rglob("*")) - set(before)
    assert not {path for path in left if path.parts[0] == "out"}
    assert not Path("run/result.json").exists()


@pytest.mark.parametrize(
    ("rows", "labels", "verdict"),
    [
        (np.vstack([X, np.zeros(3)]), np.arange(41) % 2, "infeasible"),
        (np.vstack([X[:2], 2 * X[:1]]), [1, 0, 0], "infeasible"),
        (np.eye(3, 8), [1, 0, 1], "feasible"),
        (np.ones((1, 3)), None, "feasible"),
        (np.zeros((1, 3)), None, "infeasible"),
    ],
    ids=["a zero point", "the same point with both labels", "fewer points than features", "one point", "one point, zero"],
)
def test_what_is_no_bad_input_gets_an_exact_verdict(rows: Any, labels: Any, verdict: str, dfeas: Callable[..., Any]) -> None:
    code, out, err = dfeas(*foreign(rows, labels)(), "--json")
    values = json.loads(out)
    assert (code, values["verdict"]) == (0, verdict), err
    assert values["proof"] == ("exact" if verdict == "infeasible" else "rigorous")


def test_a_full_disk_keeps_nothing_and_the_next_run_goes_through(dfeas: Callable[..., Any]) -> None:
    words = points(RNG.standard_normal((40_000, 3)), np.arange(40_000) % 2)()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        code, out, err = dfeas(*words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (code, out) == (5, "")
    assert err.splitlines()[-1] == "dfeas: error: out: the disk is full, nothing was kept; free space and run again"
    assert not Path("out").exists()
    assert dfeas(*words)[0] == 0


def test_links_within_the_data_and_to_the_data_are_followed(dfeas: Callable[..., Any]) -> None:
    generate(Instance("planted", 3, 40, 0.1), "data")
    Path("data/X/c.0.0").rename("data/X/moved")
    Path("data/X/c.0.0").symlink_to("moved")
    Path("link").symlink_to("data")
    assert dfeas("solve", "link", "--out", "run")[0] == 0
