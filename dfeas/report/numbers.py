"""How numbers are written on a page."""

from __future__ import annotations

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None) -> str:
    """JSON has no infinity: what is null was not known, or has no bound."""
    return "-" if value is None else f"{value:.6g}"


def percent(share: float) -> str:
    """A share of something, with three digits."""
    return f"{100 * share:.3g} %"


def points(count: int, of: int | None = None) -> str:
    """So many points, and which share of all they are."""
    noun = "point" if count == 1 else "points"
    return f"{count:,} {noun}" if not of else f"{percent(count / of)} ({count:,} {noun})"


def power_of_ten(exponent: int) -> str:
    """10 with the exponent in raised digits."""
    return f"10{str(exponent).translate(_RAISED)}"


def signed(value: float, digits: int = 3) -> str:
    """With a sign that is as wide as a plus."""
    return f"{value:+.{digits}g}".replace("-", "−", 1) if value else "0"
