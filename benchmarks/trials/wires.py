"""A slow or lossy wire in the place of a host's own: two taps and a program that takes frames from one to the other.

    python wires.py NAME NAME BITS_PER_SECOND SECONDS LOSS

It makes two network devices, says so by a line, and forwards what comes, each way, at this rate, so many seconds late, without
this share. For kernels that have no netem.
"""

from __future__ import annotations

import fcntl
import os
import random
import select
import struct
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field

TUNSETIFF = 0x400454CA
IFF_TAP_WITHOUT_HEADER = 0x1002
QUEUE_SECONDS = 0.3
"""What would wait longer for its turn on the wire is dropped, as a router does."""


def open_tap(name: str) -> int:
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP_WITHOUT_HEADER))
    return tap


@dataclass
class Direction:
    """Frames of one device on their way to the other."""

    source: int
    target: int
    rate: float
    delay: float
    loss: float
    free: float = 0.0  # when the wire has sent all that was put on it
    flying: deque[tuple[float, bytes]] = field(default_factory=deque)

    def take(self) -> None:
        frame, now = os.read(self.source, 1 << 16), time.monotonic()
        begins = max(now, self.free)
        if begins - now > QUEUE_SECONDS or random.random() < self.loss:
            return
        self.free = begins + len(frame) * 8 / self.rate
        self.flying.append((self.free + self.delay, frame))

    def deliver(self) -> float:
        """Seconds until the next frame is due."""
        while self.flying:
            wait = self.flying[0][0] - time.monotonic()
            if wait > 0:
                return wait
            with suppress(OSError):  # of a device that is down
                os.write(self.target, self.flying.popleft()[1])
        return 1.0


def forward(names: list[str], rate: float, delay: float, loss: float) -> None:
    """For ever."""
    taps = [open_tap(name) for name in names]
    ways = {a: Direction(a, b, rate, delay, loss) for a, b in (taps, taps[::-1])}
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select(taps, [], [], min(way.deliver() for way in ways.values()))
        for tap in ready:
            ways[tap].take()


if __name__ == "__main__":
    forward(sys.argv[1:3], *map(float, sys.argv[3:6]))
