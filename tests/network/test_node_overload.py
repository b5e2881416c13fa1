"""A member, or an application, that publishes as fast as it can: others go on as before."""

from __future__ import annotations

import json
import random
import signal
import struct
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
import pytest
import trio

from gossamer.node.commands.clients.subscribing import Wanted, taken
from gossamer.node.config.file import load
from gossamer.node.errors import NodeError, TransportBroken, UnacknowledgedError
from gossamer.node.local.client import LocalClient
from gossamer.node.peer.cluster_info import cluster_schema, schema_fingerprint
from gossamer.node.peer.frames.event_authentication import point_bytes
from gossamer.node.peer.frames.event_frames import event_frame
from gossamer.node.peer.frames.events import EventFormat
from gossamer.node.peer.frames.frame_types import WORD_BYTES, frame_types
from gossamer.node.peer.peer import transport_of
from gossamer.node.security.cluster import Membership, open_membership
from gossamer.node.security.descriptors import Descriptor, sign_descriptor
from gossamer.node.security.event_keys import EventKey, make_event_key
from gossamer.node.security.sealing import DRAW_BYTES, ID_BITS, MOST_SHARING, Seal, identifier, sign
from gossamer.node.transport.base import Address, LocalPeer
from gossamer.node.transport.connection import Connection
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.limits import Limits
from gossamer.node.transport.schema import Frame
from gossamer.protocol.content.schema import Schema, SchemaVersion
from gossamer.protocol.peer.codec import Codec
from gossamer.protocol.peer.record_table.records import EVENT, GREEDY, STORED
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import NOTHING, RANGES
from gossamer.protocol.peer.space.encoding import encode_event
from gossamer.protocol.peer.space.hashing import uniform_hashes
from gossamer.protocol.peer.space.ring import point_of
from gossamer.protocol.peer.state.state import profile_words
from support.attackers import believe, introduction_of
from support.node_fleets import LOOK_S, Fleet, until
from support.node_processes import PATIENCE_S, Shell

pytestmark = pytest.mark.campaign

# Events after which others have their turn, and pause before it dials again where it was cut.
TURN = 16
REDIAL_S = 0.2
# The events that it makes up; they are sent again and again, drawn and signed anew.
KINDS = 64


