"""`gossamer sub`: events as JSON lines, for as long as they are wanted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, TextIO

import trio
from attrs import frozen

from gossamer.node.commands.clients.event_text import line_of_event, write_text
from gossamer.node.commands.folder import address_of
from gossamer.node.errors.exception_groups import unwrapped
from gossamer.node.local.address import LocalAddress
from gossamer.node.local.client import CONNECTED, open_client
from gossamer.node.local.follower import follow
from gossamer.node.local.frames import NEW, RETAINED

SUBSCRIPTION: Final = "sub"


@frozen(kw_only=True)
class Wanted:
    """What `gossamer sub` was asked for.

    Attributes:
        expression: what is to match.
        name: under which the node keeps what was not printed; None keeps nothing.
        count: events after which it ends; None never does.
        retained: whether a new name begins with what the node has kept.
        label: what the client calls its subscription.
    """

    expression: str
    name: str | None = None
    count: int | None = None
    retained: bool = False
    label: str = SUBSCRIPTION


def subscribe(folder: Path | None, wanted: Wanted) -> None:
    """Print events until there are enough of them, or nobody reads them.

    Raises:
        NodeError: no node runs there, or it refuses.
    """
    with unwrapped():
        trio.run(print_events, address_of(folder), wanted, sys.stdout, _tell)


def forget(folder: Path | None, name: str) -> None:
    """Have the node drop what it keeps for ``name``.

    Raises:
        NodeError: no node runs there, or the name is in use.
    """

    async def run() -> None:
        async with open_client(address_of(folder), name, patience_s=0) as client:
            await client.forget()

    with unwrapped():
        trio.run(run)


async def print_events(
    address: LocalAddress, wanted: Wanted, out: TextIO, tell: Callable[[str], None]
) -> None:
    """Write events to ``out``; those of a name are acknowledged once they are written."""
    left = wanted.count
    start = RETAINED if wanted.retained else NEW
    expressions = {wanted.label: wanted.expression}
    async with follow(address, expressions, wanted.name, start, tell) as events:
        while left is None or left > 0:
            event = await anext(events)
            if not write_text(out, line_of_event(event) + "\n"):
                return
            await events.acknowledge(event)
            left = None if left is None else left - 1


def _tell(change: str) -> None:
    if change == CONNECTED:
        print("gossamer: subscribed", file=sys.stderr)
    else:
        print(f"gossamer: without the node ({change}); trying again", file=sys.stderr)
