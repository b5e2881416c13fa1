"""What a broker of a SCOT counts, for the claims of Sec. 7."""

from __future__ import annotations

from attrs import define, field


@define
class Counters:
    """Since the broker began.

    Attributes:
        sent, received: messages between brokers by kind.
        matched: notifications that were matched with the routing table (matching delay, Sec. 7.2).
        delivered: notifications handed to clients.
        duplicates: subscriptions that had come on another link before, and were dropped.
        stale: messages about what is not known (any more), dropped.
        kept_back: subscriptions that were not sent on, as others covered them.
        detours: copies that went around an overloaded link within the cluster.
        lost: copies that had no link to go on.
        refused: messages that were refused.
        cases: notifications with an overloaded target link between clusters by the case of
            Algorithm 4 that they were.
    """

    sent: dict[str, int] = field(factory=dict)
    received: dict[str, int] = field(factory=dict)
    matched: int = 0
    delivered: int = 0
    duplicates: int = 0
    stale: int = 0
    kept_back: int = 0
    detours: int = 0
    lost: int = 0
    refused: int = 0
    cases: dict[int, int] = field(factory=dict)
