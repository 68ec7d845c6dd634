"""Text that quotes data, as it may be shown: what steers a terminal, or turns text round, is written as its escape.

Names of classes, features, files and methods come from files that anybody wrote. Everything that goes to a terminal or a log
goes through ``visible``; doing it twice changes nothing.
"""

from __future__ import annotations

import unicodedata

_SHOWN_AS_ESCAPES = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of Unicode: controls, formats (which turn text round, or are not seen), halves of pairs, ends of lines."""


def visible(text: str) -> str:
    """The same text with controls as escapes: ``\\x1b``, ``\\n``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(each) if unicodedata.category(each) in _SHOWN_AS_ESCAPES else each for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
