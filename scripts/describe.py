"""Makes README.md what an index shows: there links lead nowhere that lead to files beside it, and pictures are not there. Where
``project.urls`` has a ``Source``, they become links to that version; otherwise their words stay, and pictures go.

usage: python scripts/describe.py FOLDER-OF-SOURCES
"""

import re
import sys
import tomllib
from pathlib import Path


def describe(readme: str, version: str, source: str | None = None) -> str:
    """The description of a version from its README, with links into ``source``, the address of the repository."""
    at = None if source is None else f"{source.rstrip('/')}/blob/v{version}"

    def link(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        if re.match(r"https?:|#", target):
            return found[0]
        if at is None:
            return "" if picture else words
        return f"{picture}[{words}]({at}/{target}{'?raw=true' if picture else ''})"

    return re.sub(r"\n{3,}", "\n\n", re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", link, readme))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    path = folder / project["readme"]
    path.write_text(describe(path.read_text(), project["version"], project.get("urls", {}).get("Source")))
