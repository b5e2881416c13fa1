"""Finding peers: several sources behind one stream, and this machine's interfaces.

What a source says is a hint and nothing more: who answers at an address proves by its certificate
who it is. A source that fails is reported and leaves the others at work.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final, Protocol

import attrs
import trio

from gossamer.node.errors import InterfaceError, brief

Addresses = tuple[tuple[str, int], ...]

STATIC: Final = "static"
REMEMBERED: Final = "remembered"
MULTICAST: Final = "multicast"

# What waits for the runtime; a source that finds more waits with it.
QUEUE: Final = 16
# Seconds until a source that cannot work is tried again.
TRY_AGAIN_S: Final = 10.0


@attrs.frozen
class DiscoveredPeer:
    """Somebody who may be a peer.

    Attributes:
        key: its permanent key, None where the source does not know it.
        addresses: hosts and ports to try.
        source: STATIC, REMEMBERED or MULTICAST.
    """

    key: int | None
    addresses: Addresses
    source: str


Tell = Callable[[DiscoveredPeer], Awaitable[None]]


class Source(Protocol):
    """Where peers are found."""

    @property
    def name(self) -> str:
        """What `DiscoveredPeer.source` says."""

    async def run(self, tell: Tell) -> None:
        """Await ``tell`` for everything found, until there is nothing more or it is cancelled.

        Raises:
            InterfaceError: the source cannot work here now.
        """


@attrs.frozen
class KnownPeers:
    """Peers known beforehand: from the configuration, or from before a restart.

    Attributes:
        name: STATIC or REMEMBERED.
        peers: key, where known, and addresses of each.
    """

    name: str
    peers: tuple[tuple[int | None, Addresses], ...]

    async def run(self, tell: Tell) -> None:
        """Tell each once."""
        for key, addresses in self.peers:
            await tell(DiscoveredPeer(key, addresses, self.name))


def static_peers(addresses: Iterable[tuple[str, int]]) -> KnownPeers:
    """A source of configured addresses, each taken for a peer of its own."""
    return KnownPeers(STATIC, tuple((None, (address,)) for address in addresses))


@asynccontextmanager
async def discover(
    sources: Iterable[Source], on_failure: Callable[[str, Exception], None]
) -> AsyncIterator[AsyncIterator[DiscoveredPeer]]:
    """Run ``sources`` while the context is open; give what they find as one stream.

    The stream ends when every source has; one that cannot work is tried again, since a network may
    come later. Leaving the context stops the sources and waits until
    they have cleaned up.

    Args:
        sources: where to look.
        on_failure: told the name of a source that cannot work, and why; once for each reason.
    """
    send, receive = trio.open_memory_channel[DiscoveredPeer](QUEUE)
    async with trio.open_nursery() as nursery, receive:
        async with send:
            for source in sources:
                nursery.start_soon(_run, source, send.clone(), on_failure)
        yield receive
        nursery.cancel_scope.cancel()


async def _run(
    source: Source,
    send: trio.MemorySendChannel[DiscoveredPeer],
    on_failure: Callable[[str, Exception], None],
) -> None:
    told = ""
    async with send:
        while True:
            try:
                await source.run(send.send)
                return
            except InterfaceError as error:
                if str(error) != told:
                    told = str(error)
                    on_failure(source.name, error)
            await trio.sleep(TRY_AGAIN_S)


# The network interfaces of this machine and their addresses.

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


@attrs.frozen
class InterfaceAddress:
    """One address of an interface that is up.

    Attributes:
        interface: name of the interface.
        address: the address, a link-local one with its scope.
        network: the addresses reached without a router.
    """

    interface: str
    address: IPAddress
    network: IPNetwork

    def __str__(self) -> str:
        return f"{self.interface} ({self.address})"


def local_addresses() -> tuple[InterfaceAddress, ...]:
    """Every IPv4 and IPv6 address of the interfaces that are up, loopback included."""
    import psutil

    stats = psutil.net_if_stats()
    return tuple(
        _interface_address(name, one.address, one.netmask)
        for name, ones in sorted(psutil.net_if_addrs().items())
        if name in stats and stats[name].isup
        for one in ones
        if one.family in (socket.AF_INET, socket.AF_INET6)
    )


def choose(wanted: str, addresses: Iterable[InterfaceAddress]) -> tuple[InterfaceAddress, ...]:
    """The addresses of one interface, or all but loopback.

    Args:
        wanted: name of an interface or one of its addresses; "" for all.
        addresses: what `local_addresses` found.

    Raises:
        InterfaceError: no interface has that name or address.
    """
    addresses = tuple(addresses)
    if not wanted:
        return tuple(one for one in addresses if not one.address.is_loopback)
    named = tuple(one for one in addresses if one.interface == wanted)
    chosen = named or tuple(one for one in addresses if _is_address(wanted, one.address))
    if not chosen:
        known = ", ".join(dict.fromkeys(one.interface for one in addresses))
        raise InterfaceError(f"interface is {brief(wanted)}, expected one of {known}")
    return chosen


def _is_address(text: str, address: IPAddress) -> bool:
    return text in (str(address), str(address).partition("%")[0])


def _interface_address(name: str, text: str, netmask: str | None) -> InterfaceAddress:
    address = ipaddress.ip_address(text)
    bits: int = address.max_prefixlen
    if netmask:
        bits = int(ipaddress.ip_address(netmask)).bit_count()
    bare = text.partition("%")[0]
    return InterfaceAddress(name, address, ipaddress.ip_network(f"{bare}/{bits}", strict=False))
