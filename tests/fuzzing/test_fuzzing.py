"""The fuzzer notices what is wrong: lies that are planted in each kind, crashes, hangs; it keeps them, and asks them again."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import localcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dfeas
from dfeas.records import replace
from tests.exact import conflict, kind_of
from tests.fuzzing import command, gram
from tests.fuzzing.case import Case, Judgement, Kind, Word, wrong
from tests.fuzzing.child import Ended
from tests.fuzzing.edited import Edited
from tests.fuzzing.forged import Forged
from tests.fuzzing.hard import Hard
from tests.fuzzing.hostile import of_ending
from tests.fuzzing.hull import HullKind
from tests.fuzzing.kernel import KernelKind
from tests.fuzzing.kernel_proofs import KernelProof
from tests.fuzzing.likelihoods import Likelihood
from tests.fuzzing.linear import Linear
from tests.fuzzing.loop import HungError, fuzz, judged
from tests.fuzzing.mutation import mutated
from tests.fuzzing.oracle import Truth, nearest
from tests.fuzzing.separation import Separation, Weightless
from tests.fuzzing.soft import Soft


def lying(ask: Callable[..., Any], **lie: Any) -> Callable[..., Any]:
    """The same answers, but for something in each."""

    def asked(*words: Any, **options: Any) -> Any:
        return replace(ask(*words, **options), **lie)

    return asked


def changing(**change: Callable[[Any], Any]) -> Callable[..., Any]:
    """The answers about a regression, but for what is made of their attributes."""

    def asked(*words: Any, **options: Any) -> Any:
        found = dfeas.check_separation(*words, **options)
        return replace(found, **{name: made(getattr(found, name)) for name, made in change.items()})

    return asked


def clock_of(cases: int) -> Callable[[], float]:
    """A clock by which each case takes some seconds: the loop looks four times for each."""
    ticks: Iterator[float] = iter(np.arange(0, 4 * cases + 10, 1.0).tolist())
    return lambda: next(ticks)


LIES: dict[str, Callable[[], Kind]] = {
    "a conflict that is none": lambda: Linear(lying(dfeas.solve, verdict="infeasible", proof="exact", margin_upper=0.0)),
    "a separator that is none": lambda: Linear(lying(dfeas.solve, verdict="feasible", proof="rigorous", margin_lower=1e-3)),
    "a margin above the best one": lambda: Linear(lying(dfeas.solve, margin_lower=0.9, margin_upper=0.95)),
    "a proof that was not made": lambda: Linear(lying(dfeas.solve, proof="floating_point")),
    "a kind of separation": lambda: Separation(*[lying(dfeas.separation, kind="overlap")] * 2),
    "a kind without a proof": lambda: Separation(lying(dfeas.separation, proof="floating_point")),
    "no kind": lambda: Separation(lying(dfeas.separation, kind=None)),
    "a row that counts without a weight": lambda: Weightless(
        lambda *words, weights, **options: dfeas.check_separation(*words, **options)),
    "a survival without its strata": lambda: Likelihood(
        "cox", lambda *words, strata=None, **options: dfeas.check_separation(*words, **options)),
    "a row that is not named": lambda: Likelihood("cox", changing(points=lambda rows: rows[:-1])),
    "rows without a weight in a stratum": lambda: Likelihood(
        "conditional", lambda *words, weights=None, **options: dfeas.check_separation(*words, **options)),
    "estimates that are all finite": lambda: Likelihood("conditional", changing(
        estimates=lambda said: [replace(each, estimate="finite") for each in said])),
    "estimates of the other sign": lambda: Likelihood("ordinal", changing(
        estimates=lambda said: [replace(each, estimate=each.estimate.translate({43: 45, 45: 43})) for each in said])),
    "a direction that turns around": lambda: Likelihood("ordinal", changing(
        estimates=lambda said: [replace(each, direction=-each.direction) for each in said])),
    "a kind of an ordinal regression": lambda: Likelihood("ordinal", changing(kind=lambda kind: "overlap")),
    "a point that is inside": lambda: HullKind(lying(dfeas.in_hull, inside=False)),
    "a margin in a kernel's space": lambda: KernelKind(lying(dfeas.solve, margin_upper=1e-7, eps=1e-3)),
    "a proof of a kernel": lambda: KernelProof(lambda *words, **fields: SimpleNamespace(
        verdict="eps-infeasible", proof="rigorous", margin_lower=-1.0, margin_upper=1e-9)),
    "an objective": lambda: Soft(lying(dfeas.soft_margin, objective=1e-3)),
    "a bound of the minimum": lambda: Soft(lying(dfeas.soft_margin, lower=1e9)),
    "a distance that none has": lambda: Hard(lying(dfeas.hard_margin, lower=1e90, upper=1e91)),
    "a bound of the distance": lambda: Hard(lying(dfeas.hard_margin, lower=1e-91, upper=1e-90)),
    "a checker that believes": lambda: Forged(lambda *words, **options: SimpleNamespace(
        verdict="feasible", proof="rigorous", margin_lower=0.99, margin_upper=1.0)),
    "a run that is believed": lambda: Edited(lambda run: SimpleNamespace(not_checked=(), classes={})),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_noticed_kept_and_noticed_again(lie: str, tmp_path: Path) -> None:
    kind, said = LIES[lie](), list[str]()
    cases = 48 if "kind" in lie else 24  # few systems have all three kinds
    tallies = fuzz([kind], cases, 7, tmp_path, say=said.append, clock=clock_of(20))
    assert tallies[kind.name].failed
    kept = sorted(tmp_path.glob("*.npz"))
    assert len(kept) == len(said) == tallies[kind.name].failed
    case = Case.load(kept[0])
    assert judged(kind, case).word == kept[0].stem.split("-")[-1]
    again = kind.draw(case.seed)
    assert again.options == case.options
    assert all((again.arrays[name] == held).all() for name, held in case.arrays.items() if "/" not in name)


@pytest.mark.parametrize("name", [name for name in command.KINDS if name not in ("hostile", "kills", "flows")])
def test_answers_of_each_kind_are_right(name: str, tmp_path: Path) -> None:
    """Of those that need no process of their own; ``tests/fuzz.py`` draws more."""
    said = list[str]()
    tallies = fuzz([command.KINDS[name]()], 32, 3, tmp_path, say=said.append, clock=clock_of(20))
    assert not tallies[name].failed, said
    assert tallies[name].words[Word.RIGHT] or name == "arrays", "few of their types have all numbers"


@dataclass(frozen=True)
class Odd:
    """A kind that does what it is told."""

    does: Callable[[], Judgement]
    name: str = "odd"
    weight: float = 1.0
    seconds: float = 0.05

    def draw(self, seed: int) -> Case:
        return Case(self.name, seed, "odd", {"X": np.ones(1)})

    def judge(self, case: Case) -> Judgement:
        return self.does()


def test_hangs_and_crashes_are_counted(tmp_path: Path) -> None:
    def hang() -> Judgement:
        time.sleep(10)
        return wrong("it did not ring")

    assert judged(Odd(hang), Odd(hang).draw(0)).word == Word.HANG
    assert not issubclass(HungError, Exception), "what catches exceptions would swallow it"
    found = judged(Odd(lambda: wrong(str(1 // 0))), Odd(hang).draw(0))
    assert found.word == Word.CRASH
    assert "ZeroDivisionError at test_fuzzing.py" in found.text


def test_the_command_fails_and_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(command.KINDS, "odd", lambda: Odd(lambda: wrong("as it was told")))
    run = CliRunner().invoke(command.command, ["--seconds", "0.05", "--kinds", "odd", "--out", str(tmp_path)])
    assert run.exit_code == 1
    assert "as it was told" in run.output
    kept = sorted(tmp_path.glob("*.npz"))
    assert CliRunner().invoke(command.command, ["--replay", str(kept[0])]).exit_code == 1
    monkeypatch.setitem(command.KINDS, "odd", lambda: Odd(lambda: Judgement(Word.RIGHT)))
    assert CliRunner().invoke(command.command, ["--replay", str(kept[0])]).exit_code == 0
    right = CliRunner().invoke(command.command, ["--seconds", "0.05", "--kinds", "odd", "--out", str(tmp_path / "none")])
    assert right.exit_code == 0
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("ended", "word"),
    [
        (Ended(0, 1.0, 10**8, False), Word.RIGHT),
        (Ended(4, 1.0, 10**8, False, err="reading\ndfeas: error: no numbers\n"), Word.REFUSED),
        (Ended(4, 1.0, 10**8, False, err="dfeas: error: no\ndfeas: error: numbers\n"), Word.WRONG),
        (Ended(4, 1.0, 10**8, False, err="no numbers\n"), Word.WRONG),
        (Ended(1, 1.0, 10**8, False, err="Traceback (most recent call last):\nMemoryError\n"), Word.CRASH),
        (Ended(-11, 1.0, 10**8, False), Word.CRASH),
        (Ended(0, 1.0, 2 * 10**9, False), Word.WRONG),
        (Ended(0, 1.0, 10**8, False, out="class \x1b]0;x\x07"), Word.WRONG),
        (Ended(-9, 21.0, 10**8, True), Word.HANG),
    ],
)
def test_how_a_command_may_end(ended: Ended, word: Word) -> None:
    assert of_ending(ended, "ingest").word == word


def test_mutations_change_files_and_are_drawn_again() -> None:
    whole = [bytes(range(256)) * 3, b'{"shape": [40, 5], "n": 7}', b""]
    for data in whole:
        found = [mutated(np.random.default_rng(seed), data) for seed in range(60)]
        assert found == [mutated(np.random.default_rng(seed), data) for seed in range(60)]
        assert sum(each != data for _, each in found) > 40


def test_the_oracles_know_what_is_known() -> None:
    assert kind_of([[1, 0], [-1, 0], [0, 1]]) == "quasi-complete"
    assert kind_of([[1, 0], [-1, 0], [0, 1], [0, -1]]) == "overlap"
    assert conflict([[1, 2], [3, 1]])[0] is None
    low, high = nearest(np.eye(4))
    assert (low, high) == pytest.approx((0.5, 0.5), rel=1e-14)
    X = np.array([[1e-300, 1e100], [1e-300, -1e100]])
    assert Truth(X).feasible
    assert Truth(X).least(np.array([1.0, 0.0])) == pytest.approx(0, abs=1e-300)
    assert Truth(np.array([[3.0, 4.0]])).least(np.array([1.0, 0.0])) == 0.6
    with localcontext(gram.DIGITS):
        ends = gram.margin([[gram.Decimal(int(i == j)) for j in range(4)] for i in range(4)])
    assert [float(end) for end in ends] == [0.5, 0.5]
    near = np.array([[1.0, 0.0], [1.0, 1e-4]])
    kernel = {"kernel": "polynomial", "gamma": 1e-300, "degree": 2, "coef0": 0.0}
    assert gram.separable(near, np.array([1, -1]), kernel)
    assert gram.bracket(near, np.array([1, -1]), kernel)[0] == pytest.approx(7.07e-5, rel=1e-2)


def test_a_case_holds_all_that_it_was(tmp_path: Path) -> None:
    arrays = {"X": np.array([[1, 2]], ">f4"), "y": np.array(["a"]), "d/c.0": np.frombuffer(b"\x00\xff", np.uint8)}
    Case("odd", 3, "none", arrays, {"eps": 1e-3}).save(tmp_path / "case.npz", wrong("it is"))
    held = Case.load(tmp_path / "case.npz")
    assert (held.kind, held.seed, held.family, held.options) == ("odd", 3, "none", {"eps": 1e-3})
    assert all(held.arrays[name].dtype == value.dtype and (held.arrays[name] == value).all() for name, value in arrays.items())
    with np.load(tmp_path / "case.npz") as file:
        assert json.loads(str(file["case"]))["text"] == "it is"
