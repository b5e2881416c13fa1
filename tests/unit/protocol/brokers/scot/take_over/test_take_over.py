"""Taking over clients, step by step: what waits for what, who is refused, what is handed back."""

from __future__ import annotations

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import (
    Adopted,
    Deliver,
    Dismissed,
    Refuse,
    Send,
    Settled,
    Withdrawn,
)
from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.scot import BrokerLabel, NeighbourUp, ScotBroker, ScotSettings
from gossamer.protocol.brokers.scot.memory import messages as m
from gossamer.protocol.brokers.scot.overlay.errors import ElsewhereError, GuestError
from support.plain_index import PlainIndex
from support.scot_steps import (
    ADA,
    BACKUP,
    BESIDE,
    CHAIN,
    SCOT,
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


def test_a_subscription_is_safe_when_every_neighbour_and_the_backup_have_it() -> None:
    broker = a_broker()
    broker.handle(0, ADA, messages.Attach())
    effects = broker.handle(0, ADA, messages.Subscribe("s", WANTED))
    sent = numbered(effects)
    assert sorted(sent) == [
        (BACKUP, "Promised"),
        (BACKUP, "Subscription"),
        (THIRD, "Subscription"),
        (BESIDE, "Subscription"),
    ]
    for (name, _), number in list(sent.items())[:-1]:
        assert broker.handle(0, neighbour(name), m.Acknowledge(number, True)) == []
    (settled,) = broker.handle(0, neighbour(BACKUP), m.Acknowledge(max(sent.values()), True))
    assert isinstance(settled, Settled)
    assert settled.safe


def test_a_notification_is_acknowledged_when_the_backup_has_what_is_owed() -> None:
    broker = with_ada(a_broker())
    effects = broker.handle(0, neighbour(BESIDE), m.Numbered(7, a_notification()))
    assert [type(one).__name__ for one in effects] == ["Deliver", "Send"]
    (number,) = numbered(effects).values()
    (answer,) = broker.handle(0, neighbour(BACKUP), m.Acknowledge(number, True))
    assert answer == Send(BESIDE, m.Acknowledge(7, True))
    (again,) = numbered(
        broker.handle(0, neighbour(BESIDE), m.Numbered(8, a_notification()))
    ).items()
    assert again[0] == (BACKUP, "UnacknowledgedDelivery")
    (taken,) = broker.handle(0, ADA, messages.ClientAcknowledge((Id("far", 1),)))
    assert taken == Send(BACKUP, m.Taken("ada", (Id("far", 1),)))
    assert broker.handle(0, neighbour(BESIDE), m.Numbered(9, a_notification())) == [
        Send(BESIDE, m.Acknowledge(9, True))
    ]


def test_another_backup_is_told_everything_before_anything_is_acknowledged() -> None:
    broker = with_ada(a_broker())
    broker.handle(0, neighbour(BESIDE), m.Numbered(7, a_notification()))
    effects = broker.handle(0, None, messages.NeighbourDown(BACKUP))
    replica, owed = (one.message for one in effects if isinstance(one, Send))
    assert isinstance(replica, m.Replica)
    assert [one.client for one in replica.promised] == ["ada"]
    assert [one.notification for one in replica.unacknowledged] == [a_notification()]
    assert isinstance(owed, m.Numbered)
    (answer,) = broker.handle(0, neighbour(THIRD), m.Acknowledge(owed.number, True))
    assert answer == Send(BESIDE, m.Acknowledge(7, True))
    back = broker.handle(0, None, NeighbourUp(BACKUP, BrokerLabel("a", 1), synchronise=True))
    told = {one.neighbour: one.message for one in back if isinstance(one, Send)}
    assert told[THIRD] == m.NoBackup()
    assert told[BACKUP] == replica


def test_what_nobody_can_take_is_not_safe() -> None:
    broker = with_ada(a_broker())
    broker.handle(0, client("exchange"), messages.Attach())
    broker.handle(0, neighbour(BESIDE), m.Subscription(Id(BESIDE, 1), WANTED, vector(0)))
    effects = broker.handle(0, client("exchange"), messages.Publish({"x": 1}))
    found = acknowledge(broker, effects, safe=False)
    assert [one.safe for one in found if isinstance(one, Settled)] == [False]
    for name in (BACKUP, THIRD):
        broker.handle(0, None, messages.NeighbourDown(name))
    broker.handle(0, client("exchange"), messages.Publish({"x": 2}))
    found = broker.handle(0, None, messages.NeighbourDown(BESIDE))
    assert [one.safe for one in found if isinstance(one, Settled)] == [False]
    assert broker.counters.lost == 1


def test_a_client_whose_broker_is_there_is_sent_there() -> None:
    (refused,) = a_backup().handle(0, ADA, messages.Attach())
    assert isinstance(refused, Refuse)
    assert isinstance(refused.error, ElsewhereError)
    assert "is a client of broker B(a,0), which is there" in str(refused.error)


def test_a_guest_gets_what_it_is_owed_and_asks_for_nothing_new() -> None:
    backup = a_backup()
    backup.handle(0, None, messages.NeighbourDown("B(a,0)"))
    backup.handle(0, neighbour(THIRD), m.Numbered(5, m.ProxyNotification(a_notification(2), 0)))
    effects = backup.handle(0, ADA, messages.Attach())
    assert Adopted("ada", "B(a,0)", (("s", WANTED),)) in effects
    assert [one.publication.id.number for one in effects if isinstance(one, Deliver)] == [1, 2]
    for message in (messages.Subscribe("t", WANTED), messages.Unsubscribe("s")):
        (refused,) = backup.handle(0, ADA, message)
        assert isinstance(refused, Refuse)
        assert isinstance(refused.error, GuestError)
    later = backup.handle(
        0, neighbour(THIRD), m.Numbered(6, m.ProxyNotification(a_notification(3), 0))
    )
    assert [one.client for one in later if isinstance(one, Deliver)] == ["ada"]
    assert acknowledge(backup, later) == [Send(THIRD, m.Acknowledge(6, True))]


def test_a_broker_that_is_back_is_handed_what_its_clients_have_not_taken() -> None:
    home, backup = with_ada(a_broker()), a_backup()
    home.handle(0, neighbour(BESIDE), m.Numbered(7, a_notification(1)))
    backup.handle(0, None, messages.NeighbourDown("B(a,0)"))
    backup.handle(0, neighbour(THIRD), m.Numbered(5, m.ProxyNotification(a_notification(2), 0)))
    backup.handle(0, ADA, messages.Attach())
    backup.handle(0, ADA, messages.ClientAcknowledge((Id("far", 1),)))
    effects = backup.handle(0, None, NeighbourUp("B(a,0)", BrokerLabel("a", 0), synchronise=True))
    assert Dismissed("ada", "B(a,0)") in effects
    assert backup.clients() == ()
    (handed,) = (
        one.message
        for one in effects
        if isinstance(one, Send) and isinstance(one.message, m.Numbered)
    )
    back = home.handle(0, neighbour(BACKUP), handed)
    assert Withdrawn("ada", (Id("far", 1),)) in back
    assert [one.publication.id.number for one in back if isinstance(one, Deliver)] == [2]


def test_names_that_begin_with_a_tilde_are_kept_for_nobody() -> None:
    broker = a_broker()
    passing = client("~1")
    broker.handle(0, passing, messages.Attach())
    effects = broker.handle(0, passing, messages.Subscribe("s", WANTED))
    assert not any(kind == "Promised" for _, kind in numbered(effects))
    effects = broker.handle(0, neighbour(BESIDE), m.Numbered(7, a_notification()))
    assert [type(one).__name__ for one in effects] == ["Deliver", "Send"]
    assert effects[1] == Send(BESIDE, m.Acknowledge(7, True))


def test_a_subscription_goes_around_a_link_and_is_taken_as_if_it_had_not() -> None:
    broker = a_broker()
    broker.handle(0, None, messages.NeighbourDown(BESIDE))
    broker.handle(0, None, messages.NeighbourDown(THIRD))
    broker.handle(0, ADA, messages.Attach())
    sent = [
        one.message.message
        for one in broker.handle(0, ADA, messages.Subscribe("s", WANTED))
        if isinstance(one, Send) and isinstance(one.message, m.Numbered)
    ]
    wanted = m.Subscription(Id("B(a,0)", 1), WANTED, vector(0))
    here, beside = BrokerLabel("a", 0), BrokerLabel("b", 0)
    assert m.Relay(wanted, here, (BrokerLabel("b", 1), beside)) in sent
    assert m.Relay(wanted, here, (BrokerLabel("a", 2),)) in sent
    taker = a_broker(2)
    taker.handle(0, None, messages.NeighbourDown("B(a,0)"))
    taker.handle(0, neighbour(BACKUP), m.Numbered(1, m.Relay(wanted, here, ())))
    assert [(one.id, one.hop.name) for one in taker.table()] == [(wanted.id, "B(a,0)")]


def a_finder() -> ScotBroker:
    """A broker of an inner region, beside one that is dead."""
    place = BrokerLabel("b", 1)
    finder = ScotBroker(str(place), CHAIN.position(place), SETTINGS, new_index=PlainIndex)
    up(finder, "B(a,1)", "B(c,1)", "B(b,0)", "B(b,2)")
    finder.handle(0, None, messages.NeighbourDown("B(b,0)"))
    return finder


def test_what_a_dead_broker_would_have_done_is_done_in_its_place() -> None:
    finder = a_finder()
    wanted = m.Subscription(Id("B(a,0)", 1), WANTED, vector(0))
    dead = BrokerLabel("b", 0)
    effects = finder.handle(
        0, neighbour("B(a,1)"), m.Numbered(1, m.Relay(wanted, BrokerLabel("a", 0), (dead,)))
    )
    assert [(one.id, one.hop.name) for one in finder.table()] == [(wanted.id, "B(b,0)")]
    assert {one.neighbour: one.message.message for one in effects if isinstance(one, Send)} == {
        "B(b,2)": m.Relay(wanted, dead, ()),
        "B(c,1)": m.Relay(wanted, dead, (BrokerLabel("c", 0),)),
    }


def test_a_relay_to_or_from_a_broker_that_is_not_beside_is_refused() -> None:
    broker = a_broker()
    wanted = m.Subscription(Id("x", 1), WANTED, vector(0))
    for relay in (
        m.Relay(wanted, BrokerLabel("c", 0), ()),
        m.Relay(wanted, BrokerLabel("b", 0), (BrokerLabel("c", 0),)),
    ):
        (refused,) = broker.handle(0, neighbour(BACKUP), m.Numbered(1, relay))
        assert isinstance(refused, Refuse)
        assert "names B(c,0), expected a neighbour of its receiver" in str(refused.error)
    foreign = m.Relay(wanted, BrokerLabel("a", 1), ())
    (refused,) = broker.handle(0, neighbour(THIRD), m.Numbered(1, foreign))
    assert isinstance(refused, Refuse)
    assert broker.table() == ()


# Links


def test_a_neighbour_that_is_gone_takes_all_that_came_from_it_along() -> None:
    broker = a_broker()
    broker.handle(0, neighbour(BESIDE), m.Subscription(Id(BESIDE, 1), WANTED, vector(0)))
    broker.handle(0, neighbour(BACKUP), m.Subscription(Id(BACKUP, 1), WANTED, vector(1)))
    broker.handle(0, None, messages.NeighbourGone(BESIDE))
    assert [entry.id.broker for entry in broker.table()] == [BACKUP]
    assert broker.neighbours().keys() == {BACKUP, THIRD}
    broker.handle(0, None, NeighbourUp("new", BrokerLabel("b", 0)))
    assert broker.neighbours()["new"] == BrokerLabel("b", 0)


def test_what_a_neighbour_no_longer_tells_of_is_forgotten() -> None:
    plain = ScotBroker("B(a,0)", SCOT.position(BrokerLabel("a", 0)), ScotSettings())
    plain.handle(0, None, NeighbourUp(BESIDE, BrokerLabel("b", 0)))
    one, other, own = (
        m.Subscription(Id(b, n), WANTED, vector(0)) for b, n in (("x", 1), ("x", 2), (BESIDE, 1))
    )
    plain.handle(0, neighbour(BESIDE), m.Synchronise((one, own), anew=False))
    plain.handle(0, neighbour(BESIDE), m.Synchronise((other,), anew=True))
    assert [entry.id for entry in plain.table()] == [one.id, other.id]
    plain.handle(0, neighbour(BESIDE), m.Synchronise((other,), anew=False))
    assert [entry.id for entry in plain.table()] == [other.id]


def test_the_end_of_a_subscription_does_not_overtake_it() -> None:
    broker = a_broker()
    for name in (BACKUP, BESIDE):
        broker.handle(0, None, messages.NeighbourDown(name))
    broker.handle(0, ADA, messages.Attach())
    here, beside = BrokerLabel("a", 0), BrokerLabel("b", 0)
    way = (BrokerLabel("b", 2), beside)
    wanted = m.Subscription(Id("B(a,0)", 1), WANTED, vector(0))
    effects = broker.handle(0, ADA, messages.Subscribe("s", WANTED))
    assert (THIRD, m.Relay(wanted, here, way)) in sent_on(effects)
    up(broker, BACKUP, BESIDE)
    end = m.Unsubscription(wanted.id)
    sent = sent_on(broker.handle(0, ADA, messages.Unsubscribe("s")))
    assert (THIRD, m.Relay(end, here, way)) in sent
    assert (BESIDE, end) in sent
    assert [to for to, one in sent if isinstance(one, m.Relay)] == [THIRD, THIRD]


def test_an_end_goes_one_way_once_what_it_ends_is_acknowledged() -> None:
    broker = a_broker()
    broker.handle(0, None, messages.NeighbourDown(BESIDE))
    with_ada(broker)
    up(broker, BESIDE)
    sent = sent_on(broker.handle(0, ADA, messages.Unsubscribe("s")))
    assert (BESIDE, m.Unsubscription(Id("B(a,0)", 1))) in sent
    assert not [one for _, one in sent if isinstance(one, m.Relay)]


def test_what_was_done_in_the_place_of_a_broker_ends_though_that_is_back() -> None:
    finder = a_finder()
    back, there = BrokerLabel("b", 0), BrokerLabel("a", 0)
    wanted = m.Subscription(Id("B(a,0)", 1), WANTED, vector(0))
    end = m.Unsubscription(wanted.id)
    finder.handle(0, neighbour("B(a,1)"), m.Numbered(1, m.Relay(wanted, there, (back,))))
    up(finder, "B(b,0)")
    effects = finder.handle(0, neighbour("B(a,1)"), m.Numbered(2, m.Relay(end, there, (back,))))
    assert dict(sent_on(effects)) == {
        "B(b,0)": m.Relay(end, there, ()),
        "B(b,2)": m.Relay(end, back, ()),
        "B(c,1)": m.Relay(end, back, (BrokerLabel("c", 0),)),
    }
    assert finder.table() == ()


def test_a_broker_tells_what_stands_again_once_all_neighbours_have_told_it() -> None:
    broker = a_broker()
    for name in (BACKUP, THIRD):
        assert not broker.handle(0, neighbour(name), m.Synchronise((), anew=False))
    told = m.Subscription(Id("far", 1), WANTED, vector(0))
    effects = broker.handle(0, neighbour(BESIDE), m.Synchronise((told,), anew=False))
    again = [(to, one) for to, one in sent_on(effects) if isinstance(one, m.Synchronise)]
    assert again == [
        (BACKUP, m.Synchronise((told,), anew=True, complete=True)),
        (THIRD, m.Synchronise((told,), anew=True, complete=True)),
        (BESIDE, m.Synchronise((), anew=True, complete=True)),
    ]
    assert not broker.handle(0, neighbour(BACKUP), m.Synchronise((), anew=False))


def test_what_a_broker_that_knows_all_does_not_tell_is_no_more() -> None:
    broker = a_broker()
    own, foreign = (m.Subscription(Id(b, 1), WANTED, vector(0)) for b in (BESIDE, "far"))
    broker.handle(0, neighbour(BESIDE), m.Synchronise((own, foreign), anew=False))
    broker.handle(0, neighbour(BESIDE), m.Synchronise((own,), anew=False))
    assert len(broker.table()) == 2
    broker.handle(0, neighbour(BESIDE), m.Synchronise((), anew=True, complete=True))
    assert [entry.id for entry in broker.table()] == [own.id]


def test_a_subscription_from_beside_a_link_that_never_worked_is_not_safe() -> None:
    place = BrokerLabel("a", 0)
    broker = ScotBroker(str(place), SCOT.position(place), SETTINGS, new_index=PlainIndex)
    up(broker, BACKUP)
    wanted = m.Subscription(Id(BESIDE, 1), WANTED, vector(0))
    for message, safe in ((wanted, False), (m.Unsubscription(wanted.id), True)):
        relayed = m.Numbered(1, m.Relay(message, BrokerLabel("b", 0), ()))
        effects = broker.handle(0, neighbour(BACKUP), relayed)
        assert effects == [Send(BACKUP, m.Acknowledge(1, safe))]
    assert broker.table() == ()


def test_what_ended_by_another_way_does_not_begin_by_the_link() -> None:
    broker = a_broker()
    late = m.Subscription(Id("far", 1), WANTED, vector(0))
    end = m.Relay(m.Unsubscription(late.id), BrokerLabel("b", 0), ())
    broker.handle(0, neighbour(BACKUP), m.Numbered(1, end))
    effects = broker.handle(0, neighbour(BESIDE), m.Numbered(1, late))
    assert effects == [Send(BESIDE, m.Acknowledge(1, True))]
    assert broker.table() == ()
    broker.handle(0, None, messages.NeighbourDown(BESIDE))
    up(broker, BESIDE)
    broker.handle(0, neighbour(BESIDE), m.Numbered(2, late))
    assert len(broker.table()) == 1
