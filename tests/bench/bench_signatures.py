"""What it costs that publishers sign their events, by itself.

Run it by hand: ``python tests/bench/bench_signatures.py [--runs 5]``. One publisher seals events of
some 250 bytes, and another peer opens each, signed and as in a cluster without certificates; the
difference, in microseconds of processor time an event, is what signatures cost, by how many events
share one. The last two columns are what that comes to in the bench of nodes, where a publication is
delivered so many times at so many peers: microseconds a delivery, and their share of a delivery
that takes so long without them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, cast

import attrs

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import read_options, timed
from gossamer.node.peer.frames.event_authentication import PlainEvents, SignedEvents
from gossamer.node.peer.frames.forgeries import Forgeries
from gossamer.node.peer.frames.publishers import PublisherService
from gossamer.node.security.cluster import Membership
from gossamer.node.security.event_keys import EventKey, Publisher, introduce, make_event_key
from gossamer.node.security.identity import encode
from gossamer.node.security.sealing import DRAW_BYTES, Seal, sign
from support.clusters import made_cluster

SHARING = (1, 2, 5, 10, 64)
EVENTS = 640
CONTENT_BYTES = 250
COORDINATES = 3
POINT = bytes(8 * COORDINATES)
DRAWS = [number.to_bytes(DRAW_BYTES, "big") for number in range(EVENTS)]


@attrs.define(eq=False)
class OnePublisher:
    """Stands in for `PublisherService`: knows the publisher whose events are opened."""

    publisher: Publisher

    def introduce_self(self, publisher: Publisher) -> None:
        """It introduces nobody."""

    def find(self, signer: bytes) -> Publisher | None:
        return self.publisher if signer == self.publisher.signer else None

    def is_revoked(self, _: Publisher) -> bool:
        return False


def seal_signed(
    seal: Seal, member: Membership, key: EventKey, events: Sequence[bytes], sharing: int
) -> list[bytes]:
    """The events, so many of which share a signature."""
    sealed = []
    for first in range(0, len(events), sharing):
        some = slice(first, first + sharing)
        batch = list(zip(events[some], DRAWS[some], strict=True))
        leaves = [seal.leaf(content, draw, POINT) for content, draw in batch]
        proofs = sign(member.authority, key, leaves)
        sealed += [
            seal.close(content, draw, POINT, proof)
            for (content, draw), proof in zip(batch, proofs, strict=True)
        ]
    return sealed


def each_us(work: Callable[[], Any]) -> tuple[float, Any]:
    """Microseconds of processor time an event, and what came of it."""
    seconds, result = timed(work)
    return seconds / EVENTS * 1e6, result


def measure(member: Membership, sharing: int) -> tuple[float, float]:
    """What a signed event takes more than one without: of its publisher, of who opens it."""
    seal, key = Seal(COORDINATES), make_event_key()
    known = OnePublisher(introduce(member.authority, member.identity, member.certificate, key))
    text = "x" * CONTENT_BYTES
    events = [encode([member.identity.key, n, 1, [n, text]]) for n in range(EVENTS)]
    drawn = list(zip(events, DRAWS, strict=True))
    signed = SignedEvents(
        seal, member, key, _no_key, cast(PublisherService, known), cast(Forgeries, None)
    )
    plain = PlainEvents(COORDINATES)
    signing, sealed = each_us(lambda: seal_signed(seal, member, key, events, sharing))
    closing, unsigned = each_us(lambda: [seal.close(one, draw, POINT) for one, draw in drawn])
    verifying, opened = each_us(lambda: [signed.open(0, one, 0) for one in sealed])
    reading, read = each_us(lambda: [plain.open(0, one, 0) for one in unsigned])
    assert opened == read == events, "not what was published"
    return signing - closing, verifying - reading


async def _no_key() -> EventKey:
    raise AssertionError("it has one")


def main() -> None:
    given = read_options(__doc__, runs=5, deliveries=55, peers=25, delivery_us=160.0)
    print(f"{'sharing':>8}{'sign':>8}{'verify':>8}{'a delivery':>12}{'share':>8}")
    with tempfile.TemporaryDirectory() as folder, made_cluster(Path(folder) / "first") as cluster:
        member = cluster.first
        for sharing in SHARING:
            runs = [measure(member, sharing) for _ in range(given.runs)]
            signing, verifying = map(median, zip(*runs, strict=True))
            extra = (signing + given.peers * verifying) / given.deliveries
            share = extra / given.delivery_us
            print(f"{sharing:8}{signing:8.1f}{verifying:8.1f}{extra:12.1f}{share:8.1%}")


if __name__ == "__main__":
    main()
