"""Brokers for applications that embed them: everything that is needed, from one module.

`LocalOverlay` runs a small overlay in memory, with a clock of its own: for tests of applications
and for first experiments. An application with links of its own drives a `TreeBroker` itself:
`handle` takes a message and says what is to happen, by effects that the application carries out;
their `id` is what the broker calls what a client subscribed, advertised or published.
Nothing here knows a socket, file or real clock. What is offered is loaded when it is first used;
begin with `local_overlay`.

    >>> from gossamer.brokers import LocalOverlay
    >>> overlay = LocalOverlay([("A", "B"), ("B", "C")])
    >>> exchange, trader = overlay.attach("exchange", "A"), overlay.attach("trader", "C")
    >>> exchange.advertise("present(symbol) and price > 0")
    'a1'
    >>> overlay.settle()
    >>> trader.subscribe('symbol == "IBM" and price < 120.5')
    's1'
    >>> overlay.settle()
    >>> exchange.publish({"symbol": "IBM", "price": 81.5})
    Id(broker='A', number=3)
    >>> overlay.settle()
    >>> [(one.values["price"], one.labels) for one in trader.take()]
    [(81.5, ('s1',))]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gossamer.brokers.local_overlay import Delivery, LocalClient, LocalOverlay
    from gossamer.protocol.brokers.core.broker import SharedIndex, compiled_index
    from gossamer.protocol.brokers.core.effects import (
        Deliver,
        Effect,
        Effects,
        Moved,
        Refuse,
        Send,
        SetTimer,
    )
    from gossamer.protocol.brokers.core.messages import (
        Advertise,
        Attach,
        Congestion,
        Detach,
        Hop,
        Id,
        Move,
        NeighbourDown,
        NeighbourGone,
        NeighbourUp,
        Publish,
        Restarted,
        Subscribe,
        TimerFired,
        Unadvertise,
        Unsubscribe,
        client,
        neighbour,
    )
    from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot, ScotBroker, ScotSettings
    from gossamer.protocol.brokers.tree import COVERINGS, TreeBroker, TreeSettings
    from gossamer.protocol.content.filters import (
        Filter,
        Relation,
        advertisement_relation,
        advertises_more,
        both_allow,
        conforms,
        covers,
        disjoint,
        intersects,
        meets,
        parse,
        parse_publication,
        relation,
        to_padres,
        to_text,
    )
    from gossamer.protocol.kernel.errors import ConfigError, LocalProtocolError, ProtocolError

__all__ = [
    "COVERINGS",
    "Advertise",
    "Attach",
    "BrokerLabel",
    "ConfigError",
    "Congestion",
    "Deliver",
    "Delivery",
    "Detach",
    "Effect",
    "Effects",
    "Factor",
    "Filter",
    "Hop",
    "Id",
    "LocalClient",
    "LocalOverlay",
    "LocalProtocolError",
    "Move",
    "Moved",
    "NeighbourDown",
    "NeighbourGone",
    "NeighbourUp",
    "ProtocolError",
    "Publish",
    "Refuse",
    "Relation",
    "Restarted",
    "Scot",
    "ScotBroker",
    "ScotSettings",
    "Send",
    "SetTimer",
    "SharedIndex",
    "Subscribe",
    "TimerFired",
    "TreeBroker",
    "TreeSettings",
    "Unadvertise",
    "Unsubscribe",
    "advertisement_relation",
    "advertises_more",
    "both_allow",
    "client",
    "compiled_index",
    "conforms",
    "covers",
    "disjoint",
    "intersects",
    "meets",
    "neighbour",
    "parse",
    "parse_publication",
    "relation",
    "to_padres",
    "to_text",
]

_PLACES = {
    "gossamer.brokers.local_overlay": "Delivery LocalClient LocalOverlay",
    "gossamer.protocol.brokers.core.broker": "SharedIndex compiled_index",
    "gossamer.protocol.brokers.core.effects": "Deliver Effect Effects Moved Refuse Send SetTimer",
    "gossamer.protocol.brokers.core.messages": (
        "Advertise Attach Congestion Detach Hop Id Move NeighbourDown NeighbourGone "
        "NeighbourUp Publish Restarted Subscribe TimerFired Unadvertise Unsubscribe client "
        "neighbour"
    ),
    "gossamer.protocol.brokers.scot": "BrokerLabel Factor Scot ScotBroker ScotSettings",
    "gossamer.protocol.brokers.tree": "COVERINGS TreeBroker TreeSettings",
    "gossamer.protocol.content.filters": (
        "Filter Relation advertisement_relation advertises_more both_allow conforms covers "
        "disjoint intersects meets parse parse_publication relation to_padres to_text"
    ),
    "gossamer.protocol.kernel.errors": "ConfigError LocalProtocolError ProtocolError",
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
