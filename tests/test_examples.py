"""The examples in scripts/ run and say what they promise."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
README = SCRIPTS.parent / "README.md"
GALLERY = {
    "cancer_path": "60 fits in 5 reads",
    "cancer_race": "working-set: infeasible",
    "cancer_regression": "30 measurements: complete",
    "diabetes_hull": "13 of 80 lie outside",
    "digits_classes": "not separable: 8 9",
    "iris_planes": "versicolor: infeasible, 3 points in conflict",
    "iris_wrong_label": "named first: 37 of 50",
    "macro_stability": "1 A: feasible (rigorous)",
    "mnist_kernel": "rbf, gamma = 1e-06: feasible",
    "survey_counts": "all 20190 people: overlap",
    "wine_margins": "as stored",
}

SAID = {
    "example_laptop": "the best margin is 0.0",
    "example_cluster": "the same bits as in one process: True",
    "example_mislabelled": "without it: feasible",
    "example_in_hull": "is outside",
    "example_logistic": "quasi-complete separation: level yes of exposed",
    "example_svm_path": "<- chosen",
}


def test_readme_links_all_examples() -> None:
    assert {path.stem for path in SCRIPTS.glob("example_*.py")} == set(SAID)
    text = README.read_text()
    assert all(f"(scripts/{name}.py)" in text for name in SAID)


@pytest.mark.parametrize("name", SAID)
def test_an_example_says_what_it_promises(
    name: str, tmp_path: Path, request: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"example_laptop": ["20000"], "example_svm_path": [str(tmp_path / "run")]}.get(name, [])
    if name == "example_cluster":
        words = [request.getfixturevalue("client").scheduler.address, str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [name, *words])
    runpy.run_path(str(SCRIPTS / f"{name}.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert SAID[name] in said
    if name == "example_mislabelled":
        numbers = said.split("point ")[1].split(",")[0], said.split("wrong one is ")[1].split()[0]
        assert numbers[0] == numbers[1]


def test_the_gallery_shows_all_of_its_scripts() -> None:
    text = (SCRIPTS.parent / "docs" / "gallery" / "index.md").read_text()
    assert {path.stem for path in (SCRIPTS / "gallery").glob("*.py")} == set(GALLERY)
    for name in GALLERY:
        assert f"]({name}.svg)" in text
        assert text.count(f"scripts/gallery/{name}.py") == 2


@pytest.mark.parametrize("name", GALLERY)
def test_a_picture_of_the_gallery_is_drawn(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [name, str(picture)])
    runpy.run_path(str(SCRIPTS / "gallery" / f"{name}.py"), run_name="__main__")
    assert GALLERY[name] in capsys.readouterr().out
    assert 5_000 < picture.stat().st_size < 200_000
