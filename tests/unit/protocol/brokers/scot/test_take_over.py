"""Clients are taken over, brokers come back or cover: what waits for what, who is refused."""

from __future__ import annotations

import pytest
from attrs import evolve

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import (
    Adopted,
    Deliver,
    Dismissed,
    Effect,
    Send,
    Withdrawn,
)
from gossamer.protocol.brokers.core.messages import ClientError, Id, client
from gossamer.protocol.brokers.scot import BrokerLabel, ScotBroker, ScotSettings
from gossamer.protocol.brokers.scot import messages as m
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

A0, A1, A2, B0, B1, B2 = (BrokerLabel(one, cluster) for one in "ab" for cluster in range(3))
C0 = BrokerLabel("c", 0)


def test_a_subscription_is_safe_when_every_neighbour_and_the_backup_have_it() -> None:
    broker = a_broker()
    broker.handle(0, ADA, messages.Attach())
    sent = numbered(broker.handle(0, ADA, messages.Subscribe("s", WANTED)))
    told = ((BACKUP, "Promised"), *((name, "Subscription") for name in (BACKUP, THIRD, BESIDE)))
    assert sorted(sent) == list(told)
    for (name, _), number in list(sent.items())[:-1]:
        assert take(broker, name, m.Acknowledge(number, True)) == []
    assert whether_safe(take(broker, BACKUP, m.Acknowledge(max(sent.values()), True))) == [True]


def test_a_notification_is_acknowledged_when_the_backup_has_what_is_owed() -> None:
    broker = with_ada(a_broker())
    effects = take(broker, BESIDE, m.Numbered(7, a_notification()))
    assert [type(one).__name__ for one in effects] == ["Deliver", "Send"]
    (number,) = numbered(effects).values()
    (answer,) = take(broker, BACKUP, m.Acknowledge(number, True))
    assert answer == Send(BESIDE, m.Acknowledge(7, True))
    again = take(broker, BESIDE, m.Numbered(8, a_notification()))
    assert list(numbered(again)) == [(BACKUP, "UnacknowledgedDelivery")]
    (taken,) = broker.handle(0, ADA, messages.ClientAcknowledge((Id("far", 1),)))
    assert taken == Send(BACKUP, m.Taken("ada", (Id("far", 1),)))
    assert take(broker, BESIDE, m.Numbered(9, a_notification())) == [
        Send(BESIDE, m.Acknowledge(9, True))
    ]


def test_another_backup_is_told_everything_before_anything_is_acknowledged() -> None:
    broker = with_ada(a_broker())
    take(broker, BESIDE, m.Numbered(7, a_notification()))
    replica, owed = (one.message for one in down(broker, BACKUP) if isinstance(one, Send))
    assert isinstance(replica, m.Replica)
    assert [one.client for one in replica.promised] == ["ada"]
    assert [one.notification for one in replica.unacknowledged] == [a_notification()]
    assert isinstance(owed, m.Numbered)
    (answer,) = take(broker, THIRD, m.Acknowledge(owed.number, True))
    assert answer == Send(BESIDE, m.Acknowledge(7, True))
    told = {one.neighbour: one.message for one in up(broker, BACKUP) if isinstance(one, Send)}
    assert (told[THIRD], told[BACKUP]) == (m.NoBackup(), replica)


def test_what_nobody_can_take_is_not_safe() -> None:
    broker = with_ada(a_broker())
    broker.handle(0, client("exchange"), messages.Attach())
    take(broker, BESIDE, subscription(1, BESIDE))
    effects = broker.handle(0, client("exchange"), messages.Publish({"x": 1}))
    found = acknowledge(broker, effects, safe=False)
    assert whether_safe(found) == [False]
    down(broker, BACKUP, THIRD)
    broker.handle(0, client("exchange"), messages.Publish({"x": 2}))
    found = down(broker, BESIDE)
    assert (whether_safe(found), broker.counters.lost) == ([False], 1)


