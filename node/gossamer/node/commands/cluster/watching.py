"""`gossamer node status` and `gossamer top`: what a running node says of itself, for people."""

from __future__ import annotations

import errno
import json
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import trio
from attrs import frozen
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from gossamer.client.errors import unwrapped
from gossamer.client.frames import BROKER
from gossamer.client.link import LocalAddress
from gossamer.command.tables import FittingTable
from gossamer.node.commands.cluster.listing import short_text, slim_table, span_text, trip_text
from gossamer.node.commands.folder import address_of, ask
from gossamer.node.doctor.failures import printable
from gossamer.node.errors import NodeError
from gossamer.node.local.client import LocalClient, open_client
from gossamer.node.monitoring.metrics import LINKS

# The cluster on a terminal: who answered, what they do, and who is where on the ring.


# Members that are shown; the rest is counted.
SHOWN: Final = 40
_BARS: Final = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_FIGURES: Final = ("delivered", "published", "dropped", "sent_bytes", "queued_bytes")
_COLUMNS: Final = ("member", "state", "up", "deliv/s", "pub/s", "drop/s", "B/s", "queued", "subs")


def cluster_picture(view: Mapping[str, Any]) -> Group:
    """A view of the cluster, as `monitoring.cluster.cluster_view` gives it, as tables."""
    own = view["members"][0]
    title = f"{view.get('cluster_name') or 'the cluster'}, as {own['name'] or own['key']} sees it"
    if view["role"] == BROKER:
        return Group(
            Panel(_cluster_headline(view), title=Text(printable(title))), _states_table(view)
        )
    overloaded = view["overloaded"]
    alarm = f"overloaded: {printable(', '.join(overloaded))}"
    return Group(
        Panel(_cluster_headline(view), title=Text(printable(title))),
        *([Text(alarm, "bold red")] if overloaded else []),
        *([_ring(view)] if any(view["wanted"]) or _places(view) else []),
        _table(view),
    )


def _cluster_headline(view: Mapping[str, Any]) -> Text:
    versions = ", ".join(f"{count} of {name}" for name, count in view["versions"].items())
    states = ", ".join(f"{count} {state}" for state, count in view["states"].items())
    answers = f"{view['answered']} of {view['known']} members answered ({view['asked']} were asked)"
    if view["role"] == BROKER:
        answers = f"{view['known']} members met; brokers tell each other no figures"
    return Text(f"{answers}\n{states}   versions: {printable(versions)}")


def _places(view: Mapping[str, Any]) -> list[float]:
    """Where those members stand on the ring who said so; brokers have no ring."""
    if not view["wanted"]:
        return []
    return [one["report"]["position"] for one in view["members"] if one["report"]]


