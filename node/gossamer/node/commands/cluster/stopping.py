"""`gossamer node stop`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import trio

from gossamer.client.errors import unwrapped
from gossamer.command.waiting import waiting
from gossamer.node.commands.folder import address_of
from gossamer.node.errors import TransportBroken
from gossamer.node.local.address import until_unlocked
from gossamer.node.local.client import open_client

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
