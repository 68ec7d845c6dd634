"""Memory that a command has freed goes back to the kernel: glibc by itself keeps it in its heaps."""

import subprocess
import sys

import pytest

PATTERN = """
import sys
import numpy as np
from dfeas.machine import free_at_once, used_bytes
if sys.argv[1] == "at-once":
    free_at_once()
big = np.ones(31 << 20, np.uint8)  # glibc takes arrays below this size from its heaps, once it is freed
del big
before, kept = used_bytes()[1], []
arrays = []
for _ in range(40):
    arrays.append(np.ones(4 << 20, np.uint8))
    kept.append(np.ones(100 << 10, np.uint8))
arrays.clear()
print(used_bytes()[1] - before >> 20)
"""


def left(how: str) -> int:
    words = [sys.executable, "-c", PATTERN, how]
    return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc")
def test_free_memory_goes_back() -> None:
    assert left("at-once") < 40


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc")
def test_glibc_keeps_it_otherwise() -> None:
    assert left("as-it-is") > 100
