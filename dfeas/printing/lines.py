"""The one way to stdout and stderr: whole lines, whose text cannot steer the terminal, whatever data it quotes."""

from __future__ import annotations

import click

from dfeas.visible import visible


def say(*lines: object, err: bool = False) -> None:
    """Print lines; ends of lines within one are shown as escapes."""
    for line in lines:
        click.echo(visible(str(line)), err=err)
