"""Publications go before what others sent, and after what their own sender and the host did."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.arrivals import IN_A_ROW, Arrivals
from gossamer.protocol.brokers.core.identifiers import Hop, client, neighbour
from gossamer.protocol.brokers.core.messages import Congestion, NeighbourDown, TimerFired

ADA, NORTH, SOUTH = client("ada"), neighbour("north"), neighbour("south")
DOWN, TIMER = NeighbourDown("north"), TimerFired("pace", 1)


@frozen
class Numbered:
    number: int
    is_published: bool = False


Came = tuple[Hop | None, Numbered]


def is_published(message: object) -> bool:
    return isinstance(message, Numbered) and message.is_published


def published(number: int) -> Numbered:
    return Numbered(number, is_published=True)


def popped(inputs: Arrivals[object]) -> list[object]:
    return [inputs.pop() for _ in range(len(inputs))]


def filled(*pairs: tuple[Hop | None, object]) -> Arrivals[object]:
    inputs: Arrivals[object] = Arrivals(is_published)
    for source, message in pairs:
        inputs.add(source, message, message)
    return inputs


def test_a_publication_goes_before_what_others_sent() -> None:
    inputs = filled((NORTH, Numbered(1)), (NORTH, Numbered(2)), (SOUTH, published(3)))
    assert popped(inputs) == [published(3), Numbered(1), Numbered(2)]


def test_without_such_messages_all_keep_the_order_in_which_they_came() -> None:
    inputs: Arrivals[object] = Arrivals()
    told = [Numbered(1), published(2), DOWN, published(3)]
    for source, message in zip((NORTH, SOUTH, None, ADA), told, strict=True):
        inputs.add(source, message, message)
    assert popped(inputs) == told


@pytest.mark.parametrize("source", [SOUTH, None])
def test_a_publication_stays_behind_its_own_sender_and_behind_the_host(source: Hop | None) -> None:
    earlier = DOWN if source is None else Numbered(2)
    inputs = filled((NORTH, Numbered(1)), (source, earlier), (SOUTH, published(3)))
    assert popped(inputs) == [Numbered(1), earlier, published(3)]
    inputs.add(NORTH, Numbered(4), Numbered(4))
    inputs.add(SOUTH, published(5), published(5))
    assert popped(inputs) == [published(5), Numbered(4)]


def test_a_timer_holds_nothing_up() -> None:
    assert popped(filled((None, TIMER), (SOUTH, published(1)))) == [published(1), TIMER]


def test_congestion_goes_before_all() -> None:
    inputs = filled((NORTH, Numbered(1)), (SOUTH, published(2)))
    inputs.add_before_all(Congestion(2))
    assert popped(inputs) == [Congestion(2), published(2), Numbered(1)]


def test_what_is_older_gets_its_turn_among_many_publications() -> None:
    many = [published(number) for number in range(2 * IN_A_ROW + 1)]
    inputs = filled((NORTH, Numbered(-2)), (NORTH, Numbered(-1)), *((SOUTH, one) for one in many))
    expected: list[object] = [*many[:IN_A_ROW], Numbered(-2), *many[IN_A_ROW:-1], Numbered(-1)]
    assert popped(inputs) == [*expected, many[-1]]


def test_publications_wait_in_a_place_of_their_own() -> None:
    inputs = filled((NORTH, Numbered(1)), (NORTH, Numbered(2)))
    assert inputs.waiting_where(SOUTH, Numbered(3)) == 2
    assert inputs.waiting_where(SOUTH, published(3)) == 0
    assert inputs.waiting_where(NORTH, published(3)) == 2


sources = st.sampled_from([None, ADA, NORTH, SOUTH])
steps = st.lists(st.one_of(st.none(), st.tuples(sources, st.booleans())), max_size=60)


@given(steps)
def test_messages_of_a_source_keep_their_order(
    taken: Sequence[tuple[Hop | None, bool] | None],
) -> None:
    """None takes the next message out; a pair has one come, of a source, published or not."""
    inputs: Arrivals[Came] = Arrivals(is_published)
    came: list[Came] = []
    went: list[Came] = []
    for number, step in enumerate(taken):
        if step is None:
            went += [inputs.pop()] if len(inputs) else []
            continue
        source, first = step
        came.append((source, Numbered(number, first)))
        inputs.add(*came[-1], came[-1])
    went += [inputs.pop() for _ in range(len(inputs))]
    assert sorted(went, key=came.index) == came
    for source in (ADA, NORTH, SOUTH):  # what the host said keeps its place among all of them
        assert _of(source, went) == _of(source, came)


def _of(source: Hop, messages: Sequence[Came]) -> list[Numbered]:
    return [message for sender, message in messages if sender in (source, None)]
