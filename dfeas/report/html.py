"""One HTML file that loads nothing, in which every text is escaped."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from dfeas import __version__


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

GENERATOR = "dfeas report"
"""Content of the generator tag, by which a page of ours is known."""

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def document(title: str, *parts: Html) -> str:
    """The whole file."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="generator", content=GENERATOR),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"dfeas: {title}"),
        element("style", Html(files("dfeas.report").joinpath("page.css").read_text())),
    )
    footer = element("footer", f"Written by dfeas {__version__}.")
    main = element("main", element("h1", f"dfeas report: {title}"), joined(*parts), footer)
    return f"<!DOCTYPE html>\n{element('html', head, element('body', main), lang='en')}\n"
