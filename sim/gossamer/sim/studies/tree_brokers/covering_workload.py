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

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import attrs
import networkx as nx
import numpy as np

from gossamer.protocol.content.filters import Filter, parse
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.tree_brokers.topology import BrokerOverlay
from gossamer.sim.study.draws import Int64s, choices, shuffled

# The seed's streams of what is drawn row by row.
_ORDER, _PUBLICATIONS = 281, 282


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
class CoveringWorkload:
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

    def subscription_rows(self, rows: Int64s) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """Root, child and the bounds on x and y of these subscriptions, another order of them.

        Unlike that of `subscriptions`, each row of this order can be had without the others.
        """
        place = shuffled(self.seed, _ORDER, rows, self.roots * self.step)
        root, child = np.divmod(place, self.step)
        x, y = self._bounds(root, child)
        return root, child, x, y

    def publication_rows(self, rows: Int64s, reach: float) -> tuple[Int64s, Int64s]:
        """Values of x and y of these publications, as `publication` has them, drawn anew."""
        x = choices(self.seed, _PUBLICATIONS, rows, 0, self.roots * self.step)
        return x, self._opposite(x, reach)

    def _bounds(self, root: Any, child: Any) -> tuple[Any, Any]:
        """Lower bounds on x and y, of one subscription or of arrays."""
        stair = (self.roots - 1 - root) * self.step
        return root * self.step + child, stair + (child > 0) * (self.step - child)

    def _opposite(self, x: Any, reach: float) -> Any:
        """The y of publications at x."""
        excess = max(self.step, round(reach * self.step))
        return self.roots * self.step - 1 - x + excess - self.step

    def _subscription(self, root: int, child: int) -> Wanted:
        x, y = self._bounds(root, child)
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
        x = int(draws.integers(0, self.roots * self.step))
        return {"x": x, "y": self._opposite(x, reach)}


# Where clients subscribe: anywhere, or each near whoever asks for something similar.


ANYWHERE, BEHIND_CORE, REGION = "anywhere", "behind_core", "region"
PLACEMENTS: Final = (ANYWHERE, BEHIND_CORE, REGION)
"""Where the clients of a root and of what it covers are: each at any subscriber host; all at a few
subscriber hosts behind one core broker; all at brokers that are linked. The last two read "each
cluster consisting of 2 to 4 adjacent brokers as depicted by the regions" (selective paper,
Sec. V-E): the edge brokers of its Fig. 6 are not adjacent, an inner one and its edge brokers
are."""

MOST_IN_CLUSTER: Final = 4


def placed(
    placement: str, overlay: BrokerOverlay, wanted: Sequence[Wanted], seed: int
) -> list[str]:
    """The host of every subscription: any, or one of the cluster of its root."""
    draws = np.random.Generator(np.random.Philox(key=[seed, 2]))
    if placement == ANYWHERE:
        hosts = overlay.subscriber_hosts
        return [hosts[int(home)] for home in draws.integers(0, len(hosts), len(wanted))]
    parts = clusters(overlay) if placement == BEHIND_CORE else linked_clusters(overlay)
    roots = max((one.root for one in wanted), default=-1) + 1
    of_root = draws.integers(0, len(parts), roots)
    within = draws.integers(0, 1 << 30, len(wanted))
    chosen = [parts[int(of_root[one.root])] for one in wanted]
    return [part[int(draw) % len(part)] for part, draw in zip(chosen, within, strict=True)]


def clusters(overlay: BrokerOverlay) -> list[tuple[str, ...]]:
    """Subscriber hosts that are near each other, at most four a cluster.

    Those that reach the core by the same core broker are cut into parts as equal as can be, in
    the order of their regions.
    """
    found: dict[str, list[str]] = {}
    by_region = [host for hosts in overlay.regions().values() for host in hosts]
    for host in by_region:
        found.setdefault(_core_of(overlay, host), []).append(host)
    return [part for hosts in found.values() for part in _cut(hosts)]


def linked_clusters(overlay: BrokerOverlay) -> list[tuple[str, ...]]:
    """The brokers of each region that has subscriber hosts, all of them linked."""
    found: dict[int, list[str]] = {}
    for name, region in overlay.graph.nodes(data="region"):
        found.setdefault(region, []).append(name)
    return [tuple(found[region]) for region in overlay.regions()]


def _core_of(overlay: BrokerOverlay, host: str) -> str:
    lengths = nx.single_source_shortest_path_length(overlay.graph, host)
    return min(overlay.core, key=lambda core: (lengths[core], core))


def _cut(hosts: Sequence[str]) -> list[tuple[str, ...]]:
    parts = -(-len(hosts) // MOST_IN_CLUSTER)
    bounds = [len(hosts) * i // parts for i in range(parts + 1)]
    return [tuple(hosts[begin:end]) for begin, end in pairwise(bounds)]
