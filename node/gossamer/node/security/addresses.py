"""Addresses as tokens and descriptors carry them: hosts and ports, few and short."""

from __future__ import annotations

from typing import Any, Final

from gossamer.protocol.kernel.errors import ConfigError

Address = tuple[str, int]

ADDRESSES: Final = 8
_HOST_CHARACTERS: Final = 255  # of a domain name


def check_addresses(addresses: tuple[Address, ...], fewest: int = 1) -> None:
    """Refuse what cannot be dialled.

    Raises:
        ConfigError: there are too few or too many, or one is no host and port.
    """
    if not fewest <= len(addresses) <= ADDRESSES:
        raise ConfigError("number of addresses", len(addresses), f"{fewest} to {ADDRESSES}")
    for host, port in addresses:
        if not 1 <= len(host) <= _HOST_CHARACTERS or not host.isprintable() or " " in host:
            raise ConfigError("host", host[:80], "a name or an IP address")
        if not 1 <= port <= 65_535:
            raise ConfigError("port", port, "1 to 65535")


def read_addresses(value: Any, fewest: int = 1) -> tuple[Address, ...]:
    """The addresses that ``value``, a decoded list of pairs, stands for.

    Raises:
        ValueError: it is no such list.
        ConfigError: as of `check_addresses`.
    """
    if type(value) is not list or len(value) > ADDRESSES:
        raise ValueError(f"it has no list of at most {ADDRESSES} addresses")
    for pair in value:
        if type(pair) is not list or [type(part) for part in pair] != [str, int]:
            raise ValueError("an address is no pair of host and port")
    addresses = tuple((host, port) for host, port in value)
    check_addresses(addresses, fewest)
    return addresses
