"""Members that lie, in league or alone, and floods of subscriptions: bounded and harmless."""

from __future__ import annotations

import random
import struct
from collections import Counter
from contextlib import suppress
from pathlib import Path

import attrs
import pytest
import trio

from gossamer.node.config.node import Local
from gossamer.node.local.frames import VERSION
from gossamer.node.peer.assembly import Dependencies
from gossamer.node.peer.frames.wire import WORD_BYTES
from gossamer.node.peer.load.rate_limits import PER_ROUND
from gossamer.node.peer.peer import Subscription
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import Descriptor, sign_descriptor
from gossamer.node.security.encoding import decode
from gossamer.node.security.identity import SIGNATURE_BYTES
from gossamer.node.transport.base.frames import encode_frame
from gossamer.node.transport.base.schema import Frame
from gossamer.protocol.peer.record_table.records import (
    EVENT,
    INSTALL,
    INSTALL_NEWS,
    PLACE_FOUND,
    SAMPLE_REPLY,
    SAMPLE_REQUEST,
    TMAN_REPLY,
    TMAN_REQUEST,
)
from gossamer.protocol.peer.settings import config
from gossamer.protocol.peer.settings.profile import (
    ARC_START,
    IDENTIFIER,
    LOAD,
    NOTHING,
    RANGES,
    coarse_range,
)
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.state import profile_words
from support.attackers import (
    Attacker,
    attacker,
    memory_of_process,
    read_frame,
    read_to_end,
    tampered,
    write_frame,
)
from support.clusters import MadeCluster
from support.local_nodes import LocalNode
from support.loopback_peer import IBM
from support.memory_peers import ROUND_S, MemberPeers, member_peers, take_ids, whole
from support.transport_peers import on_jumping_clock
from support.waiting import eventually

# Whether a record that tells of peers begins with its sender.
_TELLING = {
    SAMPLE_REQUEST: True,
    SAMPLE_REPLY: False,
    TMAN_REQUEST: True,
    TMAN_REPLY: True,
    PLACE_FOUND: True,
}


@attrs.define
class League:
    told: int  # how many peers one record may tell of
    profile: frozenset[int] = frozenset()  # about which words of their own profile they lie, too
    silence: bool = False  # whether they pass no events on
    own: dict[int, bytes] = attrs.field(factory=dict)  # the newest descriptor of each liar, by key
    # The first descriptor seen of each honest peer, by key.
    old: dict[int, bytes] = attrs.field(factory=dict)


