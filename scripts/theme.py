"""Figures of the documentation as SVG in the colours of their page: text and axes have its colour, the ground is transparent.

A page that includes the SVG itself gives it the colour; where the file is an image, the reader's choice of light or dark does.
"""

from __future__ import annotations

import re
from pathlib import Path

SETTINGS = {"savefig.transparent": True, "svg.fonttype": "path", "font.size": 9}
"""Of matplotlib, while a figure is drawn. With ``svg.hashsalt``, a name, the file is the same each time."""
ALONE = "svg:root{color:#24292f}@media(prefers-color-scheme:dark){svg:root{color:#e6edf3}}"


def follow_theme(path: Path) -> None:
    """Rewrite an SVG of matplotlib: what is black becomes the text colour; no date, no names that two figures share."""
    text = path.read_text()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[a-z0-9.]+_\d+">', "<g>", text)
    text = text.replace("#000000", "currentColor")
    text = text.replace("<svg ", '<svg fill="currentColor" stroke-linejoin="round" ', 1)
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", f"<style>{ALONE}</style>", text, count=1, flags=re.DOTALL)
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n")
