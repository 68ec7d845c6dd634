"""Small chunks of cones are read and scanned some together, as those of points are: each keeps its checksum, its padding stays
where it was, and answers are those of the same cones in one array.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.cones.space import ConeEngine
from dfeas.data.dataset import Dataset, array_reader
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Cost
from dfeas.data.storage.stored_array import parse_arrays
from dfeas.engine.local import LocalEngine
from dfeas.errors import CorruptDataError
from dfeas.linalg.points import dense
from dfeas.passes.softmin import Softmin
from dfeas.passes.survey import Survey
from dfeas.records import replace
from dfeas.verify.certificate import Certificate
from dfeas.verify.core import check
from tests.cones.making import write
from tests.cones.plain import cones_of, problem, unit

MANY: dict[str, Any] = {"l": 40, "q": [2, 5, 5, 3, 4, 4] * 30, "s": [2, 4, 4, 3] * 25}
CONES = list(cones_of(MANY))
ROWS, M = 13, 6
"""Of a chunk, which cones of most kinds do not fill; features."""


def rows_of_cones(sparse: bool = False, cone: dict[str, Any] = MANY) -> Any:
    """Cones that have a planted direction inside."""
    rng = np.random.default_rng(0)
    if not sparse:
        return problem(rng, cone, M, 0.4)
    e = np.concatenate([unit(kind, size) for kind, size, _ in cones_of(cone)])
    noise = np.where(rng.random((len(e), M - 1)) < 0.08, rng.uniform(-0.3, 0.3, (len(e), M - 1)), 0)
    return sp.csr_array(np.column_stack([noise, 2 * e]))


def opened(path: Path, **options: Any) -> Dataset:
    return open_source(Source(DataSpec(path, **options), cones=True))


@pytest.fixture(params=[(False, 0), (True, 7 * ((8 << 20) + 4))])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Any]:
    """A dataset of dense or sparse rows, in files or in shards, and its rows."""
    sparse, shard = request.param
    X = rows_of_cones(sparse)
    write(tmp_path / "data", X, MANY, ROWS, shard)
    return tmp_path / "data", X


QUESTION = Softmin(np.column_stack([np.ones(M), np.eye(M)[0] + 0.1, np.eye(M)[1]]), np.array([0.3, 0.05, 0.0]))


def test_a_block_is_a_run_of_chunks_and_each_has_its_checksum(data: tuple[Path, Any]) -> None:
    dataset = opened(data[0])
    chunks = -(-dataset.n // ROWS)
    assert (dataset.chunk_rows, len(dataset.expected)) == (ROWS, chunks)
    assert dataset.together > 1
    assert dataset.blocks == -(-chunks // dataset.together)
    cost = Cost()
    assert sum(1 for _ in dataset.read_blocks(range(dataset.blocks), cost)) < chunks / 2
    assert cost.points == dataset.n
    assert np.array_equal(LocalEngine(dataset, 2).run(Survey()).checksums, dataset.expected[:, :2])


def test_answers_are_those_of_the_same_cones_in_one_array(data: tuple[Path, Any]) -> None:
    path, X = data
    dataset, plain = opened(path), dfeas.from_cone_rows(X, MANY)
    assert plain.blocks == 1
    given = np.full(dataset.n, -1)
    label = np.concatenate([block.label for block in dataset.read_blocks(range(dataset.blocks), Cost())])
    given[label != -1] = np.arange(plain.n)
    wanted = ConeEngine(LocalEngine(plain, 1)).run(QUESTION)
    answers = set()
    for threads in (1, 3):
        found = ConeEngine(LocalEngine(dataset, threads)).run(QUESTION)
        answers.add(b"".join(part.tobytes() for part in (found.low, found.arg, found.lse, found.mean)))
    assert len(answers) == 1
    assert (found.low == wanted.low).all()
    assert (given[found.arg] == wanted.arg).all()
    np.testing.assert_allclose(found.lse, wanted.lse, rtol=1e-12)
    np.testing.assert_allclose(found.mean, wanted.mean, atol=1e-12)
    for method in ("mirror-prox", "working-set"):
        small, one = (dfeas.solve(each, method=method, max_passes=20) for each in (path, plain))
        assert (small.verdict, small.proof) == (one.verdict, one.proof) == ("feasible", "rigorous")


def test_files_and_shards_give_the_same_bits(tmp_path: Path) -> None:
    answers, marks = set(), set()
    for name, shard in (("files", 0), ("shards", 7 * (ROWS * M * 8 + 4))):
        write(tmp_path / name, rows_of_cones(), MANY, ROWS, shard)
        found = ConeEngine(LocalEngine(opened(tmp_path / name), 2)).run(QUESTION)
        answers.add(b"".join(part.tobytes() for part in (found.low, found.arg, found.lse, found.mean)))
        marks.add(opened(tmp_path / name).fingerprint)
    assert len(answers) == len(marks) == 1


def first_row(message: str) -> int:
    """Of the cone that a message names."""
    return int(message.split("at row ")[1].split(")")[0].split()[0])


def test_the_checker_names_cones_by_their_rows_without_padding(data: tuple[Path, Any]) -> None:
    path, X = data
    solved = dfeas.solve(path, out=path.parent / "run")
    verified = dfeas.verify_run(path.parent / "run")
    assert (verified.verdict, verified.margin_lower) == ("feasible", solved.margin_lower)
    assert CliRunner().invoke(commands, ["verify", str(path.parent / "run")]).exit_code == 0
    critical = dfeas.predict(solved, dfeas.from_cone_rows(X, MANY)).critical
    assert first_row(verified.message) == critical[0].row > ROWS
    rows = CONES[-3][2]
    zeros = dense(X).copy()
    zeros[rows] = 0  # nothing is inside of this one
    write(path.parent / "zeros", sp.csr_array(zeros) if sp.issparse(X) else zeros, MANY, ROWS)
    conflict = dfeas.solve(path.parent / "zeros", out=path.parent / "conflict")
    assert (conflict.verdict, first_row(conflict.message)) == ("infeasible", rows.start)
    assert dfeas.verify_run(path.parent / "conflict").proof == "exact"


@pytest.mark.parametrize(("what", "place"), [("X", 5), ("label", 0), ("norm", 3)])
def test_damage_is_told_by_the_number_of_the_chunk_also_by_the_checker(tmp_path: Path, what: str, place: int) -> None:
    write(tmp_path / "data", rows_of_cones(), MANY, ROWS)
    node = json.loads((tmp_path / "data" / "zarr.json").read_text())
    array = parse_arrays(node, [what], tmp_path)[what]
    number, within = divmod(61, array.chunks_of_file)
    file = tmp_path / "data" / what / array.file(number)
    content = bytearray(file.read_bytes())
    content[within * array.chunk_bytes + place] ^= 4  # of a code: another size
    file.write_bytes(content)
    dataset = opened(tmp_path / "data")
    assert dataset.together > 1
    with pytest.raises(CorruptDataError, match=rf"chunk 61 of {what} is damaged"):
        LocalEngine(dataset, 2).run(Survey())
    if what != "norm":  # the checker computes norms
        certificate = Certificate("separator", dataset.fingerprint, y=np.ones(M))
        with pytest.raises(CorruptDataError, match=rf"chunk 61 of {what} is damaged"):
            check(LocalEngine(opened(tmp_path / "data"), 2), dataset, certificate)


def test_the_checker_takes_no_cone_that_reaches_out_of_its_chunk(tmp_path: Path) -> None:
    """Though it lies in one block."""
    write(tmp_path / "data", rows_of_cones(cone={"q": [ROWS] * 100}), {"q": [ROWS] * 100}, ROWS)
    dataset = opened(tmp_path / "data")
    assert dataset.together > 1
    label = np.concatenate([block.label for block in dataset.read_blocks(range(dataset.blocks), Cost())])
    label[[ROWS, 2 * ROWS]] = 4 * 2 * ROWS + 2, 0  # one cone of twice the rows
    forged = replace(dataset, labels=array_reader("label", label, dataset.block_rows))
    certificate = Certificate("separator", dataset.fingerprint, y=np.ones(M))
    with pytest.raises(CorruptDataError, match="chunk 1 of label is damaged"):
        check(LocalEngine(forged, 1), forged, certificate)


@pytest.mark.parametrize(("sparse", "block_bytes"), [(False, 17 << 10), (True, 40 << 10)])
def test_chunks_as_an_ingest_cuts_them_stay_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sparse: bool, block_bytes: int
) -> None:
    """Also where cones of many rows leave much of them to padding."""
    cone = {"l": 3, "q": [20, 31, 17] * 30, "s": [5, 6] * 100}
    monkeypatch.setattr("dfeas.data.storage.layout.BLOCK_BYTES", block_bytes)
    dfeas.ingest(dfeas.from_cone_rows(rows_of_cones(sparse, cone), cone), tmp_path / "data")
    dataset = opened(tmp_path / "data")
    assert dataset.blocks > 32
    assert dataset.together == 1
