"""Files that were damaged or made by somebody who means harm, for every reader: an exit code, one line, no more."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import numpy as np

from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong
from tests.fuzzing.child import Ended, shared
from tests.fuzzing.mutation import mutated
from tests.fuzzing.templates import FOLDER, Template, moved, templates

CODES = (0, 2, 3, 4, 5, 6, 75)
MEMORY = 1_500_000_000
LIMIT = 20.0
CHUNKS = ("/X/c.", "/label/c.", "/X/data/c.", "/X/indices/c.")
"""Blocks of a dataset that dfeas wrote: checksums see any change of them."""


class Hostile:
    """Mutates a file that a command reads, and runs the command."""

    name = "hostile"
    weight = 2.5
    seconds = 2 * LIMIT

    def __init__(self) -> None:
        self._child = shared()
        self._child.start()

    @cached_property
    def _templates(self) -> tuple[Template, ...]:
        with tempfile.TemporaryDirectory() as folder:
            return templates(Path(folder))

    def draw(self, seed: int) -> Case:
        rng = rng_of(self.name, seed)
        template = self._templates[rng.integers(len(self._templates))]
        target = template.targets[rng.integers(len(template.targets))]
        way, data = mutated(rng, template.files[target])
        words = template.commands[rng.integers(len(template.commands))]
        files = {name: np.frombuffer(text, np.uint8) for name, text in (template.files | {target: data}).items()}
        options = {"words": list(words), "target": target, "way": way, "changed": data != template.files[target]}
        return Case(self.name, seed, template.name, files, options)

    def judge(self, case: Case) -> Judgement:
        with laid_out(case) as folder:
            words = [word.replace(FOLDER, str(folder)) for word in case.options["words"]]
            ended = self._child.run(words, folder, LIMIT)
        target = str(case.options["target"])
        protected = case.family.startswith("dataset") and any(mark in f"/{target}" for mark in CHUNKS)
        if protected and case.options["changed"] and words[0] == "solve" and ended.code in (0, 3):
            return wrong(f"{target} was changed ({case.options['way']}), and nobody noticed: {ended.out[:300]}")
        return of_ending(ended, f"{' '.join(words[:1])}, {case.options['way']} of {target}")


@contextmanager
def laid_out(case: Case) -> Iterator[Path]:
    """The files of a case in a folder of their own."""
    folder = Path(tempfile.mkdtemp())
    try:
        for name, data in case.arrays.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(moved(name, data.tobytes(), FOLDER, str(folder)))
        yield folder
    finally:
        shutil.rmtree(folder)


def of_ending(ended: Ended, what: str) -> Judgement:
    """Whether a command ended as the contract says: the code, one line of error, memory, time."""
    last = (ended.err.strip().splitlines() or [""])[-1]
    if ended.hung:
        return Judgement(Word.HANG, f"{what}: not done in {ended.seconds:.0f} s: {last[:200]}")
    if "Traceback" in ended.err:
        return Judgement(Word.CRASH, f"{what}: exit {ended.code}: {last[:300]}")
    if ended.code not in CODES:
        return Judgement(Word.CRASH, f"{what}: exit {ended.code}: {last[:300]}")
    if ended.bytes > MEMORY:
        return wrong(f"{what}: {ended.bytes / 1e9:.1f} GB of memory, exit {ended.code}: {last[:200]}")
    errors = [line for line in ended.err.splitlines() if line.startswith("dfeas: error:")]
    if ended.failed and (len(errors) != 1 or last != errors[0]):
        return wrong(f"{what}: exit {ended.code} with {len(errors)} lines of error: {ended.err[-300:]!r}")
    if any(ord(letter) < 32 and letter not in "\n\r\t" for letter in ended.out + ended.err):
        return wrong(f"{what}: control characters in {(ended.out + ended.err)[-300:]!r}")
    return Judgement(Word.REFUSED, last) if ended.failed else RIGHT
