"""Draws the pictures of the gallery: each script of scripts/gallery writes docs/gallery/NAME.png.

python scripts/gallery.py [NAME]...
"""

import subprocess
import sys
import time
from pathlib import Path

SCRIPTS = Path(__file__).parent / "gallery"
PICTURES = Path(__file__).parents[1] / "docs" / "gallery"


def main(names: list[str]) -> None:
    """Run the scripts, all of them or some."""
    for script in sorted(SCRIPTS.glob("*.py")):
        if not names or script.stem in names:
            began = time.monotonic()
            subprocess.run([sys.executable, script, PICTURES / f"{script.stem}.png"], check=True)
            print(f"{time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
