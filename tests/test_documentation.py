"""README and the documentation: their code runs and prints what they say, their links lead somewhere, paragraphs are short."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dfeas
import dfeas.estimators
from dfeas.cones.space import CONE_METHODS
from dfeas.methods.registry import base_name
from tests import documentation
from tests.documentation import PAGES, PROJECT, blocks

NAMES = [str(path.relative_to(PROJECT)) for path in PAGES]
WITH_CODE = [
    name
    for name, path in zip(NAMES, PAGES, strict=True)
    if any(block.language in ("python", "console") and not block.skipped for block in blocks(path.read_text()))
]
GUIDES = [
    "CONTRIBUTING.md",
    "GOVERNANCE.md",
    "ROADMAP.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "CHANGELOG.md",
    "cluster/README.md",
    "tests/README.md",
]
MOST_WORDS = 90
NOT_USED = (
    r"simply|obviously|easily|utilize|leverage|seamless|robust|blazing|whitelist|blacklist|slave|sanity|crazy|trivial|"
    r"datapoint|data point|hyper-plane|of course|in order to|e\.g|i\.e|etc"
)
INSTEAD = {
    "likeness(?:es)?": "similarity",
    "(?:the same|the other|the|its) bits": "bitwise identical",
    "mend(?:s|ed|ing)?|go(?:es)? wrong": "fix, correct",
    "(?:has|have|had) to go|takes? (?:\\w+ )?out": "must be removed",
    "goes on|for ever|of yours": "continues, without bound, your",
    "told|tells? (?:whether|which|how)|says? so": "reports, decides",
    "without a price|has a price|priced": "penalised",
    "whole numbers?": "integer",
    "somebody|anybody|to blame|accuses?": "a person who does something, or cause",
    "(?:scikit-learn|statsmodels|SciPy|R) brings": "ships",
    "memory holds": "fits in memory",
    ", too(?=[,.;:)]| and| \\|)": "also, before the verb",
}
"""Homely words on pages for users, and the terms to use instead."""


@pytest.mark.parametrize("name", WITH_CODE)
def test_code_prints_what_the_page_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DFEAS_PROGRESS", "0")
    wrong = list(documentation.Page(PROJECT / name).differences())
    assert [(each.at + 1, each.expected, each.came) for each in wrong] == []


def without_code(text: str) -> str:
    """A page without its blocks, and without code in a line."""
    text = re.sub(r"^\s*(`{3,})[\s\S]*?^\s*\1\s*$", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "CODE", text)


def anchors(path: Path) -> set[str]:
    """Of the headings of a page, as hosts and MyST make them, and of targets in it."""
    headings = re.findall(r"^#+ (.+)$", without_code(path.read_text()).replace("CODE", ""), re.MULTILINE)
    plain = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return plain | set(re.findall(r"^\(([\w-]+)\)=$", path.read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", [*NAMES, *GUIDES])
def test_links_lead_somewhere(name: str) -> None:
    path = PROJECT / name
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            wrong.append(target)
    assert wrong == []


@pytest.mark.parametrize("name", NAMES)
def test_paragraphs_are_short(name: str) -> None:
    text = re.sub(r"^\s*(`{3,})[\s\S]*?^\s*\1\s*$", "", (PROJECT / name).read_text(), flags=re.MULTILINE)
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[*-]|\d+\.) )|\n(?=\|)", text)
    assert [part for part in parts if len(part.split()) > MOST_WORDS and not part.startswith("|")] == []


@pytest.mark.parametrize("name", [*NAMES, *GUIDES])
def test_words_that_are_not_used(name: str) -> None:
    if name == "docs/development/contributing.md":  # names them
        return
    text = without_code((PROJECT / name).read_text())
    assert re.findall(rf"\b(?:{NOT_USED})\b", text, re.IGNORECASE) == []


@pytest.mark.parametrize("name", [*(name for name in NAMES if not name.startswith("docs/development/")), "cluster/README.md"])
def test_terms_stand_where_homely_words_could(name: str) -> None:
    text = " ".join(without_code((PROJECT / name).read_text()).split())
    found = {
        (word, term) for word, term in INSTEAD.items() for _ in re.finditer(rf"(?<!\w)(?:{word})(?!\w)", text, re.IGNORECASE)
    }
    assert found == set()


def public_docstrings() -> dict[str, str]:
    """Of what users call, and of the methods of what they get."""
    found = {}
    for module in (dfeas, dfeas.estimators):
        for name in module.__all__:
            public = getattr(module, name)
            members = [each for each in vars(public) if not each.startswith("_")] if inspect.isclass(public) else []
            for member in [public, *(getattr(public, each) for each in members)]:
                if callable(member) or isinstance(member, property):
                    found[f"{name} {getattr(member, '__name__', '')}"] = inspect.getdoc(member) or ""
    return found


def test_docstrings_have_the_terms_of_the_pages() -> None:
    wrong = {
        (name, word)
        for name, text in public_docstrings().items()
        for word in INSTEAD
        if re.search(rf"(?<!\w)(?:{word})(?!\w)", re.sub(r"``[^`]*``", "CODE", " ".join(text.split())), re.IGNORECASE)
    }
    assert wrong == set()


def test_the_reference_has_all_public_names() -> None:
    text = (PROJECT / "docs" / "reference" / "api.md").read_text()
    assert [
        name for name in dfeas.__all__ if name != "__version__" and not re.search(rf"^   {name}$|`dfeas\.{name}`", text, re.M)
    ] == []


def test_each_item_of_the_papers_has_its_file_and_its_test() -> None:
    text = (PROJECT / "docs/explanation/methods.md").read_text()
    table = text.partition("## What the papers have")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    rows = [re.search(r"\| `(\S+\.py)` \| `(\S+\.py)::(test_\w+)` \|$", line) for line in lines]
    assert [line for line, row in zip(lines, rows, strict=True) if row is None] == []
    assert len(rows) >= 34
    found = [row.groups() for row in rows if row is not None]
    assert [file for file, _, _ in found if not (PROJECT / file).is_file()] == []
    assert [name for _, tests, name in found if f"def {name}(" not in (PROJECT / tests).read_text()] == []
    calls = [re.findall(r"`([^`]+)`", line.split(" | ")[1]) for line in lines]
    assert [line for line, each in zip(lines, calls, strict=True) if not each and "the same" not in line.split(" | ")[1]] == []
    assert [call for each in calls for call in each if not is_a_call(call)] == []


def is_a_call(text: str) -> bool:
    """Whether it can be made: a method, an option of solve, a public name with its options, or a program that is there."""
    if text.startswith("python "):
        return (PROJECT / text.split()[1]).is_file()
    name, options = re.fullmatch(r"(\w*)\(?(.*?)\)?", text).groups() if text[0] not in "\"'" else ("", f"method={text}")
    if "=" in text and "(" not in text.split("=")[0]:
        name, options = "", text
    verb = getattr(dfeas, {"": "solve", "verify": "verify_run"}.get(name, name), None)
    asked = re.findall(r'(\w+)=("[^"]*"|\([^)]*\))?', options)
    methods = {*dfeas.METHODS, *CONE_METHODS, "sgd"}
    return callable(verb) and all(
        option in inspect.signature(verb).parameters and (option != "method" or base_name(value.strip('"')) in methods)
        for option, value in asked
    )


def test_a_call_that_is_not_there_is_found() -> None:
    made = ['method="winnow"', '"mirror-prox"', "kernel=", 'transform=("lengths",)', "soft_margin(C=, folds=)", "verify"]
    assert [call for call in made if not is_a_call(call)] == []
    gone = [
        'method="winow"',
        '"mirror-prix"',
        "kernels=",
        "soft_margin(folds=, price=)",
        "hard_margins",
        "python benchmarks/gone.py",
    ]
    assert [call for call in gone if is_a_call(call)] == []


def test_readme_is_a_screen_and_a_half() -> None:
    assert len((PROJECT / "README.md").read_text().splitlines()) <= 150


@pytest.mark.parametrize(
    ("expected", "came", "is_same"),
    [
        ("margin 0.0391 .. 0.0695, 2.1 s", "margin 0.0395 .. 0.0690, 913 s", True),
        ("margin 0.0391", "margin 0.0491", False),
        ("feasible", "infeasible", False),
        ("a ... z 3", "a\nb c\nz 3", True),
        ("a ... z 3", "a\nb c\nz 4", False),
        ("2 points", "2 points\nand more", False),
    ],
)
def test_outputs_are_compared(expected: str, came: str, is_same: bool) -> None:
    assert documentation.same(expected, came) is is_same


def test_what_a_machine_allows_is_not_compared() -> None:
    said, came = "at most 2 threads, 157.14 MiB, 2 passes", "at most 64 threads, 9.5 GiB, 2 passes"
    assert documentation.same(said, came, documentation.OF_A_MACHINE)
    assert not documentation.same(said, came)
    assert not documentation.same(said, came.replace("2 passes", "3 passes"), documentation.OF_A_MACHINE)


def test_a_page_that_prints_something_else_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n\n```console\n$ dfeas help exit-codes\nnothing\n```\n")
    monkeypatch.chdir(tmp_path)
    found = list(documentation.Page(page).differences())
    assert [each.at for each in found] == [5, 10]
    documentation.write(page, found)
    assert list(documentation.Page(page).differences()) == []


@pytest.mark.parametrize(("kind", "intercept"), [("gaussian", False), ("halfspace", True)])
def test_the_independent_check(dataset: Callable[..., Any], tmp_path: Path, kind: str, intercept: bool) -> None:
    page = (PROJECT / "docs" / "howto" / "check_certificate.md").read_text()
    (script,) = (text.split("```")[0] for text in page.split("```python\n") if "python check.py" in text[:40])
    assert len(script.splitlines()) <= 40
    (tmp_path / "check.py").write_text(script)
    path, _ = dataset(kind, 6, 2000, block_rows=300)
    result = dfeas.solve(path, intercept=intercept, out=tmp_path / "run")
    words = [sys.executable, "check.py", path, "run/certificate.npz", *["--no-intercept"] * (not intercept)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    if result.verdict == "feasible":
        assert done.stdout == f"every point has a margin of {result.margin_lower:.6g} or more: feasible\n"
    else:
        assert done.stdout.startswith("|Ax| = ")
        assert float(done.stdout.split()[2]) < 1e-12
    file = next((path / "label").glob("c*0*"))
    file.write_bytes(bytes([file.read_bytes()[0] ^ 254]) + file.read_bytes()[1:])
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode != 0
