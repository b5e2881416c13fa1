"""Records that peers might send each other, drawn from how they are declared."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from gossamer.protocol.kernel.records import BODY
from gossamer.protocol.peer.codec import layouts_of
from gossamer.protocol.peer.record_table import layouts
from gossamer.protocol.peer.settings import presets, profile
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.state import profile_words

Words = st.SearchStrategy[list[int]]
HANDLES = st.integers(0, profile.HANDLE_MASK)
ENTRIES = 5  # of a list, or as many as there may be


def small_settings(nodes: int, **changes: Any) -> Settings:
    """Settings with little room, so that every limit is met."""
    tables = {"attributes": 2, "routing_table_entries": 16, "boxes_per_neighbour": 4}
    views = {"view_size": 4, "shuffle_length": 3}
    links = {"small_world_links": 1, "finger_levels": 1, "guest_links": 1, "move_rounds": 2}
    events = {"event_memory": 4, "pending_publications": 4, "held_events": 16}
    room = {**tables, **views, **links, **events, "retention_rounds": 100}
    return presets.resilient(nodes, **room | changes)


@cache
def sane_records(settings: Settings, kind: int, sender: int, to: int = 0) -> Words:
    body = _parts(layouts_of(settings)[kind], settings, sender)
    return body.map(lambda words: [BODY + len(words), kind, to, sender, *words])


def _parts(parts: layouts.Layout, settings: Settings, sender: int) -> Words:
    drawn = st.tuples(*(_part(part, settings, sender) for part in parts))
    return drawn.map(lambda lists: [word for words in lists for word in words])


def _part(part: layouts.Part, settings: Settings, sender: int) -> Words:
    match part:
        case layouts.Word():
            return st.integers(part.low, part.high).map(lambda word: [word])
        case layouts.Handle():
            return HANDLES.map(lambda word: [word])
        case layouts.PerhapsHandle():
            return (HANDLES | st.just(-1)).map(lambda word: [word])
        case layouts.Interval():
            return st.lists(st.integers(0, RING_MASK), min_size=2, max_size=2).map(sorted)
        case layouts.Descriptor():
            handle = st.just(sender) if part.of_sender else HANDLES
            head = st.builds(
                lambda age, handle: age << profile.HANDLE_BITS | handle,
                st.integers(0, part.oldest),
                handle,
            )
            return st.builds(lambda head, told: [head, *told], head, _profiles(settings))
        case layouts.Perhaps():
            return st.just([]) | _part(part.part, settings, sender)
        case layouts.List():
            return _lists(part, settings, sender)
    raise AssertionError(f"{type(part).__name__} has no strategy, expected one for every part")


def _lists(part: layouts.List, settings: Settings, sender: int) -> Words:
    before = 1 if part.first else 0
    most = min(ENTRIES, part.most_entries) - before
    others = st.lists(_parts(part.others, settings, sender), max_size=most)
    return st.builds(
        lambda first, others: [
            before + len(others),
            *first,
            *(w for words in others for w in words),
        ],
        _parts(part.first, settings, sender),
        others,
    )


def _profiles(settings: Settings) -> Words:
    """Profiles: scalars as far as there are some, then ranges."""
    scalars = [st.integers(0, most) for most in (RING_MASK, RING_MASK, profile.MAX_LOAD)]
    ends = st.lists(st.integers(0, profile.HALF_MASK), min_size=2, max_size=2).map(sorted)
    ranges = st.just(profile.NOTHING) | ends.map(lambda pair: profile.range_word.interpreted(*pair))
    told = scalars[: settings.first_range]
    told += [ranges] * (profile_words(settings) - len(told))
    return st.tuples(*told).map(list)
