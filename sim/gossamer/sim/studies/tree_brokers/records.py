"""What a run of a broker overlay leaves in memory: tables by covering, for whoever writes results.

A table is a mapping from column name to a one-dimensional NumPy array; all columns of a table have
one length. Times are seconds of simulated time since the first unsubscription.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.sim.studies.side_by_side import SideBySideRun
from gossamer.sim.studies.tree_brokers.unsubscription_burst import (
    SECOND,
    BurstResult,
    Kept,
    Tally,
    UnsubscriptionBurst,
)
from gossamer.sim.study.records import (
    REAL,
    WHOLE,
    Column,
    Columns,
    Expected,
    Row,
    Table,
    distribution,
    gini,
    mean,
    measure_rows,
    measures_of,
    percentile,
    ratio,
    series,
    total,
)


@attrs.frozen(kw_only=True, eq=False)
class CoveringRecord:
    """What one covering did in a burst.

    Attributes:
        name: the covering, also of its folder in the results.
        settings: the brokers', plain values.
        core: the core brokers, in order.
        deliveries: a row a delivery: publication, broker, published_s, delay_s.
        queues: a row a look at the core's input queues: time_s, and a column for each core broker.
        brokers: a row a broker: broker, role, and the fields of `burst.Tally`.
        aggregates: a row a subscription kept for nobody: the fields of `burst.Kept`.
        totals: further counts, which enter the result hash.
        peak_rss_bytes: largest resident memory of its process.
    """

    name: str
    settings: Mapping[str, Any]
    core: tuple[str, ...]
    deliveries: Table
    queues: Table
    brokers: Table
    aggregates: Table
    totals: Mapping[str, int | float]
    peak_rss_bytes: int

    def tables(self) -> Iterator[tuple[str, Table]]:
        """Every table with its name, always in the same order."""
        for name in ("deliveries", "queues", "brokers", "aggregates"):
            yield name, getattr(self, name)


BrokerRunRecord = SideBySideRun[CoveringRecord]


def restored(name: str, summary: Mapping[str, Any], tables: Mapping[str, Table]) -> CoveringRecord:
    """The record of a covering from its entry of ``summary.json`` and all its tables."""
    return CoveringRecord(
        name=name,
        settings=summary["settings"],
        core=tuple(column for column in tables["queues"] if column != "time_s"),
        **tables,
        totals=summary["totals"],
        peak_rss_bytes=0,  # of each alone it is not kept
    )


def covering_record(
    covering: str, burst: UnsubscriptionBurst, result: BurstResult, peak_rss_bytes: int
) -> CoveringRecord:
    """The record of a burst."""
    published = result.published[result.deliveries[:, 0]] / SECOND
    return CoveringRecord(
        name=covering,
        settings=attrs.asdict(burst.settings, filter=lambda field, _: field.name != "rules"),
        core=result.core,
        deliveries={
            "publication": result.deliveries[:, 0],
            "broker": _texts(result.receivers),
            "published_s": published,
            "delay_s": result.deliveries[:, 1] / SECOND,
        },
        queues=_queues(burst, result),
        brokers=_brokers(burst, result),
        aggregates=_columns(Kept, result.kept, ("broker", "neighbour", "filter")),
        totals={"publications": len(result.published)},
        peak_rss_bytes=peak_rss_bytes,
    )


def _queues(burst: UnsubscriptionBurst, result: BurstResult) -> dict[str, Column]:
    looks = np.arange(1, len(result.queues) + 1)
    return {
        "time_s": looks * burst.sample_every / SECOND,
        **{name: result.queues[:, place] for place, name in enumerate(result.core)},
    }


def _brokers(burst: UnsubscriptionBurst, result: BurstResult) -> dict[str, Column]:
    roles = burst.overlay.graph.nodes(data="role")
    return {
        "broker": _texts(list(result.tallies)),
        "role": _texts([roles[name] for name in result.tallies]),
        **_columns(Tally, list(result.tallies.values())),
    }


def _columns(kind: type, rows: Sequence[object], texts: Collection[str] = ()) -> dict[str, Column]:
    """The fields of objects of an attrs class; all but ``texts`` are whole numbers."""
    found = {}
    for field in attrs.fields(kind):
        values = [getattr(row, field.name) for row in rows]
        found[field.name] = _texts(values) if field.name in texts else np.array(values, np.int64)
    return found


def _texts(values: list[str]) -> Column:
    return np.array(values, np.str_)


# The measures of one covering in a burst, from its tables.


# Terms follow the evaluations of both papers on filter aggregation (Sec. V).
BROKER_MEASURES: Final = measures_of("""
    delay_mean_s: delay, mean (s) | fine | lower | brief
        Mean time from publication to delivery, of all publications from the first unsubscription
        on.
    delay_p99_s: delay, 99 % (s) | fine | lower
        Time that 99 % of the deliveries do not exceed.
    delay_max_s: delay, longest (s) | fine | lower | brief
        The longest time from publication to delivery.
    delay_end_s: delay at the end (s) | fine | lower
        Mean delay of the last tenth of the publications.
    queue_max: longest core queue | count | lower | brief
        The longest input queue of a core broker, in messages.
    triggered_messages: triggered messages | count | lower | brief
        Subscriptions and unsubscriptions that brokers received although nobody asked for them; a
        pack is one message.
    triggered_last: triggered messages at the last core broker | count | lower | brief
        Those that the core broker next to the publishers received.
    table_entries_mean: routing table entries, mean | number | lower
        Entries of a broker's routing table at the end.
    table_entries_core: routing table entries, core | number | lower | brief
        Entries of a core broker's routing table at the end, mean.
    false_positive_ratio: false positives | ratio | lower | brief
        Share of the publications between brokers that reached one where nobody wanted them.
    kept_for_nobody: subscriptions kept for nobody | count | - | brief
        Taken back by their clients, but standing at a neighbour for what they cover.
    messages: messages | count | lower | brief
        Messages that brokers took from clients and from each other.
    publications: publications | count | -
        Publications issued.
    deliveries: deliveries made | count | -
        Publications handed to clients.
