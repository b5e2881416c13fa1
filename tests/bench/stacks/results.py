"""What came of a run of a stack, and of several."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import attrs
from attrs import frozen


@frozen
class Phase:
    """A stream of events and its deliveries; figures are None where there was too little of it."""

    due: int  # deliveries that should be: an event to each subscriber of its topic
    lost: int  # of them, those that did not come
    doubled: int  # deliveries that came again
    false: int  # and those that came to others
    refused: dict[str, int]  # events that the stack would not take, by what it said
    cpu_s: float  # of all processes, until the last delivery
    deliveries_per_cpu_s: float | None  # that were due and came, each counted once
    deliveries_per_s: float | None  # from the first event to the last of its deliveries
    latency_ms: float | None  # median, from when an event was due or published
    slow_ms: float | None  # the 99th percentile


@frozen
class Run:
    """A run of a stack."""

    joined_s: float  # until all peers were connected
    settled_s: float | None  # until every subscriber got what it should, if that came to pass
    resting_cpu: float  # processors that all used together while nothing was published
    resident_mb: float  # of all processes before the streams
    proportional_mb: float  # the same with what several share shared out among them
    steady: Phase
    burst: Phase


COUNTS = ("due", "lost", "doubled", "false")


def phase_of(
    due: Iterable[tuple[int, int]],
    receipts: Sequence[tuple[int, int, float, float]],
    refused: dict[str, int],
    cpu_s: float,
) -> Phase:
    """A phase from each [peer, event] due, and [peer, event, sent at, taken at] that came."""
    wanted = set(due)
    got = Counter((peer, event) for peer, event, _, _ in receipts)
    right = [one for one in receipts if (one[0], one[1]) in wanted]
    arrived = len(wanted & got.keys())
    latencies = sorted(1e3 * (taken - sent) for _, _, sent, taken in right)
    seconds = max((one[3] for one in right), default=0) - min((one[2] for one in right), default=0)
    return Phase(
        due=len(wanted),
        lost=len(wanted) - arrived,
        doubled=got.total() - len(got),
        false=len(got.keys() - wanted),
        refused=refused,
        cpu_s=cpu_s,
        deliveries_per_cpu_s=arrived / cpu_s if cpu_s else None,
        deliveries_per_s=arrived / seconds if seconds else None,
        latency_ms=statistics.median(latencies) if latencies else None,
        slow_ms=latencies[len(latencies) * 99 // 100] if latencies else None,
    )


def medians(runs: Sequence[Run]) -> dict[str, Any]:
    """The median of each figure, None where a run has none; deliveries are counted over all."""
    names = ("joined_s", "settled_s", "resting_cpu", "resident_mb", "proportional_mb")
    return {
        **{name: _median([getattr(run, name) for run in runs]) for name in names},
        "steady": _median_phase([run.steady for run in runs]),
        "burst": _median_phase([run.burst for run in runs]),
    }


def _median_phase(phases: Sequence[Phase]) -> dict[str, Any]:
    names = [one.name for one in attrs.fields(Phase) if one.name not in ("refused", *COUNTS)]
    return {
        **{name: sum(getattr(phase, name) for phase in phases) for name in COUNTS},
        **{name: _median([getattr(phase, name) for phase in phases]) for name in names},
        "refused": dict(sum((Counter(phase.refused) for phase in phases), Counter[str]())),
    }


def _median(values: Sequence[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return statistics.median(told) if len(told) == len(values) else None
