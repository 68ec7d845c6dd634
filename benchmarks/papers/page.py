"""The page of what is on record: tables beside those of the paper, and its first figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.papers.effort import MOST_ITERATIONS, MOST_SECONDS, remaining
from benchmarks.papers.instances import KAPPA, KAPPAS, LAP, LDFP, PARTS, SIZES, Group, groups
from benchmarks.papers.record import Record, Run
from benchmarks.papers.sitting import LAP_EPS
from dfeas.figures import SERIES, new_figure, style

METHODS = {
    "mirror-prox-fixed": "MPLFP",
    "smooth-perceptron": "SPCT",
    "normalized-perceptron": "PCT",
    "von-neumann": "VN",
    "ispvn": "ISPVN",
    "mirror-prox": "",
    "mirror-prox-one-pass": "",
    "von-neumann-away": "",
    "perceptron": "",
    "working-set": "",
}
"""Methods, and what the paper calls them, if it has them."""

SECONDS: dict[tuple[int, int], dict[str, str]] = {  # as table 2 prints them
    (100, 5_000): {"MPLFP": "1.3", "SPCT": "4.3", "PCT": "98.5", "VN": "127.3"},
    (1000, 5_000): {"MPLFP": "5.5", "SPCT": "16.2", "PCT": "142.2", "VN": "141.5"},
    (100, 50_000): {"MPLFP": "112.7", "SPCT": "455.0", "PCT": "TO", "VN": "TO"},
    (1000, 50_000): {"MPLFP": "318.1", "SPCT": "1301.0", "PCT": "TO", "VN": "TO"},
    (100, 500_000): {"MPLFP": "25506", "SPCT": "Fail", "PCT": "TO", "VN": "TO"},
    (1000, 500_000): {"MPLFP": "22471", "SPCT": "Fail", "PCT": "TO", "VN": "TO"},
}

ABOUT = f"""\
# The experiments of Yu, Kilinc-Karzan and Carbonell 2014, section 7.1

Made by `python benchmarks/paper_tables.py --page` from `paper_tables.jsonl`, which has every run: never by hand.

Every method runs until its verdict, or {MOST_ITERATIONS:,} iterations or {MOST_SECONDS:,.0f} s, the paper's limits: TO then.
Seconds are those of one processor, on which other work ran at the same time. The paper's are those of Matlab 2011b on one
thread of another machine: ratios can be compared, not seconds. Its generator is not printed in the paper;
`benchmarks/papers/instances.py` says which instances these are. An infeasible run ends at |Ax| <= {LAP_EPS:g}, that of the
working set with an exact conflict.

