"""Brokers: content-based routing with covering, and pruning without bursts.

After PADRES, and after Chen et al., *Congestion avoidance with selective filter aggregation* and
*Congestion avoidance with incremental filter aggregation in content-based routing networks*. The
one door is `broker.Broker.handle`: a message in, effects out; no clock, socket or file. Read in
this order:

- `identifiers`, `messages`, `effects`, `errors`: what crosses the door
- `settings`: covering off, lazy, active, packed, selective, incremental, and their figures
- `subscriptions`, `advertisements`, `sent`, `link`, `statistics`, `state`: what is remembered
- `routing`, `covering`, `publishing`: routing
- `pruning`, `removal`: unsubscription, Algorithm 1 of both papers, aggregates left behind
- `sessions`, `clients`, `broker`: links, clients, and the door itself; `dump`: a broker as data

    >>> from gossamer.protocol.broker import Broker, BrokerSettings, client
    >>> from gossamer.protocol.broker import messages
"""

from gossamer.protocol.broker.broker import Broker
from gossamer.protocol.broker.identifiers import Hop, Id, client, neighbour
from gossamer.protocol.broker.settings import COVERINGS, BrokerSettings

__all__ = ["COVERINGS", "Broker", "BrokerSettings", "Hop", "Id", "client", "neighbour"]