@attrs.define(eq=False)
class Flooder:
    folder: Path  # of its membership, whose peer does not run
    draws: random.Random = attrs.field(factory=lambda: random.Random(1))
    sent: int = 0  # events; each is a copy for every attribute
    answered: int = 0  # how many copies were acknowledged
    member: Membership = attrs.field(init=False)
    _schema: Schema = attrs.field(init=False)
    _settings: Settings = attrs.field(init=False)
    _entry: bytes = attrs.field(init=False)
    _key: EventKey = attrs.field(factory=make_event_key)
    _sealed: list[tuple[bytes, tuple[int, ...]]] = attrs.field(factory=list)
    _made_up: list[tuple[bytes, tuple[int, ...]]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        config = load(self.folder).config
        self.member, self._schema = open_membership(self.folder), cluster_schema(config)
        self._settings = config.settings(self._schema)
        profile = (1 << 60, 1 << 60, 0, *[NOTHING] * (profile_words(self._settings) - RANGES))
        key, serial = self.member.certificate.key, self.member.certificate.serial
        told = Descriptor(key, serial, (("127.0.0.1", 1),), profile, 1, int(time.time()))
        self._entry = sign_descriptor(self.member.authority, self.member.identity, told).packed
        self._made_up = [self._make_up(number) for number in range(KINDS)]

    def _make_up(self, number: int) -> tuple[bytes, tuple[int, ...]]:
        values = {"symbol": "IBM", "price": self.draws.uniform(0, 500), "volume": number}
        exact = self._schema.check_event(values)
        form, key = EventFormat(SchemaVersion.first(self._schema)), self.member.identity.key
        hashed = encode_event(self._schema, uniform_hashes(self._schema), exact)
        return form.to_bytes(exact, key, time.time()), hashed

    async def flood(self, *targets: Address) -> None:
        async with trio.open_nursery() as nursery:
            for target in targets:
                nursery.start_soon(self._flood_one, target)

    async def _flood_one(self, target: Address) -> None:
        """Flood one peer; come back where the connection ends, its own pings being late as well."""
        while True:
            with suppress(NodeError):
                connection = await self._connect(target)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._send, connection)
                    await connection.run(self._on_frame)
                    nursery.cancel_scope.cancel()
            await trio.sleep(REDIAL_S)

    async def _connect(self, target: Address) -> Connection:
        certificate = self.member.certificate
        cluster, schema = self.member.authority.cluster, schema_fingerprint(self._schema)
        proof = certificate.fingerprint
        me = LocalPeer(certificate.key, cluster, "flooder", fingerprint=proof, schema=schema)
        admitted = await transport_of(self.member, Limits())(me, believe).dial([target])
        return Connection(admitted, Limits(), frame_types(Codec(self._settings)))

    async def _send(self, connection: Connection) -> None:
        own = introduction_of(self.member, self._key)
        with suppress(TransportBroken):
            await connection.send(encode_frame("publishers", introductions=[own]))
            while True:
                await connection.send(b"".join(self._event() for _ in range(TURN)))
                self.sent += TURN
                await trio.lowlevel.checkpoint()

    async def _on_frame(self, frame: Frame) -> None:
        if frame["type"] == "record" and frame["kind"] == STORED:
            self.answered += 1

    def _event(self) -> bytes:
        if not self._sealed:
            self._seal_more()
        sealed, point = self._sealed.pop()
        attributes = len(self._schema)
        frames = []
        for place in [len(point) - 1] if self._settings.routes_by_key else range(attributes):
            words = [identifier(sealed), place, GREEDY, 1, 0, 0, *point]
            packed = struct.pack(f"<{len(words)}q", *words)
            data = sealed[: -WORD_BYTES * len(point)]
            frames.append(event_frame(EVENT, packed, self._entry, data))
        return b"".join(frames)

    def _seal_more(self) -> None:
        seal = Seal(self._settings.coordinates)
        parts = []
        for number in range(MOST_SHARING):
            content, hashed = self._made_up[number % KINDS]
            draw = self.draws.getrandbits(ID_BITS)
            point = tuple(point_of(self._settings, hashed, draw))
            parts.append((content, draw.to_bytes(DRAW_BYTES, "big"), point))
        leaves = [seal.leaf(content, draw, point_bytes(point)) for content, draw, point in parts]
        proofs = sign(self.member.authority, self._key, leaves)
        self._sealed = [
            (seal.close(content, draw, point_bytes(point), proof), point)
            for (content, draw, point), proof in zip(parts, proofs, strict=True)
        ]


FLOOD_S = 90.0
RATE = 10
BEFORE_S, RECOVERY_S, AFTER_S = 3.0, 10.0, 5.0
# Part of what is published during a flood that may go unacknowledged, on a busy machine.
LOST = 0.1
# For how long peers stand still while they, or others, are flooded.
STILL_S = 2.0
# Publications that a greedy application does not wait for.
AT_ONCE = 300


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet.make(Shell(tmp_path), 4, discovery__multicast=False)
    made.start(*made.names[:3])
    yield made
    made.stop()


@attrs.define(eq=False)
class Honest:
    client: LocalClient
    symbol: str
    due: list[float] = attrs.field(factory=list)  # when each was published, by trio's clock
    # When each was, by its number; and its id.
    acknowledged: dict[int, tuple[float, str]] = attrs.field(factory=dict)

    async def run(self) -> None:
        """Publish, whether or not what was published before is acknowledged, until cancelled."""
        begun = trio.current_time()
        async with trio.open_nursery() as nursery:
            while True:
                nursery.start_soon(self._publish, len(self.due))
                self.due.append(trio.current_time())
                await trio.sleep_until(begun + len(self.due) / RATE)

    async def _publish(self, number: int) -> None:
        values = {"symbol": self.symbol, "price": float(number % 500), "volume": number}
        with suppress(UnacknowledgedError):
            event = await self.client.publish(values)
            self.acknowledged[number] = trio.current_time(), event

    def share(self, begin: float, end: float) -> float:
        times = [at for at, _ in self.acknowledged.values() if begin <= at < end]
        return len(times) / (RATE * (end - begin))

    def missing(self, begin: float, end: float) -> list[int]:
        numbers = [number for number, at in enumerate(self.due) if begin <= at < end]
        return [number for number in numbers if number not in self.acknowledged]


