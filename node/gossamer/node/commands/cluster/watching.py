"""`gossamer node status` and `gossamer top`: what a running node says of itself, for people."""

from __future__ import annotations

import errno
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import trio
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from gossamer.node.commands.folder import address_of
from gossamer.node.doctor.findings import printable
from gossamer.node.errors import NodeError
from gossamer.node.errors.exception_groups import unwrapped
from gossamer.node.local.address import LocalAddress
from gossamer.node.local.client import open_client
from gossamer.node.monitoring.metrics import LINKS

# Peers that `top` shows; the rest is counted.
SHOWN_PEERS: Final = 20
RETRY_S: Final = 1.0
MERELY_KNOWN: Final = "known only"


def status(folder: Path | None, *, as_json: bool) -> None:
    """Print what the node in ``folder`` says of itself.

    Raises:
        NodeError: no node runs there.
    """

    async def ask(address: LocalAddress) -> dict[str, Any]:
        async with open_client(address, patience_s=0) as client:
            return await client.status()

    with unwrapped():
        said = trio.run(ask, address_of(folder))
    if as_json:
        print(json.dumps(said, indent=2))
    else:
        Console().print(status_table(said))


def top(folder: Path | None, interval_s: float, *, once: bool) -> None:
    """Show the peer in ``folder``, anew every ``interval_s`` seconds, until interrupted.

    Raises:
        NodeError: no node runs there.
    """
    address = address_of(folder)
    console = Console()
    with unwrapped():
        if once:
            console.print(picture(trio.run(_snapshot, address)))
            return
        try:
            with Live(console=console, screen=console.is_terminal) as live:
                trio.run(_show, address, interval_s, live)
        except KeyboardInterrupt:
            return  # how people end it
        except OSError as error:
            if error.errno != errno.EIO:  # else nobody looks: the terminal was closed
                raise


def status_table(said: Mapping[str, Any]) -> Table:
    """The answer to `status` as a table."""
    table = Table.grid(padding=(0, 2))
    for name, value in said.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{key}: {_in_words(part)}" for key, part in value.items())
        table.add_row(Text(name.replace("_", " "), "bold"), Text(printable(_in_words(value))))
    return table


def picture(snapshot: Mapping[str, Any]) -> Group:
    """A snapshot of a peer as tables."""
    troubles = [Text(printable(one), "bold red") for one in snapshot["troubles"]]
    return Group(
        Panel(_headline(snapshot), title=Text(printable(_title(snapshot)))),
        *troubles,
        _side_by_side(_links_table(snapshot), _rates_table(snapshot), _drops_table(snapshot)),
        _peers_table(snapshot),
    )


async def _snapshot(address: LocalAddress) -> dict[str, Any]:
    async with open_client(address, patience_s=0) as client:
        return await client.snapshot()


async def _show(address: LocalAddress, interval_s: float, live: Live) -> None:
    """Keep ``live`` up to date; a node that is away is waited for, once it was there."""
    live.update(picture(await _snapshot(address)))
    while True:
        try:
            async with open_client(address, patience_s=0) as client:
                while True:
                    live.update(picture(await client.snapshot()))
                    await trio.sleep(interval_s)
        except NodeError as error:
            live.update(Text(f"the node is away: {error}"))
            await trio.sleep(RETRY_S)


def _title(snapshot: Mapping[str, Any]) -> str:
    return f"{snapshot['name'] or snapshot['key']} in {snapshot['cluster']}"


def _headline(snapshot: Mapping[str, Any]) -> Text:
    minutes, seconds = divmod(int(snapshot["uptime_s"]), 60)
    queues = snapshot["queues"]
    return Text(
        f"up {minutes} min {seconds} s   round {snapshot['round']}"
        f"   position {snapshot['position']:.3f}   load {snapshot['load']:.1f}\n"
        f"{snapshot['subscriptions']} subscriptions   {snapshot['clients']} clients"
        f"   {snapshot['routing_entries']} routing entries"
        f"   {snapshot['stored_events']} events stored\n"
        f"queues: {queues['frames']} frames, {queues['bytes']:,} bytes"
        f" (longest {queues['longest_bytes']:,})   {time.strftime('%H:%M:%S')}"
    )


def _links_table(snapshot: Mapping[str, Any]) -> Table:
    peers = snapshot["peers"]
    counts = Counter(link for peer in peers for link in peer["links"])
    connected = Counter(
        link for peer in peers if peer["connected"] for link in peer["links"] or (MERELY_KNOWN,)
    )
    counts[MERELY_KNOWN] = sum(not peer["links"] for peer in peers)
    table = _slim_table("links", "peers", "up", title="peers")
    for link in (*LINKS, MERELY_KNOWN):
        table.add_row(link, str(counts[link]), str(connected[link]))
    return table


def _rates_table(snapshot: Mapping[str, Any]) -> Table:
    table = _slim_table("what", "a second", title="rates")
    for name, rate in snapshot["rates"].items():
        table.add_row(name.replace("_", " "), f"{rate:,.1f}")
    return table


def _drops_table(snapshot: Mapping[str, Any]) -> Table:
    table = _slim_table("cause", "so far", title="dropped")
    found = {cause: count for cause, count in snapshot["dropped"].items() if count}
    for cause, count in sorted(found.items(), key=lambda item: -item[1]) or [("nothing", 0)]:
        table.add_row(Text(printable(cause)), f"{count:,}")
    return table


def _peers_table(snapshot: Mapping[str, Any]) -> Table:
    table = _slim_table(
        *("peer", "links", "position", "load", "in/s", "out/s", "queued", "round trip"),
        title=f"the {snapshot['known_peers']} peers that it knows, linked ones first",
    )
    table.columns[1].justify = "left"
    table.columns[1].no_wrap = False
    shown = snapshot["peers"][:SHOWN_PEERS]
    for peer in shown:
        table.add_row(*_peer_row(peer), style="" if peer["connected"] else "dim")
    return table


def _peer_row(peer: Mapping[str, Any]) -> Sequence[Text]:
    trip = peer["round_trip_s"]
    parts = (
        peer["name"] or peer["key"],
        ", ".join(peer["links"]) or MERELY_KNOWN,
        f"{peer['position']:.3f}",
        f"{peer['load']:.1f}",
        f"{peer['received_per_s']:.1f}",
        f"{peer['sent_per_s']:.1f}",
        f"{peer['queued_bytes']:,}",
        "" if trip is None else f"{trip * 1000:.1f} ms",
    )
    return [Text(printable(part)) for part in parts]


def _slim_table(*names: str, title: str) -> Table:
    """A table of words and the numbers that belong to them; three fit into eighty columns."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.title, table.title_justify = title, "left"
    for i, name in enumerate(names):
        table.add_column(name, justify="right" if i > 0 else "left", no_wrap=True)
    return table


def _side_by_side(*tables: Table) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_row(*tables)
    return grid


def _in_words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return " ".join(f"{key} {part}" for key, part in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value) or "none"
