"""Parameters of commands: places, names of which one is chosen, options under the headings of a help text."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from dfeas.data.storage.places import is_url, local
from dfeas.errors import none_of

if TYPE_CHECKING:  # generic from click 8.2 on
    Choice: TypeAlias = click.Choice[str]
else:
    Choice = click.Choice

Decorator = Callable[[Any], Any]


class _DataPlace(click.Path):
    """A path, or the URL of an object store, as text."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value) if is_url(value) else str(Path(value))


class _LocalPath(click.Path):
    """A path of this machine."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        return local(value, param.human_readable_name if param is not None else "path")


class Count(click.types.IntParamType):
    """A whole number, which may be written as 2e9."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number that was typed, in whichever way."""
        with suppress(ValueError, OverflowError):
            return int(value)
        with suppress(ValueError, OverflowError):
            if float(value) == int(float(value)):
                return int(float(value))
        self.fail(f"{value!r} is not a valid integer.", param, ctx)


class Name(Choice):
    """One of some names; of what is none of them the nearest is said."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            self.fail(none_of(value, self.choices), param, ctx)
        return str(value)


class Numbers(click.types.StringParamType):
    """Numbers with commas between them, or one of some words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A list of numbers, or the word."""
        if not isinstance(value, str) or value in self.words:
            return value
        with suppress(ValueError):
            return [float(each) for each in value.split(",")]
        self.fail(f"{value}: expected numbers with commas between them", param, ctx)


DATA, LOCAL = _DataPlace(), _LocalPath()


class Option(click.Option):
    """An option with the heading under which a help text has it."""

    def __init__(self, *names: Any, heading: str = "", **more: Any) -> None:
        super().__init__(*names, **more)
        self.heading = heading


def option(heading: str, *names: str, **more: Any) -> Decorator:
    """An option of one command, under a heading."""
    return click.option(*names, cls=Option, heading=heading, **more)


JSON = option("Output", "--json", "as_json", is_flag=True, help="Print one JSON object; an error as one, too.")
