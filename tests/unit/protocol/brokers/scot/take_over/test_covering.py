"""Covering where clients are taken over: what keeps a subscription back, and how its end waits."""

from __future__ import annotations

import random

from attrs import evolve

from gossamer.protocol.brokers.core.effects import Effect, Settled
from gossamer.protocol.brokers.core.messages import Attach, Subscribe, Unsubscribe
from gossamer.protocol.brokers.scot import BrokerLabel, Factor, NeighbourUp, Scot, ScotBroker
from gossamer.protocol.content.filters import parse
from support.plain_index import PlainIndex
from support.scot_steps import ADA, BACKUP, BESIDE, SCOT, SETTINGS, THIRD, acknowledge, sent_on
from support.scot_take_over import TakeOverPlay

COVERED = evolve(SETTINGS, covering=True)
NARROW = parse("x > 5")
EVERYWHERE = {BACKUP, BESIDE, THIRD}
POSITION = SCOT.position(BrokerLabel("a", 0))


def a_broker(broker: ScotBroker | None = None) -> ScotBroker:
    """A broker that covers, with all its links up and ada attached."""
    broker = broker or ScotBroker("B(a,0)", POSITION, COVERED, new_index=PlainIndex)
    place = POSITION.label
    for label in (*SCOT.primary_neighbours(place), *SCOT.secondary_neighbours(place)):
        broker.handle(0, None, NeighbourUp(str(label), label, synchronise=True))
    broker.handle(0, ADA, Attach())
    return broker


def told(effects: list[Effect], kind: str) -> set[str]:
    return {name for name, one in sent_on(effects) if type(one).__name__ == kind}


def test_what_is_under_way_covers_nothing_and_what_is_acknowledged_does() -> None:
    broker = a_broker()
    wide = broker.handle(0, ADA, Subscribe("wide", parse("present(x)")))
    assert told(broker.handle(0, ADA, Subscribe("one", NARROW)), "Subscription") == EVERYWHERE
    acknowledge(broker, wide)
    effects = broker.handle(0, ADA, Subscribe("two", NARROW))
    assert told(effects, "Subscription") == set()
    (settled,) = (one for one in acknowledge(broker, effects) if isinstance(one, Settled))
    assert settled.safe


def test_what_may_not_have_reached_everybody_covers_nothing_not_even_after_a_restart() -> None:
    for safe, restarted in ((False, False), (False, True), (True, False)):
        broker = a_broker()
        wide = broker.handle(0, ADA, Subscribe("wide", parse("present(x)")))
        acknowledge(broker, wide, safe=safe)
        if restarted:
            dump = broker.dump()
            broker = ScotBroker.load(dump, POSITION, COVERED, new_index=PlainIndex)
            assert broker.dump() == dump
            broker = a_broker(broker)
        effects = broker.handle(0, ADA, Subscribe("narrow", NARROW))
        assert told(effects, "Subscription") == (set() if safe else EVERYWHERE)


def test_what_was_under_way_when_a_broker_died_covers_nothing() -> None:
    broker = a_broker()
    broker.handle(0, ADA, Subscribe("wide", parse("present(x)")))
    again = a_broker(ScotBroker.load(broker.dump(), POSITION, COVERED, new_index=PlainIndex))
    effects = again.handle(0, ADA, Subscribe("narrow", NARROW))
    assert told(effects, "Subscription") == EVERYWHERE


def test_an_end_is_sent_once_what_was_covered_is_acknowledged() -> None:
    broker = a_broker()
    acknowledge(broker, broker.handle(0, ADA, Subscribe("wide", parse("present(x)"))))
    acknowledge(broker, broker.handle(0, ADA, Subscribe("narrow", NARROW)))
    first = broker.handle(0, ADA, Unsubscribe("wide"))
    assert told(first, "Subscription") == EVERYWHERE
    assert told(first, "Unsubscription") == set()
    then = acknowledge(broker, first)
    assert told(then, "Unsubscription") == EVERYWHERE
    assert not any(isinstance(one, Settled) for one in then)
    (settled,) = (one for one in acknowledge(broker, then) if isinstance(one, Settled))
    assert settled.safe


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
