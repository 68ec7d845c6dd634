"""Commands that are killed at any moment and run again: the same bits, nothing half-written that looks whole, no lock left."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import dfeas
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong
from tests.fuzzing.child import Ended, shared

SIGNALS = ("SIGKILL", "SIGKILL", "SIGINT", "SIGTERM")
LIMIT = 60.0
TRIES = 3
"""A command is killed so often at most."""
DONE = (0, 3)
POLITE = (*DONE, 75)
VOLATILE = ("seconds", "bytes_read", "reads", "versions", "certificate", "data")
"""Keys of result.json that say how it went, and where things are."""


@dataclass(frozen=True)
class Scenario:
    """A command, and what it writes."""

    words: tuple[str, ...]
    written: str


SLOW = ("--eps", "1e-9")
SCENARIOS = {
    "ingest": Scenario(("ingest", "x.csv", "out", "--label-column", "0"), "out"),
    "solve": Scenario(("solve", "d", "--out", "run", "--method", "mirror-prox", "--max-passes", "200", *SLOW), "run"),
    "svm": Scenario(("svm", "d", "--out", "run", "--loss", "squared_hinge", "--tol", "1e-9"), "run"),
    "race": Scenario(
        ("race", "d", "--out", "run", "--methods", "mirror-prox,von-neumann", "--max-passes", "120", *SLOW), "run"
    ),
}


@cache
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 12)).round(4)
    return X, np.where(X @ rng.standard_normal(12) + 0.3 * rng.standard_normal(6000) > 0, 1, -1)


def lay_out(folder: Path, scenario: str) -> None:
    """What a scenario begins with."""
    X, y = data()
    if scenario == "ingest":
        np.savetxt(folder / "x.csv", np.column_stack([y, X]), fmt="%g", delimiter=",")
        return
    dfeas.ingest(X, folder / "d", y=y)


def content(folder: Path) -> dict[str, bytes]:
    """What must be the same: bytes of datasets and certificates, the numbers of results, and which files there are."""
    found = {}
    for path in sorted(folder.rglob("*")):
        # of a run that reached a limit; how many there were is a matter of time
        if path.is_file() and not (path.parent.name == "checkpoint" and path.suffix == ".state"):
            name, data = str(path.relative_to(folder)), path.read_bytes()
            if path.name in ("result.json", "race.json"):
                data = json.dumps(_lasting(json.loads(data))).encode()
            if path.suffix == ".npz":
                with np.load(path) as held:
                    data = b"".join(held[key].tobytes() for key in held.files)
            found[name] = b"" if path.name == "trace.jsonl" else data
    return found


def _lasting(values: object) -> object:
    if isinstance(values, dict):
        return {key: _lasting(value) for key, value in values.items() if key not in VOLATILE}
    return [_lasting(value) for value in values] if isinstance(values, list) else values


class Kills:
    name = "kills"
    weight = 2.0
    seconds = 4 * LIMIT

    def __init__(self) -> None:
        self._child = shared()
        self._child.start()
        self._undisturbed: dict[str, tuple[float, dict[str, bytes]]] = {}

    def draw(self, seed: int) -> Case:
        rng = rng_of(self.name, seed)
        scenario = list(SCENARIOS)[seed % len(SCENARIOS)]
        kills = [[str(rng.choice(SIGNALS)), float(rng.uniform(0, 1.1))] for _ in range(rng.integers(1, TRIES + 1))]
        return Case(self.name, seed, scenario, {}, {"kills": kills})

    def undisturbed(self, scenario: str) -> tuple[float, dict[str, bytes]]:
        """Seconds and content of a run that nobody killed."""
        if scenario not in self._undisturbed:
            with tempfile.TemporaryDirectory() as name:
                folder, asked = Path(name), SCENARIOS[scenario]
                lay_out(folder, scenario)
                ended = self._child.run(list(asked.words), folder, LIMIT)
                assert ended.code in DONE, f"{scenario} itself ends {ended.code}: {ended.err[-300:]}"
                self._undisturbed[scenario] = ended.seconds, content(folder / asked.written)
        return self._undisturbed[scenario]

    def judge(self, case: Case) -> Judgement:
        seconds, expected = self.undisturbed(case.family)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            lay_out(folder, case.family)
            return self._killed(case, folder, seconds) or self._finished(case, folder, expected)

    def _killed(self, case: Case, folder: Path, seconds: float) -> Judgement | None:
        """Kill the command, and what goes on with it, as often as the case says; what is wrong on the way."""
        asked = SCENARIOS[case.family]
        for number, share in case.options["kills"]:
            if self._done(case.family, folder):
                return None
            words = self._next(case.family, folder)
            ended = self._child.run(list(words), folder, LIMIT, getattr(signal, number), share * seconds)
            if words[0] == "resume" and ended.failed and not (folder / asked.written / "result.json").exists():
                shutil.rmtree(folder / asked.written)  # nothing was written yet that it could go on from
                continue
            bad = of_ending(ended, f"{words[0]} and {number} after {share * seconds:.2f} s", number)
            if bad is not None:
                return bad
            if ended.code in DONE:
                return None
            if case.family == "ingest" and (folder / "out").exists():
                whole = self._child.run(["info", "out"], folder, LIMIT)
                if whole.code == 0 and content(folder / "out") != self.undisturbed("ingest")[1]:
                    return wrong(f"after {number} a dataset that is not whole looks whole")
        return None

    def _done(self, scenario: str, folder: Path) -> bool:
        """Whether an ingest was killed when all was written: the same command would find the place taken."""
        return scenario == "ingest" and (folder / "out").exists() and content(folder / "out") == self.undisturbed(scenario)[1]

    def _next(self, scenario: str, folder: Path) -> tuple[str, ...]:
        """What somebody types who finds this."""
        asked = SCENARIOS[scenario]
        if asked.written == "run" and (folder / "run").exists():
            return ("resume", "run")
        return asked.words

    def _finished(self, case: Case, folder: Path, expected: dict[str, bytes]) -> Judgement:
        """Go on undisturbed, and compare."""
        asked = SCENARIOS[case.family]
        written = folder / asked.written
        for _ in range(2):
            if self._done(case.family, folder):
                break
            words = self._next(case.family, folder)
            ended = self._child.run(list(words), folder, LIMIT)
            if ended.code in DONE:
                break
            # nothing was written yet that it could go on from: it says so, and the folder is free again
            if words[0] != "resume" or not ended.failed or (written / "result.json").exists():
                return wrong(f"{' '.join(words)} after {case.options['kills']}: exit {ended.code}: {ended.err[-300:]}")
            shutil.rmtree(written)
        found = content(written)
        if found != expected:
            names = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
            return wrong(f"after {case.options['kills']} other bits in {', '.join(names)}")
        return RIGHT


def of_ending(ended: Ended, what: str, number: str) -> Judgement | None:
    """What is wrong with the way a command took a signal."""
    if ended.hung:
        return Judgement(Word.HANG, f"{what}: not ended in {LIMIT:g} s")
    if "Traceback" in ended.err:
        return Judgement(Word.CRASH, f"{what}: exit {ended.code}: {ended.err[max(0, ended.err.index('Traceback') - 300) :]}")
    expected = (*POLITE, -signal.SIGKILL) if number == "SIGKILL" else POLITE
    return None if ended.code in expected else wrong(f"{what}: exit {ended.code}: {ended.err[-200:]}")