def _ring(view: Mapping[str, Any]) -> Text:
    """The ring from 0 to 1 in two lines: what is wanted, and how many members stand there."""
    wanted: Sequence[int] = view["wanted"]
    highest = max(wanted, default=0)
    scale = max(highest, 1)
    bars = "".join(_BARS[-(-count * (len(_BARS) - 1) // scale)] for count in wanted)
    standing = [0] * len(wanted)
    for place in _places(view):
        standing[int(place * len(wanted)) % len(wanted)] += 1
    marks = "".join("\u00b7" if not one else str(one) if one < 10 else "+" for one in standing)
    return Text(
        f"the ring from 0 to 1; wanted: by at most {highest} subscriptions at one place\n"
        f"wanted   {bars}\nmembers  {marks}"
    )


def _table(view: Mapping[str, Any]) -> Table:
    members = view["members"]
    left = len(members) - SHOWN
    more = f", and {left} more" if left > 0 else ""
    table = slim_table(*_COLUMNS, title=f"members{more}")
    table.columns[1].justify = "left"
    # Columns that mostly have one and the same to say are there when they are needed.
    mixed = len(view["versions"]) > 1
    if mixed:
        table.add_column("version")
    troubled = any(map(_trouble, members))
    if troubled:
        table.add_column("trouble")
    for one in members[:SHOWN]:
        parts = [*_row(one), *([one["version"]] if mixed else [])]
        parts += [_trouble(one)] if troubled else []
        row = [Text(printable(part)) for part in parts]
        table.add_row(*row, style="" if one["report"] else "dim")
    return table


def _states_table(view: Mapping[str, Any]) -> Table:
    """The members that a broker has met, of which it knows no figures."""
    table = slim_table("member", "state", "version", "addresses", title="members")
    for column in table.columns:
        column.justify = "left"
    for one in view["members"][:SHOWN]:
        addresses = " ".join(one["addresses"])
        parts = (one["name"] or one["key"], one["state"], one["version"], addresses)
        table.add_row(*(Text(printable(part)) for part in parts))
    return table


def _trouble(one: Mapping[str, Any]) -> str:
    report = one["report"]
    return "" if report is None else ", ".join([*report["overload"], *report["troubles"]])


def _row(one: Mapping[str, Any]) -> list[str]:
    report = one["report"]
    silent = report is None and one["state"] == "alive"
    who = [one["name"] or one["key"], "no answer" if silent else one["state"]]
    if report is None:
        return [*who, *[""] * (len(_COLUMNS) - len(who))]
    return [
        *who,
        span_text(report["uptime_s"]),
        *(short_text(report[name]) for name in (*_FIGURES, "subscriptions")),
    ]


# Peers that `top` shows; the rest is counted.
SHOWN_PEERS: Final = 20
RETRY_S: Final = 1.0
MERELY_KNOWN: Final = "known only"


def status(folder: Path | None, *, as_json: bool) -> None:
    """Print what the node in ``folder`` says of itself.

    Raises:
        NodeError: no node runs there.
    """
    said = ask(address_of(folder), LocalClient.status)
    if as_json:
        print(json.dumps(said, indent=2))
    else:
        Console().print(status_table(said))


def top(
    folder: Path | None,
    interval_s: float,
    *,
    once: bool,
    as_json: bool = False,
    cluster: bool = False,
) -> None:
    """Show the peer in ``folder``, anew every ``interval_s`` seconds, until interrupted.

    As JSON it prints one line each time, which has what the page shows. Of the ``cluster`` it shows
    what those members say who answer.

    Raises:
        NodeError: no node runs there.
    """
    address = address_of(folder)
    look = CLUSTER if cluster else ONE
    console = Console()
    with unwrapped():
        if as_json:
            trio.run(_print_lines, address, look, interval_s, once)
            return
        if once:
            console.print(look.picture(ask(address, look.ask)))
            return
        try:
            with Live(console=console, screen=console.is_terminal) as live:
                trio.run(_show, address, look, interval_s, live)
        except KeyboardInterrupt:
            return  # how people end it
        except OSError as error:
            if error.errno != errno.EIO:  # else nobody looks: the terminal was closed
                raise


def status_table(said: Mapping[str, Any]) -> Table:
    """The answer to `status` as a table."""
    table = FittingTable.grid(padding=(0, 2))
    for name, value in said.items():
        if name == "groups":
            for group in value:
                table.add_row(Text("group", "bold"), Text(printable(_group_in_words(group))))
            continue
        if isinstance(value, Mapping):
            value = ", ".join(f"{key}: {_in_words(part)}" for key, part in value.items())
        table.add_row(Text(name.replace("_", " "), "bold"), Text(printable(_in_words(value))))
    return table


def _group_in_words(group: Mapping[str, Any]) -> str:
    """A queue group, as `status` of its node tells of it."""
    role = "leads" if group["leads"] else "follows"
    peers = f"{role}, {len(group['peers'])} peers" if group["peers"] else "looks for the others"
    return (
        f"{group['name']} ({group['expression']}): {group['workers']} workers here, "
        f"{group['waiting']} events wait, {group['at_workers']} at workers here; {peers}"
    )


def picture(snapshot: Mapping[str, Any]) -> Group:
    """A snapshot of a peer as tables."""
    troubles = [Text(printable(one), "bold red") for one in snapshot["troubles"]]
    return Group(
        Panel(_headline(snapshot), title=Text(printable(_title(snapshot)))),
        *troubles,
        _side_by_side(*_summaries(snapshot)),
        _peers_table(snapshot),
    )


async def _print_lines(address: LocalAddress, look: Look, interval_s: float, once: bool) -> None:
    """Print what is shown as a line, and then another one every so often, over restarts too."""
    async with open_client(address, patience_s=0 if once else math.inf) as client:
        while True:
            print(json.dumps(await look.ask(client)), flush=True)
            if once:
                return
            await trio.sleep(interval_s)


async def _show(address: LocalAddress, look: Look, interval_s: float, live: Live) -> None:
    """Keep ``live`` up to date; a node that is away is waited for, once it was there."""
    was_there = False
    while True:
        try:
            async with open_client(address, patience_s=0) as client:
                while True:
                    live.update(look.picture(await look.ask(client)))
                    was_there = True
                    await trio.sleep(interval_s)
        except NodeError as error:
            if not was_there:
                raise
            live.update(Text(f"the node is away: {error}"))
            await trio.sleep(RETRY_S)


@frozen
class Look:
    """What `top` shows."""

    ask: Callable[[LocalClient], Awaitable[dict[str, Any]]]
    picture: Callable[[Mapping[str, Any]], RenderableType]


ONE: Final = Look(LocalClient.snapshot, picture)
CLUSTER: Final = Look(LocalClient.cluster, cluster_picture)


def _title(snapshot: Mapping[str, Any]) -> str:
    cluster = snapshot.get("cluster_name") or snapshot["cluster"]
    return f"{snapshot['name'] or snapshot['key']} in {cluster}"


def _summaries(snapshot: Mapping[str, Any]) -> Sequence[Table]:
    """The tables beside each other; a broker has neither a ring nor rates."""
    drops = _drops_table(snapshot)
    if snapshot["role"] == BROKER:
        return (drops,)
    return _links_table(snapshot), _rates_table(snapshot), drops


def _headline(snapshot: Mapping[str, Any]) -> Text:
    minutes, seconds = divmod(int(snapshot["uptime_s"]), 60)
    queues = snapshot["queues"]
    members = ", ".join(f"{n} {state}" for state, n in snapshot["members"].items() if n)
    place = (
        f"   round {snapshot['round']}   position {snapshot['position']:.3f}"
        f"   load {snapshot['load']:.1f}"
    )
    return Text(
        f"up {minutes} min {seconds} s{'' if snapshot['role'] == BROKER else place}\n"
        f"subscriptions {snapshot['subscriptions']}   clients {snapshot['clients']}"
        f"   routing entries {snapshot['routing_entries']}"
        f"   events stored {snapshot['stored_events']}\n"
        f"queues: {queues['frames']} frames, {queues['bytes']:,} bytes"
        f" (longest {queues['longest_bytes']:,})   {time.strftime('%H:%M:%S')}"
        f"{f'{chr(10)}members: {members}' if members else ''}"
    )


def _links_table(snapshot: Mapping[str, Any]) -> Table:
    peers = snapshot["peers"]
    counts = Counter(link for peer in peers for link in peer["links"])
    connected = Counter(
        link for peer in peers if peer["connected"] for link in peer["links"] or (MERELY_KNOWN,)
    )
    counts[MERELY_KNOWN] = sum(not peer["links"] for peer in peers)
    table = slim_table("links", "peers", "up", title="peers")
    for link in (*LINKS, MERELY_KNOWN):
        table.add_row(link, str(counts[link]), str(connected[link]))
    return table


def _rates_table(snapshot: Mapping[str, Any]) -> Table:
    table = slim_table("what", "a second", title="rates")
    for name, rate in snapshot["rates"].items():
        table.add_row(name.replace("_", " "), f"{rate:,.1f}")
    return table


def _drops_table(snapshot: Mapping[str, Any]) -> Table:
    table = slim_table("cause", "so far", title="dropped")
    found = {cause: count for cause, count in snapshot["dropped"].items() if count}
    for cause, count in sorted(found.items(), key=lambda item: -item[1]) or [("nothing", 0)]:
        table.add_row(Text(printable(cause)), f"{count:,}")
    return table


def _peers_table(snapshot: Mapping[str, Any]) -> Table:
    if snapshot["role"] == BROKER:
        return _neighbours_table(snapshot)
    table = slim_table(
        *("peer", "links", "position", "load", "in/s", "out/s", "queued", "round trip"),
        title=f"the {snapshot['known_peers']} peers that it knows, linked ones first",
    )
    table.columns[1].justify = "left"
    shown = snapshot["peers"][:SHOWN_PEERS]
    for peer in shown:
        table.add_row(*_peer_row(peer), style="" if peer["connected"] else "dim")
    return table


def _neighbours_table(snapshot: Mapping[str, Any]) -> Table:
    """The neighbours of a broker, of which only what brokers have is shown."""
    table = slim_table(
        *("neighbour", "queued", "round trip", "connected"),
        title=f"the {snapshot['known_peers']} neighbours that it knows",
    )
    for peer in snapshot["peers"][:SHOWN_PEERS]:
        queued, connected = f"{peer['queued_bytes']:,}", "yes" if peer["connected"] else "no"
        parts = (peer["name"] or peer["key"], queued, trip_text(peer["round_trip_s"]), connected)
        row = [Text(printable(part)) for part in parts]
        table.add_row(*row, style="" if peer["connected"] else "dim")
    return table


def _peer_row(peer: Mapping[str, Any]) -> Sequence[Text]:
    parts = (
        peer["name"] or peer["key"],
        ", ".join(peer["links"]) or MERELY_KNOWN,
        f"{peer['position']:.3f}",
        f"{peer['load']:.1f}",
        f"{peer['received_per_s']:.1f}",
        f"{peer['sent_per_s']:.1f}",
        f"{peer['queued_bytes']:,}",
        trip_text(peer["round_trip_s"]),
    )
    return [Text(printable(part)) for part in parts]


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
