"""What connections to other peers raise."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from gossamer.node.errors.base import NodeError
from gossamer.protocol.kernel.errors import LocalProtocolError, RemoteProtocolError


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
        who = "the peer" if key is None else f"peer {key:016x}"
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
        is_taken = reason.casefold() == os.strerror(errno.EADDRINUSE).casefold()
        advice = "; name another port in node.toml, or stop what has it" if is_taken else ""
        super().__init__(f"cannot listen on {address}: {reason}{advice}")
