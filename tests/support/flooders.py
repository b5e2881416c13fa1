"""A member that sends events as fast as they are taken from it, without running a peer."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from pathlib import Path

import attrs
import trio

from gossamer.node.commands.folder import load
from gossamer.node.errors import NodeError, TransportBroken, TransportClosed
from gossamer.node.peer.cluster_info import cluster_schema, schema_fingerprint
from gossamer.node.peer.frames.event_authentication import point_bytes
from gossamer.node.peer.frames.event_frames import event_frame
from gossamer.node.peer.frames.events import EventFormat
from gossamer.node.peer.frames.wire import WORD_BYTES, frame_types
from gossamer.node.peer.peer import transport_of
from gossamer.node.security.cluster import Membership, open_membership
from gossamer.node.security.descriptors import Descriptor, sign_descriptor
from gossamer.node.security.event_keys import EventKey, introduce, make_event_key
from gossamer.node.security.sealing import DRAW_BYTES, ID_BITS, MOST_SHARING, Seal, identifier, sign
from gossamer.node.transport.base.base import Address, LocalPeer
from gossamer.node.transport.base.frames import encode_frame
from gossamer.node.transport.base.limits import Limits
from gossamer.node.transport.base.schema import Frame
from gossamer.node.transport.connection import Connection
from gossamer.protocol.content.evolution import SchemaVersion
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.peer.codec import Codec
from gossamer.protocol.peer.record_table.records import EVENT, GREEDY, STORED
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import NOTHING, RANGES
from gossamer.protocol.peer.space.encoding import encode_event
from gossamer.protocol.peer.space.hashing import uniform_hashes
from gossamer.protocol.peer.space.routing_key import point_of
from gossamer.protocol.peer.state.state import profile_words
from support.attackers import believe

# Events after which others have their turn, and pause before it dials again where it was cut.
TURN = 16
REDIAL_S = 0.2
# The events that it makes up; they are sent again and again, drawn and signed anew.
KINDS = 64


@attrs.define(eq=False)
class Flooder:
    """One who holds a membership, and floods."""

    member: Membership
    schema: Schema
    settings: Settings
    draws: random.Random = attrs.field(factory=lambda: random.Random(1))
    sent: int = 0  # events; each is a copy for every attribute
    answered: int = 0  # how many copies were acknowledged
    ends: list[str] = attrs.field(factory=list)  # how its connections ended
    _entry: bytes = attrs.field(init=False)
    _key: EventKey = attrs.field(factory=make_event_key)
    _sealed: list[tuple[bytes, tuple[int, ...]]] = attrs.field(factory=list)
    _made_up: list[tuple[bytes, tuple[int, ...]]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        profile = (1 << 60, 1 << 60, 0, *[NOTHING] * (profile_words(self.settings) - RANGES))
        key, serial = self.member.certificate.key, self.member.certificate.serial
        told = Descriptor(key, serial, (("127.0.0.1", 1),), profile, 1, int(time.time()))
        self._entry = sign_descriptor(self.member.authority, self.member.identity, told).packed
        self._made_up = [self._make_up(number) for number in range(KINDS)]

    @classmethod
    def of_folder(cls, folder: Path) -> Flooder:
        """One that uses the membership in ``folder``, whose peer does not run."""
        config = load(folder).config
        schema = cluster_schema(config)
        return cls(open_membership(folder), schema, config.settings(schema))

    def _make_up(self, number: int) -> tuple[bytes, tuple[int, ...]]:
        values = {"symbol": "IBM", "price": self.draws.uniform(0, 500), "volume": number}
        exact = self.schema.check_event(values)
        data = EventFormat(SchemaVersion.first(self.schema)).to_bytes(
            exact, self.member.identity.key, time.time()
        )
        return data, encode_event(self.schema, uniform_hashes(self.schema), exact)

    async def flood(self, *targets: Address) -> None:
        """Send events to the peers at ``targets``, each in turn, until cancelled."""
        async with trio.open_nursery() as nursery:
            for target in targets:
                nursery.start_soon(self._flood_one, target)

    async def _flood_one(self, target: Address) -> None:
        """Flood one peer; come back where the connection ends, its own pings being late as well."""
        while True:
            try:
                connection = await self._connect(target)
            except NodeError as error:
                self.ends.append(str(error))
            else:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._send, connection)
                    self.ends.append(str(await connection.run(self._on_frame)))
                    nursery.cancel_scope.cancel()
            await trio.sleep(REDIAL_S)

    async def _connect(self, target: Address) -> Connection:
        certificate = self.member.certificate
        me = LocalPeer(
            certificate.key,
            self.member.authority.cluster,
            "flooder",
            fingerprint=certificate.fingerprint,
            schema=schema_fingerprint(self.schema),
        )
        admitted = await transport_of(self.member, Limits())(me, believe).dial([target])
        return Connection(admitted, Limits(), frame_types(Codec(self.settings)))

    async def _send(self, connection: Connection) -> None:
        with suppress(TransportBroken, TransportClosed):
            await connection.send(self.introduction())
            while True:
                await connection.send(self._turn())
                self.sent += TURN
                await trio.lowlevel.checkpoint()

    async def _on_frame(self, frame: Frame) -> None:
        if frame["type"] == "record" and frame["kind"] == STORED:
            self.answered += 1

    def _turn(self) -> bytes:
        return b"".join(self.event() for _ in range(TURN))

    def event(self) -> bytes:
        if not self._sealed:
            self._seal_more()
        sealed, point = self._sealed.pop()
        number = identifier(sealed)
        data = sealed[: -WORD_BYTES * len(point)]
        frames = []
        key = len(point) - 1
        for attribute in [key] if self.settings.routes_by_key else range(len(self.schema)):
            words = [number, attribute, GREEDY, 1, 0, 0, *point]
            packed = b"".join(word.to_bytes(WORD_BYTES, "little", signed=True) for word in words)
            frames.append(event_frame(EVENT, packed, self._entry, data))
        return b"".join(frames)

    def introduction(self) -> bytes:
        """The frame that proves whose its events are."""
        member = self.member
        own = introduce(member.authority, member.identity, member.certificate, self._key)
        return encode_frame("publishers", introductions=[own.introduction])

    def _seal_more(self) -> None:
        """Seal as many events as share a signature."""
        seal = Seal(self.settings.coordinates)
        parts = []
        for number in range(MOST_SHARING):
            content, hashed = self._made_up[number % KINDS]
            draw = self.draws.getrandbits(ID_BITS)
            point = tuple(point_of(self.settings, hashed, draw))
            parts.append((content, draw.to_bytes(DRAW_BYTES, "big"), point))
        leaves = [seal.leaf(content, draw, point_bytes(point)) for content, draw, point in parts]
        proofs = sign(self.member.authority, self._key, leaves)
        self._sealed = [
            (seal.close(content, draw, point_bytes(point), proof), point)
            for (content, draw, point), proof in zip(parts, proofs, strict=True)
        ]
