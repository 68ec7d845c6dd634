"""Conflicts on a page: who stands out, who is named, and that nobody is accused without a reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dfeas
from dfeas.data.generate.points import Instance
from dfeas.reports.page import count_outliers, explain_conflict, order_conflict, report
from tests.reports.making import parse


def entries(*scores: float | None) -> list[dict[str, Any]]:
    return [{"point": 10 * i, "label": f"class {i % 2}", "weight": 0.1, "score": score} for i, score in enumerate(scores)]


def outliers(conflict: list[dict[str, Any]]) -> int:
    ordered = order_conflict(conflict)
    assert ordered is not None
    return count_outliers(np.array([entry["score"] for entry in ordered]))


def test_a_wrong_label_is_named_in_the_headline_and_stands_out_in_the_figure(tmp_path: Path) -> None:
    instance = Instance("one-flip", 8, 3000, 0.05)
    dfeas.generate(instance, tmp_path / "data")
    result = dfeas.solve(tmp_path / "data", out=tmp_path / "run")
    page = parse(report([tmp_path / "run"], data=False))
    label = result.conflicts[0]["label"]
    (headline,) = page.texts["h2"]
    assert (
        headline == f"Infeasible: no hyperplane separates the points; suspect: point {instance.wrong_point} (labelled {label})"
    )
    assert "Scores, sorted" in page.pictures
    assert "stands out" in " ".join(page.drawn)
    assert "lower bound" not in " ".join(page.drawn)


def test_people_who_truly_overlap_are_not_accused(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    people = np.column_stack([rng.integers(18, 90, 400), rng.lognormal(10, 0.7, 400), rng.integers(0, 2, 400)])
    dfeas.solve(people, rng.permutation(["repaid", "default"] * 200), intercept=True, transform="std", out=tmp_path / "run")
    page = parse(report([tmp_path / "run"], data=False))
    assert page.texts["h2"] == ["Infeasible: no hyperplane separates the points"]
    assert any("none stands out" in text for text in page.texts["p"])


def test_a_twin_with_the_other_label_is_as_far_as_the_point_itself(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    labels = np.where(X[:, 0] > 0, 1, -1)
    dfeas.solve(np.vstack([X, X[7]]), np.append(labels, -labels[7]), out=tmp_path / "run")
    page = parse(report([tmp_path / "run"], data=False))
    assert page.texts["h2"] == ["Infeasible: no hyperplane separates the points"]
    assert any("none stands out: point 50, labelled -1, has the lowest score" in text for text in page.texts["p"])


@pytest.mark.parametrize("m", [2, 10, 30])
def test_one_wrong_label_is_found_and_overlap_accuses_nobody(m: int) -> None:
    rng = np.random.default_rng(m)
    X, plane = rng.standard_normal((1000, m)), rng.standard_normal(m)
    labels = np.where(X @ plane > 0, 1, -1)
    wrong = int(np.abs(X @ plane).argsort()[-50])
    labels[wrong] *= -1
    one = dfeas.solve(X, labels).conflicts
    many = dfeas.solve(X, np.where(X @ plane + np.linalg.norm(plane) * rng.standard_normal(1000) > 0, 1, -1)).conflicts
    assert (outliers(one), one[0]["point"]) == (1, wrong)
    assert outliers(many) == 0


def test_where_no_score_is_known_weights_are_shown_and_nobody_is_named() -> None:
    assert order_conflict(entries(None, None)) is None
    assert order_conflict(entries(-0.5, None)) is None
    assert order_conflict([]) is None


@pytest.mark.parametrize(
    ("scores", "count", "suspects"),
    [
        ((-0.9, -0.1, -0.1, 0.2), 1, "suspect: point 0 (labelled class 0)"),
        ((-0.9, -0.8, -0.1, -0.1, 0.0), 2, "suspects: points 0 (labelled class 0), 10 (labelled class 1)"),
        ((-0.9, -0.88, -0.87, -0.86, 0.0, 0.0, 0.0, 0.0, 0.0), 4, "4 points stand out"),
        ((-0.3, -0.2, -0.1, 0.0, 0.1), 0, ""),  # even steps
        ((0.1, 0.8, 0.8, 0.9), 0, ""),  # on its own side
        ((-0.9, 0.1, 0.1, 0.3), 0, ""),  # others are far from the plane as well
        ((-0.9, -0.9, 0.1, 0.1), 0, ""),  # half of them are no exception
        ((-0.5, -0.5, -0.5), 0, ""),
        ((-0.5,), 0, ""),
    ],
)
def test_who_stands_out(scores: tuple[float, ...], count: int, suspects: str) -> None:
    ordered = order_conflict(entries(*scores))
    assert ordered is not None
    assert (outliers(entries(*scores)), explain_conflict(ordered)[0]) == (count, suspects)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_those_who_stand_out_are_fewer_than_the_others_on_the_wrong_side_and_far_from_them(scores: list[float]) -> None:
    ordered = order_conflict(entries(*scores))
    assert ordered is not None
    found, count = [entry["score"] for entry in ordered], outliers(entries(*scores))
    assert sorted(scores) == found
    assert explain_conflict(ordered)[1]
    if count:
        assert 2 * count < len(scores)
        assert found[count - 1] < 0
        assert all(abs(score) <= -found[count - 1] / 4 for score in found[count:])
