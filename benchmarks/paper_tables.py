"""Table 2 and figure 1 of Yu, Kilinc-Karzan and Carbonell 2014 (YKC), as far as they can be done again.

    python benchmarks/paper_tables.py --out FOLDER

First table: every method of the paper, and ours, on feasible instances of the sizes of table 2, until a separator was found
and checked. TO means that --limit or --max-passes came first. With --seeds the numbers are means over all instances; a ">"
says that a limit ended one of them, so that they are lower bounds. Seconds are those of ``dfeas.solve`` on arrays in memory,
with the read that surveys them and the check of the separator; CPU seconds are those of all threads, which other work on the
machine disturbs less. Second table, and a plot with --out: passes and seconds against the best margin, which is known, on the
size of figure 1. The summary at the end is computed from the tables.
"""

from __future__ import annotations

import argparse
import platform
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

import dfeas
from dfeas.data.generate.points import Instance
from dfeas.machine import processors
from dfeas.methods.perceptron import perceptron
from dfeas.methods.registry import METHODS
from dfeas.report.figures import SERIES, new_figure, style
from dfeas.run.results import Result

SIZES = [(100, 5_000), (1000, 5_000), (100, 50_000), (1000, 50_000)]
LARGE = [(100, 500_000), (1000, 500_000)]
SWEEP = (100, 5_000)

ONE = "perceptron-one-a-pass"
"""One correction a pass, of the worst column: the paper's PCT, and not a method that users can name."""

IN_PAPER = {
    "mirror-prox-fixed": "MPLFP",
    "mirror-prox": "",
    "mirror-prox-one-pass": "",
    "smooth-perceptron": "SPCT",
    ONE: "PCT",
    "von-neumann": "VN",
    "von-neumann-away": "",
    "ispvn": "ISPVN",
    "perceptron": "",
    "working-set": "",
}
"""Methods, and what the paper calls them, if it has them."""

SECONDS = {  # as table 2 prints them
    (100, 5_000): {"MPLFP": "1.3", "SPCT": "4.3", "PCT": "98.5", "VN": "127.3"},
    (1000, 5_000): {"MPLFP": "5.5", "SPCT": "16.2", "PCT": "142.2", "VN": "141.5"},
    (100, 50_000): {"MPLFP": "112.7", "SPCT": "455.0", "PCT": "TO", "VN": "TO"},
    (1000, 50_000): {"MPLFP": "318.1", "SPCT": "1301.0", "PCT": "TO", "VN": "TO"},
    (100, 500_000): {"MPLFP": "25506", "SPCT": "Fail", "PCT": "TO", "VN": "TO"},
    (1000, 500_000): {"MPLFP": "22471", "SPCT": "Fail", "PCT": "TO", "VN": "TO"},
}

ORDER = [("MPLFP", "SPCT"), ("SPCT", "PCT"), ("SPCT", "VN")]
"""What table 2 says: the first of each pair is the faster one."""

EPS = 1e-9
"""No run is to end because the margin is small."""

ABOUT = """\
The instance generator of the paper is not published: its kappa = 1 stands for a condition number that is not given. These
are other instances: `halfspace`, random unit points flipped to one side of a random plane, whose margin is thin. The paper's
seconds are those of Matlab 2011b on one thread of another machine, up to 50,000 s and 1,000,000 iterations. So only the order
of the methods and how they grow can be compared, not seconds. In the paper ISPVN failed on all instances; ours takes the
largest eigenvalue of A A' for its smoothing where its authors take n."""

Say = Callable[[str], None]


