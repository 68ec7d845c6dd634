"""One HTML file that loads nothing, in which every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def soft(text: str) -> Html:
    """A remark."""
    return element("p", text, class_="soft")


def facts(values: Mapping[str, str]) -> Html:
    """Names with their values."""
    return element(
        "dl", *(element("div", element("dt", name), element("dd", text)) for name, text in values.items()), class_="facts"
    )


def row(cell: str, texts: Iterable[str]) -> Html:
    """A row of a table, of cells of one kind."""
    return element("tr", *(element(cell, text) for text in texts))


def table(*rows: Html) -> Html:
    """A table that scrolls where the page is too narrow."""
    return element("div", element("table", *rows), class_="wide")


def picture(uri: str, title: str, alt: str, caption: str = "") -> Html:
    """A figure with its title, and a text for those who do not see it."""
    captions = [element("figcaption", caption)] if caption else []
    return element("figure", element("h4", title), element("img", src=uri, alt=alt), *captions)


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
        element("style", Html(files("dfeas.report").joinpath("page.css").read_text("utf-8"))),
    )
    footer = element("footer", f"Written by dfeas {__version__}.")
    main = element("main", element("h1", f"dfeas report: {title}"), joined(*parts), footer)
    return f"<!DOCTYPE html>\n{element('html', head, element('body', main), lang='en')}\n"
