"""A broker of a SCOT comes back, its links one by one: what is acknowledged when, step by step."""

from __future__ import annotations

import pytest

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Deliver, Effect, Refuse, Send, Settled, Withdrawn
from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.scot import BrokerLabel, ScotBroker
from gossamer.protocol.brokers.scot.memory import messages as m
from support.plain_index import PlainIndex
from support.scot_steps import (
    ADA,
    BACKUP,
    BESIDE,
    CHAIN,
    SETTINGS,
    THIRD,
    WANTED,
    a_backup,
    a_broker,
    a_notification,
    acknowledge,
    numbered,
    sent_on,
    up,
    vector,
    with_ada,
)

HOME = "B(a,0)"
TOLD = m.Synchronise((), anew=False)


def delivered(effects: list[Effect]) -> list[int]:
    return [one.publication.id.number for one in effects if isinstance(one, Deliver)]


def hear(broker: ScotBroker, *names: str) -> list[Effect]:
    """Let neighbours tell that nothing stands; returns what follows from the last."""
    effects: list[Effect] = []
    for name in names:
        effects = broker.handle(0, neighbour(name), TOLD)
    return effects


def started_again(*, memory: bool) -> ScotBroker:
    """A broker of an inner region that was started again; no link works."""
    place = BrokerLabel("b", 0)
    position = CHAIN.position(place)
    broker = ScotBroker(
        str(place), position, SETTINGS, incarnation=0 if memory else 1, new_index=PlainIndex
    )
    if memory:
        up(broker, "B(a,0)", "B(c,0)", "B(b,1)", "B(b,2)")
        broker = ScotBroker.load(broker.dump(), position, SETTINGS, new_index=PlainIndex)
    broker.handle(0, None, messages.Restarted())
    return broker


# What a guest took


def test_what_came_to_a_broker_since_it_is_back_does_not_count_as_taken_by_its_guest() -> None:
    home, backup = with_ada(a_broker()), a_backup()
    backup.handle(0, None, messages.NeighbourDown(HOME))
    backup.handle(0, ADA, messages.Attach())
    backup.handle(0, ADA, messages.ClientAcknowledge((Id("far", 1),)))
    for number in (1, 2):
        home.handle(0, neighbour(BESIDE), m.Numbered(number, a_notification(number)))
    (handed,) = (
        one.message
        for one in up(backup, HOME)
        if isinstance(one, Send) and isinstance(one.message, m.Numbered)
    )
    effects = home.handle(0, neighbour(BACKUP), handed)
    assert [one for one in effects if isinstance(one, Withdrawn)] == [
        Withdrawn("ada", (Id("far", 1),))
    ]
    assert home.take_over_memory is not None
    assert list(home.take_over_memory.unacknowledged["ada"]) == [Id("far", 2)]
    late = home.handle(0, neighbour(BESIDE), m.Numbered(3, a_notification(1)))
    assert delivered(late) == []


def test_a_backup_that_is_started_again_remembers_what_its_guest_took() -> None:
    backup = a_backup()
    backup.handle(0, None, messages.NeighbourDown(HOME))
    backup.handle(0, ADA, messages.Attach())
    backup.handle(0, ADA, messages.ClientAcknowledge((Id("far", 1), Id("unknown", 1))))
    again = ScotBroker.load(backup.dump(), backup.position, SETTINGS, new_index=PlainIndex)
    again.handle(0, None, messages.Restarted())
    (handed,) = (one for _, one in sent_on(up(again, HOME)) if isinstance(one, m.HandBack))
    assert handed.taken == (Id("far", 1),)


# What comes late to the backup


def test_what_comes_to_the_backup_late_goes_on_to_the_broker_that_is_back() -> None:
    backup = a_backup()
    backup.handle(0, None, messages.NeighbourDown(HOME))
    up(backup, HOME)
    late = m.ProxyNotification(a_notification(3), 0)
    effects = backup.handle(0, neighbour(THIRD), m.Numbered(5, late))
    assert sent_on(effects) == [(HOME, late)]
    assert acknowledge(backup, effects) == [Send(THIRD, m.Acknowledge(5, True))]


def test_a_broker_that_is_back_gives_what_went_to_its_backup_to_its_clients_alone() -> None:
    home = with_ada(a_broker())
    home.handle(0, neighbour(BESIDE), m.Subscription(Id(BESIDE, 1), WANTED, vector(0)))
    late = m.ProxyNotification(a_notification(3), 0)
    effects = home.handle(0, neighbour(BACKUP), m.Numbered(5, late))
    assert delivered(effects) == [3]
    assert list(numbered(effects)) == [(BACKUP, "UnacknowledgedDelivery")]
    (refused,) = home.handle(
        0, neighbour(BACKUP), m.Numbered(6, m.ProxyNotification(a_notification(3), 3))
    )
    assert isinstance(refused, Refuse)
    assert "expected one from 0 to 2" in str(refused.error)


def test_what_a_broker_that_died_again_was_sent_is_kept_for_it() -> None:
    backup = a_backup()
    backup.handle(0, None, messages.NeighbourDown(HOME))
    up(backup, HOME)
    backup.handle(0, neighbour(THIRD), m.Numbered(5, m.ProxyNotification(a_notification(3), 0)))
    effects = backup.handle(0, None, messages.NeighbourDown(HOME))
    assert Send(THIRD, m.Acknowledge(5, True)) in effects
    assert delivered(backup.handle(0, ADA, messages.Attach())) == [1, 3]


# What goes through a broker that does not know all yet


