"""What the page shows: one peer's view of the overlay at an instant.

Keys are 16 hexadecimal digits, positions fractions of the identifier ring from 0 to 1, rates per
second. `Snapshot.to_json` is the content of ``/state.json`` and of every event of ``/events``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

RING_BITS: Final = 62
# A page that is sent every second shows no more peers than this; it says how many there are.
MAX_PEERS: Final = 512


def ring_fraction(identifier: int) -> float:
    """Where an identifier stands on the ring, from 0 to below 1."""
    # The quotient of neighbours of 2^62 rounds to 1, which is where the ring begins.
    return (identifier / (1 << RING_BITS)) % 1.0


@attrs.frozen(kw_only=True)
class PeerView:
    """Another peer as this one knows it.

    Attributes:
        key: its permanent key.
        name: what it calls itself, "" if nothing.
        position: on the ring, 0 to 1.
        links: of `monitoring.metrics.LINKS`, all that lead to it; none for one merely known.
        connected: whether a connection is open.
        load: events a round, as it last told.
        round_trip_s: None where it was not measured.
        received_per_s, sent_per_s: frames from it and to it.
        queued_bytes: waiting to be sent to it.
        heard_s: seconds since it was last heard of.
    """

    key: int
    position: float
    name: str = ""
    links: tuple[str, ...] = ()
    connected: bool = False
    load: float = 0.0
    round_trip_s: float | None = None
    received_per_s: float = 0.0
    sent_per_s: float = 0.0
    queued_bytes: int = 0
    heard_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return _plain(self)


@attrs.frozen(kw_only=True)
class Rates:
    """What passes per second."""

    published: float = 0.0
    delivered: float = 0.0
    forwarded: float = 0.0
    dropped: float = 0.0
    received_bytes: float = 0.0
    sent_bytes: float = 0.0


@attrs.frozen(kw_only=True)
class Queues:
    """What waits to be sent, over all peers, and for the one for whom most waits."""

    frames: int = 0
    bytes: int = 0
    longest_bytes: int = 0


@attrs.frozen(kw_only=True)
class Snapshot:
    """The overlay as one peer sees it.

    Attributes:
        key, name, cluster, version: who this peer is and what it runs.
        cluster_name: what the cluster is called.
        uptime_s: seconds since it started.
        role: "peer" or "broker"; of a broker, what belongs to the ring is zero and means nothing.
        round, round_s: how many gossip rounds it has done, and how long one lasts.
        position: on the ring, 0 to 1.
        arc_start: where the part of the ring begins, 0 to 1, that it is responsible for; the
            part ends at `position`.
        load: events a round, as load shifting counts them.
        subscriptions, clients, routing_entries, stored_events: how many.
        rates, queues: what passes and what waits.
        dropped: how many were dropped since the start, by cause.
        known_peers: how many there are in the address book.
        troubles: what is wrong with this peer's place in the cluster, a sentence each.
        members: how many members of the cluster this node has met, by state.
        changes: what happened to them last, the newest last; see `monitoring.members`.
        peers: those shown; at most `MAX_PEERS`, the linked ones first.
    """

    key: int
    name: str
    cluster: str
    version: str
    uptime_s: float
    round: int
    round_s: float
    position: float
    arc_start: float
    load: float
    subscriptions: int
    clients: int
    routing_entries: int
    stored_events: int
    rates: Rates
    queues: Queues
    dropped: Mapping[str, int]
    known_peers: int
    peers: tuple[PeerView, ...]
    troubles: tuple[str, ...] = ()
    role: str = "peer"
    members: Mapping[str, int] = attrs.field(factory=dict)
    changes: tuple[Mapping[str, Any], ...] = ()
    cluster_name: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain values; peers beyond `MAX_PEERS` are left out."""
        shown = sorted(self.peers, key=lambda peer: (not peer.links, peer.key))[:MAX_PEERS]
        return {
            **_plain(attrs.evolve(self, peers=())),
            "rates": _plain(self.rates),
            "queues": _plain(self.queues),
            "dropped": dict(self.dropped),
            "members": dict(self.members),
            "peers": [peer.to_json() for peer in shown],
        }


def _plain(value: Any) -> dict[str, Any]:
    """The fields of an attrs object: keys as text, floats to as many digits as anybody reads."""
    made = attrs.asdict(value, recurse=False)
    for name, part in made.items():
        if name == "key":
            made[name] = f"{part:016x}"
        elif isinstance(part, float):
            made[name] = round(part, 5)
        elif isinstance(part, tuple):
            made[name] = list(part)
    return made
