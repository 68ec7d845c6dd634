"""Commands that run: solve, svm, race, resume. Their exit code says whether there is a verdict."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from dfeas import api
from dfeas.answers.files import RACE, RESULT, SUSPECTS
from dfeas.answers.words import Stop
from dfeas.cli.cluster import Cluster
from dfeas.cli.command import DATA, LIMIT_REACHED, Command, option, put, say
from dfeas.cli.options import (
    ALSO,
    GO_ON,
    METHOD,
    RUN,
    SOFT_METHOD,
    Told,
    arguments,
    asks,
    data_of,
    describe_all_methods,
    drop_options,
    make_arguments,
    options_of,
)
from dfeas.cli.outputs import choose_folder
from dfeas.data.storage.places import Place, place
from dfeas.display import Row
from dfeas.engine.signals import INTERRUPTED, asked_to_stop
from dfeas.run.checkpoint.folder import can_go_on, is_finished
from dfeas.run.resources import attend_runs

ANEW: Told = {
    "max_passes": ("Limits", "A new limit, counted from the beginning of the run.", {"metavar": "N"}),
    "time_limit": ("Limits", "A new limit, counted likewise.", {"metavar": "SECONDS"}),
}
"""Without one, those of the run hold."""


def begin(
    verb: Callable[..., Any],
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
    X, folder = data_of(data, options), place(out or choose_folder(data))
    with cluster.client() as client, asked_to_stop() as stop, attend_runs(stop, not quiet):
        answer = verb(*before, X, out=str(folder), force=force, client=client, **make_arguments(options))
    _end(answer, folder, as_json)


def _end(answer: Any, out: Place, as_json: bool) -> None:
    """Print an answer and where its files are, and exit with its code, or that of the result that got least far."""
    values: dict[str, Any] | None = None
    if key := answer.BESIDE:
        values = {key: answer.to_json(), **answer.result.to_json()}
    put(answer, as_json, Row("results", str(out)), values=values)
    _exit_as(answer, out)


def _exit_as(answer: Any, out: Place) -> None:
    """Exit with the code of an answer, 75 only where there is something to go on from."""
    results = getattr(answer, "results", {"": getattr(answer, "result", answer)})
    stops = {result.stopped for result in results.values()} | {getattr(answer, "stopped", Stop.VERDICT)}
    if not (answer.is_decided and stops <= {Stop.VERDICT, Stop.OUTRUN}):
        if resumable := can_go_on(out):
            had = {name: max(getattr(each, name, 0) for each in (answer, *results.values())) for name in ("passes", "seconds")}
            limits = f" --max-passes {2 * math.ceil(had['passes'])}" if Stop.PASS_LIMIT in stops else ""
            limits += f" --time-limit {2 * math.ceil(had['seconds'])}" if Stop.TIME_LIMIT in stops else ""
            counted = ", or other limits, which count from its beginning" if limits else ""
            say(f"to go on: dfeas resume {out}{limits}{counted}", err=True)
        sys.exit(INTERRUPTED if resumable and Stop.INTERRUPTED in stops else LIMIT_REACHED)


VERBS = {
    "--separation": ("dfeas.analysis.separation", "separation"),
    "--hard-margin": ("dfeas.analysis.hard_margin", "hard_margin"),
    "--one-vs-rest": ("dfeas.api", "one_vs_rest"),
}
"""What a solve goes on to, by its flag, imported where it is asked for."""


@click.command(
    cls=Command,
    notes=describe_all_methods,
    examples=(
        "dfeas solve mail.data --out RUN",
        "dfeas solve mail.data --method mirror-prox --max-passes 100 --time-limit 600 --out RUN",
    ),
)
@asks(RUN, ALSO, METHOD, options_of(api.solve))
@option(
    "Question",
    "--separation",
    is_flag=True,
    help="Then distinguish complete, quasi-complete and no separation.",
)
@option("Question", "--hard-margin", is_flag=True, help="Then compute the maximum margin and its support vectors.")
@option("Question", "--one-vs-rest", is_flag=True, help="Each class against the rest, on shared reads.")
def solve(data: str, separation: bool, hard_margin: bool, one_vs_rest: bool, **values: Any) -> None:
    """Decide whether labelled points are linearly separable.

    Verdict, certificate and trace are written to the folder RUN. DATA is a dfeas dataset, a zarr array (n, m) with --labels, or
    a file that ingest takes, if it needs at most a quarter of --memory. Without a cluster the run uses threads of this process.
    """
    asked = [flag for flag, given in zip(VERBS, (separation, hard_margin, one_vs_rest), strict=True) if given]
    if len(asked) > 1:
        raise click.UsageError("choose one of --separation, --hard-margin and --one-vs-rest")
    verb: Callable[..., Any] = api.solve
    for flag in asked:
        module, name = VERBS[flag]
        verb = getattr(import_module(module), name)
        values = drop_options(values, arguments(api.solve) - arguments(verb), f"{flag} takes no {{}}: leave it out")
    begin(verb, data, **values)


@click.command(
    cls=Command,
    examples=(
        "dfeas svm mail.data --C 1 --out SVM",
        "dfeas svm mail.data --C 0.01,0.1,1 --folds 5 --class-weight balanced --out SVM",
    ),
)
@asks(RUN, ALSO, SOFT_METHOD, options_of(api.soft_margin, without=("normalize",)))
def svm(data: str, **values: Any) -> None:
    """Fit a soft margin: a linear support vector machine.

    Hyperplane, result and trace are written to the folder RUN. The fit minimises |w|^2/2 + C times the sum of the losses of the
    points as they are stored, or centred and scaled, with an unpenalised intercept (as LIBSVM; with --intercept-scaling 1 as
    LIBLINEAR), until the relative gap between the objective and its lower bound is at most --tol. dfeas predict RUN applies
    the hyperplane.
    """
    begin(api.soft_margin, data, **values)


@click.command(
    cls=Command,
    notes=describe_all_methods,
    examples=(
        "dfeas race mail.data --methods working-set,mirror-prox --out RACE",
        "dfeas race mail.data --methods perceptron,ispvn --first --max-passes 200 --out RACE",
    ),
)
@asks(RUN, ALSO, options_of(api.race))
def race(data: str, **values: Any) -> None:
    """Compare several methods on shared passes over the data.

    The run of each method is written to the folder RUN, and ends with its own verdict or limit. --max-passes holds for each
    method; shared reads are counted once. dfeas compare RUN and dfeas report RUN show the runs again.
    """
    begin(api.race, data, **values)


@click.command(cls=Command, examples=("dfeas resume RUN", "dfeas resume RUN --max-passes 500 --time-limit 3600"))
@click.argument("run", type=DATA)
@option("Where", "--data", type=DATA, metavar="DATA", help="The data, if it has been moved.")
@option("Where", "--labels", "y", metavar="FILE", help="Its label array, if it is a zarr array.")
@asks(options_of(api.resume, told=ANEW), GO_ON)
def resume(run: str, data: str | None, y: str | None, cluster: Cluster, as_json: bool, quiet: bool, **options: Any) -> None:
    """Continue a run that was interrupted or reached a limit.

    RUN may be one of solve, svm or race, and continues from its last checkpoint, on the same or another cluster, or on none.
    The answer is bitwise identical to that of a run that was never interrupted. A finished run is not changed, and the exit
    code is that of its answer.
    """
    from dfeas.analysis.hull import INSIDE
    from dfeas.answers.load import load
    from dfeas.answers.result import Result
    from dfeas.answers.separation import Hull, Separation

    folder = place(run)
    if is_finished(folder):
        file = next(folder / name for name in (RESULT, RACE, SUSPECTS) if (folder / name).is_file())
        text = file.read_text().strip()
        found: Any = load(run)
        if isinstance(found, Result) and (found.data or {}).get("point") is not None:
            found = Hull(inside=INSIDE.get(found.verdict), proof=found.proof, result=found)
        left_open = f"; separation {found.message}" if isinstance(found, Separation) and not found.is_decided else ""
        say(*text.splitlines() if as_json else [f"{run} is finished{left_open}"])
        return _exit_as(found, folder)
    with cluster.client() as client, asked_to_stop() as stop, attend_runs(stop, not quiet):
        answer = api.resume(run, data, y, client=client, **options)
    _end(answer, folder, as_json)
