"""The bursts behind the controlled scenarios of both papers: what is run, and what it measures.

Bursts that differ only in what happens after the subscriptions are issued share their issuing:
the overlay is copied (pickled) as it stands then, and each burst hits a copy. Active, packed,
selective and incremental covering build the same tables, so they share it, too.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.brokers.core.routing import compiled_index
from gossamer.sim.figures.common.claims import LITERAL
from gossamer.sim.studies.tree_brokers.unsubscription_burst import (
    SECOND,
    BurstResult,
    BurstRun,
    UnsubscriptionBurst,
)
from gossamer.sim.study.records import Column, Table

keep_compiled_code()

# Delays are drawn over time as means of so many groups of publications.
GROUPS: Final = 120


@attrs.frozen(kw_only=True)
class Run:
    """One burst of a study.

    Attributes:
        study: the sweep that it belongs to.
        reading: of the papers, LITERAL or ALTERNATIVE.
        covering: how the brokers cover.
        x: the value of what the study varies.
        burst: what is run, seed and all.
        judged: microseconds after the first unsubscription; publications from the first to the
            second are those whose delays the paper reports, None: all.
    """

    study: str
    reading: str = LITERAL
    covering: str
    x: float
    burst: UnsubscriptionBurst
    measured: tuple[int, int] | None = None


@attrs.frozen(kw_only=True, eq=False)
class RunResult:
    """What a burst measured.

    Attributes:
        run: the burst.
        measures: values by name, see `measure`.
        core: a table with a row for each core broker.
        delays: a table with a row for each group of publications.
        queues: a table with a row for each look at the core's queues.
    """

    run: Run
    measures: Mapping[str, float]
    core: Table
    delays: Table
    queues: Table


@attrs.frozen(kw_only=True)
class Bursts:
    """Bursts that share the issuing of their subscriptions: a task of `run_tasks`."""

    runs: Sequence[Run]

    @property
    def label(self) -> str:
        """For progress and errors."""
        first = self.runs[0]
        coverings = ", ".join(dict.fromkeys(run.covering for run in self.runs))
        other = "" if first.reading == LITERAL else ", read otherwise"
        return f"{first.study} {first.x:g}{other}, {coverings}, seed {first.burst.seed}"

    def run(self) -> list[RunResult]:
        """Run them; raises `SimulationError`."""
        before = pickle.dumps(BurstRun(self.runs[0].burst, new_index=compiled_index))
        return [measure(run, _hit(before, run.burst)) for run in self.runs]


def _hit(before: bytes, burst: UnsubscriptionBurst) -> BurstResult:
    run: BurstRun = pickle.loads(before)
    # Copied with the rest, the overlay is not the same object any more, only equal.
    run.change(attrs.evolve(burst, overlay=run.burst.overlay))
    return run.hit()


def measure(run: Run, result: BurstResult) -> RunResult:
    """The measures of a burst.

    ``delay_mean_s``, ``delay_max_s``: of all deliveries; ``measured_s``: mean delay of those
    publications that the paper reports; ``steady_s``: of the last tenth; ``queue_max``: longest
    input queue of a core broker; ``triggered_first``, ``triggered_last``, ``triggered_max``:
    triggered messages that the first and last core broker get, and the one that gets most;
    ``onward_first``, ``onward_last``, ``onward_max``: those that they send on;
    ``table_core``: mean table at the core; ``false_positives`` and ``false_positives_core``: share
    of publications between brokers, and of those that core brokers get.
    """
    times = result.published[result.deliveries[:, 0]]
    delays = result.deliveries[:, 1] / SECOND
    begin, end = run.measured or (0, int(result.published[-1]) + 1)
    last_tenth = times >= np.quantile(result.published, 0.9)
    triggered = list(result.triggered.values())
    onward = [result.tallies[name].triggered_onward for name in result.core]
    core = [result.tallies[name] for name in result.core]
    measures = {
        "delay_mean_s": _mean(delays),
        "delay_max_s": float(delays.max(initial=0.0)),
        "measured_s": _mean(delays[(times >= begin) & (times < end)]),
        "steady_s": _mean(delays[last_tenth]),
        "queue_max": float(result.queues.max(initial=0)),
        "triggered_first": float(triggered[0]),
        "triggered_last": float(triggered[-1]),
        "triggered_max": float(max(triggered)),
        "onward_first": float(onward[0]),
        "onward_last": float(onward[-1]),
        "onward_max": float(max(onward)),
        "table_core": float(np.mean(list(result.tables.values()))),
        "false_positives": _share(result.false_positives, result.publications),
        "false_positives_core": _share(
            sum(one.false_positives for one in core), sum(one.arrived for one in core)
        ),
        "deliveries": float(len(delays)),
        "kept": float(len(result.kept)),
    }
    return RunResult(
        run=run,
        measures=measures,
        core=_core_table(result),
        delays=delay_groups(times / SECOND, delays),
        queues=_queue_table(run.burst, result),
    )


def delay_groups(times: Column, delays: Column) -> dict[str, Column]:
    """Delays by time of publication, in `GROUPS` groups: means, 10th and 90th percentiles."""
    edges = np.linspace(0.0, float(times.max(initial=0.0)) + 1e-6, GROUPS + 1)
    which = np.digitize(times, edges) - 1
    groups = [delays[which == group] for group in range(GROUPS)]

    def each(of_group: Callable[[Column], float]) -> Column:
        return np.array([of_group(group) if len(group) else np.nan for group in groups])

    return {
        "time_s": (edges[:-1] + edges[1:]) / 2,
        "delay_mean_s": each(lambda group: float(group.mean())),
        "delay_p10_s": each(lambda group: float(np.quantile(group, 0.1))),
        "delay_p90_s": each(lambda group: float(np.quantile(group, 0.9))),
    }


def _core_table(result: BurstResult) -> dict[str, Column]:
    tallies = [result.tallies[name] for name in result.core]
    return {
        "broker": np.array(result.core),
        "triggered": np.array([one.triggered for one in tallies]),
        "table": np.array([one.table for one in tallies]),
        "arrived": np.array([one.arrived for one in tallies]),
        "false_positives": np.array([one.false_positives for one in tallies]),
    }


def _queue_table(burst: UnsubscriptionBurst, result: BurstResult) -> dict[str, Column]:
    """At most some hundred rows; of the samples between two rows, the longest queue."""
    every = max(1, len(result.queues) // 500)
    starts = np.arange(0, len(result.queues), every)
    longest = np.maximum.reduceat(result.queues, starts, axis=0)
    time_s = (starts + 1) * burst.sample_every / SECOND
    return {
        "time_s": time_s,
        **{name: longest[:, place] for place, name in enumerate(result.core)},
    }


def _mean(values: Column) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
