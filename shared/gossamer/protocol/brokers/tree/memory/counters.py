"""What a broker counts, for the claims of both pruning papers (Sec. V)."""

from __future__ import annotations

from attrs import define, field


@define
class Counters:
    """Since the broker began; hops are counted where they begin.

    Attributes:
        sent, received: messages between brokers by kind; what is packed counts by itself as well.
        triggered_sent, triggered_received: subscriptions and unsubscriptions among them that
            nobody asked for, by kind; a packed message counts once if it holds any.
        delivered: publications handed to clients.
        false_positives: publications that a neighbour sent and that nobody here wanted.
        duplicates: frames and publications that came again, and were dropped.
        stale: messages about what is not known (any more), dropped.
        gaps: times that frames were found missing.
        cycles: advertisements refused because they came back on another link.
        refused: messages that were refused.
        held: unsubscriptions held back under congestion.
        preserved: times that a link kept a subscription for nobody.
        dropped: times that such a one was given up.
        lost: publications that were retained for a neighbour and had no room.
    """

    sent: dict[str, int] = field(factory=dict)
    received: dict[str, int] = field(factory=dict)
    triggered_sent: dict[str, int] = field(factory=dict)
    triggered_received: dict[str, int] = field(factory=dict)
    delivered: int = 0
    false_positives: int = 0
    duplicates: int = 0
    stale: int = 0
    gaps: int = 0
    cycles: int = 0
    refused: int = 0
    held: int = 0
    preserved: int = 0
    dropped: int = 0
    lost: int = 0


@define
class TableSizes:
    """Entries of a broker's tables.

    Attributes:
        subscriptions: of the routing table (the papers' "routing table size").
        advertisements: of the advertisement table.
        sent: subscriptions that stand at neighbours because of this broker.
        preserved: those of them that are kept for nobody.
        statistics: publications in the statistics.
        clients: attached.
    """

    subscriptions: int
    advertisements: int
    sent: int
    preserved: int
    statistics: int
    clients: int
