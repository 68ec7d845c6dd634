"""The rooms as boxes on their floors, as SVG, in an order with few crossings (Sugiyama, Tagawa and Toda 1981)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import accumulate, combinations, pairwise
from statistics import fmean

from import_graph import House

PACKAGE = "dfeas"


@dataclass(frozen=True)
class Room:
    """A module or package at the top level."""

    name: str
    is_package: bool
    modules: int
    lines: int

    @property
    def title(self) -> str:
        """As its file or folder is called."""
        return f"{self.name}/" if self.is_package else f"{self.name}.py"

    @property
    def size(self) -> str:
        """In words."""
        return f"{self.lines:,} lines"

    @property
    def width(self) -> float:
        """Of its box: letters are 0.6 of their size wide."""
        return 14 + 0.6 * max(TITLE * len(self.title), SIZE * len(self.size))


WIDTH, LEFT, TOP = 1000, 40, 58
"""Pixels: of the picture, of the names of floors at its left, of the words above."""
BOX, BETWEEN = 38, 44
"""Heights of a box and of the space between two rows."""
TITLE, SIZE = 12, 10.5
"""Letters."""
FULL = 0.72
"""Share of the width that boxes of a row may take; lines that pass between them take the rest."""
GAP = 10
"""Between boxes, and lines that pass them."""
SWEEPS = 60
"""Of an order, and of places."""
FONTS = "DejaVu Sans Mono, Menlo, Consolas, monospace"
STYLE = """<style>
svg:root { color: #24292f } @media (prefers-color-scheme: dark) { svg:root { color: #e6edf3 } }
.rooms path { fill: none; stroke: #8592a6; stroke-width: 1.2 } .rooms path.c { stroke: #c0392b }
.rooms rect.p { fill: #3b82d0; fill-opacity: .2; stroke: #5b86b5 } .rooms rect.f { fill: #808080; fill-opacity: .08 }
.rooms rect.m { fill: #808080; fill-opacity: .15; stroke: #999 } .rooms text { fill: currentColor }
.rooms .b { font-size: 14px; font-weight: bold } .rooms .s { font-size: 12px; fill-opacity: .8 }
.rooms .t { font-size: 12px; font-weight: bold; text-anchor: middle }
.rooms .n { font-size: 10.5px; text-anchor: middle; fill-opacity: .8 }
</style>
<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0L8 4L0 8z" style="fill: #8592a6; stroke: none"/></marker></defs>
<g class="rooms">"""
"""Colours that can be read on white and on black; a page that includes the picture gives it the colour of its text."""

Bend = tuple[str, int]
"""Where lines to a room pass a row."""
Node = str | Bend
Rows = list[list[Node]]


@dataclass(frozen=True)
class Drawing:
    """Rows of boxes and bends from the ground up, and the lines between neighbouring rows."""

    rooms: dict[str, Room]
    rows: Rows
    floors: list[int]
    """Of each row."""
    below: dict[Node, list[Node]]
    above: dict[Node, list[Node]]

    @classmethod
    def of(cls, rooms: dict[str, Room], house: House) -> Drawing:
        """Rooms by floors, lines by the shortest way down; lines to one room share their bends. In order of names."""
        edges = house.reduction()
        rows: Rows = []
        floors: list[int] = []
        for floor in range(1, max(house.floors.values()) + 1):
            rows += _rows_of([rooms[name] for name in sorted(rooms) if house.floors[name] == floor], edges)
            floors += [floor] * (len(rows) - len(floors))
        row_of = {node: i for i, row in enumerate(rows) for node in row}
        lines: set[tuple[Node, Node]] = set()
        for upper, lower in edges:
            bends = [(lower, row) for row in range(row_of[upper] - 1, row_of[lower], -1)]
            lines |= set(pairwise([upper, *bends, lower]))
            for bend in bends:
                if bend not in rows[bend[1]]:
                    rows[bend[1]].append(bend)
        nodes = [node for row in rows for node in row]
        below = {node: [other for other in nodes if (node, other) in lines] for node in nodes}
        above = {node: [other for other in nodes if (other, node) in lines] for node in nodes}
        return cls(rooms, rows, floors, below, above)

    def crossings(self, rows: Rows) -> int:
        """Of all lines."""
        place = {node: i for row in rows for i, node in enumerate(row)}
        return sum(_inversions(self.below[a], self.below[b], place) for row in rows for a, b in combinations(row, 2))

    def with_few_crossings(self) -> Drawing:
        """Each node goes to the mean place of its neighbours in the row before, up and down in turns; the best order wins."""
        rows = [list(row) for row in self.rows]
        best = [list(row) for row in rows]
        for sweep in range(SWEEPS):
            upwards = sweep % 2 == 0
            near = self.below if upwards else self.above
            for row in rows if upwards else reversed(rows):
                place = {node: (i + 0.5) / len(each) for each in rows for i, node in enumerate(each)}
                row.sort(key=lambda node: fmean([place[other] for other in near[node]] or [place[node]]))
            self._exchange(rows)
            best = min(best, [list(row) for row in rows], key=self.crossings)
        return replace(self, rows=best)

    def _exchange(self, rows: Rows) -> None:
        """Change places of neighbours in a row as long as that takes crossings away."""
        place = {node: i for row in rows for i, node in enumerate(row)}

        def crossings(left: Node, right: Node) -> int:
            return sum(_inversions(near[left], near[right], place) for near in (self.below, self.above))

        changed = True
        while changed:
            changed = False
            for row in rows:
                for i in range(len(row) - 1):
                    left, right = row[i : i + 2]
                    if crossings(right, left) < crossings(left, right):
                        row[i : i + 2] = right, left
                        place[left], place[right] = i + 1, i
                        changed = True

    def width(self, node: Node) -> float:
        """Of a box; a bend has none."""
        return self.rooms[node].width if isinstance(node, str) else 0.0

    def _wish(self, node: Node, x: dict[Node, float]) -> tuple[float, float]:
        """Where a node would stand if its row had no other, and how much that weighs: lines at bends want to be straight."""
        pull = {
            other: 4.0 ** sum(not isinstance(end, str) for end in (node, other))
            for other in self.below[node] + self.above[node]
        }
        return (fmean(map(x.__getitem__, pull), pull.values()), sum(pull.values())) if pull else (x[node], 1.0)

    @cached_property
    def centres(self) -> dict[Node, float]:
        """Least squares of the widths of the lines, row by row in turns, in the order of each row and without overlap."""
        offsets: dict[Node, float] = {}
        for row in self.rows:
            offsets[row[0]] = 0.0
            offsets |= zip(
                row[1:], accumulate((self.width(a) + self.width(b)) / 2 + self.gap for a, b in pairwise(row)), strict=True
            )
        x = {node: (LEFT + self.page_width - offsets[row[-1]]) / 2 + offsets[node] for row in self.rows for node in row}
        for _ in range(SWEEPS):
            for row in [*self.rows, *reversed(self.rows)]:
                wishes = [self._wish(node, x) for node in row]
                least = LEFT + self.width(row[0]) / 2
                most = self.page_width - GAP - self.width(row[-1]) / 2 - offsets[row[-1]]
                places = _ascending([(wish - offsets[node], weight) for node, (wish, weight) in zip(row, wishes, strict=True)])
                x |= {node: min(max(place, least), most) + offsets[node] for node, place in zip(row, places, strict=True)}
        return x

    @cached_property
    def gap(self) -> float:
        """Between boxes: more than the least where all rows have room for it."""
        spare = min((WIDTH - LEFT - sum(map(self.width, row))) / (len(row) + 1) for row in self.rows)
        return min(max(spare, GAP), 3 * GAP)

    @cached_property
    def page_width(self) -> float:
        """More than usual where a row needs it."""
        return max(WIDTH, LEFT + GAP + max(sum(self.width(node) + GAP for node in row) for row in self.rows))


def _rows_of(rooms: list[Room], edges: list[tuple[str, str]]) -> Rows:
    """As many rows as the boxes of a floor need; rooms that import more than they are imported stand low."""
    names = [room.name for room in rooms]
    use = Counter(lower for _, lower in edges)
    use.subtract(upper for upper, _ in edges)
    names.sort(key=lambda name: use[name])
    count = int(sum(room.width + GAP for room in rooms) / (FULL * (WIDTH - LEFT))) + 1
    return [list(names[i * len(names) // count : (i + 1) * len(names) // count]) for i in range(count)]


def _inversions(left: list[Node], right: list[Node], place: dict[Node, int]) -> int:
    """Crossings of the lines of two nodes, the first of which stands left."""
    return sum(place[a] > place[b] for a in left for b in right)


def _ascending(values: list[tuple[float, float]]) -> list[float]:
    """The nearest ascending numbers to numbers with weights, in least squares (pool adjacent violators)."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in values:
        count = 1
        while pools and pools[-1][0] > value:
            other, more, members = pools.pop()
            value, weight, count = (value * weight + other * more) / (weight + more), weight + more, count + members
        pools.append((value, weight, count))
    return [value for value, _, count in pools for _ in range(count)]


def picture(rooms: dict[str, Room], house: House) -> str:
    """The house as SVG."""
    drawing = Drawing.of(rooms, house).with_few_crossings()
    height = TOP + len(drawing.rows) * (BOX + BETWEEN) + 8
    modules, lines = (sum(getattr(room, name) for room in rooms.values()) for name in ("modules", "lines"))
    words = [
        f"{PACKAGE}/: {modules} modules, {lines:,} lines, floors: {max(drawing.floors)}, circles: {len(house.circles)}",
        "An arrow is an import; those that a longer way implies are left out. Blue: packages, grey: modules, red: circles.",
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawing.page_width:.0f} {height}" '
            f'width="{drawing.page_width:.0f}" height="{height}" font-family="{FONTS}">',
            STYLE,
            *(
                f'<text x="12" y="{22 + 20 * i}" class="{"b" if i == 0 else "s"}">{escape(w)}</text>'
                for i, w in enumerate(words)
            ),
            *_floors(drawing),
            *_lines(drawing),
            *_circles(drawing, house),
            *_boxes(drawing),
            "</g>",
            "</svg>\n",
        ]
    )


def _top(drawing: Drawing, row: int) -> int:
    """The y of the boxes of a row, the ground at the bottom."""
    return TOP + (len(drawing.rows) - 1 - row) * (BOX + BETWEEN) + BETWEEN // 2


def _floors(drawing: Drawing) -> Iterator[str]:
    for row, floor in enumerate(drawing.floors):
        y = _top(drawing, row) - BETWEEN // 2
        if floor % 2:
            yield f'<rect x="0" y="{y}" width="{drawing.page_width:.0f}" height="{BOX + BETWEEN}" class="f"/>'
        if row == 0 or drawing.floors[row - 1] != floor:
            yield f'<text x="12" y="{y + BETWEEN / 2 + BOX / 2 + 4}" class="s">{floor}</text>'


def _ports(drawing: Drawing, node: Node, others: list[Node]) -> dict[Node, float]:
    """Where the lines to others leave a box, side by side in the order of these; a bend is one place."""
    x = drawing.centres
    apart = min(16.0, 0.8 * drawing.width(node) / len(others)) if isinstance(node, str) and others else 0.0
    ranks = sorted(others, key=lambda other: x[other])
    return {other: x[node] + (i - (len(ranks) - 1) / 2) * apart for i, other in enumerate(ranks)}


def _lines(drawing: Drawing) -> Iterator[str]:
    for row, nodes in enumerate(drawing.rows):
        y = _top(drawing, row)
        for node in nodes:
            x = drawing.centres[node]
            if not isinstance(node, str):
                yield f'<path d="M{x:.1f} {y}V{y + BOX}"/>'
            for other, start in _ports(drawing, node, drawing.below[node]).items():
                end = _ports(drawing, other, drawing.above[other])[node]
                head = ' marker-end="url(#a)"' if isinstance(other, str) else ""
                low, bow = y + BOX + BETWEEN, BETWEEN * 0.6
                yield (
                    f'<path d="M{start:.1f} {y + BOX}C{start:.1f} {y + BOX + bow:.0f} {end:.1f} {low - bow:.0f} '
                    f'{end:.1f} {low}"{head}/>'
                )


def _circles(drawing: Drawing, house: House) -> Iterator[str]:
    """Imports within circles, in bows over the boxes."""
    row_of = {node: i for i, row in enumerate(drawing.rows) for node in row}
    for circle in house.circles:
        for upper, lower in ((a, b) for a in circle for b in circle if b in house.imports[a]):
            (x, y), (u, v) = ((drawing.centres[name], _top(drawing, row_of[name])) for name in (upper, lower))
            yield f'<path class="c" d="M{x:.1f} {y}C{x:.1f} {y - 30} {u:.1f} {v - 30} {u:.1f} {v}" marker-end="url(#a)"/>'


def _boxes(drawing: Drawing) -> Iterator[str]:
    for row, nodes in enumerate(drawing.rows):
        y = _top(drawing, row)
        for node in nodes:
            if isinstance(node, str):
                room, x = drawing.rooms[node], drawing.centres[node]
                yield (
                    f'<rect x="{x - room.width / 2:.1f}" y="{y}" width="{room.width:.1f}" height="{BOX}" rx="4" '
                    f'class="{"p" if room.is_package else "m"}"/>'
                )
                yield f'<text x="{x:.1f}" y="{y + 16}" class="t">{escape(room.title)}</text>'
                yield f'<text x="{x:.1f}" y="{y + 31}" class="n">{room.size}</text>'
