"""Commands before and after a run, and instead of one: plan, verify, predict, check-separation, suspects, report, compare."""

from __future__ import annotations

import json
import sys
import webbrowser
from pathlib import Path
from typing import Any

import click

from dfeas.analysis.check_separation import check_separation as find_separation
from dfeas.analysis.plan import plan as make_plan
from dfeas.analysis.predict import predict as run_predict
from dfeas.analysis.regression.files import of_formula, of_table, of_tables
from dfeas.analysis.regression.outcome import MISSING, OUTCOMES, Asked
from dfeas.analysis.regression.thresholds import split_survival
from dfeas.analysis.suspects import suspects as find_suspects
from dfeas.answers.check.verify import verify_certificate, verify_run
from dfeas.answers.files import SUSPECTS, TRACE, classes_of, load_result
from dfeas.answers.suspects import SUSPECTS_CSV
from dfeas.answers.trace import what_is_missing
from dfeas.answers.words import Stop
from dfeas.cli.cluster import CLUSTER, Cluster
from dfeas.cli.command import DATA, JSON, LIMIT_REACHED, LOCAL, Command, Name, option, put, say
from dfeas.cli.options import ALL_METHODS, ALSO, CHOSEN, FORCE, OF_DATA, MethodName, asks, data_of, make_arguments, options_of
from dfeas.data.storage.outputs import replace_output
from dfeas.data.storage.places import Place, place
from dfeas.display import Row
from dfeas.engine.signals import INTERRUPTED, asked_to_stop
from dfeas.reports.compare import compare as compare_runs
from dfeas.reports.compare import explain_difference, find_loss, find_runs
from dfeas.reports.page import report as write_report
from dfeas.run.progress.terminal import IngestProgress
from dfeas.run.resources import Limits, Resources, attend_runs

BUDGET = "Memory budget of the process."
AS_SOLVED = "As in the solve."
FOLLOW = option("Where", "--follow", is_flag=True, help="Read data at a URL that is named only in the run.")
MEMORY = options_of(run_predict, "memory", memory=BUDGET)


@click.command(cls=Command, examples=("dfeas plan mail.data", "dfeas plan mail.data --kernel rbf --memory 8GB"))
@click.argument("data", type=DATA)
@option("Question", "--method", type=MethodName(ALL_METHODS), metavar="NAME", help="Only this one.  [default: all]")
@asks(OF_DATA, CHOSEN, ALSO, options_of(make_plan, C="Plan a soft margin with these regularisation parameters C."), JSON)
def plan(data: str, as_json: bool, **options: Any) -> None:
    """Estimate the memory, passes and time of a run.

    The plan lists each method, run in this process; a few blocks are read. With --kernel a pass is a product with the Gram
    matrix. A --method that does not fit in memory is refused, with the memory that it needs. With --C the plan is for svm.
    """
    put(make_plan(data_of(data, options), **make_arguments(options)), as_json)


