"""Nothing that is on its way goes round, whatever peers believe and wherever they move meanwhile.

`docs/kindred.md` has the proof.
"""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import BODY, Words
from gossamer.protocol.peer.record_table.records import (
    EVENT,
    EVENT_HOPS,
    EVENT_MODE,
    FIND_PLACE,
    TREE,
)
from gossamer.protocol.peer.routing.progress import MOST_STRAYS
from gossamer.protocol.peer.settings.profile import IDENTIFIER, OFF_THE_RING
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.state import HOPS_EXCEEDED
from support.overlays import SMALL, Hosts, misinform, record

EVENTS = 4
PLACES = st.lists(st.integers(0, RING_MASK), min_size=2, max_size=24, unique=True)
SHAPES = st.sampled_from([(1, 0), (1, 4), (2, 6), (3, 2)])


RULES = st.fixed_dictionaries(
    {
        "nearest_routing": st.booleans(),
        "enter_on_the_way": st.booleans(),
        "replicas": st.integers(0, 2),
    }
)


def misled(
    places: list[int], shape: tuple[int, int], rules: dict[str, Any], seed: int, moves: int
) -> Hosts:
    """An overlay of wrong views, in which so many peers move while records are under way."""
    ring, friends = shape
    links = {"ring_links": ring, "friend_links": friends, "join_lookup": True}
    hosts = Hosts.ring(SMALL, places, seed, **links, **rules)
    misinform(hosts.state, seed)
    draws, left = random.Random(seed), [moves]

    def move(_: Words) -> bool:
        if left[0] > 0 and draws.random() < 0.2:
            left[0] -= 1
            hosts.identifiers()[draws.randrange(len(places))] = draws.randrange(RING_MASK)
        return False

    hosts.loses = move
    return hosts


@given(places=PLACES, shape=SHAPES, rules=RULES, seed=st.integers(0, 9999), moves=st.integers(0, 8))
def test_no_copy_and_no_lookup_goes_round(
    places: list[int], shape: tuple[int, int], rules: dict[str, Any], seed: int, moves: int
) -> None:
    hosts = misled(places, shape, rules, seed, moves)
    draws = random.Random(seed + 1)
    # In each of the two phases after each stray no peer and place comes twice.
    most = 2 * (MOST_STRAYS + 1) * (len(places) + moves) + 1
    for event in range(EVENTS):
        hosts.publish(draws.randrange(len(places)), event, draws.randrange(RING_MASK))
    hops = [w[BODY + EVENT_HOPS] for w in hosts.of_kind(EVENT) if w[BODY + EVENT_MODE] < TREE]
    assert max(hops, default=0) <= most
    assert hosts.state.counters[:, HOPS_EXCEEDED].sum() == 0
    hosts = misled(places, shape, rules, seed, moves)
    for p in range(len(places)):
        before = len(hosts.of_kind(FIND_PLACE))
        to = draws.choice([q for q in range(len(places)) if q != p])
        hosts.handle(record(FIND_PLACE, to, p, [0, 1, *hosts.descriptor(p)]))
        assert len(hosts.of_kind(FIND_PLACE)) - before <= most


@given(places=PLACES, rules=RULES, seed=st.integers(0, 9999))
def test_where_nobody_is_on_the_ring_everything_comes_to_rest(
    places: list[int], rules: dict[str, Any], seed: int
) -> None:
    hosts = misled(places, (2, 6), rules, seed, 0)
    hosts.state.sampler.profile[:, IDENTIFIER] = OFF_THE_RING
    hosts.publish(0, 1, seed)
    assert len(hosts.of_kind(EVENT)) <= (1 + rules["replicas"]) * (MOST_STRAYS + 2)
