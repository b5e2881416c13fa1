"""How this peer's events are sealed, and which events of others are believed.

With certificates events are signed by their publishers, and verified before an application gets
them; without (plain text, loopback only) nothing is signed, and anybody who is connected can
publish under any name. Either way an event's identifier is a hash of all of it
(`gossamer.node.security.sealing`).
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import attrs
import trio

from gossamer.node.peer.frames.forgeries import OTHERS_NAME, REVOKED, UNSIGNED, Forgeries
from gossamer.node.peer.frames.publishers import PublisherService
from gossamer.node.security.cluster import Membership
from gossamer.node.security.event_keys import (
    EventKey,
    Publisher,
    about_events,
    introduce,
)
from gossamer.node.security.sealing import (
    MOST_SHARING,
    Proof,
    Seal,
    publisher_of,
    sign,
)

# Signatures of several events that are remembered to be right.
MOST_VERIFIED: Final = 256

# Seconds between two signatures: what is published meanwhile shares the next one.
GATHER_S: Final = 0.02


class Unsealed(NamedTuple):
    """What is sealed of an event.

    Attributes:
        content: its publisher, time, values and payload.
        draw: drawn for it, which spreads events of one value.
        point: where it is published, of `point_bytes`.
    """

    content: bytes
    draw: bytes
    point: bytes


MakeEventKey = Callable[[], Awaitable[EventKey]]


class PlainEvents:
    """Events that nobody signs."""

    def __init__(self, coordinates: int) -> None:
        self._seal = Seal(coordinates)

    async def seal(self, events: Sequence[Unsealed]) -> list[bytes]:
        return [self._seal.close(*one) for one in events]

    def open(self, _event: int, sealed: bytes, _brought_by: int) -> bytes | None:
        try:
            return self._seal.open_unsigned(sealed)
        except ValueError:
            # As for content that is none: what is left says that it is no event.
            return b""

    def knows(self, _sealed: bytes, _brought_by: int) -> bool:
        return True

    def content(self, sealed: bytes) -> bytes:
        return self._seal.open_unsigned(sealed)

    def introduce(self, _to: int, _sealed: bytes) -> None:
        pass


@attrs.define(eq=False)
class _Waiting:
    """Events that wait for their signature.

    Attributes:
        leaves: of the seal, one for each.
        proofs: for each, once they are signed.
        signed: set then.
    """

    leaves: list[bytes]
    proofs: list[bytes] = attrs.field(factory=list)
    signed: trio.Event = attrs.field(factory=trio.Event)


@attrs.define(eq=False, slots=False)
class SignedEvents:
    """Events signed by their publishers.

    Args:
        key: by which this peer signs, None where it has never published.
        make_key: makes such a key when it is first needed.
    """

    _seal: Seal
    _member: Membership
    _key: EventKey | None
    _make_key: MakeEventKey
    _publishers: PublisherService
    _forgeries: Forgeries

    def __attrs_post_init__(self) -> None:
        self._authority = self._member.authority
        self._about = about_events(self._member.authority)
        self._making = trio.Lock()
        self._gathered: list[_Waiting] = []
        self._signed_at = -math.inf
        self._verified: OrderedDict[tuple[bytes, bytes], None] = OrderedDict()
        self._introduce()

    def renew(self, member: Membership) -> None:
        """Introduce this peer by a renewed certificate from now on."""
        self._member = member
        self._introduce()

    def _introduce(self) -> None:
        if self._key is not None:
            member = self._member
            self._publishers.introduce_self(
                introduce(member.authority, member.identity, member.certificate, self._key)
            )

    async def seal(self, events: Sequence[Unsealed]) -> list[bytes]:
        """Events of this peer, sealed; those that follow each other closely share a signature."""
        if self._key is None:
            await self._begin_to_publish()
        waiting = _Waiting([self._seal.leaf(*one) for one in events])
        self._gathered.append(waiting)
        if len(self._gathered) == 1:
            # One event alone is signed at once; who publishes more shares a signature now and then.
            with trio.CancelScope(shield=True):
                await trio.sleep_until(self._signed_at + GATHER_S)
            self._sign_gathered()
        else:
            await waiting.signed.wait()
        return [
            self._seal.close(*one, proof) for one, proof in zip(events, waiting.proofs, strict=True)
        ]

    async def _begin_to_publish(self) -> None:
        async with self._making:
            if self._key is None:
                self._key = await self._make_key()
                self._introduce()

    def _sign_gathered(self) -> None:
        assert self._key is not None
        gathered, self._gathered = self._gathered, []
        self._signed_at = trio.current_time()
        leaves = [leaf for one in gathered for leaf in one.leaves]
        proofs: list[bytes] = []
        for first in range(0, len(leaves), MOST_SHARING):
            proofs += sign(self._authority, self._key, leaves[first : first + MOST_SHARING])
        for one in gathered:
            one.proofs, proofs = proofs[: len(one.leaves)], proofs[len(one.leaves) :]
            one.signed.set()

    def open(self, event: int, sealed: bytes, brought_by: int) -> bytes | None:
        """The content of an event that is its publisher's.

        None where it is not, which is counted and logged, and where that cannot be told yet:
        then the event comes back by `PublisherService.release_to`.
        """
        try:
            proof = self._seal.open(sealed)
        except ValueError:
            self._forgeries.note(UNSIGNED, event, sealed, brought_by)
            return None
        publisher = self._publishers.find(proof.signer)
        if publisher is None:
            self._publishers.park(proof.signer, event, sealed, brought_by)
            return None
        cause = self._fault(publisher, proof)
        if cause is None:
            return proof.content
        signed_by = publisher.key if cause in (OTHERS_NAME, REVOKED) else None
        self._forgeries.note(cause, event, sealed, brought_by, signed_by)
        return None

    def knows(self, sealed: bytes, brought_by: int) -> bool:
        """Whether `open` could tell now whose an event is; if not, ``brought_by`` is asked."""
        signer = self._seal.signer_of(sealed)
        if self._publishers.find(signer) is not None:
            return True
        self._publishers.ask(brought_by, [signer])
        return False

    def content(self, sealed: bytes) -> bytes:
        """The content of an event that was believed before; raises ValueError if it is none."""
        return self._seal.open(sealed).content

    def introduce(self, to: int, sealed: bytes) -> None:
        """Tell a connected peer what it needs to believe an event that is about to go to it."""
        self._publishers.show_signer(to, self._seal.signer_of(sealed))

    def _fault(self, publisher: Publisher, proof: Proof) -> str | None:
        """Why an event is not believed, None where it is."""
        if not self._is_signed(publisher, proof):
            return UNSIGNED
        if publisher_of(proof.content) != publisher.key:
            return OTHERS_NAME
        return REVOKED if self._publishers.is_revoked(publisher) else None

    def _is_signed(self, publisher: Publisher, proof: Proof) -> bool:
        """Whether the signature is right; one that events share is verified once."""
        if not proof.is_shared:
            return publisher.signed(self._about, proof.statement, proof.signature)
        known = proof.statement, proof.signature
        if known in self._verified:
            self._verified.move_to_end(known)
            return True
        if not publisher.signed(self._about, proof.statement, proof.signature):
            return False
        self._verified[known] = None
        if len(self._verified) > MOST_VERIFIED:
            self._verified.popitem(last=False)
        return True


# How events are sealed and opened.
EventAuthentication = SignedEvents | PlainEvents


def point_bytes(point: Sequence[int]) -> bytes:
    """A point as it is sealed: 8 bytes a coordinate, as in the words of a record."""
    return b"".join(word.to_bytes(8, "little") for word in point)
