"""Notifications around overloaded links within a cluster, by a parallel link of another one.

Beyond the paper, whose Algorithm 4 relieves links between clusters only (Sec. 6.3: "intra-cluster
dynamic routing is part of the future work"); `ScotSettings.cluster_detours`. Where a target link
from region r to region s of a cluster is overloaded and a link of region r to another cluster is
not, a copy takes that link, the link from r to s there, and the link back, as a `Bypass`.

Every subscriber is still served exactly once, without a loop, whatever the loads:

- Brokers of the other cluster do not route a `Bypass`: they hand it on, by the cluster and region
  that it names. It comes to the broker in s, as the copy on the link would have, and nowhere else.
- So brokers make the same copies for the same brokers as without detours, and each copy takes one
  hop or three. What `dynamic_routing` says of copies holds as it stands; the messages within
  clusters are three times as many at most.
- A copy that names clusters to see to is never on an overloaded link within a cluster (cases I to
  III), so detours carry plain copies only, and no case changes.

Copies of different hops may meet at a broker that hands them on; none is routed there. Settings
refuse this together with ways around failures, where a `Bypass` that cannot enter its region says
that the broker there is dead, which it does not if the link from the first region works.
"""

from __future__ import annotations

from attrs import evolve

from gossamer.protocol.brokers.scot.memory.messages import Bypass, Notification
from gossamer.protocol.brokers.scot.memory.outbox import ScotOutbox
from gossamer.protocol.brokers.scot.memory.settings import DYNAMIC
from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.overlay.labels import NO_CLUSTERS, ClusterBitVector


def send(
    state: State,
    out: ScotOutbox,
    notification: Notification,
    name: str,
    clusters: ClusterBitVector = NO_CLUSTERS,
) -> None:
    """Send a copy of a notification to a neighbour that is up, on its link or around that."""
    copy = evolve(notification, targets=clusters)
    way = _way_around(state, name)
    if way is None or clusters:
        out.send(name, copy)
    else:
        here = state.position.label
        region = state.labels[name].region
        state.counters.detours += 1
        out.send(way, Bypass(copy, here.cluster, region, past=here.region))


def _way_around(state: State, name: str) -> str | None:
    """The least loaded link to another cluster, if it is to be preferred to a primary one.

    Of equal ones that to the cluster whose number comes next after the own one, so that the
    detours of several clusters do not meet in one.
    """
    links, settings = state.links, state.settings
    if not settings.cluster_detours or settings.routing != DYNAMIC:
        return None
    if name not in state.primary or not links.overloaded(name):
        return None
    free = [
        (links.load_of(other), (cluster - state.cluster) % state.position.clusters, other)
        for cluster, other in state.secondary.items()
        if other not in state.down and not links.overloaded(other)
    ]
    return min(free)[2] if free else None
