"""Explorations find what a plain search over copies of whole states finds."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

import gossamer.sim as gs
from gossamer.protocol.kernel.rules import use_compiled
from support.own_protocols import PROTOCOLS
from support.plain_search import Given, Handler, Node, PlainSearch

FILE = f"{PROTOCOLS}/explored.py"


def flood(nodes: int, in_flight: int, budgets: dict[str, int]) -> PlainSearch:
    """`explored.Flood`."""

    def tick(node: Node, given: Given) -> list[Any]:
        return [("Hello", given.drawn, 1 + node["best"])] if node["heard"] else []

    def hello(node: Node, given: Given) -> list[Any]:
        (hops,) = given.fields
        node["heard"] = True
        node["best"] = min(max(node["best"], hops), 1)
        return []

    begins = [{"best": -1, "heard": p == 0} for p in range(nodes)]
    handlers: dict[str, Handler] = {"tick": tick, "Hello": hello}
    return PlainSearch(begins, [True] * nodes, handlers, ["tick"], budgets, in_flight, nodes - 1)


def watch(nodes: int, in_flight: int, budgets: dict[str, int]) -> PlainSearch:
    """`explored.Watch`."""

    def start(node: Node, given: Given) -> list[Any]:
        node["asked"] = False
        if given.fields[0] >= 0:
            node["peer"] = given.fields[0]
        return []

    def ask(node: Node, given: Given) -> list[Any]:
        if node["peer"] < 0 or node["asked"]:
            return []
        node["asked"] = True
        return [("Ping", node["peer"], 0.5), ("late", given.me, node["peer"])]

    def ping(node: Node, given: Given) -> list[Any]:
        (node["late"],) = given.fields
        return [("Pong", given.sender)]

    def pong(node: Node, _given: Given) -> list[Any]:
        node["asked"] = False
        return []

    def late(node: Node, given: Given) -> list[Any]:
        if node["asked"] and given.fields == [node["peer"]]:
            node["late"] = 1.5
        node["asked"] = False
        return []

    def leave(node: Node, _given: Given) -> list[Any]:
        return [("Bye", node["peer"])] if node["peer"] >= 0 else []

    def gone(node: Node, given: Given) -> list[Any]:
        if node["peer"] == given.sender:
            node["peer"] = -1
        return []

    peers = [1, 0, *[-1] * (nodes - 2)]
    begins = [{"peer": peer, "asked": False, "late": 0.0} for peer in peers]
    handlers: dict[str, Handler] = {
        "start": start,
        "ask": ask,
        "Ping": ping,
        "Pong": pong,
        "late": late,
    }
    handlers |= {"leave": leave, "Bye": gone, "unreachable": gone}
    up = [True, True, *[None] * (nodes - 2)]
    return PlainSearch(begins, up, handlers, ["ask"], budgets, in_flight)


def clock(nodes: int, in_flight: int, budgets: dict[str, int]) -> PlainSearch:
    """`explored.Clock`."""

    def ask(node: Node, given: Given) -> list[Any]:
        node["seen"] = given.round
        return []

    begins = [{"seen": -1} for _ in range(nodes)]
    return PlainSearch(begins, [True] * nodes, {"ask": ask}, ["ask"], budgets, in_flight)


PLAIN = {"Flood": flood, "Watch": watch, "Clock": clock}
# Protocol, nodes, messages in flight, budgets; the first of each interpreted as well.
CASES: list[tuple[str, int, int, dict[str, int]]] = [
    ("Flood", 2, 2, {"losses": 1, "duplicates": 1}),
    ("Flood", 3, 2, {"duplicates": 1, "crashes": 1}),
    ("Watch", 2, 2, {"crashes": 1, "restarts": 1}),
    ("Watch", 2, 4, {"leaves": 1, "losses": 1}),
    ("Watch", 3, 2, {"crashes": 1}),
    ("Clock", 2, 1, {"rounds": 2}),
]
INVARIANTS = {"Flood": "bounded", "Watch": "never_oneself", "Clock": "never_ahead"}


def found(name: str, nodes: int, in_flight: int, budgets: dict[str, int], **more: Any) -> Any:
    bounds: dict[str, Any] = {"in_flight": in_flight, "draws": max(nodes - 1, 1), **budgets, **more}
    return gs.explore(f"{FILE}:{name}", nodes, invariants=[INVARIANTS[name]], **bounds)


@pytest.mark.parametrize(("name", "nodes", "in_flight", "budgets"), CASES)
def test_as_many_states_and_levels_as_in_a_plain_search(
    name: str, nodes: int, in_flight: int, budgets: dict[str, int]
) -> None:
    levels = [len(level) for level in PLAIN[name](nodes, in_flight, budgets).levels()]
    one = found(name, nodes, in_flight, budgets)
    assert one.story is None
    assert one.exhausted
    assert (one.states, one.depth) == (sum(levels), len(levels) - 2)  # the last one is empty


@pytest.mark.parametrize("case", [CASES[0], CASES[5]], ids=lambda case: case[0])
def test_interpreted_rules_find_the_same(case: tuple[str, int, int, dict[str, int]]) -> None:
    with use_compiled(False):
        interpreted = found(*case)
    assert interpreted == found(*case)


@pytest.mark.parametrize("budgets", [{}, {"crashes": 1}])
def test_symmetric_nodes_are_taken_as_one(budgets: dict[str, int]) -> None:
    """As many states as the plain search has behind the least of all namings."""
    nodes, in_flight = 3, 2
    levels = flood(nodes, in_flight, budgets).levels()
    kinds = {least_naming(state) for level in levels for state in level}
    one = found("Flood", nodes, in_flight, budgets, symmetric=True)
    assert one.states == len(kinds) < sum(map(len, levels))


def least_naming(state: Any) -> str:
    held, up, left, flight = state
    names = []
    for way in permutations(range(len(up))):
        back = [way.index(p) for p in range(len(up))]
        records = [
            (name, there, way[to], way[sender], *fields)
            for name, there, to, sender, *fields in flight
        ]
        nodes = [held[p] for p in back], [up[p] for p in back]
        names.append(repr((*nodes, left, sorted(records))))
    return min(names)
