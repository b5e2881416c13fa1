"""Ports of this machine for peers that are made here: free ones, or those that were asked for."""

from __future__ import annotations

import socket
from typing import Final

from gossamer.node.commands.cluster.config_text import FirstConfig
from gossamer.node.config.checks import DEFAULT_JOIN_PORT, DEFAULT_PORT
from gossamer.node.errors import ConfigurationError

# Where free ports are looked for; beside the ports of a peer of the preset lan.
FIRST_PORT: Final = 7720
LAST_PORT: Final = 65_535
# A peer takes three ports in a row: for peers, for the page, and for those who want to join.
PORTS_OF_A_PEER: Final = DEFAULT_JOIN_PORT - DEFAULT_PORT + 1
LOOPBACK: Final = "127.0.0.1"
EVERYWHERE: Final = ("0.0.0.0", "[::]")


def first_config(preset: str, name: str, port: int | None) -> FirstConfig:
    """What a peer's first node.toml says beside its preset.

    Args:
        preset: lan, wan or local.
        name: of the peer.
        port: the first of its ports; None takes those of the preset where they are free.

    Raises:
        ConfigurationError: ``port`` cannot be, or none is free.
    """
    is_local = preset == "local"
    host = LOOPBACK if is_local else EVERYWHERE[0]
    if port is None:
        if is_local or last_taken(DEFAULT_PORT, PORTS_OF_A_PEER, host) is None:
            return FirstConfig(preset=preset, name=name)
        first = free_ports(PORTS_OF_A_PEER, host)
    else:
        first = asked_ports(port, PORTS_OF_A_PEER, host)
    hosts = (LOOPBACK,) if is_local else EVERYWHERE
    return FirstConfig(
        preset=preset,
        name=name,
        addresses=[f"{host}:{first}" for host in hosts],
        page=f"{LOOPBACK}:{first + 1}",
        join_addresses=[f"{host}:{first + 2}" for host in hosts],
    )


def free_ports(count: int, host: str = LOOPBACK) -> int:
    """The first of so many ports in a row that nobody listens at.

    Raises:
        ConfigurationError: there are none.
    """
    first = FIRST_PORT
    while first + count <= LAST_PORT:
        taken = last_taken(first, count, host)
        if taken is None:
            return first
        first = taken + 1
    raise ConfigurationError("", "--port", FIRST_PORT, f"{count} free ports in a row from there on")


def asked_ports(first: int, count: int, host: str = LOOPBACK) -> int:
    """``first``, from which on so many ports are free.

    Raises:
        ConfigurationError: they are not, or there are no such ports.
    """
    if not 1024 <= first <= LAST_PORT - count:
        expected = f"a port from 1024 to {LAST_PORT - count}, with {count} from it on"
        raise ConfigurationError("", "--port", first, expected)
    taken = last_taken(first, count, host)
    if taken is not None:
        expected = f"the first of {count} free ports in a row; somebody listens at {taken}"
        raise ConfigurationError("", "--port", first, expected)
    return first


def last_taken(first: int, count: int, host: str) -> int | None:
    """The last of some ports of this machine that somebody listens at."""
    for port in range(first + count - 1, first - 1, -1):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((host, port))
            except OSError:
                return port
    return None
