"""`gossamer node stop`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import trio

from gossamer.node.commands.folder import address_of
from gossamer.node.errors.exception_groups import unwrapped
from gossamer.node.local.address import until_unlocked
from gossamer.node.local.client import GONE, open_client

# By then a node that stops has closed its files; what runs there is one that was started since.
PATIENCE_S: Final = 10.0


def stop(folder: Path | None) -> None:
    """Stop the node in ``folder``; return when it has closed its files there.

    Raises:
        NodeError: no node runs there.
    """

    address = address_of(folder)

    async def run() -> None:
        async with open_client(address, patience_s=0) as client:
            with suppress(*GONE):  # it may be gone before it has answered
                await client.shutdown()
            async for _ in client.events:
                continue
        with trio.move_on_after(PATIENCE_S):
            await until_unlocked(address.folder)

    with unwrapped():
        trio.run(run)
