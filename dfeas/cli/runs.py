"""Commands that run: solve, svm, in-hull, race, resume. Their exit code says whether there is a verdict."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from dfeas import api
from dfeas.analysis.hard_margin import HardMargin
from dfeas.analysis.hard_margin import hard_margin as find_hard_margin
from dfeas.analysis.hull import Hull
from dfeas.analysis.hull import in_hull as find_in_hull
from dfeas.analysis.separation import Separation
from dfeas.analysis.separation import separation as find_separation
from dfeas.cli.answer import put
from dfeas.cli.command import DATA, LIMIT_REACHED, Command, option, say
from dfeas.cli.options import (
    ALSO,
    GO_ON,
    KERNEL_HELP,
    METHOD,
    METHOD_HELP,
    NAMED,
    RUN,
    SOFT_METHOD,
    Cluster,
    arguments,
    asks,
    drop_options,
    make_arguments,
    method_of,
    options_of,
)
from dfeas.cli.outputs import choose_folder, is_run, replace_output
from dfeas.data.storage.places import Place, place
from dfeas.display import Row
from dfeas.engine.signals import INTERRUPTED, asked_to_stop
from dfeas.methods.registry import METHODS
from dfeas.run.checkpoint.folder import can_go_on, is_finished
from dfeas.run.resources import attend_runs
from dfeas.run.result_files import RACE, RESULT
from dfeas.run.results import Result
from dfeas.run.soft_margin.result import SoftMarginClasses, SoftMarginResult
from dfeas.run.termination import Stop
from dfeas.run.verdict import OneVsRest, Race

Answer = Result | SoftMarginResult | Hull | HardMargin | Separation | Race | OneVsRest | SoftMarginClasses

ANEW = "A new limit, counted from the beginning of the run."


def _begin(
    verb: Callable[..., Answer],
    *asked: Any,
    out: str | None,
    force: bool,
    cluster: Cluster,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Call a verb, whose last positional argument is the data; then print its answer and exit."""
    *before, data = asked
    X, folder = [data, *options.pop("also", ())], place(out or choose_folder(data))
    with (
        cluster.client() as client,
        asked_to_stop() as stop,
        replace_output(folder, is_run, force),
        attend_runs(stop, not quiet),
    ):
        answer = verb(*before, X, out=str(folder), client=client, **make_arguments(options))
    _end(answer, folder, as_json)


def _end(answer: Answer, out: Place, as_json: bool) -> None:
    """Print an answer and where its files are, and exit with its code, or that of the result that got least far."""
    values: dict[str, Any] | None = None
    if isinstance(answer, HardMargin | Separation):
        name = "hard_margin" if isinstance(answer, HardMargin) else "separation"
        values = {name: answer.to_json(), **answer.result.to_json()}
    put(answer, as_json, Row("results", str(out)), values=values)
    if isinstance(answer, Race | OneVsRest | SoftMarginClasses):
        stops = {result.stopped for result in answer.results.values()}
    else:
        stops = {answer.result.stopped if isinstance(answer, HardMargin | Separation | Hull) else answer.stopped}
    if not stops <= {Stop.VERDICT, Stop.OUTRUN} or (isinstance(answer, Race) and answer.first is None):
        if can_go_on(out):
            say(f"to go on: dfeas resume {out} (with --max-passes or --time-limit for new limits)", err=True)
        sys.exit(INTERRUPTED if Stop.INTERRUPTED in stops else LIMIT_REACHED)
    if (isinstance(answer, Separation) and answer.kind is None) or (isinstance(answer, Hull) and answer.inside is None):
        sys.exit(LIMIT_REACHED)


