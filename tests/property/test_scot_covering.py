"""Covering within clusters changes no delivery, nor do restarts with other settings lose any."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.core.effects import Awaits, Effect
from gossamer.protocol.brokers.core.messages import Detach, Id
from gossamer.protocol.brokers.scot import Factor, Scot, ScotSettings
from support.draws import one_in
from support.scot_overlay import ScotOverlay, random_tree
from support.scot_take_over import Published, Subscriber, TakeOverPlay

SEEDS = st.integers(0, 2**32)
DRAWS = st.builds(random.Random, SEEDS)
HIGHEST = 5
ROUTINGS = ("static", "dynamic")
Held = dict[str, set[str]]
"""By client, what it is subscribed to."""


def random_scot(draw: random.Random) -> Scot:
    return Scot(random_tree(draw.randrange(1, 6), draw), Factor.complete(draw.randrange(1, 4)))


def random_filter(draw: random.Random) -> str:
    low = draw.randrange(HIGHEST)
    high = draw.randrange(low + 1, HIGHEST + 1)
    return f"x >= {low} and x < {high}" if draw.random() < 0.5 else f"x < {high}"


def change(overlay: ScotOverlay, draw: random.Random, held: Held) -> None:
    name = f"S{draw.randrange(4)}"
    host = overlay.home.get(name) or draw.choice(sorted(overlay.brokers))
    text = random_filter(draw)
    mine = held.setdefault(name, set())
    if mine and draw.random() < 0.5:
        gone = draw.choice(sorted(mine))
        mine.discard(gone)
        overlay.unsubscribe(name, gone)
    elif text not in mine:
        mine.add(text)
        overlay.subscribe(name, host, text)


def play(scot: Scot, chosen: ScotSettings, seed: int) -> ScotOverlay:
    """Changes one upon the other, then a publication of each value once all is settled, thrice."""
    draw, between = random.Random(seed), random.Random(seed + 1)
    overlay = ScotOverlay(scot, chosen, seed=seed)
    held: Held = {}
    for _ in range(3):
        for _ in range(8):
            change(overlay, draw, held)
            overlay.steps(between.randrange(12))
        overlay.settle()
        for value in range(HIGHEST):
            overlay.publish_and_settle(draw.choice(sorted(overlay.brokers)), x=value)
    assert overlay.refusals == []
    assert overlay.total("lost") == overlay.total("stale") == overlay.total("duplicates") == 0
    return overlay


@pytest.mark.parametrize("routing", ROUTINGS)
@one_in(2)
@given(draw=DRAWS)
def test_covering_changes_no_delivery_and_saves_entries(routing: str, draw: random.Random) -> None:
    scot, seed = random_scot(draw), draw.randrange(10**6)
    plain = play(scot, ScotSettings(routing=routing), seed)
    covering = play(scot, ScotSettings(routing=routing, covering=True), seed)
    found = [Counter((one.client, one.id) for one in made.deliveries) for made in (plain, covering)]
    assert found[0] == found[1]
    assert max(found[0].values(), default=1) == 1
    entries = [sum(map(len, overlay.tables().values())) for overlay in (plain, covering)]
    assert entries[1] <= entries[0]
    assert len(covering.notifications()) == len(plain.notifications())


def check_steady(overlay: ScotOverlay, subscribers: int, published: int) -> None:
    """Nobody got anything twice, and those who stayed subscribed got all."""
    got = Counter((one.client, one.id) for one in overlay.deliveries)
    assert max(got.values(), default=1) == 1
    steady = Counter(client for client, _ in got if client.startswith("steady"))
    assert steady == Counter({f"steady {i}": published for i in range(subscribers) if published})


@pytest.mark.parametrize("routing", ROUTINGS)
@one_in(2)
@given(draw=DRAWS)
def test_whoever_stays_misses_nothing_while_others_come(routing: str, draw: random.Random) -> None:
    """What covers a subscription is taken back while publications are under way."""
    overlay = ScotOverlay(
        random_scot(draw), ScotSettings(routing=routing, covering=True), draw.randrange(1000)
    )
    for i in range(3):
        overlay.subscribe(f"steady {i}", draw.choice(sorted(overlay.brokers)), "x >= 1 and x < 3")
    overlay.settle()
    held: Held = {}
    published = 0
    for _ in range(20):
        change(overlay, draw, held)
        overlay.steps(draw.randrange(12))
        if draw.random() < 0.5:
            overlay.publish(draw.choice(sorted(overlay.brokers)), x=draw.choice([1, 2]))
            published += 1
    overlay.settle()
    check_steady(overlay, 3, published)


@pytest.mark.parametrize("covering", [False, True])
@one_in(2)
@given(draw=DRAWS)
def test_brokers_restarted_in_turn_may_cover_or_not(covering: bool, draw: random.Random) -> None:
    overlay = ScotOverlay(
        random_scot(draw), ScotSettings(covering=not covering), draw.randrange(1000)
    )
    for i in range(2):
        overlay.subscribe(f"steady {i}", draw.choice(sorted(overlay.brokers)), "x >= 1 and x < 3")
    held: Held = {}
    for _ in range(8):
        change(overlay, draw, held)
    overlay.settle()
    published = 0
    for name in draw.sample(sorted(overlay.brokers), len(overlay.brokers)):
        overlay.restart(name, ScotSettings(covering=covering))
        change(overlay, draw, held)
        overlay.settle()
        overlay.publish_and_settle(draw.choice(sorted(overlay.brokers)), x=draw.choice([1, 2]))
        published += 1
    check_steady(overlay, 2, published)
    hidden = [broker.dump()["covered"] for broker in overlay.brokers.values()]
    assert covering or not any(hidden)


def test_a_narrower_subscription_stays_where_a_wider_one_from_there_is_known() -> None:
    overlay = ScotOverlay(Scot(Factor.path("abc"), Factor.complete(2)), ScotSettings(covering=True))
    overlay.subscribe_and_settle("wide", "B(a,0)", "x < 5")
    overlay.sent.clear()
    overlay.subscribe_and_settle("narrow", "B(a,0)", "x < 3")
    assert overlay.sent == []
    overlay.unsubscribe("wide", "x < 5")
    overlay.settle()
    assert [len(table) for table in overlay.tables().values()] == [1] * 6
    kinds = [type(sent.message).__name__ for sent in overlay.sent if sent.one == "B(a,0)"]
    assert kinds == ["Subscription"] * 2 + ["Unsubscription"] * 2, "no gap"
    # From another direction a wider subscription covers nothing.
    overlay = ScotOverlay(Scot(Factor.path("abc"), Factor.complete(1)), ScotSettings(covering=True))
    overlay.subscribe_and_settle("wide", "B(c,0)", "x < 5")
    overlay.subscribe_and_settle("narrow", "B(a,0)", "x < 3")
    assert [len(table) for table in overlay.tables().values()] == [2, 2, 2]


# Brokers are restarted one after another, and take over clients from then on, or not.


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


class RollingPlay(TakeOverPlay):
    """All brokers of a SCOT, of which some may take over clients and others not.

    There are ``most`` regions at most, and at most four clusters. What clients had taken at a
    broker when it was stopped is in ``taken``.
    """

    def __init__(self, draw: random.Random, settings: ScotSettings, most: int) -> None:
        regions = random_tree(draw.randrange(2, most + 1), draw)
        clusters = Factor.complete(draw.randrange(2, min(most, 4) + 1))
        super().__init__(draw, scot=Scot(regions, clusters), settings=settings)
        self.taken: set[tuple[str, Id]] = set()

    def _note(self, broker: str, effects: list[Effect], what: Published | Subscriber) -> None:
        waits = any(isinstance(effect, Awaits) for effect in effects)
        assert waits is self.brokers[broker].settings.take_over
        if waits:
            super()._note(broker, effects, what)

    def restart(self, broker: str, settings: ScotSettings, meanwhile: Callable[[], None]) -> None:
        self.taken |= self.kill(broker)
        meanwhile()
        self.draw.choice([self.notice, self.settle, self.step])()
        meanwhile()
        self.notice()
        self.settings = settings
        self.covers = self.covers or settings.covering
        self.revive(broker, memory=True, meanwhile=meanwhile)
        meanwhile()

    def quieten(self) -> None:
        """Let everything settle while every broker is there: then all that was asked is done."""
        assert not self.dead
        self.settle()
        for one in self.subscribers.values():
            one.safe = True

    def publish_in_peace(self) -> None:
        """Publish at every broker while nothing else happens: that has to reach everybody."""
        self.quieten()
        made = [self.publish(one, x=self.draw.randrange(10)) for one in sorted(self.brokers)]
        self.settle()
        for one in made:
            assert one.safe is not False, f"{one} is not safe"
            one.safe = True

    def check_in_the_end(self, settings: ScotSettings) -> None:
        """Every broker keeps what it would keep if it had always had these settings, and nothing
        of clients that have gone."""
        assert self.refusals == []
        self.check_due()
        for broker in self.brokers.values():
            memory = broker.take_over_memory
            assert memory is not None
            assert not memory.copies
            assert not memory.held
            assert broker.settings == settings
            if not settings.take_over:
                assert not memory.replicas
                assert not any(memory.unacknowledged.values())
        for name, broker in self.brokers.items():
            for session in broker.clients():
                self.tell(name, session.name, Detach())
        self.subscribers.clear()
        self.settle()
        assert not any(self.tables().values())


@pytest.mark.parametrize("most", [3, pytest.param(5, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("change", CHANGES)
@one_in(4)
@given(seed=SEEDS)
def test_nothing_is_lost_while_brokers_differ(change: str, most: int, seed: int) -> None:
    """And in the end tables are those of the new settings."""
    draw = random.Random(seed)
    first, then = (
        ScotSettings(routing=draw.choice(["static", "dynamic"]), **one)  # type: ignore[arg-type]
        for one in CHANGES[change]
    )
    play = RollingPlay(draw, first, most)
    meanwhile = draw.choice([play.publish_some, play.come_and_go])
    play.subscribe_some(draw.randrange(1, 7))
    play.publish_in_peace()
    for broker in draw.sample(sorted(play.brokers), len(play.brokers)):
        play.congest()
        play.restart(broker, then, lambda: meanwhile(draw.randrange(4)))
        play.publish_in_peace()
        play.check_tables()
    play.check_once([], play.taken)
    play.check_in_the_end(then)
