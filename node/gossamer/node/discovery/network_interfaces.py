"""The network interfaces of this machine and their addresses."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

import attrs

from gossamer.node.errors import InterfaceError

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
        raise InterfaceError(wanted, tuple(dict.fromkeys(one.interface for one in addresses)))
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
