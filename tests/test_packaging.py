"""What is said about the project in several files is the same in all of them."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import dfeas
from dfeas import errors

PROJECT = Path(__file__).parents[1]
TOML: dict[str, Any] = tomllib.loads((PROJECT / "pyproject.toml").read_text())
EXTRAS: dict[str, list[str]] = TOML["project"]["optional-dependencies"]


def test_messages_name_what_extras_bring() -> None:
    for extra in errors._OPTIONAL:
        assert errors.install(extra) == " ".join(["pip install", *(f'"{each}"' for each in EXTRAS[extra])])
    assert EXTRAS["all"] == [f"dfeas[{','.join(extra for extra in EXTRAS if extra != 'all')}]"]


def test_estimators_say_what_to_install() -> None:
    code = "import sys; sys.modules['sklearn'] = None; import dfeas.estimators"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith(f"which is not installed: {errors.install('sklearn')}")


def test_no_message_names_a_package_of_ours_on_an_index() -> None:
    sources = [*PROJECT.glob("dfeas/**/*.py"), *PROJECT.glob("docs/**/*.md"), PROJECT / "README.md", *PROJECT.glob("cluster/*")]
    assert [str(path) for path in sources if re.search(r"""pip install ['"]?dfeas\b""", path.read_text())] == []


def test_the_version_is_the_installed_one_and_typed() -> None:
    assert re.match(r"\d+(\.\d+)+", dfeas.__version__)
    assert (Path(dfeas.__file__).parent / "py.typed").exists()
    assert "version" in TOML["project"]["dynamic"]
    following = TOML["tool"]["setuptools_scm"]["fallback_version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+\.dev0", following)
    assert (
        f'environ.get("DFEAS_VERSION", "{following.removesuffix(".dev0")}")' in (PROJECT / "recipe" / "meta.yaml").read_text()
    )


def test_the_changelog_begins_with_what_is_unreleased() -> None:
    headings = re.findall(r"^## (.+)$", (PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", each) for each in headings[1:])


def test_the_conda_recipe_needs_what_the_wheel_needs() -> None:
    text = (PROJECT / "recipe" / "meta.yaml").read_text()
    run = text.partition("  run:\n")[2].partition("\n\n")[0]
    needed = {line.strip(" -").replace(" ", "").replace("dask-core", "dask") for line in run.splitlines()}
    assert needed == {*TOML["project"]["dependencies"], "python>={{python_min}}"}


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", [".github/workflows/ci.yml"]),
        ("citation-file-format", ["CITATION.cff"]),
        ("github-issue-forms", [".github/ISSUE_TEMPLATE/wrong.yml", ".github/ISSUE_TEMPLATE/wish.yml"]),
    ],
)
def test_files_for_hosts_are_of_their_schemas(schema: str, files: list[str]) -> None:
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        f"vendor.{schema}",
        "--output-format",
        "json",
        *files,
    ]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["status"] == "ok", done.stdout
