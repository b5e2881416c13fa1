"""Every error that the node raises, under one name; by layer in the files beside this one.

Messages are one sentence that names what was given and what was expected. Errors that a remote peer
causes also derive from `RemoteProtocolError`, those of the caller from `LocalProtocolError`.
"""

from __future__ import annotations

from gossamer.node.errors.base import (
    NodeError,
)
from gossamer.node.errors.configuration import (
    ConfigurationError,
    DiscoveryError,
    InterfaceError,
)
from gossamer.node.errors.local import (
    BatchLineError,
    BatchStoppedError,
    ClientRequestError,
    EventInputError,
    LocalSocketError,
    NodeNotRunningError,
    NodeRunningError,
    RefusedByNodeError,
    SchemaMismatchError,
    UnacknowledgedError,
)
from gossamer.node.errors.runtime import (
    EventTooLarge,
    NotAcknowledged,
    PeerStopped,
    SubscriptionInUse,
)
from gossamer.node.errors.security import (
    CertificateError,
    ClusterFolderError,
    EarlyCertificateError,
    ExpiredCertificateError,
    ForeignCertificateError,
    JoinFailedError,
    JoinRefusedError,
    JoinRequestError,
    KeyFileError,
    KeyMismatchError,
    MalformedCertificateError,
    RevocationListError,
    RevokedCertificateError,
    SecurityError,
    TokenError,
    TokenExpiredError,
    TokenTextError,
    TokenUnknownError,
    TokenUsedError,
)
from gossamer.node.errors.store import (
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreVersionError,
)
from gossamer.node.errors.transport import (
    BadFrame,
    FrameTooLarge,
    HandshakeFailed,
    ListenFailed,
    PeerRefused,
    PeerUnreachable,
    PlainTextRefused,
    RefusedByPeer,
    TransportBroken,
    TransportClosed,
)

__all__ = [
    "BadFrame",
    "BatchLineError",
    "BatchStoppedError",
    "CertificateError",
    "ClientRequestError",
    "ClusterFolderError",
    "ConfigurationError",
    "DiscoveryError",
    "EarlyCertificateError",
    "EventInputError",
    "EventTooLarge",
    "ExpiredCertificateError",
    "ForeignCertificateError",
    "FrameTooLarge",
    "HandshakeFailed",
    "InterfaceError",
    "JoinFailedError",
    "JoinRefusedError",
    "JoinRequestError",
    "KeyFileError",
    "KeyMismatchError",
    "ListenFailed",
    "LocalSocketError",
    "MalformedCertificateError",
    "NodeError",
    "NodeNotRunningError",
    "NodeRunningError",
    "NotAcknowledged",
    "PeerRefused",
    "PeerStopped",
    "PeerUnreachable",
    "PlainTextRefused",
    "RefusedByNodeError",
    "RefusedByPeer",
    "RevocationListError",
    "RevokedCertificateError",
    "SchemaMismatchError",
    "SecurityError",
    "StoreBusyError",
    "StoreDamagedError",
    "StoreError",
    "StoreFullError",
    "StoreVersionError",
    "SubscriptionInUse",
    "TokenError",
    "TokenExpiredError",
    "TokenTextError",
    "TokenUnknownError",
    "TokenUsedError",
    "TransportBroken",
    "TransportClosed",
    "UnacknowledgedError",
]
