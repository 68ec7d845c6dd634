"""One HTML file that loads nothing, in which every text is escaped, with drawings whose colours and letters are its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from html import escape
from importlib.resources import files
from xml.etree import ElementTree

from dfeas import __version__
from dfeas.errors import visible

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_KEPT = ("g", "path", "use", "defs", "clipPath", "rect", "circle", "line", "polyline", "polygon", "text", "tspan")
"""Elements that draw. Metadata, styles and whatever else a drawing may have stay out of the page."""
_REFERENCE = re.compile(r"(url\(#|^#)([\w.-]+)")
_FONT = re.compile(r"font: (?:[a-z]+ )*([\d.]+px) [^;]+")
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""What XML may not have."""

ElementTree.register_namespace("", _SVG)
ElementTree.register_namespace("xlink", _XLINK)


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *content: str, **attributes: str) -> Html:
    """An element; texts and values of attributes are escaped, as HTML and as in a terminal. A trailing underscore of an
    attribute's name is left out.
    """
    inside = "".join(part if isinstance(part, Html) else escape(visible(part)) for part in content)
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(visible(value))}"' for key, value in attributes.items())
    return Html(f"<{name}{given}>") if name in _VOID else Html(f"<{name}{given}>{inside}</{name}>")


def joined(*parts: Html) -> Html:
    """Some markup, one after the other."""
    return Html("\n".join(parts))


def soft(text: str) -> Html:
    """A remark in small letters."""
    return element("p", text, class_="soft")


def facts(values: Mapping[str, str]) -> Html:
    """A list of names with their values."""
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


def inline(drawing: bytes, alt: str, colours: Mapping[str, str]) -> Html:
    """An ``svg`` element of a drawing, with a text for those who do not see it.

    ``colours`` are the names of those of the page: ``#0072b2`` becomes ``var(--blue)``. Names inside begin with a hash of the
    drawing, so that a page may hold several.
    """
    root, alt = ElementTree.fromstring(_CONTROL.sub(lambda found: visible(found[0]), drawing.decode())), visible(alt)
    mark = blake2b(drawing + alt.encode(), digest_size=5).hexdigest()
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": alt, "class": "plot"}
    _clean(root, colours)
    used = {name for part in root.iter() for value in part.attrib.values() for _, name in _REFERENCE.findall(value)}
    for part in root.iter():
        kept = {}
        for name, value in part.attrib.items():
            if name == "id" and value not in used:
                continue
            kept[name] = f"d{mark}-{value}" if name == "id" else _REFERENCE.sub(rf"\1d{mark}-\2", value)
        part.attrib = kept
    return Html(ElementTree.tostring(root, encoding="unicode"))


def _clean(part: ElementTree.Element, colours: Mapping[str, str]) -> None:
    """Leave what draws, in the colours and letters of the page."""
    for child in list(part):
        if child.tag not in {f"{{{_SVG}}}{name}" for name in _KEPT}:
            part.remove(child)
            continue
        _clean(child, colours)
        child.tail = None if child.tail is not None and not child.tail.strip() else child.tail
        if "style" in child.attrib:
            style = _FONT.sub(r"font-size: \1", child.attrib["style"])
            child.attrib["style"] = _COLOUR.sub(lambda found: _named(found[0], colours), style)
    part.text = visible(part.text) if part.text is not None and part.text.strip() else None


def _named(colour: str, colours: Mapping[str, str]) -> str:
    return f"var(--{colours[colour]})" if colour in colours else colour


_VOID = {"meta"}

GENERATOR = "dfeas report"
"""Content of the generator tag, by which a page of ours is known."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def document(title: str, *parts: Html) -> str:
    """The whole file of a page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="generator", content=GENERATOR),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"dfeas: {title}"),
        element("style", Html(files("dfeas.report").joinpath("page.css").read_text("utf-8"))),
    )
    footer = element("footer", f"Written by dfeas {__version__}.")
    main = element("main", element("h1", f"dfeas report: {title}"), joined(*parts), footer)
    return f"<!DOCTYPE html>\n{element('html', head, element('body', main), lang='en')}\n"
