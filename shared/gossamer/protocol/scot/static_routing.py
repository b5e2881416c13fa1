"""Static notification routing, SNR (Sec. 6.2, Algorithm 3).

The host broker of the publisher sends one copy on each target link. Within a cluster, a tree,
copies take the reverse paths of subscriptions; into another cluster they are sent by the host
broker alone, to its secondary neighbour there. A way has at most diam(acyclic factor) hops within
the cluster of the publisher, and one more to brokers of other clusters.
"""

from __future__ import annotations

from attrs import evolve

from gossamer.protocol.broker.identifiers import Hop
from gossamer.protocol.scot.around import reroute
from gossamer.protocol.scot.labels import NO_CLUSTERS
from gossamer.protocol.scot.messages import Notification
from gossamer.protocol.scot.outbox import Outbox
from gossamer.protocol.scot.state import State
from gossamer.protocol.scot.targets import targets_of


def route(state: State, out: Outbox, hop: Hop, notification: Notification) -> None:
    """Deliver a notification here, and send one copy on each target link (Algorithm 3)."""
    targets = targets_of(state, hop, notification)
    out.deliver(notification, targets.local)
    targets = reroute(state, out, notification, targets)
    copy = evolve(notification, targets=NO_CLUSTERS)
    for name in (*targets.intra, *targets.inter.values()):
        out.send(name, copy)
