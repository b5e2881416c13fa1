"""`gossamer node ready`: wait for nodes that were just started, as scripts need it."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import trio

from gossamer.client.address import LocalAddress
from gossamer.client.errors import unwrapped
from gossamer.command.waiting import waiting
from gossamer.node.commands.folder import address_of
from gossamer.node.errors import (
    HandshakeFailed,
    NodeNotRunningError,
    RefusedByNodeError,
    TransportBroken,
)
from gossamer.node.local.client import open_client

LOOK_AGAIN_S: Final = 0.1
# What a node answers, or is found to do, while it starts or is busy.
_NOT_YET: Final = (HandshakeFailed, NodeNotRunningError, RefusedByNodeError, TransportBroken)


def not_ready(folders: Sequence[Path | None], within_s: float) -> str:
    """Wait until all nodes in ``folders`` are ready; return why one is not after ``within_s``.

    The text is empty where all are.

    Raises:
        NodeNotRunningError: a folder does not exist, so that no node will run there.
        ConfigurationError: its configuration is impossible.
        LocalSocketError: this user may not use its socket.
    """
    addresses = [address_of(folder) for folder in folders]
    for address in addresses:
        if not Path(address.folder).is_dir():
            raise NodeNotRunningError(address.folder, os.strerror(errno.ENOENT))

    async def wait() -> str:
        deadline = trio.current_time() + within_s
        for address in addresses:
            while reason := await _why_not(address):
                if trio.current_time() >= deadline:
                    return f"after {within_s:g} s {reason}"
                await trio.sleep(LOOK_AGAIN_S)
        return ""

    with unwrapped(), waiting("waiting until they are ready"):
        return trio.run(wait)


async def _why_not(address: LocalAddress) -> str:
    try:
        async with open_client(address, patience_s=0) as client:
            said = await client.status()
    except _NOT_YET as error:
        return str(error)
    return "" if said["ready"] else f"the node in {address.folder} is starting"
