"""What a running peer raises towards its applications."""

from __future__ import annotations

from gossamer.node.errors.base import NodeError, brief
from gossamer.protocol.errors import LocalProtocolError


class EventTooLarge(NodeError, LocalProtocolError):
    """An event's values take more bytes than peers carry; it was not published.

    Attributes:
        size: bytes that they take.
        limit: bytes that they may take.
    """

    def __init__(self, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(f"an event of {size} bytes, expected at most {limit}")


class SubscriptionInUse(NodeError, LocalProtocolError):
    """A named application takes events from the same subscription already; nothing changed.

    Attributes:
        name: of the application.
        expression: of the subscription.
    """

    def __init__(self, name: str, expression: str) -> None:
        self.name = name
        self.expression = expression
        super().__init__(
            f"application {brief(name)} takes events of {brief(expression)} already, "
            "expected another name or the end of that stream"
        )


class PeerStopped(NodeError, LocalProtocolError):
    """The peer is stopping or has stopped; nothing was done."""

    def __init__(self) -> None:
        super().__init__("the peer has stopped")
