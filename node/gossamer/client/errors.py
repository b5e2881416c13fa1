"""What a client of a node raises; `gossamer.node.errors` offers the same classes.

Messages are one sentence that names what was given and what was expected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class NodeError(Exception):
    """Base of all errors of nodes and of their clients; abstract, never raised itself."""


class NodeNotRunningError(NodeError):
    """No node answers at the local socket of a folder; nothing was sent.

    Attributes:
        folder: the folder.
        reason: what was found there.
    """

    def __init__(self, folder: object, reason: str) -> None:
        self.folder = folder
        self.reason = reason
        super().__init__(
            f"no node runs in {folder} ({reason}), "
            f"expected one started by 'gossamer node run {folder}'"
        )


class LocalSocketError(NodeError):
    """The local socket cannot be used; nothing was opened.

    Attributes:
        address: the socket's path or address, or the file with its token.
        reason: what is wrong with it, and what was expected.
    """

    def __init__(self, address: object, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(f"{address} {reason}")


class HandshakeFailed(NodeError):
    """A connection came about, but no agreement on it: not TLS, silence, or an early end.

    Attributes:
        reason: what happened, in words.
        cause: the word for it in the metrics: "timeout", "certificate" or "bad hello".
    """

    def __init__(self, reason: str, cause: str = "bad hello") -> None:
        self.reason = reason
        self.cause = cause
        super().__init__(f"the handshake failed: {reason}")


class TransportBroken(NodeError):
    """A connection has ended; frames under way may have arrived or not.

    Attributes:
        peer: whom it led to, in words.
        reason: what happened, in words.
        by_us: whether this end closed it, and neither the other one nor the network.
    """

    def __init__(self, peer: str, reason: str, by_us: bool = False) -> None:
        self.peer = peer
        self.reason = reason
        self.by_us = by_us
        what = "was closed here" if by_us else "broke"
        super().__init__(f"the connection to {peer} {what} ({reason})")


class RefusedByNodeError(NodeError):
    """The node refused a request over its local socket; it changed nothing.

    Attributes:
        cause: what kind of refusal, such as the name of the error there.
        reason: the node's own sentence.
    """

    def __init__(self, cause: str, reason: str) -> None:
        self.cause = cause
        self.reason = reason
        super().__init__(reason)


class UnacknowledgedError(NodeError):
    """The node published events for which it got no acknowledgement in time.

    Each of them may have reached all of its subscribers, some or none.

    Attributes:
        events: their ids.
        published: how many events of the request were published, these included.
        reason: the node's own sentence about one of them.
    """

    def __init__(self, events: Sequence[str], published: int, reason: str) -> None:
        self.events = tuple(events)
        self.published = published
        self.reason = reason
        super().__init__(reason)


class PublicationUncertainError(TransportBroken):
    """The connection ended before the node told what became of events; nothing is tried again.

    Each of them may have been published, and acknowledged, or not.

    Attributes:
        events: how many there are.
    """

    def __init__(self, events: int, reason: str) -> None:
        self.events = events
        super().__init__("the node", reason)
        what = "an event" if events == 1 else f"{events} events"
        self.args = (f"{self} before it was known whether {what} had been published",)


class NoReplyError(NodeError):
    """Nobody replied to a request in time; who got it may still be at work.

    Attributes:
        event: id of the request.
        timeout_s: for how long nobody did.
    """

    def __init__(self, event: str, timeout_s: float) -> None:
        self.event = event
        self.timeout_s = timeout_s
        super().__init__(f"nobody replied to request {event} within {timeout_s:g} s")


class NodeLostError(NodeError):
    """The connection to the node ended and could not be had again in time.

    Attributes:
        folder: of the node.
        patience_s: seconds for which that was tried.
        reason: what was found last.
    """

    def __init__(self, folder: object, patience_s: float, reason: str) -> None:
        self.folder = folder
        self.patience_s = patience_s
        self.reason = reason
        super().__init__(
            f"the node in {folder} was away for more than {patience_s:g} s ({reason}), "
            "expected it to come back"
        )


class UnusableValueError(NodeError, ValueError):
    """A value, a payload or a text that cannot travel; nothing was sent.

    Attributes:
        attribute: whose value it is, None of a payload or a text.
    """

    def __init__(self, sentence: str, attribute: object = None) -> None:
        self.attribute = attribute
        super().__init__(sentence)


@contextmanager
def unwrapped() -> Iterator[None]:
    """Raise the only error of a group of tasks as itself; several stay a group."""
    try:
        yield
    except BaseExceptionGroup as group:
        error = only_error(group)
        if error is None:
            raise
        raise error from error.__cause__


def only_error(group: BaseException) -> BaseException | None:
    """The only error in nested groups, None where there are several.

    Several connections that lost the same node have one reason, of which the first one tells.
    """
    first, *others = _leaves(group)
    lost = all(isinstance(one, NodeLostError) for one in (first, *others))
    return first if lost or not others else None


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for one in error.exceptions for leaf in _leaves(one)]
