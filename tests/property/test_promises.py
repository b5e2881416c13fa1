"""Whatever goes wrong, acknowledged events reach all who asked for them, and nobody twice.

A promise that is broken is told as the steps that break it, as few as there can be. Ten thousand
schedules: `pytest --all --draws 10000 tests/property/test_promises.py`.
"""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.promise_world import PRESETS, World

PEERS: Final = 6

peers = st.integers(0, PEERS - 1)
STEPS = st.one_of(
    st.tuples(st.just("rounds"), st.integers(1, 30)),
    st.tuples(st.just("publish"), peers),
    st.tuples(st.just("publish"), peers),
    st.tuples(st.sampled_from(["crash", "start", "pause", "resume", "want"]), peers),
    st.tuples(st.just("cut"), st.integers(1, (1 << PEERS) - 2)),
    st.tuples(st.just("mute"), peers, peers),
    st.tuples(st.just("heal")),
)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("preset", PRESETS)
@given(seed=st.integers(0, 1 << 20), schedule=st.lists(STEPS, max_size=30))
def test_nothing_acknowledged_is_lost_or_comes_twice(
    preset: str, seed: int, schedule: list[tuple[str, int]]
) -> None:
    world = World(preset, PEERS, seed)
    for name, *arguments in schedule:
        if name != "publish" or world.state_of[arguments[0]] == 1:
            getattr(world, name)(*arguments)
    world.settle()
    assert world.broken() == {}, f"seed {seed}"
