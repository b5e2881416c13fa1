"""Subscriptions of a given covering degree, and publications that reach a given number of them.

Both pruning papers describe a workload by its *covering degree*, the mean number of new root
subscriptions that taking a root back brings up (selective paper, Sec. V-A), and say no more. Here
every root has exactly that degree. Bounds of roots on two attributes form a staircase: root r of R
asks for

    x >= r C  and  y >= (R - 1 - r) C

so that none covers another. Its children stand on a finer staircase between two steps, i = 1 .. d:

    x >= r C + i  and  y >= (R - 1 - r) C + d + 1 - i      with C = d + 1

so that root r covers them and nothing else does. A publication at (u, (R - 1) C - u + w) matches
about w / C roots side by side, and all children of those in the middle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import attrs
import numpy as np

from gossamer.protocol.content.filters import Filter, parse
from gossamer.sim.errors import ScenarioError


class Wanted(NamedTuple):
    """A subscription of the workload.

    Attributes:
        label: unique in the workload.
        filter: what it asks for.
        root: number of the root that it is or that covers it.
        is_root: whether it is that root.
    """

    label: str
    filter: Filter
    root: int
    is_root: bool


@attrs.frozen
class Staircase:
    """A workload of ``roots`` (1 + ``degree``) subscriptions.

    Attributes:
        roots: R, number of root subscriptions.
        degree: d, the covering degree.
        seed: of the order of subscriptions and of all publications.
    """

    roots: int
    degree: int
    seed: int = 1

    def __attrs_post_init__(self) -> None:
        if self.roots < 1:
            raise ScenarioError(None, "workload.roots", self.roots, "at least 1")
        if self.degree < 0:
            raise ScenarioError(None, "workload.degree", self.degree, "0 or more")

    @property
    def step(self) -> int:
        """C, the width of a stair."""
        return self.degree + 1

    def subscriptions(self) -> Iterator[Wanted]:
        """All subscriptions in a random order fixed by the seed."""
        draws = np.random.Generator(np.random.Philox(key=[self.seed, 0]))
        for place in draws.permutation(self.roots * self.step):
            root, child = divmod(int(place), self.step)
            yield self._subscription(root, child)

    def _subscription(self, root: int, child: int) -> Wanted:
        x = root * self.step + child
        y = (self.roots - 1 - root) * self.step
        if child > 0:
            y += self.degree + 1 - child
        return Wanted(
            f"{root}.{child}" if child else str(root),
            parse(f"x >= {x} and y >= {y}"),
            root,
            child == 0,
        )

    def publication(self, number: int, reach: float) -> dict[str, int]:
        """The publication of that number, which matches about ``reach`` roots, at least one.

        Its place among the roots is uniform and depends on seed and number alone.
        """
        draws = np.random.Generator(np.random.Philox(key=[self.seed, 1 + number]))
        last = self.roots * self.step
        x = int(draws.integers(0, last))
        excess = max(self.step, round(reach * self.step))
        return {"x": x, "y": last - 1 - x + excess - self.step}
