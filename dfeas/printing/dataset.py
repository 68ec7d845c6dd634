"""A dataset: points, blocks, classes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dfeas.passes.points import working
from dfeas.printing.lines import say
from dfeas.store.cone_table import ConeTable

MOST_CLASSES = 20
"""Classes that are printed with their points."""


def show_header(path: str, values: dict[str, Any], as_json: bool) -> None:
    """A dataset: the header that it was written with, or what is known of an array."""
    size = values["n"] * values["m"] * np.dtype(values["dtype"]).itemsize
    if (entries := values.get("entries")) is not None:
        index_size = 4 if values["m"] < 2**31 else 8
        size = entries * (np.dtype(values["dtype"]).itemsize + index_size) + 8 * values["n"]
    cones = values.get("cones")
    blocks = -(-values["n"] // values["block_rows"])
    most = values.get("block_entries")
    worked = working(np.dtype(values["dtype"])).name
    work = "" if worked == values["dtype"] else f" (worked on as {worked})"
    if as_json:
        say(json.dumps({"path": str(path), "bytes": size, "blocks": blocks, **values}))
        return
    say(f"{path}")
    what = "points" if cones is None else "rows"
    say(f"  {what:12} {values['n']} of {values['m']} features, {values['dtype']}{work}, {size / 1e9:.3g} GB")
    say(f"  blocks       {blocks} of {values['block_rows']} {what}")
    if cones is not None:
        say(f"  cones        {ConeTable.from_json(cones)}; rank {cones['rank']}")
    if entries is not None:
        say(f"  entries      {entries}, {entries / values['n'] / values['m']:.3g} of all; at most {most} in a block")
    if len(values["classes"]) > 2:
        say(f"  classes      {len(values['classes'])}: {_classes(values)}")
    elif values["classes"]:
        negative, positive = values["classes"]
        counts = f" ({values['n'] - values['positive']} and {values['positive']})" if "positive" in values else ""
        say(f"  classes      {negative} is -1, {positive} is +1{counts}")
    if "norm_min" in values:
        zero = "" if cones is not None else f", {values['zero']} zero points"
        say(f"  norms        {values['norm_min']:.6g} .. {values['norm_max']:.6g}{zero}")
    if values.get("generator"):
        say("  generated    " + ", ".join(f"{k} {v}" for k, v in values["generator"].items()))
    if values.get("notes"):
        say(f"  ingested     {'; '.join(values['notes'])}")
    say(f"  fingerprint  {values['fingerprint'] or 'computed when it is solved'}")


def _classes(values: dict[str, Any]) -> str:
    """The classes with their points, the first of many."""
    names, counts = values["classes"], values.get("counts") or [None] * len(values["classes"])
    said = [name if count is None else f"{name} ({count})" for name, count in zip(names, counts, strict=True)]
    return ", ".join(said[:MOST_CLASSES]) + (", ..." if len(said) > MOST_CLASSES else "")
