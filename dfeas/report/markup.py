"""HTML in which every text is escaped: only what ``element`` made passes as it is."""

from __future__ import annotations

from html import escape


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *content: str, **attributes: str) -> Html:
    """An element; texts and values of attributes are escaped. A trailing underscore of an attribute's name is left out."""
    inside = "".join(part if isinstance(part, Html) else escape(part) for part in content)
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{given}>") if name in _VOID else Html(f"<{name}{given}>{inside}</{name}>")


def joined(*parts: Html) -> Html:
    """One after the other."""
    return Html("\n".join(parts))


_VOID = {"img", "meta"}
