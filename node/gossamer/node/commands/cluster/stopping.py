"""`gossamer node stop`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import trio

from gossamer.node.commands.folder import address_of
from gossamer.node.errors.exception_groups import unwrapped
from gossamer.node.local.client import GONE, open_client


def stop(folder: Path | None) -> None:
    """Stop the node in ``folder``; return when it has let go of its clients.

    Raises:
        NodeError: no node runs there.
    """

    async def run() -> None:
        async with open_client(address_of(folder), patience_s=0) as client:
            with suppress(*GONE):  # it may be gone before it has answered
                await client.shutdown()
            async for _ in client.events:
                continue

    with unwrapped():
        trio.run(run)
