"""Tree brokers: content-based routing with covering, and pruning without bursts.

After PADRES, and after Chen et al., *Congestion avoidance with selective filter aggregation* and
*Congestion avoidance with incremental filter aggregation in content-based routing networks*. The
one door is `core.broker.Broker.handle`: a message in, effects out; no clock, socket or file. Read
in this order:

- `core`, beside this folder: what crosses the door, and all that is not routing
- `settings`: covering off, lazy, active, packed, selective, incremental, and their figures
- `messages`, `outbox`: what brokers say to each other
- `state`, `tables`, `advertisements`: what is remembered
- `routing`, `covering`, `pruning`: rules, unsubscription by Algorithm 1 of both papers among them
- `sessions`: links; `broker`: the `Routing` of this family, and what can be seen of a broker
- `codec`: messages and a broker as plain data, for links and logs

A broker with two clients:

    >>> from gossamer.protocol.brokers.core import messages
    >>> from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
    >>> from gossamer.protocol.brokers.core.messages import client
    >>> from gossamer.protocol.content.filters import parse
    >>> broker = TreeBroker("B1", TreeSettings(covering="incremental"))
    >>> offer = (("quotes", parse("present(symbol) and price > 0")),)
    >>> broker.handle(0, client("exchange"), messages.Attach(advertisements=offer))
    []
    >>> wanted = (("cheap", parse('symbol == "IBM" and price < 120.5')),)
    >>> broker.handle(1, client("trader"), messages.Attach(subscriptions=wanted))
    []
    >>> quote = messages.Publish({"symbol": "IBM", "price": 81.5})
    >>> (effect,) = broker.handle(2, client("exchange"), quote)
    >>> effect.client, effect.labels, effect.publication.id
    ('trader', ('cheap',), Id(broker='B1', number=3))
    >>> (effect,) = broker.handle(3, client("exchange"), messages.Publish({"price": -1}))
    >>> print(effect.error)
    client 'exchange' has no advertisement that allows price = -1
"""

from gossamer.protocol.brokers.tree.broker import TreeBroker
from gossamer.protocol.brokers.tree.settings import COVERINGS, TreeSettings

__all__ = ["COVERINGS", "TreeBroker", "TreeSettings"]
