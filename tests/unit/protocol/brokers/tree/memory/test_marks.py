"""Marks of neighbours, and questions that are answered for several of them at once."""

from __future__ import annotations

from gossamer.protocol.brokers.core.effects import Effect, Send
from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.core.messages import Attach, NeighbourUp, Subscribe
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree.memory import marks as memory_marks
from gossamer.protocol.brokers.tree.memory.messages import (
    Advertisement,
    Frame,
    Subscription,
    Synchronise,
    Unsubscription,
)
from gossamer.protocol.content.filters import Filter, parse
from support.plain_index import PlainIndex

NAMES = ("P", "Q", "R")


def test_neighbours_have_marks_of_their_own_until_none_are_left() -> None:
    marks = memory_marks.Marks()
    names = [f"N{number}" for number in range(memory_marks.OWN_MARKS + 2)]
    for name in names:
        marks.assign(name)
    own, sharing = names[: memory_marks.OWN_MARKS], names[memory_marks.OWN_MARKS :]
    for ask, shared, every in (
        (lambda name: marks.came(neighbour(name)), memory_marks.LISTED, memory_marks.ALL_CAME),
        (marks.sent, memory_marks.SENT_SOMEWHERE, memory_marks.ALL_SENT),
        (marks.offered, memory_marks.OFFERED_SOMEWHERE, memory_marks.ALL_OFFERED),
    ):
        given = {name: ask(name) for name in own}
        assert len(set(given.values())) == memory_marks.OWN_MARKS
        assert all(mark & every == mark and mark != shared for mark in given.values())
        assert [ask(name) for name in sharing] == [shared, shared]
        assert list(marks.names(given["N1"] | given["N5"] | shared)) == ["N1", "N5"]
    assert marks.came(client("N1")) == memory_marks.LISTED


def test_marks_of_a_neighbour_that_is_gone_go_to_the_next() -> None:
    marks = memory_marks.Marks()
    for name in "AB":
        marks.assign(name)
    freed = marks.sent("A")
    marks.forget("A")
    assert marks.sent("A") == memory_marks.SENT_SOMEWHERE
    marks.assign("C")
    assert marks.sent("C") == freed
    assert list(marks.names(freed)) == ["C"]


class CountingIndex(PlainIndex):
    """Counts questions."""

    asked = 0

    def covering(self, wanted: Filter, marked: int) -> set[int]:
        """As the plain index, counted."""
        CountingIndex.asked += 1
        return super().covering(wanted, marked)


def hub() -> TreeBroker:
    """A broker with advertisements from three neighbours, and a client."""
    broker = TreeBroker("B", TreeSettings(covering="active"), new_index=CountingIndex)
    for name in NAMES:
        broker.handle(0, None, NeighbourUp(name))
        offer = Advertisement(Id(name, 1), parse("present(x)"))
        broker.handle(0, neighbour(name), Frame(1, 1, Synchronise((offer,), ())))
    broker.handle(0, client("c"), Attach())
    return broker


def subscribed(effects: list[Effect]) -> list[str]:
    """To whom subscriptions go."""
    return [
        effect.neighbour
        for effect in effects
        if isinstance(effect, Send) and isinstance(effect.message.message, Subscription)
    ]


def test_links_are_asked_about_together_and_answered_each_for_itself() -> None:
    broker = hub()
    wide = Subscription(Id("P", 2), parse("x >= 1"))
    assert subscribed(broker.handle(0, neighbour("P"), Frame(1, 2, wide))) == ["Q", "R"]
    CountingIndex.asked = 0
    assert subscribed(broker.handle(0, client("c"), Subscribe("s", parse("x >= 2")))) == ["P"]
    assert CountingIndex.asked == 1
    effects = broker.handle(0, neighbour("P"), Frame(1, 3, Unsubscription(wide.id)))
    assert subscribed(effects) == ["Q", "R"]


def test_what_is_answered_for_a_link_is_asked_again_once_it_sent_something() -> None:
    broker = hub()
    wanted = parse("x >= 1")
    assert subscribed(broker.handle(0, client("c"), Subscribe("s", wanted))) == list(NAMES)
    assert subscribed(broker.handle(0, client("c"), Subscribe("t", wanted))) == []
