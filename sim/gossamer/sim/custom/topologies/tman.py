"""T-Man (Jelasity, Montresor, Babaoglu, Computer Networks 53, 2009) with a ranking of one's own.

A node exchanges the nodes that it knows with one of its nearest, and keeps those that rank best:
rings, tori, trees and whatever else a ranking says. It runs over a sampler, from which it draws in
every round, and is a layer of what runs over it.

Departs from the paper: a node keeps so many nodes and no more; it forgets one to which a message
came back.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from gossamer.protocol.kernel.rules import Rule, rule
from gossamer.sim.custom.language.members import Sampler, Timer, column
from gossamer.sim.custom.language.messages import Message, items
from gossamer.sim.custom.language.places import declaration_error
from gossamer.sim.custom.library import (
    NOBODY,
    count_in,
    draw,
    draw_from,
    insert_at,
    peer_at,
    peers_known,
    random_peer,
    remove_from,
)
from gossamer.sim.custom.node import Node
from gossamer.sim.custom.protocol import Protocol

MOST = 256


class TManRequest(Message):
    """Nodes that rank best for the receiver, who is to answer with such."""

    nodes: Any = items(MOST)


class TManReply(Message):
    """The answer."""

    nodes: Any = items(MOST)


def tman(
    rank: Any,
    *,
    nearest: int = 20,
    sent: int = 20,
    partners: int = 10,
    sampler: str = "newscast",
    view_size: int = 20,
) -> Any:
    """A T-Man that sorts by a ranking, to be a layer: ``ring = layer(tman(rank))``.

    Its state has ``near``, int64[n, nearest]: whom a node keeps, the best first, then -1.

    Args:
        rank: a rule (state, base, node) of how far a node is from another, a number; of two as
            far the lower row is first. The state is this T-Man's, or that of a class derived.
        nearest: nodes that a node keeps.
        sent: nodes in a message, chosen for its receiver.
        partners: of the nearest among whom an exchange draws its partner.
        sampler: what it runs over.
        view_size: of the sampler.

    Raises:
        ScenarioError: a number is out of its range, or the ranking no rule; names file and line.
    """
    caller = sys._getframe(1)
    place = caller.f_code.co_filename, caller.f_lineno
    if not isinstance(rank, Rule):
        raise declaration_error(place, "the ranking of tman", rank, "a function with @rule")
    for name, size in (("nearest", nearest), ("sent", sent), ("partners", partners)):
        if type(size) is not int or not 1 <= size <= MOST:
            raise declaration_error(place, f"tman {name}", size, f"a whole number, 1 to {MOST}")

    @rule
    def insert(state: Any, row: Any, base: int, node: int) -> None:
        """Insert a node into a row where the best for ``base`` come first."""
        if node < 0 or node == base:
            return
        at, new = len(row), rank(state, base, node)
        while at > 0:
            other = row[at - 1]
            if other == node:
                return
            if other >= 0:
                held = rank(state, base, other)
                if held < new or (held == new and other < node):
                    break
            at -= 1
        if at < len(row):
            insert_at(row, at, node)

    @rule
    def choose(state: Any, me: int, to: int) -> None:
        """Choose those that rank best for another node, this one among them."""
        state.chosen[me, :] = NOBODY
        insert(state, state.chosen[me], to, me)
        for node in state.near[me]:
            insert(state, state.chosen[me], to, node)

    class TMan(Protocol):
        """T-Man with one ranking."""

        peers = Sampler(sampler, view_size=view_size)
        near = column(int, nearest, initial=NOBODY)
        chosen = column(int, sent, initial=NOBODY)
        exchange = Timer(rounds=1)

        def on_start(self: Any, me: Any, net: Any, contact: Any) -> None:
            self.near[me, :] = NOBODY
            for at in range(peers_known(self.peers, me)):
                insert(self, self.near[me], me, peer_at(self.peers, me, at))

        def on_exchange(self: Any, me: Any, net: Any) -> None:
            insert(self, self.near[me], me, random_peer(self.peers, me, draw(self, me)))
            partner = draw_from(self, me, self.near[me, :partners])
            if partner >= 0:
                choose(self, me, partner)
                TManRequest.send(net, partner, self.chosen[me, : count_in(self.chosen[me])])

        def on_t_man_request(self: Any, me: Any, net: Any, sender: Any, nodes: Any) -> None:
            choose(self, me, sender)
            TManReply.send(net, sender, self.chosen[me, : count_in(self.chosen[me])])
            for node in nodes:
                insert(self, self.near[me], me, node)

        def on_t_man_reply(self: Any, me: Any, net: Any, sender: Any, nodes: Any) -> None:
            for node in nodes:
                insert(self, self.near[me], me, node)

        def on_unreachable(self: Any, me: Any, net: Any, to: Any, kind: Any) -> None:
            remove_from(self.near[me], to)

    return TMan


class TManNode(Node):
    """T-Man as plain nodes: derive from it, with a method ``rank``; does the same as `tman`.

    Attributes:
        near: whom the node keeps, the best first.
        nearest, sent, partners: numbers as of `tman`, to be set in the class.
    """

    nearest = 20
    sent = 20
    partners = 10
    peers: Any = Sampler("newscast", view_size=20)

    exchange = Timer(rounds=1)

    def __init__(self) -> None:
        self.near: list[int] = []

    def rank(self, base: int, node: int) -> float:
        """How far a node is from another; of two as far the lower row is first."""
        raise NotImplementedError(f"{type(self).__name__} has no ranking")

    def best(self, nodes: Iterable[int], base: int, most: int) -> list[int]:
        """Those of the nodes that rank best for ``base``, sorted."""
        others = {node for node in nodes if node >= 0 and node != base}
        return sorted(others, key=lambda node: (self.rank(base, node), node))[:most]

    def on_start(self, contact: int) -> None:
        """Begin with the random view."""
        self.near = self.best(self.peers, self.me, self.nearest)

    def on_exchange(self) -> None:
        """Take a random peer into account, and exchange nodes with one of the nearest."""
        self.near = self.best([*self.near, self.peers.random()], self.me, self.nearest)
        partner = self.draw_from(self.near[: self.partners])
        if partner >= 0:
            self.send(partner, TManRequest(self.best([self.me, *self.near], partner, self.sent)))

    def on_t_man_request(self, sender: int, message: Any) -> None:
        """Answer, and keep the best of what came."""
        self.send(sender, TManReply(self.best([self.me, *self.near], sender, self.sent)))
        self.near = self.best([*self.near, *message.nodes], self.me, self.nearest)

    def on_t_man_reply(self, sender: int, message: Any) -> None:
        """Keep the best of what came."""
        self.near = self.best([*self.near, *message.nodes], self.me, self.nearest)

    def on_unreachable(self, to: int, message: Any) -> None:
        """Forget a node that is gone."""
        if to in self.near:
            self.near.remove(to)