class Cell(NamedTuple):
    """How one method did on instances of one kind."""

    method: str
    results: list[Result]
    cpu: list[float]  # seconds of all threads

    @property
    def title(self) -> str:
        """The paper's name beside ours."""
        known = IN_PAPER.get(self.method)
        return f"{self.method} ({known})" if known else self.method

    @property
    def endings(self) -> Counter[str]:
        return Counter(_ending(result) for result in self.results)

    @property
    def solved(self) -> bool:
        return set(self.endings) == {"feasible"}

    @property
    def failed(self) -> bool:
        """Whether some run ended by itself, without a separator."""
        return bool(set(self.endings) - {"feasible", "TO"})

    def mean(self, name: str) -> float:
        return float(np.mean([getattr(result, name) for result in self.results]))

    def shown(self, name: str) -> str:
        """A mean; when a limit ended some run it is a lower bound."""
        return (">" if "TO" in self.endings else "") + f"{self.mean(name):.4g}"

    def columns(self) -> str:
        ends = self.endings
        verdict = next(iter(ends)) if len(ends) == 1 else ", ".join(f"{end} {count}" for end, count in ends.items())
        each = 1e3 * self.mean("seconds") / self.mean("passes")
        name, counts = IN_PAPER.get(self.method, ""), [self.shown(name) for name in ("passes", "iterations", "seconds")]
        counts.append((">" if "TO" in ends else "") + f"{np.mean(self.cpu):.4g}")
        return " | ".join([self.method, name, verdict, *counts, f"{each:.3g}", f"{self.mean('margin_lower'):+.2e}"])


HEAD = "method | in YKC | verdict | passes | iterations | seconds | CPU s | ms a pass | margin found"


def _ending(result: Result) -> str:
    if result.success:
        return result.verdict
    return "TO" if result.stopped in ("pass_limit", "time_limit") else result.stopped


def less(a: Cell, b: Cell, name: str) -> str:
    """Whether a needed fewer passes, or seconds, than b. A run that a limit ended would have needed more than it had."""
    if a.solved and b.solved and a.mean(name) == b.mean(name):
        return "is a tie"
    if a.solved and (b.failed or a.mean(name) < b.mean(name)):
        return "held"
    if b.solved and (a.failed or b.mean(name) <= a.mean(name)):
        return "did not hold"
    return "not decided"


