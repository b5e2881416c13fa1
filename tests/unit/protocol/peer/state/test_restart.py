"""What a peer keeps when it starts again, and what it forgets."""

from __future__ import annotations

import numpy as np

from gossamer.protocol.peer.settings.config import resilient
from gossamer.protocol.peer.settings.profile import IDENTIFIER, LOAD
from gossamer.protocol.peer.state.state import make_state
from gossamer.protocol.peer.step import restart, subscribe


def test_a_peer_that_starts_again_forgets_others_and_remembers_itself() -> None:
    """Links, routing table and remembered copies go; identity and interest stay."""
    state = make_state(resilient(3), 3)
    subscribe(state, 1, np.array([[10, 20]]), np.array([1]))
    identifier = int(state.sampler.profile[1, IDENTIFIER])
    state.links[1] = 2
    state.table_count[1] = 4
    state.event_copies[1, 0] = 7
    state.successor[1] = 0
    state.load[1] = 9
    restart(state, 1)
    assert (state.links[1] == -1).all()
    assert state.table_count[1] == 0
    assert (state.event_copies[1] == -1).all()
    assert state.successor[1] == -1
    assert state.sampler.profile[1, LOAD] == state.load[1] == 0
    assert int(state.sampler.profile[1, IDENTIFIER]) == identifier
    assert state.constrained[1, 0] == 1


def test_an_application_is_not_served_again_after_a_restart() -> None:
    """What was delivered stays known: replayed events meet it when the peer is back."""
    state = make_state(resilient(3), 3)
    state.delivered[1, 0] = 42
    restart(state, 1)
    assert state.delivered[1, 0] == 42


def test_restarting_touches_no_other_row() -> None:
    """Rows 0 and 2 are as they were."""
    state = make_state(resilient(3), 3)
    for array in (state.links, state.delivered, state.event_copies, state.table_count):
        array[[0, 2]] = 5
    restart(state, 1)
    for array in (state.links, state.delivered, state.event_copies, state.table_count):
        assert (array[[0, 2]] == 5).all()
