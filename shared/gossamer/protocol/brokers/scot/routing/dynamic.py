"""Dynamic notification routing between clusters, DNR (Sec. 6.3, Algorithm 4).

As static routing, but a notification is kept off overloaded target links between clusters. The
clusters behind them are named in the header of one copy, the *carrier*, and whoever gets that sees
to them, by the links of its own region. No routing table changes.

Every subscriber is served exactly once, without a loop, whatever the links' loads:

- A cluster to see to is named by one copy only. A broker either sends a copy there, unnamed from
  then on, or names it in the one carrier that it sends. So each target cluster is entered once.
- A carrier that changes clusters enters one that it names no more; so it changes at most as often
  as there are target clusters. Within a cluster it moves away from where it came in, on a tree.
- From wherever a cluster is entered, the subscriptions of that cluster lead to all its subscribers,
  since each of its brokers knows them all.

A way has at most diam(acyclic factor) hops in each cluster, and one between clusters each.

Beyond the paper, `ScotSettings.spare_links`: where all target links are overloaded, a carrier may
take a link within the cluster that no subscriber is behind, such as the unused one of Fig. 7(d).
The paper leaves that out for fear of loops among clusters. All of the above holds still: it is a
carrier like any other, there is still one, and it moves away from where it came in. No other copy
comes that way, as the link is no target link.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from gossamer.protocol.brokers.core.identifiers import Hop
from gossamer.protocol.brokers.scot.memory.congestion import LinkStatusTable
from gossamer.protocol.brokers.scot.memory.messages import Notification
from gossamer.protocol.brokers.scot.memory.outbox import ScotOutbox
from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.overlay.labels import NO_CLUSTERS, ClusterBitVector
from gossamer.protocol.brokers.scot.routing import cluster_detours
from gossamer.protocol.brokers.scot.routing.around import reroute
from gossamer.protocol.brokers.scot.routing.targets import Targets, targets_of


class Case(Enum):
    """How a broker deals with overloaded target links between clusters."""

    NONE_OVERLOADED = 0
    SOME_INTER_FREE = 1
    """Case I: some target link between clusters is not overloaded."""
    SOME_INTRA_FREE = 2
    """Case II: all those are, but not all target links within the cluster."""
    NONE_FREE = 3
    """Case III: all target links are overloaded."""
    SPARE_FREE = 4
    """Beyond the paper: as case III, but a link that is no target link is not."""


@frozen
class Plan:
    """The copies of a notification that a broker makes for its neighbours.

    Attributes:
        case: how it came about.
        copies: the target clusters that each copy names, by neighbour.
    """

    case: Case
    copies: dict[str, ClusterBitVector]


def route(state: State, out: ScotOutbox, hop: Hop, notification: Notification) -> None:
    """Deliver a notification here, and send what `plan` says."""
    targets = targets_of(state, hop, notification)
    out.deliver_to(notification, targets.local)
    targets = reroute(state, out, notification, targets)
    chosen = plan(targets, state.links, spare_links=state.settings.spare_links)
    _count(state, chosen.case)
    for name, clusters in chosen.copies.items():
        cluster_detours.send(state, out, notification, name, clusters)


def plan(targets: Targets, links: LinkStatusTable, *, spare_links: bool = False) -> Plan:
    """Choose the links of a notification (Algorithm 4, lines 13-36).

    Target links within the cluster all get a copy, as under static routing; those between clusters
    if they are not overloaded. Only in case III one that is overloaded gets a copy.
    """
    inter = targets.inter
    overloaded = {c: name for c, name in inter.items() if links.overloaded(name)}
    free = [name for c, name in inter.items() if c not in overloaded]
    free_intra = [name for name in targets.intra if not links.overloaded(name)]
    copies = dict.fromkeys([*targets.intra, *free], NO_CLUSTERS)
    if not overloaded:
        return Plan(Case.NONE_OVERLOADED, copies)
    named = ClusterBitVector.of(*overloaded)
    if free:
        copies[links.least_loaded(free)] = named
        return Plan(Case.SOME_INTER_FREE, copies)
    if free_intra:
        copies[links.least_loaded(free_intra)] = named
        return Plan(Case.SOME_INTRA_FREE, copies)
    free_spare = [name for name in targets.spare if not links.overloaded(name)]
    if spare_links and free_spare:
        copies[links.least_loaded(free_spare)] = named
        return Plan(Case.SPARE_FREE, copies)
    carrier = links.least_loaded(overloaded.values())
    (entered,) = (c for c, name in overloaded.items() if name == carrier)
    copies[carrier] = named.without(entered)
    return Plan(Case.NONE_FREE, copies)


def _count(state: State, case: Case) -> None:
    if case is not Case.NONE_OVERLOADED:
        cases = state.counters.cases
        cases[case.value] = cases.get(case.value, 0) + 1
