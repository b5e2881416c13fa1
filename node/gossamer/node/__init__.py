"""The trio node: the protocol on real sockets, and a peer for programs of one's own.

    async with open_peer("demo/peer1") as peer:
        await peer.ready()
        async with peer.subscribe("price > 80") as events:
            async for event in events:
                print(event.values)

What is offered here is loaded when it is first used; everything else may change.

- `peer`: a peer; `broker`: a broker
- `transport`: checked frames between nodes; `security`: who belongs to the cluster; `store`: what
  outlives the process; `discovery`: finding peers; `config`: what can be configured
- `local`: the socket for applications of the machine; `page`: the one for browsers
- `monitoring`: logs, metrics, members; `doctor`: why a peer cannot be reached; `errors`: what is
  raised
- `cli`, `commands`: the command line

Begin at `peer.peer`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gossamer.command.extras import check_requirements

check_requirements(__name__)

if TYPE_CHECKING:
    from gossamer.node.config.node import NodeConfig
    from gossamer.node.errors import (
        ClusterFolderError,
        ConfigurationError,
        ListenFailed,
        NodeError,
        NotAcknowledged,
        PeerRevoked,
        PeerStopped,
        RequestError,
        SecurityError,
        StoreError,
    )
    from gossamer.node.peer.application import Peer
    from gossamer.node.peer.cluster_info import peer_config
    from gossamer.node.peer.frames.events import Event
    from gossamer.node.peer.peer import open_peer
    from gossamer.node.peer.subscriptions import Subscription
    from gossamer.protocol.content.schema import Schema
    from gossamer.protocol.content.values import Payload
    from gossamer.protocol.kernel.errors import (
        CapacityError,
        ConfigError,
        ContentError,
        ExpressionError,
        ProtocolError,
    )

__all__ = [
    "CapacityError",
    "ClusterFolderError",
    "ConfigError",
    "ConfigurationError",
    "ContentError",
    "Event",
    "ExpressionError",
    "ListenFailed",
    "NodeConfig",
    "NodeError",
    "NotAcknowledged",
    "Payload",
    "Peer",
    "PeerRevoked",
    "PeerStopped",
    "ProtocolError",
    "RequestError",
    "Schema",
    "SecurityError",
    "StoreError",
    "Subscription",
    "open_peer",
    "peer_config",
]

_PLACES = {
    "gossamer.node.config.node": "NodeConfig",
    "gossamer.node.peer.application": "Peer",
    "gossamer.node.peer.cluster_info": "peer_config",
    "gossamer.node.peer.frames.events": "Event",
    "gossamer.node.peer.peer": "open_peer",
    "gossamer.node.peer.subscriptions": "Subscription",
    "gossamer.protocol.kernel.errors": (
        "CapacityError ConfigError ContentError ExpressionError ProtocolError"
    ),
    "gossamer.protocol.content.values": "Payload",
    "gossamer.protocol.content.schema": "Schema",
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES.get(name, "gossamer.node.errors")), name)
