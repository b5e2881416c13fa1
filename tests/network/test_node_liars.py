"""Members that lie, in league or alone, and floods of subscriptions: bounded and harmless."""

from __future__ import annotations

import random
import struct
from collections import Counter

import attrs
import pytest
import trio

from gossamer.node.peer.assembly import Dependencies
from gossamer.node.peer.load.overload import PER_ROUND
from gossamer.node.peer.peer import Subscription
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import Descriptor, sign_descriptor
from gossamer.node.security.identity import SIGNATURE_BYTES, decode
from gossamer.node.transport.schema import Frame
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.settings import presets
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
from support.attackers import attacker, memory_of_process, read_frame, tampered, write_frame
from support.clusters import MadeCluster
from support.memory_peers import ROUND_S, MemberPeers, member_peers, take_ids, whole
from support.transport_peers import on_jumping_clock

# Whether a record that tells of peers begins with its sender.
_TELLING = {
    records.SAMPLE_REQUEST: True,
    records.SAMPLE_REPLY: False,
    records.TMAN_REQUEST: True,
    records.TMAN_REPLY: True,
    records.PLACE_FOUND: True,
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
        if frame["kind"] == records.EVENT:
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
        quoted = list(league.old.values())[:2]
        quoted[1:] = [entry[:-1] + bytes([entry[-1] ^ 1]) for entry in quoted[1:]]
        entries = [*mine, *liars[: room - len(quoted)], *quoted]
        words = [len(entries), *range(len(entries))]
        return {"peers": entries, "words": struct.pack(f"<{len(words)}q", *words)}

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
        made = Descriptor(key, int.from_bytes(serial, "big"), where, tuple(profile), sequence, at)
        return sign_descriptor(self.member.authority, self.member.identity, made).packed


def _key_of(entry: bytes) -> int:
    return int(decode(entry[SIGNATURE_BYTES:])[1])


SEED = 1
ROUNDS = 3
# Of the process, in which three other peers run.
GROWTH_BYTES = 8 << 20
SETTINGS = presets.resilient(16, attributes=2, subscriptions=16, event_memory=256)
BOXES = SETTINGS.boxes_per_neighbour
PROFILE = (1 << 60, 1 << 60, 0, *[NOTHING] * (profile_words(SETTINGS) - RANGES))


def boxes(draws: random.Random) -> bytes:
    words = [0, 0, BOXES]
    for number in range(BOXES):
        lows = [draws.getrandbits(61) for _ in range(2)]
        words += [number % 2, *(end for low in lows for end in (low, low + draws.getrandbits(60)))]
    return struct.pack(f"<{len(words)}q", *words)


@pytest.mark.parametrize(
    "subscriptions", [10_000, pytest.param(100_000, marks=pytest.mark.campaign)]
)
@on_jumping_clock
async def test_subscription_floods_harm_nobody(cluster: MadeCluster, subscriptions: int) -> None:
    """Most of it is not even looked at; who was there before goes on getting all events."""
    sent = subscriptions // BOXES
    async with whole(member_peers(cluster, 4, preset="resilient")) as crowd:
        first, *others = crowd.peers.values()
        events = others[0].subscribe("price >= 0")
        await crowd.rounds(8)
        before = memory_of_process()
        async with attacker(crowd, first.key, cluster.admit("flooder")) as attack:
            draws, entry = random.Random(SEED), attack.descriptor(PROFILE)
            for number in range(sent):
                kind = records.INSTALL if number % 2 else records.INSTALL_NEWS
                await attack.send("record", kind=kind, words=boxes(draws), peers=[entry])
                if number % (sent // ROUNDS) == 0:
                    await attack.send("ping", number=number)
                    await attack.next_frame("pong")
                    await trio.sleep(ROUND_S)
                    assert first.gauges().routing_entries <= SETTINGS.routing_table_entries
            published = {await crowd.publish(key, i) for i, key in enumerate(crowd.peers)}
            assert await take_ids(events, len(published)) == published
        growth = memory_of_process() - before
        dropped = first.counters.dropped["flood"]
        print(f"{sent} records, {dropped} dropped, {growth} bytes more")
        assert growth < GROWTH_BYTES
        a_round = PER_ROUND[records.INSTALL] + PER_ROUND[records.INSTALL_NEWS]
        assert dropped >= sent - (ROUNDS + 2) * a_round
        assert dropped > sent / 3
        late = others[1].subscribe("price > 500")
        await crowd.rounds(8)
        assert {await crowd.publish(others[2].key, 501)} == await take_ids(late, 1)


EVENTS = 30
CROWDED = presets.resilient(40, attributes=2, subscriptions=16, event_memory=256)
LIES = frozenset({ARC_START, LOAD, RANGES})
# What is lied about, whether events are kept back, honest share of views, and delivery: told from
# views of 20 and eight liars, no view can be of less than 60 % honest peers.
SORTS = {
    "nobody": (None, False, 0.72, 1.0),
    "of others": (frozenset(), False, 0.62, 0.99),
    "of all": (LIES, False, 0.62, 0.9),
    "of all and silent": (LIES, True, 0.62, 0.3),
}


@pytest.mark.parametrize(
    ("sort", "peers", "liars"),
    [("of all", 10, 2), *(pytest.param(sort, 40, 8, marks=pytest.mark.campaign) for sort in SORTS)],
)
@on_jumping_clock
async def test_a_fifth_of_liars_neither_takes_over_nor_stops_delivery(
    cluster: MadeCluster, sort: str, peers: int, liars: int
) -> None:
    lies, silent, least_share, least_delivery = SORTS[sort]
    league = None if lies is None else League(CROWDED.shuffle_length, lies, silent)

    def betray(member: Membership, dependencies: Dependencies) -> Dependencies:
        return dependencies if league is None else Liar(league, member).change(dependencies)

    async with member_peers(
        cluster,
        peers,
        change=lambda _, dependencies: attrs.evolve(dependencies, settings=CROWDED),
        every=peers // liars,
        betray=betray,
    ) as crowd:
        draws, wanted = random.Random(SEED), dict[int, tuple[float, Subscription]]()
        for key in crowd.honest:  # each wants a fifth of all events
            low = draws.uniform(0, 800)
            wanted[key] = low, crowd.peers[key].subscribe(f"price >= {low} and price < {low + 200}")
        await crowd.rounds(12)
        links = honest_links(crowd)
        due = Counter[int]()
        for _ in range(EVENTS):
            price = draws.uniform(0, 1000)
            await crowd.publish(draws.choice(crowd.honest), price)
            due.update(key for key, (low, _) in wanted.items() if low <= price < low + 200)
            await trio.sleep(0.05)
        await crowd.rounds(6)
        got = {key: len(events) for key, (_, events) in wanted.items()}
        assert all(got[key] <= due[key] for key in got), "nobody gets an event twice"
        delivery = sum(got.values()) / due.total()
        told = ", ".join(f"{name} {share:.3f}" for name, share in sorted(links.items()))
        print(f"liars tell {sort}: honest share of {told}; delivered {delivery:.4f}")
        assert len(crowd.bad) == liars
        assert links["random view"] >= least_share
        assert links["ring"] >= 0.7
        assert delivery >= least_delivery
        forged = sum(crowd.peers[key].counters.dropped["forged"] for key in crowd.honest)
        assert (forged > 0) == (league is not None)


def honest_links(crowd: MemberPeers) -> dict[str, float]:
    """By sort of link, the part of honest peers' links that leads to honest peers."""
    found: dict[str, Counter[bool]] = {}
    for key in crowd.honest:
        for other in crowd.peers[key].snapshot().peers:
            for sort in other.links:
                found.setdefault(sort, Counter())[other.key in crowd.bad] += 1
    return {sort: counts[False] / counts.total() for sort, counts in found.items()}
