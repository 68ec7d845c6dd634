"""How commands that run end: the result on stdout, the exit code, and how to go on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

from dfeas.commands.base import LIMIT_REACHED
from dfeas.hard_margin import HardMargin
from dfeas.one_vs_rest import OneVsRest
from dfeas.printing.lines import say
from dfeas.printing.results import show_hard_margin, show_many, show_result, show_separation, show_soft_margin
from dfeas.racing import Race
from dfeas.result import Result
from dfeas.resuming import resumable
from dfeas.separation import Separation
from dfeas.signals import INTERRUPTED
from dfeas.soft_margin_result import SoftMarginResult


def end(found: Result | OneVsRest | Race | SoftMarginResult | HardMargin | Separation, out: Path, as_json: bool) -> None:
    """Print how a run ended, and exit with its code; of several results in one run that of the one that got least far."""
    if isinstance(found, HardMargin):
        show_hard_margin(found, out, as_json)
        leave(found.result, out)
        return
    if isinstance(found, Separation):
        show_separation(found, out, as_json)
        leave(found.result, out, found.kind is not None)
        return
    if isinstance(found, SoftMarginResult):
        show_soft_margin(found, out, as_json)
        leave(found, out)
    elif isinstance(found, Result):
        show_result(found, out, as_json)
        leave(found, out)
    else:
        show_many(found, out, as_json)
        ended = {result.stopped for result in found.results.values()}
        if not ended <= {"verdict", "outrun"} or (isinstance(found, Race) and found.first is None):
            _limit(out, "interrupted" in ended)


def leave(result: Result | SoftMarginResult, out: Path, decided: bool = True) -> None:
    """Exit with the code of a result, and of a question that goes beyond it."""
    if result.stopped != "verdict":
        _limit(out, result.stopped == "interrupted")
    if not decided:
        sys.exit(LIMIT_REACHED)


def _limit(out: Path, interrupted: bool) -> NoReturn:
    """Say how a run that has no verdict goes on, and exit."""
    if resumable(out):
        say(f"to go on: dfeas resume {out} (with --max-passes or --time-limit for new limits)", err=True)
    sys.exit(INTERRUPTED if interrupted else LIMIT_REACHED)
