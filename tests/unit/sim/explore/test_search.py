"""Explorations find what a plain search over copies of whole states finds."""

from __future__ import annotations

from typing import Any

import pytest

import gossamer.sim as gs
from support.own_protocols import PROTOCOLS
from support.plain_search import Node, PlainSearch

FILE = f"{PROTOCOLS}/explored.py"


def flood(nodes: int, in_flight: int, budgets: dict[str, int]) -> PlainSearch:
    """`explored.Flood`."""

    def tick(node: Node, me: int, given: Any) -> list[Any]:
        return [("Hello", given["drawn"], 1 + node["best"])] if node["heard"] else []

    def hello(node: Node, me: int, given: Any, sender: int, hops: int) -> list[Any]:
        node["heard"] = True
        node["best"] = min(max(node["best"], hops), 1)
        return []

    begins = [{"best": -1, "heard": p == 0} for p in range(nodes)]
    handlers = {"tick": tick, "Hello": hello}
    return PlainSearch(begins, [True] * nodes, handlers, ["tick"], budgets, in_flight, nodes - 1)


def watch(nodes: int, in_flight: int, budgets: dict[str, int]) -> PlainSearch:
    """`explored.Watch`."""

    def start(node: Node, me: int, given: Any, contact: int) -> list[Any]:
        node["asked"] = False
        if contact >= 0:
            node["peer"] = contact
        return []

    def ask(node: Node, me: int, given: Any) -> list[Any]:
        if node["peer"] < 0 or node["asked"]:
            return []
        node["asked"] = True
        return [("Ping", node["peer"], 0.5), ("late", me, node["peer"])]

    def ping(node: Node, me: int, given: Any, sender: int, number: float) -> list[Any]:
        node["late"] = number
        return [("Pong", sender)]

    def pong(node: Node, me: int, given: Any, sender: int) -> list[Any]:
        node["asked"] = False
        return []

    def late(node: Node, me: int, given: Any, about: int) -> list[Any]:
        if node["asked"] and about == node["peer"]:
            node["late"] = 1.5
        node["asked"] = False
        return []

    def leave(node: Node, me: int, given: Any) -> list[Any]:
        return [("Bye", node["peer"])] if node["peer"] >= 0 else []

    def bye(node: Node, me: int, given: Any, sender: int) -> list[Any]:
        if node["peer"] == sender:
            node["peer"] = -1
        return []

    def unreachable(node: Node, me: int, given: Any, to: int) -> list[Any]:
        if node["peer"] == to:
            node["peer"] = -1
        return []

    peers = [1, 0, *[-1] * (nodes - 2)]
    begins = [{"peer": peer, "asked": False, "late": 0.0} for peer in peers]
    handlers = {
        **{"start": start, "ask": ask, "Ping": ping, "Pong": pong, "late": late},
        **{"leave": leave, "Bye": bye, "unreachable": unreachable},
    }
    up = [True, True, *[None] * (nodes - 2)]
    return PlainSearch(begins, up, handlers, ["ask"], budgets, in_flight)


CASES: list[tuple[str, int, int, dict[str, int]]] = [
    ("Flood", 2, 2, {}),
    ("Flood", 3, 2, {"losses": 1}),
    ("Flood", 3, 2, {"duplicates": 1, "crashes": 1}),
    ("Watch", 2, 4, {}),
    ("Watch", 2, 3, {"crashes": 1, "restarts": 1}),
    ("Watch", 2, 3, {"leaves": 1, "losses": 1}),
    ("Watch", 3, 2, {"crashes": 1}),
]


@pytest.mark.parametrize(("name", "nodes", "in_flight", "budgets"), CASES)
def test_as_many_states_in_each_level_as_in_a_plain_search(
    name: str, nodes: int, in_flight: int, budgets: dict[str, int]
) -> None:
    plain = {"Flood": flood, "Watch": watch}[name](nodes, in_flight, budgets)
    levels = [len(level) for level in plain.levels()]
    found = gs.explore(
        f"{FILE}:{name}",
        nodes,
        invariants=["bounded" if name == "Flood" else "never_oneself"],
        in_flight=in_flight,
        draws=2,
        **budgets,
    )
    assert found.story is None
    assert found.exhausted
    assert (found.states, found.depth) == (sum(levels), len(levels) - 1)
