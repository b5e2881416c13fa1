"""What a run of a broker overlay leaves in memory: tables by covering, for whoever writes results.

A table is a mapping from column name to a one-dimensional NumPy array; all columns of a table have
one length. Times are seconds of simulated time since the first unsubscription.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from gossamer.sim.studies.tree_brokers.unsubscription_burst import (
    SECOND,
    BurstResult,
    Kept,
    Tally,
    UnsubscriptionBurst,
)
from gossamer.sim.study.records import Column, Table


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
        yield "deliveries", self.deliveries
        yield "queues", self.queues
        yield "brokers", self.brokers
        yield "aggregates", self.aggregates


@attrs.frozen(kw_only=True, eq=False)
class BrokerRunRecord:
    """A finished run: one burst under several coverings.

    Attributes:
        scenario: the scenario as plain values.
        scenario_text: the scenario file as the user wrote it.
        seed: of everything random.
        versions: of gossamer, Python and the libraries that matter.
        wall_s: wall-clock time of the run.
        peak_rss_bytes: largest resident memory of a process.
        systems: the coverings by name.
    """

    scenario: Mapping[str, Any]
    scenario_text: str
    seed: int
    versions: Mapping[str, str]
    wall_s: float
    peak_rss_bytes: int
    systems: Mapping[str, CoveringRecord]


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
