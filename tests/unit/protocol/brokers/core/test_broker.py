"""What all brokers share: clients and their labels, the index, plain forms, arrivals."""

from __future__ import annotations

import doctest
import gc
import random
from types import ModuleType
from typing import Any

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from gossamer import brokers
from gossamer.protocol.brokers import scot, tree
from gossamer.protocol.brokers.core import messages, plain_data
from gossamer.protocol.brokers.core import messages as errors
from gossamer.protocol.brokers.core.arrival_queue import IN_A_ROW, Arrivals
from gossamer.protocol.brokers.core.broker import compiled_index, load_compiled_rules
from gossamer.protocol.brokers.core.effects import Deliver, Refuse, Send
from gossamer.protocol.brokers.core.messages import Hop, Id, client, neighbour
from gossamer.protocol.brokers.graph import codec as graph_codec
from gossamer.protocol.brokers.graph import messages as keywords
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.content.matching import index as matching_index
from gossamer.protocol.content.matching.search import search
from gossamer.protocol.content.matching.tree import insert, remove, set_marks
from support.broker_families import FAMILIES
from support.flooding import Flooded, FloodingBroker

ADA = client("ada")


def broker() -> FloodingBroker:
    made = FloodingBroker("B")
    assert made.handle(0, None, messages.NeighbourUp("C")) == []
    assert made.handle(0, ADA, messages.Attach((("low", parse("number < 5")),))) == []
    return made


def test_clients_are_served_under_their_own_labels_and_unique_names() -> None:
    made = broker()
    delivered, sent = made.handle(1, ADA, messages.Publish({"number": 3}))
    assert delivered == Deliver("ada", Flooded(Id("B", 1), {"number": 3}), ("low",))
    assert sent == Send("C", Flooded(Id("B", 1), {"number": 3}))
    (moved,) = made.handle(2, ADA, messages.Move())
    assert moved.subscriptions == (("low", parse("number < 5")),)  # type: ignore[union-attr]
    assert made.handle(3, C, Flooded(Id("C", 1), {"number": 3})) == []
    assert made.counters.received == {"Flooded": 1}
    (refused,) = made.handle(4, C, Flooded(Id("C", 1), {5: 1}))  # type: ignore[dict-item]
    assert isinstance(refused, Refuse)
    assert isinstance(refused.error, errors.MalformedMessageError)
    made = broker()
    made.handle(0, BOB, messages.Attach())
    for message in (messages.Subscribe("low", ANY), messages.Advertise("low", ANY)):
        assert made.handle(0, BOB, message) == []
    (refused,) = made.handle(0, ADA, messages.Attach())
    assert str(refused.error) == (  # type: ignore[union-attr]
        "client 'ada' is attached already, and names are unique at a broker"
    )


ANY, TWICE = parse("present(x)"), (("s", parse("x > 0")), ("s", parse("x > 1")))
BOB, C, STRANGER = client("bob"), neighbour("C"), neighbour("D")


@pytest.mark.parametrize(
    ("source", "message", "words"),
    [
        (ADA, messages.Attach(), "is attached already"),
        (BOB, messages.Detach(), "is not attached"),
        (BOB, messages.Subscribe("s", ANY), "is not attached"),
        (BOB, messages.Unsubscribe("s"), "is not attached"),
        (BOB, messages.Publish({"x": 1}), "is not attached"),
        (BOB, messages.Attach(TWICE), "labelled"),
        (ADA, messages.Subscribe("s", ANY), "labelled"),
        (ADA, messages.Advertise("a", ANY), "labelled"),
        (ADA, messages.Unsubscribe("a"), "has no"),
        (ADA, messages.Unadvertise("s"), "has no"),
        (ADA, messages.Subscribe("", ANY), "subscribe: label is"),
        (None, messages.Attach(), "came from"),
        (C, messages.Attach(), "came from"),
        (None, messages.Publish({"x": 1}), "came from"),
        (C, messages.NeighbourDown("C"), "came from"),
        (ADA, "from_neighbour", "came from"),
        (None, "from_neighbour", "came from"),
        (ADA, "from_host", "came from"),
        (STRANGER, "from_neighbour", "is no neighbour"),
        (None, messages.NeighbourDown("D"), "is no neighbour"),
    ],
)
@pytest.mark.parametrize("family", ["flooding", "tree", "SCOT", "graph"])
def test_what_cannot_be_is_refused_and_counted_and_changes_nothing(
    family: str, source: Hop | None, message: Any, words: str
) -> None:
    one = FAMILIES[family]
    made = one.broker(messages.Attach((("s", ANY),), (("a", ANY),)))
    before = made.dump()
    if isinstance(message, str):
        message = getattr(one, message)
    (effect,) = made.handle(1, source, message)
    assert isinstance(effect, Refuse)
    assert words in str(effect.error)
    assert (effect.hop, effect.message) == (source, message)
    assert made.counters.refused == 1
    made.counters.refused = 0
    assert made.dump() == before


@pytest.mark.parametrize(
    "change",
    [
        *({"format": 1}, {"name": 5}, {"next_number": -1}, {"next_number": "many"}),
        *({"clients": [one]} for one in (["ada"], ["ada", {"low": "number <"}, {}])),
        {"clients": [["ada", [], {}]]},
        *({"timers": [[1]]}, {"counters": {"unknown": 1}}, {"neighbours": 5}),
    ],
)
def test_what_is_no_dump_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(errors.DumpError):
        FloodingBroker.load({**broker().dump(), **change})


