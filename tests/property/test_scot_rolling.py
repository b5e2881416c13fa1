"""Brokers of a SCOT are restarted one after another, and take over clients from then on, or not."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.scot import ScotSettings
from support.draws import one_in
from support.scot_rolling import RollingPlay

SEEDS = st.integers(0, 2**32)
PLAIN = {"around_failures": True}
ONE = {"around_failures": True, "take_over": True}
TWO = {"around_failures": True, "take_over": True, "backups": 2}
COVERED = {"around_failures": True, "take_over": True, "backups": 2, "covering": True}
NONE: dict[str, bool] = {}
CHANGES = {
    "begins": (PLAIN, ONE),
    "begins, and goes around failures": (NONE, TWO),
    "ends": (ONE, PLAIN),
    "ends, and goes around failures no more": (TWO, NONE),
    "more backups": (ONE, TWO),
    "less backups": (TWO, ONE),
    "begins to cover": (ONE, COVERED),
    "covers no more": (COVERED, ONE),
}


def settings_of(change: str, draw: random.Random) -> tuple[ScotSettings, ScotSettings]:
    """Those of all brokers at first, and of those that were restarted."""
    first, then = (
        ScotSettings(routing=draw.choice(["static", "dynamic"]), **one)  # type: ignore[arg-type]
        for one in CHANGES[change]
    )
    return first, then


@pytest.mark.parametrize("most", [3, pytest.param(5, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("change", CHANGES)
@one_in(8)
@given(seed=SEEDS)
def test_nothing_is_lost_while_brokers_differ(change: str, most: int, seed: int) -> None:
    draw = random.Random(seed)
    first, then = settings_of(change, draw)
    play = RollingPlay(draw, first, most)
    play.subscribe_some(draw.randrange(1, 7))
    play.publish_in_peace()
    for broker in draw.sample(sorted(play.brokers), len(play.brokers)):
        play.congest()
        play.restart(broker, then, lambda: play.publish_some(draw.randrange(4)))
        play.publish_in_peace()
        play.check_tables()
    play.check_once([], play.taken)
    play.check_in_the_end(then)


@pytest.mark.parametrize("most", [3, pytest.param(5, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("change", CHANGES)
@one_in(8)
@given(seed=SEEDS)
def test_tables_are_those_of_the_new_settings(change: str, most: int, seed: int) -> None:
    draw = random.Random(seed)
    first, then = settings_of(change, draw)
    play = RollingPlay(draw, first, most)
    play.come_and_go(draw.randrange(3))
    play.quieten()
    for broker in draw.sample(sorted(play.brokers), len(play.brokers)):
        play.restart(broker, then, lambda: play.come_and_go(draw.randrange(3)))
        play.publish_in_peace()
        play.check_tables()
    play.check_in_the_end(then)
