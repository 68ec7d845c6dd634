"""Links in a folder of data: those that leave it are refused, as data from elsewhere could name any file of this machine."""

from __future__ import annotations

import os
from pathlib import Path

from dfeas.errors import BadInputError


def refuse_links(folder: Path) -> None:
    """Raise BadInputError when something below a folder is a link to a place outside. The folder itself may be one."""
    root = os.path.realpath(folder)
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    _refuse(entry.path, root)
                elif entry.is_dir():
                    waiting.append(entry.path)


def _refuse(path: str, root: str) -> None:
    target = os.path.realpath(path)
    if os.path.commonpath([root, target]) != root:
        raise BadInputError(f"{path}: a link to {target}, outside of the data; copy the data with its links followed (cp -rL)")
