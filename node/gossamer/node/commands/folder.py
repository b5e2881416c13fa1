"""Where the local socket of a peer's folder is, by its configuration; what is asked there once."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import trio

from gossamer.client.errors import unwrapped
from gossamer.client.link import LocalAddress, find_address
from gossamer.node.config.checks import parse_address
from gossamer.node.config.file import FOLDER_VARIABLE, load
from gossamer.node.errors import ConfigurationError
from gossamer.node.local.address import is_locked, local_address

if TYPE_CHECKING:
    from gossamer.node.local.client import LocalClient

T = TypeVar("T")


def address_of(folder: Path | None) -> LocalAddress:
    """Where the local socket of the peer in ``folder`` is; see `load`.

    A node that runs there is found although its configuration was made impossible meanwhile: it
    goes on with the one that it began with.

    Raises:
        ConfigurationError: its configuration is impossible, and no node runs.
        LocalSocketError: no place is short enough for a Unix socket.
    """
    try:
        config = load(folder).config
    except ConfigurationError:
        here = Path(os.environ.get(FOLDER_VARIABLE, ".")) if folder is None else folder
        if not is_locked(here):
            raise
        return find_address(here)
    return local_address(config.identity.folder, config.local)


def ask(
    address: LocalAddress,
    work: Callable[[LocalClient], Awaitable[T]],
    name: str | None = None,
    *,
    aside: bool = False,
) -> T:
    """What ``work`` gives with a client of a node, over one connection; as of `open_client`."""

    async def run() -> T:
        # Not loaded by nodes, which import this as well.
        from gossamer.node.local.client import open_client

        async with open_client(address, name, aside=aside, patience_s=0) as client:
            return await work(client)

    with unwrapped():
        return trio.run(run)


def host_and_port(
    text: str,
    option: str,
    default_port: int,
    expected: str = "a host and port such as 192.168.1.7:7712",
) -> tuple[str, int]:
    """The address that an option names; raises `ConfigurationError`."""
    try:
        return parse_address(text, default_port)
    except ValueError:
        raise ConfigurationError("", option, text, expected) from None
