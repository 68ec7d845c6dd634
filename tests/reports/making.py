"""A page as a person and a browser see it, and the command line."""

from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from click.testing import CliRunner, Result

from dfeas.cli.main import commands
from dfeas.reports.page import report

VOID = {"img", "meta"}


class Page(HTMLParser):
    """What a person sees, and what a browser would fetch."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.listed: list[tuple[str, str]] = []
        self.texts: dict[str, list[str]] = {}
        self.words = ""
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(path.read_text())
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "dt":
            self.listed.append(("", ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.setdefault(self.open[-1], []).append(data)
            self.words += data + " "
            if {"dt", "dd"} & set(self.open):
                name, text = self.listed[-1]
                self.listed[-1] = (name + data, text) if "dt" in self.open else (name, text + data)
        elif "style" in self.open:
            assert "url(" not in data
            assert "@import" not in data

    @property
    def pictures(self) -> list[str]:
        return self.texts.get("h4", [])

    @property
    def drawings(self) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == "img"]

    @property
    def drawn(self) -> list[str]:
        """The text of each drawing."""
        coded = [str(each["src"]).partition(",")[2] for each in self.drawings]
        return [" ".join(ElementTree.fromstring(b64decode(each)).itertext()) for each in coded]

    @property
    def facts(self) -> dict[str, str]:
        """All that is listed under its name; the first of each."""
        return dict(reversed(self.listed))

    def check(self) -> None:
        """Nothing is fetched or run, each drawing is in the page and has a text beside it, and names differ."""
        assert len(self.drawings) == len(self.pictures)
        assert all(each["alt"] and str(each["src"]).startswith("data:image/svg+xml;base64,") for each in self.drawings)
        for tag, attributes in self.tags:
            assert tag not in {"script", "link", "iframe", "object", "embed", "base", "svg", "image"}
            for name, value in attributes.items():
                assert not name.startswith("on")
                if name in {"href", "srcset", "data", "action"}:
                    assert str(value).startswith("#")
                assert "url(" not in str(value)
        names = [attributes["id"] for _, attributes in self.tags if "id" in attributes]
        assert len(names) == len(set(names))
        assert len(self.texts["title"]) == 1


def parse(path: Path) -> Page:
    page = Page(path)
    page.check()
    return page


def page_of(*runs: Path, **options: Any) -> Page:
    """The page of some runs."""
    return parse(report([*runs], **options))


def cli(*words: Any) -> Result:
    return CliRunner().invoke(commands, [str(word) for word in words])
