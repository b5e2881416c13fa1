"""What a run of a SCOT leaves in memory, and the measures of each way of routing.

A table is a mapping from column name to a one-dimensional NumPy array; all columns of a table have
one length. Times are seconds of simulated time since publishers began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np

from gossamer.sim.studies.scot.burst import FIRST, MINUTE, SECOND, Burst, BurstResult
from gossamer.sim.studies.side_by_side import SideBySideRun
from gossamer.sim.study.records import Table, measures_of

_TOTALS: Final = (
    *("inter_messages", "intra_messages", "matchings", "detours"),
    *("subscription_messages", "subscription_duplicates", "kept_back", "table_entries"),
)


@attrs.frozen(kw_only=True, eq=False)
class RoutingRecord:
    """What one way of routing did.

    Attributes:
        name: the way of routing, also of its folder in the results.
        burst: what was run.
        result: what happened.
        peak_rss_bytes: largest resident memory of its process.
    """

    name: str
    burst: Burst
    result: BurstResult
    peak_rss_bytes: int

    @property
    def settings(self) -> Mapping[str, Any]:
        """The brokers', plain values."""
        return attrs.asdict(self.burst.settings)

    @property
    def totals(self) -> Mapping[str, int | float]:
        """Counts that stand in no table."""
        totals = {name: getattr(self.result, name) for name in _TOTALS}
        return totals | {f"case_{case}": number for case, number in self.result.cases.items()}

    def tables(self) -> Iterator[tuple[str, Table]]:
        """Every table with its name, always in the same order.

        ``deliveries`` has a row for each broker that handed a publication to clients, ``queues``
        one for each window, ``subscriptions`` one for each subscription.
        """
        result = self.result
        yield (
            "deliveries",
            {
                "published_s": (result.published - result.started) / SECOND,
                "delay_s": result.delays / SECOND,
                "clients": result.clients,
                "burst": result.burst,
            },
        )
        time, longest, total, burst = np.ascontiguousarray(result.windows.T)
        yield (
            "queues",
            {
                "time_s": (time - result.started) / SECOND,
                "longest": longest,
                "total": total,
                "burst": burst,
            },
        )
        yield "subscriptions", {"delay_s": result.subscription_delays / SECOND}


ScotRunRecord = SideBySideRun[RoutingRecord]


def summarise_routing(record: RoutingRecord) -> dict[str, Any]:
    """The entry of ``summary.json``, see `SCOT_MEASURES`."""
    return {
        **summarise_burst(record.burst, record.result),
        "totals": dict(record.totals),
        "settings": dict(record.settings),
    }


def summarise_burst(burst: Burst, result: BurstResult) -> dict[str, Any]:
    """The values of `SCOT_MEASURES`; times in seconds, NaN where nothing was."""
    last = result.started + FIRST
    last += (burst.burst_notifications - 1) * MINUTE // burst.burst_per_minute
    in_burst = burst.burst_notifications > 0 and bool(result.burst.any())
    return {
        "burst_delay_mean_s": result.mean_delay(burst=True) / SECOND,
        "other_delay_mean_s": result.mean_delay(burst=False) / SECOND,
        "delay_max_s": result.delays.max() / SECOND if len(result.delays) else float("nan"),
        "share_below_1_s": result.share_below(SECOND),
        "settled_s": (result.burst_ended - last) / SECOND if in_burst else float("nan"),
        "output_queue_max": int(result.windows[:, 1].max(initial=0)),
        "burst_queue_mean": result.mean_burst_queue,
        "notification_messages": result.messages,
        "inter_messages": result.inter_messages,
        "intra_messages": result.intra_messages,
        "matchings": result.matchings,
        "rerouted": sum(result.cases.values()),
        "cases": {str(case): number for case, number in result.cases.items()},
        "detours": result.detours,
        "subscription_messages": result.subscription_messages,
        "subscription_duplicates": result.subscription_duplicates,
        "subscription_delay_mean_s": _mean(result.subscription_delays) / SECOND,
        "subscription_hops_mean": _mean(result.subscription_hops),
        "kept_back": result.kept_back,
        "table_entries_mean": result.table_entries / burst.scot.broker_count,
        "publications": burst.publishers * burst.notifications + burst.burst_notifications,
        "deliveries": result.deliveries,
    }


def _mean(values: Any) -> float:
    return float(values.mean()) if len(values) else float("nan")


# The measures of a way of routing on a SCOT, in the terms of its paper (Sec. 7.2).

SCOT_MEASURES: Final = measures_of("""
    burst_delay_mean_s: delay in the burst, mean (s) | fine | lower | brief
        Mean time from publication to delivery of what the publisher with a high rate published.
    other_delay_mean_s: delay of the others, mean (s) | fine | lower | brief
        Mean time from publication to delivery of everything else.
    delay_max_s: delay, longest (s) | fine | lower | brief
        The longest time from publication to delivery.
    share_below_1_s: delivered within a second | ratio | higher | brief
        Share of the deliveries that took less than a second.
    settled_s: settled after the burst (s) | fine | lower | brief
        Time from the last publication of the burst until the last of them was received.
    output_queue_max: longest output queue | count | lower | brief
        The longest output queue of a link at the end of any window, in messages.
    burst_queue_mean: output queue on the way of the burst | fine | lower | brief
        Mean length of the output queues that the burst went through, while it lasted.
    notification_messages: messages of notifications | count | lower | brief
        Notifications sent from broker to broker.
    inter_messages: of them between clusters | count | - | brief
        Those on links between clusters; the others are within clusters.
    matchings: matchings | count | lower | brief
        How often a broker matched a notification with its routing table.
    rerouted: dynamic decisions | count | - | brief
        Notifications with an overloaded target link between clusters (cases I to III).
    detours: detours within clusters | count | -
        Copies that went around an overloaded link within the cluster.
    subscription_messages: messages of subscriptions | count | lower | brief
        Subscriptions sent from broker to broker.
    subscription_duplicates: of them duplicates | count | lower | brief
        Those that had come on another link before, and were dropped.
    subscription_delay_mean_s: subscription delay, mean (s) | fine | lower | brief
        Mean time from a subscription's first broker to its last.
    subscription_hops_mean: hops to a broker, mean | number | lower
        Mean number of hops from the first broker of a subscription to any other.
    kept_back: subscriptions kept back | count | -
        How often a broker did not pass a subscription on, as another one covered it.
    table_entries_mean: routing table entries, mean | number | lower
        Entries of a broker's routing table.
    publications: publications | count | -
        Notifications published.
    deliveries: deliveries made | count | -
        Notifications handed to clients.
""")
