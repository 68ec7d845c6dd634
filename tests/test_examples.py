"""The examples in scripts/ run and say what they promise."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
README = SCRIPTS.parent / "README.md"

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
