"""What readers of points that are seen in some way, and not as they are stored, have in common."""

from __future__ import annotations

from dataclasses import dataclass

from dfeas.store.dataset import Dataset


@dataclass(frozen=True)
class OfDataset:
    """Blocks are made of those of a dataset, and come and change as these do."""

    inner: Dataset  # which verifies what it reads

    @property
    def overlaps(self) -> bool:
        """As it is stored."""
        return self.inner.points.overlaps

    @property
    def distant(self) -> bool:
        """As it is stored."""
        return self.inner.points.distant

    def advise(self, index: int) -> None:
        """As it is stored."""
        self.inner.points.advise(index)

    def stamp(self, index: int) -> int | None:
        """As it is stored."""
        return self.inner.points.stamp(index)
