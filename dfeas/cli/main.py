"""The command line: results on stdout, progress on stderr."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any

import click
from click.shell_completion import CompletionItem

from dfeas import __version__
from dfeas.cli.command import Command, one_line_errors, say
from dfeas.errors import near

SECTIONS = {
    "Decide": {
        "solve": ("runs", "Decide whether labelled points are linearly separable."),
        "svm": ("runs", "Fit a soft margin: a linear support vector machine."),
        "race": ("runs", "Compare several methods on shared passes over the data."),
        "in-hull": ("hull", "Decide whether a point is in the convex hull of others."),
        "feasible": ("hull", "Decide whether A x <= b has a solution."),
        "suspects": ("evidence", "List points that must be removed or relabelled."),
        "check-separation": ("evidence", "Check whether the estimates of a regression are finite."),
        "plan": ("evidence", "Estimate the memory, passes and time of a run."),
        "resume": ("runs", "Continue a run that was interrupted or reached a limit."),
    },
    "Data": {
        "generate": ("datasets", "Write a generated dataset with a known answer."),
        "ingest": ("datasets", "Convert a file of points to a dataset."),
        "info": ("info", "Describe a dataset, or list the settings of this machine."),
    },
    "Clusters": {
        "submit": ("clusters", "Let a worker of a cluster drive a run, and return at once."),
        "fetch": ("clusters", "Copy the result of a submitted run to this machine."),
        "cancel": ("clusters", "End a submitted run, with a checkpoint."),
        "config": ("clusters", "Print or install the Dask configuration for workers."),
    },
    "Look": {
        "status": ("clusters", "List runs and their progress, here or on a cluster."),
        "verify": ("evidence", "Verify a certificate against the stored data."),
        "predict": ("evidence", "Score points by the hyperplane of a run."),
        "report": ("evidence", "Write a page about finished runs that opens offline."),
        "compare": ("evidence", "Print a table of finished runs."),
    },
    "Help": {"help": ("main", "Show the help of a command, or of a topic.")},
}
"""Commands under the headings of the help text: the module of each in this package, and what it does in a line."""
NAMED = {name: named for names in SECTIONS.values() for name, named in names.items()}

TOPICS = {
    "completion": """
        The Tab key completes commands, options, methods and kernels once you have typed, for
        your shell:

          bash  echo 'eval "$(_DFEAS_COMPLETE=bash_source dfeas)"' >> ~/.bashrc
          zsh   echo 'eval "$(_DFEAS_COMPLETE=zsh_source dfeas)"' >> ~/.zshrc
          fish  _DFEAS_COMPLETE=fish_source dfeas > ~/.config/fish/completions/dfeas.fish
        """,
    "exit-codes": """
        0   a verdict was reached and verified, either way
        2   usage: an option, a path of an output, an address
        3   a limit was reached, undecided
        4   bad input: the data does not pose the problem
        5   stored data is corrupt or missing
        6   a certificate failed its check
        75  interrupted: dfeas resume RUN goes on

        An error is one line on stderr; with --json it is the last line there, a JSON
        object with error and exit_code. stdout has the result only.
        """,
    "environment": """
        Settings of a machine, for commands and for Python. An option or argument
        overrides a variable of the environment, and a variable overrides Dask's
        configuration, where DFEAS_TIME_LIMIT is dfeas.time-limit; a site has a section
        dfeas in /etc/dask/*.yaml. dfeas info --settings lists all values.

        {settings}

        NO_COLOR and FORCE_COLOR say whether verdicts have a colour; DFEAS_TRACEBACK=1
        shows where an unforeseen error came from.
        """,
}
"""Texts of ``dfeas help`` that are about no command."""


class Commands(click.Group):
    """Imports a command, with all that it needs, when it is asked for; a list of all of them needs none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(NAMED)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in NAMED:
            return None
        command = getattr(import_module(f"dfeas.cli.{NAMED[cmd_name][0]}"), cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=text) for name, (_, text) in NAMED.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Raises UsageError for a command that there is not, with the nearest one."""
        if args[0] not in NAMED and not args[0].startswith("-"):
            raise click.UsageError(f"No such command '{args[0]}'{near(args[0], self.list_commands(ctx))}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, NAMED))
        for heading, names in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), text) for name, (_, text) in names.items()])


def _say_version(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        commit = _find_commit()
        click.echo(f"dfeas, version {__version__}" + (f" (commit {commit})" if commit else ""))
        context.exit()


def _find_commit() -> str | None:
    """What ``git archive`` wrote where the sources or a wheel come from one, else that of the clone, or what pip noted."""
    import subprocess  # both load much, and nothing else needs them here
    from importlib import metadata

    package = Path(__file__).parents[1]
    with suppress(OSError):
        written = (package / "commit").read_text().strip()
        if not written.startswith("$"):
            return written
        if (package.parent / ".git").exists() and 'name = "dfeas"' in (package.parent / "pyproject.toml").read_text():
            command = ["git", "-C", str(package.parent), "describe", "--always", "--dirty", "--exclude=*"]
            here = {
                name: value for name, value in os.environ.items() if not name.startswith("GIT_")
            }  # a hook has that of others
            return subprocess.run(command, env=here, capture_output=True, text=True, check=False).stdout.strip() or None
    with suppress(metadata.PackageNotFoundError):
        noted: dict[str, Any] = json.loads(metadata.distribution("dfeas").read_text("direct_url.json") or "{}")
        return noted.get("vcs_info", {}).get("commit_id", "")[:8] or None
    return None


@click.group("dfeas", cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V", "--version", is_flag=True, is_eager=True, expose_value=False, callback=_say_version, help="Show the version and exit."
)
@click.pass_context
def commands(context: click.Context) -> None:
    """Decide linear separability: verified answers for out-of-core data.

    \b
    dfeas help COMMAND      options and examples of a command
    dfeas help completion   commands and options by the Tab key
    dfeas help exit-codes   0 is a verdict, 3 a limit, all others are errors
    dfeas help environment  environment variables and settings of a site
    """
    if os.environ.get("NO_COLOR") or os.environ.get("FORCE_COLOR"):
        context.color = not os.environ.get("NO_COLOR")  # otherwise on a terminal
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _describe_options(word: str, parent: click.Context) -> list[str]:
    """Options that have a word in their names, once for each text of help, and which commands have them."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in NAMED:
        command = commands.get_command(parent, name)
        for param in [] if command is None else command.params:
            record = param.get_help_record(parent)
            if record is not None and word in "-".join(param.opts).split("-"):
                found.setdefault(record, []).append(name)
    each = found.items()
    return [line for (flag, text), names in each for line in (flag, f"    {text}", f"    of {', '.join(names)}")]


def _describe_settings() -> str:
    """A line for each: its variable, and what it sets."""
    from dfeas.settings import SETTINGS, variable  # which loads NumPy, and a list of commands needs none

    return "\n".join(f"  {variable(name):<23} {each.text}" for name, each in SETTINGS.items())


@click.command("help", cls=Command, examples=("dfeas help solve", "dfeas help weights"))
@click.argument("topic", required=False, metavar="[COMMAND|TOPIC]")
@click.pass_context
def help(context: click.Context, topic: str | None) -> None:
    """Show the help of a command, or of a topic.

    Topics are completion, environment and exit-codes. A word of an option, such as weights, lists the commands that have it.
    """
    parent = context.parent
    assert parent is not None, "it is a command of the group"
    if topic is None:
        click.echo(parent.get_help())
    elif topic in TOPICS:
        text = dedent(TOPICS[topic]).strip()
        say(*text.replace("{settings}", _describe_settings()).splitlines())
    else:
        command = commands.get_command(parent, topic)
        if command is None and (said := _describe_options(topic, parent)):
            say(*said)
            return
        if command is None:
            raise click.UsageError(
                f"No such command '{topic}'{near(topic, [*commands.list_commands(parent), *TOPICS])}", parent
            )
        click.echo(command.get_help(click.Context(command, info_name=topic, parent=parent)))


def main() -> None:
    """Carry out what was typed, and exit."""
    with one_line_errors():
        sys.exit(commands.main(prog_name="dfeas", standalone_mode=False))
