"""How a page looks: colours that stand out in the light and in the dark, letters for a phone, tables that say they scroll."""

import re
from pathlib import Path

import numpy as np
import pytest

import dfeas
from dfeas.data.generate.points import Instance
from dfeas.report.compare import compare
from dfeas.report.figures import COLOURS, WIDTH, drawing, logarithmic, new_figure, style
from dfeas.report.html import HINT, inline
from dfeas.report.numbers import points, signed
from dfeas.report.page import report
from tests.report.pages import Page, parse

CSS = (Path(dfeas.__file__).parent / "report" / "page.css").read_text()
PHONE = 390 - 2 * 16 * (0.6 + 0.85) - 2
"""Pixels that a figure gets on a phone: without the padding of the page and of the section, and its border."""


def colours(scheme: str) -> dict[str, str]:
    """The variables of a scheme: the first block of the style sheet, and what the dark one says otherwise."""
    light, dark = re.findall(r":root \{([^}]*)\}", CSS)
    found = dict(re.findall(r"--([\w-]+): (#\w{6})", light))
    return found | (dict(re.findall(r"--([\w-]+): (#\w{6})", dark)) if scheme == "dark" else {})


def luminance(colour: str) -> float:
    """Of WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Page]:
    """Of a race, and of a conflict."""
    path = tmp_path_factory.mktemp("look")
    dfeas.generate(Instance("planted", 8, 3000, 0.05), path / "yes")
    dfeas.generate(Instance("one-flip", 8, 3000, 0.05), path / "no")
    dfeas.race(path / "yes", methods=["perceptron", "working-set"], out=path / "race")
    dfeas.solve(path / "no", out=path / "conflict")
    return [parse(report([path / name])) for name in ("race", "conflict")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_drawn_and_written_stands_out_from_the_paper(scheme: str) -> None:
    known = colours(scheme)
    for name in set(COLOURS.values()) - {"line", "axis"}:
        assert contrast(known[name], known["paper"]) >= 3, name
    for name in ("ink", "soft", "blue"):
        assert min(contrast(known[name], known[ground]) for ground in ("paper", "page")) >= 4.5, name
    assert contrast(known["ink"], known["warn"]) >= 4.5


def test_the_page_calls_the_colours_of_the_figures_by_their_names() -> None:
    assert {name: colour for colour, name in COLOURS.items()}.items() <= colours("light").items()
    assert set(colours("dark")) == set(colours("light"))
    assert set(re.findall(r"var\(--([\w-]+)\)", CSS)) <= {*colours("light"), "shade"}


def test_a_drawing_has_the_colours_of_the_page_and_no_ground(pages: list[Page]) -> None:
    seen = set()
    for page in pages:
        inside = [attributes.get("style") or "" for tag, attributes in page.tags if tag in {"path", "use", "text", "g", "rect"}]
        seen |= set(re.findall(r"var\(--([\w-]+)\)", " ".join(inside)))
        assert not re.findall(r"(?<!url\()#[0-9a-f]{3,6}\b", " ".join(inside))
    assert {"blue", "red", "line", "soft"} <= seen <= set(COLOURS.values())


def test_letters_of_figures_are_at_least_ten_pixels_on_a_phone(pages: list[Page]) -> None:
    sizes = []
    for page in pages:
        width = 0.0
        for tag, attributes in page.tags:
            if tag == "svg":
                width = float(str(attributes["viewbox"]).split()[2])
                assert width == pytest.approx(72 * WIDTH)
            if tag == "text":
                (points_,) = re.findall(r"font-size: ([\d.]+)px", str(attributes["style"]))
                sizes.append(float(points_) * PHONE / width)
    assert len(sizes) > 50
    assert min(sizes) >= 10


def test_names_in_figures_are_text_that_can_be_searched(pages: list[Page]) -> None:
    assert {"upper bound", "lower bound", "passes over the data"} <= set(pages[0].texts["text"])
    assert "score" in pages[1].texts["text"]


def test_a_table_that_is_wider_than_a_phone_says_that_it_scrolls(pages: list[Page]) -> None:
    race, conflict = pages
    assert HINT in race.texts["p"]
    assert HINT not in conflict.texts["p"]
    regions = [attributes for tag, attributes in race.tags if attributes.get("class") == "scrolling"]
    assert all(each["tabindex"] == "0" and each["aria-label"] and each["role"] == "region" for each in regions)


def test_a_method_that_names_its_run_is_not_said_twice(tmp_path: Path) -> None:
    dfeas.generate(Instance("planted", 4, 200, 0.05), tmp_path / "data")
    dfeas.race(tmp_path / "data", methods=["perceptron", "working-set"], out=tmp_path / "race")
    dfeas.solve(tmp_path / "data", out=tmp_path / "mine")
    assert str(compare([tmp_path / "race"])).split()[:2] == ["run", "verdict"]
    assert str(compare([tmp_path / "race", tmp_path / "mine"])).split()[:2] == ["run", "method"]


def test_a_drawing_keeps_what_draws_and_its_names_are_its_own() -> None:
    hostile = b"""<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
      viewBox="0 0 9 9" onload="x()">
      <metadata>who</metadata><style>*{fill:red}</style><script>x()</script><foreignObject><b/></foreignObject><image/>
      <defs><clipPath id="a"><rect/></clipPath><path id="idle"/></defs><!-- --><script>y()</script> -->
      <g id="b" clip-path="url(#a)" style="fill: #0072b2; stroke: #123456"><use xlink:href="#a"/></g></svg>"""
    drawn = [inline(hostile, alt, {"#0072b2": "blue"}) for alt in ("<one>", "two")]
    for each in drawn:
        assert not re.search("script|foreignObject|image|metadata|<style|onload|idle", each)
        assert 'style="fill: var(--blue); stroke: #123456"' in each
        (name,) = re.findall(r'id="(\S+)"', each)
        assert f'clip-path="url(#{name})"' in each
        assert f'href="#{name}"' in each
    assert 'aria-label="&lt;one&gt;"' in drawn[0]
    assert len({re.findall(r'id="(\S+)"', each)[0] for each in drawn}) == 2


def test_text_of_data_is_drawn_as_it_is() -> None:
    with style(on_a_page=True):
        figure = new_figure(WIDTH, 2)
        figure.subplots().set_title("$a_b^c$ <i>& 良 -->\x1b[31m")
        drawn = drawing(figure, "a title")
    assert "$a_b^c$ &lt;i&gt;&amp; 良 --&gt;\\x1b[31m" in drawn


def test_numbers_are_written_as_people_read_them() -> None:
    assert points(164, 3000) == "5.47 % (164 points)"
    assert points(1, 8) == "12.5 % (1 point)"
    assert [signed(value) for value in (-0.7644, 0.0, np.float64(2))] == ["−0.764", "0", "+2"]


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        ((0.03, 0.8), {"0.05", "0.1", "0.2", "0.5"}),
        ((3e-7, 6e-6), {"5·10⁻⁷", "10⁻⁶", "2·10⁻⁶", "5·10⁻⁶"}),
        ((1e-12, 1.0), {"10⁻¹²", "10⁻⁸", "10⁰"}),
    ],
)
def test_a_logarithmic_axis_has_some_labels_whatever_it_spans(ends: tuple[float, float], shown: set[str]) -> None:
    with style(on_a_page=True):
        figure = new_figure(WIDTH, 3)
        axes = figure.subplots()
        axes.plot([0, 1], ends)
        logarithmic(axes, ends)
        drawn = drawing(figure, "an axis")
    assert shown <= set(re.findall(r">([^<>]+)</text>", drawn))
