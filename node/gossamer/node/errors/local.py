"""What the local socket and the commands raise; what clients do is in `gossamer.client.errors`."""

from __future__ import annotations

from gossamer.node.errors.base import NodeError
from gossamer.protocol.kernel.errors import LocalProtocolError


class NodeRunningError(NodeError):
    """A node runs in this folder already; nothing was opened.

    Attributes:
        folder: the folder.
    """

    def __init__(self, folder: object) -> None:
        self.folder = folder
        super().__init__(f"a node runs in {folder} already, expected one at a time")


class NotStoppedError(NodeError):
    """A node was told to stop, and one runs there still, or again.

    Attributes:
        folder: the folder.
        patience_s: seconds that were waited.
    """

    def __init__(self, folder: object, patience_s: float) -> None:
        self.folder, self.patience_s = folder, patience_s
        super().__init__(
            f"the node in {folder} was told to stop, and after {patience_s:g} s one runs there "
            "still, or again; its log says more"
        )


class IdentityInUseError(NodeError):
    """Another node of this user runs as the same peer; nothing was started.

    Attributes:
        folder: of the one that was to run.
        key: of the peer, 16 hexadecimal digits.
        holder: the folder of the one that runs.
    """

    def __init__(self, folder: object, key: str, holder: str) -> None:
        self.folder, self.key, self.holder = folder, key, holder
        super().__init__(
            f"{folder} is of peer {key}, which runs in {holder} already, expected one at a time"
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
