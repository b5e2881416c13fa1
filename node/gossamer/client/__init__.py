"""The node of this machine, for every Python program: from trio, from asyncio, or from neither.

- `client`: `open_client`, for trio and asyncio
- `blocking`: `connect`, for programs without an event loop
- `results`, `errors`: what they give and raise; also what replies to requests of others
- `session`, `links`, `link`: one client over many connections, one after another, and each of
  these, with where the socket is
- `node_requests`: what a session publishes, and what it asks of the node itself
- `frames`: the local socket's protocol

It is light to import: nothing of the node is, nor of the protocol layer but its table of limits;
what is offered here is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gossamer.command.extras import check_requirements

check_requirements(__name__)

if TYPE_CHECKING:
    from gossamer.client.blocking import (
        BlockingClient,
        BlockingRequest,
        BlockingRequests,
        BlockingSubscription,
        connect,
    )
    from gossamer.client.client import Client, Subscription, open_client
    from gossamer.client.errors import (
        HandshakeFailed,
        LocalSocketError,
        NodeError,
        NodeLostError,
        NodeNotRunningError,
        NoReplyError,
        PublicationUncertainError,
        RefusedByNodeError,
        TransportBroken,
        UnacknowledgedError,
        UnusableValueError,
    )
    from gossamer.client.links import CONNECTED
    from gossamer.client.results import (
        Fate,
        LastMark,
        Outcome,
        Payload,
        ReceivedEvent,
        Reply,
        Request,
        Requests,
    )

__all__ = [
    "CONNECTED",
    "BlockingClient",
    "BlockingRequest",
    "BlockingRequests",
    "BlockingSubscription",
    "Client",
    "Fate",
    "HandshakeFailed",
    "LastMark",
    "LocalSocketError",
    "NoReplyError",
    "NodeError",
    "NodeLostError",
    "NodeNotRunningError",
    "Outcome",
    "Payload",
    "PublicationUncertainError",
    "ReceivedEvent",
    "RefusedByNodeError",
    "Reply",
    "Request",
    "Requests",
    "Subscription",
    "TransportBroken",
    "UnacknowledgedError",
    "UnusableValueError",
    "connect",
    "open_client",
]

_PLACES = {
    "blocking": "BlockingClient BlockingRequest BlockingRequests BlockingSubscription connect",
    "client": "Client Subscription open_client",
    "links": "CONNECTED",
    "results": "Fate LastMark Outcome Payload ReceivedEvent Reply Request Requests",
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'errors')}"), name)