@lru_cache(maxsize=1)
def arrays(instance: Instance) -> tuple[NDArray[Any], NDArray[np.int8]]:
    """Points (n, m) and labels (n,)."""
    blocks = [instance.block(i) for i in range(-(-instance.n // instance.rows))]
    return np.vstack([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks])


def cells(instances: list[Instance], options: argparse.Namespace) -> Iterator[Cell]:
    """Every method on every instance."""
    limits = {"max_passes": options.max_passes, "time_limit": options.limit}
    for method in options.methods.split(","):
        results, cpu = [], []
        for instance in instances:
            data = arrays(instance)
            began = process_time()
            results.append(dfeas.solve(*data, intercept=False, method=method, eps=EPS, **limits))
            cpu.append(process_time() - began)
        yield Cell(method, results, cpu)


def table(options: argparse.Namespace, say: Say) -> dict[tuple[int, int], list[Cell]]:
    """Table 2, by size."""
    say("\n## Table 2: sizes\n")
    say(f"| instance | {HEAD} | YKC seconds |")
    say("|" + "---|" * 11)
    found: dict[tuple[int, int], list[Cell]] = {}
    for m, n in SIZES + (LARGE if options.full else []):
        points = scaled(n, options.scale)
        for cell in cells([Instance("halfspace", m, points, seed=seed) for seed in range(options.seeds)], options):
            printed = SECONDS[m, n].get(IN_PAPER.get(cell.method, ""), "") if points == n else ""
            say(f"| halfspace {m} x {points} | {cell.columns()} | {printed} |")
            found.setdefault((m, n), []).append(cell)
    return found


def sweep(options: argparse.Namespace, say: Say) -> dict[float, list[Cell]]:
    """Figure 1, by margin."""
    m, n = SWEEP
    points = scaled(n, options.scale)
    say(f"\n## Figure 1: margins, planted {m} x {points}\n")
    say(f"| best margin | {HEAD} |")
    say("|" + "---|" * 10)
    found: dict[float, list[Cell]] = {}
    for margin in np.logspace(-1, -4, options.margins).tolist():
        for cell in cells([Instance("planted", m, points, margin, seed=seed) for seed in range(options.seeds)], options):
            say(f"| {margin:.3g} | {cell.columns()} |")
            found.setdefault(margin, []).append(cell)
    return found


def scaled(n: int, scale: float) -> int:
    return max(200, int(n * scale))


def ranking(cells: list[Cell], name: str, unit: str) -> str:
    """The methods in order, and those that have no place in it."""
    ordered = sorted((cell for cell in cells if cell.solved), key=lambda cell: cell.mean(name))
    text = " < ".join(f"{cell.title} {cell.shown(name)}{unit}" for cell in ordered) or "none"
    rest = [f"{cell.title} {cell.shown(name)}{unit}" for cell in cells if not cell.solved]
    return text + (f"; without a separator on some instance: {', '.join(rest)}" if rest else "")


def papers_order(cells: list[Cell], name: str) -> str:
    """Whether each pair of the paper's order held."""
    named = {IN_PAPER.get(cell.method): cell for cell in cells}
    pairs = [(a, b) for a, b in ORDER if a in named and b in named]
    return "; ".join(f"{a} < {b} {less(named[a], named[b], name)}" for a, b in pairs)


def summary(sizes: dict[tuple[int, int], list[Cell]], margins: dict[float, list[Cell]], say: Say) -> None:
    say("\n## Summary\n")
    groups = {f"halfspace {m} x {cells[0].results[0].n}": cells for (m, _), cells in sizes.items()}
    groups |= {f"planted, margin {margin:.3g}": of for margin, of in margins.items()}
    for title, cells in groups.items():
        say(f"* {title}")
        say(f"  * by passes: {ranking(cells, 'passes', '')}")
        say(f"  * by seconds: {ranking(cells, 'seconds', ' s')}")
        pairs = papers_order(cells, "passes")
        if pairs:
            say(f"  * the paper's order, in passes: {pairs}")
            say(f"  * the paper's order, in seconds: {papers_order(cells, 'seconds')}")
    if len(sizes) > 1:
        growth(sizes, say)
    if len(margins) > 1:
        slopes(margins, say)


def growth(sizes: dict[tuple[int, int], list[Cell]], say: Say) -> None:
    """Against the first size, here and in the paper."""
    (m0, n0), first = next(iter(sizes.items()))
    say(f"\nGrowth from {m0} x {first[0].results[0].n}; `-` where a limit or a failure leaves no number:\n")
    say("| to | method | in YKC | passes | seconds | YKC seconds |")
    say("|---|---|---|---|---|---|")
    for (m, n), cells in list(sizes.items())[1:]:
        for base, cell in zip(first, cells, strict=True):
            known = IN_PAPER.get(cell.method, "")
            both = base.solved and cell.solved
            shown = [f"{cell.mean(name) / base.mean(name):.3g}" if both else "-" for name in ("passes", "seconds")]
            old, new = SECONDS[m0, n0].get(known, ""), SECONDS[m, n].get(known, "")
            printed = f"{float(new) / float(old):.3g}" if new[:1].isdigit() and old else "-" if new else ""
            say(f"| {m} x {cell.results[0].n} | {cell.method} | {known} | {shown[0]} | {shown[1]} | {printed} |")


def slopes(margins: dict[float, list[Cell]], say: Say) -> None:
    """How passes go with the margin: least squares over what was solved."""
    say("\nPasses as a power of the margin, where a separator was found (the theorems' bounds go like -1 or -2):\n")
    say("| method | in YKC | margins solved | smallest of them | power |")
    say("|---|---|---|---|---|")
    for i, cell in enumerate(next(iter(margins.values()))):
        solved = {margin: cells[i].mean("passes") for margin, cells in margins.items() if cells[i].solved}
        power = ""
        if len(solved) > 1:
            power = f"{np.polyfit(np.log(list(solved)), np.log(list(solved.values())), 1)[0]:+.2f}"
        least = f"{min(solved):.3g}" if solved else ""
        say(f"| {cell.method} | {IN_PAPER.get(cell.method, '')} | {len(solved)} of {len(margins)} | {least} | {power} |")


def draw(margins: dict[float, list[Cell]], limit: float, file: Path | BytesIO) -> None:
    """Passes and seconds against the margin; what a limit ended is hollow, and what failed is left out."""
    with style():
        figure = new_figure(11.0, 4.4)
        axes = figure.subplots(1, 2)
        for i in range(len(next(iter(margins.values())))):
            cells = {margin: of[i] for margin, of in margins.items() if not of[i].failed}
            look = {
                "color": SERIES[i % len(SERIES)],
                "ls": ("-", "--", ":")[i // len(SERIES) % 3],
                "marker": "osD^vP<>X*"[i % 10],
            }
            for one, name in zip(axes, ("passes", "seconds"), strict=True):
                _line(one, cells, name, look)
        for one, label in zip(axes, ("passes to a separator", "seconds to a separator"), strict=True):
            one.set_xscale("log")
            one.set_yscale("log")
            one.set_xlabel("best margin")
            one.set_ylabel(label)
        axes[1].axhline(limit, color="#5f6b7a", lw=1, ls=(0, (1, 3)))
        axes[1].annotate("limit", (1, limit), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8)
        axes[0].plot([], [], "o", mfc="none", color="#5f6b7a", label="hollow: a limit came first")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", handlelength=3.2)
        figure.savefig(file, dpi=150)


def _line(axes: Axes, cells: dict[float, Cell], name: str, look: dict[str, str]) -> None:
    """A line through what was solved, hollow markers for the rest."""
    solved = {margin: cell.mean(name) for margin, cell in cells.items() if cell.solved}
    rest = {margin: cell.mean(name) for margin, cell in cells.items() if not cell.solved}
    title = next((cell.title for cell in cells.values()), None)
    axes.plot(list(solved), list(solved.values()), ms=6, label=title, **look)
    axes.plot(list(rest), list(rest.values()), ms=7, mfc="none", mew=1.4, **(look | {"ls": "none"}))


def report(options: argparse.Namespace, folder: Path | None, say: Say) -> None:
    parts = options.parts.split(",")
    say("# The experiments of Yu, Kilinc-Karzan and Carbonell 2014, section 7.1, on other instances\n")
    say(ABOUT + "\n")
    say(
        f"At most {options.limit:g} s and {options.max_passes} passes a run; instances of each kind: {options.seeds}; float32; "
        f"threads: at most {processors()}; {platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}."
    )
    sizes = table(options, say) if "table" in parts else {}
    margins = sweep(options, say) if "sweep" in parts else {}
    summary(sizes, margins, say)
    if margins:
        draw(margins, options.limit, BytesIO() if folder is None else folder / "paper_tables.png")
    if folder is not None and margins:
        say("\n![passes and seconds against the margin](paper_tables.png)")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=None, help="folder for paper_tables.md and paper_tables.png")
    parser.add_argument("--full", action="store_true", help="also the sizes with 500,000 points")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of a run")
    parser.add_argument("--max-passes", type=int, default=1_000_000, help="of a run")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the points")
    parser.add_argument("--methods", default=",".join(IN_PAPER), help=f"names of dfeas.METHODS, and {ONE}")
    parser.add_argument("--seeds", type=int, default=1, help="instances of each kind; the paper has 20")
    parser.add_argument("--margins", type=int, default=7, help="of the sweep, from 0.1 to 0.0001")
    parser.add_argument("--parts", default="table,sweep", help="what is run")
    options = parser.parse_args(words)
    with ExitStack() as stack:
        stack.enter_context(patch.dict(METHODS, {ONE: perceptron(cap=1, most=1)}))
        folder = None if options.out is None else Path(options.out)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        file = None if folder is None else stack.enter_context((folder / "paper_tables.md").open("w"))

        def say(line: str) -> None:
            print(line, flush=True)
            if file is not None:
                file.write(line + "\n")
                file.flush()

        report(options, folder, say)


if __name__ == "__main__":
    main()
