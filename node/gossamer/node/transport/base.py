"""What a transport is: it listens and dials, and brings peers that introduced themselves."""

from __future__ import annotations

import enum
import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from ipaddress import ip_address
from typing import NamedTuple, Protocol

import attrs
import trio

from gossamer.node.errors import NodeError, RefusedByPeer
from gossamer.protocol.kernel.errors import ConfigError

# Bytes taken from a stream at once, and given to it at once.
CHUNK_BYTES = 1 << 16
# Random bytes by which the processes of a key are told apart.
PROCESS_BYTES = 8


class Address(NamedTuple):
    """A host and a TCP port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read ``host:port``, where an IPv6 host stands in brackets.

        Raises:
            ConfigError: it is something else.
        """
        host, colon, port = text.rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else -1
        if not colon or not bare or (":" in bare) != (bare != host) or not 0 <= number < 1 << 16:
            raise ConfigError("address", text[:80], "host:port, or [host]:port for IPv6")
        return cls(bare, number)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether it certainly stays on this machine; other names than localhost do not count."""
        try:
            return ip_address(self.host.partition("%")[0]).is_loopback
        except ValueError:
            return self.host == "localhost"


@attrs.frozen(slots=True)
class Hello:
    """How a peer introduces itself.

    Attributes:
        version: version of the wire protocol.
        software: name and version of its program.
        cluster: name of the overlay it belongs to.
        key: its permanent key.
        addresses: where it listens.
        nonce: random bytes of this connection, to be echoed.
        fingerprint: SHA-256 of the certificate it presents, None without TLS.
        schema: tells what its events are made of from what others' are; "" where it does not say.
        process: random bytes of the process that it is; none of one that only has a look, and is
            no peer to be connected to.
    """

    version: int
    software: str
    cluster: str
    key: int
    addresses: tuple[Address, ...]
    nonce: bytes
    fingerprint: bytes | None
    schema: str = ""
    process: bytes = b""


@attrs.frozen(slots=True)
class LocalPeer:
    """What this peer says of itself on every connection; see `Hello`."""

    key: int
    cluster: str
    software: str = "gossamer"
    addresses: tuple[Address, ...] = ()
    fingerprint: bytes | None = None
    schema: str = ""
    process: bytes = attrs.field(factory=partial(secrets.token_bytes, PROCESS_BYTES))


@attrs.frozen(slots=True)
class PeerIdentity:
    """Who a peer is, once it has been verified.

    Attributes:
        key: permanent key.
        fingerprint: SHA-256 of its certificate, empty without TLS.
        name: name in its certificate, for people.
    """

    key: int
    fingerprint: bytes = b""
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.key:016x})" if self.name else f"peer {self.key:016x}"


# Decides who a peer is by its certificate (DER, None without TLS) and its hello, or raises
# `PeerRefused`.
Verify = Callable[[bytes | None, Hello], PeerIdentity]


class Cause(enum.StrEnum):
    """Why a connection ended; most are also the words of a goodbye."""

    SHUTDOWN = "shutdown"  # a peer stops
    UNUSED = "unused"  # nothing but pings for long
    REPLACED = "replaced"  # there is another connection to the same peer
    BUSY = "busy"  # more connections than allowed, or one of that name
    FULL = "full"  # no room, as long as others keep it
    VERSION = "version"  # another version of the wire protocol
    CLUSTER = "cluster"  # another overlay
    REFUSED = "refused"  # not who it should be
    REVOKED = "revoked"  # it belongs no more
    BAD_FRAME = "bad frame"  # it broke a rule of the wire
    FLOOD = "flood"  # more frames than allowed, for too long
    STALLED = "stalled"  # it does not read
    SILENT = "silent"  # nothing came for too long
    LOST = "lost"  # the network or the other process failed
    OTHER = "other"  # a word of the peer's that is not known here

    @classmethod
    def read(cls, word: str) -> Cause:
        """The cause of that name, or `OTHER`."""
        try:
            return cls(word)
        except ValueError:
            return cls.OTHER


@attrs.frozen(slots=True)
class Farewell:
    """How a connection ended.

    Attributes:
        cause: why.
        by_us: whether we ended it.
        detail: more about it, in words; empty where there is no more to say.
        proof: that who was sent away is revoked, where that is why; not verified.
    """

    cause: Cause
    by_us: bool
    detail: str = ""
    proof: bytes = b""

    def __str__(self) -> str:
        return f"{self.cause}: {self.detail}" if self.detail else str(self.cause)


@attrs.frozen(slots=True, eq=False)
class Admitted:
    """A peer that introduced itself and was accepted.

    Attributes:
        stream: what leads to it; whoever has this object closes it.
        identity: who it is.
        hello: what it said of itself.
        dialled: whether we dialled it.
        remote: the address at its end, as far as it can be seen.
        rest: bytes that it sent after the handshake and that were read with it.
    """

    stream: trio.abc.Stream
    identity: PeerIdentity
    hello: Hello
    dialled: bool
    remote: Address
    rest: bytes = b""

    @property
    def place(self) -> str:
        """Where the peer is: the address that it says it listens at, or that it came from."""
        return str(self.hello.addresses[0] if self.hello.addresses else self.remote)


Handler = Callable[[Admitted], Awaitable[None]]


class Listener(Protocol):
    """An open address."""

    @property
    def address(self) -> Address:
        """Where it really listens: the port is the one that the system chose."""
        ...

    async def serve(self, handler: Handler) -> None:
        """Run ``handler`` for every peer that comes in and is admitted, until cancelled.

        The peer's stream is closed when its handler returns.
        """
        ...

    async def aclose(self) -> None:
        """Listen no more."""
        ...


class Transport(Protocol):
    """Ways to reach peers and to be reached.

    Attributes:
        me: what is said of us on the next connections; may be replaced at any time.
        on_refusal: told why somebody who came in was not admitted, None where there was no room,
            and where it came from.
        on_refused_by: told of peers that do not admit us, whoever dialled.
    """

    me: LocalPeer
    on_refusal: Callable[[NodeError | None, Address], None]
    on_refused_by: Callable[[RefusedByPeer], None]

    async def listen(self, addresses: Sequence[Address]) -> Sequence[Listener]:
        """Open all of ``addresses``, or none.

        Raises:
            ListenFailed: one of them cannot be opened.
        """
        ...

    async def dial(self, addresses: Sequence[Address], key: int | None = None) -> Admitted:
        """Connect to the peer behind ``addresses``, which is to be ``key`` where that is given.

        Raises:
            PeerUnreachable: none of them led to it; nothing is left open.
        """
        ...
