"""The way to another peer, checked step by step until one step fails."""

from __future__ import annotations

import errno
import ipaddress
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import attrs
import trio

from gossamer.node.discovery.sources import InterfaceAddress, IPAddress, local_addresses
from gossamer.node.doctor.failures import Finding, banner_cause, connect_cause, handshake_cause
from gossamer.node.errors import NodeError

RESOLVE_S: Final = 10.0
CONNECT_S: Final = 5.0
HANDSHAKE_S: Final = 10.0
# A server that greets does so at once; a peer waits for the other's TLS.
LISTEN_S: Final = 0.3
MAX_ADDRESSES: Final = 4

_WRONG_HERE: Final = (
    "it accepts this peer's certificate, which is not valid by this machine's clock: by its own "
    "clock it is, so that this machine's clock is wrong"
)
_SET_OURS: Final = "Set this machine's clock (NTP); the certificate is in order."
_WRONG_THERE: Final = (
    "its certificate is not valid by this machine's clock: it has expired there, or one of the "
    "clocks is wrong"
)
_LOOK_THERE: Final = "Compare both clocks; if they are right, 'gossamer node renew' there."

_BROKEN: Final = (OSError, EOFError, trio.BrokenResourceError, trio.ClosedResourceError)
SocketAddress = tuple[int, Any]  # address family, and what `connect` takes


@attrs.frozen(kw_only=True)
class Greeting:
    """What a peer says in its hello.

    Attributes:
        cluster: its cluster's identifier.
        key: its permanent key.
        version: of the peers' protocol.
        ours_timely, theirs_timely: whether the certificates of this peer and of that one, which
            both have accepted, are valid by this machine's clock.
    """

    cluster: str
    key: int
    version: int
    ours_timely: bool = True
    theirs_timely: bool = True


@attrs.frozen(kw_only=True)
class Probes:
    """What the doctor needs of the layers that speak to peers.

    Attributes:
        tls: does the TLS handshake as a peer does, and gives the secured stream.
        hello: exchanges hellos on a secured stream.
        cluster, version: our own, to compare with.
        connect: opens a TCP connection.
        local: the addresses of this machine.
        listen_s: how long to wait for a server that speaks first, as a peer never does.
    """

    tls: Callable[[trio.SocketStream], Awaitable[trio.abc.Stream]]
    hello: Callable[[trio.abc.Stream], Awaitable[Greeting]]
    cluster: str
    version: int
    connect: Callable[[SocketAddress], Awaitable[trio.SocketStream]] = attrs.field(
        factory=lambda: open_connection
    )
    local: Callable[[], Sequence[InterfaceAddress]] = local_addresses
    listen_s: float = LISTEN_S


async def diagnose(host: str, port: int, probes: Probes) -> list[Finding]:
    """Check the way to the peer at ``host`` and ``port``; ends at the first fault.

    Where a name has several addresses, each is tried until one connects. Nothing is left open.
    """
    findings, addresses = await _resolve(host, port)
    for address in addresses:
        findings.append(check_network(ipaddress.ip_address(address[1][0]), probes.local()))
        finding, stream = await _connect(address, probes)
        findings.append(finding)
        if stream is not None:
            async with stream:
                findings += await _converse(stream, probes)
            return findings
    return findings


async def open_connection(address: SocketAddress) -> trio.SocketStream:
    """A TCP connection to ``address``.

    Raises:
        OSError: there is none; nothing is left open.
    """
    family, target = address
    socket = trio.socket.socket(family, trio.socket.SOCK_STREAM)
    try:
        await socket.connect(target)
        return trio.SocketStream(socket)
    except BaseException:
        socket.close()
        raise


def check_network(address: IPAddress, local: Sequence[InterfaceAddress]) -> Finding:
    """Whether ``address`` is this machine, a neighbour, or beyond a router."""
    name = "network"
    if address.is_loopback:
        return Finding(name, True, f"{address} is this machine, and no other can use that address")
    for one in local:
        if one.address == address:
            return Finding(name, True, f"{address} is this machine, at {one.interface}")
    for one in local:
        if not one.address.is_loopback and _contains(one, address):
            return Finding(name, True, f"{address} is on the network of {one}")
    return Finding(
        name,
        True,
        f"{address} is on no network of this machine, so a router has to be on the way",
        "Multicast does not find it there: list it in discovery.peers.",
    )


