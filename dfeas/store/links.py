"""Links in a folder of data: those that leave it are refused, as data from elsewhere could name any file of this machine.

So are pipes and devices: whoever opens one waits for ever, or reads without an end.
"""

from __future__ import annotations

import os
from pathlib import Path

from dfeas.errors import BadInputError


def refuse_links(folder: Path) -> None:
    """Raise BadInputError when something below a folder is a link to a place outside, or no file. The folder itself may be a
    link.
    """
    root = os.path.realpath(folder)
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    _refuse(entry.path, root)
                elif entry.is_dir():
                    waiting.append(entry.path)
                elif not entry.is_file():
                    raise BadInputError(f"{entry.path}: a pipe or a device, expected a file; copy the data as plain files")


def _refuse(path: str, root: str) -> None:
    target = os.path.realpath(path)
    if os.path.commonpath([root, target]) != root:
        raise BadInputError(f"{path}: a link to {target}, outside of the data; copy the data with its links followed (cp -rL)")
