"""A breadth-first search over plain values: what explorations are held to.

A state is a tuple of nodes (tuples of values), of who is up (None: not yet), of budgets and of the
messages in flight, sorted. It is copied whole for every action; nothing is hashed but by Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attrs import frozen

Node = dict[str, Any]


@frozen
class Given:
    """What a handler is given beside its node: who sent what, a draw, and the clock."""

    me: int
    sender: int
    fields: list[Any]
    drawn: int
    round: int


# What a node does: changes itself and returns what it sends, as (name, to, *fields).
Handler = Callable[[Node, Given], list[tuple[Any, ...]]]
BUDGETS = ("losses", "duplicates", "crashes", "leaves", "restarts", "rounds")


class PlainSearch:
    """The search of one protocol.

    Args:
        nodes: as they begin.
        up: who is up; None of those that are not yet.
        handlers: by name: of messages, of timers ("tick"), "start", "leave" and "unreachable".
        timers: names of timers.
        budgets: by name.
        in_flight: messages from which on no timer fires.
        draws: how many others a handler may draw, whose ``drawn`` it is given.
    """

    def __init__(
        self,
        nodes: list[Node],
        up: list[bool | None],
        handlers: dict[str, Handler],
        timers: list[str],
        budgets: dict[str, int],
        in_flight: int,
        draws: int = 0,
    ) -> None:
        self.handlers, self.timers, self.draws = handlers, timers, draws
        self.in_flight, self.rounds = in_flight, budgets.get("rounds", 0)
        left = tuple(budgets.get(name, 0) for name in BUDGETS)
        self.first = self.packed(nodes, up, left, [])

    @staticmethod
    def packed(nodes: list[Node], up: list[Any], left: tuple[int, ...], flight: list[Any]) -> Any:
        held = tuple(tuple(node.items()) for node in nodes)
        return held, tuple(up), left, tuple(sorted(flight, key=repr))

    def levels(self) -> list[set[Any]]:
        """The states by how many actions they are from the first."""
        known, levels = {self.first}, [{self.first}]
        while levels[-1]:
            found = {new for state in levels[-1] for new in self.following(state)} - known
            known |= found
            levels.append(found)
        return levels

    def following(self, state: Any) -> Iterator[Any]:
        held, up, left, flight = state
        for i, record in enumerate(flight):
            others = [*flight[:i], *flight[i + 1 :]]
            _, way, to, sender, *_ = record
            taker = sender if way == "back" else to
            if up[taker]:
                yield from self.taken(state, taker, record, others)
            else:
                yield from self.settled(held, up, left, others, arrived=record)
            if way == "there" and to != sender:
                if left[0]:
                    yield from self.settled(held, up, self.spent(left, 0), others)
                if left[1] and up[to]:
                    spent = (held, up, self.spent(left, 1), flight)
                    yield from self.taken(spent, to, record, list(flight))
        for p in range(len(up)):
            for timer in self.timers if up[p] and len(flight) < self.in_flight else ():
                yield from self.taken(state, p, (timer, "timer", p, p), list(flight))
            if up[p] and left[2]:
                down = (*up[:p], False, *up[p + 1 :])
                yield from self.settled(held, down, self.spent(left, 2), list(flight))
            if up[p] and left[3]:
                spent = (held, up, self.spent(left, 3), flight)
                yield from self.taken(spent, p, ("leave", "leave", p, p), list(flight))
            if up[p] is None or (up[p] is False and left[4]):
                now = left if up[p] is None else self.spent(left, 4)
                began = (held, (*up[:p], True, *up[p + 1 :]), now, flight)
                contacts = [q for q in range(len(up)) if up[q]] or [-1]
                for contact in contacts:
                    yield from self.taken(began, p, ("start", "start", p, p, contact), list(flight))
        if left[5]:
            yield held, up, self.spent(left, 5), flight

    @staticmethod
    def spent(left: tuple[int, ...], which: int) -> tuple[int, ...]:
        return (*left[:which], left[which] - 1, *left[which + 1 :])

    def taken(self, state: Any, p: int, record: Any, others: list[Any]) -> Iterator[Any]:
        held, up, left, _ = state
        name, way, to, sender, *fields = record
        handler = self.handlers.get("unreachable" if way == "back" else name)
        for drawn in range(max(self.draws, 1)):
            node, other = dict(held[p]), (p + 1 + drawn) % len(up)
            whose = to if way == "back" else sender
            given = Given(p, whose, fields, other, self.rounds - left[5])
            sent = handler(node, given) if handler else []
            new = (*held[:p], tuple(node.items()), *held[p + 1 :])
            flight = [
                (what, "later" if what[0].islower() else "there", whom, p, *body)
                for what, whom, *body in sent
            ]
            now = (*up[:p], False, *up[p + 1 :]) if way == "leave" else up
            yield from self.settled(new, now, left, others + flight)

    def settled(
        self, held: Any, up: Any, left: Any, flight: list[Any], arrived: Any = None
    ) -> Iterator[Any]:
        """The state in which what nobody will take is gone, and what cannot arrive comes back."""
        kept = []
        for record in [*flight, *([arrived] if arrived else [])]:
            name, way, to, sender, *fields = record
            taker = sender if way == "back" else to
            if up[taker]:
                kept.append(record)
            elif way == "there":
                gone = record is arrived or (up[to] is False and not left[4])
                if not gone:
                    kept.append(record)
                elif "unreachable" in self.handlers and up[sender]:
                    kept.append((name, "back", to, sender, *fields))
        yield held, up, left, tuple(sorted(kept, key=repr))
