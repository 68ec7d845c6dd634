"""How far runs are, a line each."""

from __future__ import annotations

import json

from dfeas.looking import Look
from dfeas.printing.lines import say
from dfeas.submitting import Submitted


def show_looks(looks: list[Look], as_json: bool) -> None:
    """How far runs are, a line each."""
    if as_json:
        say(json.dumps([found.to_json() for found in looks]))
        return
    for found in looks:
        say(f"{found.run}: {_described(found)}")


def show_submitted(runs: list[Submitted], as_json: bool) -> None:
    """How submitted runs are, a line each."""
    if as_json:
        values = [{**run.__dict__, "look": None if run.look is None else run.look.to_json()} for run in runs]
        say(json.dumps(values))
        return
    for run in runs:
        said = run.error if run.error else "not begun" if run.look is None else _described(run.look)
        say(f"{run.id}: {said}  (driver {run.task}, {run.out})")


def _described(found: Look) -> str:
    """One line."""
    parts = [found.verdict or found.state if found.state == "finished" else found.state]
    if found.passes is not None:
        margins = found.gap is None
        ends = f"margin {found.margin_lower:+.3e} .. {found.margin_upper:.3e}" if margins else f"gap {found.gap:.2e}"
        parts.append(f"pass {found.passes:.4g}, {ends}")
        parts.append(f"{found.seconds:.1f} s")
    if found.checkpoint_age is not None:
        parts.append(f"checkpoint {found.checkpoint_age:.0f} s old")
    return ", ".join(parts)
