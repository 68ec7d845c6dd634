"""The command line: results on stdout, progress on stderr, one line for an error, exit codes of the contract."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dfeas.checking import verify_certificate, verify_classes, verify_run
from dfeas.class_prediction import ClassPrediction
from dfeas.errors import CorruptDataError, DfeasError
from dfeas.hard_margin import TOLERANCE
from dfeas.hard_margin import hard_margin as find_hard_margin
from dfeas.hull import EPS
from dfeas.hull import in_hull as find_in_hull
from dfeas.instances import KINDS, Instance
from dfeas.instances import generate as write_instance
from dfeas.kind import verify_separation
from dfeas.looking import look
from dfeas.memory import DEFAULT_MEMORY
from dfeas.methods import METHODS
from dfeas.one_vs_rest import OneVsRest
from dfeas.options import (
    ALL_METHODS,
    DATA,
    KERNEL_HELP,
    LOCAL,
    METHOD_HELP,
    Cluster,
    cluster_options,
    hull_options,
    kernel_options,
    margin_options,
    method_option,
    resume_options,
    run_options,
)
from dfeas.planning import plan as make_plan
from dfeas.predicting import predict as run_predict
from dfeas.printing import (
    show_check,
    show_checks,
    show_class_prediction,
    show_classes,
    show_hard_margin,
    show_header,
    show_hull,
    show_looks,
    show_plan,
    show_prediction,
    show_race,
    show_recheck,
    show_result,
    show_separation,
    show_soft_margin,
    show_submitted,
)
from dfeas.racing import Race
from dfeas.racing import race as run_race
from dfeas.rechecking import recheck as run_recheck
from dfeas.report import compare as compare_runs
from dfeas.report import report as write_report
from dfeas.report.compare import table, warning
from dfeas.result import RACE, RESULT, Result, classes_of
from dfeas.resuming import finished, resumable
from dfeas.resuming import resume as run_resume
from dfeas.separation import separation as find_separation
from dfeas.signals import asked_to_stop
from dfeas.soft_margin import soft_margin as run_soft_margin
from dfeas.soft_margin_result import SoftMarginResult
from dfeas.solving import solve as run_solve
from dfeas.store import Source, open_source
from dfeas.store.append import append as append_points
from dfeas.store.formats import FORMATS
from dfeas.store.ingest import ingest as write_dataset
from dfeas.store.layout import DTYPES
from dfeas.submitting import fetch as run_fetch
from dfeas.submitting import status as run_status
from dfeas.submitting import submit as run_submit
from dfeas.texts import Texts, generate_texts
from dfeas.version import __version__
from dfeas.written import Written

LIMIT_REACHED, INTERRUPTED = 3, 75


@click.group("dfeas", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dfeas")
def commands() -> None:
    """Can a hyperplane through the origin separate labelled points? A checked answer, for data larger than memory.

    \b
    Exit codes: 0 verdict reached and verified (either way), 2 usage, 3 a limit was reached, 4 bad input,
    5 corrupt or missing data, 6 a certificate failed its check, 75 interrupted: dfeas resume goes on.
    """


def main() -> None:
    """Entry point of the ``dfeas`` command."""
    with _one_line_errors():
        sys.exit(commands.main(prog_name="dfeas", standalone_mode=False))


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except DfeasError as error:
        click.echo(f"dfeas: error: {' '.join(str(error).split())}", err=True)
        sys.exit(error.exit_code)
    except click.UsageError as error:
        help_of = error.ctx.command_path if error.ctx is not None else "dfeas"
        click.echo(f"dfeas: error: {' '.join(error.format_message().split())} (see {help_of} --help)", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("dfeas: interrupted", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # whoever read our output has gone: nothing more can be said
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        click.echo(f"dfeas: error: {where}{error.strerror or error}", err=True)
        sys.exit(CorruptDataError.exit_code)


class _Command(click.Command):
    """A command whose errors are one line also under ``dask dfeas``."""

    def invoke(self, ctx: click.Context) -> Any:
        with _one_line_errors():
            return super().invoke(ctx)


@commands.command(cls=_Command)
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("out", type=DATA)
@click.option("--features", required=True, type=int, help="Features of a point (m).")
@click.option("--points", required=True, type=int, help="Number of points (n).")
@click.option("--margin", default=0.01, show_default=True, help="Best margin R of planted and one-flip.")
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same data.")
@click.option(
    "--dtype", default="float32", show_default=True, type=click.Choice(DTYPES), help="Of the entries as they are stored."
)
@click.option("--density", type=float, default=None, help="Sparse points like text: so much of them is not zero.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def generate(kind: str, out: str, density: float | None, as_json: bool, **options: Any) -> None:
    """Write a generated dataset with a known answer.

    \b
    halfspace   random points on both sides of a random plane: feasible, thin margin
    planted     all points at margin >= R from a planted plane, pairs exactly at R: feasible, best margin R
    gaussian    standard normal points, random labels: infeasible when there are many more points than features
    one-flip    planted, with one label wrong: infeasible

    With --density they look like text, and planted ones have a margin of R or more.
    Integers and float16, for halfspace and gaussian, are rounded normal numbers, of integers over their whole range.
    """
    options["m"], options["n"] = options.pop("features"), options.pop("points")
    if density is None:
        header = write_instance(Instance(kind, **options), out, Written(sys.stderr))
    else:
        header = generate_texts(Texts(kind, density=density, **options), out, Written(sys.stderr))
    show_header(out, header.to_json(), as_json)


@commands.command(cls=_Command)
@click.argument("src", type=DATA)
@click.argument("out", type=DATA)
@click.option("--points", default="X", show_default=True, help="Name of the array of points in .npz and HDF5.")
@click.option("--labels", default=None, help="A label file (.npy, zarr), or the name of the array in SRC.  [default: y]")
@click.option(
    "--label-column", default=None, metavar="NAME", help="In tables and .h5ad; an index works in tables, -1 is the last."
)
@click.option("--positive", default=None, metavar="CLASS", help="This class against all others.")
@click.option("--format", default=None, type=click.Choice(FORMATS), help="When the name of SRC does not tell.")
@click.option("--header/--no-header", default=None, help="Whether the first line of CSV holds names.  [default: look]")
@click.option("--features", type=int, default=None, help="Features of svmlight.  [default: look]")
@click.option("--dtype", default=None, type=click.Choice(["float32", "float64"]), help="Round tables and svmlight to it.")
@click.option("--zero-based", is_flag=True, help="Indices of svmlight begin with 0, not 1.")
@click.option("--sparse/--dense", default=None, help="How svmlight and arrays are stored.  [default: as suits their zeros]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def ingest(src: str, out: str, as_json: bool, **options: Any) -> None:
    """Write the dataset OUT from SRC.

    \b
    arrays      .npy, .npz, HDF5, .h5ad, zarr (n, m); labels beside them
    tables      .csv and .tsv (also .gz), .parquet or a folder of it; needs pip install "dfeas[formats]"
    svmlight    .svmlight, .svm, .libsvm (also .gz, .bz2)
    sparse      CSR in .npz of SciPy, .h5ad and HDF5
    """
    notes: list[str] = []
    header = write_dataset(src, out, progress=Written(sys.stderr), note=notes.append, **options)
    show_header(out, {**header.to_json(), "notes": notes}, as_json)


@commands.command(cls=_Command)
@click.argument("data", type=DATA)
@click.argument("src", required=False, type=DATA)
@click.option("--points", default="X", show_default=True, help="Name of the array of points in .npz and HDF5.")
@click.option("--labels", default=None, help="A label file (.npy, zarr), or the name of the array in SRC. [default: y]")
@click.option("--label-column", default=None, metavar="NAME", help="In tables and .h5ad.")
@click.option("--format", default=None, type=click.Choice(FORMATS), help="When the name of SRC does not tell.")
@click.option("--header/--no-header", default=None, help="Whether the first line of CSV holds names.  [default: look]")
@click.option("--features", type=int, default=None, help="Features of svmlight.  [default: look]")
@click.option("--dtype", default=None, type=click.Choice(["float32", "float64"]), help="Round tables and svmlight to it.")
@click.option("--zero-based", is_flag=True, help="Indices of svmlight begin with 0, not 1.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def append(data: str, src: str | None, as_json: bool, **options: Any) -> None:
    """Append the points of SRC to the dataset DATA, on this machine; the formats are those of ingest.

    Labels are of the classes that DATA has. Until all new points are written DATA stays as it was. Without SRC an append that
    was cut off at its end is finished.
    """
    notes: list[str] = []
    header = append_points(data, src, progress=Written(sys.stderr), note=notes.append, **options)
    show_header(data, {**header.to_json(), "notes": notes}, as_json)


@commands.command(cls=_Command)
@click.argument("run", type=LOCAL)
@click.argument("data", type=DATA)
@click.option("--labels", default=None, help="Label array, if the run had one instead of the labels of DATA.")
@click.option("--out", default=None, type=LOCAL, help="Folder for a run of the larger data; must not exist.")
@click.option("--memory", default=DEFAULT_MEMORY, show_default=True, help="Budget of the process.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def recheck(run: Path, data: str, as_json: bool, **options: Any) -> None:
    """Say whether the verdict of RUN holds after points were appended to DATA, reading only the blocks that hold new points.

    Exit code 3 when a new point is on the wrong side of a separator: solve again.
    """
    found = run_recheck(run, data, **options)
    show_recheck(found, options["out"], as_json)
    if not found.holds:
        sys.exit(LIMIT_REACHED)


@commands.command(cls=_Command)
@click.argument("data", type=DATA)
@click.option("--labels", default=None, help="Label array of a zarr array.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def info(data: str, labels: str | None, as_json: bool) -> None:
    """Say what a dataset is, without reading its points."""
    dataset = open_source(Source(data, labels))
    if dataset.header is not None:
        show_header(data, dataset.header.to_json(), as_json)
        return
    values = {
        "n": dataset.n,
        "m": dataset.m,
        "dtype": dataset.dtype.name,
        "block_rows": dataset.block_rows,
        "classes": list(dataset.classes),
        "fingerprint": None,
    }
    show_header(data, values, as_json)


@commands.command(cls=_Command, epilog=KERNEL_HELP)
@run_options
@method_option
@click.option("--away-steps", is_flag=True, help="Of von-neumann: the same as --method von-neumann-away.")
@kernel_options
@click.option("--separation", is_flag=True, help="Go on to say complete, quasi-complete or overlap.")
@click.option("--hard-margin", is_flag=True, help="Go on to the maximum margin, and say what follows from it.")
@click.option("--one-vs-rest", is_flag=True, help="Each class against the rest, on the same reads.")
@click.option("--also", multiple=True, type=DATA, metavar="DATA", help="A dataset whose points follow; any number of them.")
@click.option("--mask", default=None, type=LOCAL, metavar="FILE", help="Booleans (.npy), one a point: only these points count.")
def solve(
    data: str,
    out: Path,
    cluster: Cluster,
    as_json: bool,
    away_steps: bool,
    separation: bool,
    hard_margin: bool,
    **options: Any,
) -> None:
    """Decide whether DATA is separable, and write verdict, certificate and trace to the folder OUT.

    DATA is a dfeas dataset, or a zarr array (n, m) with --labels. Without a cluster the work is done in this process.
    """
    if away_steps:
        if not options["method"].startswith("von-neumann"):
            raise click.UsageError("--away-steps is for --method von-neumann")
        options["method"] = "von-neumann-away"
    if separation and (options["kernel"] is not None or options["one_vs_rest"] or options["also"] or options["mask"]):
        raise click.UsageError("--separation asks about DATA as it is: leave out --kernel, --one-vs-rest, --also and --mask")
    plain = not (options["kernel"] is not None or options["one_vs_rest"] or options["also"] or options["mask"])
    if hard_margin and (separation or not plain):
        raise click.UsageError("--hard-margin asks about DATA as it is: leave out --separation, --kernel and the like")
    with asked_to_stop() as stop, cluster.client() as client:
        more = {"out": out, "client": client, "progress": True, "stop": stop, **options}
        if hard_margin:
            tolerance = more.pop("margin_tolerance") or TOLERANCE
            widest = find_hard_margin(data, tolerance=tolerance, **more)
            show_hard_margin(widest, out, as_json)
            _leave(widest.result, out)
            return
        if separation:
            found = find_separation(data, **more)
            show_separation(found, out, as_json)
            _leave(found.result, out, found.kind is not None)
            return
        result = run_solve(data, **more)
    if isinstance(result, OneVsRest):
        _end_classes(result, out, as_json)
    else:
        _end_solve(result, out, as_json)


@commands.command(cls=_Command)
@margin_options
def svm(data: str, out: Path, cluster: Cluster, as_json: bool, C: str, class_weight: str | None, **options: Any) -> None:
    """Fit a soft margin to DATA, a support vector machine, and write hyperplane, result and trace to the folder OUT.

    It minimises |w|^2/2 + C times the sum of the losses of the points as they are stored, with the intercept, if asked for, in
    |w| (as LIBLINEAR), until objective and lower bound are as near as --gap. dfeas predict OUT applies it.
    """
    values = _numbers(C, "--C")
    classes = class_weight if class_weight in (None, "balanced") else _numbers(str(class_weight), "--class-weight")
    with asked_to_stop() as stop, cluster.client() as client:
        more = {"out": out, "client": client, "progress": True, "stop": stop, **options}
        found = run_soft_margin(data, C=values, class_weight=classes, **more)
    _end_soft_margin(found, out, as_json)


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(value) for value in text.split(",")]
    except ValueError:
        raise click.UsageError(f"{option} {text}: expected numbers with commas between them") from None


def _end_soft_margin(found: SoftMarginResult, out: Path, as_json: bool) -> None:
    """Print a soft margin, and exit with its code."""
    show_soft_margin(found, out, as_json)
    _leave(found, out)


@commands.command("in-hull", cls=_Command, epilog=METHOD_HELP, context_settings={"ignore_unknown_options": True})
@click.argument("point")
@hull_options
@click.option("--eps", default=EPS, show_default=True, help="Stop undecided when no hyperplane leaves a margin above it.")
@click.option("--method", default="auto", show_default=True, type=click.Choice(["auto", *METHODS]), metavar="NAME")
def in_hull(point: str, data: str, out: Path, cluster: Cluster, as_json: bool, **options: Any) -> None:
    """Decide whether POINT is in the convex hull of the points of DATA, and write the evidence to the folder OUT.

    POINT is a .npy file, or numbers with commas between them. Labels of DATA do not matter.
    """
    try:
        where: Any = point if point.endswith(".npy") else [float(v) for v in point.split(",")]
    except ValueError:
        raise click.UsageError(f"POINT {point}: expected a .npy file, or numbers with commas between them") from None
    with asked_to_stop() as stop, cluster.client() as client:
        found = find_in_hull(where, data, out=out, client=client, progress=True, stop=stop, **options)
    show_hull(found, out, as_json)
    _leave(found.result, out, found.inside is not None)


def _end_solve(result: Result, out: Path, as_json: bool) -> None:
    """Print a result, and exit with its code."""
    show_result(result, out, as_json)
    _leave(result, out)


def _end_classes(found: OneVsRest, out: Path, as_json: bool) -> None:
    """Print how each class ended, and exit with the code of those that have no verdict."""
    show_classes(found, out, as_json)
    ended = {result.stopped for result in found.results.values()}
    if ended != {"verdict"}:
        _hint(out)
        sys.exit(INTERRUPTED if "interrupted" in ended else LIMIT_REACHED)


def _leave(result: Result | SoftMarginResult, out: Path, decided: bool = True) -> None:
    """Exit with the code of a result, and of a question that goes beyond it."""
    if result.stopped != "verdict":
        _hint(out)
        sys.exit(INTERRUPTED if result.stopped == "interrupted" else LIMIT_REACHED)
    if not decided:
        sys.exit(LIMIT_REACHED)


def _hint(out: Path) -> None:
    """Say how a run that has no verdict goes on."""
    if resumable(out):
        click.echo(f"to go on: dfeas resume {out} (with --max-passes or --time-limit for new limits)", err=True)


@commands.command(cls=_Command, epilog=KERNEL_HELP)
@run_options
@kernel_options
@click.option("--methods", required=True, metavar="A,B,..", help="Names of methods, see below.")
@click.option("--all", "to_the_end", is_flag=True, help="Go on until each method has its own verdict, or a limit.")
def race(data: str, out: Path, cluster: Cluster, as_json: bool, methods: str, **options: Any) -> None:
    """Run several methods on the same reads of DATA, and write a run of each to the folder OUT. The first verdict ends all.

    Limits of passes hold for each method; reads are counted once. dfeas compare OUT and dfeas report OUT show them again.
    """
    names = [name.strip() for name in methods.split(",") if name.strip()]
    with asked_to_stop() as stop, cluster.client() as client:
        found = run_race(data, methods=names, out=out, client=client, progress=True, stop=stop, **options)
    _end_race(found, out, as_json)


def _end_race(found: Race, out: Path, as_json: bool) -> None:
    """Print a race, and exit with its code."""
    show_race(found, out, as_json)
    ended = {result.stopped for result in found.results.values()}
    if "interrupted" in ended:
        _hint(out)
        sys.exit(INTERRUPTED)
    if found.first is None or not ended <= {"verdict", "outrun"}:
        _hint(out)
        sys.exit(LIMIT_REACHED)


@commands.command(cls=_Command)
@click.argument("run", type=LOCAL)
@click.option("--data", default=None, type=DATA, help="The data, if it has been moved.")
@click.option("--labels", default=None, help="Its label array, when it is a zarr array.")
@click.option("--max-passes", type=int, default=None, help="A new limit, counted from the beginning of the run.")
@click.option("--time-limit", type=float, default=None, metavar="SECONDS", help="A new limit, counted likewise.")
@resume_options
def resume(run: Path, data: str | None, labels: str | None, cluster: Cluster, as_json: bool, **options: Any) -> None:
    """Go on with a run of solve, svm or race that was interrupted or reached a limit, from its last checkpoint.

    The cluster may be another one, or none. The answer has the same bits as that of a run that was never interrupted.
    """
    if finished(run):
        click.echo(
            (run / (RESULT if (run / RESULT).is_file() else RACE)).read_text().strip() if as_json else f"{run} is finished"
        )
        return
    with asked_to_stop() as stop, cluster.client() as client:
        found = run_resume(run, data, labels, client=client, progress=True, stop=stop, **options)
    if isinstance(found, Race):
        _end_race(found, run, as_json)
    elif isinstance(found, SoftMarginResult):
        _end_soft_margin(found, run, as_json)
    elif isinstance(found, OneVsRest):
        _end_classes(found, run, as_json)
    else:
        _end_solve(found, run, as_json)


@commands.command(cls=_Command, epilog=KERNEL_HELP)
@run_options
@method_option
@kernel_options
def submit(data: str, out: Path, cluster: Cluster, as_json: bool, **options: Any) -> None:
    """Have the cluster itself drive a solve of DATA, print the id of the run, and return at once.

    DATA and OUT are paths that all workers see. dfeas status ID and dfeas fetch ID ask for it later, from anywhere. Should the
    worker that drives die, another one goes on from the last checkpoint.
    """
    with cluster.joined() as client:
        run = run_submit(client, data, out=out, **options)
    click.echo(json.dumps({"run": run, "out": str(out.absolute())}) if as_json else run)
    click.echo(f"the cluster works on it; ask with dfeas status {run}, get the result with dfeas fetch {run}", err=True)


@commands.command(cls=_Command)
@click.argument("run", required=False)
@cluster_options
def status(run: str | None, cluster: Cluster, as_json: bool) -> None:
    """Say how far a run is: RUN is its folder, or the id of a submitted run; without it, all runs of the cluster."""
    if run is not None and Path(run).is_dir():
        show_looks([look(run)], as_json)
        return
    with cluster.joined() as client:
        show_submitted(run_status(client, run), as_json)


@commands.command(cls=_Command)
@click.argument("run")
@click.option("--out", default=None, type=LOCAL, help="Folder for the result.  [default: the id]")
@cluster_options
def fetch(run: str, out: Path | None, cluster: Cluster, as_json: bool) -> None:
    """Copy result, certificate and trace of the submitted run with the id RUN into a new folder here."""
    with cluster.joined() as client:
        folder = run_fetch(client, run, Path(run) if out is None else out)
    click.echo(json.dumps({"run": run, "out": str(folder)}) if as_json else folder)


@commands.command(cls=_Command)
@click.argument("data", type=DATA)
@click.option("--labels", default=None, help="Label array (.npy, zarr) of a zarr array, or instead of the labels of DATA.")
@click.option("--method", default=None, type=click.Choice(ALL_METHODS), metavar="NAME", help="Only this one.  [default: all]")
@kernel_options
@click.option("--positive", default=None, metavar="CLASS", help="As it will be solved.")
@click.option("--margin", default=1e-3, show_default=True, help="Margin, or eps, for which theorems bound the passes.")
@click.option("--intercept", is_flag=True, help="As it will be solved.")
@click.option("--memory", default=DEFAULT_MEMORY, show_default=True, help="Budget of a process for blocks and answers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def plan(data: str, labels: str | None, as_json: bool, **options: Any) -> None:
    """Say what a run in this process would cost: memory, passes and time of each method. Reads a few blocks.

    With --kernel a pass is a product with the Gram matrix; a --method that does not fit the memory is refused with the number.
    """
    found = make_plan(data, labels, **options)
    show_plan(data, found, as_json)


@commands.command(cls=_Command)
@click.argument("target", type=DATA)
@click.argument("certificate", required=False, type=LOCAL)
@click.option("--labels", default=None, help="Label array (.npy, zarr) of a zarr array, or instead of the labels of DATA.")
@click.option("--positive", default=None, metavar="CLASS", help="As it was solved.")
@click.option("--intercept", is_flag=True, help="As it was solved.")
@click.option("--memory", default=DEFAULT_MEMORY, show_default=True, help="Budget of the process.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(
    target: str,
    certificate: Path | None,
    labels: str | None,
    positive: str | None,
    intercept: bool,
    memory: str,
    as_json: bool,
) -> None:
    """Check a certificate against the stored data: dfeas verify RUN, or dfeas verify DATA CERTIFICATE."""
    kind = None
    if certificate is None and classes_of(Path(target)) is not None:
        checks = verify_classes(target, memory)
        show_checks(checks, as_json)
        if None in checks.values():
            sys.exit(LIMIT_REACHED)
        return
    if certificate is None:
        proved = verify_run(target, memory)
        kind = verify_separation(target, proved, memory)
    else:
        proved = verify_certificate(target, certificate, labels=labels, positive=positive, intercept=intercept, memory=memory)
    show_check(proved, kind, as_json)


@commands.command(cls=_Command)
@click.argument("run", type=LOCAL)
@click.argument("data", type=DATA)
@click.argument("out", type=LOCAL)
@click.option("--labels", default=None, help="Label array (.npy, zarr) of a zarr array, or instead of the labels of DATA.")
@click.option("--positive", default=None, metavar="CLASS", help="This class against all others, when they have two.")
@click.option("--memory", default=DEFAULT_MEMORY, show_default=True, help="Budget of the process.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def predict(run: Path, data: str, out: Path, labels: str | None, positive: str | None, memory: str, as_json: bool) -> None:
    """Score the points of DATA by the direction of RUN, and write the scores to the .npy file OUT: above 0 is positive.

    Of a one-vs-rest run OUT gets the number of the class with the largest score, from 0 in the order that is printed.
    Says how many points have the class of their label, where DATA has labels.
    """
    if out.exists():
        raise click.UsageError(f"{out} exists; choose another output or remove it")
    found = run_predict(run, data, labels, out=out, positive=positive, memory=memory)
    if isinstance(found, ClassPrediction):
        show_class_prediction(found, out, as_json)
    else:
        show_prediction(found, out, as_json)


@commands.command(cls=_Command)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=LOCAL)
@click.option("--out", default=None, type=LOCAL, help="The page.  [default: RUN/report.html]")
@click.option("--memory", default=DEFAULT_MEMORY, show_default=True, help="Budget for reading the data.")
@click.option("--no-data", is_flag=True, help="Do not read the data: no distances of points.")
def report(runs: tuple[Path, ...], out: Path | None, memory: str, no_data: bool) -> None:
    """Write a page about finished runs that opens offline, and print its path.

    A folder that holds runs in its direct subfolders stands for all of them. Needs matplotlib: pip install 'dfeas[report]'.
    """
    click.echo(write_report(runs, out, memory=memory, data=not no_data))


@commands.command(cls=_Command)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=LOCAL)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
def compare(runs: tuple[Path, ...], as_json: bool) -> None:
    """Print a table of finished runs; a folder that holds runs in its direct subfolders stands for all of them."""
    rows = compare_runs(runs)
    if warning(rows):
        click.echo(f"dfeas: warning: {warning(rows)}", err=True)
    click.echo(json.dumps(rows) if as_json else "\n".join(table(rows)))
