"""Two of 15 SCOT brokers die at once, or one and a link: nothing that was acknowledged is lost."""

from __future__ import annotations

import itertools
import random

import pytest

from gossamer.protocol.brokers.scot import Factor, Scot
from support.draws import Draws, few_or_many, named
from support.scot_take_over import TEXTS, TakeOverPlay

ROW = Scot(Factor.path("abcde"), Factor.complete(3))
NAMES = sorted(map(str, ROW.brokers))
LINKS = sorted((str(one), str(other)) for one, other in ROW.links())
PAIRS = random.Random(1).sample(list(itertools.permutations(NAMES, 2)), 15 * 14)
BESIDES = [(name, link) for name in NAMES for link in LINKS if name not in link]
random.Random(1).shuffle(BESIDES)
with_and_without_covering = pytest.mark.parametrize("covering", [False, True], ids=["", "covering"])


def of_fifteen(draw: random.Random, covering: bool = False) -> TakeOverPlay:
    """Five regions in a row, three clusters, two backups, and a subscriber at each broker."""
    play = TakeOverPlay(draw, scot=ROW, backups=2, covering=covering)
    play.settle()
    for name in NAMES:
        play.subscribe(f"S at {name}", name, draw.choice(TEXTS))
    play.settle()
    assert all(one.safe for one in play.subscribers.values())
    return play


def go_on(play: TakeOverPlay, draw: random.Random) -> None:
    """Publish before anybody knows of the failures, and after; then look what was lost."""
    play.publish_and_settle(draw.randrange(4))
    play.move_clients_of_the_dead()
    play.publish_and_settle(4)
    play.check_arrived()
    for made in play.published:
        assert made.safe is not None or made.broker in play.dead, f"nobody knows of {made}"


@few_or_many(12, len(PAIRS))
@pytest.mark.parametrize("settles", [False, True], ids=["at once", "one after the other"])
@with_and_without_covering
def test_nothing_is_lost_with_two_brokers(
    settles: bool, covering: bool, count: int, draws: Draws
) -> None:
    for number in draws.numbers(count):
        one, other = PAIRS[number % len(PAIRS)]
        draw = random.Random(f"{number} {settles}")
        play = of_fifteen(draw, covering)
        play.congest()
        play.publish_some(draw.randrange(6))
        play.kill(one)
        if settles:
            play.settle()
        play.kill(other)
        with named(f"{one} and {other}, number {number}"):
            go_on(play, draw)


@few_or_many(12, len(BESIDES))
@with_and_without_covering
def test_nothing_is_lost_with_a_broker_and_a_link(covering: bool, count: int, draws: Draws) -> None:
    for number in draws.numbers(count):
        name, link = BESIDES[number % len(BESIDES)]
        draw = random.Random(number)
        play = of_fifteen(draw, covering)
        play.publish_some(draw.randrange(6))
        play.kill(name)
        play.cut(*link)
        with named(f"{name} and {link}, number {number}"):
            go_on(play, draw)


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
        play.move_clients_of_the_dead()
        for name in play.alive:
            made = play.publish(name, x=1)
            play.settle()
            assert made.safe, f"{pair}: what {name} publishes is not safe"


@pytest.mark.parametrize("memory", [True, False])
def test_what_a_later_backup_kept_comes_back_after_the_first_is_back(memory: bool) -> None:
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
