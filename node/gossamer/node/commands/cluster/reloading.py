"""`gossamer node reload`: has a running node take up its changed configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import trio

from gossamer.client.errors import unwrapped
from gossamer.node.commands.folder import address_of
from gossamer.node.local.client import open_client


def reload(folder: Path | None, *, as_json: bool) -> None:
    """Have the node in ``folder`` read its configuration anew; print what became of it.

    Raises:
        NodeError: no node runs there, or the configuration cannot be read; it goes on as before.
    """

    async def ask() -> dict[str, Any]:
        async with open_client(address_of(folder), patience_s=0) as client:
            return await client.reload()

    with unwrapped():
        said = trio.run(ask)
    if as_json:
        print(json.dumps(said))
        return
    if not said["changed"] and not said["restart"]:
        print("nothing has changed")
    if said["changed"]:
        print(f"in force now: {', '.join(said['changed'])}")
    if said["restart"]:
        print(f"needs a restart: {', '.join(said['restart'])}")
