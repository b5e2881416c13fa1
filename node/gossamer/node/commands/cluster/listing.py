"""`gossamer node members`: who belongs to the cluster, as a running node has met them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import trio
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from gossamer.client.errors import unwrapped
from gossamer.client.link import LocalAddress
from gossamer.command.tables import FittingTable
from gossamer.node.commands.folder import address_of, ask
from gossamer.node.doctor.failures import printable
from gossamer.node.local.client import LocalClient, open_client

WATCH_S: Final = 0.5

_HEADS: Final = ("name", "state", "since", "version", "certificate until", "key", "addresses")


def members(folder: Path | None, *, watch: bool, as_json: bool) -> None:
    """Print the members that the node in ``folder`` has met; with ``watch`` also what changes.

    Raises:
        NodeError: no node runs there.
    """
    address = address_of(folder)
    with unwrapped():
        said = ask(address, LocalClient.members)
        if as_json and not watch:
            print(json.dumps(said["members"], indent=2))
            return
        if as_json:
            for member in said["members"]:
                print(json.dumps({"change": "known", **member}), flush=True)
        elif sys.stdout.isatty():
            Console().print(members_table(said["members"]))
        else:
            print(*members_lines(said["members"]), sep="\n", flush=True)
        if watch:
            trio.run(_watch, address, said, _line_of_json if as_json else line_of)


def members_table(found: Sequence[Mapping[str, Any]]) -> FittingTable:
    """Members as a table for people."""
    table = FittingTable(*_HEADS, box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for row in map(_row, found):
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def members_lines(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Members as a line each for programs, whose columns stand below each other."""
    rows = [_HEADS, *map(_row, found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return list(map(printable, lines))


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    expires = one["certificate_expires"]
    return (
        one["name"],
        one["state"],
        _moment(one["since"]),
        one["version"],
        "" if expires is None else f"{datetime.fromtimestamp(expires, UTC):%Y-%m-%d}",
        one["key"],
        " ".join(one["addresses"]),
    )


def line_of(change: Mapping[str, Any]) -> str:
    """A change as a line for people."""
    who = f"{change['name']} ({change['key']})" if change["name"] else change["key"]
    why = f" ({change['cause']})" if change["cause"] else ""
    return printable(f"{_moment(change['at'])} {who} {_WORDS[change['change']]}{why}")


async def _watch(
    address: LocalAddress, said: Mapping[str, Any], as_line: Callable[[Mapping[str, Any]], str]
) -> None:
    """Print changes after those of ``said``, over restarts of the node too."""
    told = _newest(said)
    async with open_client(address) as client:
        while True:
            said = await client.members()
            if _newest(said) < told:  # the node began anew, and counts from one again
                told = 0
            for change in said["changes"]:
                if change["number"] > told:
                    print(as_line(change), flush=True)
            told = _newest(said)
            await trio.sleep(WATCH_S)


def _newest(said: Mapping[str, Any]) -> int:
    return int(said["changes"][-1]["number"]) if said["changes"] else 0


def _line_of_json(change: Mapping[str, Any]) -> str:
    return json.dumps(change)


def _moment(when: float) -> str:
    return f"{datetime.fromtimestamp(when).astimezone():%Y-%m-%d %H:%M:%S}"


_WORDS: Final = {
    "joined": "has joined",
    "left": "has left",
    "failed": "has failed",
    "returned": "has returned",
    "revoked": "is revoked",
}


# Tables for terminals, as `top` draws them.


def slim_table(*names: str, title: str) -> FittingTable:
    """A table of words and the numbers that belong to them; three fit into eighty columns."""
    table = FittingTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.title, table.title_justify = title, "left"
    table.add_column(names[0])
    table.add_numbers(*names[1:])
    return table


def trip_text(trip_s: float | None) -> str:
    """A round trip, nothing where it was not measured."""
    return "" if trip_s is None else f"{trip_s * 1000:.1f} ms"


def span_text(seconds: float) -> str:
    """A time span in the unit that suits it."""
    for size, unit in ((86_400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def short_text(number: float) -> str:
    """A number of three digits or so, and a letter for thousands."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


# `gossamer node trace`: the tables of a broker, and the way that a publication took.


# Rows of a table that people get to see; --json has more.
SHOWN: Final = 40


def trace(folder: Path | None, event: str | None, *, as_json: bool) -> None:
    """Show the tables of the broker in ``folder``, or the route of a publication.

    Raises:
        NodeError: no broker runs there, or it does not remember the publication.
    """

    async def work(client: LocalClient) -> Any:
        return await (client.tables() if event is None else client.trace(event))

    told = ask(address_of(folder), work)
    if as_json:
        print(json.dumps(told, indent=2))
    elif event is None:
        for title, table in tables_for_people(told):
            Console().print(Text(f"\n{printable(title)}", "bold"), table)
    else:
        Console().print(route_for_people(event, told))


def tables_for_people(told: Mapping[str, Any]) -> list[tuple[str, FittingTable]]:
    """The tables of a broker with their titles."""
    composites = told.get("composites", [])
    title = "composite subscriptions of clients, whose parts are among the subscriptions"
    return _tables_of_family(told) + ([_table(title, composites)] if composites else [])


def _tables_of_family(told: Mapping[str, Any]) -> list[tuple[str, FittingTable]]:
    if "coordinator" in told:
        return _tables_of_graph(told)
    sizes = told["sizes"]
    where = ", ".join(f"{number} from {hop}" for hop, number in sizes["by last hop"].items())
    wanted = f"{sizes['subscriptions']} subscriptions" + (f": {where}" if where else "")
    if "place" in told:
        return [
            (
                f"broker {told['broker']}, {told['place']} of {told['overlay']}",
                FittingTable(box=None),
            ),
            _table("neighbours", told["links"]),
            _table(wanted, told["subscriptions"]),
            _table("kept for clients of other brokers of the region", told["replicas"]),
        ]
    offered = f"{sizes['advertisements']} advertisements"
    return [
        _table(f"broker {told['broker']}: neighbours", told["links"]),
        _table(offered, told["advertisements"]),
        _table(wanted, told["subscriptions"]),
        _table("kept for nobody, and what that costs", told["aggregates"]),
    ]


def _tables_of_graph(told: Mapping[str, Any]) -> list[tuple[str, FittingTable]]:
    sizes, reachable = told["sizes"], len(told["reachable"])
    coordinator = f"coordinator of {reachable} brokers is {told['coordinator']}"
    waiting = f"{sizes['in_flight']} publications not confirmed, {sizes['parked']} that wait"
    return [
        _table(f"broker {told['broker']}: neighbours", told["links"]),
        _table(f"trees in use: {sizes['trees']}; {waiting}; {coordinator}", told["trees"]),
        _table(f"{sizes['subscriptions']} subscriptions of all brokers", told["subscriptions"]),
    ]


def route_for_people(event: str, hops: Sequence[Mapping[str, Any]]) -> Tree:
    """The route of a publication, from the broker of its publisher on."""
    by_broker = {hop["broker"]: hop for hop in hops}
    roots = [hop for hop in hops if _key(hop["from"]) not in by_broker]
    tree = Tree(Text(f"publication {printable(event)}", "bold"))
    for root in roots:
        start = tree.add(Text(printable(f"from {_named(root['from'], by_broker)}")))
        _grow(start, root, by_broker, dict(by_broker))
    return tree


def _grow(
    above: Tree, hop: Mapping[str, Any], by_broker: Mapping[str, Any], left: dict[str, Any]
) -> None:
    """Add a broker and those behind it that are left: ways around failures may cross."""
    left.pop(hop["broker"], None)
    here = above.add(Text(printable(f"broker {hop['name'] or hop['broker']}"), "bold"))
    for onward in hop["to"]:
        following = left.get(_key(onward))
        if following is not None:
            _grow(here, following, by_broker, left)
        else:
            here.add(Text(printable(_named(onward, by_broker))))
    if not hop["to"]:
        here.add(Text("nobody wanted it here", "dim"))


def _key(hop: str) -> str:
    """The broker that a hop leads to; "" for a client."""
    kind, _, name = hop.partition(" ")
    return name if kind == "neighbour" else ""


def _named(hop: str, by_broker: Mapping[str, Any]) -> str:
    known = by_broker.get(_key(hop))
    return hop if known is None else f"broker {known['name'] or known['broker']}"


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, FittingTable]:
    table = FittingTable(*(list(rows[0]) if rows else ["nothing"]))
    for row in rows[:SHOWN]:
        table.add_row(*(Text(printable(_words(value))) for value in row.values()))
    return (f"{title}, the first {SHOWN}" if len(rows) > SHOWN else title), table


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