def test_a_guest_gets_what_it_is_owed_once_its_broker_is_dead_and_asks_for_nothing_new() -> None:
    backup = a_backup()
    error = refusal(backup.handle(0, ADA, messages.Attach()))
    assert isinstance(error, ClientError)
    assert "is a client of broker B(a,0), which is there" in str(error)
    down(backup, HOME)
    take(backup, THIRD, m.Numbered(5, m.ProxyNotification(a_notification(2), 0)))
    effects = backup.handle(0, ADA, messages.Attach())
    assert Adopted("ada", HOME, (("s", WANTED),)) in effects
    assert delivered(effects) == [1, 2]
    for message in (messages.Subscribe("t", WANTED), messages.Unsubscribe("s")):
        error = refusal(backup.handle(0, ADA, message))
        assert "cannot change what it has asked for until that is back" in str(error)
    later = take(backup, THIRD, m.Numbered(6, m.ProxyNotification(a_notification(3), 0)))
    assert [one.client for one in later if isinstance(one, Deliver)] == ["ada"]
    assert acknowledge(backup, later) == [Send(THIRD, m.Acknowledge(6, True))]


def test_a_broker_that_is_back_is_handed_what_its_clients_have_not_taken() -> None:
    home, backup = with_ada(a_broker()), a_backup()
    take(home, BESIDE, m.Numbered(7, a_notification(1)))
    down(backup, HOME)
    take(backup, THIRD, m.Numbered(5, m.ProxyNotification(a_notification(2), 0)))
    backup.handle(0, ADA, messages.Attach())
    backup.handle(0, ADA, messages.ClientAcknowledge((Id("far", 1),)))
    effects = up(backup, HOME)
    assert Dismissed("ada", HOME) in effects
    assert backup.clients() == ()
    back = take(home, BACKUP, handed_back(effects))
    assert Withdrawn("ada", (Id("far", 1),)) in back
    assert delivered(back) == [2]


def test_names_that_begin_with_a_tilde_are_kept_for_nobody() -> None:
    broker = a_broker()
    passing = client("~1")
    broker.handle(0, passing, messages.Attach())
    effects = broker.handle(0, passing, messages.Subscribe("s", WANTED))
    assert not any(kind == "Promised" for _, kind in numbered(effects))
    delivery, answer = take(broker, BESIDE, m.Numbered(7, a_notification()))
    assert isinstance(delivery, Deliver)
    assert answer == Send(BESIDE, m.Acknowledge(7, True))


def test_a_subscription_goes_around_a_link_and_is_taken_as_if_it_had_not() -> None:
    broker, wanted = a_broker(), subscription()
    down(broker, BESIDE, THIRD)
    broker.handle(0, ADA, messages.Attach())
    sent = [one for _, one in sent_on(broker.handle(0, ADA, messages.Subscribe("s", WANTED)))]
    assert m.Relay(wanted, A0, (B1, B0)) in sent
    assert m.Relay(wanted, A0, (A2,)) in sent
    taker = a_broker(2)
    down(taker, HOME)
    take(taker, BACKUP, m.Numbered(1, m.Relay(wanted, A0, ())))
    assert [(one.id, one.hop.name) for one in taker.table()] == [(wanted.id, HOME)]


def test_what_a_dead_broker_would_have_done_is_done_in_its_place_and_ends_when_it_is_back() -> None:
    finder, wanted = without_links("b", 1, CHAIN), subscription()
    up(finder, "B(a,1)", "B(c,1)", "B(b,0)", "B(b,2)")
    down(finder, "B(b,0)")
    effects = take(finder, "B(a,1)", m.Numbered(1, m.Relay(wanted, A0, (B0,))))
    assert [(one.id, one.hop.name) for one in finder.table()] == [(wanted.id, "B(b,0)")]
    assert dict(sent_on(effects)) == {
        "B(b,2)": m.Relay(wanted, B0, ()),
        "B(c,1)": m.Relay(wanted, B0, (C0,)),
    }
    up(finder, "B(b,0)")
    end = m.Unsubscription(wanted.id)
    effects = take(finder, "B(a,1)", m.Numbered(2, m.Relay(end, A0, (B0,))))
    assert dict(sent_on(effects)) == {
        "B(b,0)": m.Relay(end, A0, ()),
        "B(b,2)": m.Relay(end, B0, ()),
        "B(c,1)": m.Relay(end, B0, (C0,)),
    }
    assert finder.table() == ()


