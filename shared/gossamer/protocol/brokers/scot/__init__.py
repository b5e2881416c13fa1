"""SCOT: content-based routing in structured cyclic overlays, with dynamic routing.

After Shafique, *Content-based dynamic routing in structured overlay networks* (OctopiS). An overlay
is the Cartesian product of a tree, copied once for each cluster, and a complete graph, which links
the copies of every broker. Brokers route by subscriptions alone. The one door is
`core.broker.Broker.handle`: a message in, effects out; no clock, socket or file. Read in this
order:

- `topology`: the product of a tree and a complete graph; `settings`, `messages`: how a broker is
  set, and what crosses the door; `table`, `state`: what is remembered
- `broadcast`, `routing`: Algorithms 1 to 4, subscription broadcast, also around what failed, and
  three ways to route; `detours`: the target links of a notification, and ways around what failed or
  is overloaded
- `take_over`: clients of dead brokers, and brokers that were dead, beyond the paper, by what
  `take_over_memory` keeps; `promises` numbers and keeps what a broker promises, `handing_over` is
  what backups do for each other
- `broker`: the `Routing` of this family with its links, and what can be seen of a broker
- `codec`: messages and a broker as plain data

Three clusters of two brokers each, and the links of one broker:

    >>> from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot
    >>> scot = Scot(Factor.path("ab"), Factor.complete(3))
    >>> scot.broker_count, scot.intra_cluster_count, scot.inter_cluster_count
    (6, 3, 6)
    >>> broker = BrokerLabel("a", 0)
    >>> [str(other) for other in scot.primary_neighbours(broker)]
    ['B(b,0)']
    >>> [str(other) for other in scot.secondary_neighbours(broker)]
    ['B(a,1)', 'B(a,2)']

What a subscription of one of its clients makes of a broker:

    >>> from gossamer.protocol.brokers.core import messages
    >>> from gossamer.protocol.brokers.core.messages import client
    >>> from gossamer.protocol.content.filters import parse
    >>> from gossamer.protocol.brokers.scot import NeighbourUp, ScotBroker, ScotSettings
    >>> host = ScotBroker("B1", scot.position(broker), ScotSettings(routing="static"))
    >>> host.handle(0, None, NeighbourUp("B2", BrokerLabel("b", 0)))
    []
    >>> wanted = (("cheap", parse('symbol == "IBM" and price < 120.5')),)
    >>> (sent,) = host.handle(1, client("trader"), messages.Attach(subscriptions=wanted))
    >>> sent.neighbour, sent.message.host.text(3)
    ('B2', '001')
"""

from gossamer.protocol.brokers.scot.broker import ScotBroker
from gossamer.protocol.brokers.scot.messages import NeighbourUp
from gossamer.protocol.brokers.scot.settings import ROUTINGS, ScotSettings
from gossamer.protocol.brokers.scot.topology import (
    BrokerLabel,
    ClusterBitVector,
    Factor,
    Position,
    Scot,
)

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
