"""Two of 15 SCOT brokers die at once, or one and a link: nothing that was acknowledged is lost.

`GOSSAMER_FULL_FAULTS=1` plays every case twenty times.
"""

from __future__ import annotations

import itertools
import os
import random

import pytest

from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot
from support.scot_clients import Published
from support.scot_take_over import TakeOverPlay

ROW = Scot(Factor.path("abcde"), Factor.complete(3))
NAMES = sorted(map(str, ROW.brokers))
LINKS = sorted((str(one), str(other)) for one, other in ROW.links())
SEEDS = 20 if os.environ.get("GOSSAMER_FULL_FAULTS") == "1" else 1
TEXTS = ("present(x)", "x > 5", "x < 3")


def of_fifteen(draw: random.Random, covering: bool = False) -> TakeOverPlay:
    """Five regions in a row, three clusters, two backups, and a subscriber at each broker."""
    play = TakeOverPlay(draw, scot=ROW, backups=2, covering=covering)
    play.settle()
    for name in NAMES:
        play.subscribe(f"S at {name}", name, draw.choice(TEXTS))
    play.settle()
    assert all(one.safe for one in play.subscribers.values())
    return play


def burst(play: TakeOverPlay, draw: random.Random, count: int) -> list[Published]:
    """Publish at living brokers, while things happen and clients take what they got."""
    made = []
    for _ in range(count):
        alive = sorted(play.brokers.keys() - play.dead.keys())
        made.append(play.publish(draw.choice(alive), x=draw.randrange(10)))
        for _ in range(draw.randrange(12)):
            play.step()
        if draw.random() < 0.3:
            play.take(play.subscribers[f"S at {draw.choice(NAMES)}"])
    return made


def move_clients_of_the_dead(play: TakeOverPlay) -> None:
    """Clients go to the first backup of their broker that lives."""
    for one in play.subscribers.values():
        label = BrokerLabel.parse(one.at[-1])
        if one.at[-1] in play.dead:
            others = (label._replace(cluster=(label.cluster + i) % 3) for i in (1, 2))
            living = [str(other) for other in others if str(other) not in play.dead]
            play.move(one, living[0])


def go_on(play: TakeOverPlay, draw: random.Random) -> None:
    """Publish before anybody knows of the failures, and after; then look what was lost."""
    burst(play, draw, draw.randrange(4))
    play.settle()
    move_clients_of_the_dead(play)
    burst(play, draw, 4)
    play.settle()
    assert play.refusals == []
    for one in play.subscribers.values():
        due = {made.id for made in play.published if made.safe and one.wanted.matches(made.values)}
        assert due <= one.ids, f"{one.name} at {one.at} misses {sorted(due - one.ids)}"
        assert not one.got or max(one.got.values()) == 1
    for made in play.published:
        assert made.safe is not None or made.broker in play.dead, f"nobody knows of {made}"


@pytest.mark.slow
@pytest.mark.parametrize("settles", [False, True], ids=["at once", "one after the other"])
@pytest.mark.parametrize("covering", [False, True], ids=["", "covering"])
def test_nothing_acknowledged_is_lost_with_any_two_brokers(settles: bool, covering: bool) -> None:
    for one, other in itertools.permutations(NAMES, 2):
        for seed in range(SEEDS):
            draw = random.Random(f"{one} {other} {settles} {seed}")
            play = of_fifteen(draw, covering)
            play.congest()
            burst(play, draw, draw.randrange(6))
            play.kill(one)
            if settles:
                play.settle()
            play.kill(other)
            try:
                go_on(play, draw)
            except AssertionError as error:
                raise AssertionError(f"{one} and {other}, seed {seed}: {error}") from error


@pytest.mark.slow
@pytest.mark.parametrize("covering", [False, True], ids=["", "covering"])
def test_nothing_acknowledged_is_lost_with_a_broker_and_a_link(covering: bool) -> None:
    cases = [(name, link) for name in NAMES for link in LINKS if name not in link]
    chosen = cases if SEEDS > 1 else random.Random(1).sample(cases, 150)
    for name, link in chosen:
        for seed in range(SEEDS):
            draw = random.Random(f"{name} {link} {seed}")
            play = of_fifteen(draw, covering)
            burst(play, draw, draw.randrange(6))
            play.kill(name)
            play.cut(*link)
            try:
                go_on(play, draw)
            except AssertionError as error:
                raise AssertionError(f"{name} and {link}, seed {seed}: {error}") from error


def test_with_one_backup_two_brokers_of_a_region_take_what_they_kept_with_them() -> None:
    """The promise takes as many backups as brokers fail, and the other tests would see a loss."""
    play = TakeOverPlay(random.Random(1), scot=ROW, backups=1)
    play.settle()
    play.subscribe("S", "B(c,0)", "present(x)")
    play.settle()
    made = play.publish("B(a,0)", x=1)
    play.settle()
    assert made.safe
    for name in ("B(c,0)", "B(c,1)"):
        play.kill(name)
    play.settle()
    play.move(play.subscribers["S"], "B(c,2)")
    play.settle()
    assert made.id not in play.subscribers["S"].ids


def test_nearly_every_publication_finds_its_ways_once_failures_are_known() -> None:
    for pair in (("B(b,0)", "B(b,1)"), ("B(a,0)", "B(b,1)"), ("B(c,0)", "B(d,0)")):
        play = of_fifteen(random.Random(3))
        for name in pair:
            play.kill(name)
        play.settle()
        move_clients_of_the_dead(play)
        for name in sorted(play.brokers.keys() - play.dead.keys()):
            made = play.publish(name, x=1)
            play.settle()
            assert made.safe, f"{pair}: what {name} publishes is not safe"


@pytest.mark.parametrize("memory", [True, False])
def test_what_a_later_backup_kept_comes_back_although_the_first_is_back_before(
    memory: bool,
) -> None:
    play = TakeOverPlay(random.Random(2), scot=ROW, backups=2)
    play.settle()
    one = play.subscribe("S", "B(c,0)", "present(x)")
    play.settle()
    for name in ("B(c,0)", "B(c,1)"):
        play.kill(name)
    play.settle()
    made = play.publish("B(a,2)", x=1)
    play.settle()
    assert made.safe
    for name in ("B(c,1)", "B(c,0)"):
        play.revive(name, memory=memory)
        play.settle()
    assert made.id in one.ids
    assert max(one.got.values()) == 1