@pytest.mark.parametrize(
    "documented",
    [graph_codec, keywords, scot, tree, brokers, filters, matching_index],
    ids=lambda one: one.__name__,
)
def test_the_examples_in_the_documentation_are_true(documented: ModuleType) -> None:
    found = doctest.testmod(documented)
    assert found.failed == 0
    assert found.attempted > (5 if documented is brokers else 0)


RULES = (search, insert, remove, set_marks)
SEED = 1


def test_no_message_waits_for_the_compiler() -> None:
    load_compiled_rules()
    before = [len(rule.compiled.signatures) for rule in RULES]
    assert min(before) > 0
    draws, index = random.Random(SEED), compiled_index()
    places = []
    for number in range(300):
        low = draws.randrange(100)
        text = draws.choice([f"x > {low} and x < {low + 9}", f'y == "a{number}"', f"z <= {low}.5"])
        wanted = parse(text)
        if index.place_of(wanted) is None:
            places.append(index.add(wanted, draws.choice([1, 2, 3])))
        index.covering(wanted, 3)
        index.covered_by(wanted, 3)
        index.meeting(wanted, 3)
        index.met_by(wanted, 3)
        index.directions(wanted, 3, 1)
        index.reach({"x": draws.randrange(110), "z": 3, "y": "a7"}, 3, 1)
    for place in places:
        index.mark(place, 7, 2, 7)
        index.remove(place)
    assert [len(rule.compiled.signatures) for rule in RULES] == before, f"seed {SEED}"


MANY = 5_000  # more than texts were remembered of once, however many filters a broker had


def test_a_filter_is_written_once_and_its_text_goes_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lone = parse("goes == 1")
    gc.collect()
    before = len(plain_data._texts)
    assert (plain_data.plain_filter(lone), len(plain_data._texts)) == ("goes == 1", before + 1)
    del lone
    gc.collect()
    assert len(plain_data._texts) == before
    written: list[Filter] = []

    def to_text(wanted: Filter) -> str:
        written.append(wanted)
        return "x"

    monkeypatch.setattr(filters, "to_text", to_text)
    wanted = [parse(f"written_once >= {number}") for number in range(MANY)]
    for _ in range(2):
        assert [plain_data.plain_filter(one) for one in wanted] == ["x"] * MANY
    assert written == wanted


# Publications go before what others sent, and after what their own sender and the host did.


SENDERS = {"a": ADA, "n": neighbour("north"), "s": neighbour("south"), "h": None}
"""What comes is written as its sender, a client, a neighbour or the host, its number, and an
exclamation mark if it is published: n1 s2!"""
FIRST, NEXT = (
    " ".join(f"s{number}!" for number in range(begin, begin + IN_A_ROW))
    for begin in (IN_A_ROW, 2 * IN_A_ROW)
)


@frozen
class Came:
    word: str


def message_of(word: str) -> object:
    known = {"hdown": messages.NeighbourDown("north"), "htimer": messages.TimerFired("pace", 1)}
    return known.get(word) or Came(word)


def is_published(message: object) -> bool:
    return isinstance(message, Came) and message.word.endswith("!")


def add(inputs: Arrivals[str], *words: str) -> Arrivals[str]:
    for word in words:
        inputs.add(SENDERS[word[0]], message_of(word), word)
    return inputs


def popped(inputs: Arrivals[str]) -> list[str]:
    return [inputs.pop() for _ in range(len(inputs))]


@pytest.mark.parametrize(
    ("came", "expected"),
    [
        ("n1 n2 s3!", "s3! n1 n2"),  # a publication goes before what others sent,
        ("n1 s2 s3!", "n1 s2 s3!"),  # not before what its own sender did,
        ("n1 hdown s3!", "n1 hdown s3!"),  # nor the host,
        ("htimer s1!", "s1! htimer"),  # but before a timer,
        # and what is older gets its turn among many of them.
        (f"n1 n2 {FIRST} {NEXT} s0!", f"{FIRST} n1 {NEXT} n2 s0!"),
    ],
)
def test_publications_go_first(came: str, expected: str) -> None:
    inputs = add(Arrivals(is_published), *came.split())
    assert popped(inputs) == expected.split()
    add(inputs, "n4", "s5!").add_before_all("congestion")
    assert popped(inputs) == ["congestion", "s5!", "n4"]


def test_others_keep_the_order_in_which_they_came_and_publications_wait_apart() -> None:
    told = ["n1", "s2!", "hdown", "a3!"]
    assert popped(add(Arrivals(), *told)) == told
    inputs = add(Arrivals(is_published), "n1", "n2")
    for word, before in (("s3", 2), ("s3!", 0), ("n3!", 2)):
        assert inputs.waiting_where(SENDERS[word[0]], message_of(word)) == before


steps = st.lists(st.none() | st.tuples(st.sampled_from("ansh"), st.booleans()), max_size=60)


@given(steps)
def test_messages_of_a_sender_keep_their_order(taken: list[tuple[str, bool] | None]) -> None:
    """None takes the next message out; a pair has one come, of a sender, published or not."""
    inputs: Arrivals[str] = Arrivals(is_published)
    came, went = list[str](), list[str]()
    for number, step in enumerate(taken):
        if step is None:
            went += [inputs.pop()] if len(inputs) else []
            continue
        sender, first = step
        came.append(f"{sender}{number}{'!' * first}")
        add(inputs, came[-1])
    went += popped(inputs)
    assert sorted(went, key=came.index) == came
    for one in "ans":  # what the host said keeps its place among all of them
        senders = (one, "h")
        assert [w for w in went if w[0] in senders] == [w for w in came if w[0] in senders]
