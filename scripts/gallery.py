"""Draws the figures of the gallery: each script of scripts/gallery writes docs/gallery/NAME.svg, in the colours of the page.

python scripts/gallery.py [NAME]...
"""

import runpy
import sys
import time
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

from dfeas.figures import follow_theme

SCRIPTS = Path(__file__).parent / "gallery"
FIGURES = Path(__file__).parents[1] / "docs" / "gallery"


def main(names: list[str]) -> None:
    """Run the scripts, all of them or some."""
    for script in sorted(SCRIPTS.glob("*.py")):
        if not names or script.stem in names:
            began, figure = time.monotonic(), FIGURES / f"{script.stem}.svg"
            sys.argv = [str(script), str(figure)]
            with mpl.rc_context({"savefig.transparent": True, "svg.hashsalt": script.stem}):
                runpy.run_path(str(script), run_name="__main__")
            plt.close("all")
            figure.write_text(follow_theme(figure.read_text()))
            print(f"{time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
