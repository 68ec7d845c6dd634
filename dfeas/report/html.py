"""One HTML file that loads nothing, in which every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


MANY_COLUMNS = 5
"""A table of more is wider than a phone, which is said above it."""
HINT = "Scroll the table sideways for more columns →"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int, label: str, *, bars: bool = False) -> Html:
    """A table that scrolls where the page is too narrow: the first columns are words, the others numbers.

    ``label`` says what it is to those who do not see it. Bars in the last column say no more than its numbers, and a phone
    shows none.
    """
    kinds = ["word" if place < words else "number" for place in range(len(head))]
    lines = [
        element("tr", *(element(cell, text, class_=kind) for text, kind in zip(row, kinds, strict=True)))
        for cell, row in (("th", head), *(("td", row) for row in rows))
    ]
    whole = element("table", element("thead", lines[0]), element("tbody", *lines[1:]), **({"class_": "bars"} if bars else {}))
    hint = [] if bars or len(head) <= MANY_COLUMNS else [element("p", HINT, class_="hint")]
    return joined(*hint, element("div", whole, class_="scrolling", role="region", aria_label=label, tabindex="0"))


def picture(drawing: Html, title: str, caption: str = "") -> Html:
    """A drawing with its title, and what is to be seen there."""
    captions = [element("figcaption", caption)] if caption else []
    return element("figure", element("h4", title), drawing, *captions)


def pictures(*drawn: Html) -> Html:
    """Side by side, as many as there is room for."""
    return element("div", *drawn, class_="figures")


_VOID = {"img", "meta"}

GENERATOR = "dfeas report"
"""Content of the generator tag, by which a page of ours is known."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def document(title: str, *parts: Html) -> str:
    """The whole file."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="generator", content=GENERATOR),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"dfeas: {title}"),
        element("style", Html(files("dfeas.report").joinpath("page.css").read_text())),
    )
    footer = element("footer", f"Written by dfeas {__version__}.")
    main = element("main", element("h1", f"dfeas report: {title}"), joined(*parts), footer)
    return f"<!DOCTYPE html>\n{element('html', head, element('body', main), lang='en')}\n"
