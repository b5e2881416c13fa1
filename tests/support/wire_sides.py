"""Peers with certificates that turn records to frames, and nothing around them."""

from __future__ import annotations

import attrs

from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.core import SELF, Core
from gossamer.node.peer.frames.descriptor_authentication import SignedAuthentication
from gossamer.node.peer.frames.events import EventMemory
from gossamer.node.peer.frames.frame_types import frame_types
from gossamer.node.peer.frames.wire import Wire
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.transport.base import Address
from gossamer.node.transport.schema import Frame
from gossamer.protocol.kernel.records import BODY
from gossamer.protocol.peer.codec import Codec
from gossamer.protocol.peer.settings import presets
from support.attackers import read_frame
from support.clusters import MadeCluster

SETTINGS = presets.resilient(16, attributes=2, profile_ranges=1, event_memory=8)
CODEC = Codec(SETTINGS)
TYPES = frame_types(CODEC)
NOW = 1_000.0
LOAD_STEP = 3


@attrs.define(eq=False)
class Side:
    member: Membership
    now: float
    core: Core = attrs.field(init=False)
    address_book: AddressBook = attrs.field(init=False)
    counters: Counters = attrs.field(factory=Counters)
    events: EventMemory = attrs.field(factory=lambda: EventMemory(8, 1 << 16))
    descriptors: DescriptorCache = attrs.field(init=False)
    authentication: SignedAuthentication = attrs.field(init=False)
    wire: Wire = attrs.field(init=False)
    two_contents: list[tuple[int, bytes, bytes, int]] = attrs.field(factory=list)
    signed: int = 0

    def __attrs_post_init__(self) -> None:
        self.core = Core(SETTINGS, self.key)
        self.address_book = AddressBook(self.key, 64, lambda: NOW)
        self.descriptors = DescriptorCache(self.member.authority, self.member.revoked)
        self.authentication = SignedAuthentication(
            self.member.authority,
            self.member.identity,
            self.member.certificate,
            self.descriptors,
            self.address_book,
            self.counters,
            sequence=self._next,
            now=lambda: self.now,
            profile_words=CODEC.profile_words,
            first_range=CODEC.first_range,
            load_step=LOAD_STEP,
        )
        self.authentication.addresses = (Address("127.0.0.1", 4000),)
        self.wire = Wire(
            *(CODEC, self.address_book, self.authentication, self.events),
            lambda *what: self.two_contents.append(what),
        )

    def _next(self) -> int:
        self.signed += 1
        return self.signed

    @property
    def key(self) -> int:
        return self.member.identity.key

    def handle(self, other: Side) -> int:
        return self.address_book.handle_of(other.key)

    def meet(self, other: Side) -> int:
        """Learn the other's certificate, as in a handshake; return its handle here."""
        self.descriptors.learn(other.member.certificate.der, other.key, self.now)
        return self.handle(other)

    def hear(self, other: Side, profile: tuple[int, ...] | None = None) -> int:
        handle = self.meet(other)
        entry = other.authentication.own(other.core.profile if profile is None else profile)
        assert self.authentication.read(entry, set()) is not None
        return handle

    def descriptor(self, handle: int, age: int = 0, profile: tuple[int, ...] = ()) -> list[int]:
        """The words of a descriptor, with this peer's own profile unless given."""
        return [age << 32 | handle, *(profile or self.core.profile)]

    def taken(self, sender: Side, frame: Frame) -> list[int]:
        record = self.wire.decode(sender.key, frame).record
        assert record is not None
        return record

    def encode(self, kind: int, to: int, body: list[int]) -> Frame:
        record = [BODY + len(body), kind, to, SELF, *body]
        frame = self.wire.encode(record, self.core.profile)
        assert frame is not None
        return read(frame)


Sides = tuple[Side, Side, Side]


def read(frame: bytes) -> Frame:
    decoded = read_frame(frame)
    TYPES.check(decoded)
    return decoded


def made_sides(cluster: MadeCluster) -> Sides:
    """Alice and Bob, who have met, and Carol, whom only Alice has heard."""
    alice, bob, carol = (
        Side(member, cluster.now)
        for member in (cluster.first, cluster.admit("bob"), cluster.admit("carol"))
    )
    alice.meet(bob)
    bob.meet(alice)
    alice.hear(carol)
    return alice, bob, carol
