"""How commands that run end: the result on stdout, the exit code, and how to go on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click

from dfeas.analysis.hard_margin import HardMargin
from dfeas.analysis.hard_margin import hard_margin as find_hard_margin
from dfeas.analysis.hull import Hull
from dfeas.analysis.hull import in_hull as find_in_hull
from dfeas.analysis.separation import Separation
from dfeas.analysis.separation import separation as find_separation
from dfeas.api import one_vs_rest as run_one_vs_rest
from dfeas.api import race as run_race
from dfeas.api import resume as run_resume
from dfeas.api import soft_margin as run_soft_margin
from dfeas.api import solve as run_solve
from dfeas.cli.command import LIMIT_REACHED, Command, say
from dfeas.cli.options import (
    GO_ON,
    KERNEL_HELP,
    METHOD,
    METHOD_HELP,
    NAMED,
    RUN,
    SOFT_METHOD,
    Cluster,
    asks,
    method_of,
    options_of,
    require_taken,
)
from dfeas.cli.outputs import run_place
from dfeas.cli.parameter import DATA, LOCAL, option
from dfeas.cli.render import Answer, show
from dfeas.engine.signals import INTERRUPTED, asked_to_stop
from dfeas.methods.registry import METHODS
from dfeas.run.checkpoint.folder import can_go_on, is_finished
from dfeas.run.result_files import RACE, RESULT
from dfeas.run.results import Result
from dfeas.run.soft_margin.result import SoftMarginClasses, SoftMarginResult
from dfeas.run.termination import Stop
from dfeas.run.verdict import OneVsRest, Race

ANEW = "A new limit, counted from the beginning of the run."


@contextmanager
def _begun(data: str, out: Path | None, force: bool, cluster: Cluster, quiet: bool) -> Iterator[dict[str, Any]]:
    """Options of a run that begins, with the folder that it is written to."""
    with cluster.client() as client, asked_to_stop() as stop, run_place(out, data, force) as place:
        yield {"out": place, "client": client, "progress": not quiet, "stop": stop}


def end(answer: Answer, out: Path, as_json: bool) -> None:
    """Print how a run ended, and exit with its code; of several results in one run that of the one that got least far."""
    show(answer, out, as_json)
    if isinstance(answer, Race | OneVsRest | SoftMarginClasses):
        stops = {result.stopped for result in answer.results.values()}
        if not stops <= {Stop.VERDICT, Stop.OUTRUN} or (isinstance(answer, Race) and answer.first is None):
            _limit(out, Stop.INTERRUPTED in stops)
    elif isinstance(answer, HardMargin):
        leave(answer.result, out)
    elif isinstance(answer, Separation):
        leave(answer.result, out, answer.kind is not None)
    elif isinstance(answer, Hull):
        leave(answer.result, out, answer.inside is not None)
    else:
        leave(answer, out)


def leave(result: Result | SoftMarginResult, out: Path, decided: bool = True) -> None:
    """Exit with the code of a result, and of a question that goes beyond it."""
    if result.stopped != Stop.VERDICT:
        _limit(out, result.stopped == Stop.INTERRUPTED)
    if not decided:
        sys.exit(LIMIT_REACHED)


def _limit(out: Path, interrupted: bool) -> NoReturn:
    """Say how a run that has no verdict goes on, and exit."""
    if can_go_on(out):
        say(f"to go on: dfeas resume {out} (with --max-passes or --time-limit for new limits)", err=True)
    sys.exit(INTERRUPTED if interrupted else LIMIT_REACHED)


@click.command(
    cls=Command,
    epilog=KERNEL_HELP,
    examples=(
        "dfeas solve mail.data --out RUN",
        "dfeas solve mail.data --method mirror-prox --max-passes 100 --time-limit 600 --out RUN",
    ),
)
@asks(RUN, METHOD, options_of(run_solve))
@option("Question", "--separation", is_flag=True, help="Go on to say complete, quasi-complete or overlap.")
@option("Question", "--hard-margin", is_flag=True, help="Go on to the maximum margin, and say what follows from it.")
@option("Question", "--one-vs-rest", is_flag=True, help="Each class against the rest, on the same reads.")
def solve(
    data: str,
    out: Path | None,
    force: bool,
    cluster: Cluster,
    as_json: bool,
    quiet: bool,
    separation: bool,
    hard_margin: bool,
    one_vs_rest: bool,
    **options: Any,
) -> None:
    """Decide whether labelled points are separable.

    Verdict, certificate and trace are written to the folder RUN. DATA is a dfeas dataset, a zarr array (n, m) with --labels, or
    a file that ingest takes, if it is small beside the memory. Without a cluster the work is done in this process.
    """
    asked = {"--separation": separation, "--hard-margin": hard_margin, "--one-vs-rest": one_vs_rest}
    if sum(asked.values()) > 1:
        raise click.UsageError("choose one of --separation, --hard-margin and --one-vs-rest")
    verbs: dict[str, Callable[..., Answer]] = {
        "--separation": find_separation,
        "--hard-margin": find_hard_margin,
        "--one-vs-rest": run_one_vs_rest,
    }
    verb, with_flag = next(((verbs[flag], flag) for flag, given in asked.items() if given), (run_solve, ""))
    options = require_taken(verb, with_flag, options)
    with _begun(data, out, force, cluster, quiet) as begun:
        answer = verb(data, **begun, **options)
    end(answer, begun["out"], as_json)


@click.command(
    cls=Command,
    examples=(
        "dfeas svm mail.data --C 1 --out SVM",
        "dfeas svm mail.data --C 0.01,0.1,1 --folds 5 --class-weight balanced --out SVM",
    ),
)
@asks(RUN, SOFT_METHOD, options_of(run_soft_margin))
def svm(
    data: str,
    out: Path | None,
    force: bool,
    cluster: Cluster,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Fit a soft margin: a support vector machine.

    Hyperplane, result and trace are written to the folder RUN. It minimises |w|^2/2 + C times the sum of the losses of the
    points as they are stored, with the intercept, if asked for, in |w| (as LIBLINEAR), until objective and lower bound are as
    near as --gap. dfeas predict RUN applies it.
    """
    with _begun(data, out, force, cluster, quiet) as begun:
        answer = run_soft_margin(data, **begun, **options)
    end(answer, begun["out"], as_json)


