"""The documentation site: scripts/documentation builds it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

os.environ["NO_COLOR"] = "1"
os.environ["COLUMNS"] = "80"

import dfeas

project = "dfeas"
author = copyright = "the dfeas developers"
version = release = dfeas.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
nitpicky = False
suppress_warnings = ["myst.strikethrough"]

autosummary_generate = True
shutil.rmtree(Path(__file__).with_name("reference") / "api", ignore_errors=True)  # pages of names that are no longer public
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"

html_theme = "pydata_sphinx_theme"
html_title = "dfeas"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"gallery/*": []}
html_show_sourcelink = False
html_copy_source = False


def unsubstituted(text: str) -> str:
    """Plain text, in which |Ax| is no substitution; a bar at its beginning is that of a block of lines."""
    return re.sub(r"(?<!^)(?<!\\)\|", r"\\|", text)


def plain(*event: Any) -> None:
    """Docstrings, and descriptions of commands."""
    lines: list[str] = event[-1]
    lines[:] = [unsubstituted(line) for line in lines]


def setup(app: Any) -> None:
    """Before numpydoc reads them."""
    app.connect("autodoc-process-docstring", plain, priority=1)
    app.connect("sphinx-click-process-description", plain)
