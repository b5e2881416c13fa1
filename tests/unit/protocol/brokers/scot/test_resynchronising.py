"""A broker of a SCOT comes back, its links one by one, or covers: what is acknowledged when."""

from __future__ import annotations

import pytest
from attrs import evolve

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Effect, Send, Withdrawn
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.scot import BrokerLabel, ScotBroker
from gossamer.protocol.brokers.scot.memory import messages as m
from gossamer.protocol.content.filters import parse
from support.plain_index import PlainIndex
from support.scot_overlay import (
    ADA,
    BACKUP,
    BESIDE,
    CHAIN,
    HOME,
    SCOT,
    SETTINGS,
    THIRD,
    WANTED,
    a_backup,
    a_broker,
    a_notification,
    acknowledge,
    delivered,
    down,
    handed_back,
    numbered,
    refusal,
    sent_on,
    subscription,
    take,
    up,
    whether_safe,
    with_ada,
    without_links,
)

AROUND = HOME, "B(c,0)", "B(b,1)", "B(b,2)"


def hear(broker: ScotBroker, *names: str) -> list[Effect]:
    """Let neighbours tell that nothing stands; returns what follows from the last."""
    return [take(broker, name, m.Synchronise((), anew=False)) for name in names][-1]


def started_again(*, memory: bool) -> ScotBroker:
    broker = without_links("b", 0, CHAIN, incarnation=0 if memory else 1)
    if memory:
        up(broker, *AROUND)
        broker = ScotBroker.load(broker.dump(), broker.position, SETTINGS, new_index=PlainIndex)
    broker.handle(0, None, messages.Restarted())
    return broker


def backup_with_guest(*taken: Id) -> ScotBroker:
    backup = a_backup()
    down(backup, HOME)
    backup.handle(0, ADA, messages.Attach())
    backup.handle(0, ADA, messages.ClientAcknowledge(taken))
    return backup


def test_what_came_to_a_broker_since_it_is_back_does_not_count_as_taken_by_its_guest() -> None:
    home, backup = with_ada(a_broker()), backup_with_guest(Id("far", 1))
    take(home, BESIDE, *(m.Numbered(number, a_notification(number)) for number in (1, 2)))
    effects = take(home, BACKUP, handed_back(up(backup, HOME)))
    withdrawn = [one for one in effects if isinstance(one, Withdrawn)]
    assert withdrawn == [Withdrawn("ada", (Id("far", 1),))]
    assert home.take_over_memory is not None
    assert list(home.take_over_memory.unacknowledged["ada"]) == [Id("far", 2)]
    assert delivered(take(home, BESIDE, m.Numbered(3, a_notification(1)))) == []


def test_a_backup_that_is_started_again_remembers_what_its_guest_took() -> None:
    backup = backup_with_guest(Id("far", 1), Id("unknown", 1))
    again = ScotBroker.load(backup.dump(), backup.position, SETTINGS, new_index=PlainIndex)
    again.handle(0, None, messages.Restarted())
    sent = [one for to, one in sent_on(up(again, HOME)) if to == HOME]
    handed = next(one for one in sent if isinstance(one, m.HandBack))
    assert handed.taken == (Id("far", 1),)
    # Clients are handed back before it is told what stands.
    kinds = [type(one) for one in sent]
    assert kinds.index(m.HandBack) < kinds.index(m.Synchronise)


def test_what_comes_to_the_backup_late_goes_on_to_the_broker_that_is_back() -> None:
    backup, late = a_backup(), m.ProxyNotification(a_notification(3), 0)
    down(backup, HOME)
    up(backup, HOME)
    effects = take(backup, THIRD, m.Numbered(5, late))
    assert sent_on(effects) == [(HOME, late)]
    assert acknowledge(backup, effects) == [Send(THIRD, m.Acknowledge(5, True))]
    # It is kept for a broker that dies again before it acknowledges that.
    backup = a_backup()
    down(backup, HOME)
    up(backup, HOME)
    take(backup, THIRD, m.Numbered(5, late))
    assert Send(THIRD, m.Acknowledge(5, True)) in down(backup, HOME)
    assert delivered(backup.handle(0, ADA, messages.Attach())) == [1, 3]


def test_a_broker_that_is_back_gives_what_went_to_its_backup_to_its_clients_alone() -> None:
    home = with_ada(a_broker())
    take(home, BESIDE, subscription(1, BESIDE))
    effects = take(home, BACKUP, m.Numbered(5, m.ProxyNotification(a_notification(3), 0)))
    assert delivered(effects) == [3]
    assert list(numbered(effects)) == [(BACKUP, "UnacknowledgedDelivery")]
    wrong = m.ProxyNotification(a_notification(3), 3)
    assert "expected one from 0 to 2" in str(refusal(take(home, BACKUP, m.Numbered(6, wrong))))


@pytest.mark.parametrize("memory", [True, False])
def test_what_comes_before_a_broker_knows_all_is_acknowledged_then(memory: bool) -> None:
    broker = started_again(memory=memory)
    up(broker, HOME)
    hear(broker, HOME)
    assert take(broker, HOME, m.Numbered(7, a_notification())) == []
    up(broker, "B(c,0)", "B(b,1)", "B(b,2)")
    hear(broker, "B(b,1)", "B(b,2)")
    told = subscription(1, "B(c,0)")
    effects = take(broker, "B(c,0)", m.Synchronise((told,), anew=False))
    assert ("B(c,0)", a_notification()) in sent_on(effects)
    assert Send(HOME, m.Acknowledge(7, True)) in acknowledge(broker, effects)
    later = take(broker, HOME, m.Numbered(8, a_notification(2)))
    assert sent_on(later) == [("B(c,0)", a_notification(2))]


