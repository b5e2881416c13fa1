"""Brokers of a SCOT are restarted one after another, and take over clients from then on, or not."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.protocol.brokers.scot import ScotSettings
from support.scot_rolling import RollingPlay

SEEDS = st.integers(0, 2**32)
TEXTS = ("present(x)", "x > 5", "x < 3")
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


def publish_and_take(play: RollingPlay, draw: random.Random) -> None:
    """Clients of living brokers publish, and take what they got, while things happen."""
    for _ in range(draw.randrange(4)):
        alive = sorted(play.brokers.keys() - play.dead.keys())
        play.publish(draw.choice(alive), x=draw.randrange(10))
        for _ in range(draw.randrange(12)):
            play.step()
        if draw.random() < 0.3:
            play.take(draw.choice(sorted(play.subscribers.values(), key=lambda one: one.name)))


def come_and_go(play: RollingPlay, draw: random.Random) -> None:
    """Clients of living brokers subscribe and unsubscribe, while things happen."""
    for _ in range(draw.randrange(3)):
        alive = sorted(play.brokers.keys() - play.dead.keys())
        here = [one for one in play.subscribers.values() if one.at[-1] in alive]
        if here and draw.random() < 0.4:
            play.unsubscribe(draw.choice(here))
        else:
            play.subscribe(f"C{draw.getrandbits(40)}", draw.choice(alive), draw.choice(TEXTS))
        for _ in range(draw.randrange(12)):
            play.step()


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_nothing_is_lost_and_nothing_comes_twice_while_brokers_differ(
    change: str, seed: int
) -> None:
    draw = random.Random(seed)
    first, then = (
        ScotSettings(routing=draw.choice(["static", "dynamic"]), **one)  # type: ignore[arg-type]
        for one in CHANGES[change]
    )
    play = RollingPlay(draw, first)
    for i in range(draw.randrange(1, 7)):
        play.subscribe(f"S{i}", draw.choice(sorted(play.brokers)), draw.choice(TEXTS))
    play.publish_in_peace()
    for broker in draw.sample(sorted(play.brokers), len(play.brokers)):
        play.congest()
        play.restart(broker, then, lambda: publish_and_take(play, draw))
        play.publish_in_peace()
        play.check_tables()
    assert play.refusals == []
    play.check_due()
    play.check_once([], play.taken)
    play.check_settings(then)
    play.leave()
    assert not any(play.tables().values())


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_tables_are_those_of_the_new_settings_whoever_comes_and_goes_meanwhile(
    change: str, seed: int
) -> None:
    draw = random.Random(seed)
    first, then = (
        ScotSettings(routing=draw.choice(["static", "dynamic"]), **one)  # type: ignore[arg-type]
        for one in CHANGES[change]
    )
    play = RollingPlay(draw, first)
    come_and_go(play, draw)
    play.quieten()
    for broker in draw.sample(sorted(play.brokers), len(play.brokers)):
        play.restart(broker, then, lambda: come_and_go(play, draw))
        play.publish_in_peace()
        play.check_tables()
    assert play.refusals == []
    play.check_due()
    play.check_settings(then)
    play.leave()
    assert not any(play.tables().values())
