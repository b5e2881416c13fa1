"""Peers go on asking a node that stops about its queue groups."""

from __future__ import annotations

import trio

from gossamer.node.local.groups import wire
from gossamer.protocol.patterns.groups import Round
from support.local_nodes import ALL, LocalNode
from support.loopback_peer import LoopbackPeer

LEADER, EVENT = 0x77, 0x99
QUESTIONS = 200


def ask(peer: LoopbackPeer, serial: int) -> bytes:
    """The answer to a leader that has this peer's workers take an event."""
    told = Round((1000, LEADER), serial, (LEADER, peer.key), assigned=(EVENT + serial,))
    question = wire.round_question(wire.digest_of("work", ALL), told, {})
    answer: bytes = peer.messages.services[wire.SERVICE](LEADER, question)
    return answer


async def test_a_leader_that_asks_while_a_node_stops_ends_nothing(node: LocalNode) -> None:
    answers: list[bytes] = []

    async def lead() -> None:
        for _ in range(QUESTIONS):
            await trio.lowlevel.checkpoint()
            answers.append(ask(node.peer, len(answers) + 1))

    async with trio.open_nursery() as leading:
        async with node.restartable() as running, node.client() as client:
            await client.join("one", ALL, "work")
            assert ask(node.peer, 0) != wire.NOTHING
            leading.start_soon(lead)
            await running.stop()
            assert ask(node.peer, len(answers) + 1) == wire.NOTHING
        leading.cancel_scope.cancel()
    assert answers