@attrs.define
class Liar:
    league: League
    member: Membership
    _made_up: dict[bytes, bytes] = attrs.field(factory=dict)

    def change(self, dependencies: Dependencies) -> Dependencies:
        return tampered(dependencies, self._rewrite)

    def _rewrite(self, data: bytes) -> bytes:
        frame = read_frame(data)
        kind = frame["type"]
        if kind == "greeting":
            frame["peer"] = self._of_myself(frame["peer"])
            return write_frame(frame)
        if kind != "record":
            return data
        if frame["kind"] == EVENT:
            return b"" if self.league.silence else data
        frame["peers"] = [self._of_anybody(entry) for entry in frame["peers"]]
        if frame["kind"] in _TELLING:
            frame |= self._tell(_TELLING[frame["kind"]], frame["peers"])
        return write_frame(frame)

    def _tell(self, with_sender: bool, peers: list[bytes]) -> Frame:
        """The other liars, fresh; an honest peer as it was long ago, and one misquoted."""
        league, me = self.league, self.member.identity.key
        mine = [league.own[me]] if with_sender and me in league.own else peers[:with_sender]
        liars = [entry for key, entry in league.own.items() if key != me]
        room = league.told - len(mine)
        quoted = [*list(league.old.values())[:1], *map(_misquoted, list(league.old.values())[1:2])]
        entries = [*mine, *liars[: room - len(quoted)], *quoted]
        words = [len(entries), *range(len(entries))]
        return {"peers": entries, "words": b"".join(_word(word) for word in words)}

    def _of_anybody(self, entry: bytes) -> bytes:
        if len(entry) <= SIGNATURE_BYTES:
            return entry
        key = _key_of(entry)
        if key == self.member.identity.key:
            return self._of_myself(entry)
        if key not in self.league.own:
            self.league.old.setdefault(key, entry)
        return entry

    def _of_myself(self, entry: bytes) -> bytes:
        key = self.member.identity.key
        told = entry
        if self.league.profile:
            told = self._made_up.setdefault(entry, b"") or self._make_up(entry)
            self._made_up[entry] = told
        self.league.own[key] = told
        return told

    def _make_up(self, entry: bytes) -> bytes:
        """Signed by its owner, and untrue: wants everything, has no load, answers for all."""
        _, key, serial, addresses, profile, sequence, at = decode(entry[SIGNATURE_BYTES:])
        lies = {
            LOAD: [0],
            ARC_START: [profile[IDENTIFIER] + 1 & RING_MASK],
            RANGES: [coarse_range(0, RING_MASK)] * len(profile[RANGES:]),
        }
        for word in self.league.profile:
            profile[word : word + len(lies[word])] = lies[word]
        where = tuple((host, port) for host, port in addresses)
        number = int.from_bytes(serial, "big")
        made = Descriptor(key, number, where, tuple(profile), sequence, at)
        return sign_descriptor(self.member.authority, self.member.identity, made).packed


def _misquoted(entry: bytes) -> bytes:
    return entry[:-1] + bytes([entry[-1] ^ 1])


def _key_of(entry: bytes) -> int:
    return int(decode(entry[SIGNATURE_BYTES:])[1])


def _word(word: int) -> bytes:
    return word.to_bytes(WORD_BYTES, "little", signed=True)


SEED = 1
ROUNDS = 3
# Of the process, in which three other peers run.
GROWTH_BYTES = 8 << 20
SETTINGS = config.resilient(16, attributes=2, subscriptions=16, event_memory=256)
BOXES = SETTINGS.boxes_per_neighbour
PROFILE = (1 << 60, 1 << 60, 0, *[NOTHING] * (profile_words(SETTINGS) - RANGES))


def boxes(draws: random.Random) -> bytes:
    """As many subscriptions as a record may bring, none like another."""
    words = [0, 0, BOXES]
    for number in range(BOXES):
        lows = [draws.getrandbits(61) for _ in range(2)]
        words += [number % 2, *(end for low in lows for end in (low, low + draws.getrandbits(60)))]
    return struct.pack(f"<{len(words)}q", *words)