def test_a_relay_that_is_not_from_or_to_beside_is_refused_and_over_a_new_link_not_safe() -> None:
    broker, wanted = a_broker(), subscription(1, "x")
    for relay in (m.Relay(wanted, C0, ()), m.Relay(wanted, B0, (C0,))):
        error = refusal(take(broker, BACKUP, m.Numbered(1, relay)))
        assert "names B(c,0), expected a neighbour of its receiver" in str(error)
    assert refusal(take(broker, THIRD, m.Numbered(1, m.Relay(wanted, A1, ()))))
    assert broker.table() == ()
    broker = without_links("a", 0)
    up(broker, BACKUP)
    wanted = subscription(1, BESIDE)
    for message, safe in ((wanted, False), (m.Unsubscription(wanted.id), True)):
        relayed = m.Numbered(1, m.Relay(message, B0, ()))
        assert take(broker, BACKUP, relayed) == [Send(BACKUP, m.Acknowledge(1, safe))]
    assert broker.table() == ()


def test_a_neighbour_that_is_gone_takes_all_along_and_ends_do_not_begin_by_a_link() -> None:
    broker = a_broker()
    take(broker, BESIDE, subscription(1, BESIDE))
    take(broker, BACKUP, subscription(1, BACKUP, 1))
    broker.handle(0, None, messages.NeighbourGone(BESIDE))
    assert [entry.id.broker for entry in broker.table()] == [BACKUP]
    assert broker.neighbours().keys() == {BACKUP, THIRD}
    broker.handle(0, None, m.NeighbourUp("new", B0))
    assert broker.neighbours()["new"] == B0
    broker, late = a_broker(), subscription(1, "far")
    take(broker, BACKUP, m.Numbered(1, m.Relay(m.Unsubscription(late.id), B0, ())))
    assert take(broker, BESIDE, m.Numbered(1, late)) == [Send(BESIDE, m.Acknowledge(1, True))]
    assert broker.table() == ()
    down(broker, BESIDE)
    up(broker, BESIDE)
    take(broker, BESIDE, m.Numbered(2, late))
    assert len(broker.table()) == 1


def test_what_a_neighbour_or_a_broker_that_knows_all_no_longer_tells_of_is_forgotten() -> None:
    plain = without_links("a", 0, settings=ScotSettings())
    plain.handle(0, None, m.NeighbourUp(BESIDE, B0))
    one, other, own = subscription(1, "x"), subscription(2, "x"), subscription(1, BESIDE)
    take(plain, BESIDE, m.Synchronise((one, own), anew=False))
    for anew, known in ((True, [one.id, other.id]), (False, [other.id])):
        take(plain, BESIDE, m.Synchronise((other,), anew=anew))
        assert [entry.id for entry in plain.table()] == known
    broker = a_broker()
    own, foreign = subscription(1, BESIDE), subscription(1, "far")
    take(broker, BESIDE, m.Synchronise((own, foreign), anew=False))
    take(broker, BESIDE, m.Synchronise((own,), anew=False))
    assert len(broker.table()) == 2
    take(broker, BESIDE, m.Synchronise((), anew=True, complete=True))
    assert [entry.id for entry in broker.table()] == [own.id]


def test_the_end_of_a_subscription_does_not_overtake_it() -> None:
    broker, wanted = a_broker(), subscription()
    down(broker, BACKUP, BESIDE)
    broker.handle(0, ADA, messages.Attach())
    effects = broker.handle(0, ADA, messages.Subscribe("s", WANTED))
    assert (THIRD, m.Relay(wanted, A0, (B2, B0))) in sent_on(effects)
    up(broker, BACKUP, BESIDE)
    end = m.Unsubscription(wanted.id)
    sent = sent_on(broker.handle(0, ADA, messages.Unsubscribe("s")))
    assert (THIRD, m.Relay(end, A0, (B2, B0))) in sent
    assert (BESIDE, end) in sent
    assert [to for to, one in sent if isinstance(one, m.Relay)] == [THIRD, THIRD]
    # Once what it ends is acknowledged it goes one way.
    broker = a_broker()
    down(broker, BESIDE)
    with_ada(broker)
    up(broker, BESIDE)
    sent = sent_on(broker.handle(0, ADA, messages.Unsubscribe("s")))
    assert (BESIDE, end) in sent
    assert not [one for _, one in sent if isinstance(one, m.Relay)]


