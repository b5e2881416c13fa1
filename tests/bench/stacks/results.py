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
    """A stream of events and its deliveries.

    Attributes:
        due: deliveries that should be: an event to each subscriber of its topic.
        lost, doubled, false: those that did not come, came again, or came to others.
        refused: events that the stack would not take, by what it said.
        cpu_s: processor seconds of all processes, until the last delivery.
        deliveries_per_cpu_s: deliveries that were due and came, each counted once;
            None where there was too little to do for the system's clock.
        deliveries_per_s: the same for seconds of the clock, from the first event to the last of its
            deliveries; None without any.
        latency_ms, slow_ms: median and 99th percentile, from when an event was due or published;
            None without any.
    """

    due: int
    lost: int
    doubled: int
    false: int
    refused: dict[str, int]
    cpu_s: float
    deliveries_per_cpu_s: float | None
    deliveries_per_s: float | None
    latency_ms: float | None
    slow_ms: float | None


@frozen
class Run:
    """A run of a stack.

    Attributes:
        joined_s: until all peers were connected.
        settled_s: until every subscriber got what it should; None if that did not come to pass.
        resting_cpu: processors that all used together while nothing was published.
        resident_mb: memory of all processes before the streams.
        proportional_mb: the same with what several processes share shared out among them.
    """

    joined_s: float
    settled_s: float | None
    resting_cpu: float
    resident_mb: float
    proportional_mb: float
    steady: Phase
    burst: Phase


COUNTS = ("due", "lost", "doubled", "false")


def phase_of(
    due: Iterable[tuple[int, int]],
    receipts: Sequence[tuple[int, int, float, float]],
    refused: dict[str, int],
    cpu_s: float,
) -> Phase:
    """A phase from what was due and what was taken.

    Args:
        due: [peer, event] of every delivery that should be.
        receipts: [peer, event, when it was sent, when it was taken] of those that were.
        refused: events that the stack would not take, by what it said.
        cpu_s: processor seconds.
    """
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
