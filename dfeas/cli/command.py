"""A command: its parameters, its help text, one line for an error, and the exit codes of the contract."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import click
from click.core import ParameterSource

from dfeas.engine import signals
from dfeas.engine.signals import INTERRUPTED, interruptible
from dfeas.errors import CorruptDataError, DataWarning, DfeasError, none_of, visible

if TYPE_CHECKING:
    from dfeas.display import Displayed, Part

    # generic from click 8.2 on
    Choice: TypeAlias = click.Choice[str]
else:
    Choice = click.Choice

LIMIT_REACHED = 3
HEADINGS = ("Data", "Format", "Question", "Limits", "Kernel", "Where", "Output", "")
"""Of options in a help text, in this order; what has no heading stands under Options."""
TRACEBACK = "DFEAS_TRACEBACK"
"""A variable of the environment: where it is set, an error that nobody foresaw shows where it came from."""

MEANT = {
    **dict.fromkeys(("--label", "--target", "--response", "--y"), "--label-column"),
    **dict.fromkeys(("--drop", "--exclude", "--ignore", "--drop-columns"), "--without"),
    **dict.fromkeys(("--id", "--ids", "--index", "--index-column", "--row-id"), "--id-column"),
}
"""What other tools call some options."""


def say(*texts: object, err: bool = False) -> None:
    """Print lines; ends of lines within one are shown as escapes. What is said on stderr fits in the columns of a terminal."""
    for text in texts:
        said = visible(str(text))
        if err and said[:1] != "{" and sys.stderr is not None and sys.stderr.isatty():
            from dfeas.display import fold  # not loaded where nothing is wrong
            from dfeas.run.progress.screen import Screen

            said = "\n".join(fold(said, Screen(sys.stderr).columns))
        click.echo(said, err=err)


COLOURS = {
    **{"feasible": "green", "infeasible": "red", "eps-infeasible": "red", "undecided": "yellow"},
    **{"strictly feasible": "green", "not strictly feasible": "red"},
}
"""Of verdicts."""


def put(answer: Displayed, as_json: bool, *more: Part, values: Any = None) -> None:
    """Print an answer as JSON, or as text that says ``more``: on a terminal in colour, in its columns. The ``values`` are those
    of JSON where the answer has others itself.
    """
    if as_json:
        say(json.dumps(answer.to_json() if values is None else values))
        return
    from dfeas.display import lines  # a list of commands prints no answer
    from dfeas.run.progress.screen import Screen

    parts = [*answer._parts(), *more]
    for line in lines(parts, Screen(sys.stdout).columns, lambda word: click.style(word, fg=COLOURS.get(word), bold=True)):
        click.echo(line)


def _as_set(error: DfeasError, context: click.Context | None) -> str:
    """What is wrong, by the option that was typed, or by the variable that stands for it."""
    from dfeas.settings import variable  # a list of commands needs none

    text = error.as_typed
    if context is None:
        return text
    typed = {
        flag for each in context.command.params for flag in each.opts if each.name is not None and _stands(each.name, context)
    }
    for name, flag in ((name, f"--{name.replace('_', '-')}") for name in error.arguments):
        if variable(name) in os.environ and flag not in typed:
            text = text.replace(f"{flag} ", f"{variable(name)}=")
    return text


@contextmanager
def one_line_errors(context: click.Context | None = None) -> Iterator[None]:
    """Turn each expected error into one line on stderr and the exit code of its kind."""
    try:
        yield
    except DfeasError as error:
        _leave(error.exit_code, _as_set(error, context), context)
    except click.UsageError as error:
        help_of = error.ctx.command_path if error.ctx is not None else "dfeas"
        text = " ".join(error.format_message().split())
        if "unexpected extra argument" in text and ".parquet" in text:
            text += "; put a pattern of files in quotes, or give their folder"
        _leave(2, f"{text} (see {help_of} --help)", error.ctx or context)
    except (KeyboardInterrupt, click.Abort):
        say("dfeas: interrupted", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # whoever read our output has gone: nothing more can be said
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        _leave(CorruptDataError.exit_code, f"{where}{error.strerror or error}", context)
    except MemoryError as error:
        if TRACEBACK in os.environ:
            raise
        what = "lower --memory, or close other programs, and check how large the data says that it is"
        _leave(CorruptDataError.exit_code, "; ".join(["no memory left", *[str(error)][: bool(str(error))], what]), context)
    except Exception as error:
        if TRACEBACK in os.environ:
            raise
        what = visible(f"{type(error).__name__}: {' '.join(str(error).split())}")[:300]  # characters of such an error
        text = f"not foreseen, {what}; is a file damaged? if not please report it, with {TRACEBACK}=1 set"
        _leave(CorruptDataError.exit_code, text, context)


def _leave(code: int, text: str, context: click.Context | None) -> NoReturn:
    """Say what is wrong, as a JSON object to who asked for JSON, and exit."""
    as_json = "--json" in sys.argv if context is None or "as_json" not in context.params else context.params["as_json"]
    say(json.dumps({"error": text, "exit_code": code}) if as_json else f"dfeas: error: {text}", err=True)
    sys.exit(code)


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Ours are said as errors are, without a line of code."""
    others = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], file: str, line: int, *more: Any) -> None:
        if isinstance(message, DataWarning):
            say(f"dfeas: warning: {message.as_typed}", err=True)
        else:
            others(message, category, file, line, *more)

    with warnings.catch_warnings():
        warnings.showwarning = show  # type: ignore[assignment]
        warnings.simplefilter("always", DataWarning)
        yield


