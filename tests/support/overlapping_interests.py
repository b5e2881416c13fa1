"""Subscriptions that overlap: narrow ones, each of which several broad ones cover.

They are those of `gossamer.sim.studies.tree_brokers.covering_workload`, where every root covers its
children and nothing else, but for the children: they stand ``overlap - 1`` stairs farther along x.
With C = degree + 1, root r of R and its children i = 1 .. degree ask for

    x >= r C                        and  y >= (R - 1 - r) C
    x >= (r + overlap - 1) C + i    and  y >= (R - r) C - i

so that exactly the roots r .. r + overlap - 1 cover them, as far as there are so many.
"""

from __future__ import annotations

from random import Random

from attrs import frozen

OFFER = "x >= 0 and present(y) and number >= 0"
"""An advertisement that allows all publications."""


@frozen
class Interest:
    """A subscription: a root, which covers others, or a child of one."""

    label: str
    expression: str
    root: int
    is_root: bool


@frozen(kw_only=True)
class Interests:
    """``roots`` (1 + ``degree``) subscriptions.

    Each of the ``degree`` children of a root is covered by ``overlap`` roots; 1 is the papers'
    workload. A publication matches about ``children_matched`` of them, and ``overlap`` roots
    besides.
    """

    roots: int
    degree: int
    overlap: int
    children_matched: int = 6

    @property
    def _stair(self) -> int:
        return self.degree + 1

    def all(self) -> list[Interest]:
        return [
            self._interest(root, child)
            for root in range(self.roots)
            for child in range(self._stair)
        ]

    def publications(self, count: int, seed: int) -> list[tuple[int, int]]:
        """Values of x and y; uniform among the roots, and fixed by the seed."""
        draws = Random(f"publications {seed}")
        above = (self.roots + self.overlap - 1) * self._stair - 1 + self.children_matched
        xs = (draws.randrange(self.roots * self._stair) for _ in range(count))
        return [(x, above - x) for x in xs]

    def matching(self, x: int, y: int) -> list[str]:
        stair, top = self._stair, self.roots * self._stair
        first = max(0, -(-(top - stair - y) // stair))
        last = min(x // stair, self.roots - 1)
        found = [label_of(root, 0) for root in range(first, last + 1)]
        for place in range(max(0, top - y), min(x - (self.overlap - 1) * stair, top - 1) + 1):
            root, child = divmod(place, stair)
            if child:
                found.append(label_of(root, child))
        return found

    def _interest(self, root: int, child: int) -> Interest:
        stair = self._stair
        if child:
            x, y = (root + self.overlap - 1) * stair + child, (self.roots - root) * stair - child
        else:
            x, y = root * stair, (self.roots - 1 - root) * stair
        return Interest(label_of(root, child), f"x >= {x} and y >= {y}", root, child == 0)


def label_of(root: int, child: int) -> str:
    return f"{root}.{child}"