@click.command(
    cls=Command,
    epilog=KERNEL_HELP,
    examples=(
        "dfeas solve mail.data --out RUN",
        "dfeas solve mail.data --method mirror-prox --max-passes 100 --time-limit 600 --out RUN",
    ),
)
@asks(RUN, ALSO, METHOD, options_of(api.solve))
@option("Question", "--separation", is_flag=True, help="Go on to say complete, quasi-complete or overlap.")
@option("Question", "--hard-margin", is_flag=True, help="Go on to the maximum margin, and say what follows from it.")
@option("Question", "--one-vs-rest", is_flag=True, help="Each class against the rest, on the same reads.")
def solve(data: str, separation: bool, hard_margin: bool, one_vs_rest: bool, **values: Any) -> None:
    """Decide whether labelled points are separable.

    Verdict, certificate and trace are written to the folder RUN. DATA is a dfeas dataset, a zarr array (n, m) with --labels, or
    a file that ingest takes, if it is small beside the memory. Without a cluster the work is done in this process.
    """
    verbs: dict[str, Callable[..., Answer]] = {
        "--separation": find_separation,
        "--hard-margin": find_hard_margin,
        "--one-vs-rest": api.one_vs_rest,
    }
    asked = [flag for flag, given in zip(verbs, (separation, hard_margin, one_vs_rest), strict=True) if given]
    if len(asked) > 1:
        raise click.UsageError("choose one of --separation, --hard-margin and --one-vs-rest")
    verb: Callable[..., Answer] = api.solve
    for flag in asked:
        verb = verbs[flag]
        values = drop_options(values, arguments(api.solve) - arguments(verb), f"{flag} takes no {{}}: leave it out")
    _begin(verb, data, **values)


@click.command(
    cls=Command,
    examples=(
        "dfeas svm mail.data --C 1 --out SVM",
        "dfeas svm mail.data --C 0.01,0.1,1 --folds 5 --class-weight balanced --out SVM",
    ),
)
@asks(RUN, ALSO, SOFT_METHOD, options_of(api.soft_margin))
def svm(data: str, **values: Any) -> None:
    """Fit a soft margin: a support vector machine.

    Hyperplane, result and trace are written to the folder RUN. It minimises |w|^2/2 + C times the sum of the losses of the
    points as they are stored, with the intercept, if asked for, in |w| (as LIBLINEAR), until objective and lower bound are as
    near as --gap. dfeas predict RUN applies it.
    """
    _begin(api.soft_margin, data, **values)


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
def in_hull(point: str, data: str, **values: Any) -> None:
    """Decide whether a point is in the convex hull of others.

    The others are the points of DATA; the evidence is written to the folder RUN. POINT is a .npy file, or numbers with commas
    between them. Labels of DATA do not matter.
    """
    try:
        where: Any = point if point.endswith(".npy") else [float(v) for v in point.split(",")]
    except ValueError:
        raise click.UsageError(f"POINT {point}: expected a .npy file, or numbers with commas between them") from None
    _begin(find_in_hull, where, data, **values)


@click.command(
    cls=Command,
    epilog=KERNEL_HELP,
    examples=(
        "dfeas race mail.data --methods working-set,mirror-prox --out RACE",
        "dfeas race mail.data --methods perceptron,ispvn --all --max-passes 200 --out RACE",
    ),
)
@asks(RUN, ALSO, options_of(api.race))
def race(data: str, **values: Any) -> None:
    """Run several methods on the same reads.

    A run of each is written to the folder RUN. The first verdict ends all. Limits of passes hold for each method; reads are
    counted once. dfeas compare RUN and dfeas report RUN show them again.
    """
    _begin(api.race, data, **values)


@click.command(cls=Command, examples=("dfeas resume RUN", "dfeas resume RUN --max-passes 500 --time-limit 3600"))
@click.argument("run", type=DATA)
@option("Where", "--data", type=DATA, metavar="DATA", help="The data, if it has been moved.")
@option("Where", "--labels", metavar="FILE", help="Its label array, when it is a zarr array.")
@asks(options_of(api.resume, "max_passes", "time_limit", max_passes=ANEW, time_limit="A new limit, likewise."), GO_ON)
def resume(
    run: str, data: str | None, labels: str | None, cluster: Cluster, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Go on with a run that was interrupted or hit a limit.

    It may be one of solve, svm or race, and goes on from its last checkpoint. The cluster may be another one, or none. The
    answer has the same bits as that of a run that was never interrupted.
    """
    folder = place(run)
    if is_finished(folder):
        text = (folder / (RESULT if (folder / RESULT).is_file() else RACE)).read_text().strip()
        say(*text.splitlines() if as_json else [f"{run} is finished"])
        return
    with cluster.client() as client, asked_to_stop() as stop, attend_runs(stop, not quiet):
        answer = api.resume(run, data, labels, client=client, **options)
    _end(answer, folder, as_json)
