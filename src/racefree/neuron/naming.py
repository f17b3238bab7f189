"""Which instruction a name means, seen from another one: names may repeat across the blocks of a function."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass(slots=True)
class Instances:
    """Where each name stands. A name may stand for several rows at one place (a trigger and its descriptor blocks)."""

    places: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """name -> (block, index), in document order"""
    rows: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """index -> the rows whose completion the name means, when they are not just the index"""

    def add(self, name: str, block: int, index: int, rows: tuple[int, ...] = ()) -> None:
        self.places[name].append((block, index))
        if rows:
            self.rows[index] = rows

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def before(self, name: str, block: int, index: int) -> list[int]:
        """The instances a use at (block, index) can mean: the earlier ones of its own block, else all of the nearest
        earlier block that has the name. Empty when all of them are later."""
        found = self.places.get(name, ())
        own = [at for where, at in found if where == block and at < index]
        if own:
            return own
        earlier = [where for where, _ in found if where < block]
        if not earlier:
            return []
        nearest = max(earlier)
        return [at for where, at in found if where == nearest]

    def after(self, name: str, block: int, index: int) -> list[int]:
        """The later instances in the use's own block, itself included."""
        return [at for where, at in self.places.get(name, ()) if where == block and at >= index]

    def completions(self, index: int) -> tuple[int, ...]:
        return self.rows.get(index, (index,))
