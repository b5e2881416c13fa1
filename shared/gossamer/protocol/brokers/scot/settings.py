"""How the brokers of a SCOT route, and when they take a link for overloaded."""

from __future__ import annotations

from typing import Any, Final, Self

from attrs import define, field, frozen

from gossamer.protocol.brokers.core import state as core
from gossamer.protocol.kernel.errors import ConfigError

BID, STATIC, DYNAMIC = "bid", "static", "dynamic"
ROUTINGS: Final = (BID, STATIC, DYNAMIC)
MAX_BACKUPS: Final = 16


@frozen
class ScotSettings:
    """What all brokers of an overlay have in common.

    Attributes:
        routing: "bid" takes the overlay as it is, without clusters (Algorithm 2); "static" and
            "dynamic" broadcast subscriptions in two steps (Algorithm 1) and route notifications by
            Algorithm 3 or 4.
        threshold: load (see `state.LinkStatus`) above which an output queue is congested;
            Sec. 7.3 sets 10.
        window: microseconds between two reports of the host on its output queues; Sec. 7.3 sets 50
            milliseconds.
        spare_links: whether case III of Algorithm 4 tries links that are not overloaded within the
            cluster although no subscriber is behind them; off in the paper.
        around_failures: whether notifications go around links that do not work (`detours`); off in
            the paper.
        input_queues: whether the input queues of neighbours count, too: brokers tell each other
            how long they are, and a link is as loaded as both of its queues. Where
            matching is what takes long, notifications wait there. Off in the paper.
        own_threshold: whether each broker takes its own threshold from the loads of its links
            (`state.own_threshold`), in place of the one above; off in the paper.
        covering: whether a subscription that another from the same direction covers is kept back
            within its cluster (`covering`); off in the paper, and without effect by BID.
        cluster_detours: whether algorithm 4 takes notifications around overloaded links within a
            cluster by another one (`cluster_detours`), not together with `around_failures`; off in
            the paper.
        take_over: whether a broker of its region keeps what a broker has promised its clients, and
            takes them over when that is dead (`take_over`); off in the paper. It goes together with
            `around_failures`.
        backups: how many brokers of its region keep that: so many brokers may die at once, with
            their links, and nothing acknowledged is lost. Each takes another copy of whatever is
            promised to clients.
    """

    routing: str = field(default=DYNAMIC)
    threshold: float = field(default=10.0)
    window: int = field(default=50_000)
    spare_links: bool = field(default=False)
    around_failures: bool = field(default=False)
    input_queues: bool = field(default=False)
    own_threshold: bool = field(default=False)
    covering: bool = field(default=False)
    cluster_detours: bool = field(default=False)
    take_over: bool = field(default=False)
    backups: int = field(default=1)

    def __attrs_post_init__(self) -> None:
        if self.routing not in ROUTINGS:
            raise ConfigError("routing", self.routing, f"one of {', '.join(ROUTINGS)}")
        if not self.threshold >= 0:
            raise ConfigError("threshold", self.threshold, "a number from 0 on")
        if not self.window > 0:
            raise ConfigError("window", self.window, "a number of microseconds above 0")
        if self.cluster_detours and self.around_failures:
            expected = "false together with around_failures"
            raise ConfigError("cluster_detours", self.cluster_detours, expected)
        if self.take_over and (self.routing == BID or not self.around_failures):
            expected = "around_failures with static or dynamic routing, on which that rests"
            raise ConfigError("take_over", self.take_over, expected)
        if type(self.backups) is not int or not 0 < self.backups <= MAX_BACKUPS:
            expected = f"a whole number from 1 to {MAX_BACKUPS}"
            raise ConfigError("backups", self.backups, expected)


# What a broker of a SCOT counts, for the claims of Sec. 7.


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
        """What `plain_data` wrote; raises `TypeError` or `ValueError` for what is none."""
        return super().read({**data, "cases": dict(data["cases"])})