def test_a_broker_tells_what_stands_again_once_all_neighbours_have_told_it() -> None:
    broker, told = a_broker(), subscription(1, "far")
    for name in (BACKUP, THIRD):
        assert not take(broker, name, m.Synchronise((), anew=False))
    effects = take(broker, BESIDE, m.Synchronise((told,), anew=False))
    assert [(to, one) for to, one in sent_on(effects) if isinstance(one, m.Synchronise)] == [
        (to, m.Synchronise(known, anew=True, complete=True))
        for to, known in ((BACKUP, (told,)), (THIRD, (told,)), (BESIDE, ()))
    ]
    assert not take(broker, BACKUP, m.Synchronise((), anew=False))


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


def test_a_backup_and_the_broker_that_is_back_know_what_the_guest_took() -> None:
    home, backup = with_ada(a_broker()), backup_with_guest(Id("far", 1))
    take(home, BESIDE, *(m.Numbered(number, a_notification(number)) for number in (1, 2)))
    effects = take(home, BACKUP, handed_back(up(backup, HOME)))
    withdrawn = [one for one in effects if isinstance(one, Withdrawn)]
    assert withdrawn == [Withdrawn("ada", (Id("far", 1),))]
    assert home.take_over_memory is not None
    assert list(home.take_over_memory.unacknowledged["ada"]) == [Id("far", 2)]
    assert delivered(take(home, BESIDE, m.Numbered(3, a_notification(1)))) == []
    backup = backup_with_guest(Id("far", 1), Id("unknown", 1))
    again = ScotBroker.load(backup.dump(), backup.position, SETTINGS, new_index=PlainIndex)
    again.handle(0, None, messages.Restarted())
    sent = [one for to, one in sent_on(up(again, HOME)) if to == HOME]
    assert next(one for one in sent if isinstance(one, m.HandBack)).taken == (Id("far", 1),)
    # Clients are handed back before it is told what stands.
    kinds = [type(one) for one in sent]
    assert kinds.index(m.HandBack) < kinds.index(m.Synchronise)


def test_what_comes_to_the_backup_goes_on_to_the_broker_that_is_back_and_its_clients() -> None:
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
    effects = take(broker, "B(c,0)", m.Synchronise((subscription(1, "B(c,0)"),), anew=False))
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
    assert broker.handle(0, None, m.WaitedEnough()) == [Send(HOME, m.Acknowledge(7, memory))]
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
    return ScotBroker.load(dump, SCOT.position(BrokerLabel("a", 0)), COVERED, new_index=PlainIndex)


def told(effects: list[Effect], kind: str = "Subscription") -> set[str]:
    return {name for name, one in sent_on(effects) if type(one).__name__ == kind}


def test_what_is_under_way_or_may_not_have_reached_everybody_covers_nothing() -> None:
    broker = covering_broker()
    wide = broker.handle(0, ADA, messages.Subscribe("wide", WANTED))
    # Nor does it when the broker has died meanwhile.
    for one in (broker, covering_broker(loaded(broker.dump()))):
        assert told(one.handle(0, ADA, messages.Subscribe("one", NARROW))) == EVERYWHERE
    acknowledge(broker, wide)
    effects = broker.handle(0, ADA, messages.Subscribe("two", NARROW))
    assert (told(effects), whether_safe(acknowledge(broker, effects))) == (set(), [True])
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
    assert (told(then, "Unsubscription"), whether_safe(then)) == (EVERYWHERE, [])
    assert whether_safe(acknowledge(broker, then)) == [True]
