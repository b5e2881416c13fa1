"""Taking over clients, step by step: what waits for what, who is refused, what is handed back."""

from __future__ import annotations

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Adopted, Deliver, Dismissed, Send, Withdrawn
from gossamer.protocol.brokers.core.errors import ClientError
from gossamer.protocol.brokers.core.messages import Id, client
from gossamer.protocol.brokers.scot import BrokerLabel, ScotSettings
from gossamer.protocol.brokers.scot.memory import messages as m
from support.scot_overlay import (
    ADA,
    BACKUP,
    BESIDE,
    CHAIN,
    HOME,
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
    assert sorted(sent) == [
        (BACKUP, "Promised"),
        (BACKUP, "Subscription"),
        (THIRD, "Subscription"),
        (BESIDE, "Subscription"),
    ]
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
    effects = down(broker, BACKUP)
    replica, owed = (one.message for one in effects if isinstance(one, Send))
    assert isinstance(replica, m.Replica)
    assert [one.client for one in replica.promised] == ["ada"]
    assert [one.notification for one in replica.unacknowledged] == [a_notification()]
    assert isinstance(owed, m.Numbered)
    (answer,) = take(broker, THIRD, m.Acknowledge(owed.number, True))
    assert answer == Send(BESIDE, m.Acknowledge(7, True))
    back = up(broker, BACKUP)
    told = {one.neighbour: one.message for one in back if isinstance(one, Send)}
    assert told[THIRD] == m.NoBackup()
    assert told[BACKUP] == replica


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
    assert whether_safe(found) == [False]
    assert broker.counters.lost == 1


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


def test_a_relay_to_or_from_a_broker_that_is_not_beside_is_refused() -> None:
    broker, wanted = a_broker(), subscription(1, "x")
    for relay in (m.Relay(wanted, C0, ()), m.Relay(wanted, B0, (C0,))):
        error = refusal(take(broker, BACKUP, m.Numbered(1, relay)))
        assert "names B(c,0), expected a neighbour of its receiver" in str(error)
    assert refusal(take(broker, THIRD, m.Numbered(1, m.Relay(wanted, A1, ()))))
    assert broker.table() == ()


def test_a_neighbour_that_is_gone_takes_all_that_came_from_it_along() -> None:
    broker = a_broker()
    take(broker, BESIDE, subscription(1, BESIDE))
    take(broker, BACKUP, subscription(1, BACKUP, 1))
    broker.handle(0, None, messages.NeighbourGone(BESIDE))
    assert [entry.id.broker for entry in broker.table()] == [BACKUP]
    assert broker.neighbours().keys() == {BACKUP, THIRD}
    broker.handle(0, None, m.NeighbourUp("new", B0))
    assert broker.neighbours()["new"] == B0


def test_what_a_neighbour_no_longer_tells_of_is_forgotten() -> None:
    plain = without_links("a", 0, settings=ScotSettings())
    plain.handle(0, None, m.NeighbourUp(BESIDE, B0))
    one, other, own = subscription(1, "x"), subscription(2, "x"), subscription(1, BESIDE)
    take(plain, BESIDE, m.Synchronise((one, own), anew=False))
    for anew, known in ((True, [one.id, other.id]), (False, [other.id])):
        take(plain, BESIDE, m.Synchronise((other,), anew=anew))
        assert [entry.id for entry in plain.table()] == known


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


def test_what_a_broker_that_knows_all_does_not_tell_is_no_more() -> None:
    broker = a_broker()
    own, foreign = subscription(1, BESIDE), subscription(1, "far")
    for known in ((own, foreign), (own,)):
        take(broker, BESIDE, m.Synchronise(known, anew=False))
    assert len(broker.table()) == 2
    take(broker, BESIDE, m.Synchronise((), anew=True, complete=True))
    assert [entry.id for entry in broker.table()] == [own.id]


def test_a_subscription_from_beside_a_link_that_never_worked_is_not_safe() -> None:
    broker = without_links("a", 0)
    up(broker, BACKUP)
    wanted = subscription(1, BESIDE)
    for message, safe in ((wanted, False), (m.Unsubscription(wanted.id), True)):
        relayed = m.Numbered(1, m.Relay(message, B0, ()))
        assert take(broker, BACKUP, relayed) == [Send(BACKUP, m.Acknowledge(1, safe))]
    assert broker.table() == ()


def test_what_ended_by_another_way_does_not_begin_by_the_link() -> None:
    broker, late = a_broker(), subscription(1, "far")
    take(broker, BACKUP, m.Numbered(1, m.Relay(m.Unsubscription(late.id), B0, ())))
    effects = take(broker, BESIDE, m.Numbered(1, late))
    assert effects == [Send(BESIDE, m.Acknowledge(1, True))]
    assert broker.table() == ()
    down(broker, BESIDE)
    up(broker, BESIDE)
    take(broker, BESIDE, m.Numbered(2, late))
    assert len(broker.table()) == 1
