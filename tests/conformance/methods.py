"""The laws of ``dfeas.methods.protocol.Method``: what a subclass names is a pure state machine whose evidence is true."""

import io
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import pytest

from dfeas.methods.protocol import Facts
from dfeas.run.checkpoint.codec import dump, load
from tests.bits import digest
from tests.records import is_frozen, is_record, names_of


@dataclass(frozen=True)
class Instance:
    """Points in some space, and what is true of them, computed without the method."""

    engine: Any  # an Engine, made for this instance alone
    facts: Facts
    margin: float  # the largest min_j a_j'y over unit y, where it is positive; otherwise 0
    margin_off: float  # how far the margin above may be from the true one
    score: Callable[[Any], tuple[float, float]]  # |y| and min_j a_j'y of a y of the evidence
    image: Callable[[Any], float]  # |Ax| of an x of the evidence, which must be on the simplex
    off: float  # what rounding may change of them


def copied(state: Any) -> Any:
    """The state as a checkpoint gives it back."""
    file = io.BytesIO()
    dump(state, file)
    file.seek(0)
    return load(file, "here")


def records_in(value: Any) -> Iterator[Any]:
    """A state and all that it holds."""
    if is_record(value):
        yield value
        for name in names_of(value):
            yield from records_in(getattr(value, name))
    elif isinstance(value, tuple | list):
        for each in value:
            yield from records_in(each)


class MethodTests(ABC):
    """Subclass for the methods of a geometry; each test runs for every name, and for every family where it takes one.

    Laws of states hold whatever the points are: each method has one of the families for them.
    """

    names: Collection[str]
    families: Collection[str]
    passes = 40
    most_passes = 2000
    """Where the theorem allows more, the method must still separate within so many."""

    @abstractmethod
    def method(self, name: str) -> Any:
        """The method."""

    @abstractmethod
    def instance(self, family: str) -> Instance:
        """A small instance of a family, with an engine of its own; the first family is enough for laws of states."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        for argument, values in (("name", self.names), ("family", self.families)):
            if argument in metafunc.fixturenames:
                metafunc.parametrize(argument, list(values))

    def states(self, name: str, instance: Instance, passes: int) -> Iterator[tuple[Any, Any, Any, Any]]:
        """The method, and of each pass the state before it, its answer, and the state after it."""
        method = self.method(name)
        state = method.init(instance.facts)
        for _ in range(passes):
            answer = instance.engine.run(method.ask(state))
            following = method.tell(state, pickle.loads(pickle.dumps(answer)))  # it may be taken apart
            yield method, state, answer, following
            state = following

    def test_evidence_is_true_after_every_pass(self, name: str, family: str) -> None:
        instance = self.instance(family)
        lower, upper, iterations = -1.0, 1.0, 0
        for method, _, _, state in self.states(name, instance, self.passes):
            assert instance.engine.cost.points <= instance.engine.shape[1]
            evidence = method.evidence(state)
            bracket = evidence.bracket
            assert lower <= bracket.lower <= max(0.0, instance.margin) + instance.margin_off
            assert instance.margin - instance.margin_off <= bracket.upper <= upper
            assert bracket.lower <= bracket.upper + 1e-12
            assert evidence.iterations >= iterations
            lower, upper, iterations = bracket.lower, bracket.upper, evidence.iterations
            if bracket.y is not None:
                length, low = instance.score(bracket.y)
                # where there is a conflict in memory the best y of the unit ball is 0
                assert length == pytest.approx(1, abs=instance.off) or length == bracket.lower == 0
                assert low == pytest.approx(bracket.lower, abs=instance.off)
            if evidence.gordan is not None:
                assert instance.image(evidence.gordan()) == pytest.approx(bracket.upper, abs=max(1e-9, instance.off))

    def test_its_theorem_bounds_the_passes_to_a_separator(self, name: str, family: str) -> None:
        instance = self.instance(family)
        bound = self.method(name).bound(instance.facts, instance.margin or 0.1)
        assert bound > 0
        if not instance.margin:
            return
        for passes, (method, _, _, state) in enumerate(self.states(name, instance, self.most_passes), 1):
            assert passes <= ceil(bound) + 1
            if method.evidence(state).bracket.lower > 0:
                return
        pytest.fail(f"no separator in {self.most_passes} passes; the bound is {bound:.0f}")

    def test_states_are_frozen_and_no_call_changes_one(self, name: str) -> None:
        instance = self.instance(next(iter(self.families)))
        for method, state, answer, following in self.states(name, instance, 12):
            for part in records_in(state):
                assert is_frozen(part), type(part).__name__
            before, question = pickle.dumps(state), digest(method.ask(state))
            assert digest(method.tell(pickle.loads(before), answer)) == digest(following)
            assert digest(method.evidence(state).bracket) == digest(method.evidence(pickle.loads(before)).bracket)
            assert digest(method.ask(state)) == question
            assert pickle.dumps(state) == before

    def test_a_state_of_a_checkpoint_goes_on_with_the_same_bits(self, name: str) -> None:
        family = list(self.families)[list(self.names).index(name) % len(self.families)]
        instance, again = self.instance(family), self.instance(family)
        method = self.method(name)
        resumed = method.init(again.facts)
        for _, _, _, expected in self.states(name, instance, 6):
            resumed = method.tell(copied(resumed), again.engine.run(method.ask(copied(resumed))))
            assert digest(resumed) == digest(expected)
            assert digest(method.evidence(resumed).bracket) == digest(method.evidence(expected).bracket)
