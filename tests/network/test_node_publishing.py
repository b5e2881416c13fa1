"""Publishing many events through a node, and printing them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import trio

from gossamer.node.commands.publishing import LINE_BYTES, Published, publish_all
from gossamer.node.commands.subscribing import Wanted, print_events
from gossamer.node.errors import EventInputError, TransportBroken, UnacknowledgedError
from gossamer.node.local.client import open_client
from gossamer.node.local.follower import CONNECTED
from support.local_nodes import LocalNode
from support.loopback_peer import IBM

pytestmark = pytest.mark.trio


def lines_of(count: int) -> list[str]:
    return [json.dumps({**IBM, "price": price}) for price in range(count)]


async def publish(node: LocalNode, path: Path, text: str) -> tuple[Published, list[int]]:
    """Publish the lines of ``text``; give what was counted, and what was shown meanwhile."""
    path.write_text(text)
    done, shown = Published(), []
    with path.open("rb") as file:
        await publish_all(node.address, file.fileno(), done, shown.append)
    return done, shown


async def test_every_line_is_published_once_and_counted(tmp_path: Path) -> None:
    node = LocalNode(tmp_path)
    lines = lines_of(3000)
    lines.insert(7, "  ")
    async with node.running():
        done, shown = await publish(node, tmp_path / "events", "\n".join(lines))
    assert done.events == 3000
    assert shown == sorted(shown)
    assert shown[-1] == 3000
    prices = [event.values["price"] for event in node.peer.published]
    assert sorted(prices) == list(range(3000))
    assert done.summary().startswith("published 3000 events in ")


async def test_a_bad_line_is_named_by_its_number(tmp_path: Path) -> None:
    node = LocalNode(tmp_path)
    lines = lines_of(700)
    lines[555] = '{"prize": 1}'
    async with node.running():
        with pytest.raises(EventInputError, match="line 556: there is no attribute 'prize'"):
            await publish(node, tmp_path / "events", "\n".join(lines))
    assert all(event.values["price"] != 556 for event in node.peer.published)


async def test_a_line_without_end_is_not_kept(tmp_path: Path) -> None:
    node = LocalNode(tmp_path)
    text = "\n".join([*lines_of(2), "x" * (2 * LINE_BYTES)])
    async with node.running():
        with pytest.raises(EventInputError, match="line 3: longer than"):
            await publish(node, tmp_path / "events", text)


async def test_a_node_that_stops_ends_publishing(tmp_path: Path) -> None:
    node = LocalNode(tmp_path)
    node.peer.hold = trio.Event()
    failures: list[BaseException] = []

    async def try_to_publish() -> None:
        try:
            await publish(node, tmp_path / "events", "\n".join(lines_of(2000)))
        except TransportBroken as error:
            failures.append(error)

    async with node.restartable() as running, trio.open_nursery() as nursery:
        nursery.start_soon(try_to_publish)
        await node.peer.changes.until(lambda: node.peer.waiting > 0)
        await running.stop()
    assert len(failures) == 1


async def test_what_is_printed_is_acknowledged(tmp_path: Path) -> None:
    node = LocalNode(tmp_path)
    changes: list[str] = []
    out = io.StringIO()
    async with node.running():
        async with trio.open_nursery() as nursery:
            wanted = Wanted(expression="price >= 1", name="ada", count=2)
            nursery.start_soon(print_events, node.address, wanted, out, changes.append)
            await node.peer.changes.until(lambda: bool(node.peer.subscribers))
            for price in range(4):
                await node.peer.publish({**IBM, "price": price})
        rest = io.StringIO()
        again = Wanted(expression="price >= 1", name="ada", count=1)
        await print_events(node.address, again, rest, changes.append)
    prices = [json.loads(line)["values"]["price"] for line in out.getvalue().splitlines()]
    assert prices == [1, 2]
    assert json.loads(rest.getvalue())["values"]["price"] == 3
    assert changes == [CONNECTED, CONNECTED]


async def test_events_that_are_not_acknowledged_are_counted_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    node = LocalNode(tmp_path)
    node.peer.unheld = frozenset({5, 300})
    async with node.running():
        done, shown = await publish(node, tmp_path / "events", "\n".join(lines_of(600)))
    assert (done.events, done.unacknowledged) == (598, 2)
    assert len(node.peer.published) == 600
    assert done.summary().endswith("; 2 more were not acknowledged and may be lost")
    assert shown[-1] == 598
    assert node.counts.unacknowledged == 2


async def test_a_client_learns_which_of_its_events_were_not_acknowledged(tmp_path: Path) -> None:
    node = LocalNode(tmp_path)
    node.peer.unheld = frozenset({1, 3})
    async with node.running(), open_client(node.address) as client:
        await client.publish({**IBM, "price": 2})
        with pytest.raises(UnacknowledgedError, match="was not acknowledged within 10 s") as one:
            await client.publish({**IBM, "price": 3})
        assert (one.value.events, one.value.published) == (("0" * 15 + "2",), 1)
        with pytest.raises(UnacknowledgedError) as some:
            await client.publish_many([{**IBM, "price": price} for price in range(4)])
        assert sorted(some.value.events) == ["0" * 15 + "4", "0" * 15 + "6"]
        assert some.value.published == 4
