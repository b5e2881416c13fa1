"""What a running peer raises towards its applications."""

from __future__ import annotations

from gossamer.node.errors.base import NodeError, brief
from gossamer.protocol.kernel.errors import LocalProtocolError


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


class WorkApartError(NodeError):
    """Work that was begun in a process of its own came to nothing; it may be begun again."""


class NoAnswerError(NodeError):
    """A peer did not answer a question; it may have taken it or not.

    Attributes:
        key: its permanent key.
        reason: what happened, in words.
    """

    def __init__(self, key: int, reason: str) -> None:
        self.key = key
        self.reason = reason
        super().__init__(f"peer {key:016x} gave no answer ({reason})")


class NobodyWaitsError(NodeError, LocalProtocolError):
    """A reply came too late, or to no request; the requester did not get it.

    Attributes:
        key: permanent key of the requester's peer.
    """

    def __init__(self, key: int) -> None:
        self.key = key
        super().__init__(
            f"nobody waits at peer {key:016x} for a reply to this request any more: its time is "
            "over, it has all the replies that it wants, or its requester has gone"
        )


class NotAcknowledged(NodeError):
    """Nobody said in time that an event is held as promised; it may reach all, some or none.

    Attributes:
        event: its identifier.
        waited_s: for how long nobody did; None where the peer stopped meanwhile.
    """

    def __init__(self, event: int, waited_s: float | None) -> None:
        self.event = event
        self.waited_s = waited_s
        when = "before the peer stopped" if waited_s is None else f"within {waited_s:g} s"
        super().__init__(
            f"event {event:016x} was not acknowledged {when}, expected the word of its rendezvous "
            "nodes and their successors; it may have reached all of its subscribers, some or none"
        )


class PeerRevoked(NodeError, LocalProtocolError):
    """This peer belongs to its cluster no more; nothing was published.

    Attributes:
        key: its permanent key.
    """

    def __init__(self, key: int) -> None:
        self.key = key
        super().__init__(
            f"this peer ({key:016x}) is revoked: no other peer takes its events; ask where the "
            "cluster was made, and join by a new invitation in a new folder"
        )


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
