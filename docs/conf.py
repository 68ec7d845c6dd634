"""The documentation site: scripts/documentation builds it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

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
    "sphinx_copybutton",
    "sphinx_design",
]
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
html_math_renderer = "mathml"
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
nitpicky = False
suppress_warnings = ["myst.strikethrough"]

autosummary_generate = True
# of names that are no longer public
shutil.rmtree(Path(__file__).with_name("reference") / "names", ignore_errors=True)
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"

html_theme = "pydata_sphinx_theme"
html_title = "dfeas"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "pictures/logo.svg"
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "logo": {"text": f"dfeas {version}", "image_light": "pictures/logo.svg", "image_dark": "pictures/logo.svg"},
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"gallery/index": [], "index": []}
html_show_sourcelink = False
html_copy_source = False


def unsubstituted(text: str) -> str:
    """Plain text, in which |Ax| is no substitution; a bar at its beginning is that of a block of lines."""
    return re.sub(r"(?<!^)(?<!\\)\|", r"\\|", text)


def plain(*event: Any) -> None:
    """Docstrings, and descriptions of commands."""
    lines: list[str] = event[-1]
    lines[:] = [unsubstituted(line) for line in lines]


def describe(app: Any, context: Any, lines: list[str]) -> None:
    """Of a command; topics of help, a line each, are a list of definitions."""
    plain(lines)
    described: list[str] = []
    for line in lines:
        topic = re.match(r"\| (dfeas help \S+) +(.+)", line)
        described += ["", f"``{topic[1]}``", f"    {topic[2]}"] if topic else [line]
    lines[:] = described


def append_examples(app: Any, context: Any, lines: list[str]) -> None:
    """As ``--help`` has them, with a prompt."""
    examples = getattr(context.command, "examples", ())
    if examples:
        lines += ["", ".. rubric:: Examples", "", ".. code-block:: console", "", *(f"   $ {each}" for each in examples), ""]


def write_formula(translator: Any, node: Any) -> None:
    """As MathML, which browsers set themselves: no script, no fonts, no network."""
    from docutils.nodes import SkipNode

    display = "inline" if node.tagname == "math" else "block"
    translator.body.append(convert(node.astext(), display=display))
    raise SkipNode


def include_figures(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Figures of ours as a part of the page, so that they have the colour of its text in light and in dark."""

    places = {name: Path(app.srcdir) / place for place, name in app.builder.images.items()}

    def include(image: re.Match[str]) -> str:
        figure = places[image["name"]].read_text()
        if "currentColor" not in figure:
            return image[0]
        alt = re.search(r'alt="[^"]*"', image[0])
        shown = f'<svg class="figure" role="img" aria-{alt[0].replace("alt", "label", 1) if alt else "hidden=true"} '
        return shown + figure.partition("<svg ")[2]

    if "body" in context:
        context["body"] = re.sub(r'<img [^>]*src="[^"]*_images/(?P<name>[^"/]+\.svg)"[^>]*>', include, context["body"])


def setup(app: Any) -> None:
    """Before numpydoc reads them; the notes of commands follow their options."""
    from click import Context

    from dfeas.cli.command import Command
    from dfeas.cli.main import NAMED, commands

    for name in NAMED:
        command = commands.get_command(Context(commands), name)
        if isinstance(command, Command) and command.notes is not None:
            command.epilog = command.notes()
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("html-page-context", include_figures)
    app.connect("autodoc-process-docstring", plain, priority=1)
    app.connect("sphinx-click-process-description", describe)
    app.connect("sphinx-click-process-epilog", append_examples)
