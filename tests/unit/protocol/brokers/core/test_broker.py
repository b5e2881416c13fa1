"""What all brokers share: clients and their labels, the index, and plain forms."""

from __future__ import annotations

import gc
import json
import random

import cbor2
import pytest

from gossamer.protocol.brokers.core import errors, messages, plain
from gossamer.protocol.brokers.core.effects import Deliver, Refuse, Send
from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.core.index import compiled_index, load_compiled_rules
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.content.matching.search import search
from gossamer.protocol.content.matching.tree import insert, remove, set_marks
from support.flooding import Flooded, Flooding, FloodingBroker

ADA = client("ada")


def broker() -> FloodingBroker:
    made = FloodingBroker("B")
    assert made.handle(0, None, messages.NeighbourUp("C")) == []
    assert made.handle(0, ADA, messages.Attach((("low", parse("number < 5")),))) == []
    return made


def test_clients_are_served() -> None:
    made = broker()
    delivered, sent = made.handle(1, ADA, messages.Publish({"number": 3}))
    assert delivered == Deliver("ada", Flooded(Id("B", 1), {"number": 3}), ("low",))
    assert sent == Send("C", Flooded(Id("B", 1), {"number": 3}))
    (moved,) = made.handle(2, ADA, messages.Move())
    assert moved.subscriptions == (("low", parse("number < 5")),)  # type: ignore[union-attr]
    assert made.handle(3, neighbour("C"), Flooded(Id("C", 1), {"number": 3})) == []
    assert made.counters.received == {"Flooded": 1}


@pytest.mark.parametrize(
    ("source", "message", "error"),
    [
        (ADA, messages.Subscribe("low", parse("number > 5")), errors.LabelTakenError),
        (ADA, Flooded(Id("B", 1), {}), errors.MisplacedMessageError),
        (None, messages.Publish({"number": 3}), errors.MisplacedMessageError),
        (neighbour("D"), Flooded(Id("D", 1), {}), errors.UnknownNeighbourError),
        (neighbour("C"), Flooded(Id("C", 1), {5: 1}), errors.MalformedMessageError),  # type: ignore[dict-item]
        (ADA, messages.Subscribe("", parse("number > 5")), errors.MalformedMessageError),
    ],
)
def test_what_cannot_be_is_refused(source: object, message: object, error: type) -> None:
    made = broker()
    before = made.dump()
    (effect,) = made.handle(1, source, message)  # type: ignore[arg-type]
    assert isinstance(effect, Refuse)
    assert isinstance(effect.error, error)
    assert made.counters.refused == 1
    made.counters.refused = 0
    assert made.dump() == before


def test_a_loaded_broker_goes_on_as_the_one_that_was_dumped() -> None:
    made = broker()
    again = FloodingBroker.load(cbor2.loads(cbor2.dumps(made.dump())))
    for one in (made, again):
        one.handle(1, None, messages.Restarted())
        one.handle(2, None, messages.NeighbourUp("C"))
    publish = messages.Publish({"number": 3})
    assert again.handle(3, ADA, publish) == made.handle(3, ADA, publish)
    assert again.dump() == made.dump()


@pytest.mark.parametrize(
    "change",
    [
        {"format": 1},
        {"name": 5},
        {"next_number": -1},
        {"next_number": "many"},
        {"clients": [["ada"]]},
        {"clients": [["ada", {"low": "number <"}, {}]]},
        {"clients": [["ada", [], {}]]},
        {"timers": [[1]]},
        {"counters": {"unknown": 1}},
        {"neighbours": 5},
    ],
)
def test_what_is_no_dump_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(errors.DumpError):
        FloodingBroker.load({**broker().dump(), **change})


def test_messages_travel_as_plain_data() -> None:
    message = Flooded(Id("B", 1), {"number": 3}, 2)
    data = Flooding.codec.plain_between(message)
    assert json.loads(json.dumps(data)) == ["flooded", ["B", 1], {"number": 3}, 2]
    assert Flooding.codec.read_between(data) == message


RULES = (search, insert, remove, set_marks)
SEED = 1


def variants() -> list[int]:
    """For how many kinds of arguments each rule has been compiled."""
    return [len(rule.compiled.signatures) for rule in RULES]


def test_no_message_waits_for_the_compiler() -> None:
    load_compiled_rules()
    before = variants()
    assert min(before) > 0
    draws = random.Random(SEED)
    index = compiled_index()
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
    assert variants() == before, f"seed {SEED}"


MANY = 5_000  # more than texts were remembered of once, however many filters a broker had


def test_a_filter_is_written_once_while_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Filter] = []

    def to_text(wanted: Filter) -> str:
        written.append(wanted)
        return "x"

    monkeypatch.setattr(filters, "to_text", to_text)
    wanted = [parse(f"written_once >= {number}") for number in range(MANY)]
    for _ in range(2):
        assert [plain.plain_filter(one) for one in wanted] == ["x"] * MANY
    assert written == wanted


def test_the_text_of_a_filter_goes_with_it() -> None:
    wanted = parse("goes == 1")
    gc.collect()
    before = len(plain._texts)
    assert plain.plain_filter(wanted) == "goes == 1"
    assert len(plain._texts) == before + 1
    del wanted
    gc.collect()
    assert len(plain._texts) == before
