"""Files made up to read other files, to take memory or time, or to steer the terminal: one line, a code, and nothing left."""

import gzip
import io
import json
import os
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crc32c
import h5py
import numpy as np
import pytest
import zarr

from dfeas.api import solve
from dfeas.cli.main import main
from dfeas.data.generate.points import Instance, generate
from dfeas.data.storage.files import Number, conform, parse_json
from dfeas.errors import BadInputError, CorruptDataError
from dfeas.run.checkpoint.codec import load
from tests.typed import dfeas as typed

X = np.random.default_rng(3).standard_normal((40, 3))
Y = np.arange(40) % 2
DEEP = "[" * 100_000
Words = tuple[str, ...]
HEADER = "{'descr':'<f8','fortran_order':False,'shape':%s}"


@pytest.fixture
def dfeas(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)

    def run(*words: Any) -> tuple[int, str, str]:
        done = typed(*words)
        return done.returncode, done.stdout, done.stderr

    return run


def npy(shape: str) -> bytes:
    """The header of an array, without the array."""
    head = (HEADER % shape).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head


def hdf5(*words: str, name: str = "a.h5", **members: Any) -> Callable[[], Words]:
    """Of members that are values, links, or functions that make them in the file."""

    def make() -> Words:
        with h5py.File("other.h5", "w") as other:
            other["X"], other["y"] = X, Y
        with h5py.File(name, "w") as file:
            for each, value in members.items():
                if callable(value):
                    value(file, each)
                else:
                    file[each] = value
        return "ingest", name, "out", *words

    return make


OTHER = h5py.ExternalLink("other.h5", "/")


def outside(*shape: int) -> Callable[[Any, str], Any]:
    size = int(np.prod(shape))
    return lambda file, name: file.create_dataset(name, shape=shape, dtype="u1", external=[("/etc/passwd", 0, size)])


def virtual(file: Any, name: str) -> None:
    layout = h5py.VirtualLayout((40, 3), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "X", (40, 3))
    file.create_virtual_dataset(name, layout)


def never_written(file: Any, name: str) -> None:
    file.create_dataset(name, (10**15, 3), "f8", chunks=(1000, 3))


def csr(width: int, data: Callable[[Any, str], Any] | None = None) -> Callable[[Any, str], None]:
    def make(file: Any, name: str) -> None:
        group = file.create_group(name)
        group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", (40, width)
        group["indptr"], group["indices"] = np.arange(41), np.zeros(40, int)
        (data or (lambda group, name: group.create_dataset(name, data=np.ones(40))))(group, "data")

    return make


def categories(file: Any, name: str) -> None:
    kind = file.create_group(name).create_group("kind")
    kind.attrs["encoding-type"] = "categorical"
    kind["codes"], kind["categories"] = Y, h5py.ExternalLink("other.h5", "/y")


def labels_file(content: bytes) -> Callable[[], Words]:
    def make() -> Words:
        np.save("X.npy", X)
        Path("l.npy").write_bytes(content)
        return "ingest", "X.npy", "out", "--labels", "l.npy"

    return make


def points_file(content: bytes) -> Callable[[], Words]:
    def make() -> Words:
        np.save("l.npy", Y)
        Path("X.npy").write_bytes(content)
        return "ingest", "X.npy", "out", "--labels", "l.npy"

    return make


def wide_points() -> Words:
    words = points_file(npy("(2, 10000000)"))()
    os.truncate("X.npy", 128 + 16 * 10**7)
    np.save("l.npy", Y[:2])
    return words


def beside(option: str, content: bytes, *words: str) -> Callable[[], Words]:
    def make() -> Words:
        generate(Instance("planted", 3, 40, 0.1), "data")
        Path("l.npy").write_bytes(content)
        return *words, option, "l.npy"

    return make


