"""What the local socket and the commands raise."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.node.errors.base import NodeError
from gossamer.node.errors.transport import TransportBroken
from gossamer.protocol.kernel.errors import LocalProtocolError


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


class NodeRunningError(NodeError):
    """A node runs in this folder already; nothing was opened.

    Attributes:
        folder: the folder.
    """

    def __init__(self, folder: object) -> None:
        self.folder = folder
        super().__init__(f"a node runs in {folder} already, expected one at a time")


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


class ClientRequestError(NodeError, LocalProtocolError):
    """A client asked for what its connection cannot have; nothing changed.

    Attributes:
        reason: what, and what was expected.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class SchemaMismatchError(NodeError):
    """A schema is not the cluster's; nothing was built from it.

    Attributes:
        place: where it is described.
        found: its fingerprint.
        expected: the fingerprint of the cluster's schema.
    """

    def __init__(self, place: object, found: str, expected: str) -> None:
        self.place = place
        self.found = found
        self.expected = expected
        super().__init__(
            f"{place} describes schema {found}, expected {expected}, with which the cluster was "
            "made; undo the change, or make a new cluster"
        )


class EventInputError(NodeError):
    """An event given on the command line or in a file is none; it was not published.

    Attributes:
        place: the argument or line.
        reason: what is wrong with it, and what was expected.
    """

    def __init__(self, place: str, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(f"{place}: {reason}")


class BatchLineError(NodeError):
    """A line of a batch file is no operation; nothing of the file was done.

    Attributes:
        path: the file.
        line, column: where, from 1.
        reason: what is wrong there, and what was expected.
    """

    def __init__(self, path: object, line: int, column: int, reason: str) -> None:
        self.path = path
        self.line = line
        self.column = column
        self.reason = reason
        super().__init__(f"{path}, line {line}, column {column}: {reason}; nothing was done")


class BatchStoppedError(NodeError):
    """An operation of a batch file was refused, or interrupted; those before it were carried out.

    Attributes:
        path: the file.
        line: of the operation, from 1.
        reason: the node's own sentence.
        done: how many operations were carried out before.
    """

    def __init__(self, path: object, line: int, reason: str, done: int) -> None:
        self.path = path
        self.line = line
        self.reason = reason
        self.done = done
        words = {0: "nothing was done", 1: "the operation before it was done"}
        before = words.get(done, f"the {done} operations before it were done")
        super().__init__(f"{path}, line {line}: {reason}; {before}")


class RouteUnknownError(NodeError):
    """A broker does not remember a publication whose way was asked for; nothing changed.

    Attributes:
        publication: its id.
    """

    def __init__(self, publication: str, remembered: int) -> None:
        self.publication = publication
        super().__init__(
            f"publication {publication} is not remembered here, expected one of the last "
            f"{remembered} that passed this broker"
        )