@click.command(cls=Command, examples=("dfeas verify RUN", "dfeas verify mail.data RUN/certificate.npz"))
@click.argument("target", type=DATA)
@click.argument("certificate", required=False, type=DATA)
@asks(OF_DATA[:2], CHOSEN, ALSO)
@asks(options_of(verify_certificate, without=("kernel",), positive=AS_SOLVED, intercept=AS_SOLVED, memory=BUDGET), JSON)
@option("Where", "--data", type=DATA, metavar="DATA", help="The data of a run, if it has been moved.")
@FOLLOW
def verify(
    target: str,
    certificate: str | None,
    memory: str | None,
    quick: bool,
    data: str | None,
    follow: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Verify a certificate against the stored data.

    TARGET is a run, or the data of a CERTIFICATE. A run records its data. A certificate records how its points were scaled and
    centred, and these numbers are compared with the data. With --scale, --center or --no-normalize the certificate must match
    these options.

    All points are read. With --quick only the blocks of a conflict are read, and the stored checksums are trusted for all
    others; for a separator all points are read anyway.

    A run may come from an untrusted source: give --data or --follow if its data is at a URL, since requests are signed with
    your credentials.
    """
    if certificate is not None and (data is not None or follow):
        raise click.UsageError("--data and --follow are about a run: TARGET is the data of a CERTIFICATE")
    listed = certificate is None and (place(target) / SUSPECTS).is_file()
    classes = None if certificate is not None or listed else classes_of(place(target))
    if certificate is None and not listed:
        for run in [place(target)] if classes is None else classes.values():  # traces prove nothing, and are not read otherwise
            if missing := what_is_missing(run / TRACE, load_result(run, soft=True).get("passes", 0)):
                say(f"dfeas: {missing}", err=True)
    if certificate is None:
        X, y = (None, None) if data is None else (data_of(data, options), options.get("y"))
        proved = verify_run(target, X, y, memory=memory, quick=quick, follow=follow)
    else:
        X = data_of(target, options)
        more = make_arguments(options)
        proved = verify_certificate(X, certificate, memory=memory, quick=quick, **more)
    each = {name: check and check.to_json() for name, check in proved.classes.items()}
    put(proved, as_json, values=each or None)
    if None in each.values():
        sys.exit(LIMIT_REACHED)


@click.command(
    cls=Command,
    examples=("dfeas predict RUN new.csv scores.npy", "dfeas predict RUN new.zarr scores.npy --labels labels.zarr --json"),
)
@click.argument("run", type=DATA)
@click.argument("data", type=DATA)
@click.argument("out", type=LOCAL)
@asks(OF_DATA[:2], CHOSEN)
@option("Question", "--positive", metavar="CLASS", help="This class against all others, if the run has two.")
@asks(MEMORY, FORCE, FOLLOW, JSON)
def predict(run: str, data: str, out: Path, as_json: bool, **options: Any) -> None:
    """Score points by the hyperplane of a run.

    The scores of the points of DATA are written to the .npy file OUT; a score above 0 means the positive class. In a table the
    column that is not a feature of the run holds the labels. For a one-vs-rest run OUT holds the number of the class with the
    largest score, from 0 in the order that is printed. A .csv or .parquet file or a .zarr folder holds score and class, and
    the ids of points that have some. OUT is written completely or not at all; only a few blocks are in memory at a time.

    If DATA has labels, the number of points whose predicted class equals their label is printed. For cones OUT holds the least
    eigenvalue of each, divided by its norm, in their order, and the critical cones are named.
    """
    X = data_of(data, options)
    answer = run_predict(run, X[0] if isinstance(X, list) else X, options.pop("y", None), out=out, progress=True, **options)
    put(answer, as_json, Row("written", str(out)))


def _left_out(path: str, options: dict[str, Any], outcomes: set[str]) -> tuple[str, ...]:
    """Columns of a table that are no regressors, of those that nothing else is asked of."""
    columns, without, named = options.pop("columns"), options.pop("without"), options["id"]
    if not (columns or any(set(name) & {*"*?[,"} for name in without)):
        return tuple(without)
    others = {*outcomes, *(options[name] for name in ("weights", "times", "strata")), named}
    from dfeas.data.table import table  # with readers of all formats

    chosen = table(path, columns=columns or None, without=without, id=named)
    return tuple(name for name in chosen.left_out if name not in others)


@click.command(
    "check-separation",
    cls=Command,
    examples=(
        "dfeas check-separation wards.csv --label-column died --without patient",
        'dfeas check-separation trade.parquet --formula "flow ~ tariff + C(partner)" --outcome poisson',
    ),
)
@click.argument("table", type=DATA)
@option("Data", "--label-column", multiple=True, metavar="NAME", help="The outcome, or NAME,NAME; all others are regressors.")
@option("Question", "--formula", metavar="FORMULA", help='Formula, such as "died ~ age + C(ward)", by formulaic.')
@option("Question", "--formula-code", "trust_formula", is_flag=True, help="Allow any Python in the formula: you trust it.")
@asks(CHOSEN)
@option("Data", "--weights-column", metavar="NAME", help="Weights; rows of weight 0 are ignored.")
@option("Data", "--strata", metavar="NAME", help="With outcome conditional, poisson or cox: strata of rows.")
@option("Data", "--time-column", metavar="NAME", help="With outcome cox, whose label column is 1 for an event.")
@option("Data", "--text", multiple=True, metavar="NAME", help="A column that is text, as 5 mg or <5; may be repeated.")
@option("Data", "--sep", metavar="CHAR", help="Separator of cells.  [default: , in CSV, tab in TSV]")
@option("Data", "--decimal", default=".", metavar="CHAR", help="Decimal sign of numbers in CSV.  [default: .]")
@option("Data", "--missing", type=Name(MISSING), default="raise", metavar="NAME", help="drop leaves out incomplete rows.")
@option("Question", "--outcome", type=Name(OUTCOMES), metavar="NAME", help="Kind of outcome.  [default: inferred]")
@option("Question", "--positive", metavar="CLASS", help="This class against all others.")
@option("Question", "--intercept/--no-intercept", default=True, show_default=True, help="Include an intercept.")
@asks(options_of(find_separation, "max_passes", "time_limit", "memory"), JSON)
def check_separation(
    table: str, label_column: tuple[str, ...], formula: str | None, intercept: bool, as_json: bool, **options: Any
) -> None:
    """Check whether the estimates of a regression are finite.

    The regression may be logistic, multinomial, Poisson or another --outcome. If estimates are not finite, the answer names the
    columns, levels and rows, and what to do. TABLE is CSV or TSV with names in its first line (also .gz), Parquet or a folder
    of it, of any size, or a file of Stata, SPSS or SAS. Text, categories and booleans are coded: the first level in order is
    the reference. Nothing is written except to a scratch folder, which is removed.

    A formula has names, numbers, text, operators, and functions such as C, I, log and poly. With --formula-code it may have any
    Python, which runs as your code.
    """
    if bool(label_column) == (formula is not None):
        raise click.UsageError("give --label-column NAME, or --formula TEXT")
    if formula is not None and not intercept:
        raise click.UsageError("--no-intercept is not for a formula: write 0 + into the formula")
    if formula is not None and options["columns"]:
        raise click.UsageError("--columns is not for a formula, which names its columns")
    with asked_to_stop() as stop, attend_runs(stop):
        limits = Limits.begun(options.pop("max_passes"), options.pop("time_limit"))
        options |= {"weights": options.pop("weights_column"), "times": options.pop("time_column")}
        options["without"] = _left_out(table, options, {*",".join(label_column).split(","), *label_column})
        if formula is not None and options["outcome"] == "cox" and options["times"] is None:
            options["times"], formula = split_survival(formula)
        options |= {"resources": Resources(memory=options.pop("memory"))}
        several = len(label_column) > 1 or "," in "".join(label_column)
        outcome = list(label_column) if several else "".join(label_column) or None
        asked = Asked(outcome, intercept, limits=limits, progress=IngestProgress(sys.stderr), **options)
        alone = of_formula(table, formula, asked) if formula is not None else None if several else of_table(table, asked)
        answers = [alone] if alone is not None else [*(every := of_tables(table, asked)).values()]
    put(every if len(answers) > 1 else answers[0], as_json)
    if stopped := [each.found.result.stopped for each in answers if each.kind is None]:
        sys.exit(INTERRUPTED if Stop.INTERRUPTED in stopped else LIMIT_REACHED)


@click.command(cls=Command, examples=("dfeas suspects mail.data --out suspects.csv", "dfeas suspects mail.data --max-passes 9"))
@click.argument("data", type=DATA)
@option("Output", "--out", type=LOCAL, metavar="OUT", help="CSV file of all suspects, or the folder of a run.")
@option("Output", "--join", type=DATA, metavar="SRC", help="Add the columns of the table that the points are from to the CSV.")
@asks(OF_DATA, CHOSEN, ALSO, options_of(find_suspects, without=("out", "force")), CLUSTER, FORCE, JSON)
def suspects(
    data: str, out: Path | None, join: str | None, cluster: Cluster, force: bool, as_json: bool, **options: Any
) -> None:
    """List points that must be removed or relabelled.

    Once the needed points are removed, a hyperplane separates all others. A lower bound on how many must be removed is proved
    by as many conflicts that share no point. A point marked flip is on the right side once its label is changed.

    --out NAME.csv writes the list as a table; for a folder of files with the file of each point and its row in it, and with
    --join SRC with the other columns of the table SRC that the points are from. Any other --out is the folder of a run that
    includes the evidence; dfeas verify checks it against the data.
    """
    table = out is not None and out.suffix.lower() == ".csv"
    if join is not None and not table:
        raise click.UsageError("--join adds columns to the table of --out NAME.csv")
    if join is not None:
        from dfeas.data.table import table as open_table  # with readers of all formats

        open_table(join)  # which refuses what is none before the run
    file = out if table else None
    with replace_output(file, SUSPECTS_CSV, force):
        with cluster.client() as client, asked_to_stop() as stop, attend_runs(stop):
            answer = find_suspects(data_of(data, options), client=client, out=None if table else out, force=force, **options)
        if file is not None:
            answer.to_csv(file, join)
    put(answer, as_json, *([] if out is None else [Row("written", str(out))]))
    if not answer.is_decided:
        sys.exit(INTERRUPTED if answer.stopped == Stop.INTERRUPTED else LIMIT_REACHED)


@click.command(cls=Command)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=DATA)
@option("Output", "--out", type=LOCAL, metavar="FILE", help="The page.  [default: RUN/report.html]")
@option("Data", "--no-data", is_flag=True, help="Do not read the data, and leave out the distances of points.")
@FOLLOW
@option("Output", "--open", "opens", is_flag=True, help="Show the page in a browser.")
@asks(options_of(write_report, "memory", memory="Budget for reading the data."), JSON)
def report(
    runs: tuple[str, ...], out: Path | None, memory: str | None, no_data: bool, follow: bool, opens: bool, as_json: bool
) -> None:
    """Write a page about finished runs that opens offline.

    The path of the page is printed. A folder that holds runs in its direct subfolders stands for all of them. The command needs
    matplotlib: "pip install matplotlib".
    """
    folders = _find_whole(runs)
    page = write_report(runs, out, memory=memory, data=not no_data, follow=follow)
    say(json.dumps({"page": str(page), "runs": [str(folder) for folder in folders]}) if as_json else page)
    if opens and not (isinstance(page, Path) and webbrowser.open(page.resolve().as_uri())):
        say(f"dfeas: warning: no browser was found to show {page}", err=True)


def _find_whole(runs: tuple[str, ...]) -> list[Place]:
    """Folders of runs; it is said which have lost a certificate."""
    folders = [*find_runs(runs).values()]
    for folder in folders:
        if lost := find_loss(folder, load_result(folder, soft=True)):
            say(f"dfeas: warning: {lost}", err=True)
    return folders


@click.command(cls=Command, examples=("dfeas compare RUN RACE", "dfeas compare RUN RACE --json"))
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=DATA)
@option("Output", "--json", "as_json", is_flag=True, help="Print one JSON list.")
def compare(runs: tuple[str, ...], as_json: bool) -> None:
    """Print a table of finished runs.

    A folder that holds runs in its direct subfolders stands for all of them.
    """
    _find_whole(runs)
    rows = compare_runs(runs)
    if difference := explain_difference(rows):
        say(f"dfeas: warning: {difference}", err=True)
    put(rows, as_json, values=rows)
