"""Damage and malice in files: bytes, numbers in text and in headers, members of archives, whole files."""

from __future__ import annotations

import bz2
import gzip
import io
import re
import struct
import zipfile
from collections.abc import Callable

import crc32c
import numpy as np

NUMBERS = (
    b"1000000000000000000",
    b"-1",
    b"0",
    b"1e400",
    b"nan",
    b"9" * 26,
    b"100000000000",
    b"true",
    b'"7"',
    b"[]",
    b"null",
    b"1e-400",
)
TOKENS = (
    b"\x1b]0;x\x07",
    b",,,,",
    b'"',
    b"\x00",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n\n",
    b":",
    b"\xff\xfe",
    b"[" * 100_000,
    b" " * 70_000,
    b"inf",
    b"{",
)
WORDS = (2**62, 2**63 - 1, -1, 0, 2**31, 2**40, 7)


def flipped(rng: np.random.Generator, data: bytes) -> bytes:
    found = bytearray(data)
    for place in rng.integers(len(found), size=rng.integers(1, 4)):
        found[place] ^= 1 << rng.integers(8)
    return bytes(found)


def cut(rng: np.random.Generator, data: bytes) -> bytes:
    return data[: rng.integers(len(data))]


def _span(rng: np.random.Generator, data: bytes) -> tuple[int, int]:
    first = int(rng.integers(len(data)))
    return first, min(len(data), first + int(rng.integers(1, 1 + len(data) // 2)))


def removed(rng: np.random.Generator, data: bytes) -> bytes:
    first, last = _span(rng, data)
    return data[:first] + data[last:]


def doubled(rng: np.random.Generator, data: bytes) -> bytes:
    first, last = _span(rng, data)
    return data[:last] + data[first:]


def zeroed(rng: np.random.Generator, data: bytes) -> bytes:
    first, last = _span(rng, data)
    return data[:first] + bytes(last - first) + data[last:]


def noise(rng: np.random.Generator, data: bytes) -> bytes:
    first, last = _span(rng, data)
    return data[:first] + rng.bytes(last - first) + data[last:]


def number(rng: np.random.Generator, data: bytes) -> bytes:
    """Another number in text, as in a header."""
    places = [match.span() for match in re.finditer(rb"-?\d+(\.\d+)?", data)]
    if not places:
        return flipped(rng, data)
    first, last = places[rng.integers(min(len(places), 40))] if rng.random() < 0.5 else places[rng.integers(len(places))]
    return data[:first] + NUMBERS[rng.integers(len(NUMBERS))] + data[last:]


def token(rng: np.random.Generator, data: bytes) -> bytes:
    place = int(rng.integers(len(data) + 1))
    return data[:place] + TOKENS[rng.integers(len(TOKENS))] + data[place:]


def word(rng: np.random.Generator, data: bytes) -> bytes:
    """Another integer in binary, as in a header."""
    width, code = ((8, "<q"), (4, "<i"))[rng.integers(2)]
    if len(data) < width:
        return flipped(rng, data)
    place = int(rng.integers(len(data) - width + 1))
    value = int(WORDS[rng.integers(len(WORDS))])
    value = value if width == 8 else (value + 2**31) % 2**32 - 2**31
    return data[:place] + struct.pack(code, value) + data[place + width :]


def emptied(rng: np.random.Generator, data: bytes) -> bytes:
    return b""


def header(rng: np.random.Generator, data: bytes) -> bytes:
    """A .npy file that says it has another shape or type."""
    if not data.startswith(b"\x93NUMPY"):
        return number(rng, data)
    shapes = (
        "(1000000000000000000,)",
        "(100000000000,)",
        "(True,)",
        "(1000, -1)",
        "()",
        "(40, 5, 1)",
        "(2147483648, 2147483648)",
        "5",
    )
    types = ("<f8", "|O", "<c16", "<U1000000", "|V8", "<M8[s]", ">f4", "|b1", "<q4")
    shape, kind = shapes[rng.integers(len(shapes))], types[rng.integers(len(types))] if rng.random() < 0.5 else "<f8"
    text = f"{{'descr': '{kind}', 'fortran_order': {rng.random() < 0.2}, 'shape': {shape}, }}".encode()
    text = text.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data[128:]


WAYS: tuple[Callable[[np.random.Generator, bytes], bytes], ...] = (
    flipped, flipped, cut, removed, doubled, zeroed, noise, number, number, number, token, token, word, word, emptied, header,
)  # fmt: skip


def mutated(rng: np.random.Generator, data: bytes) -> tuple[str, bytes]:
    """Changed data, and how; in archives as a rule one member, so that checksums are those of what is there."""
    if not data:
        return "token", token(rng, data)
    inside = rng.random() < 0.8
    if inside and data.startswith(b"PK\x03\x04"):
        return _member(rng, data)
    for magic, packer in ((b"\x1f\x8b", gzip), (b"BZh", bz2)):
        if inside and data.startswith(magic):
            way, text = mutated(rng, packer.decompress(data))
            return f"{way} inside", packer.compress(text)
    if inside and data.startswith(b"{") and data[-4:] == seal(data[:-4]):  # a checkpoint
        way, text = mutated(rng, data[:-4])
        return f"{way} inside", text + seal(text)
    way = WAYS[rng.integers(len(WAYS))]
    return way.__name__, way(rng, data)


def seal(data: bytes) -> bytes:
    """The crc32c at the end of a checkpoint."""
    return int(crc32c.crc32c(data)).to_bytes(4, "little")


def _member(rng: np.random.Generator, data: bytes) -> tuple[str, bytes]:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        chosen, way = names[rng.integers(len(names))], ""
        for name in names:
            text = old.read(name)
            if name == chosen:
                way, text = mutated(rng, text)
                if rng.random() < 0.05:
                    continue
            new.writestr(name, text, zipfile.ZIP_DEFLATED if rng.random() < 0.3 else zipfile.ZIP_STORED)
    return f"{way} in {chosen}", out.getvalue()
