"""A graph of imports: what stands above what, and what goes in circles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

Graph = dict[str, set[str]]
"""Name -> the names that it imports."""


@dataclass(frozen=True)
class House:
    """What stands above what."""

    imports: Graph

    @cached_property
    def reach(self) -> Graph:
        """Name -> itself and all that its imports lead to."""

        def below(name: str) -> set[str]:
            reached, unread = {name}, [name]
            while unread:
                new = self.imports[unread.pop()] - reached
                reached |= new
                unread += new
            return reached

        return {name: below(name) for name in self.imports}

    def circle(self, name: str) -> set[str]:
        """All that import each other with this one; at least itself."""
        return {other for other in self.reach[name] if name in self.reach[other]}

    @cached_property
    def circles(self) -> list[list[str]]:
        """Those of two or more, in order."""
        return sorted(map(list, {tuple(sorted(self.circle(name))) for name in self.imports if len(self.circle(name)) > 1}))

    @cached_property
    def floors(self) -> dict[str, int]:
        """1 is the ground: 1 + the greatest floor of what is imported from outside of the own circle."""
        floors: dict[str, int] = {}
        for name in sorted(
            self.reach, key=lambda name: len(self.reach[name])
        ):  # who reaches more stands higher, or in a circle
            outside = self.reach[name] - self.circle(name)
            floors[name] = 1 + max((floors[other] for other in outside), default=0)
        return floors

    def longest_chain(self) -> list[str]:
        """From the top floor to the ground; circles are passed in one step."""
        chain = [min(self.imports, key=lambda name: (-self.floors[name], name))]
        while self.floors[chain[-1]] > 1:
            under = {other for mate in self.circle(chain[-1]) for other in self.imports[mate]}
            chain.append(min(other for other in under if self.floors[other] == self.floors[chain[-1]] - 1))
        return chain

    def reduction(self) -> list[tuple[str, str]]:
        """Imports that no longer way implies (the transitive reduction), without those in circles."""

        def implied(upper: str, lower: str) -> bool:
            between = self.reach[upper] - self.circle(upper) - self.circle(lower)
            return any(lower in self.reach[other] for other in between)

        edges = ((upper, lower) for upper in self.imports for lower in self.imports[upper] - self.circle(upper))
        return sorted(edge for edge in edges if not implied(*edge))
