"""Progress of writing a dataset, for a person: points, their rate, and the time left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

from dfeas.trace import Output


@dataclass
class Written:
    """Points written: a live line on a terminal, a plain line now and then in a pipe, and one at the end."""

    stream: IO[str]
    every: float = 5.0  # seconds between plain lines
    clock: Callable[[], float] = time.monotonic
    _began: float = math.nan
    _shown: float = -math.inf
    _width: int = 0
    _out: Output = field(init=False)

    def __post_init__(self) -> None:
        self._out = Output(self.stream)
        self._began = self._shown = self.clock()

    def __call__(self, done: int, total: int) -> None:
        """Show that ``done`` points of about ``total`` are written, if it is time; all are when the two are the same."""
        now = self.clock()
        if done < total and now - self._shown < (0.1 if self._out.live else self.every):
            return
        self._shown = now
        seconds = max(now - self._began, 1e-9)
        if done < total:
            left = seconds * (total - done) / max(done, 1)
            text = f"{done} of {total} points  {done / seconds:.0f} points/s  about {left:.0f} s left"
        else:
            text = f"{done} points written in {seconds:.1f} s, {done / seconds:.0f} points/s"
        if self._out.live:
            self._out.write("\r" + text.ljust(self._width) + ("\n" if done >= total else ""))
            self._width = len(text)
        else:
            self._out.write(text + "\n")
