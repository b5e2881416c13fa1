"""`gossamer node reload`: has a running node take up its changed configuration."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import trio

from gossamer.client.errors import unwrapped
from gossamer.client.link import LocalAddress
from gossamer.command.waiting import waiting
from gossamer.node.commands.folder import address_of, ask
from gossamer.node.errors import (
    HandshakeFailed,
    NodeNotRunningError,
    RefusedByNodeError,
    TransportBroken,
)
from gossamer.node.local.address import until_unlocked
from gossamer.node.local.client import LocalClient, open_client


def reload(folder: Path | None, *, as_json: bool) -> None:
    """Have the node in ``folder`` read its configuration anew; print what became of it.

    Raises:
        NodeError: no node runs there, or the configuration cannot be read; it goes on as before.
    """
    said = ask(address_of(folder), LocalClient.reload)
    if as_json:
        print(json.dumps(said))
        return
    if not said["changed"] and not said["restart"]:
        print("nothing has changed")
    if said["changed"]:
        print(f"in force now: {', '.join(said['changed'])}")
    if said["restart"]:
        print(f"needs a restart: {', '.join(said['restart'])}")


# `gossamer node stop`.


# A node that stops has closed its files after a few seconds.
PATIENCE_S: Final = 30.0


def stop(folder: Path | None) -> None:
    """Stop the node in ``folder``; return when it has closed its files there.

    Raises:
        NodeError: no node runs there, or it does not stop.
    """
    address = address_of(folder)

    async def run() -> None:
        async with open_client(address, patience_s=0) as client:
            with suppress(TransportBroken):  # it may be gone before it has answered
                await client.shutdown()
            async for _ in client.events:
                continue
        await until_unlocked(address.folder, PATIENCE_S)

    with unwrapped(), waiting("waiting until it has stopped"):
        trio.run(run)


# `gossamer node ready`: wait for nodes that were just started, as scripts need it.

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
