"""The leader of a queue group, with other peers that answer as a test says."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import trio
from trio.testing import MockClock

from gossamer.node.errors import NoAnswerError
from gossamer.node.local.groups import wire
from gossamer.node.local.groups.leading import Leading
from gossamer.node.local.groups.log import GroupLog
from gossamer.node.local.groups.other_peers import OtherPeers
from gossamer.node.transport.base.base import Address
from gossamer.protocol.patterns.groups import ANSWER_S, LOST_S, Member, Round

LEADER, OTHER = 1, 2
DIGEST = bytes(wire.DIGEST_BYTES)


class PausedAmidARound:
    """One other peer; while it is asked, this process is paused until that one leads.

    It takes a moment to reach it again afterwards.
    """

    def __init__(self, clock: MockClock) -> None:
        self.asked = 0
        self.member = Member(OTHER)
        self._clock = clock

    def learn(self, _addresses: object) -> None:
        return

    def with_addresses(self, _keys: object) -> Mapping[int, tuple[Address, ...]]:
        return {}

    async def announce(self) -> None:
        await trio.lowlevel.checkpoint()

    async def ask(self, key: int, question: bytes, patience_s: float) -> bytes:
        self.asked += 1
        if self.asked == 1:
            self._clock.jump(ANSWER_S + 2 * LOST_S)
            self.member.take(Round((2, OTHER), 1, (OTHER,)), 0)
        if self.asked <= 3:
            await trio.sleep(min(patience_s, 1.0))
            raise NoAnswerError(key, "the connection ended")
        await trio.lowlevel.checkpoint()
        told, _ = wire.read_round(wire.read_question(question)[2])
        return wire.report(self.member.take(told, 8)[0], {})


async def test_a_leader_paused_amid_a_round_asks_before_it_assigns(
    autojump_clock: MockClock,
) -> None:
    own, others = Member(LEADER), PausedAmidARound(autojump_clock)
    for event in range(50):
        own.arrive(event)

    def take_round(told: Round, _addresses: object) -> bytes:
        return wire.report(own.take(told, 64)[0], {})

    async def fetch(_key: int, _event: int) -> None:
        await trio.lowlevel.checkpoint()

    leading = Leading(
        "workers",
        DIGEST,
        LEADER,
        own,
        cast(GroupLog, SimpleNamespace(is_full=False, keeps=lambda _: True, learn=lambda _: None)),
        cast(OtherPeers, others),
        take_round,
        fetch,
    )
    with trio.fail_after(10 * LOST_S):
        await leading.lead((1, LEADER), {LEADER, OTHER})
    assert own.held == set(), "another peer leads, and has given these to others"
    assert others.asked == 4
