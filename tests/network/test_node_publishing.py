"""Publishing many events through a node, printing them, and keeping them in files."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trio

from gossamer.client.links import CONNECTED
from gossamer.node.commands.clients.publishing import LINE_BYTES, Published, Report, publish_all
from gossamer.node.commands.clients.subscribing import Wanted, print_events
from gossamer.node.errors import (
    PeerStopped,
    RefusedByNodeError,
    TransportBroken,
    UnacknowledgedError,
)
from gossamer.protocol.kernel.errors import WrongValueError
from support.local_nodes import LocalNode
from support.loopback_peer import quote
from support.memory_peers import memory_peers, take
from support.node_processes import Shell, end
from support.spark_processes import wait_for
from support.transport_peers import on_jumping_clock

KEPT, OF_WORKLOAD = 30, 700


async def publish(
    node: LocalNode, lines: Sequence[bytes | str]
) -> tuple[Published, list[int], dict[int, str], list[str]]:
    """Publish lines of a file: what was counted, and shown meanwhile, ids by line, sentences."""
    path = node.folder / "events"
    path.write_bytes(b"\n".join(one.encode() if isinstance(one, str) else one for one in lines))
    shown: list[int] = []
    out, err = io.StringIO(), io.StringIO()
    report = Report(out, err, shown.append)
    with path.open("rb") as file:
        await publish_all(node.address, file.fileno(), report)
    return report.done, shown, ids_of(out.getvalue()), err.getvalue().splitlines()


def ids_of(printed: str) -> dict[int, str]:
    pairs = [line.split() for line in printed.splitlines()]
    ids = {int(number): event for number, event in pairs}
    assert len(ids) == len(pairs)
    return ids


def lines_of(count: int) -> list[str]:
    return [json.dumps(quote(price)) for price in range(count)]


async def test_bad_lines_are_named_and_all_others_are_published(node: LocalNode) -> None:
    lines = [line.encode() for line in lines_of(700)]
    bad = {
        1: (b'{"prize": 1}', "there is no attribute 'prize'"),
        2: (b'{"symbol": "A", "price": "dear"}', "attribute 'price' takes"),
        100: (b"\x00\x00\x00{", "no JSON"),
        101: (b'{"symbol": "\xff"}', "no UTF-8 text at byte 13"),
        300: (b'{"price": 1, "price": 2, "symbol": "A"}', '"price" has two values'),
        301: (b'{"price": NaN, "symbol": "A"}', "NaN is no number"),
        302: (b"x" * (LINE_BYTES + 1), f"longer than {LINE_BYTES} bytes"),
        555: (b"{" + b" " * (3 * LINE_BYTES) + b"}", f"longer than {LINE_BYTES} bytes"),
        556: (b"[1]", "no object"),
        700: (b'{"symbol": "A', "no JSON"),
    }
    for number, (line, _) in bad.items():
        lines[number - 1] = line
    async with node.running():
        done, _, ids, said = await publish(node, lines)
    assert (done.events, done.refused) == (690, 10)
    assert sorted(ids) == [number for number in range(1, 701) if number not in bad]
    prices = {event.id: cast(int, event.values["price"]) for event in node.peer.published}
    assert all(prices[int(event, 16)] + 1 == number for number, event in ids.items())
    assert len(said) == len(bad)
    for sentence, (number, (_, words)) in zip(sorted(said, key=place), bad.items(), strict=True):
        assert sentence.startswith(f"gossamer: line {number}: ")
        assert words in sentence
    assert done.summary().endswith("; 10 lines were not published")


def place(sentence: str) -> int:
    return int(sentence.split("line ")[1].split(":")[0])


async def test_lines_that_a_stopping_node_may_lose_are_named(node: LocalNode) -> None:
    path = node.folder / "events"
    path.write_text("\n".join(lines_of(2000)))
    out, err = io.StringIO(), io.StringIO()
    report = Report(out, err)

    async def try_to_publish() -> None:
        with path.open("rb") as file, pytest.raises(TransportBroken):
            await publish_all(node.address, file.fileno(), report)

    async with node.restartable() as running, trio.open_nursery() as nursery:
        nursery.start_soon(try_to_publish)
        await node.peer.changes.until(lambda: len(node.peer.published) > 300)
        node.peer.hold = trio.Event()
        await node.peer.changes.until(lambda: node.peer.waiting > 0)
        await running.stop()
    report.end(early=True)
    ids = ids_of(out.getvalue())
    assert report.done.events == len(ids) > 0
    *_, unknown, rest, summary = err.getvalue().splitlines()
    assert summary.startswith(f"gossamer: published {len(ids)} events in")
    known, last = numbers_of(unknown), int(rest.split()[4])
    assert "it is not known whether they were published" in unknown
    assert rest == f"gossamer: nothing after line {last} was published"
    refused = {place(one) for one in err.getvalue().splitlines()[:-3]}
    assert set(ids) | known | refused == set(range(1, last + 1))
    assert not set(ids) & (known | refused)
    published = {cast(int, event.values["price"]) + 1 for event in node.peer.published}
    assert published <= set(ids) | known
    assert report.exit_code != 0


def numbers_of(sentence: str) -> set[int]:
    """The numbers in such as "lines 3-7, 9: ..."."""
    found: set[int] = set()
    for part in sentence.split("lines ")[1].split(":")[0].split(", "):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


async def test_one_event_that_the_node_refuses_takes_no_other_with_it(node: LocalNode) -> None:
    node.peer.too_large = frozenset({7})
    async with node.running():
        done, _, ids, said = await publish(node, lines_of(20))
        async with node.client() as client:
            with pytest.raises(RefusedByNodeError, match=r"7000 bytes.*\(2 of 3 published\)"):
                await client.publish_many([quote(price) for price in (6, 7, 8)])
    assert (done.events, done.refused) == (19, 1)
    assert (sorted(ids), place(said[0])) == ([number for number in range(1, 21) if number != 8], 8)


async def test_what_is_printed_is_acknowledged(node: LocalNode) -> None:
    changes: list[str] = []
    printed = io.StringIO()

    async def print_some(count: int) -> None:
        wanted = Wanted(expression="price >= 1", name="ada", count=count)
        await print_events(node.address, wanted, printed, changes.append)

    async with node.running():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(print_some, 2)
            await node.peer.changes.until(lambda: bool(node.peer.subscribers))
            await node.publish(*range(4))
        assert prices_in(printed) == [1, 2]
        await print_some(1)
    assert (prices_in(printed), changes) == ([1, 2, 3], [CONNECTED, CONNECTED])


def prices_in(printed: io.StringIO) -> list[object]:
    return [json.loads(line)["values"]["price"] for line in printed.getvalue().splitlines()]


async def test_events_without_acknowledgement_are_counted(node: LocalNode) -> None:
    """The others go on, each line once."""
    node.peer.unheld = frozenset({5, 300})
    lines = lines_of(3000)
    lines.insert(7, "  ")
    async with node.running():
        done, shown, _, _ = await publish(node, lines)
    assert (done.events, done.unacknowledged) == (2998, 2)
    assert done.summary().startswith("published 2998 events in ")
    assert done.summary().endswith("; 2 more were not acknowledged and may be lost")
    assert (shown, shown[-1]) == (sorted(shown), 2998)
    assert sorted(event.values["price"] for event in node.peer.published) == list(range(3000))
    assert node.counts.unacknowledged == 2


async def test_a_client_learns_which_of_its_events_were_not_acknowledged(node: LocalNode) -> None:
    node.peer.unheld = frozenset({1, 3})
    async with node.running(), node.client() as client:
        await client.publish(quote(2))
        with pytest.raises(UnacknowledgedError, match="was not acknowledged within 10 s") as one:
            await client.publish(quote(3))
        assert (one.value.events, one.value.published) == (("0" * 15 + "2",), 1)
        with pytest.raises(UnacknowledgedError) as some:
            await client.publish_many([quote(price) for price in range(4)])
        assert sorted(some.value.events) == ["0" * 15 + "4", "0" * 15 + "6"]
        assert some.value.published == 4


@on_jumping_clock
async def test_a_peer_publishes_many_events_together(tmp_path: Path) -> None:
    async with memory_peers(tmp_path, *[1 + (i << 58) for i in range(3)]) as crowd:
        publisher, _, subscriber = crowd.peers.values()
        events = subscriber.subscribe("price >= 0")
        await crowd.rounds(12)
        made: list[dict[str, object]] = [{"symbol": "IBM", "price": price} for price in range(200)]
        made[7] |= {"price": -1}
        made[9] |= {"symbol": 5}
        outcomes = await publisher.publish_many(made)
        assert [type(outcomes[place]) for place in (7, 9)] == [WrongValueError] * 2
        good = [one for one in outcomes if isinstance(one, int)]
        assert len(set(good)) == 198
        taken = sorted(await take(events, 198), key=lambda one: one.published_at)
        assert ([one.id for one in taken], publisher.counters.events_acknowledged) == (good, 198)
        assert await publisher.publish_many([]) == []
    with pytest.raises(PeerStopped):
        await publisher.publish_many(made[:1])


def written_in(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(folder.glob("*/*.jsonl"))
        for line in path.read_text().splitlines()
    ]


def test_a_killed_subscriber_loses_nothing(one_node: Shell) -> None:
    got = one_node.folder / "got"
    events = [{"symbol": "IBM", "price": 60 + n, "volume": n} for n in range(KEPT)]
    text = "\n".join(map(json.dumps, events))
    sub = ("--folder", "desk", "price > 50", "--into", "got", "--name", "keep")
    pub = ("pub", "--folder", "desk", "--jsonl", "-")
    with one_node.node("desk"):
        first = one_node.subscriber(*sub, "--rotate-s", "3600")
        published = one_node.ok(*pub, text=text)
        end(first, signal.SIGKILL)
        published += one_node.ok(*pub, text=text)
        ids = {line.split()[1] for line in published.splitlines()}
        assert len(ids) == 2 * KEPT
        rest = one_node.start("sub", *sub, "--rotate-events", "7", "--rotate-s", "0.2")
        wait_for(lambda: {line["id"] for line in written_in(got)} == ids)
        end(rest, signal.SIGINT)
    told = json.loads((got / "desk" / "subscription.json").read_text())
    assert (told["subscriber"], told["expression"]) == ("desk", "price > 50")
    assert set(told["schema"]) == {"symbol", "price", "volume"}
    for line in written_in(got):
        assert line["subscriber"] == "desk"
        assert 0 <= line["received_at"] - line["published_at"] < 60
    assert all(path.stat().st_size for path in got.glob("desk/*.jsonl"))


def test_the_events_of_a_workload_are_published(one_node: Shell) -> None:
    rows = {
        "event": range(OF_WORKLOAD),
        "symbol": ["IBM"] * OF_WORKLOAD,
        "close": [80.0 + row for row in range(OF_WORKLOAD)],
        "volume": [1] * OF_WORKLOAD,
    }
    (one_node.folder / "w" / "events").mkdir(parents=True)
    pq.write_table(pa.table(rows), one_node.folder / "w" / "events" / "part-00000.parquet")
    chosen = ("--column", "symbol", "--column", "price=close", "--column", "volume")
    with one_node.node("desk"):
        done = one_node.run("pub", "--folder", "desk", "--from", "w", *chosen)
        assert (done.returncode, len(done.stdout.splitlines())) == (0, OF_WORKLOAD), done.stderr
        assert f"published {OF_WORKLOAD} events" in done.stderr
        one_node.refused("pub", "--folder", "desk", "--from", "w", "symbol=IBM")
