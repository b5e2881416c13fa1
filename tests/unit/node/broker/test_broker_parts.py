"""Parts of a node that is a broker: frames in parts, the journal, content, options of a SCOT."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import cbor2
import pytest
import trio

from gossamer.command.main import main
from gossamer.node import errors
from gossamer.node.broker.composites import Content, check_label
from gossamer.node.broker.contract import wire
from gossamer.node.broker.contract.host import FamilyHost
from gossamer.node.broker.contract.wire import OVERLAY_FRAMES, BrokerFrames, encode_parts
from gossamer.node.broker.engine import journal as journal_module
from gossamer.node.broker.engine.journal import Entry, StoredJournal, recall
from gossamer.node.broker.families.scot.host import ScotHost
from gossamer.node.broker.families.tree.host import TreeHost
from gossamer.node.broker.node import family_of
from gossamer.node.broker.session import read_id
from gossamer.node.cli.starting import read_plain_run
from gossamer.node.commands.clients.event_text import event_of_arguments, event_of_line
from gossamer.node.config.file import load_config, parse_setting
from gossamer.node.store.broker import QueuedDelivery
from gossamer.node.store.writer import StoreWriter, open_writer
from gossamer.node.transport.base.frames import FrameReader
from gossamer.node.transport.base.limits import Limits
from gossamer.protocol.brokers import scot
from gossamer.protocol.brokers.core import messages as m
from gossamer.protocol.brokers.core.errors import MalformedMessageError
from gossamer.protocol.brokers.core.messages import Id, client, neighbour
from gossamer.protocol.brokers.core.routing import FilterIndex, NewIndex, SharedIndex
from gossamer.protocol.brokers.scot.memory.messages import Numbered, Promised
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings, messages
from gossamer.protocol.brokers.tree.codec import CODEC
from gossamer.protocol.content import filters
from gossamer.protocol.content.errors import ContentError
from gossamer.protocol.content.schema import FloatAttribute, Schema
from gossamer.protocol.kernel.errors import ConfigError, ExpressionError
from support.installed_command import install, refused
from support.plain_index import PlainIndex

SETTINGS = TreeHost(TreeSettings(covering="active", retained_publications=10))


# Frames


LONG = filters.parse('symbol == "' + "x" * 3000 + '" and price > 1')


def long_frame(session: int) -> messages.Frame:
    told = tuple(messages.Subscription(Id("B", number), LONG) for number in range(200))
    return messages.Frame(session, 1, messages.Synchronise((), told))


def parts_of(frame: messages.Frame) -> list[dict[str, object]]:
    reader = FrameReader(Limits())
    for part in encode_parts(frame.session, CODEC.plain_between(frame)):
        reader.feed(part)
    found = list(reader)
    for one in found:
        OVERLAY_FRAMES.check(one)
    return found


def test_a_long_message_travels_in_parts_and_those_of_an_earlier_session_are_left_out() -> None:
    frames = BrokerFrames(CODEC.read_between)
    old, new = (parts_of(long_frame(n)) for n in (5, 6))
    assert len(old) > 2
    for part in (*old[:2], *new[:1], *old[2:], *new[1:-1]):
        assert frames.take(part) is None
    assert frames.take(new[-1]) == long_frame(6)


def test_a_message_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MESSAGE_BYTES", 1000)
    frames = BrokerFrames(CODEC.read_between)
    part = {"type": "broker", "session": 1, "part": bytes(400), "last": False}
    assert frames.take(part) is None
    assert frames.take(part) is None
    with pytest.raises(errors.BadFrame, match="at most 1000 bytes in all"):
        frames.take(part)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "unreadable"),
        (b"\xff", "unreadable"),
        (b"\x83\x01\x02", "unreadable"),
        (cbor2.dumps([1, 2, "packed", []]) + b"\x00", "nothing after the message"),
        (cbor2.dumps([[[[[[[[[[1]]]]]]]]]]), "unreadable"),
        (cbor2.dumps([0] * 100_000), "more values"),
        (cbor2.dumps([1, 2, "packed", [cbor2.CBORTag(1, 1)]]), "unreadable"),
    ],
)
def test_bytes_that_are_no_message_are_refused(body: bytes, words: str) -> None:
    part = {"type": "broker", "session": 1, "part": body, "last": True}
    with pytest.raises((errors.BadFrame, MalformedMessageError), match=words):
        BrokerFrames(CODEC.read_between).take(part)


# The journal


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[StoreWriter]:
    async with open_writer(tmp_path / "state.db") as opened:
        yield opened


async def recalled(
    writer: StoreWriter, settings: FamilyHost = SETTINGS, large_index: NewIndex = PlainIndex
) -> Any:
    found = await recall(
        writer, "B1", settings, now=5, incarnation=7, new_index=SharedIndex, large_index=large_index
    )
    assert found.now >= 5
    return found.broker


async def begun(writer: StoreWriter) -> tuple[TreeBroker, StoredJournal]:
    """A broker that knows nothing yet, and its journal, which says so."""
    broker, journal = await recalled(writer), StoredJournal(writer, SETTINGS)
    await journal.dump(broker, 0)
    return broker, journal


async def tell(broker: Any, journal: StoredJournal, entries: Sequence[Entry]) -> None:
    for entry in entries:
        broker.handle(entry.now, entry.source, entry.message)
    await journal.keep(entries, [])


async def play(broker: TreeBroker, journal: StoredJournal, first: int, count: int) -> None:
    for number in range(first, first + count):
        wanted = filters.parse(f"price > {number}")
        for message in (m.Subscribe(f"s{number}", wanted), m.Publish({"price": number + 1})):
            now, source = 1000 * number, client("ada")
            broker.handle(now, source, message)
            await journal.keep([Entry(now, source, message)], [QueuedDelivery("ada", b"x")])


@pytest.mark.trio
async def test_what_was_told_since_the_dump_is_told_again(writer: StoreWriter) -> None:
    broker, journal = await begun(writer)
    entries = [
        Entry(1, None, m.NeighbourUp("B2")),
        Entry(2, client("ada"), m.Attach()),
        Entry(3, client("ada"), m.Advertise("all", filters.parse("price >= 0"))),
    ]
    await tell(broker, journal, entries)
    await play(broker, journal, 1, 10)
    assert (await recalled(writer)).dump() == broker.dump()
    await journal.dump(broker, 20_000)
    await play(broker, journal, 11, 5)
    assert journal.since_dump == 10
    assert (await recalled(writer)).dump() == broker.dump()
    assert await writer.run(lambda store: store.broker.waiting()) == {"ada": 30}


@pytest.mark.trio
async def test_large_tables_get_the_index_for_them(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[FilterIndex] = []

    def large() -> FilterIndex:
        made.append(PlainIndex())
        return made[-1]

    monkeypatch.setattr(journal_module, "LARGE_TABLE", 3)
    broker, journal = await recalled(writer), StoredJournal(writer, SETTINGS)
    broker.handle(1, client("ada"), m.Attach())
    for number in (1, 2, 3):
        broker.handle(2, client("ada"), m.Subscribe(f"s{number}", filters.parse("x > 1")))
        await journal.dump(broker, 3)
        await recalled(writer, large_index=large)
        assert bool(made) is (number == 3)


@pytest.mark.trio
async def test_a_dump_is_due_when_the_log_is_long_for_the_tables(writer: StoreWriter) -> None:
    broker, journal = await begun(writer)
    entry = Entry(1, client("ada"), m.Attach())
    await journal.keep([entry] * 499, [])
    async with trio.open_nursery() as nursery:
        await journal.dump_if_due(broker, 2, nursery)
    assert journal.since_dump == 499
    await journal.keep([entry], [])
    async with trio.open_nursery() as nursery:
        await journal.dump_if_due(broker, 2, nursery)
        await journal.keep([entry], [])
    assert journal.since_dump == 1


@pytest.mark.trio
async def test_other_settings_and_another_covering_apply_from_now_on(writer: StoreWriter) -> None:
    broker, journal = await begun(writer)
    more = TreeHost(TreeSettings(covering="active", retained_publications=20))
    advertised = messages.Advertisement(Id("B2", 1), filters.parse("present(x)"))
    assert (await recalled(writer, more)).dump() == broker.dump()
    told = [
        Entry(1, None, m.NeighbourUp("B2")),
        Entry(2, neighbour("B2"), messages.Frame(1, 1, messages.Synchronise((advertised,), ()))),
        Entry(3, client("ada"), m.Attach()),
        *(
            Entry(4, client("ada"), m.Subscribe(f"s{n}", filters.parse(f"x > {10 - n}")))
            for n in range(3)
        ),
    ]
    await tell(broker, journal, told)
    assert broker.sizes().sent == 1
    for covering, sent in (("off", 3), ("lazy", 1), ("off", 3)):
        other = TreeHost(TreeSettings(covering=covering))
        assert (await recalled(writer, other)).sizes().sent == sent
    changed = TreeHost(TreeSettings(covering="off"))
    await StoredJournal(writer, changed).dump(await recalled(writer, changed), 5)
    assert (await recalled(writer, changed)).sizes().sent == 3
    assert (await recalled(writer)).sizes().sent == 1


@pytest.mark.trio
async def test_what_is_no_broker_is_not_recalled(writer: StoreWriter) -> None:
    number = await writer.run(lambda store: store.broker.begin_dump())
    await writer.run(lambda store: store.broker.add_to_dump(number, b"\x80"))
    assert (await recalled(writer)).name == "B1"
    await writer.run(lambda store: store.broker.finish_dump(number))
    with pytest.raises(errors.StoreError, match="holds no broker"):
        await recalled(writer)
    await StoredJournal(writer, SETTINGS).dump(TreeBroker("B9", SETTINGS.of), 0)
    with pytest.raises(errors.StoreError, match="holds broker B9, expected B1"):
        await recalled(writer)


@pytest.mark.trio
async def test_the_oldest_letters_make_room(writer: StoreWriter) -> None:
    deliveries = [QueuedDelivery("ada", bytes([n])) for n in range(5)]
    deliveries.append(QueuedDelivery("bob", b"b"))
    await writer.run(lambda store: store.broker.enqueue(deliveries))
    assert await writer.run(lambda store: store.broker.drop_oldest("ada", 2)) == 2
    kept = await writer.run(lambda store: store.broker.queued("ada", 0, 10))
    assert [delivery.body for delivery in kept] == [b"\x02", b"\x03", b"\x04"]
    done = await writer.run(lambda store: store.broker.acknowledge("ada", kept[1].position))
    assert done == 2
    assert await writer.run(lambda store: store.broker.waiting()) == {"ada": 1, "bob": 1}


# What clients write


def test_content_may_be_bound_to_the_clusters_schema() -> None:
    schema = Schema([FloatAttribute("price", 0, 100)])
    bound, free = Content(schema), Content()
    assert free.filter("[class,eq,'STOCK'],[price,>,80]") is not None
    with pytest.raises(ExpressionError, match="there is no attribute 'class'"):
        bound.filter("[class,eq,'STOCK']")
    with pytest.raises(ExpressionError, match=r"'price' takes a number.*, not the string"):
        bound.filter('price > "high"')
    with pytest.raises(ContentError, match=r"'price' takes a number.*, not the string"):
        bound.publication({"price": "high"})
    assert free.publication({"price": "high", "ok": True}) == {"price": "high", "ok": True}
    with pytest.raises(errors.RequestError, match="values holds"):
        free.publication({"price": ["number", "x"]})


def test_labels_are_short_and_identifiers_a_key_and_a_number() -> None:
    for label in ("", "x" * 65, "a\nb"):
        with pytest.raises(errors.RequestError, match="a label has 1 to 64 printable char"):
            check_label(label)
    assert read_id("00ff:17") == Id("00ff", 17)
    for text in ("", "17", ":17", "00ff:", "00ff:x", "00ff:\N{SUPERSCRIPT TWO}"):
        with pytest.raises(errors.RequestError, match="expected a broker's key"):
            read_id(text)


def test_arguments_describe_a_publication_of_anything() -> None:
    said = event_of_arguments(None, ["symbol=IBM", "price=81.5", "open=true", 'code="7"', "n=1/3"])
    assert said == {"symbol": "IBM", "price": 81.5, "open": True, "code": "7", "n": Fraction(1, 3)}
    assert said["open"] is True
    whole = {"symbol": "IBM", "price": 81.5}
    assert event_of_arguments(None, ['symbol = "IBM", price = 81.5']) == whole
    assert event_of_arguments(None, ["[symbol,'IBM'],[price,81.5]"]) == whole
    assert event_of_line(None, '{"symbol": "IBM", "price": 81.5}', 1) == whole
    for bad in (["price"], ["price=1", "price=2"], ["[price,1"]):
        with pytest.raises(errors.EventInputError):
            event_of_arguments(None, bad)
    with pytest.raises(errors.EventInputError, match="line 3: "):
        event_of_line(None, '{"price": [1]}', 3)


SCOT = scot.Scot(scot.Factor.path("ab"), scot.Factor.complete(2))
HERE = SCOT.position(scot.BrokerLabel("a", 0))
TAKING_OVER = scot.ScotSettings(around_failures=True, take_over=True)
RUN = ("--role", "broker", "--overlay", "scot", "--clusters", "3")
TREE = ("--edge", "a-b", "--edge", "b-c")


# Options


def configured(*options: str) -> ScotHost:
    _, changes = read_plain_run(["run", "x", *RUN, *options]) or ([], [])
    config = load_config(None, flags=dict(map(parse_setting, changes)), environment={}).config
    found = family_of(config)
    assert isinstance(found, ScotHost)
    return found


def test_options_say_where_a_broker_is_and_what_goes_beyond_the_paper() -> None:
    kind = configured(*TREE, "--region", "b", "--cluster=2", "--set", "scot.routing=static")
    larger = scot.Scot(scot.Factor.path("abc"), scot.Factor.complete(3))
    assert kind.position == larger.position(scot.BrokerLabel("b", 2))
    assert kind.of == scot.ScotSettings(routing="static")
    assert kind.overlay == "3 clusters of a-b b-c, static or dynamic routing"
    # Overlays are the same however their edges are written.
    other = configured("--edge", "c-b", "--edge", "b-a", "--region", "a")
    assert other.overlay == configured(*TREE, "--region", "c", "--cluster", "1").overlay
    names = ("input_queues", "own_threshold", "around_failures", "take_over", "covering")
    chosen = [word for name in names for word in ("--set", f"scot.{name}=true")]
    kind = configured(*TREE, "--region", "b", *chosen)
    assert kind.of == scot.ScotSettings(**dict.fromkeys(names, True))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ("scot.routing=static", True),
        ("scot.around_failures=true", True),
        ("scot.routing=bid", False),
        ("scot.clusters=4", False),
    ],
)
def test_only_what_brokers_have_to_agree_on_makes_another_overlay(change: str, same: bool) -> None:
    here = (*TREE, "--region", "a")
    assert (configured(*here).overlay == configured(*here, "--set", change).overlay) is same


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((*TREE,), "scot.region is '', expected the region of this broker, one of a, b, c"),
        ((*TREE, "--region", "d"), "region of B(d,0) is 'd', expected one of a, b, c"),
        ((*TREE, "--region", "a", "--cluster", "3"), "is 3, expected a number from 0 to 2"),
        ((*TREE, "--edge", "a-c", "--region", "a"), "this edge closes a cycle"),
        (("--edge", "a-b", "--edge", "c-d", "--region", "a"), "no path leads there from 'a'"),
        (("--edge", "ab", "--region", "a"), "scot.edges is 'ab', expected two regions such as"),
        (("--region", "a", "--set", "scot.routing=fast"), "expected one of bid, static, dynamic"),
        (("--region", "a", "--set", "scot.take_over=true"), "around_failures with static or dyn"),
        (("--region", "a", "--set", "scot.threshold=-1"), "expected a number of at least 0"),
        (("--region", "a", "--set", "scot.window_s=0"), "expected a number of seconds"),
    ],
)
def test_what_has_no_place_is_said_in_a_sentence(options: tuple[str, ...], words: str) -> None:
    with pytest.raises((ConfigError, errors.ConfigurationError)) as caught:
        configured(*options)
    assert words in str(caught.value)


def test_the_command_ends_with_that_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path / "installed", monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert main(["node", "init", "demo", "--peers", "1"]) == 0
    capsys.readouterr()
    told = refused(capsys, "node", "run", "demo", *RUN, *TREE, "--region", "a", "--cluster", "7")
    assert "cluster of B(a,7) is 7, expected a number from 0 to 2" in told


@pytest.mark.trio
async def test_a_broker_of_a_scot_is_recalled_with_its_tables(writer: StoreWriter) -> None:
    kind, ada = ScotHost(HERE, TAKING_OVER, "words"), client("ada")
    broker, journal = await recalled(writer, kind), StoredJournal(writer, kind)
    await journal.dump(broker, 0)
    promised = Promised("bob", "s", Id("C", 1), filters.parse("x > 1"))
    entries = [
        Entry(1, None, scot.NeighbourUp("C", scot.BrokerLabel("a", 1), synchronise=True)),
        Entry(2, ada, m.Attach()),
        Entry(3, ada, m.Subscribe("s", filters.parse("present(x)"))),
        Entry(4, neighbour("C"), Numbered(9, promised)),
    ]
    await tell(broker, journal, entries)
    again = await recalled(writer, kind)
    assert again.dump() == broker.dump()
    assert [one.client for one in kind.clients(again)] == ["ada"]
    assert again.next_id == Id("B1", (7 << 32) + 2)
    until_off = "take_over is False, expected True until covering is off"
    for changed, words in (
        (scot.ScotSettings(covering=True), until_off),
        (scot.ScotSettings(routing="bid"), "routing is 'bid', expected 'dynamic'"),
    ):
        with pytest.raises(errors.ConfigurationError, match=words):
            await recalled(writer, ScotHost(HERE, changed, "words"))
