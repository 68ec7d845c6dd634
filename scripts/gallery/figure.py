"""How the pictures of the gallery look, and where they go: the path that a script is given, or its own name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

BLUE, ORANGE, RED, GREY = "#2a6fbb", "#e08a1e", "#c0392b", "#9aa0a6"
SIZE = (6.4, 3.8)


def axes(columns: int = 1, **options: Any) -> Any:
    """Axes of a new figure, plain and small."""
    mpl.rcParams.update(
        {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "svg.hashsalt": "dfeas"}
    )
    return plt.subplots(1, columns, figsize=SIZE, layout="constrained", **options)[1]


def save() -> None:
    """Write the figure to the path that was given, or beside this script, and say where."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(f"{Path(sys.argv[0]).stem}.png")
    plt.savefig(path, dpi=90, metadata={"Software": None})
    plt.close("all")
    print(f"picture: {path}")
