"""What a verdict costs to check: nothing where the checker looked on the last pass, and the blocks of a conflict."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.sparse import csr_array

import dfeas
from dfeas.answers.several import OneVsRest
from dfeas.cli.main import commands
from dfeas.data.storage.readers import Buffers, Cost
from dfeas.engine.local import LocalEngine
from dfeas.engine.scan import Tree
from dfeas.errors import CorruptDataError
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Led, RideAlong
from dfeas.methods.registry import METHODS
from dfeas.passes.inspection import Inspected
from dfeas.passes.select import Select
from dfeas.records import replace
from dfeas.verify.certificate import Certificate
from dfeas.verify.core import check, conclude_separator, sight
from tests.bits import content
from tests.run.making import opened

ROWS = 100


@pytest.fixture
def separable(tmp_path: Path) -> Callable[..., tuple[Path, Floats]]:
    """Data in ten blocks of points of three classes or of two, with a direction that separates the last class from the rest."""

    def make(classes: int = 2, sparse: bool = False) -> tuple[Path, Floats]:
        random = np.random.default_rng(classes)
        X, y = random.standard_normal((10 * ROWS, 6)), random.standard_normal(6)
        if sparse:
            X[random.random(X.shape) < 0.6] = 0.0
        score = X @ y
        X = X[np.abs(score) > 0.2]
        side = X @ y > 0
        names = np.where(side, "pos", np.where(X[:, 0] > 0, "ham", "spam") if classes == 3 else "neg")
        dfeas.ingest(csr_array(X) if sparse else X, tmp_path / "data", y=names, block_rows=ROWS)
        return tmp_path / "data", y / np.linalg.norm(y)

    return make


def inspected(path: Path, y: Floats, **seen: Any) -> tuple[Any, Certificate, Any]:
    """What is seen on the read of a selection, of which certificate, and the data."""
    dataset = opened(path, intercept=False, **seen)
    certificate = Certificate("separator", dataset.fingerprint, y, view=dataset.view)
    look = sight(dataset, certificate)
    assert look is not None
    question = Inspected(Select(y, 0.5, 50, 10), look)
    engine = LocalEngine(dataset, 2)
    found = engine.run(question)
    engine.close()
    return found, certificate, dataset


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("positive", "sign"), [(None, 1), ("pos", 1), ("neg", -1)])
def test_a_look_on_a_pass_proves_what_a_read_of_its_own_does(
    separable: Callable[..., tuple[Path, Floats]], sparse: bool, positive: str | None, sign: int
) -> None:
    path, y = separable(sparse=sparse)
    found, certificate, dataset = inspected(path, sign * y, positive=positive)
    own = check(LocalEngine(dataset, 1), dataset, certificate)
    assert own.verdict == "feasible"
    assert own.margin_lower > 0
    assert content(conclude_separator(dataset, certificate, found.shown)) == content(own)
    assert found.answer.violated == 0


def test_nothing_is_shown_where_a_point_is_on_the_wrong_side(separable: Callable[..., tuple[Path, Floats]]) -> None:
    path, y = separable()
    found, _, _ = inspected(path, -y)
    assert found.shown is None
    assert found.answer.violated > 0


def test_any_cut_of_the_blocks_shows_the_same(separable: Callable[..., tuple[Path, Floats]]) -> None:
    path, y = separable()
    found, certificate, dataset = inspected(path, y)
    look = sight(dataset, certificate)
    assert look is not None
    question = Inspected(Select(y, 0.5, 50, 10), look)
    for edges in ([0, 10], [0, 1, 10], [0, 3, 4, 7, 10]):
        ranges = pairwise(min(edge, dataset.blocks) for edge in edges)
        tree = Tree(question)
        for first, stop in ranges:
            part = Tree(question)
            for position, block in enumerate(dataset.read_blocks(range(first, stop), Cost()), first):
                part.push(0, position, question.scan(block))
            for node in part.nodes:
                tree.push(*node)
        assert content(tree.finish().shown) == content(found.shown)


def test_bytes_that_are_not_those_of_the_fingerprint_prove_nothing(separable: Callable[..., tuple[Path, Floats]]) -> None:
    """The checker computes checksums of what it is shown: a reader that gave other points would be found out."""
    path, y = separable()
    dataset = opened(path, intercept=False)
    certificate = Certificate("separator", dataset.fingerprint, y)
    look = sight(dataset, certificate)
    assert look is not None
    shown = None
    for index in range(dataset.blocks):
        points = dataset.points.read(index, Buffers()).copy()
        label = dataset.labels.read(index, Buffers()).copy()
        if index == 4:
            points[7] *= 2.0  # on the same side, farther away
        part = look(index * ROWS, points, label)
        assert part is not None
        shown = part if shown is None else shown.beside(part)
    with pytest.raises(CorruptDataError, match="chunk 4 of X"):
        conclude_separator(dataset, certificate, shown)


def test_the_verdict_of_a_working_set_costs_no_read_of_its_own(separable: Callable[..., tuple[Path, Floats]]) -> None:
    path, _ = separable()
    result = dfeas.solve(path)
    assert (result.verdict, result.proof) == ("feasible", "rigorous")
    assert result.reads == result.passes
    other = dfeas.solve(path, positive="neg")
    assert other.reads == other.passes


def test_classes_are_looked_at_on_the_reads_that_they_share(separable: Callable[..., tuple[Path, Floats]]) -> None:
    path, _ = separable(3)
    whole = dfeas.one_vs_rest(path, method="working-set", eps=1e-6)
    assert isinstance(whole, OneVsRest)
    assert whole.results["pos"].verdict == "feasible"
    alone = dfeas.solve(path, positive="pos", method="working-set")
    assert alone.reads == alone.passes + 1  # its labels are not at hand as they are stored
    assert whole.results["pos"].reads == whole.results["pos"].passes
    assert whole.results["pos"].margin_lower == alone.margin_lower


@pytest.mark.parametrize("view", [{"transform": "std"}, {"transform": "center", "intercept": True}])
def test_what_is_not_read_as_it_is_stored_is_read_by_the_checker(
    separable: Callable[..., tuple[Path, Floats]], view: dict[str, Any]
) -> None:
    path, _ = separable()
    result = dfeas.solve(path, **view)
    assert result.verdict == "feasible"
    assert result.reads >= result.passes + 1


@pytest.fixture
def conflicting(tmp_path: Path) -> Path:
    """Forty blocks of points with a margin, and one wrong label in block 30."""
    random = np.random.default_rng(8)
    X = random.standard_normal((40 * ROWS, 5))
    side = X @ np.arange(1.0, 6.0) > 0
    X += np.where(side, 1, -1)[:, None] * 0.1 * np.arange(1.0, 6.0)
    X[30 * ROWS + 3], side[30 * ROWS + 3] = np.arange(1.0, 6.0), False
    dfeas.ingest(X, tmp_path / "data", y=np.where(side, "a", "b"), block_rows=ROWS)
    return tmp_path / "data"


def test_a_conflict_is_checked_from_its_blocks(conflicting: Path, tmp_path: Path) -> None:
    result = dfeas.solve(conflicting, out=tmp_path / "run")
    assert (result.verdict, result.proof) == ("infeasible", "exact")
    assert result.support is not None
    assert 30 * ROWS + 3 in result.support
    blocks = np.unique(result.support // ROWS)
    assert result.reads == pytest.approx(result.passes + len(blocks) / 40)
    assert len(blocks) < 40
    whole, quick = dfeas.verify_run(tmp_path / "run"), dfeas.verify_run(tmp_path / "run", quick=True)
    assert (whole.points, whole.points_read) == (4000, 4000)
    assert (quick.points, quick.points_read) == (4000, ROWS * len(blocks))
    assert replace(quick, points_read=4000) == whole
    assert "all 4000 points" in str(whole)
    assert f"{ROWS * len(blocks)} of 4000 points" in str(quick)
    for words, said in ((["--quick"], str(quick)), ([], str(whole))):
        done = CliRunner().invoke(commands, ["verify", str(tmp_path / "run"), *words])
        assert done.exit_code == 0, done.output
        assert said.splitlines()[-1] in done.stdout


def test_only_a_whole_check_sees_damage_beside_a_conflict(conflicting: Path, tmp_path: Path) -> None:
    result = dfeas.solve(conflicting, out=tmp_path / "run")
    assert result.support is not None
    inside = set((result.support // ROWS).tolist())
    beside = next(index for index in range(40) if index not in inside)
    damage(conflicting, beside)
    assert dfeas.verify_run(tmp_path / "run", quick=True).verdict == "infeasible"
    with pytest.raises(CorruptDataError, match=f"chunk {beside} of X"):
        dfeas.verify_run(tmp_path / "run")
    damage(conflicting, 30)
    with pytest.raises(CorruptDataError, match="chunk 30 of X"):
        dfeas.verify_run(tmp_path / "run", quick=True)


def damage(path: Path, index: int) -> None:
    """Change a byte of a chunk of points."""
    file = path / "X" / f"c.{index}.0"
    content = bytearray(file.read_bytes())
    content[17] ^= 4
    file.write_bytes(content)


@pytest.mark.parametrize("classes", [2, 3])
def test_what_rides_along_leaves_the_look_where_it_is(
    separable: Callable[..., tuple[Path, Floats]], monkeypatch: pytest.MonkeyPatch, classes: int
) -> None:
    """With a rider from the first pass on a yes costs no read of its own either."""
    led = METHODS["working-set"]
    assert isinstance(led, Led)
    assert isinstance(led.method, RideAlong)
    monkeypatch.setitem(METHODS, "working-set", replace(led, method=replace(led.method, after=0)))
    path, _ = separable(classes)
    result: Any = (
        dfeas.solve(path, method="working-set")
        if classes == 2
        else dfeas.one_vs_rest(path, method="working-set", eps=1e-6).results["pos"]
    )
    assert (result.verdict, result.proof) == ("feasible", "rigorous")
    assert result.reads == result.passes


def test_what_cannot_be_looked_at_shows_nothing(separable: Callable[..., tuple[Path, Floats]]) -> None:
    path, y = separable()
    dataset = opened(path, intercept=False)
    look = sight(dataset, Certificate("separator", dataset.fingerprint, y))
    assert look is not None
    assert look(0, np.full((3, 6), np.inf), np.ones(3, np.int8)) is None
