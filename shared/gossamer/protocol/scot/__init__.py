"""SCOT: content-based routing in structured cyclic overlays, with dynamic routing.

After Shafique, *Content-based dynamic routing in structured overlay networks* (OctopiS). An overlay
is the Cartesian product of a tree, copied once for each cluster, and a complete graph, which links
the copies of every broker. Brokers route by subscriptions alone. The one door is
`broker.ScotBroker.handle`: a message in, effects out; no clock, socket or file. Read in this order:

- `labels`, `factors`, `topology`, `errors`: the overlay, and what a broker knows of it
- `messages`, `effects`, `settings`: what crosses the door
- `catalogue`, `table`, `congestion`, `state`: what is remembered
- `broadcast`: Algorithm 1; `targets`, `static_routing`: Algorithm 3; `dynamic_routing`: Algorithm 4
- `covering`, `cluster_detours`, `around`: fewer subscriptions, ways around congestion within
  clusters, and past failed links and brokers, beyond the paper
- `bid_routing`: Algorithm 2, the baseline without clusters
- `routing`, `link`, `clients`, `broker`: the three ways to route, links, clients, the door itself
- `keeping`, `relaying`, `keeping_outbox`, `take_over`, `coming_back`: clients of dead brokers, and
  brokers that were dead, beyond the paper
- `dump`, `codec`: a broker and its messages as data

Three clusters of two brokers each, and the links of one broker:

    >>> from gossamer.protocol.scot import BrokerLabel, Factor, Scot
    >>> scot = Scot(Factor.path("ab"), Factor.complete(3))
    >>> scot.broker_count, scot.intra_cluster_count, scot.inter_cluster_count
    (6, 3, 6)
    >>> broker = BrokerLabel("a", 0)
    >>> [str(other) for other in scot.primary_neighbours(broker)]
    ['B(b,0)']
    >>> [str(other) for other in scot.secondary_neighbours(broker)]
    ['B(a,1)', 'B(a,2)']

What a subscription of one of its clients makes of a broker:

    >>> from gossamer.protocol.broker import client, messages
    >>> from gossamer.protocol.content.filters import parse
    >>> from gossamer.protocol.scot import NeighbourUp, ScotBroker, ScotSettings
    >>> host = ScotBroker("B1", scot.position(broker), ScotSettings(routing="static"))
    >>> host.handle(0, None, NeighbourUp("B2", BrokerLabel("b", 0)))
    []
    >>> wanted = (("cheap", parse('symbol == "IBM" and price < 120.5')),)
    >>> (sent,) = host.handle(1, client("trader"), messages.Attach(subscriptions=wanted))
    >>> sent.neighbour, sent.message.host.text(3)
    ('B2', '001')
"""

from gossamer.protocol.scot.broker import ScotBroker
from gossamer.protocol.scot.factors import Factor
from gossamer.protocol.scot.labels import BrokerLabel, ClusterBitVector
from gossamer.protocol.scot.messages import NeighbourUp
from gossamer.protocol.scot.settings import ROUTINGS, ScotSettings
from gossamer.protocol.scot.topology import Position, Scot

__all__ = [
    "ROUTINGS",
    "BrokerLabel",
    "ClusterBitVector",
    "Factor",
    "NeighbourUp",
    "Position",
    "Scot",
    "ScotBroker",
    "ScotSettings",
]