@attrs.define(eq=False)
class Run:
    honest: list[Honest]
    got: list[str]  # ids that a named application at the third peer was handed, of honest events

    async def check_share(self, begin: float, end: float) -> None:
        """After a flood from ``begin`` to ``end``: what was honest went on, and arrived."""
        recovered = end + RECOVERY_S
        await trio.sleep_until(recovered + AFTER_S)
        await until(
            lambda: not any(one.missing(recovered, recovered + AFTER_S) for one in self.honest)
        )
        for one in self.honest:
            during = one.share(begin, end)
            lost = len(one.missing(0, recovered))
            print(f"{one.symbol}: {during:.0%} of the rate during the flood, {lost} unacknowledged")
            assert during >= 0.5
            assert lost <= LOST * RATE * (end - begin)
        acknowledged = {event for one in self.honest for _, event in one.acknowledged.values()}
        await until(lambda: acknowledged <= set(self.got))
        assert len(self.got) == len(set(self.got))


@asynccontextmanager
async def a_run(fleet: Fleet, *publishers: int) -> AsyncIterator[Run]:
    running = fleet.names[:3]
    await fleet.ready(running)
    got: list[str] = []

    async def note(task_status: trio.TaskStatus[None]) -> None:
        where = fleet.address(running[2])
        wanted = " or ".join(f'symbol == "HONEST{name}"' for name in "012")
        async with taken(where, Wanted(expression=wanted, name="app")) as events:
            task_status.started()
            async for event in events:
                got.append(event.id)
                await events.acknowledge(event)

    async def connect(place: int, task_status: trio.TaskStatus[Honest]) -> None:
        async with fleet.client(running[place]) as client:
            task_status.started(Honest(client, f"HONEST{place}"))
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        await nursery.start(note)
        honest = [await nursery.start(connect, place) for place in publishers]
        for one in honest:
            nursery.start_soon(one.run)
        await trio.sleep(BEFORE_S)
        yield Run(honest, got)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("targets", [1, 3])
async def test_a_member_that_floods_stops_no_events_of_others(fleet: Fleet, targets: int) -> None:
    """It floods all peers, or one, which passes its events on and is not held to account for it.

    A peer takes no more from a connection than it can deal with; so the others stand still for a
    moment, and what waits for them is more than there is room for, however fast anybody is.
    """
    flooder = Flooder(fleet.folder(fleet.names[3]))
    others = fleet.names[1:3]
    async with a_run(fleet, 0) as run:
        begin = trio.current_time()
        with trio.move_on_after(FLOOD_S):
            async with trio.open_nursery() as nursery:
                addresses = [Address.parse(line["at"]) for line in logged(fleet, "peer listens")]
                nursery.start_soon(flooder.flood, *addresses[:targets])
                for name in others:
                    fleet.send(name, signal.SIGSTOP)
                await trio.sleep(STILL_S)
                for name in others:
                    fleet.send(name, signal.SIGCONT)
        await run.check_share(begin, trio.current_time())
        print(f"{flooder.sent} events flooded, {flooder.answered} copies answered")
        assert flooder.sent > 10 * RATE * FLOOD_S, "that is no flood"
        for name in fleet.names[:3]:  # until no peer is overloaded any more
            async with fleet.client(name) as client:
                with trio.fail_after(PATIENCE_S):
                    while "gossamer_overloading 0.0" not in await client.metrics():
                        await trio.sleep(LOOK_S)
        key = f"({flooder.member.identity.key:016x})"
        for event in ("overload begins", "overload ends"):
            said = logged(fleet, event)
            assert any(key in line["peer"] and key in line["publisher"] for line in said)


def logged(fleet: Fleet, event: str) -> list[dict[str, str]]:
    texts = [fleet.log(name) for name in fleet.names[:3]]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    return [line for line in lines if line["event"] == event]


async def test_an_application_that_floods_waits_and_others_do_not(fleet: Fleet) -> None:
    """Others at the same peer as well; the greedy one has as much as there is room for."""
    published = 0

    async def be_greedy(client: LocalClient) -> None:
        nonlocal published
        while True:
            await client.publish({"symbol": "GREEDY", "price": 1.0, "volume": published})
            published += 1

    async with a_run(fleet, 0, 1) as run, fleet.client(fleet.names[1]) as client:
        begin = trio.current_time()
        with trio.move_on_after(FLOOD_S):
            async with trio.open_nursery() as nursery:
                for _ in range(AT_ONCE):
                    nursery.start_soon(be_greedy, client)
        await run.check_share(begin, trio.current_time())
    print(f"{published} events of the greedy application acknowledged")
    assert published > 0
