"""Clients: attaching, moving, leaving, and what is refused and why."""

from __future__ import annotations

import doctest

import pytest

from gossamer.protocol.brokers import tree as broker_module
from gossamer.protocol.brokers.core import errors, messages
from gossamer.protocol.brokers.core.effects import Deliver, Refuse
from gossamer.protocol.brokers.core.identifiers import client, neighbour
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree.memory.messages import Frame, Message, SynchroniseRequest
from gossamer.protocol.content.errors import WrongValueError
from gossamer.protocol.content.filters import parse
from support.broker_overlay import row

ANY = parse("present(x)")


def refusal(broker: TreeBroker, name: str, message: Message) -> Exception:
    before = broker.dump() | {"counters": None}
    (effect,) = broker.handle(0, client(name), message)
    assert isinstance(effect, Refuse)
    assert (effect.hop, effect.message) == (client(name), message)
    assert broker.dump() | {"counters": None} == before
    return effect.error


def alone() -> TreeBroker:
    broker = TreeBroker("B", TreeSettings())
    broker.handle(0, client("ann"), messages.Attach())
    return broker


def test_the_examples_of_the_package_hold() -> None:
    assert doctest.testmod(broker_module).failed == 0


def test_a_client_is_served_by_its_own_broker() -> None:
    broker = alone()
    broker.handle(0, client("ann"), messages.Advertise("a", ANY))
    broker.handle(0, client("ann"), messages.Subscribe("s", parse("x > 1")))
    broker.handle(0, client("ann"), messages.Subscribe("t", parse("x > 0")))
    (effect,) = broker.handle(1, client("ann"), messages.Publish({"x": 2}))
    assert isinstance(effect, Deliver)
    assert (effect.client, effect.labels, effect.publication.values) == (
        "ann",
        ("s", "t"),
        {"x": 2},
    )
    assert broker.handle(2, client("ann"), messages.Publish({"x": 0})) == []


def test_a_client_attaches_once_under_its_name_and_before_it_asks() -> None:
    error = refusal(alone(), "ann", messages.Attach())
    assert isinstance(error, errors.NameTakenError)
    assert str(error) == "client 'ann' is attached already, and names are unique at a broker"
    for message in (messages.Subscribe("s", ANY), messages.Detach()):
        assert isinstance(refusal(alone(), "bob", message), errors.NotAttachedError)


def test_a_publication_needs_an_advertisement_of_its_sender_that_allows_its_values() -> None:
    broker = alone()
    broker.handle(0, client("bob"), messages.Attach(advertisements=(("a", ANY),)))
    assert isinstance(refusal(broker, "ann", messages.Publish({"x": 1})), errors.NotAdvertisedError)
    broker.handle(0, client("ann"), messages.Advertise("a", parse("x > 0")))
    for values in ({"x": 0}, {"x": 1, "y": 1}, {"x": "one"}):
        error = refusal(broker, "ann", messages.Publish(values))
        assert isinstance(error, errors.NotAdvertisedError)
        assert error.values == values
    assert str(error) == "client 'ann' has no advertisement that allows x = 'one'"
    error = refusal(broker, "bob", messages.Publish({"x": None}))
    assert isinstance(error, WrongValueError)
    assert error.attribute == "x"


@pytest.mark.parametrize(
    ("first", "unknown"),
    [
        (messages.Subscribe("l", ANY), messages.Unsubscribe("m")),
        (messages.Advertise("l", ANY), messages.Unadvertise("m")),
    ],
)
def test_labels_are_a_client_s_own_and_unique(first: Message, unknown: Message) -> None:
    broker = alone()
    broker.handle(0, client("bob"), messages.Attach())
    broker.handle(0, client("ann"), first)
    assert isinstance(refusal(broker, "ann", first), errors.LabelTakenError)
    assert isinstance(refusal(broker, "ann", unknown), errors.UnknownLabelError)
    assert broker.handle(0, client("bob"), first) == []
    twice = messages.Attach(subscriptions=(("s", ANY), ("s", parse("x > 1"))))
    assert isinstance(refusal(alone(), "bob", twice), errors.LabelTakenError)


def test_messages_come_from_where_their_kind_comes_from() -> None:
    frame = Frame(1, 1, SynchroniseRequest())
    for source, message, error in (
        (client("ann"), frame, errors.MisplacedMessageError),
        (None, frame, errors.MisplacedMessageError),
        (client("ann"), messages.Congestion(0), errors.MisplacedMessageError),
        (neighbour("N"), messages.Attach(), errors.MisplacedMessageError),
        (neighbour("N"), frame, errors.UnknownNeighbourError),
        (None, messages.NeighbourDown("N"), errors.UnknownNeighbourError),
    ):
        (effect,) = alone().handle(0, source, message)
        assert isinstance(effect, Refuse)
        assert effect.hop == source
        assert isinstance(effect.error, error)


def test_a_client_that_leaves_takes_everything_back() -> None:
    overlay = row("ABC", "x > 0")
    overlay.ask("subscriber", messages.Detach())
    overlay.ask_and_settle("publisher", messages.Detach())
    for broker in overlay.brokers.values():
        sizes = broker.sizes()
        assert (sizes.subscriptions, sizes.advertisements, sizes.clients) == (0, 0, 0)


def test_a_client_that_moves_is_told_what_to_attach_with() -> None:
    overlay = row("ABC", "x > 0")
    overlay.ask("subscriber", messages.Move())
    left = overlay.moved["subscriber"]
    assert left.subscriptions == (("s", parse("x > 0")),)
    overlay.home["subscriber"] = "B"
    overlay.ask_and_settle("subscriber", messages.Attach(left.subscriptions, left.advertisements))
    overlay.publish(1)
    assert [(name, labels) for name, _, labels in overlay.deliveries] == [("subscriber", ("s",))]
    assert overlay.brokers["C"].sizes().subscriptions == 0


def test_a_client_that_attaches_elsewhere_first_misses_nothing() -> None:
    """Both brokers serve it for a while; publications have the same identifier at both."""
    overlay = row("ABC", "x > 0")
    overlay.tell("B", client("subscriber"), messages.Attach(subscriptions=(("s", parse("x > 0")),)))
    overlay.settle()
    overlay.publish(1)
    overlay.ask_and_settle("subscriber", messages.Detach())
    overlay.publish(2)
    ids = [publication.id for _, publication, _ in overlay.deliveries]
    assert len(ids) == 3
    assert len(set(ids)) == 2
