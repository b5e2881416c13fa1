"""Members that lie: a fifth of all peers in league, and one that would fill a view alone."""

from __future__ import annotations

import random
from collections import Counter

import attrs
import pytest
import trio

from gossamer.node.peer.assembly import Dependencies
from gossamer.node.peer.load.rate_limits import PER_ROUND
from gossamer.node.peer.peer import Subscription
from gossamer.node.security.cluster import Membership
from gossamer.protocol.peer.record_table.records import SAMPLE_REQUEST
from gossamer.protocol.peer.settings import config
from gossamer.protocol.peer.settings.profile import ARC_START, LOAD, NOTHING, RANGES
from gossamer.protocol.peer.state.state import profile_words
from support.attackers import attacker
from support.clusters import MadeCluster
from support.liars import League, Liar
from support.memory_members import MemberPeers, member_peers
from support.transport_peers import on_jumping_clock

# How many peers there are, and how many of them lie.
FEW, FULL = (10, 2), (40, 8)
ROUNDS, EVENTS, SEED = 12, 30, 1
SETTINGS = config.resilient(FULL[0], attributes=2, subscriptions=16, event_memory=256)
LIES = frozenset({ARC_START, LOAD, RANGES})

# Told from views of 20 and eight liars: no view can be of less than 60 % honest peers.
SORTS = {
    # What is lied about, whether events are kept back, honest share of views, and delivery.
    "nobody": (None, False, 0.72, 1.0),
    "of others": (frozenset(), False, 0.62, 0.99),
    "of all": (LIES, False, 0.62, 0.9),
    "of all and silent": (LIES, True, 0.62, 0.3),
}
TRIED = [
    pytest.param("of all", FEW, id="few"),
    *(pytest.param(sort, FULL, marks=pytest.mark.campaign, id=sort) for sort in SORTS),
]


@attrs.define
class Overlay:
    crowd: MemberPeers
    draws: random.Random = attrs.field(factory=lambda: random.Random(SEED))
    wanted: dict[int, tuple[float, Subscription]] = attrs.field(factory=dict)

    def subscribe(self) -> None:
        """Let each honest peer want a fifth of all events."""
        for key in self.crowd.honest:
            low = self.draws.uniform(0, 800)
            expression = f"price >= {low} and price < {low + 200}"
            self.wanted[key] = low, self.crowd.peers[key].subscribe(expression)

    def shares(self) -> dict[str, float]:
        """By sort of link, the part of honest peers' links that leads to honest peers."""
        found: dict[str, Counter[bool]] = {}
        for key in self.crowd.honest:
            for other in self.crowd.peers[key].snapshot().peers:
                for sort in other.links:
                    found.setdefault(sort, Counter())[other.key in self.crowd.bad] += 1
        return {sort: counts[False] / counts.total() for sort, counts in found.items()}

    async def deliver(self) -> float:
        """Publish from honest peers; the part of what is due to honest peers that reaches them."""
        due: Counter[int] = Counter()
        for _ in range(EVENTS):
            price = self.draws.uniform(0, 1000)
            await self.crowd.publish(self.draws.choice(self.crowd.honest), price)
            due.update(key for key, (low, _) in self.wanted.items() if low <= price < low + 200)
            await trio.sleep(0.05)
        await self.crowd.rounds(6)
        got = {key: len(events) for key, (_, events) in self.wanted.items()}
        assert all(got[key] <= due[key] for key in got), "nobody gets an event twice"
        return sum(got.values()) / due.total()


@pytest.mark.parametrize(("sort", "size"), TRIED)
@on_jumping_clock
async def test_a_fifth_of_liars_neither_takes_over_nor_stops_delivery(
    cluster: MadeCluster, sort: str, size: tuple[int, int]
) -> None:
    lies, silent, least_share, least_delivery = SORTS[sort]
    league = None if lies is None else League(SETTINGS.shuffle_length, lies, silent)

    def betray(member: Membership, dependencies: Dependencies) -> Dependencies:
        return dependencies if league is None else Liar(league, member).change(dependencies)

    async with member_peers(
        cluster,
        size[0],
        change=lambda _, dependencies: attrs.evolve(dependencies, settings=SETTINGS),
        every=size[0] // size[1],
        betray=betray,
    ) as crowd:
        tried = Overlay(crowd)
        tried.subscribe()
        await tried.crowd.rounds(ROUNDS)
        shares, delivery = tried.shares(), await tried.deliver()
        told = ", ".join(f"{name} {share:.3f}" for name, share in sorted(shares.items()))
        print(f"liars tell {sort}: honest share of {told}; delivered {delivery:.4f}")
        assert len(tried.crowd.bad) == size[1]
        assert shares["random view"] >= least_share
        assert shares["ring"] >= 0.7
        assert delivery >= least_delivery
        forged = [tried.crowd.peers[key].counters.dropped["forged"] for key in tried.crowd.honest]
        assert (sum(forged) > 0) == (league is not None)


@on_jumping_clock
async def test_one_peer_fills_no_view_by_asking_for_exchange_after_exchange(
    cluster: MadeCluster,
) -> None:
    """It may begin as many as anybody else; the others are dropped and counted."""
    async with member_peers(cluster, 6, preset="resilient") as crowd:
        await crowd.whole()
        first = crowd.peers[next(iter(crowd.peers))]
        profile = (1 << 60, 1 << 60, 0, *[NOTHING] * (profile_words(SETTINGS) - RANGES))
        async with attacker(crowd, first.key, cluster.admit("pushy")) as attack:
            entry = attack.descriptor(profile)
            asked = 50
            for _ in range(asked):
                await attack.send(
                    "record",
                    kind=SAMPLE_REQUEST,
                    words=b"".join(word.to_bytes(8, "little") for word in (1, 0)),
                    peers=[entry],
                )
            await attack.send("ping", number=1)
            await attack.next_frame("pong")
            assert asked - 2 * PER_ROUND[SAMPLE_REQUEST] <= first.counters.dropped["flood"]
            assert first.counters.dropped["flood"] <= asked - PER_ROUND[SAMPLE_REQUEST]