def check_greeting(greeting: Greeting, probes: Probes) -> list[Finding]:
    """Whether the two peers belong together."""
    who = f"peer {greeting.key:016x}"
    found = [check_cluster(greeting.cluster, probes.cluster, who)]
    if found[0].ok:
        found.append(check_version(greeting.version, probes.version, who))
    if not greeting.ours_timely:
        found.append(Finding("clock", False, _WRONG_HERE, _SET_OURS))
    elif not greeting.theirs_timely:
        found.append(Finding("certificate", False, _WRONG_THERE, _LOOK_THERE))
    return found


def check_cluster(theirs: str, ours: str, who: str) -> Finding:
    """Whether both are of one cluster."""
    if theirs == ours:
        return Finding("cluster", True, f"{who} belongs to this cluster")
    what = f"{who} belongs to cluster {theirs[:16]}, this peer to {ours[:16]}"
    return Finding("cluster", False, what, "Join one of the two to the other's cluster.")


def check_version(theirs: int, ours: int, who: str) -> Finding:
    """Whether both speak the same version of the protocol."""
    if theirs == ours:
        return Finding("version", True, f"{who} speaks version {ours} as well")
    older = "that peer" if theirs < ours else "this peer"
    what = f"{who} speaks version {theirs}, this peer {ours}"
    return Finding("version", False, what, f"Update gossamer on {older}.")


async def _resolve(host: str, port: int) -> tuple[list[Finding], list[SocketAddress]]:
    name = "name"
    found: list[Any] = []
    problem = f"no answer within {RESOLVE_S:g} s"
    with trio.move_on_after(RESOLVE_S):
        try:
            found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            problem = str(getattr(error, "strerror", None) or error)
    if not found:
        advice = "Check the spelling, this machine's DNS, or use the address in place of the name."
        return [Finding(name, False, f"{host} has no address ({problem})", advice)], []
    addresses = list(dict.fromkeys((int(one[0]), one[4]) for one in found))[:MAX_ADDRESSES]
    listed = ", ".join(str(target[0]) for _, target in addresses)
    what = f"{host} is an address" if listed == host else f"{host} has the address {listed}"
    return [Finding(name, True, what)], addresses


async def _connect(
    address: SocketAddress, probes: Probes
) -> tuple[Finding, trio.SocketStream | None]:
    where = f"{address[1][0]} port {address[1][1]}"
    try:
        with trio.fail_after(CONNECT_S):
            stream = await probes.connect(address)
    except trio.TooSlowError:
        cause = connect_cause(OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))
    except OSError as error:
        cause = connect_cause(error)
    else:
        return Finding("connection", True, f"{where} accepts connections"), stream
    return Finding("connection", False, f"{where}: {cause[0]}", cause[1]), None


async def _converse(stream: trio.SocketStream, probes: Probes) -> list[Finding]:
    unasked = await _listen(stream, probes.listen_s)
    if unasked is not None:
        return [Finding("protocol", False, *banner_cause(unasked))]
    findings = []
    stage, done = "TLS", "both certificates are accepted"
    try:
        with trio.fail_after(HANDSHAKE_S):
            secured = await probes.tls(stream)
            findings.append(Finding(stage, True, done))
            stage = "hello"
            greeting = await probes.hello(secured)
    except trio.TooSlowError:
        what = f"no answer to the {stage} within {HANDSHAKE_S:g} s"
        advice = "It is overloaded, or no peer: look at that machine."
        return [*findings, Finding(stage, False, what, advice)]
    except (*_BROKEN, NodeError) as error:
        # Under TLS 1.3 a refusal of our certificate comes after the handshake, with the hello.
        step = "hello" if findings else "TLS"
        return [*findings, Finding(step, False, *handshake_cause(error))]
    return findings + check_greeting(greeting, probes)


async def _listen(stream: trio.SocketStream, listen_s: float) -> bytes | None:
    """What is said before we say anything; None if nothing is.

    The words are left unread, so that TLS finds the stream as it was.
    """
    with trio.move_on_after(listen_s):
        try:
            first = await stream.socket.recv(16, trio.socket.MSG_PEEK)
        except OSError:
            return None
        return first or None
    return None


def _contains(one: InterfaceAddress, address: IPAddress) -> bool:
    if address.version != one.network.version:
        return False
    # Every interface has the same link-local network: the scope says which is meant.
    scope = getattr(address, "scope_id", None)
    if scope and scope != getattr(one.address, "scope_id", None):
        return False
    return ipaddress.ip_address(str(address).partition("%")[0]) in one.network
