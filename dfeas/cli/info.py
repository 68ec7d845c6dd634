"""``dfeas info``, and how a dataset is shown. It loads no method and no reader of other formats."""

from __future__ import annotations

import click

from dfeas.analysis.info import info as describe
from dfeas.cli.command import DATA, JSON, Command, option, put


@click.command(cls=Command, examples=("dfeas info mail.data", "dfeas info points.zarr --labels labels.zarr --json"))
@click.argument("data", type=DATA)
@option("Data", "--labels", "y", metavar="FILE", help="Label array of a zarr array, or of a file; a column of a table.")
@JSON
def info(data: str, y: str | None, as_json: bool) -> None:
    """Say what a dataset is, without reading its points."""
    put(describe(data, y), as_json)
