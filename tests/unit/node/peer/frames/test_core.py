"""A peer's protocol state as its host drives it: points of events, what it remembers."""

from __future__ import annotations

import math

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.node.peer.frames.core import SELF, WORTH_ARRAYS, Core
from gossamer.node.security.sealing import ID_BITS
from gossamer.protocol.peer.rendezvous.replay import remember
from gossamer.protocol.peer.settings.config import Settings, kindred
from gossamer.protocol.peer.space.line import RING_SIZE

EVENTS = 2 * WORTH_ARRAYS


def settings_of(attributes: int, *, by_key: bool) -> Settings:
    if by_key:
        return kindred(100, attributes=attributes)
    return attrs.evolve(Settings(), attributes=attributes)


@pytest.mark.parametrize("by_key", [True, False])
@pytest.mark.parametrize("attributes", [1, 2, 3])
@given(data=st.data())
def test_points_of_many_events_are_those_of_each(
    attributes: int, by_key: bool, data: st.DataObject
) -> None:
    core = Core(settings_of(attributes, by_key=by_key), key=7)
    hashed = st.lists(st.integers(0, RING_SIZE - 1), min_size=attributes, max_size=attributes)
    values = data.draw(st.lists(hashed, max_size=EVENTS))
    draw = st.integers(0, (1 << ID_BITS) - 1)
    draws = data.draw(st.lists(draw, min_size=len(values), max_size=len(values)))
    one_by_one = [list(core.point_of(*one)) for one in zip(values, draws, strict=True)]
    together = core.points_of(values, draws)
    assert [list(point) for point in together] == one_by_one
    assert all(type(word) is int for point in together for word in point)


@given(rounds=st.lists(st.integers(0, 3), max_size=40))
def test_events_are_remembered_for_whole_rounds_of_which_none_is_forgotten(
    rounds: list[int],
) -> None:
    """Each event comes so many rounds after the one before."""
    memory = 8
    core = Core(attrs.evolve(settings_of(1, by_key=True), event_memory=memory), key=7)
    came: list[int] = []
    for copy, later in enumerate(rounds):
        core.state.round[SELF] += later
        values = [0] * core.settings.coordinates
        remember.interpreted(core.state, SELF, copy, 0, values, 0)
        came.append(int(core.state.round[SELF]))
    now = int(core.state.round[SELF])
    whole = core.remembered_rounds()
    assert whole == (now - came[-memory] - 1 if len(came) >= memory else math.inf)
    assert all(round_ < now - whole for round_ in came[:-memory])
