"""The command for statisticians: check-separation."""

from __future__ import annotations

import sys
from typing import Any

import click

from dfeas.analysis.check_separation import check_separation as find_separation
from dfeas.analysis.regression.files import Asked, of_formula, of_table
from dfeas.analysis.regression.outcome import OUTCOMES
from dfeas.cli.answer import put
from dfeas.cli.command import LIMIT_REACHED, Command
from dfeas.cli.options import asks, options_of
from dfeas.cli.parameter import DATA, JSON, Name, option
from dfeas.engine.signals import INTERRUPTED, asked_to_stop
from dfeas.run.progress import IngestProgress
from dfeas.run.resources import attend_runs
from dfeas.run.termination import Stop


@click.command(
    "check-separation",
    cls=Command,
    examples=(
        "dfeas check-separation wards.csv --label-column died --without patient",
        'dfeas check-separation trade.parquet --formula "flow ~ tariff + C(partner)" --outcome poisson',
    ),
)
@click.argument("table", type=DATA)
@option("Data", "--label-column", default=None, metavar="NAME", help="The outcome; all other columns are regressors.")
@option("Question", "--formula", default=None, metavar="FORMULA", help='Instead, such as "died ~ age + C(ward)", by formulaic.')
@option("Data", "--without", multiple=True, metavar="NAME", help="Leave out a column, such as an id; any number of them.")
@option("Data", "--weights-column", default=None, metavar="NAME", help="Weights; rows of weight 0 are not in the likelihood.")
@option("Data", "--text", multiple=True, metavar="NAME", help="A column that is text, as 5 mg or <5; any number of them.")
@option("Data", "--sep", default=None, metavar="CHAR", help="Between cells.  [default: , in CSV, tab in TSV]")
@option("Data", "--decimal", default=".", metavar="CHAR", help="Between digits of numbers in CSV.  [default: .]")
@option(
    "Question",
    "--outcome",
    default=None,
    type=Name(OUTCOMES),
    metavar="NAME",
    help="What is regressed.  [default: as it looks]",
)
@option("Question", "--positive", default=None, metavar="CLASS", help="This class against all others.")
@option("Question", "--intercept/--no-intercept", default=True, show_default=True, help="Whether the regression has one.")
@asks(options_of(find_separation, "max_passes", "time_limit", "memory"), JSON)
def check_separation(
    table: str,
    label_column: str | None,
    formula: str | None,
    as_json: bool,
    without: tuple[str, ...],
    weights_column: str | None,
    outcome: str | None,
    positive: str | None,
    intercept: bool,
    **options: Any,
) -> None:
    """Say whether the estimates of a regression are finite.

    Of a logistic, multinomial or Poisson regression, and if they are not, because of which columns, levels and rows, and what
    to do. TABLE is CSV or TSV with names in its first line (also .gz), Parquet, or a folder of it, of any size. Text,
    categories and booleans are coded: the first level in order is the reference. Nothing is written but to a scratch folder,
    which is removed.
    """
    if (label_column is None) == (formula is None):
        raise click.UsageError("give --label-column NAME, or --formula TEXT")
    if formula is not None and not intercept:
        raise click.UsageError("a formula says itself whether it has an intercept: write 0 + into it")
    with asked_to_stop() as stop, attend_runs(stop):
        progress = IngestProgress(sys.stderr)
        reading = {name: options.pop(name) for name in ("text", "sep", "decimal")}
        asked = Asked(
            label_column or "", intercept, outcome, positive, without, None, options, progress, weights_column, **reading
        )
        answer = of_table(table, asked) if formula is None else of_formula(table, formula, asked)
    put(answer, as_json)
    if answer.kind is None:
        sys.exit(INTERRUPTED if answer.found.result.stopped == Stop.INTERRUPTED else LIMIT_REACHED)
