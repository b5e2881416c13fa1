"""Covering where clients are taken over: what keeps a subscription back, and how its end waits."""

from __future__ import annotations

import random

from attrs import evolve

from gossamer.protocol.brokers.core.effects import Effect
from gossamer.protocol.brokers.core.messages import Attach, Subscribe, Unsubscribe
from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot, ScotBroker
from gossamer.protocol.content.filters import parse
from support.plain_index import PlainIndex
from support.scot_steps import (
    ADA,
    BACKUP,
    BESIDE,
    SCOT,
    SETTINGS,
    THIRD,
    acknowledge,
    sent_on,
    up,
    whether_safe,
    without_links,
)
from support.scot_take_over import TakeOverPlay

COVERED = evolve(SETTINGS, covering=True)
NARROW = parse("x > 5")
EVERYWHERE = {BACKUP, BESIDE, THIRD}


def covering_broker(broker: ScotBroker | None = None) -> ScotBroker:
    """A broker that covers, with all its links up and ada attached."""
    broker = broker or without_links("a", 0, settings=COVERED)
    up(broker, *sorted(EVERYWHERE))
    broker.handle(0, ADA, Attach())
    return broker


def loaded(dump: dict[str, object]) -> ScotBroker:
    """A broker that goes on from a dump, with no link yet."""
    position = SCOT.position(BrokerLabel("a", 0))
    return ScotBroker.load(dump, position, COVERED, new_index=PlainIndex)


def told(effects: list[Effect], kind: str = "Subscription") -> set[str]:
    """Who is sent messages of a kind."""
    return {name for name, one in sent_on(effects) if type(one).__name__ == kind}


def test_what_is_under_way_covers_nothing_and_what_is_acknowledged_does() -> None:
    broker = covering_broker()
    wide = broker.handle(0, ADA, Subscribe("wide", parse("present(x)")))
    assert told(broker.handle(0, ADA, Subscribe("one", NARROW))) == EVERYWHERE
    acknowledge(broker, wide)
    effects = broker.handle(0, ADA, Subscribe("two", NARROW))
    assert told(effects) == set()
    assert whether_safe(acknowledge(broker, effects)) == [True]


def test_what_may_not_have_reached_everybody_covers_nothing_not_even_after_a_restart() -> None:
    for safe, restarted in ((False, False), (False, True), (True, False)):
        broker = covering_broker()
        wide = broker.handle(0, ADA, Subscribe("wide", parse("present(x)")))
        acknowledge(broker, wide, safe=safe)
        if restarted:
            dump = broker.dump()
            broker = loaded(dump)
            assert broker.dump() == dump
            broker = covering_broker(broker)
        effects = broker.handle(0, ADA, Subscribe("narrow", NARROW))
        assert told(effects) == (set() if safe else EVERYWHERE)


def test_what_was_under_way_when_a_broker_died_covers_nothing() -> None:
    broker = covering_broker()
    broker.handle(0, ADA, Subscribe("wide", parse("present(x)")))
    again = covering_broker(loaded(broker.dump()))
    assert told(again.handle(0, ADA, Subscribe("narrow", NARROW))) == EVERYWHERE


def test_an_end_is_sent_once_what_was_covered_is_acknowledged() -> None:
    broker = covering_broker()
    acknowledge(broker, broker.handle(0, ADA, Subscribe("wide", parse("present(x)"))))
    acknowledge(broker, broker.handle(0, ADA, Subscribe("narrow", NARROW)))
    first = broker.handle(0, ADA, Unsubscribe("wide"))
    assert told(first) == EVERYWHERE
    assert told(first, "Unsubscription") == set()
    then = acknowledge(broker, first)
    assert told(then, "Unsubscription") == EVERYWHERE
    assert whether_safe(then) == []
    assert whether_safe(acknowledge(broker, then)) == [True]


def test_covering_saves_messages_and_entries_while_clients_are_taken_over() -> None:
    sent, entries = [], []
    for covering in (False, True):
        draw = random.Random(1)
        scot = Scot(Factor.path("abcde"), Factor.complete(3))
        play = TakeOverPlay(draw, scot=scot, backups=2, covering=covering)
        play.settle()
        for number in range(60):
            low = draw.randrange(9)
            text = f"x >= {low} and x < {draw.randrange(low + 1, 11)}"
            play.subscribe(f"S{number}", draw.choice(sorted(play.brokers)), text)
            play.settle()
        assert all(one.safe for one in play.subscribers.values())
        play.check_tables()
        sent.append(sum(one.counters.sent["Subscription"] for one in play.brokers.values()))
        entries.append(sum(one.table_size for one in play.brokers.values()))
    assert sent[1] < 0.8 * sent[0]
    assert entries[1] < 0.8 * entries[0]