*Ended* is how many of the instances have a verdict or a limit on record; the endings count them, `aside` those that go on in a
later sitting. Means are those of the runs with a verdict, as in the paper. `>` is the most that a run had so far where none
has one. *Reads* are passes over all points. Iterations of `perceptron` are corrections, many on a read, and those of the
working set steps of its solver in memory. *Beside MPLFP* is the ratio of means over the instances that both have solved.
"""

HEAD = (
    "| instances | method | in YKC | ended | endings | iterations | reads | processor s | ms an iteration "
    "| iterations beside MPLFP | s beside MPLFP |"
)


def lines(record: Record, seeds: int, scale: float = 1.0) -> Iterator[str]:
    """The page, line by line."""
    yield ABOUT
    yield from _sittings(record)
    yield f"\n## Table 2: separable points\n\n{HEAD} YKC s | YKC s beside MPLFP |\n{'|---' * 13}|"
    for group, size in zip(groups([LDFP], scale), SIZES, strict=True):
        yield from _rows(record, group, seeds, SECONDS[size])
    yield f"\n## Infeasible points\n\n{HEAD}\n{'|---' * 11}|"
    for group in groups([LAP], scale):
        yield from _rows(record, group, seeds, {})
    yield from _sweep(record, seeds, scale)
    yield from _growth(record, groups([LDFP], scale))
    yield from _left(record, seeds, scale)


def _sweep(record: Record, seeds: int, scale: float) -> Iterator[str]:
    """Figure 1 as a table."""
    yield "\n## Figure 1: kappa\n\nIterations, and how many of the instances have a verdict where that is not all.\n"
    yield f"| kappa | {' | '.join(METHODS)} |\n|---{'|---' * len(METHODS)}|"
    for group in groups([KAPPA], scale):
        cells = []
        for method in METHODS:
            runs = record.of(group, method)
            solved = sum(run.solved for run in runs)
            cells.append(_mean(runs, _iterations) + (f" ({solved})" if 0 < solved < seeds else ""))
        yield f"| {group.kappa} | {' | '.join(cells)} |"
    yield "\n![iterations and processor seconds against kappa](paper_tables.png)"


def _sittings(record: Record) -> Iterator[str]:
    """Those on the same machine, libraries and commit in one line."""
    yield "## Sittings\n"
    same: dict[str, list[str]] = {}
    for sitting in record.sittings:
        same.setdefault(f"{sitting['commit']}; {sitting['machine']}; {sitting['libraries']}", []).append(sitting["sitting"])
    yield from (f"- {', '.join(dates)}: {what}" for what, dates in same.items())


def _rows(record: Record, group: Group, seeds: int, printed: dict[str, str]) -> Iterator[str]:
    first = record.of(group, "mirror-prox-fixed")
    for method, name in METHODS.items():
        runs = record.of(group, method)
        ended = sum(run.ended for run in runs)
        iterations, reads, seconds = (_mean(runs, value) for value in (_iterations, _reads, _processor))
        each = f"{1e3 * sum(run.processor for run in runs) / max(1, sum(run.iterations for run in runs)):.3g}" if runs else ""
        cells = [method, name, f"{ended} of {seeds}" if runs else "not run", _endings(runs), iterations, reads, seconds, each]
        cells += [_ratio(runs, first, _iterations), _ratio(runs, first, _processor)]
        if printed:
            said = printed.get(name, "")
            cells += [said, f"{float(said) / float(printed['MPLFP']):.3g}" if said[:1].isdigit() else ""]
        yield f"| {group.title} | {' | '.join(cells)} |"


def _iterations(run: Run) -> float:
    return run.iterations


def _reads(run: Run) -> float:
    return run.passes


def _processor(run: Run) -> float:
    return run.processor


def _endings(runs: list[Run]) -> str:
    return ", ".join(f"{ending} {count}" for ending, count in sorted(Counter(run.ending for run in runs).items()))


def _mean(runs: list[Run], value: Callable[[Run], float]) -> str:
    """Over those that are solved; of others the most that one had."""
    solved = [value(run) for run in runs if run.solved]
    if solved:
        return f"{np.mean(solved):.4g}"
    return f"> {max(value(run) for run in runs):.4g}" if runs else ""


def _ratio(runs: list[Run], first: list[Run], value: Callable[[Run], float]) -> str:
    """Of the means over the instances that both have solved."""
    base = {run.seed: value(run) for run in first if run.solved}
    both = [(value(run), base[run.seed]) for run in runs if run.solved and run.seed in base]
    if both:
        own, other = np.mean(both, axis=0)
        return f"{own / max(other, 1e-9):.3g}"
    begun = [value(run) / max(base[run.seed], 1e-9) for run in runs if run.seed in base]
    return f"> {max(begun):.3g}" if begun else ""


def _growth(record: Record, sizes: list[Group]) -> Iterator[str]:
    """Iterations against the first size; in the paper they are seconds over m n, which an iteration's work is like."""
    yield (
        "\n## How iterations grow\n\nFrom 100 x 5,000, where both sizes have runs with a verdict. The paper prints seconds;\n"
        "over m n, as an iteration's work goes, they grow like its iterations.\n"
    )
    yield "| to | method | in YKC | iterations | YKC, seconds over m n |\n|---|---|---|---|---|"
    (m0, n0), begin = SIZES[0], sizes[0]
    for group, (m, n) in zip(sizes[1:], SIZES[1:], strict=True):
        for method, name in METHODS.items():
            means = [
                [run.iterations for run in record.of(each, method) if run.solved and run.iterations] for each in (begin, group)
            ]
            if name and all(means):
                old, new = SECONDS[m0, n0].get(name, ""), SECONDS[m, n].get(name, "")
                said = f"{float(new) / float(old) * m0 * n0 / (m * n):.3g}" if new[:1].isdigit() and old else new
                yield f"| {group.title} | {method} | {name} | {np.mean(means[1]) / np.mean(means[0]):.3g} | {said} |"


def _left(record: Record, seeds: int, scale: float) -> Iterator[str]:
    """What the rest takes."""
    left = remaining(record, groups(list(PARTS), scale), list(METHODS), seeds)
    hours = sum(left.values()) / 3600
    yield (
        "\n## What is left\n\nProcessor hours, by powers of m and n that fit what was measured, each run at most at the\n"
        f"limits of the paper: {hours:.4g} in all. Where a method has no run of a part, they are assumed: 500 iterations of\n"
        "2 ms at the first size, more of them like n where points are separable, longer ones like m n.\n"
    )
    yield "| instances | " + " | ".join(METHODS) + " |\n|---|" + "---|" * len(METHODS)
    for part in PARTS:
        for group in groups([part], scale):
            each = [left[group, method] / 3600 for method in METHODS]
            if any(each):
                yield f"| {part} {group.title} | " + " | ".join(f"{value:.2g}" if value else "" for value in each) + " |"


def draw(record: Record, file: Path, scale: float = 1.0) -> None:
    """Iterations and processor seconds against kappa, means of what was solved."""
    with style():
        figure = new_figure(11.0, 4.4)
        axes = figure.subplots(1, 2)
        for i, (method, name) in enumerate(METHODS.items()):
            for one, value in zip(axes, (_iterations, _processor), strict=True):
                found = {}
                for group in groups([KAPPA], scale):
                    solved = [value(run) for run in record.of(group, method) if run.solved]
                    if sum(solved) > 0:  # none of a method that needs no step has a place on a logarithmic axis
                        found[group.kappa] = np.mean(solved)
                look = {"color": SERIES[i % len(SERIES)], "ls": ("-", "--")[i // len(SERIES)], "marker": "osD^vP<>X*"[i]}
                one.plot(list(found), list(found.values()), label=f"{method} ({name})" if name else method, **look)
        for one, label in zip(axes, ("iterations to a separator", "processor seconds to a separator"), strict=True):
            one.set(yscale="log", xlabel="kappa", ylabel=label, xticks=list(KAPPAS))
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", handlelength=3.2)
        figure.savefig(file, dpi=110)
