"""A broker takes whatever frames its neighbours may make up, and goes on."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.core import messages as m
from gossamer.protocol.brokers.core.effects import Send
from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree.codec import plain_frame, read_frame
from gossamer.protocol.brokers.tree.memory import messages as t
from gossamer.protocol.content import filters
from support.broker_messages import between_brokers
from support.draws import one_in
from support.plain_index import PlainIndex

NAMES = ("A", "B", "C")
# Few identifiers, so that frames are about what there is.
ids = st.builds(Id, st.sampled_from(NAMES), st.integers(0, 6))


def about_few(message: t.BetweenBrokers, draw: st.DataObject) -> t.BetweenBrokers:
    if isinstance(message, t.Packed):
        return t.Packed(tuple(about_few(one, draw) for one in message.messages))  # type: ignore[misc]
    if isinstance(message, t.Synchronise):
        return t.Synchronise(
            tuple(about_few(one, draw) for one in message.advertisements),  # type: ignore[misc]
            tuple(about_few(one, draw) for one in message.subscriptions),  # type: ignore[misc]
        )
    if isinstance(message, t.Publication):
        return evolve(message, id=draw.draw(ids), advertisement=draw.draw(ids))
    if isinstance(message, t.Unsubscription) and message.critical is not None:
        critical = tuple(evolve_tuple(one, draw) for one in message.critical)
        return evolve(message, id=draw.draw(ids), critical=critical)
    if isinstance(message, t.Advertisement | t.Unadvertisement | t.Subscription | t.Unsubscription):
        return evolve(message, id=draw.draw(ids))
    return message


def evolve_tuple(one: t.CriticalDistance, draw: st.DataObject) -> t.CriticalDistance:
    return one._replace(advertisement=draw.draw(ids))


@pytest.mark.parametrize("covering", ["off", "packed", "selective", "incremental"])
@one_in(2)
@given(data=st.data())
def test_made_up_frames_neither_stop_a_broker_nor_go_on(covering: str, data: st.DataObject) -> None:
    made = TreeSettings(covering=covering, retained_publications=5, congested_queue=3)
    broker = TreeBroker("A", made, new_index=PlainIndex)
    broker.handle(0, None, m.NeighbourUp("B"))
    broker.handle(0, None, m.NeighbourUp("C"))
    broker.handle(0, client("ada"), m.Attach())
    broker.handle(0, client("ada"), m.Subscribe("all", filters.parse("present(n)")))
    broker.handle(0, client("ada"), m.Advertise("all", filters.parse("n >= 0 and present(s)")))
    numbers = dict.fromkeys(("B", "C"), 0)
    for step in range(data.draw(st.integers(1, 12))):
        name = data.draw(st.sampled_from(("B", "C")))
        numbers[name] += data.draw(st.integers(0, 2))
        message = about_few(data.draw(between_brokers), data)
        frame = t.Frame(data.draw(st.sampled_from((0, 0, 0, 1))), numbers[name], message)
        effects = broker.handle(step, neighbour(name), frame)
        for effect in effects:
            if isinstance(effect, Send):
                assert read_frame(plain_frame(effect.message)) == effect.message
    again = TreeBroker.load(broker.dump(), made, new_index=PlainIndex)
    assert again.dump() == broker.dump()
