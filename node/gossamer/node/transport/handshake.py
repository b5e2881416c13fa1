"""The first words on a connection, before which nothing is believed and nothing is told.

    dialler                         listener
    hello (nonce A)       ------>             checks version, cluster, certificate, identity
                          <------   hello (nonce B), welcome (echo A)
    checks the same;
    welcome (echo B)      ------>             both are admitted

Who is not admitted gets a goodbye with the reason instead. Under TLS 1.3 a dialler whose
certificate is refused learns of it at its first read, which is why it speaks first and then reads.

A hello names the certificate it is presented with, so that one recorded elsewhere is of no use
under another certificate; the echoed nonces make it useless under the same one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from hmac import compare_digest

import trio

from gossamer.node.errors import (
    BadFrame,
    DoubledIdentity,
    HandshakeFailed,
    PeerRefused,
    RefusedByPeer,
)
from gossamer.node.transport.base import (
    Address,
    Admitted,
    Cause,
    Hello,
    LocalPeer,
    PeerIdentity,
    Verify,
)
from gossamer.node.transport.byte_streams import drain
from gossamer.node.transport.frames import (
    CONTROL_FRAMES,
    NONCE_BYTES,
    FrameReader,
    encode_frame,
    encode_goodbye,
)
from gossamer.node.transport.limits import Limits
from gossamer.node.transport.schema import Frame
from gossamer.protocol.kernel.errors import ConfigError, RemoteProtocolError

# 2: events carry the version of their schema, and lookups of places what the newcomer holds.
# 3: events are sealed: their identifiers are hashes, and their publishers sign them.
# 4: what was missed is found by comparing logs, and hellos name the process.
PROTOCOL_VERSION = 5

# Read at once while the peer is a stranger; its hello fits.
HANDSHAKE_CHUNK_BYTES = 4096


async def introduce(
    stream: trio.abc.Stream,
    me: LocalPeer,
    limits: Limits,
    verify: Verify,
    *,
    certificate: bytes | None,
    dialled: bool,
    remote: Address,
    expected: int | None = None,
    version: int = PROTOCOL_VERSION,
) -> Admitted:
    """Exchange hellos on ``stream`` and return the peer at its other end.

    Args:
        stream: a fresh stream, secured already; closed when this raises.
        me: what to say of ourselves.
        limits: `hello_bytes` bounds what is read, `handshake_seconds` the time.
        verify: decides who the peer is.
        certificate: the peer's certificate (DER), None without TLS.
        dialled: whether we dialled.
        remote: the address at the other end.
        expected: permanent key that the peer is to have, None where any will do.
        version: version of the wire protocol that we speak.

    Raises:
        PeerRefused: we do not accept it; it was told why.
        RefusedByPeer: it does not accept us.
        BadFrame: it broke a rule of the wire; it was told so.
        HandshakeFailed: it fell silent or went away.
    """
    talk = _Talk(stream, me, limits, version)
    try:
        with _in_time(limits):
            hello, identity = await talk.exchange(verify, certificate, dialled, expected)
    except RemoteProtocolError as error:
        # A dialler that got rubbish has nobody to talk to.
        await _say_why(stream, error, limits, stay=not dialled or isinstance(error, PeerRefused))
        raise
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return Admitted(stream, identity, hello, dialled, remote, talk.reader.take_rest())


class _Talk:
    """One handshake under way."""

    def __init__(
        self, stream: trio.abc.Stream, me: LocalPeer, limits: Limits, version: int
    ) -> None:
        self.reader = FrameReader(limits, limits.hello_bytes)
        self._stream = stream
        self._me = me
        self._version = version
        self._nonce = secrets.token_bytes(NONCE_BYTES)

    async def exchange(
        self, verify: Verify, certificate: bytes | None, dialled: bool, expected: int | None
    ) -> tuple[Hello, PeerIdentity]:
        if dialled:
            with suppress(trio.BrokenResourceError):  # reading tells why
                await self._stream.send_all(self._hello())
        hello = self._read_hello(await self._next())
        identity = self._check(verify, certificate, hello, expected)
        welcome = encode_frame("welcome", echo=hello.nonce)
        if not dialled:
            await self._stream.send_all(self._hello() + welcome)
            self._check_welcome(await self._next())
        else:
            self._check_welcome(await self._next())
            await self._stream.send_all(welcome)
        return hello, identity

    def _hello(self) -> bytes:
        fields: dict[str, object] = {
            "version": self._version,
            "software": self._me.software,
            "cluster": self._me.cluster,
            "key": self._me.key,
            "addresses": [str(address) for address in self._me.addresses],
            "nonce": self._nonce,
        }
        if self._me.fingerprint is not None:
            fields["fingerprint"] = self._me.fingerprint
        if self._me.schema:
            fields["schema"] = self._me.schema
        if self._me.process:
            fields["process"] = self._me.process
        return encode_frame("hello", **fields)

    async def _next(self) -> Frame:
        """The next frame, unchecked; a goodbye ends the handshake."""
        while (frame := self.reader.next_frame()) is None:
            data = await self._stream.receive_some(HANDSHAKE_CHUNK_BYTES)
            if not data:
                raise HandshakeFailed("the peer ended the connection without a word")
            self.reader.feed(data)
        if frame.get("type") == "goodbye":
            CONTROL_FRAMES.check(frame)
            cause = str(Cause.read(frame["reason"]))
            raise RefusedByPeer(cause, frame.get("detail", ""), frame.get("proof", b""))
        return frame

    def _read_hello(self, frame: Frame) -> Hello:
        _expect("hello", frame)
        # Before its fields are checked: those of another version may differ.
        theirs = frame.get("version")
        if theirs != self._version and type(theirs) is int:
            reason = f"it speaks version {theirs} of the protocol, expected {self._version}"
            raise PeerRefused(reason, Cause.VERSION)
        CONTROL_FRAMES.check(frame)
        try:
            addresses = tuple(map(Address.parse, frame["addresses"]))
        except ConfigError as error:
            raise BadFrame("hello", "addresses", repr(error.value), error.expected) from None
        return Hello(
            version=frame["version"],
            software=frame["software"],
            cluster=frame["cluster"],
            key=frame["key"],
            addresses=addresses,
            nonce=frame["nonce"],
            fingerprint=frame.get("fingerprint"),
            schema=frame.get("schema", ""),
            process=frame.get("process", b""),
        )

    def _check(
        self, verify: Verify, certificate: bytes | None, hello: Hello, expected: int | None
    ) -> PeerIdentity:
        if hello.cluster != self._me.cluster:
            reason = f"it belongs to cluster {hello.cluster!r}, expected {self._me.cluster!r}"
            raise PeerRefused(reason, Cause.CLUSTER)
        self._check_schema(hello)
        if certificate is not None and not compare_digest(
            sha256(certificate).digest(), hello.fingerprint or b""
        ):
            raise PeerRefused("its hello was made for another certificate")
        identity = verify(certificate, hello)
        if identity.key != hello.key:
            said = f"its certificate says {identity.key:016x}"
            raise PeerRefused(f"it claims key {hello.key:016x}, {said}")
        if hello.key == self._me.key:
            is_ours = hello.process in (b"", self._me.process)
            raise (PeerRefused if is_ours else DoubledIdentity)("it has our own key")
        if expected is not None and hello.key != expected:
            raise PeerRefused(f"it is peer {hello.key:016x}, expected peer {expected:016x}")
        return identity

    def _check_schema(self, hello: Hello) -> None:
        """Refuse a peer whose events have other attributes: it would misread all of ours."""
        ours = self._me.schema
        if ours and hello.schema and hello.schema != ours:
            reason = f"its events are of schema {hello.schema}, expected {ours}, the cluster's"
            raise PeerRefused(reason, Cause.CLUSTER)

    def _check_welcome(self, frame: Frame) -> None:
        _expect("welcome", frame)
        CONTROL_FRAMES.check(frame)
        if not compare_digest(frame["echo"], self._nonce):
            raise PeerRefused("it echoed a nonce of another connection")


def _expect(kind: str, frame: Frame) -> None:
    if frame.get("type") != kind:
        raise BadFrame("frame", "type", repr(frame.get("type"))[:40], f"a {kind} first")


@contextmanager
def _in_time(limits: Limits) -> Iterator[None]:
    seconds = limits.handshake_seconds
    try:
        with trio.fail_after(seconds):
            yield
    except trio.TooSlowError:
        reason = f"the peer did not introduce itself within {seconds} s"
        raise HandshakeFailed(reason, "timeout") from None
    except trio.BrokenResourceError as error:
        raise broken_handshake(error) from None


def broken_handshake(error: trio.BrokenResourceError) -> HandshakeFailed | RefusedByPeer:
    """What a stream that broke amid a handshake means; it holds TLS alerts in its cause."""
    reason = getattr(error.__cause__, "reason", None)
    if reason in TLS_REFUSALS:
        return RefusedByPeer("tls", TLS_REFUSALS[reason])
    if reason is not None:
        cause = "certificate" if reason in NO_CERTIFICATE else "bad hello"
        return HandshakeFailed(TLS_FAILURES.get(reason, f"TLS says {reason}"), cause)
    return HandshakeFailed("the peer ended the connection without a word")


# What the other end objects to, by the alert it sends.
TLS_REFUSALS = {
    "TLSV1_ALERT_UNKNOWN_CA": "another authority issued our certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "our certificate has expired, or its clock or ours is wrong",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "our certificate was revoked",
    "SSLV3_ALERT_BAD_CERTIFICATE": "our certificate is not in order",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "our certificate is not in order",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "we showed no certificate",
    "TLSV1_ALERT_ACCESS_DENIED": "our certificate gives no access",
}
NO_CERTIFICATE = ("CERTIFICATE_VERIFY_FAILED", "PEER_DID_NOT_RETURN_A_CERTIFICATE")
# What we object to, by OpenSSL's name for it.
TLS_FAILURES = {
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not one of ours, or has expired",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it showed no certificate",
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "HTTP_REQUEST": "it does not speak TLS but HTTP",
    "UNSUPPORTED_PROTOCOL": "it speaks no version of TLS that is accepted here",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it speaks no version of TLS that is accepted here",
}


async def _say_why(
    stream: trio.abc.Stream, error: RemoteProtocolError, limits: Limits, *, stay: bool
) -> None:
    """Tell the peer why it is refused, stay until it has read that, if it is to, and close."""
    goodbye = encode_goodbye(Cause.BAD_FRAME, str(error))
    if isinstance(error, PeerRefused):
        goodbye = encode_goodbye(Cause.read(error.cause), error.reason, error.proof)
    with trio.CancelScope(shield=True), trio.move_on_after(limits.close_seconds):
        try:
            await stream.send_all(goodbye)
            if stay:
                await drain(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return
        finally:
            await trio.aclose_forcefully(stream)
