"""Every error that the node raises, in one place.

Messages are one sentence that names what was given and what was expected. Errors that a remote peer
causes also derive from `RemoteProtocolError`, those of the caller from `LocalProtocolError`.
"""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.protocol.errors import LocalProtocolError, RemoteProtocolError


class NodeError(Exception):
    """Base of all errors of the node; abstract, never raised itself."""


# Transport (T)


class TransportClosed(NodeError, LocalProtocolError):
    """We closed this connection, so nothing can be sent on it any more; state is untouched.

    Attributes:
        peer: whom it led to, in words.
        reason: why it was closed.
    """

    def __init__(self, peer: str, reason: str) -> None:
        self.peer = peer
        self.reason = reason
        super().__init__(f"the connection to {peer} was closed here ({reason})")


class TransportBroken(NodeError):
    """The peer or the network ended this connection; frames under way may or may not have arrived.

    Attributes:
        peer: whom it led to, in words.
        reason: what happened, in words.
    """

    def __init__(self, peer: str, reason: str) -> None:
        self.peer = peer
        self.reason = reason
        super().__init__(f"the connection to {peer} broke ({reason})")


class BadFrame(NodeError, RemoteProtocolError):
    """A peer sent a frame that breaks the rules; nothing of it was used.

    Attributes:
        frame: type of the frame, or "frame" where it was not even readable.
        field: what is wrong in it: the path of a field, or a property such as "length".
        value: the value found, shortened.
        expected: what would have been accepted, in words.
    """

    def __init__(self, frame: str, field: str, value: str, expected: str) -> None:
        self.frame = frame
        self.field = field
        self.value = value
        self.expected = expected
        super().__init__(f"{frame}: {field} is {value}, expected {expected}")