@click.command(
    "in-hull",
    cls=Command,
    epilog=METHOD_HELP,
    examples=("dfeas in-hull 0.5,-1,2 points.data --out RUN", "dfeas in-hull point.npy points.data --out RUN --json"),
    context_settings={"ignore_unknown_options": True},
)
@click.argument("point")
@asks(NAMED, options_of(find_in_hull, eps="Stop undecided when no hyperplane leaves a margin above it."), GO_ON)
@method_of([*METHODS])
def in_hull(
    point: str, data: str, out: Path | None, force: bool, cluster: Cluster, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Decide whether a point is in the convex hull of others.

    The others are the points of DATA; the evidence is written to the folder RUN. POINT is a .npy file, or numbers with commas
    between them. Labels of DATA do not matter.
    """
    try:
        where: Any = point if point.endswith(".npy") else [float(v) for v in point.split(",")]
    except ValueError:
        raise click.UsageError(f"POINT {point}: expected a .npy file, or numbers with commas between them") from None
    with _begun(data, out, force, cluster, quiet) as begun:
        answer = find_in_hull(where, data, **begun, **options)
    end(answer, begun["out"], as_json)


@click.command(
    cls=Command,
    epilog=KERNEL_HELP,
    examples=(
        "dfeas race mail.data --methods working-set,mirror-prox --out RACE",
        "dfeas race mail.data --methods perceptron,ispvn --all --max-passes 200 --out RACE",
    ),
)
@asks(RUN, options_of(run_race))
def race(data: str, out: Path | None, force: bool, cluster: Cluster, as_json: bool, quiet: bool, **options: Any) -> None:
    """Run several methods on the same reads.

    A run of each is written to the folder RUN. The first verdict ends all. Limits of passes hold for each method; reads are
    counted once. dfeas compare RUN and dfeas report RUN show them again.
    """
    with _begun(data, out, force, cluster, quiet) as begun:
        answer = run_race(data, **begun, **options)
    end(answer, begun["out"], as_json)


@click.command(cls=Command, examples=("dfeas resume RUN", "dfeas resume RUN --max-passes 500 --time-limit 3600"))
@click.argument("run", type=LOCAL)
@option("Where", "--data", default=None, type=DATA, metavar="DATA", help="The data, if it has been moved.")
@option("Where", "--labels", default=None, metavar="FILE", help="Its label array, when it is a zarr array.")
@asks(options_of(run_resume, "max_passes", "time_limit", max_passes=ANEW, time_limit="A new limit, likewise."), GO_ON)
def resume(
    run: Path, data: str | None, labels: str | None, cluster: Cluster, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Go on with a run that was interrupted or hit a limit.

    It may be one of solve, svm or race, and goes on from its last checkpoint. The cluster may be another one, or none. The
    answer has the same bits as that of a run that was never interrupted.
    """
    if is_finished(run):
        text = (run / (RESULT if (run / RESULT).is_file() else RACE)).read_text().strip()
        say(*text.splitlines() if as_json else [f"{run} is finished"])
        return
    with cluster.client() as client, asked_to_stop() as stop:
        found = run_resume(run, data, labels, client=client, progress=not quiet, stop=stop, **options)
    end(found, run, as_json)
