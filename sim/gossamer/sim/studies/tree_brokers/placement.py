"""Where clients subscribe: anywhere, or each near whoever asks for something similar."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import networkx as nx
import numpy as np

from gossamer.sim.studies.tree_brokers.covering_workload import Wanted
from gossamer.sim.studies.tree_brokers.overlay.topology import BrokerOverlay

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
    """The host of every subscription."""
    if placement == ANYWHERE:
        return scattered(overlay, wanted, seed)
    parts = clusters(overlay) if placement == BEHIND_CORE else linked_clusters(overlay)
    return clustered(parts, wanted, seed)


def scattered(overlay: BrokerOverlay, wanted: Sequence[Wanted], seed: int) -> list[str]:
    """The host of every subscription: any subscriber host, with equal probability."""
    hosts = overlay.subscriber_hosts
    return [hosts[int(home)] for home in _draws(seed).integers(0, len(hosts), len(wanted))]


def clustered(parts: Sequence[tuple[str, ...]], wanted: Sequence[Wanted], seed: int) -> list[str]:
    """The host of every subscription: a root and what it covers have theirs in one cluster."""
    draws = _draws(seed)
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


def _draws(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=[seed, 2]))