class FrameTooLarge(NodeError, LocalProtocolError):
    """We were about to send a frame that every peer would refuse; it was not sent.

    Attributes:
        size: bytes of the frame.
        limit: bytes that a frame may have (setting `frame_bytes`).
    """

    def __init__(self, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(f"a frame of {size} bytes, expected at most {limit} (frame_bytes)")


class PeerRefused(NodeError, RemoteProtocolError):
    """We do not accept this peer; it was told why, and the connection was closed.

    Attributes:
        reason: why, in words that the peer may read.
        cause: the word for it on the wire.
    """

    def __init__(self, reason: str, cause: str = "refused") -> None:
        self.reason = reason
        self.cause = cause
        super().__init__(f"refused a peer: {reason}")


class RefusedByPeer(NodeError):
    """A peer does not accept us.

    Attributes:
        cause: the word for it on the wire, or "tls" where the peer refused our certificate.
        reason: why, in the peer's words.
    """

    def __init__(self, cause: str, reason: str) -> None:
        self.cause = cause
        self.reason = reason
        super().__init__(f"the peer refused this one: {reason or cause}")


class HandshakeFailed(NodeError):
    """A connection came about, but no agreement on it: not TLS, silence, or an early end.

    Attributes:
        reason: what happened, in words.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the handshake failed: {reason}")


class PeerUnreachable(NodeError):
    """No address of a peer led to it; nothing was sent.

    Attributes:
        key: permanent key of the peer, None where it was not known.
        attempts: every address tried, with what went wrong there.
        retry_s: seconds until another attempt is made; 0 where one may be made now.
    """

    def __init__(
        self, key: int | None, attempts: Sequence[tuple[str, str]], retry_s: float = 0.0
    ) -> None:
        self.key = key
        self.attempts = tuple(attempts)
        self.retry_s = retry_s
        who = "the peer" if key is None else f"peer {key}"
        tried = "; ".join(f"{where}: {why}" for where, why in attempts) or "no address is known"
        super().__init__(f"{who} cannot be reached ({tried})")


class PlainTextRefused(NodeError, LocalProtocolError):
    """Without certificates only loopback addresses may be used; nothing was opened.

    Attributes:
        address: the address that was asked for.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__(
            f"{address} without certificates, expected a loopback address such as 127.0.0.1 "
            "(make a cluster with 'gossamer node init' to use others)"
        )


class ListenFailed(NodeError):
    """An address cannot be listened on; what was opened for the same call was closed again.

    Attributes:
        address: the address.
        reason: what the system says.
    """

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(f"cannot listen on {address}: {reason}")


# Security and state (S)


class SecurityError(NodeError):
    """Base of what keys, certificates, tokens and revocation refuse; abstract."""


class KeyFileError(SecurityError):
    """A private key cannot be used or must not be overwritten; no file changed.

    Attributes:
        path: the file.
        reason: what is wrong with it, and what to do.
    """

    def __init__(self, path: object, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} {reason}")


class ClusterFolderError(SecurityError):
    """A cluster folder lacks a file, holds a bad one, or is in use; no file changed.

    Attributes:
        path: the folder or file.
        reason: what is wrong with it, and what was expected.
    """

    def __init__(self, path: object, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} {reason}")


class CertificateError(SecurityError, RemoteProtocolError):
    """A certificate proves no membership; base of the reasons. State is untouched."""


class MalformedCertificateError(CertificateError):
    """What was shown is no peer certificate."""


class ForeignCertificateError(CertificateError):
    """The certificate was not issued by this cluster's authority."""


class KeyMismatchError(CertificateError):
    """The certificate belongs to another peer than the one that shows it.

    Attributes:
        claimed: permanent key that the peer says it has.
        certified: permanent key that the certificate is for.
    """

    def __init__(self, claimed: int, certified: int) -> None:
        self.claimed = claimed
        self.certified = certified
        super().__init__(
            f"the certificate is for peer {certified:016x}, expected one for {claimed:016x}"
        )


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


class ExpiredCertificateError(CertificateError):
    """The certificate's time is over, or this machine's clock is ahead."""


class EarlyCertificateError(CertificateError):
    """The certificate's time has not come, or this machine's clock is behind."""


class TokenError(SecurityError):
    """A join token gives nothing; base of the reasons."""


class TokenTextError(TokenError, LocalProtocolError):
    """The text is no join token, or was changed on its way; nobody was asked."""


class TokenUnknownError(TokenError, RemoteProtocolError):
    """The inviter never gave this token away; no certificate was issued."""

    def __init__(self) -> None:
        super().__init__("the inviter does not know this token; ask for a new invitation")


class TokenExpiredError(TokenError, RemoteProtocolError):
    """The token's time is over; no certificate was issued."""

    def __init__(self) -> None:
        super().__init__("the token has expired; ask for a new invitation")


class TokenUsedError(TokenError, RemoteProtocolError):
    """Another peer has joined with this token; no further certificate was issued."""

    def __init__(self) -> None:
        super().__init__("the token was used by another peer; ask for a new invitation")


class JoinRequestError(SecurityError, RemoteProtocolError):
    """The other side of a join sent what the exchange does not allow; nothing was issued."""


class JoinRefusedError(SecurityError):
    """The inviter was reached and refused for a reason other than the token's state.

    Attributes:
        cause: one of the causes of `gossamer.node.security.join_protocol`.
    """

    def __init__(self, cause: str, sentence: str) -> None:
        self.cause = cause
        super().__init__(sentence)


class JoinFailedError(SecurityError):
    """No address of the token led to the inviter; a later attempt with the token may succeed.

    Attributes:
        attempts: what happened at each address, "address: reason".
    """

    def __init__(self, attempts: tuple[str, ...]) -> None:
        self.attempts = attempts
        super().__init__(f"the inviter was not reached ({'; '.join(attempts)})")


class RevocationListError(SecurityError, RemoteProtocolError):
    """A list of revoked certificates is malformed or not the authority's; the old one stays."""


class StoreError(NodeError):
    """The state file cannot be used; whether it changed is said by the subclass.

    Attributes:
        path: the file.
    """

    def __init__(self, path: object, reason: str) -> None:
        self.path = path
        super().__init__(f"{path} {reason}")


class StoreVersionError(StoreError):
    """The state file was written by a newer version; it was not changed.

    Attributes:
        found: version of the file.
        known: newest version that this software reads.
    """

    def __init__(self, path: object, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            path, f"has state of version {found}, expected at most {known}; upgrade gossamer"
        )


class StoreDamagedError(StoreError):
    """The file is no state file, or damaged; it was not changed."""


class StoreFullError(StoreError):
    """The disk is full; the write left no trace, and reading goes on."""

    def __init__(self, path: object) -> None:
        super().__init__(path, "cannot grow because the disk is full; free some space")


class StoreBusyError(StoreError):
    """Another process kept the file locked too long; nothing was written."""


# Configuration, discovery, page (C)


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
        named = field if field.isprintable() else _brief(field)
        super().__init__(f"{prefix}{named} is {found or _brief(value)}, expected {expected}")


class InterfaceError(NodeError):
    """This machine has no such network interface; nothing was opened.

    Attributes:
        name: what was asked for.
        known: names of the interfaces that there are.
    """

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.known = known
        super().__init__(f"interface is {_brief(name)}, expected one of {', '.join(known)}")


class DiscoveryError(NodeError):
    """Peers cannot be looked for on the local network; nothing was announced.

    Attributes:
        reason: why not, in words.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"multicast DNS does not work here ({reason}), "
            "expected a network that carries it, or discovery.multicast = false"
        )


# The local socket and the commands (Q)


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


# Runtime and applications (R)


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
            f"application {_brief(name)} takes events of {_brief(expression)} already, "
            "expected another name or the end of that stream"
        )


class PeerStopped(NodeError, LocalProtocolError):
    """The peer is stopping or has stopped; nothing was done."""

    def __init__(self) -> None:
        super().__init__("the peer has stopped")


def _brief(value: object) -> str:
    """The value as text of at most a line."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
