"""The frame of a page: one HTML file that loads nothing, neither scripts nor fonts nor pictures."""

from __future__ import annotations

from importlib.resources import files

from dfeas.report.markup import Html, element, joined
from dfeas.version import __version__

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