class Command(click.Command):
    """A command whose errors are one line also under ``dask dfeas``, with options under headings and examples in its help."""

    def __init__(
        self, *arguments: Any, examples: Sequence[str] = (), notes: Callable[[], str] | None = None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.examples, self.notes = tuple(examples), notes

    def invoke(self, ctx: click.Context) -> Any:
        from dfeas.data.storage.patience import one_call  # which loads NumPy, and a list of commands needs none

        limit = ctx.params.get("time_limit")
        with interruptible(), one_line_errors(ctx), one_call(limit, signals.started), _one_line_warnings():
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            meant = MEANT.get(error.option_name, "")
            if not any(meant in each.opts for each in self.params):
                raise
            raise click.UsageError(f"No such option '{error.option_name}'. Did you mean {meant}?", ctx) from None
        except DfeasError as error:  # of a setting that is the default of an option
            _leave(error.exit_code, _as_set(error, ctx), ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for param in self.get_params(ctx):
            row = param.get_help_record(ctx)
            if row is not None and isinstance(param, click.Option):
                rows[getattr(param, "heading", "")].append(row)
        for heading, some in rows.items():
            if some:
                with formatter.section(heading or "Options"):
                    formatter.write_dl(some)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Notes, and the examples last, where a terminal that scrolls shows them."""
        if self.notes is not None:
            formatter.write_paragraph()
            formatter.write_text(cleandoc(self.notes()))
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


Decorator = Callable[[Any], Any]


class _DataPlace(click.Path):
    """A path, or the URL of an object store, as text."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value) if "://" in str(value) else str(Path(value))


class _LocalPath(click.Path):
    """A path of this machine."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from dfeas.data.storage.places import local  # which loads NumPy, and a list of commands needs none

        return local(value, param.human_readable_name if param is not None else "path")


class Count(click.types.IntParamType):
    """A whole number, which may be written as 2e9."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
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


JSON = option("Output", "--json", "as_json", is_flag=True, help="Print one JSON object, also for an error.")


def is_typed(name: str) -> bool:
    """Whether an option of the command that runs stands on its line, and is no default or variable of the environment."""
    return _stands(name, click.get_current_context())


def _stands(name: str, context: click.Context) -> bool:
    return context.get_parameter_source(name) == ParameterSource.COMMANDLINE
