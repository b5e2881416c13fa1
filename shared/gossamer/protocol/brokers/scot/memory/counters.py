"""What a broker of a SCOT counts, for the claims of Sec. 7."""

from __future__ import annotations

from typing import Any, Self

from attrs import define, field

from gossamer.protocol.brokers.core import state as core


@define
class Counters(core.Counters):
    """Since the broker began.

    Duplicates are subscriptions that had come on another link before; lost are copies that had no
    link to go on.

    Attributes:
        matched: notifications that were matched with the routing table (matching delay, Sec. 7.2).
        kept_back: subscriptions that were not sent on, as others covered them.
        detours: copies that went around an overloaded link within the cluster.
        cases: notifications with an overloaded target link between clusters by the case of
            Algorithm 4 that they were.
    """

    matched: int = 0
    kept_back: int = 0
    detours: int = 0
    cases: dict[int, int] = field(factory=dict)

    def plain(self) -> dict[str, Any]:
        """As plain data; that has no numbers for keys."""
        return {**super().plain(), "cases": [list(one) for one in sorted(self.cases.items())]}

    @classmethod
    def read(cls, data: dict[str, Any]) -> Self:
        """What `plain` made plain data of; raises `TypeError` or `ValueError` for what is none."""
        return super().read({**data, "cases": dict(data["cases"])})
