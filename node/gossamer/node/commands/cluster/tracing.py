"""`gossamer node trace`: the tables of a broker, and the way that a publication took."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import trio
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from gossamer.client.errors import unwrapped
from gossamer.command.tables import FittingTable
from gossamer.node.commands.folder import address_of
from gossamer.node.doctor.failures import printable
from gossamer.node.local.client import open_client

# Rows of a table that people get to see; --json has more.
SHOWN: Final = 40


def trace(folder: Path | None, event: str | None, *, as_json: bool) -> None:
    """Show the tables of the broker in ``folder``, or the route of a publication.

    Raises:
        NodeError: no broker runs there, or it does not remember the publication.
    """

    async def ask() -> Any:
        async with open_client(address_of(folder), patience_s=0) as client:
            return await (client.tables() if event is None else client.trace(event))

    with unwrapped():
        told = trio.run(ask)
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
