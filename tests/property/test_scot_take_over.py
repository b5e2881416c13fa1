"""Any broker or link of a random SCOT fails at any step: nothing that was acknowledged is lost."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.scot import Factor, Scot, ScotSettings
from gossamer.protocol.kernel.errors import ConfigError
from support.draws import Draws, few_or_many, named, one_in
from support.scot_take_over import TEXTS, TakeOverPlay

SEEDS = st.integers(0, 2**32)
with_and_without_covering = pytest.mark.parametrize("covering", [False, True], ids=["", "covering"])


def with_subscribers(seed: int, covering: bool = False) -> tuple[random.Random, TakeOverPlay]:
    draw = random.Random(seed)
    play = TakeOverPlay(draw, covering=covering)
    play.settle()
    play.subscribe_some(draw.randrange(1, 7))
    assert all(one.safe for one in play.subscribers.values())
    return draw, play


@one_in(2)
@given(seed=SEEDS, covering=st.booleans())
def test_nothing_acknowledged_is_lost_with_any_broker(seed: int, covering: bool) -> None:
    draw, play = with_subscribers(seed, covering)
    before = play.tables()
    play.congest()
    play.publish_some(draw.randrange(6))
    play.kill(play.victim())
    play.publish_some(draw.randrange(4))
    if draw.random() < 0.5:
        play.move_clients_of_the_dead()
    play.publish_and_settle(draw.randrange(4))
    play.move_clients_of_the_dead()
    play.publish_and_settle(2)
    play.check()
    assert {**before, **play.tables()} == before


@one_in(2)
@given(seed=SEEDS, covering=st.booleans())
def test_nothing_is_lost_with_any_link(seed: int, covering: bool) -> None:
    draw, play = with_subscribers(seed, covering)
    before = play.tables()
    play.congest()
    play.publish_some(draw.randrange(6))
    one, other = map(str, draw.choice(sorted(play.scot.links())))
    play.cut(one, other)
    play.publish_and_settle(draw.randrange(6))
    play.check()
    assert play.tables() == before
    play.mend(one, other)
    play.publish_and_settle(3)
    play.check()
    assert play.tables() == before


@pytest.mark.parametrize("memory", [True, False])
@one_in(2)
@given(seed=SEEDS, covering=st.booleans())
def test_a_broker_that_is_back_gets_its_clients(memory: bool, seed: int, covering: bool) -> None:
    """Once others have taken over: what comes to nobody twice and is not lost, is tried below."""
    draw, play = with_subscribers(seed, covering)
    before = play.tables()
    dead = play.victim()
    play.kill(dead)
    play.publish_and_settle(draw.randrange(4))
    if draw.random() < 0.5:
        play.move_clients_of_the_dead()
    play.publish_and_settle(draw.randrange(3))
    play.revive(dead, memory=memory)
    play.settle()
    assert all(one.at[-1] == one.at[0] for one in play.subscribers.values())
    assert covering or play.tables() == before


@one_in(2)
@given(seed=SEEDS, covering=st.booleans())
def test_a_subscription_made_meanwhile_gets_all_once_it_is_safe(seed: int, covering: bool) -> None:
    draw, play = with_subscribers(seed, covering)
    hosts = draw.sample(sorted(play.brokers), 2)
    late = [play.subscribe(f"L{i}", host, "present(x)") for i, host in enumerate(hosts)]
    for _ in range(draw.randrange(30)):
        play.step()
    dead = play.victim()
    play.kill(dead)
    play.settle()
    first = len(play.published)
    play.move_clients_of_the_dead()
    play.publish_and_settle(4)
    for one in late:
        if one.safe or one.at[0] != dead:
            assert one.safe
            assert {made.id for made in play.published[first:]} <= one.ids


@pytest.mark.parametrize("memory", [True, False])
@one_in(2)
@given(seed=SEEDS, covering=st.booleans())
def test_all_subscriptions_are_known_in_the_end(memory: bool, seed: int, covering: bool) -> None:
    draw, play = with_subscribers(seed, covering)
    play.check_tables()
    if draw.random() < 0.5:
        dead = play.victim()
        # What it had not acknowledged is forgotten with it, and its clients come back by and by.
        but = "" if memory else dead
        play.come_and_go(draw.randrange(4), but)
        play.kill(dead)
        play.come_and_go(draw.randrange(4))
        notice_or_settle(play, draw)
        play.come_and_go(draw.randrange(4))
        notice_or_settle(play, draw)
        play.revive(dead, memory=memory, meanwhile=lambda: play.come_and_go(draw.randrange(4), but))
        play.come_and_go(draw.randrange(4), but)
    else:
        play.come_and_go(draw.randrange(4))
        link = [str(end) for end in draw.choice(sorted(play.scot.links()))]
        play.cut(*link)
        play.come_and_go(draw.randrange(4))
        if draw.random() < 0.5:
            play.settle()
            play.check_tables()
        play.come_and_go(draw.randrange(4))
        notice_or_settle(play, draw)
        play.mend(*link)
        play.come_and_go(draw.randrange(4))
    play.settle()
    play.check_tables()
    assert play.refusals == []


def notice_or_settle(play: TakeOverPlay, draw: random.Random) -> None:
    if draw.random() < 0.5:
        play.notice()
    else:
        play.settle()


@pytest.mark.parametrize("memory", [True, False])
@one_in(2)
@given(seed=SEEDS, covering=st.booleans())
# A later of two backups handed back what the first had delivered.
@example(seed=110694, covering=False)
def test_nothing_is_lost_while_a_broker_is_away(memory: bool, seed: int, covering: bool) -> None:
    draw, play = with_subscribers(seed, covering)
    play.congest()
    dead = play.victim()
    # Without memory what it had not acknowledged is forgotten with it.
    ask_and_publish(play, draw, "" if memory else dead)
    died, taken = len(play.published), play.kill(dead)
    ask_and_publish(play, draw)
    notice_or_settle(play, draw)
    if draw.random() < 0.5:
        play.move_clients_of_the_dead()
    ask_and_publish(play, draw)
    notice_or_settle(play, draw)
    play.revive(dead, memory=memory, meanwhile=lambda: ask_and_publish(play, draw))
    ask_and_publish(play, draw)
    check_in_the_end(play, dead, died, taken)
    lost = [made for made in play.published if not made.safe]
    assert all(made.broker == dead and made in play.published[:died] for made in lost)


def check_in_the_end(play: TakeOverPlay, dead: str, died: int, taken: set[tuple[str, Id]]) -> None:
    """Nothing is lost or comes twice but what a broker had published when it ``died``."""
    play.settle()
    assert play.refusals == []
    for made in play.published[:died]:
        made.safe = bool(made.safe) if made.broker == dead else made.safe
    play.check_due()
    play.check_once(play.published[died:], taken)
    play.check_tables()


def ask_and_publish(play: TakeOverPlay, draw: random.Random, but: str = "") -> None:
    for _ in range(draw.randrange(4)):
        host = draw.choice(play.alive)
        if draw.random() < 0.3 and host != but:
            play.subscribe(f"C{draw.getrandbits(40)}", host, draw.choice(TEXTS))
        play.publish_some(1)


@pytest.mark.parametrize("memory", [True, False])
@one_in(2)
@given(seed=SEEDS)
@example(seed=25)  # what covered a subscription was still under way
@example(seed=491)
def test_who_is_covered_misses_nothing_while_brokers_fail(memory: bool, seed: int) -> None:
    draw, play = with_subscribers(seed, covering=True)
    dead = play.victim()
    # Without memory what it had not acknowledged is forgotten with it.
    but = "" if memory else dead
    cover_and_publish(play, draw, but)
    link = [str(end) for end in draw.choice(sorted(play.scot.links()))]
    fails = draw.random() < 0.5
    died, taken = len(play.published), play.kill(dead) if fails else set()
    if not fails:
        play.cut(*link)
    cover_and_publish(play, draw)
    notice_or_settle(play, draw)
    cover_and_publish(play, draw)
    notice_or_settle(play, draw)
    if fails:
        play.revive(dead, memory=memory, meanwhile=lambda: cover_and_publish(play, draw, but))
    else:
        play.mend(*link)
    cover_and_publish(play, draw)
    check_in_the_end(play, dead if fails else "", died, taken)
    play.check_empty()


def cover_and_publish(play: TakeOverPlay, draw: random.Random, but: str = "") -> None:
    """Wide subscriptions of living brokers but one begin and end, and somebody publishes."""
    for _ in range(draw.randrange(5)):
        hosts = [name for name in play.alive if name != but]
        asked = play.subscribers.values()
        wide = [one for one in asked if one.name[0] == "W" and one.at[-1] in hosts]
        if wide and draw.random() < 0.6:
            play.unsubscribe(draw.choice(wide))
        else:
            text = draw.choice(["present(x)", "x >= 0", "x < 5"])
            play.subscribe(f"W{draw.getrandbits(40)}", draw.choice(hosts), text)
        for _ in range(draw.choice([0, 0, draw.randrange(30)])):
            play.step()
        play.publish(draw.choice(play.alive), x=draw.randrange(10))
        play.step_some(6)


def test_taking_over_rests_on_going_around_failures() -> None:
    with pytest.raises(ConfigError, match="around_failures with static or dynamic routing"):
        ScotSettings(take_over=True)
    with pytest.raises(ConfigError, match="take_over"):
        ScotSettings(routing="bid", around_failures=True, take_over=True)


# Two of 15 brokers die at once, or one and a link.


ROW = Scot(Factor.path("abcde"), Factor.complete(3))
NAMES = sorted(map(str, ROW.brokers))
LINKS = sorted((str(one), str(other)) for one, other in ROW.links())
PAIRS = random.Random(1).sample(list(itertools.permutations(NAMES, 2)), 15 * 14)
BESIDES = [(name, link) for name in NAMES for link in LINKS if name not in link]
random.Random(1).shuffle(BESIDES)


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
def test_two_brokers_lose_nothing(settles: bool, covering: bool, count: int, draws: Draws) -> None:
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
