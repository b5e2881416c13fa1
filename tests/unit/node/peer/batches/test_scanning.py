"""Which frames go by a batch: what a peer's own applications command comes from nobody else."""

from __future__ import annotations

import pytest

from gossamer.node.errors import BadFrame
from gossamer.node.peer.batches.exchange import Exchange, InterpretedRules
from gossamer.node.peer.frames.core import SELF, Core, Record
from gossamer.node.peer.frames.event_frames import event_frame, read_event_frame
from gossamer.node.transport.base.limits import HEADER_BYTES
from gossamer.protocol.kernel.records import BODY
from gossamer.protocol.kernel.struct import WORD_BYTES
from gossamer.protocol.peer.record_table.records import EVENT, PUBLISH
from gossamer.protocol.peer.settings import config

MOST = 1 << 16
NEIGHBOUR = 5


@pytest.fixture
def core() -> Core:
    return Core(config.resilient(2, pending_publications=4), 1)


def as_frame(kind: int, record: Record) -> bytes:
    words = b"".join(word.to_bytes(WORD_BYTES, "little", signed=True) for word in record[BODY:])
    return event_frame(kind, words, b"name", b"values")


@pytest.mark.parametrize(
    ("kind", "source", "goes"),
    [
        (EVENT, NEIGHBOUR, True),
        (EVENT, SELF, False),
        (PUBLISH, SELF, True),
        (PUBLISH, NEIGHBOUR, False),
    ],
)
def test_commands_come_from_here_and_all_else_from_others(
    core: Core, kind: int, source: int, goes: bool
) -> None:
    exchange = Exchange(core, InterpretedRules)
    exchange.load(as_frame(kind, core.publish(7, [1])))
    rows = exchange.scan(source, MOST)
    assert [row.kind for row in rows] == ([kind] if goes else [])


def test_a_command_is_no_frame_that_a_peer_may_send(core: Core) -> None:
    frame = as_frame(PUBLISH, core.publish(7, [1]))
    with pytest.raises(BadFrame, match="kind"):
        read_event_frame(frame[HEADER_BYTES:])


def test_an_event_that_is_published_is_not_taken_for_a_new_one(core: Core) -> None:
    exchange = Exchange(core, InterpretedRules)
    exchange.load(as_frame(PUBLISH, core.publish(7, [1])))
    assert len(exchange.scan(SELF, MOST)) == 1
    exchange.name(0, SELF)
    taken, written = exchange.take(0, 1)
    assert taken == 1
    assert written, "alone, it is its own rendezvous node"
    assert not exchange.is_new(0)
