"""Brokers of a SCOT are restarted one after another, and take over clients from then on, or not."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.core.effects import Awaits, Effect
from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.brokers.core.messages import Detach
from gossamer.protocol.brokers.scot import Factor, Scot, ScotSettings
from support.draws import one_in
from support.scot_overlay import random_tree
from support.scot_take_over import Published, Subscriber, TakeOverPlay

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
        """Stop a broker and start it with other settings; `meanwhile` happens again and again."""
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