@pytest.mark.parametrize("memory", [True, False])
def test_what_comes_before_a_broker_knows_all_is_done_again_and_acknowledged_then(
    memory: bool,
) -> None:
    broker = started_again(memory=memory)
    up(broker, "B(a,0)")
    hear(broker, "B(a,0)")
    assert broker.handle(0, neighbour("B(a,0)"), m.Numbered(7, a_notification())) == []
    up(broker, "B(c,0)", "B(b,1)", "B(b,2)")
    hear(broker, "B(b,1)", "B(b,2)")
    told = m.Subscription(Id("B(c,0)", 1), WANTED, vector(0))
    effects = broker.handle(0, neighbour("B(c,0)"), m.Synchronise((told,), anew=False))
    assert ("B(c,0)", a_notification()) in sent_on(effects)
    assert Send("B(a,0)", m.Acknowledge(7, True)) in acknowledge(broker, effects)
    later = broker.handle(0, neighbour("B(a,0)"), m.Numbered(8, a_notification(2)))
    assert sent_on(later) == [("B(c,0)", a_notification(2))]


@pytest.mark.parametrize("memory", [True, False])
def test_what_clients_ask_before_a_broker_knows_all_is_settled_then(memory: bool) -> None:
    broker = started_again(memory=memory)
    broker.handle(0, ADA, messages.Attach())
    effects = [
        *broker.handle(0, ADA, messages.Subscribe("s", WANTED)),
        *broker.handle(0, ADA, messages.Publish({"x": 1})),
    ]
    assert not [one for one in effects if isinstance(one, Settled)]
    assert len(delivered(effects)) == 1
    up(broker, "B(a,0)", "B(c,0)", "B(b,1)", "B(b,2)")
    effects = hear(broker, "B(a,0)", "B(c,0)", "B(b,1)", "B(b,2)")
    assert delivered(effects) == []
    assert [kind for (to, kind) in numbered(effects) if to == "B(b,1)"] == [
        "Subscription",
        "Promised",
        "UnacknowledgedDelivery",
    ]
    settled = [one.safe for one in acknowledge(broker, effects) if isinstance(one, Settled)]
    assert settled == [True, True]


def test_a_broker_that_nobody_remembers_waits_for_nobody_else() -> None:
    broker = started_again(memory=False)
    broker.handle(0, client("exchange"), messages.Attach())
    assert not any(
        isinstance(one, Settled)
        for one in broker.handle(0, client("exchange"), messages.Publish({"x": 1}))
    )
    up(broker, "B(a,0)")
    effects = broker.handle(0, neighbour("B(a,0)"), m.Synchronise((), anew=True))
    assert [one.safe for one in effects if isinstance(one, Settled)] == [True]


@pytest.mark.parametrize("comes", [True, False])
def test_a_broker_that_joins_others_who_have_subscribed_waits_until_all_have_told(
    comes: bool,
) -> None:
    broker = started_again(memory=False)
    broker.handle(0, client("exchange"), messages.Attach())
    broker.handle(0, client("exchange"), messages.Publish({"x": 1}))
    up(broker, "B(a,0)", "B(c,0)", "B(b,1)", "B(b,2)")
    told = m.Synchronise((m.Subscription(Id("B(a,0)", 1), WANTED, vector(0)),), anew=True)
    effects = broker.handle(0, neighbour("B(a,0)"), told)
    assert not [one for one in effects if isinstance(one, Settled)]
    for name in ("B(c,0)", "B(b,1)"):
        effects = broker.handle(0, neighbour(name), m.Synchronise((), anew=True))
        assert not [one for one in effects if isinstance(one, Settled)]
    if comes:
        effects = broker.handle(0, neighbour("B(b,2)"), m.Synchronise((), anew=True))
    else:
        effects = broker.handle(0, None, m.WaitedEnough())
    assert ("B(a,0)", "Notification") in numbered(effects)
    settled = [one.safe for one in acknowledge(broker, effects) if isinstance(one, Settled)]
    assert settled == [comes]


@pytest.mark.parametrize("memory", [True, False])
def test_who_does_not_come_is_not_waited_for_for_ever(memory: bool) -> None:
    broker = started_again(memory=memory)
    up(broker, "B(a,0)")
    hear(broker, "B(a,0)")
    broker.handle(0, neighbour("B(a,0)"), m.Numbered(7, a_notification()))
    effects = broker.handle(0, None, m.WaitedEnough())
    assert effects == [Send("B(a,0)", m.Acknowledge(7, memory))]
    later = broker.handle(0, neighbour("B(a,0)"), m.Numbered(8, a_notification(2)))
    assert later == [Send("B(a,0)", m.Acknowledge(8, memory))]


def test_clients_are_handed_back_before_it_is_told_what_stands() -> None:
    backup = a_backup()
    backup.handle(0, None, messages.NeighbourDown(HOME))
    kinds = [type(one).__name__ for to, one in sent_on(up(backup, HOME)) if to == HOME]
    assert kinds.index("HandBack") < kinds.index("Synchronise")


def test_a_subscription_that_comes_again_is_acknowledged_when_it_is_known_everywhere() -> None:
    broker = a_broker()
    wanted = m.Subscription(Id(BESIDE, 1), WANTED, vector(0))
    broker.handle(0, neighbour(BESIDE), m.Numbered(1, wanted))
    effects = broker.handle(0, neighbour(BESIDE), m.Numbered(2, wanted))
    assert sent_on(effects) == [(BACKUP, wanted), (THIRD, wanted)]
    assert acknowledge(broker, effects) == [Send(BESIDE, m.Acknowledge(2, True))]
