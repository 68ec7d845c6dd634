"""How a page looks: in the light and in the dark, figures whose scales can be read, text of data as it is."""

import math
import re
from base64 import b64decode
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.data.generate.points import Instance
from dfeas.figures import SERIES, draw_brackets, draw_course, draw_margins, encode_figure, style
from dfeas.passes.survey import EDGES, HistogramAnswer
from dfeas.reports.compare import compare
from dfeas.reports.page import format_points, format_signed, report
from tests.reports.making import parse


def luminance(colour: str) -> float:
    """Of WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_what_is_drawn_stands_out_from_white() -> None:
    assert min(1.05 / (luminance(colour) + 0.05) for colour in SERIES) >= 3


def in_oklab(colour: str) -> Any:
    """A colour where distances are what people see (Ottosson 2020)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    to_cones = [[0.4122215, 0.5363326, 0.0514459], [0.2119035, 0.6806996, 0.1073970], [0.0883025, 0.2817188, 0.6299787]]
    to_lab = [[0.2104543, 0.7936178, -0.0040720], [1.9779985, -2.4285922, 0.4505937], [0.0259040, 0.7827718, -0.8086758]]
    return np.array(to_lab) @ np.cbrt(np.array(to_cones) @ linear)


def test_no_two_runs_have_colours_that_are_alike() -> None:
    assert min(np.linalg.norm(in_oklab(one) - in_oklab(two)) for one, two in combinations(SERIES, 2)) > 0.1


@pytest.mark.parametrize("length", [8, 60])
def test_a_legend_of_many_runs_is_not_cut(length: int) -> None:
    records = [{"passes": passes, "margin_lower": -0.5, "margin_upper": 0.5} for passes in (1, 2, 300)]
    with style():
        figure = draw_brackets({f"{run}{'perceptron-' * 6:.{length}}": records for run in range(7)}, [0.001])
        figure.draw_without_rendering()
        box = figure.legends[0].get_window_extent()
    assert figure.bbox.x0 <= box.x0
    assert box.x1 <= figure.bbox.x1


def test_a_page_and_its_figures_are_light_or_dark_as_its_reader_is(tmp_path: Path) -> None:
    dfeas.generate(Instance("planted", 4, 200, 0.05), tmp_path / "data")
    dfeas.race(tmp_path / "data", methods=["perceptron", "working-set"], out=tmp_path / "race")
    path = report([tmp_path / "race"], data=False)
    assert "color-scheme: light dark" in path.read_text()
    page = parse(path)
    for drawn in page.drawn:
        assert "prefers-color-scheme:dark" in drawn
        assert not re.search(r"#(?:ffffff|000000)|fill: white", drawn)  # nothing that one of the themes hides
    assert all(text in page.drawn[0] for text in ("perceptron", "working-set", "passes over the data"))


def test_a_method_that_names_its_run_is_not_said_twice(tmp_path: Path) -> None:
    dfeas.generate(Instance("planted", 4, 200, 0.05), tmp_path / "data")
    dfeas.race(tmp_path / "data", methods=["perceptron", "working-set"], out=tmp_path / "race")
    dfeas.solve(tmp_path / "data", out=tmp_path / "mine")
    assert str(compare([tmp_path / "race"])).split()[:2] == ["run", "verdict"]
    assert str(compare([tmp_path / "race", tmp_path / "mine"])).split()[:2] == ["run", "method"]


def test_text_of_data_is_drawn_as_it_is() -> None:
    counts = np.zeros((2, len(EDGES) - 1), np.int64)
    counts[:, -3] = 5
    with style():
        drawn = encode_figure(draw_margins(HistogramAnswer(EDGES, counts), ("$a_b^c$ <i>& 良 -->\x1b[31m", "_b"), 0.0))
    text = b64decode(drawn.partition(",")[2]).decode()
    assert "($a_b^c$ &lt;i&gt;&amp; 良 --&gt;\\x1b[31m)" in text.replace("( ", "(")
    assert "_b)" in text


def test_numbers_are_written_as_people_read_them() -> None:
    assert format_points(164, 3000) == "5.47 % (164 points)"
    assert format_points(1, 8) == "12.5 % (1 point)"
    assert [format_signed(value) for value in (-0.7644, 0.0, np.float64(2))] == ["−0.764", "0", "+2"]


@pytest.mark.parametrize(
    ("ends", "shown"),
    [((0.03, 0.8), {0.01, 0.1, 1.0}), ((3e-7, 6e-6), {1e-7, 1e-6, 1e-5}), ((1e-12, 1.0), {1e-12, 1.0})],
)
def test_a_scale_of_decades_has_labels_whatever_it_spans(ends: tuple[float, float], shown: set[float]) -> None:
    with style():
        figure = draw_course([("widest gap", [1, 2], [ends[1], ends[0]], {})], {"asked": ends[0]}, "relative gap")
        figure.draw_without_rendering()
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    ticks = [float(each) for each in axes.get_yticks() if low <= each <= high]
    assert len(ticks) >= 3
    assert low <= ends[0] <= ends[1] <= high
    for end in (min(ticks), max(ticks)):  # a power of ten is rounded in other ways on other processors
        assert any(math.isclose(end, each) for each in (low, *shown, high))


def test_points_on_the_plane_are_seen() -> None:
    counts = np.zeros((2, len(EDGES) - 1), np.int64)
    counts[1, [len(EDGES) // 2 - 1, -3]] = 7
    with style():
        figure = draw_margins(HistogramAnswer(EDGES, counts), ("-1", "+1"), 0.0)
    (axes,) = figure.axes
    left, right = axes.get_xlim()
    assert left <= 0 < right
