"""Tables of plain text."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(lines: Sequence[Sequence[str]], words: int) -> list[str]:
    """Lines of equal columns: the first ``words`` of them to the left, the others to the right; a last text may hang over.

    All lines have the cells of the first one, or one more, which is not aligned.
    """
    columns = len(lines[0])
    widths = [max(len(line[i]) for line in lines) for i in range(columns)]
    texts = []
    for line in lines:
        cells = [line[i].ljust(widths[i]) if i < words else line[i].rjust(widths[i]) for i in range(columns)]
        texts.append("  ".join([*cells, *line[columns:]]).rstrip())
    return texts
