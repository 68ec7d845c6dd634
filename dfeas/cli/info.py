"""``dfeas info``, of a dataset or of the settings of this machine. It loads no method and no reader of other formats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from dfeas.analysis.info import info as describe
from dfeas.cli.command import DATA, JSON, Command, option, put
from dfeas.display import Displayed, Grid, Part, Row
from dfeas.errors import near
from dfeas.machine import most_threads
from dfeas.settings import (
    OF_DASK,
    SETTINGS,
    dask_places,
    key_of,
    parse_bytes,
    read_setting,
    set_in_dask,
    source_of,
    unknown_settings,
    variable,
)


@dataclass(frozen=True, repr=False)
class SettingsHere(Displayed):
    """What is set for this user on this machine, and where."""

    settings: tuple[dict[str, Any], ...]  # of each its name, value, source, variable, key, and what it sets
    unknown: dict[str, str]  # names that look like settings and are none, with their places
    places: tuple[str, ...]  # files and folders of Dask's configuration, the one that counts most last

    @classmethod
    def find(cls) -> SettingsHere:
        """Raises UsageError for a value that cannot be read."""
        found = {name: read_setting(name) for name in SETTINGS} | {"memory": parse_bytes(None), "threads": most_threads()}
        found |= {name: value for name in OF_DASK if (value := set_in_dask(name)) is not None}
        texts = {name: setting.text for name, setting in SETTINGS.items()} | dict.fromkeys(OF_DASK, "tasks, as dask.annotate")
        rows = [
            {"name": name, "value": value, "source": source_of(name), "key": key_of(name), "sets": texts[name]}
            | {"variable": variable(name) if name in SETTINGS else None}
            for name, value in found.items()
        ]
        return cls(tuple(rows), unknown_settings(), tuple(map(str, dask_places())))

    def _parts(self) -> Iterator[Part]:
        named = [(each["key"].removeprefix("dfeas."), _word(**each)) for each in self.settings]
        rows = [(*words, each["source"], each["sets"]) for words, each in zip(named, self.settings, strict=True)]
        yield Grid(("setting", "value", "from", "what it sets"), rows, left=4, spare=("what it sets",))
        for name, place in self.unknown.items():
            known = [each[what] for each in self.settings for what in ("key", "variable")]
            yield Row("unknown", f"{name} in {place}{near(name, known)}")
        yield Row("files", f"*.yaml in {', '.join(self.places)}: those that come later count more")


def _word(name: str, value: Any, **more: Any) -> str:
    """A value as it is written where it is set."""
    if name == "memory":
        return f"{value / 1e9:.4g}GB"
    if value is None or isinstance(value, bool):
        return "none" if value is None else str(int(value))
    return f"{value:g}" if isinstance(value, float) else str(value)


@click.command(
    cls=Command,
    examples=("dfeas info points.zarr --labels labels.zarr --json", "dfeas info --settings"),
)
@click.argument("data", type=DATA, required=False)
@option("Data", "--labels", "y", metavar="FILE", help="Label array of a zarr array, or of a file; a column of a table.")
@option("Output", "--settings", is_flag=True, help="Say what is set on this machine, and where, in place of DATA.")
@JSON
def info(data: str | None, y: str | None, settings: bool, as_json: bool) -> None:
    """Describe a dataset, or list the settings of this machine."""
    if (data is None) != settings:
        raise click.UsageError("give DATA, or --settings")
    put(SettingsHere.find() if data is None else describe(data, y), as_json)
