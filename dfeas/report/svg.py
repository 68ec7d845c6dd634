"""Drawings inside a page: SVG whose colours and letters are those of the page, on whatever background it has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from xml.etree import ElementTree

from dfeas.report.html import Html

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_KEPT = ("g", "path", "use", "defs", "clipPath", "rect", "circle", "line", "polyline", "polygon", "text", "tspan")
"""Elements that draw. Metadata, styles and whatever else a drawing may have stay out of the page."""
_REFERENCE = re.compile(r"(url\(#|^#)([\w.-]+)")
_FONT = re.compile(r"font: (?:[a-z]+ )*([\d.]+px) [^;]+")
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")

ElementTree.register_namespace("", _SVG)
ElementTree.register_namespace("xlink", _XLINK)


def inline(drawing: bytes, alt: str, colours: Mapping[str, str]) -> Html:
    """An ``svg`` element of a drawing, with a text for those who do not see it.

    ``colours`` are the names of those of the page: ``#0072b2`` becomes ``var(--blue)``. Names inside begin with a hash of the
    drawing, so that a page may hold several.
    """
    root = ElementTree.fromstring(drawing)
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
    if part.text is not None and not part.text.strip():
        part.text = None


def _named(colour: str, colours: Mapping[str, str]) -> str:
    return f"var(--{colours[colour]})" if colour in colours else colour
