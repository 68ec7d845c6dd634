"""python tests/bounds.py: whether the packages that are installed are the lower bounds of pyproject.toml. Exit code 1 if not.

A bound that another package hides was never tested: raise it to what is installed, or take away what hides it.
"""

import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version


def hidden() -> list[str]:
    """Requirements whose bounds are not what is installed, and what is."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = [line for name, lines in project["optional-dependencies"].items() if name != "all" for line in lines]
    wrong = []
    for line in (*project["dependencies"], *extras):
        asked = Requirement(line)
        bound = next(Version(each.version) for each in asked.specifier if each.operator == ">=")
        if Version(version(asked.name)) != bound:
            wrong.append(f"{asked}: {version(asked.name)} is installed")
    return wrong


if __name__ == "__main__":
    wrong = hidden()
    print("\n".join(wrong) or "all lower bounds are installed")  # noqa: T201
    sys.exit(bool(wrong))