def test_a_broker_that_nobody_remembers_waits_for_nobody_else() -> None:
    broker = started_again(memory=False)
    broker.handle(0, ADA, messages.Attach())
    assert whether_safe(broker.handle(0, ADA, messages.Publish({"x": 1}))) == []
    up(broker, HOME)
    assert whether_safe(take(broker, HOME, m.Synchronise((), anew=True))) == [True]


@pytest.mark.parametrize("comes", [True, False])
def test_a_broker_that_joins_subscribers_waits_until_all_have_told(comes: bool) -> None:
    broker = started_again(memory=False)
    broker.handle(0, ADA, messages.Attach())
    broker.handle(0, ADA, messages.Publish({"x": 1}))
    up(broker, *AROUND)
    effects = take(broker, HOME, m.Synchronise((subscription(),), anew=True))
    for name in ("B(c,0)", "B(b,1)"):
        assert whether_safe(effects) == []
        effects = take(broker, name, m.Synchronise((), anew=True))
    assert whether_safe(effects) == []
    if comes:
        effects = take(broker, "B(b,2)", m.Synchronise((), anew=True))
    else:
        effects = broker.handle(0, None, m.WaitedEnough())
    assert (HOME, "Notification") in numbered(effects)
    assert whether_safe(acknowledge(broker, effects)) == [comes]


@pytest.mark.parametrize("memory", [True, False])
def test_who_does_not_come_is_not_waited_for_for_ever(memory: bool) -> None:
    broker = started_again(memory=memory)
    up(broker, HOME)
    hear(broker, HOME)
    take(broker, HOME, m.Numbered(7, a_notification()))
    effects = broker.handle(0, None, m.WaitedEnough())
    assert effects == [Send(HOME, m.Acknowledge(7, memory))]
    later = take(broker, HOME, m.Numbered(8, a_notification(2)))
    assert later == [Send(HOME, m.Acknowledge(8, memory))]


def test_a_subscription_that_comes_again_is_acknowledged_when_it_is_known_everywhere() -> None:
    broker = a_broker()
    wanted = subscription(1, BESIDE)
    take(broker, BESIDE, m.Numbered(1, wanted))
    effects = take(broker, BESIDE, m.Numbered(2, wanted))
    assert sent_on(effects) == [(BACKUP, wanted), (THIRD, wanted)]
    assert acknowledge(broker, effects) == [Send(BESIDE, m.Acknowledge(2, True))]


COVERED = evolve(SETTINGS, covering=True)
NARROW = parse("x > 5")
EVERYWHERE = {BACKUP, BESIDE, THIRD}


def covering_broker(broker: ScotBroker | None = None) -> ScotBroker:
    broker = broker or without_links("a", 0, settings=COVERED)
    up(broker, *sorted(EVERYWHERE))
    broker.handle(0, ADA, messages.Attach())
    return broker


def loaded(dump: dict[str, object]) -> ScotBroker:
    position = SCOT.position(BrokerLabel("a", 0))
    return ScotBroker.load(dump, position, COVERED, new_index=PlainIndex)


def told(effects: list[Effect], kind: str = "Subscription") -> set[str]:
    return {name for name, one in sent_on(effects) if type(one).__name__ == kind}


def test_what_is_under_way_covers_nothing_and_what_is_acknowledged_does() -> None:
    broker = covering_broker()
    wide = broker.handle(0, ADA, messages.Subscribe("wide", WANTED))
    # Nor does it when the broker has died meanwhile.
    again = covering_broker(loaded(broker.dump()))
    for one in (broker, again):
        assert told(one.handle(0, ADA, messages.Subscribe("one", NARROW))) == EVERYWHERE
    acknowledge(broker, wide)
    effects = broker.handle(0, ADA, messages.Subscribe("two", NARROW))
    assert told(effects) == set()
    assert whether_safe(acknowledge(broker, effects)) == [True]


def test_what_may_not_have_reached_everybody_covers_nothing() -> None:
    broker = covering_broker()
    acknowledge(broker, broker.handle(0, ADA, messages.Subscribe("wide", WANTED)), safe=False)
    dump = broker.dump()
    again = loaded(dump)
    assert again.dump() == dump
    for one in (broker, covering_broker(again)):
        assert told(one.handle(0, ADA, messages.Subscribe("narrow", NARROW))) == EVERYWHERE


def test_an_end_is_sent_once_what_was_covered_is_acknowledged() -> None:
    broker = covering_broker()
    for label, wanted in (("wide", WANTED), ("narrow", NARROW)):
        acknowledge(broker, broker.handle(0, ADA, messages.Subscribe(label, wanted)))
    first = broker.handle(0, ADA, messages.Unsubscribe("wide"))
    assert (told(first), told(first, "Unsubscription")) == (EVERYWHERE, set())
    then = acknowledge(broker, first)
    assert told(then, "Unsubscription") == EVERYWHERE
    assert whether_safe(then) == []
    assert whether_safe(acknowledge(broker, then)) == [True]
