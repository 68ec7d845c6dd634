"""Stored data is damaged at random, and solved; a finished run is damaged, and verified: nothing wrong may go unnoticed.

    python benchmarks/corruption.py --count 1000 --verified 300

Each damage is one bit flip, truncation, deletion or swap of two chunks of a dataset that dfeas wrote, or of its metadata. It is
noticed (a CorruptDataError or BadInputError), or harmless: the same header and the same bytes are still read (white
space in JSON, two equal chunks, the unused rows of the last chunk), and the evidence is the same. In a finished run a damage
is refused by the checker, or what the run claims is still proved. Anything else, also another error, counts as unnoticed.
Data that changes under a run, after its first read, is not damaged here.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import dfeas
from dfeas.data.generate.points import Instance, generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Buffers
from dfeas.errors import DfeasError
from dfeas.run.result_files import load_result
from dfeas.run.results import Result

KINDS = ("flip", "truncate", "delete", "swap")
CLAIMS = ("verdict", "m", "n", "fingerprint")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="damages of the data")
    parser.add_argument("--verified", type=int, default=300, help="damages of finished runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dir", default=None, help="where the data is made")
    options = parser.parse_args(words)
    rng = random.Random(options.seed)
    found: Counter[tuple[str, str, str]] = Counter()
    with tempfile.TemporaryDirectory(dir=options.dir) as made:
        data = Path(made) / "data"
        generate(Instance("planted", 6, 397, 0.05, block_rows=50), data)
        calm, read = dfeas.solve(data, intercept=False), contents(data)
        for number in range(options.count):
            kind, path = KINDS[number % 4], chosen(rng, data)
            outcome = "harmless"
            with damaged(rng, kind, path):
                try:
                    outcome = (
                        "harmless" if same(calm, dfeas.solve(data, intercept=False)) and read == contents(data) else "unnoticed"
                    )
                except DfeasError as error:
                    outcome = "noticed" if error.exit_code in (4, 5) else "unnoticed"
            found[part(path, data), kind, outcome] += 1
            if outcome == "unnoticed":
                print(f"unnoticed: {kind} of {path.relative_to(data)}, number {number}")
        for kind in ("planted", "one-flip"):
            damage_runs(rng, Path(made), kind, options.verified // 2, found)
    show(found)


def chosen(rng: random.Random, data: Path) -> Path:
    """A file: a chunk of points, a chunk of labels or norms, or metadata, each a third of the time."""
    groups: dict[str, list[Path]] = {"X": [], "sides": [], "metadata": []}
    for path in sorted(path for path in data.rglob("*") if path.is_file()):
        of_chunk = {"X": "X", "label": "sides", "norm": "sides"}.get(path.parent.name, "metadata")
        groups[of_chunk if path.name.startswith("c.") else "metadata"].append(path)
    return rng.choice(groups[rng.choice(list(groups))])


def part(path: Path, folder: Path) -> str:
    name = str(path.relative_to(folder))
    return f"{name.split('/')[0]} chunks" if path.name.startswith("c") and "/c" in name else name


@contextmanager
def damaged(rng: random.Random, kind: str, path: Path) -> Iterator[None]:
    """Damage a file, and restore it."""
    content = path.read_bytes()
    others = [p for p in sorted(path.parent.iterdir()) if p.is_file() and p != path]
    other = rng.choice(others) if others else path
    swapped = other.read_bytes()
    if kind == "flip":
        bit = rng.randrange(8 * len(content))
        path.write_bytes(content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :])
    elif kind == "truncate":
        path.write_bytes(content[: rng.randrange(len(content))])
    elif kind == "delete":
        path.unlink()
    else:
        path.write_bytes(swapped)
        other.write_bytes(content)
    try:
        yield
    finally:
        other.write_bytes(swapped)
        path.write_bytes(content)


def contents(data: Path) -> list[object]:
    """The header, and all bytes."""
    dataset = open_source(Source(DataSpec(data, intercept=False)))
    read: list[object] = [dataset.header]
    for index in range(dataset.blocks):
        read += [r.read(index, Buffers()).tobytes() for r in (dataset.points, dataset.labels, dataset.stored_norms) if r]
    return read


def same(one: Result, two: Result) -> bool:
    claims = [(r.verdict, r.margin_lower, r.margin_upper, r.passes, r.fingerprint) for r in (one, two)]
    arrays = [[getattr(r.evidence, name) for name in ("y", "support", "weights")] for r in (one, two)]
    return claims[0] == claims[1] and all(np.array_equal(a, b) for a, b in zip(*arrays, strict=True))


def damage_runs(rng: random.Random, made: Path, kind: str, count: int, found: Counter[tuple[str, str, str]]) -> None:
    """Flip bits of the files of a finished run, and verify it."""
    data, run = made / f"{kind}-data", made / f"{kind}-run"
    generate(Instance(kind, 6, 397, 0.05, block_rows=50), data)
    dfeas.solve(data, intercept=False, out=run, eps=1e-2)
    truth = load_result(run)
    end = "margin_lower" if truth["verdict"] == "feasible" else "margin_upper"
    for number in range(count):
        path = run / ("certificate.npz", "result.json", "trace.jsonl")[number % 3]
        with damaged(rng, "flip", path):
            try:
                dfeas.verify_run(run)
                claimed = load_result(run)
                near = abs(claimed[end] - truth[end]) <= 1e-8 * abs(truth[end])
                true = near and all(claimed[k] == truth[k] for k in CLAIMS)
                outcome = "harmless" if true else "unnoticed"
            except DfeasError:
                outcome = "noticed"
        found[f"run: {path.name}", "flip", outcome] += 1
    shutil.rmtree(run)


def show(found: Counter[tuple[str, str, str]]) -> None:
    print("| damaged | how | times | noticed | harmless | unnoticed |")
    print("|---|---|---|---|---|---|")
    outcomes = ("noticed", "harmless", "unnoticed")
    for where, how in sorted({(where, how) for where, how, _ in found}):
        counts = [found[where, how, outcome] for outcome in outcomes]
        print(f"| {where} | {how} | {sum(counts)} | {' | '.join(map(str, counts))} |")
    for what in ("data", "runs"):
        mine = {k: v for k, v in found.items() if k[0].startswith("run: ") == (what == "runs")}
        counts = [sum(v for k, v in mine.items() if k[2] == outcome) for outcome in outcomes]
        print(f"| all of the {what} | | {sum(counts)} | {' | '.join(map(str, counts))} |")


if __name__ == "__main__":
    main()
