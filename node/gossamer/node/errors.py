"""Every error that the node raises, under one name; a class for what a caller can tell apart.

Messages are one sentence that names what was given and what was expected. Errors that a remote peer
causes also derive from `RemoteProtocolError`, those of the caller from `LocalProtocolError`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

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
)
from gossamer.protocol.kernel.errors import LocalProtocolError, RemoteProtocolError, expectation

__all__ = [
    "BadFrame",
    "CertificateError",
    "ChangedEvent",
    "ClusterFolderError",
    "CommandError",
    "ConfigurationError",
    "DoubledIdentity",
    "EventInputError",
    "ForeignCertificateError",
    "FrameTooLarge",
    "HandshakeFailed",
    "InterfaceError",
    "JoinError",
    "KeyMismatchError",
    "ListenFailed",
    "LocalSocketError",
    "NoAnswerError",
    "NoReplyError",
    "NodeError",
    "NodeLostError",
    "NodeNotRunningError",
    "NotAcknowledged",
    "PeerRefused",
    "PeerRevoked",
    "PeerStopped",
    "PeerUnreachable",
    "PublicationUncertainError",
    "RefusedByNodeError",
    "RefusedByPeer",
    "RequestError",
    "RevokedCertificateError",
    "SecurityError",
    "SignedDataError",
    "StoreError",
    "TransportBroken",
    "UnacknowledgedError",
    "UntimelyCertificateError",
    "WorkApartError",
    "brief",
]


def brief(value: object) -> str:
    """The value as text of at most a line."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


class ConfigurationError(NodeError):
    """A node's configuration is impossible; nothing was built from it.

    Attributes:
        place: the file, environment variable or flag at fault, "" where there is none.
        field: dotted name of the setting, or what else is wrong.
        value: what was given.
        expected: what would have been accepted, in words.
        found: words printed in place of the value, such as "missing".
    """

    def __init__(
        self, place: str, field: str, value: object, expected: str, found: str | None = None
    ) -> None:
        self.place = place
        self.field = field
        self.value = value
        self.expected = expected
        self.found = found
        prefix = f"{place}: " if place else ""
        named = field if field.isprintable() else brief(field)
        super().__init__(f"{prefix}{named} is {found or brief(value)}, {expectation(expected)}")


class CommandError(NodeError):
    """A command cannot do what was asked for; nothing was written but what the sentence names.

    It is made of a sentence, or of a place and what is wrong with it.
    """

    def __init__(self, *said: object) -> None:
        super().__init__(" ".join(map(str, said)))


