"""Static notification routing, SNR (Sec. 6.2, Algorithm 3).

The host broker of the publisher sends one copy on each target link. Within a cluster, a tree,
copies take the reverse paths of subscriptions; into another cluster they are sent by the host
broker alone, to its secondary neighbour there. A way has at most diam(acyclic factor) hops within
the cluster of the publisher, and one more to brokers of other clusters.
"""

from __future__ import annotations

from attrs import evolve

from gossamer.protocol.brokers.core.identifiers import Hop
from gossamer.protocol.brokers.scot.memory.messages import Notification
from gossamer.protocol.brokers.scot.memory.outbox import ScotOutbox
from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.overlay.labels import NO_CLUSTERS
from gossamer.protocol.brokers.scot.routing.around import reroute
from gossamer.protocol.brokers.scot.routing.targets import targets_of


def route(state: State, out: ScotOutbox, hop: Hop, notification: Notification) -> None:
    """Deliver a notification here, and send one copy on each target link (Algorithm 3)."""
    targets = targets_of(state, hop, notification)
    out.deliver_to(notification, targets.local)
    targets = reroute(state, out, notification, targets)
    copy = evolve(notification, targets=NO_CLUSTERS)
    for name in (*targets.intra, *targets.inter.values()):
        out.send(name, copy)
