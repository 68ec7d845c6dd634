"""A case: what a kind drew from a seed, as a file that needs nothing else; and what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import numpy as np

ARRAY = "array."


class Word(StrEnum):
    """What came of a case."""

    RIGHT = "right"
    REFUSED = "refused"  # one line says why nothing was computed
    OPEN = "open"  # not decided, as the contract allows: a limit that was given came first
    WRONG = "wrong"
    UNPROVED = "unproved"  # right, without the proof that it should have
    UNDECIDED = "undecided"  # no answer, though nothing stood in its way
    CRASH = "crash"
    HANG = "hang"


FAILED = (Word.WRONG, Word.UNPROVED, Word.UNDECIDED, Word.CRASH, Word.HANG)


@dataclass(frozen=True)
class Judgement:
    word: Word
    text: str = ""


RIGHT = Judgement(Word.RIGHT)


def wrong(text: str) -> Judgement:
    return Judgement(Word.WRONG, text)


@dataclass(frozen=True)
class Case:
    kind: str
    seed: int
    family: str
    arrays: Mapping[str, np.ndarray]
    options: Mapping[str, Any] = field(default_factory=dict)  # plain JSON values

    def save(self, path: Path, found: Judgement) -> None:
        head = {"kind": self.kind, "seed": self.seed, "family": self.family, "options": self.options}
        text = json.dumps({**head, "word": found.word, "text": found.text})
        arrays: dict[str, Any] = {ARRAY + name: value for name, value in self.arrays.items()}
        with path.open("wb") as file:
            np.savez_compressed(file, case=np.array(text), **arrays)

    @classmethod
    def load(cls, path: Path) -> Case:
        with np.load(path, allow_pickle=False) as held:
            head = json.loads(str(held["case"]))
            arrays = {name.removeprefix(ARRAY): held[name] for name in held.files if name.startswith(ARRAY)}
        return cls(head["kind"], head["seed"], head["family"], arrays, head["options"])


class Kind(Protocol):
    """One family of questions, and who knows their answers."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> float:
        """Its share of the time."""

    @property
    def seconds(self) -> float:
        """What takes longer hangs."""

    def draw(self, seed: int) -> Case:
        """The same case for the same seed, always."""

    def judge(self, case: Case) -> Judgement:
        """Ask dfeas, and compare. Exceptions that escape are crashes."""


def rng_of(name: str, seed: int) -> np.random.Generator:
    """Numbers for a case of a kind."""
    return np.random.default_rng([seed, *name.encode()])