class EventInputError(NodeError):
    """An event given on the command line or in a file is none; it was not published.

    Attributes:
        reason: what is wrong with it, and what was expected.
    """

    def __init__(self, place: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{place}: {reason}")


class RequestError(NodeError, LocalProtocolError):
    """An application or a client asked for what it cannot have; nothing changed."""


class WorkApartError(NodeError):
    """Work that was begun in a process of its own came to nothing; it may be begun again."""


class InterfaceError(NodeError):
    """An interface or address is gone, or multicast does not work here; nothing was announced."""


class NoAnswerError(NodeError):
    """The peer of a permanent key did not answer a question; it may have taken it or not."""

    def __init__(self, key: int, reason: str) -> None:
        super().__init__(f"peer {key:016x} gave no answer ({reason})")


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
    """This peer belongs to its cluster no more; nothing was published."""

    def __init__(self, key: int) -> None:
        super().__init__(
            f"this peer ({key:016x}) is revoked: no other peer takes its events; ask where the "
            "cluster was made, and join by a new invitation in a new folder"
        )


class PeerStopped(NodeError, LocalProtocolError):
    """The peer is stopping or has stopped; nothing was done."""

    def __init__(self) -> None:
        super().__init__("the peer has stopped")


# Keys, certificates, tokens and revocation.


class SecurityError(NodeError):
    """Base of what keys, certificates, tokens and revocation refuse; abstract."""


class ClusterFolderError(SecurityError):
    """A folder of a member or of the authority, or a file in it, cannot be used; none changed.

    Attributes:
        path: the folder or file.
        reason: what is wrong with it, and what was expected.
    """

    def __init__(self, path: object, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} {reason}")


class CertificateError(SecurityError, RemoteProtocolError):
    """A certificate proves no membership; malformed, where it is of no subclass."""


class ForeignCertificateError(CertificateError):
    """The certificate was not issued by this cluster's authority."""


class KeyMismatchError(CertificateError):
    """The certificate belongs to another peer than the one that shows it."""


class RevokedCertificateError(CertificateError):
    """The cluster's authority has revoked the certificate or its key.

    Attributes:
        key: permanent key of the peer.
    """

    def __init__(self, key: int) -> None:
        self.key = key
        super().__init__(
            f"the certificate of peer {key:016x} is revoked; it needs a new invitation"
        )


class UntimelyCertificateError(CertificateError):
    """The certificate's time is over or has not come, or this machine's clock is wrong."""


class JoinError(SecurityError, RemoteProtocolError):
    """A peer does not join, or its certificate is not renewed; what there was before stays.

    Attributes:
        cause: one of the causes of `security.joining.join_protocol`; "" where none fits, such as
            where nobody was reached, or asked since the text is no token.
        attempts: what happened at each address that was tried, "address: reason".
    """

    def __init__(self, sentence: str, cause: str = "", attempts: tuple[str, ...] = ()) -> None:
        self.cause = cause
        self.attempts = attempts
        super().__init__(sentence)


class SignedDataError(SecurityError, RemoteProtocolError):
    """A message of a join, a list of revoked certificates or a version of the schema is malformed.

    Or it is not of whom it has to be. Nothing of it was used; what there was before stays.
    """


# The state file.


class StoreError(NodeError):
    """The state file cannot be used, or the disk is full; a write that failed left no trace.

    Attributes:
        path: the file.
    """

    def __init__(self, path: object, reason: str) -> None:
        self.path = path
        super().__init__(f"{path} {reason}")


# Connections to other peers.


class BadFrame(NodeError, RemoteProtocolError):
    """A peer sent a frame that breaks the rules; nothing of it was used.

    Args:
        frame: type of the frame, or "frame" where it was not even readable.
        field: what is wrong in it: the path of a field, or a property such as "length".
        value: the value found, shortened.
        expected: what would have been accepted, in words.
    """

    def __init__(self, frame: str, field: str, value: str, expected: str) -> None:
        super().__init__(f"{frame}: {field} is {value}, expected {expected}")


class ChangedEvent(BadFrame):
    """A peer sent an event whose identifier is not that of its content; nothing of it was used.

    No peer passes such an event on that does what it should: this one changed it.

    Attributes:
        event: the identifier that it came under.
        publisher: permanent key that it names as its publisher's, -1 where it names none.
    """

    def __init__(self, event: int, publisher: int, field: str, value: str, expected: str) -> None:
        self.event = event
        self.publisher = publisher
        super().__init__("record", field, value, expected)


class FrameTooLarge(NodeError, LocalProtocolError):
    """We were about to send a frame that every peer would refuse; it was not sent."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"a frame of {size} bytes, expected at most {limit} (frame_bytes)")


class PeerRefused(NodeError, RemoteProtocolError):
    """We do not accept this peer; it was told why, and the connection was closed.

    Attributes:
        reason: why, in words that the peer may read.
        cause: the word for it on the wire.
        proof: of its revocation, where that is why; see `gossamer.node.security.revocation`.
    """

    def __init__(self, reason: str, cause: str = "refused", proof: bytes = b"") -> None:
        self.reason = reason
        self.cause = cause
        self.proof = proof
        super().__init__(f"refused a peer: {reason}")


class DoubledIdentity(PeerRefused):
    """The same, since another process runs under our own key."""


class RefusedByPeer(NodeError):
    """A peer does not accept us.

    Attributes:
        cause: the word for it on the wire, or "tls" where the peer refused our certificate.
        reason: why, in the peer's words.
        proof: that we are revoked, where the peer says so and has one; not verified.
    """

    def __init__(self, cause: str, reason: str, proof: bytes = b"") -> None:
        self.cause = cause
        self.reason = reason
        self.proof = proof
        super().__init__(f"the peer refused this one: {reason or cause}")


class PeerUnreachable(NodeError):
    """No address of a peer led to it; nothing was sent.

    Attributes:
        attempts: every address tried, with what went wrong there.
        retry_s: seconds until another attempt is made; 0 where one may be made now.
    """

    def __init__(
        self, key: int | None, attempts: Sequence[tuple[str, str]], retry_s: float = 0.0
    ) -> None:
        self.attempts = tuple(attempts)
        self.retry_s = retry_s
        who = "the peer" if key is None else f"peer {key:016x}"
        tried = "; ".join(f"{where}: {why}" for where, why in attempts) or "no address is known"
        super().__init__(f"{who} cannot be reached ({tried})")


class ListenFailed(NodeError):
    """An address cannot be listened on; what was opened for the same call was closed again.

    Attributes:
        address: the address.
        reason: what the system says.
    """

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        is_taken = reason.casefold() == os.strerror(errno.EADDRINUSE).casefold()
        advice = "; name another port in node.toml, or stop what has it" if is_taken else ""
        super().__init__(f"cannot listen on {address}: {reason}{advice}")
