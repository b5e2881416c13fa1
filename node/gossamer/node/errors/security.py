"""What keys, certificates, tokens and revocation raise."""

from __future__ import annotations

from gossamer.node.errors.base import NodeError
from gossamer.protocol.kernel.errors import LocalProtocolError, RemoteProtocolError


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


class NameTakenError(TokenError, RemoteProtocolError):
    """Another member has the name that a peer wants to join by; the token is still good."""

    def __init__(self) -> None:
        super().__init__(
            "the cluster has a member of this name already: choose another one with --name, or "
            "revoke that member first"
        )


class JoinRequestError(SecurityError, RemoteProtocolError):
    """The other side of a join sent what the exchange does not allow; nothing was issued."""


class JoinRefusedError(SecurityError):
    """The inviter was reached and refused for a reason other than the token's state.

    Attributes:
        cause: one of the causes of `security.joining.join_protocol`.
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


class RenewalError(SecurityError, RemoteProtocolError):
    """A certificate is not renewed; the old one stays.

    Attributes:
        reason: why not, and what to do.
        cause: one of the causes of `security.joining.join_protocol`, "" where none fits.
    """

    def __init__(self, reason: str, cause: str = "") -> None:
        self.reason = reason
        self.cause = cause
        super().__init__(reason)


class RevocationListError(SecurityError, RemoteProtocolError):
    """A list of revoked certificates is malformed or not the authority's; the old one stays."""


class SchemaDocumentError(SecurityError, RemoteProtocolError):
    """A version of the schema is malformed or not the authority's; the one before stays."""
