"""Table 2 and figure 1 of Yu, Kilinc-Karzan and Carbonell 2014 (YKC), and their infeasible instances, in sittings.

    python benchmarks/paper_tables.py --minutes 30      # the runs that come next, recorded one by one
    python benchmarks/paper_tables.py --page            # only the page, of what is on record

A sitting begins the runs that are not on record, the shortest first, and goes on with those that it or an earlier one put
aside: after --slice processor seconds, at its end, or when it was killed. Each run ends with its verdict or at the limits of
the paper, 1,000,000 iterations and 50,000 s, those of the processor here. One thread: the process keeps to one processor. The
record is paper_tables.jsonl in --folder; paper_tables.md and paper_tables.png beside it are made of it. Runs on large
instances are kept in --work, where a later sitting finds them; without it they begin anew.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.papers.effort import MOST_ITERATIONS
from benchmarks.papers.instances import PARTS, groups
from benchmarks.papers.page import METHODS, draw, lines
from benchmarks.papers.record import Record
from benchmarks.papers.sitting import Limits, Plan, sit
from benchmarks.record import HERE, describe_commit, describe_libraries, describe_machine


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="of the sitting")
    parser.add_argument("--slice", type=float, default=300.0, help="processor seconds after which a run is put aside")
    parser.add_argument("--seeds", type=int, default=20, help="instances of each kind; the paper has 20")
    parser.add_argument("--parts", default=",".join(PARTS), help="what is run")
    parser.add_argument("--methods", default=",".join(METHODS), help="names of dfeas.METHODS")
    parser.add_argument("--most-points", type=float, default=1e9, help="leave larger instances to another sitting")
    parser.add_argument("--max-passes", type=int, default=MOST_ITERATIONS, help="put runs aside that had so many")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the points, to try it")
    parser.add_argument("--folder", type=Path, default=HERE / "results", help="of the record and the page")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "paper_tables", help="of runs put aside")
    parser.add_argument("--page", action="store_true", help="run nothing")
    options = parser.parse_args(words)
    options.folder.mkdir(parents=True, exist_ok=True)
    record = Record(options.folder / "paper_tables.jsonl")
    if not options.page:
        end = time.monotonic() + 60 * options.minutes
        chosen = [group for group in groups(options.parts.split(","), options.scale) if group.n <= options.most_points]
        begin = {"sitting": f"{datetime.now(UTC):%Y-%m-%d %H:%M}", "commit": describe_commit()}
        record.begin({**begin, "machine": describe_machine(), "libraries": describe_libraries()})
        limits = Limits(end, options.slice, options.max_passes)
        sit(record, Plan(chosen, options.methods.split(","), options.seeds), options.work, limits)
    page = "\n".join(lines(record, options.seeds, options.scale))
    (options.folder / "paper_tables.md").write_text(page + "\n")
    draw(record, options.folder / "paper_tables.png", options.scale)
    if options.page or options.scale < 1:
        print(page)


if __name__ == "__main__":
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one thread, as in the paper
    main()