async def flood(crowd: MemberPeers, target: int, attack: Attacker, records: int) -> None:
    """Send so many records of subscriptions, in `ROUNDS` of the peer's rounds."""
    draws, entry = random.Random(SEED), attack.descriptor(PROFILE)
    for number in range(records):
        kind = INSTALL if number % 2 else INSTALL_NEWS
        await attack.send("record", kind=kind, words=boxes(draws), peers=[entry])
        if number % (records // ROUNDS) == 0:
            await attack.send("ping", number=number)
            await attack.next_frame("pong")
            await trio.sleep(ROUND_S)
            entries = crowd.peers[target].gauges().routing_entries
            assert entries <= SETTINGS.routing_table_entries


@pytest.mark.parametrize(
    "subscriptions", [10_000, pytest.param(100_000, marks=pytest.mark.campaign)]
)
@on_jumping_clock
async def test_a_flood_of_subscriptions_from_a_peer_is_dropped_and_harms_nobody(
    cluster: MadeCluster, subscriptions: int
) -> None:
    """Most of it is not even looked at; who was there before goes on getting all events."""
    records = subscriptions // BOXES
    async with whole(member_peers(cluster, 4, preset="resilient")) as crowd:
        first, *others = crowd.peers.values()
        events = others[0].subscribe("price >= 0")
        await crowd.rounds(8)
        before = memory_of_process()
        async with attacker(crowd, first.key, cluster.admit("flooder")) as attack:
            await flood(crowd, first.key, attack, records)
            published = {await crowd.publish(key, i) for i, key in enumerate(crowd.peers)}
            assert await take_ids(events, len(published)) == published
        growth = memory_of_process() - before
        dropped = first.counters.dropped["flood"]
        print(f"{records} records, {dropped} dropped, {growth} bytes more")
        assert growth < GROWTH_BYTES
        assert dropped >= records - (ROUNDS + 2) * (PER_ROUND[INSTALL] + PER_ROUND[INSTALL_NEWS])
        assert dropped > records / 3
        late = others[1].subscribe("price > 500")
        await crowd.rounds(8)
        news = await crowd.publish(others[2].key, 501)
        assert await take_ids(late, 1) == {news}


@on_jumping_clock
async def test_an_application_that_floods_with_subscriptions_is_cut(tmp_path: Path) -> None:
    """It has as many as it may have, then refusals, then no connection; others are served."""
    node = LocalNode(tmp_path, local=Local(subscriptions=16, requests_per_s=500))
    async with node.running(), node.client() as other:
        assert node.address.path is not None
        stream = await trio.open_unix_socket(node.address.path)
        begun = trio.current_time()
        async with stream, trio.open_nursery() as nursery:
            nursery.start_soon(read_to_end, stream)
            await stream.send_all(encode_frame("attach", version=VERSION, software="flood"))
            sent = 0
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                while sent < 100_000:
                    asked = {"number": sent, "id": str(sent), "expression": f"price > {sent}"}
                    await stream.send_all(encode_frame("subscribe", **asked))
                    sent += 1
            nursery.cancel_scope.cancel()
        assert sent < 100_000
        await eventually(lambda: node.counts.ended["flood"] == 1)
        assert node.counts.refused["CapacityError"] > 100
        assert node.counts.requests < 500 * (trio.current_time() - begun) + 2 * 500 + 300
        await eventually(lambda: len(node.peer.subscribers) == 0)
        assert await other.publish(IBM)


# How many peers there are, and how many of them lie.
FEW, FULL = (10, 2), (40, 8)
EVENTS = 30
CROWDED = config.resilient(FULL[0], attributes=2, subscriptions=16, event_memory=256)
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
    league = None if lies is None else League(CROWDED.shuffle_length, lies, silent)

    def betray(member: Membership, dependencies: Dependencies) -> Dependencies:
        return dependencies if league is None else Liar(league, member).change(dependencies)

    async with member_peers(
        cluster,
        size[0],
        change=lambda _, dependencies: attrs.evolve(dependencies, settings=CROWDED),
        every=size[0] // size[1],
        betray=betray,
    ) as crowd:
        tried = Overlay(crowd)
        tried.subscribe()
        await tried.crowd.rounds(12)
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
async def test_one_peer_fills_no_view_by_many_exchanges(cluster: MadeCluster) -> None:
    """It may begin as many as anybody else; the others are dropped and counted."""
    async with whole(member_peers(cluster, 6, preset="resilient")) as crowd:
        first = crowd.peers[next(iter(crowd.peers))]
        async with attacker(crowd, first.key, cluster.admit("pushy")) as attack:
            asked, words, entry = 50, struct.pack("<2q", 1, 0), attack.descriptor(PROFILE)
            for _ in range(asked):
                await attack.send("record", kind=SAMPLE_REQUEST, words=words, peers=[entry])
            await attack.send("ping", number=1)
            await attack.next_frame("pong")
            dropped, allowed = first.counters.dropped["flood"], PER_ROUND[SAMPLE_REQUEST]
            assert asked - 2 * allowed <= dropped <= asked - allowed
