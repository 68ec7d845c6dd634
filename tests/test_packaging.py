"""What is said about the project in several files is the same in all of them."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import dfeas
from dfeas import errors
from scripts.describe import describe

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


def test_one_version_stands_everywhere() -> None:
    (version,) = re.findall(r'^  version: "(.+)"$', (PROJECT / "recipe" / "recipe.yaml").read_text(), re.MULTILINE)
    (cited,) = re.findall(r"^version: (.+)$", (PROJECT / "CITATION.cff").read_text(), re.MULTILINE)
    assert {version, cited, TOML["project"]["version"]} == {dfeas.__version__}
    assert (Path(dfeas.__file__).parent / "py.typed").exists()


def test_the_version_says_its_commit_in_a_clone_and_in_an_archive(tmp_path: Path) -> None:
    def say(package: Path, **more: str) -> str:
        command = [sys.executable, "-c", "from dfeas.cli.main import commands; commands(['--version'])"]
        here = os.environ | more
        return subprocess.run(command, cwd=package, env=here, capture_output=True, text=True, check=True).stdout.strip()

    git = ["git", "-C", str(PROJECT)]
    if subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, check=False).returncode:
        pytest.skip("not a clone")
    (tmp_path / "archive.tar").write_bytes(
        subprocess.run([*git, "archive", "HEAD", "dfeas"], capture_output=True, check=True).stdout
    )
    shutil.unpack_archive(tmp_path / "archive.tar", tmp_path, filter="data")
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    assert say(tmp_path) == f"dfeas, version {dfeas.__version__} (commit {commit})"
    (tmp_path / "dfeas" / "commit").write_text("$Format:%h$")
    (tmp_path / "pyproject.toml").write_text('name = "other"')
    subprocess.run(["git", "init", "-q", tmp_path], check=True)  # a copy beside the repository of another project
    other = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=b@c"]
    subprocess.run([*other, "commit", "-q", "--allow-empty", "-m", "Begin"], check=True)
    assert say(tmp_path) == f"dfeas, version {dfeas.__version__}"
    (tmp_path / "dfeas" / "commit").unlink()
    assert say(tmp_path) == f"dfeas, version {dfeas.__version__}"
    assert say(PROJECT, GIT_DIR=str(tmp_path / ".git")) in (
        f"dfeas, version {dfeas.__version__} (commit {commit}{dirty})" for dirty in ("", "-dirty")
    )


def test_what_an_index_shows_has_no_link_that_leads_nowhere() -> None:
    readme = (PROJECT / "README.md").read_text()
    links = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
    alone, hosted = describe(readme, "1.2.3"), describe(readme, "1.2.3", "https://host/us/dfeas/")
    for text in (alone, hosted):
        assert all(target.startswith(("https://", "#")) for target in links.findall(text))
    assert len(links.findall(hosted)) == len(links.findall(readme)) > len(links.findall(alone))
    assert "](https://host/us/dfeas/blob/v1.2.3/docs/pictures/overview-margin.svg?raw=true)" in hosted
    assert "![" not in alone
    assert "[Your first verdict](" in hosted
    assert "Your first verdict" in alone


def test_the_changelog_begins_with_what_is_unreleased() -> None:
    headings = re.findall(r"^## (.+)$", (PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", each) for each in headings[1:])


def test_the_conda_recipe_needs_what_the_wheel_needs() -> None:
    text = (PROJECT / "recipe" / "recipe.yaml").read_text()
    run = text.partition("  run:\n")[2].partition("\n\n")[0]
    needed = {line.strip(" -").replace(" ", "").replace("dask-core", "dask") for line in run.splitlines()}
    assert needed == {*TOML["project"]["dependencies"], "python>=${{python_min}}"}


def test_the_workflow_pins_what_it_uses_and_keeps_no_credentials() -> None:
    zizmor = Path(sys.executable).with_name("zizmor")
    done = subprocess.run([zizmor, "--offline", ".github"], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", [".github/workflows/ci.yml"]),
        ("citation-file-format", ["CITATION.cff"]),
        ("github-issue-forms", [".github/ISSUE_TEMPLATE/wrong.yml", ".github/ISSUE_TEMPLATE/wish.yml"]),
    ],
)
def test_files_for_hosts_are_of_their_schemas(schema: str, files: list[str]) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", "--output-format", "json"]
    done = subprocess.run([*command, *files], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["status"] == "ok", done.stdout
