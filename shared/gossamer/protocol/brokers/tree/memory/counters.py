"""What a broker counts, for the claims of both pruning papers (Sec. V)."""

from __future__ import annotations

from attrs import define, field

from gossamer.protocol.brokers.core import state as core


@define
class Counters(core.Counters):
    """Since the broker began; hops are counted where they begin.

    What is packed counts by itself as well. Duplicates are frames and publications, and lost are
    publications that were retained for a neighbour and had no room.

    Attributes:
        triggered_sent, triggered_received: subscriptions and unsubscriptions that nobody asked
            for, by kind; a packed message counts once if it holds any.
        triggered_onward: subscriptions that were sent on although nobody asked for them just then,
            each once, to however many neighbours, and those of one step as one where they are
            packed; what is repeated for a link that comes up is not among them.
        examined: subscriptions that were quenched by one that goes, looked at again for what
            covers them now, or for how many are displaced.
        false_positives: publications that a neighbour sent and that nobody here wanted.
        gaps: times that frames were found missing.
        cycles: advertisements refused because they came back on another link.
        held: unsubscriptions held back under congestion.
        preserved: times that a link kept a subscription for nobody.
        dropped: times that such a one was given up.
    """

    triggered_sent: dict[str, int] = field(factory=dict)
    triggered_received: dict[str, int] = field(factory=dict)
    triggered_onward: int = 0
    examined: int = 0
    false_positives: int = 0
    gaps: int = 0
    cycles: int = 0
    held: int = 0
    preserved: int = 0
    dropped: int = 0


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