def npz(**members: bytes | np.ndarray) -> Callable[[], Words]:
    def make() -> Words:
        with zipfile.ZipFile("a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                file = io.BytesIO()
                if isinstance(content, np.ndarray):
                    np.save(file, content)
                archive.writestr(f"{name}.npy", content if isinstance(content, bytes) else file.getvalue())
        return "ingest", "a.npz", "out"

    return make


def text(name: str, content: bytes, *words: str) -> Callable[[], Words]:
    def make() -> Words:
        Path(name).write_bytes(content)
        return "ingest", name, "out", *words

    return make


def zarr_with(**values: Any) -> Callable[[], Words]:
    def make() -> Words:
        zarr.create_array("x", data=X, chunks=(10, 3))
        np.save("y.npy", Y)
        about = json.loads(Path("x/zarr.json").read_text())
        if "chunk" in values:
            about["chunk_grid"]["configuration"]["chunk_shape"] = values["chunk"]
        about["shape"] = values.get("shape", about["shape"])
        Path("x/zarr.json").write_text(values.get("text") or json.dumps(about))
        return "solve", "x", "--labels", "y.npy", "--out", "run"

    return make


def pipe(name: str) -> Callable[[], Words]:
    def make() -> Words:
        os.mkfifo(name)
        return "ingest", name, "out"

    return make


def a_pipe_in_the_data() -> Words:
    words = zarr_with()()
    Path("x/c/1/0").unlink()
    os.mkfifo("x/c/1/0")
    return words


def changed_run(change: Callable[[dict[str, Any]], Any] | str, *words: str) -> Callable[[], Words]:
    def make() -> Words:
        generate(Instance("planted", 3, 40, 0.1), "data")
        solve("data", out="r")
        about = json.loads(Path("r/result.json").read_text())
        if not isinstance(change, str):
            change(about)
        Path("r/result.json").write_text(change if isinstance(change, str) else json.dumps(about))
        return words

    return make


def a_deep_view() -> Words:
    generate(Instance("planted", 3, 40, 0.1), "data")
    arrays = {"y": np.ones(3), "support": np.empty(0, int), "weights": np.empty(0)}
    np.savez("c.npz", kind=np.array("separator"), fingerprint=np.array("0"), view=np.array(DEEP), **arrays)
    return "verify", "data", "c.npz"


WIDE = b"," * 1_500_000 + b"\n"
ENDLESS = gzip.compress(b"1" * (70 << 20), 1)
PIPES = "a.npy", "a.csv", "a.npz", "a.h5", "a.svm", "a.pq"
ROWS: dict[str, tuple[Callable[[], Words], int, str]] = {
    # HDF5 that leads out of the file
    "external storage": (hdf5(X=outside(40, 4), y=Y), 4, "a.h5:X: external storage, whose entries are in other files"),
    "external labels": (hdf5(X=X, y=outside(40)), 4, "a.h5:y: external storage"),
    "an external link": (hdf5(X=h5py.ExternalLink("other.h5", "/X"), y=Y), 4, "X is an external link to other.h5"),
    "an external link on the way": (hdf5("--points", "g/X", g=OTHER, y=Y), 4, "g is an external link to other.h5"),
    "an external link behind a soft one": (hdf5(X=h5py.SoftLink("/g/X"), g=OTHER, y=Y), 4, "g is an external link"),
    "a virtual dataset": (hdf5(X=virtual, y=Y), 4, "a.h5:X: a virtual dataset"),
    "external entries of CSR": (hdf5(X=csr(3, outside(40)), y=Y), 4, "a.h5:X:data: external storage"),
    "categories": (hdf5("--label-column", "kind", name="a.h5ad", X=X, obs=categories), 4, "categories is an external link"),
    "obs": (hdf5("--label-column", "y", name="a.h5ad", X=X, obs=OTHER), 4, "obs is an external link"),
    "a loop of soft links": (hdf5(X=h5py.SoftLink("/Z"), Z=h5py.SoftLink("/X"), y=Y), 4, "a loop"),
    "chunks never written": (hdf5(X=never_written, y=Y), 5, "chunks were never written"),
    "features of CSR": (hdf5(X=csr(10**18), y=Y), 4, "1000000000000000000 features, at most 100000000"),
    # sizes that are declared
    **{
        f"labels of {shape}": (labels_file(npy(shape)), 5, "l.npy: ")
        for shape in ("(10**18,)", "(100000000000,)", "(1000000000000000000,)", "(True,)", f"(1{'0' * 26},)", "(-1,)")
    },
    "points of (1000, -1)": (points_file(npy("(1000, -1)")), 5, "not a readable .npy array: shape (1000, -1)"),
    "points of 8 TB": (points_file(npy("(1000000000, 1000)")), 5, "1000000000 x 1000 of float64 takes 8e+12 bytes"),
    "a mask": (beside("--mask", npy("(100000000000,)"), "solve", "data", "--out", "run"), 5, "l.npy: shape 100000000000"),
    "weights": (beside("--weights", npy("(100000000000,)"), "svm", "data", "--out", "run"), 5, "l.npy: shape 100000000000"),
    "npz of 8 TB": (npz(X=npy("(1000000000, 1000)"), y=Y), 5, "a.npz:X: shape 1000000000 x 1000"),
    "wide points": (wide_points, 4, "10000000 features takes 76.29 MiB, at most 64.00 MiB"),
    "names of classes": (npz(X=X, y=np.array(["a" * 2000, "b"] * 20)), 4, "a label of 2000 characters, at most 1000"),
    "wide text": (text("a.csv", WIDE, "--label-column", "0", "--no-header"), 4, "1500001 cells, at most 1000000"),
    "a line without an end": (text("a.csv.gz", ENDLESS, "--label-column", "0"), 4, "line 1 has no end within 66 MiB"),
    "svmlight of 2e8": (text("a.svm", b"1 1:1 200000000:1\n0 1:1\n"), 4, "200000000 features, at most 100000000"),
    "svmlight of 1e18": (text("a.svm", b"1 1:1 %d:1\n0 1:1\n" % 10**17), 4, "features, at most 100000000"),
    "--features 1e18": (text("a.svm", b"1 1:1\n0 1:1\n", "--features", str(10**18)), 4, "features, at most 100000000"),
    "zarr of 1e18 points": (zarr_with(shape=[10**18, 3]), 5, "chunks are missing"),
    "zarr of 1e12 features": (zarr_with(shape=[40, 10**12]), 5, "chunks are missing"),
    "zarr of 1e30 points": (zarr_with(shape=[10**30, 3]), 5, "zarr.json: not a readable JSON file: shape[0] is 1000"),
    "zarr in chunks of 0": (zarr_with(chunk=[0, 3]), 5, "chunk_shape[0] is 0, expected"),
    "zarr in chunks of 1 TB": (zarr_with(chunk=[10**11, 3]), 4, "chunks of 2.18 TiB, at most"),
    "zarr.json is deep": (zarr_with(text=DEEP), 5, "zarr.json: not a readable JSON file: nested too deeply"),
    # what is no file
    **{f"a pipe {name}": (pipe(name), 4, "a pipe or a device") for name in PIPES},
    "a pipe as a chunk": (a_pipe_in_the_data, 4, "x/c/1/0: a pipe or a device, expected a file"),
    "a device": (lambda: ("ingest", "/dev/zero", "out", "--format", "svmlight"), 4, "/dev/zero: a pipe or a device"),
    # JSON
    "result.json is deep": (changed_run(DEEP, "verify", "r"), 5, "r/result.json: not a readable result: nested too deeply"),
    "its data is text": (changed_run(lambda v: v.update(data="x"), "verify", "r"), 5, "data is 'x', expected dict | None"),
    "its eps is a word": (changed_run(lambda v: v.update(eps="small"), "predict", "r", "data", "o.npy"), 5, "eps is 'small'"),
    "its m is huge": (changed_run(lambda v: v.update(m=10**400), "verify", "r"), 5, "m is 1000"),
    "its classes are none": (changed_run(lambda v: v.update(classes={"a": 1}), "compare", "r"), 5, "classes.a is 1, expected"),
    "its looks are deep": (changed_run(DEEP, "status", "r"), 5, "r/result.json: not a readable result: nested too deeply"),
    "a view is deep": (a_deep_view, 5, "c.npz: not a readable certificate: nested too deeply"),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_a_hostile_file_is_one_line_and_leaves_nothing(row: str, dfeas: Callable[..., Any]) -> None:
    make, code, words = ROWS[row]
    found, out, err = dfeas(*make())
    assert (found, out) == (code, ""), err
    assert err.startswith("dfeas: error: ")
    assert err.count("\n") == 1
    assert words in err
    assert "Traceback" not in err
    assert not Path("out").exists()
    assert not Path("run/result.json").exists()


def test_soft_links_within_a_file_are_followed(dfeas: Callable[..., Any]) -> None:
    with h5py.File("a.h5", "w") as file:
        file["g/points"], file["y"] = X, Y
        file["X"], file["h"] = h5py.SoftLink("h/points"), h5py.SoftLink("/g")
    assert dfeas("ingest", "a.h5", "out")[0] == 0


def test_wide_text_is_read_line_by_line(dfeas: Callable[..., Any]) -> None:
    points = np.arange(2 * 60_000.0).reshape(2, -1) % 7
    Path("a.csv").write_text("".join(f"{label},{','.join(f'{v:g}' for v in row)}\n" for label, row in enumerate(points)))
    assert dfeas("ingest", "a.csv", "out", "--label-column", "0", "--no-header")[0] == 0
    assert np.array_equal(zarr.open_group("out")["X"][:], points)


ESCAPES = "\x1b]0;evil\x07", "a\nverdict      feasible", "\x9b2J", "\u202etxet"


def test_names_from_the_data_do_not_steer_the_terminal(dfeas: Callable[..., Any]) -> None:
    for place, name in enumerate(ESCAPES):
        np.savez(f"{place}.npz", X=X, y=np.array([name, "x"] * 20))
        words = ("solve", f"d{place}", "--out", f"r{place}")
        for command in (
            ("ingest", f"{place}.npz", f"d{place}"),
            ("info", f"d{place}"),
            words,
            (*words[:3], "n", "--positive", "z"),
        ):
            _, out, err = dfeas(*command)
            assert not any(each in out + err for each in ("\x1b", "\x07", "\x9b", "\u202e", "\nverdict      feasible\n"))
        assert " ".join(name.split()).encode("unicode_escape").decode() in err


def test_a_method_in_a_result_does_not_steer_the_terminal(dfeas: Callable[..., Any]) -> None:
    _, out, err = dfeas(*changed_run(lambda v: v.update(method="\x1b[2Jx"), "compare", "r")())
    assert "\\x1b[2Jx" in out
    assert "\x1b" not in out + err


def test_what_nobody_foresaw_is_one_line(dfeas: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise {"x": ZeroDivisionError("one\n\x1btwo"), "y": MemoryError()}[sys.argv[2]]

    monkeypatch.setattr("dfeas.analysis.info.open_source", broken)
    code, _, err = dfeas("info", "x")
    assert (code, err.count("\n")) == (5, 1)
    assert "not foreseen, ZeroDivisionError: one \\x1btwo; is a file damaged?" in err
    code, _, err = dfeas("info", "y")
    assert code == 5
    assert "no memory left; lower --memory" in err
    monkeypatch.setenv("DFEAS_TRACEBACK", "1")
    monkeypatch.setattr(sys, "argv", ["dfeas", "info", "x"])
    with pytest.raises(ZeroDivisionError):
        main()


@pytest.mark.parametrize(
    ("field", "value"),
    [("lower", "x"), ("lower", None), ("upper", {"tuple": [1.0]}), ("y", 3), ("y", {"scalar": 0}), ("lower", True)],
)
def test_a_checkpoint_of_sound_bytes_and_other_types_is_refused(field: str, value: Any) -> None:
    tree = {"object": ["Bracket", {"lower": 0.5, field: value}]}
    content = json.dumps({"version": "1", "arrays": [["<i8", [1], None]], "value": tree}).encode() + b"\n" + bytes(8)
    with pytest.raises(CorruptDataError, match=f"{field} of Bracket is"):
        load(io.BytesIO(content + crc32c.crc32c(content).to_bytes(4, "little")), "here")


@pytest.mark.parametrize(
    ("value", "shape", "good"),
    [
        (1, int, True), (True, int, False), (True, bool, True), (True, int | bool, True), (None, int | None, True),
        (1.5, Number(0, 1), False), (float("nan"), Number(), False), (10**400, Number(), False),
        (None, Number(none=True), True), (None, Number(), False),
        ({"a": 1}, {"a": int, "b?": str}, True), ({"b": "x"}, {"a": int}, False), ({"a": [1, "x"]}, {"a": [int]}, False),
        ({"x": {"y": 1}}, {str: {"y": int}}, True), ([], {"a": int}, False),
    ],
)  # fmt: skip
def test_shapes_of_json(value: Any, shape: Any, good: bool) -> None:
    if good:
        conform(value, shape)
        return
    with pytest.raises(ValueError, match=r"expected|missing"):
        conform(value, shape)


def test_json_is_not_deeper_than_anything_of_ours() -> None:
    assert parse_json("[" * 32 + "]" * 32)
    for depth in (33, 500, 100_000):
        with pytest.raises(ValueError, match="nested"):
            parse_json("[" * depth + "]" * depth)


def test_errors_are_visible_wherever_they_go() -> None:
    assert str(BadInputError("class \x1b[2J\u202e: no")) == "class \\x1b[2J\\u202e: no"
