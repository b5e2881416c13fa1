"""The papers' broker overlays as data: who is linked to whom, and who hosts whom.

"Selective paper" and "incremental paper" are the two on filter aggregation. Their figures show
the overlays, the texts give numbers of brokers by role; where a number is missing, the function
says what was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import networkx as nx

from gossamer.sim.errors import ScenarioError

CORE, INNER, EDGE = "core", "inner", "edge"
_CORE_NAMES: Final = ("A", "B", "C", "D", "E")


@attrs.frozen(eq=False)
class BrokerOverlay:
    """An acyclic overlay of brokers.

    Attributes:
        name: what it is called in scenarios.
        graph: undirected; each node has a ``role`` (CORE, INNER or EDGE), a ``tier`` (0 at the
            top) and a ``region`` (brokers of one region are near each other).
        publisher_hosts: brokers that publishers attach to.
        subscriber_hosts: brokers that subscribers attach to.
    """

    name: str
    graph: nx.Graph[str]
    publisher_hosts: tuple[str, ...]
    subscriber_hosts: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        check_acyclic(self.graph)

    @property
    def core(self) -> tuple[str, ...]:
        """The core brokers, in order."""
        return self.with_role(CORE)

    def with_role(self, role: str) -> tuple[str, ...]:
        """All brokers of a role, in the order in which they were added."""
        return tuple(name for name, found in self.graph.nodes(data="role") if found == role)

    def regions(self) -> dict[int, tuple[str, ...]]:
        """The subscriber hosts of each region."""
        found: dict[int, list[str]] = {}
        for name in self.subscriber_hosts:
            found.setdefault(self.graph.nodes[name]["region"], []).append(name)
        return {region: tuple(names) for region, names in sorted(found.items())}


def check_acyclic(graph: nx.Graph[str]) -> None:
    """Refuse an overlay that is not one tree.

    Raises:
        ScenarioError: brokers form a cycle, or some cannot reach the others.
    """
    if len(graph) == 0:
        raise ScenarioError(None, "brokers", [], "at least one broker")
    try:
        cycle = [one for one, _ in nx.find_cycle(graph)]
    except nx.NetworkXNoCycle:
        cycle = []
    if cycle:
        found = " - ".join([*cycle, cycle[0]])
        raise ScenarioError(None, "links", cycle, "an overlay without cycles", found)
    parts = [sorted(part)[0] for part in nx.connected_components(graph)]
    if len(parts) > 1:
        found = f"apart between {parts[0]} and {parts[1]}"
        raise ScenarioError(None, "links", parts, "brokers that all reach each other", found)


def controlled_55() -> BrokerOverlay:
    """Fig. 6 of the selective paper: 5 core brokers in a row, 18 inner ones, 32 at the edge.

    Publishers are at the three edge brokers of E, subscribers at the other 29. How the inner
    brokers are spread over A to D is our choice: as evenly as can be. A region is an inner broker
    with its edge brokers.
    """
    return _controlled("controlled_55", inner=18, edge=29)


def controlled_49() -> BrokerOverlay:
    """Fig. 5 of the incremental paper: 49 brokers, of which 5 core, 3 with publishers near E.

    How many of the rest are inner is our choice: 15, with 26 edge brokers.
    """
    return _controlled("controlled_49", inner=15, edge=26)


def _controlled(name: str, inner: int, edge: int) -> BrokerOverlay:
    graph: nx.Graph[str] = nx.Graph()
    for place, core in enumerate(_CORE_NAMES):
        graph.add_node(core, role=CORE, tier=0, region=0)
        if place > 0:
            graph.add_edge(_CORE_NAMES[place - 1], core)
    attached = _CORE_NAMES[:-1]
    for i in range(inner):
        graph.add_node(f"I{i + 1}", role=INNER, tier=1, region=i + 1)
        graph.add_edge(attached[i * len(attached) // inner], f"I{i + 1}")
    subscriber_hosts = [f"S{i + 1}" for i in range(edge)]
    for i, host in enumerate(subscriber_hosts):
        region = i % inner + 1
        graph.add_node(host, role=EDGE, tier=2, region=region)
        graph.add_edge(f"I{region}", host)
    publisher_hosts = [f"P{i + 1}" for i in range(3)]
    for host in publisher_hosts:
        graph.add_node(host, role=EDGE, tier=2, region=0)
        graph.add_edge("E", host)
    return BrokerOverlay(name, graph, tuple(publisher_hosts), tuple(subscriber_hosts))


def star_17() -> BrokerOverlay:
    """Fig. 8 of the incremental paper: a broker in the middle of sixteen that host clients."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_node("hub", role=CORE, tier=0, region=0)
    hosts = tuple(f"S{i + 1}" for i in range(16))
    for i, host in enumerate(hosts):
        graph.add_node(host, role=EDGE, tier=1, region=i + 1)
        graph.add_edge("hub", host)
    return BrokerOverlay("star_17", graph, hosts, hosts)


def tiered() -> BrokerOverlay:
    """Fig. 11 of the selective paper: four regions below one root, for mobile clients.

    The paper gives no numbers; here three brokers hang below the head of each region and three
    below each of those, 53 in all. Clients may be anywhere but at the root.
    """
    graph = _hierarchy(regions=4, widths=(3, 3))
    clients = tuple(name for name in graph if name != "root")
    return BrokerOverlay("tiered", graph, clients, clients)


def _hierarchy(regions: int, widths: Sequence[int]) -> nx.Graph[str]:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_node("root", role=CORE, tier=0, region=0)
    for region in range(1, regions + 1):
        graph.add_node(f"R{region}", role=INNER, tier=1, region=region)
        graph.add_edge("root", f"R{region}")
        above = [f"R{region}"]
        for depth, width in enumerate(widths):
            role = EDGE if depth == len(widths) - 1 else INNER
            below = [f"{parent}.{i + 1}" for parent in above for i in range(width)]
            for place, child in enumerate(below):
                graph.add_node(child, role=role, tier=depth + 2, region=region)
                graph.add_edge(above[place // width], child)
            above = below
    return graph


def workflow_40() -> BrokerOverlay:
    """Sec. V-C of the incremental paper: four domains of ten brokers in three levels.

    A head, three brokers below it, and two process execution engines at each of those. The heads
    are linked to the first domain's, our choice.
    """
    graph: nx.Graph[str] = nx.Graph()
    engines = []
    for domain in range(1, 5):
        head = f"D{domain}"
        graph.add_node(head, role=CORE, tier=0, region=domain)
        if domain > 1:
            graph.add_edge("D1", head)
        for i in range(1, 4):
            graph.add_node(f"{head}.{i}", role=INNER, tier=1, region=domain)
            graph.add_edge(head, f"{head}.{i}")
            for j in range(1, 3):
                engine = f"{head}.{i}.{j}"
                graph.add_node(engine, role=EDGE, tier=2, region=domain)
                graph.add_edge(f"{head}.{i}", engine)
                engines.append(engine)
    return BrokerOverlay("workflow_40", graph, tuple(engines), tuple(engines))


OVERLAYS: Final = {
    "controlled_55": controlled_55,
    "controlled_49": controlled_49,
    "star_17": star_17,
    "tiered": tiered,
    "workflow_40": workflow_40,
}
"""The overlays by the names that scenarios know."""
