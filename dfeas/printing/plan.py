"""What a run would cost."""

from __future__ import annotations

import json

from dfeas.estimate import Plan
from dfeas.printing.lines import say
from dfeas.table import aligned


def show_plan(data: str, found: Plan, as_json: bool) -> None:
    """What a run would cost."""
    if as_json:
        say(json.dumps(found.to_json()))
        return
    classes = f"; {found.classes} classes, each against the rest, on the same reads" if found.classes > 1 else ""
    what = f"rows of cones ({found.cones})" if found.cones else "points"
    say(f"{data}: {found.n} {what} of {found.m} features, {found.bytes / 1e9:.3g} GB{classes}")
    first, later = found.first_seconds, found.later_seconds
    say(
        f"a pass takes {_time(first)} ({found.bytes / first / 1e9:.2g} GB/s), a later one {_time(later)} "
        f"({found.bytes / later / 1e9:.2g} GB/s): measured now, {found.threads} threads"
    )
    if found.kernel:
        _show_products(found)
    elif found.later_bytes:
        say(f"memory keeps {(found.bytes - found.later_bytes) / 1e9:.2g} GB of the data: a later pass reads the rest")
    else:
        say("memory keeps the data: a later pass reads nothing from storage")
    say("")
    lines = [["method", "memory", "products" if found.kernel else "passes", "at most", "time"]]
    for e in found.estimates:
        remark = "; ".join(text for text in ("this is auto" if e.auto else "", e.remark) if text)
        memory = f"{e.memory_bytes / 1e9:.2f} GB"
        lines.append([e.method, memory, f"{e.passes:.4g}", _most(e.most_passes), _time(e.seconds), remark])
    say(*aligned(lines, 1))
    say("")
    if found.margin is None:
        say("passes and time as a relative gap of 1e-3 usually takes them; no theorem bounds them")
        return
    what = "products (of a working set: passes)" if found.kernel else "passes"
    say(
        f"{what} and time as they usually are, without the check; at most: by theorem, for a margin or |Ax| of {found.margin:g}"
    )


def _show_products(found: Plan) -> None:
    """What a product with the Gram matrix of all points takes."""
    values = found.n * (found.n + 1) / 2
    read = f"{found.product_bytes / 1e9:.3g} GB" if found.product_bytes else "nothing"
    say(
        f"{found.kernel}: a product with the Gram matrix evaluates {values:.3g} values, {_time(values * found.value_seconds)}, "
        f"and reads {read} from storage; the matrix, which is never stored, has {8 * found.n**2 / 1e9:.3g} GB"
    )


def _most(passes: float | None) -> str:
    """A bound, where a theorem has one."""
    return "-" if passes is None else f"{passes:.3g}"


def _time(seconds: float) -> str:
    """A length of time for people."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"
