"""A real pseudo-terminal of so many columns, and what is on it in the end."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import Any

from tests.typed import DFEAS, dfeas

ESCAPE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


class Screen:
    """Rows as a terminal shows them; it knows what rich and we write."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows = [""]
        self.row = self.column = 0
        self.wrapped = 0  # rows that were begun because one was full
        self.begun = 0  # rows that were begun in all

    def write(self, text: str) -> None:
        while text:
            found = ESCAPE.match(text)
            if found is not None:
                self._steer(int(found[1] or 1) if found[1].isdigit() or not found[1] else 0, found[2])
                text = text[found.end() :]
                continue
            self._put(text[0])
            text = text[1:]

    def _steer(self, count: int, what: str) -> None:
        if what == "A":
            self.row = max(0, self.row - count)
        elif what in "JK":
            self.rows[self.row] = self.rows[self.row][: self.column]
            if what == "J":
                del self.rows[self.row + 1 :]

    def _put(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self._down()
        else:
            if self.column == self.columns:
                self.wrapped += 1
                self._down()
                self.column = 0
            row = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = row[: self.column] + character + row[self.column + 1 :]
            self.column += 1

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append("")
            self.begun += 1

    @property
    def text(self) -> str:
        return "\n".join(row.rstrip() for row in self.rows)


def generated(folder: Path, features: int, points: int, margin: float) -> Path:
    """A folder with the datasets ``yes``, which can be separated, and ``no``."""
    for kind, name in (("planted", "yes"), ("one-flip", "no")):
        done = dfeas("generate", kind, name, "--features", features, "--points", points, "--margin", margin, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


def resize(terminal: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def typed(*words: Any, cwd: Path, columns: int = 80, stop_at: str | None = None, **environment: str) -> tuple[int, str, Screen]:
    """A command on a terminal: its exit code, all that was written, and the screen; interrupted when a text is seen."""
    leader, follower = pty.openpty()
    resize(follower, columns)
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    process = subprocess.Popen(
        [*DFEAS, *map(str, words)],
        cwd=cwd,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**clean, "TERM": "xterm", **environment},
    )
    os.close(follower)
    seen = bytearray()
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        if select.select([leader], [], [], 0.1)[0]:
            try:
                part = os.read(leader, 1 << 16)
            except OSError:  # the other end is closed
                break
            seen += part
            if stop_at is not None and stop_at in seen.decode(errors="replace"):
                process.send_signal(signal.SIGINT)
                stop_at = None
    os.close(leader)
    text = seen.decode().replace("\r\n", "\n\r")
    screen = Screen(columns)
    screen.write(text)
    return process.wait(20), text, screen
