"""Hypothesis generators of every message that reaches a broker, and ways to spoil plain data."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

from hypothesis import strategies as st

from gossamer.protocol.brokers.core import messages as m
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.tree import messages as t
from gossamer.protocol.content.filters import exact_publication
from support.filter_strategies import filters, publications

names = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=12)
numbers = st.integers(0, (1 << 63) - 1)
hops = st.integers(0, 1 << 31)
ids = st.builds(Id, names, numbers)
values = publications().map(exact_publication)
tuples = st.builds(
    t.CriticalDistance,
    ids,
    st.lists(st.integers(-(1 << 31), 1 << 31), min_size=1, max_size=2).map(tuple),
)
asked = st.lists(st.tuples(names, filters(most=3)), max_size=3).map(tuple)

subscription = st.builds(t.Subscription, ids, filters(most=3), st.booleans())
unsubscription = st.builds(
    t.Unsubscription, ids, st.none() | st.lists(tuples, max_size=3).map(tuple), st.booleans()
)
advertisement = st.builds(t.Advertisement, ids, filters(most=3))
between_brokers = st.one_of(
    *(subscription, unsubscription, advertisement, st.builds(t.Unadvertisement, ids)),
    st.builds(t.Publication, ids, ids, values, hops, hops),
    st.builds(t.Packed, st.lists(subscription | unsubscription, max_size=3).map(tuple)),
    st.builds(
        t.Synchronise,
        *(st.lists(one, max_size=3).map(tuple) for one in (advertisement, subscription)),
    ),
    *(st.just(t.SynchroniseRequest()), st.builds(t.Acknowledge, numbers, numbers)),
)
frames = st.builds(t.Frame, numbers, numbers, between_brokers)
named = (m.Unadvertise, m.Unsubscribe, m.NeighbourUp, m.NeighbourDown, m.NeighbourGone)
messages = st.one_of(
    frames,
    *(st.just(one()) for one in (m.Detach, m.Move, m.Restarted)),
    *(st.builds(one, names) for one in named),
    *(st.builds(one, names, filters(most=3)) for one in (m.Advertise, m.Subscribe)),
    *(st.builds(m.Attach, asked, asked), st.builds(m.Publish, values)),
    *(st.builds(m.Congestion, numbers), st.builds(m.TimerFired, names, numbers)),
)

HOSTILE: tuple[Any, ...] = (
    *(None, True, 0, -1, 1 << 63, 1 << 4000, 0.5, math.nan, math.inf, b"", "", "\0", "\ud800"),
    *("x" * 5000, "price >", "not " * 1000 + "a > 1", "a > 1 and a < 0", "`", [], [[]], {}, {1: 2}),
    *(["number", "1/0"], ["date", "1"], ["number", "9" * 5000]),
    *({"`": 1}, {"a": {}}, ["subscription"]),
)


def spoilt(draw: random.Random, data: Any) -> Any:
    """A copy of plain data with one to three of its parts replaced, dropped, doubled or swapped."""
    made = [copy.deepcopy(data)]
    for _ in range(draw.randint(1, 3)):
        holder, place = draw.choice(list(_places(made)))
        match draw.randrange(4 if isinstance(holder, list) else 2):
            case 0:
                holder[place] = copy.deepcopy(draw.choice(HOSTILE))
            case 1:
                _, other = draw.choice(list(_places(made)))
                holder[place] = copy.deepcopy(_at(made, draw, other))
            case 2 if holder is not made:
                del holder[place]
            case 3 if holder is not made:
                holder.insert(place, copy.deepcopy(holder[place]))
    return made[0]


def _at(made: list[Any], draw: random.Random, place: Any) -> Any:
    holder, _ = draw.choice(list(_places(made)))
    return holder[place] if isinstance(holder, dict) and place in holder else holder


def _places(node: Any) -> Any:
    """Every place below ``node`` where a part lies: what holds it, and its index or key there."""
    parts = list(node.items()) if isinstance(node, dict) else list(enumerate(node))
    for place, part in parts:
        yield node, place
        if isinstance(part, list | dict):
            yield from _places(part)