""")


def summarise_covering(record: CoveringRecord) -> dict[str, Any]:
    """The entry of ``summary.json``: ratios 0 to 1, times in seconds.

    ``core`` has triggered messages and table entries of each core broker.
    """
    delays, published = record.deliveries["delay_s"], record.deliveries["published_s"]
    brokers = record.brokers
    at_core = np.isin(brokers["broker"], record.core)
    last = brokers["broker"] == record.core[-1]
    late = published >= np.quantile(published, 0.9) if len(published) else slice(0)
    return {
        "delay_mean_s": mean(delays),
        "delay_p99_s": percentile(delays, 99),
        "delay_max_s": percentile(delays, 100),
        "delay_end_s": mean(delays[late]),
        "queue_max": int(longest_queue(record).max(initial=0)),
        "triggered_messages": int(brokers["triggered"].sum()),
        "triggered_last": int(brokers["triggered"][last].sum()),
        "table_entries_mean": mean(brokers["table"]),
        "table_entries_core": mean(brokers["table"][at_core]),
        "false_positives": int(brokers["false_positives"].sum()),
        "false_positive_ratio": ratio(
            int(brokers["false_positives"].sum()), int(brokers["publications"].sum())
        ),
        "kept_for_nobody": len(record.aggregates["broker"]),
        "messages": int(brokers["handled"].sum()),
        "publications": record.totals["publications"],
        "deliveries": len(delays),
        "core": {
            str(name): {"triggered": int(triggered), "table": int(table)}
            for name, triggered, table, chosen in zip(
                brokers["broker"], brokers["triggered"], brokers["table"], at_core, strict=True
            )
            if chosen
        },
        "totals": dict(record.totals),
        "settings": dict(record.settings),
    }


def longest_queue(record: CoveringRecord) -> Column:
    """int64[looks]: the longest input queue of the core at each look."""
    return np.asarray(np.max([record.queues[name] for name in record.core], axis=0))


# What is told by the tables of a covering that were read back, but that of deliveries.


TABLES: Final[Mapping[str, Expected]] = MappingProxyType(
    {
        "deliveries": Expected({"delay_s": REAL}),
        "queues": Expected({"time_s": REAL}),
        "brokers": Expected(
            {"table": WHOLE, "handled": WHOLE, "publications": WHOLE, "false_positives": WHOLE},
            {"triggered": WHOLE},
        ),
    }
)


def broker_rows(queues: Columns, brokers: Columns) -> Iterator[Row]:
    """What the queues and counts of brokers tell."""
    longest = _longest(queues)
    yield from measure_rows(
        {
            "queue_max": float(longest.max(initial=0)),
            "table_entries_mean": mean(brokers["table"]),
            "table_entries_gini": gini(brokers["table"]),
            "handled_gini": gini(brokers["handled"]),
            "messages": total(brokers, "handled"),
            "triggered_messages": total(brokers, "triggered"),
            "false_positives": total(brokers, "false_positives"),
            "false_positive_ratio": ratio(
                total(brokers, "false_positives"), total(brokers, "publications")
            ),
        }
    )
    yield from distribution("messages handled", brokers["handled"])
    yield from series("longest queue", queues["time_s"], longest, np.ones(len(longest)))


def _longest(queues: Columns) -> npt.NDArray[Any]:
    """The longest queue at each look; the brokers that were looked at differ between runs."""
    columns = [values for name, values in queues.items() if name != "time_s"]
    looks = len(queues["time_s"])
    return np.max(columns, axis=0) if columns else np.zeros(looks, np.int64)
