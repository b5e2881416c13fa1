"""The bursts behind the controlled scenarios of both papers: what is run, and what it measures.

Bursts that differ only in what happens after the subscriptions are issued share their issuing:
the overlay is copied (pickled) as it stands then, and each burst hits a copy. Active, packed,
selective and incremental covering build the same tables, so they share it, too.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.brokers.core.broker import compiled_index
from gossamer.sim.figures.common.claims import ALTERNATIVE, LITERAL
from gossamer.sim.figures.common.measurements import RunResult
from gossamer.sim.figures.covering.readings import (
    incremental_times,
    selective_times,
    settings_of,
    table_ii,
)
from gossamer.sim.studies.tree_brokers.covering_workload import (
    BEHIND_CORE,
    REGION,
    CoveringWorkload,
)
from gossamer.sim.studies.tree_brokers.topology import controlled_49, controlled_55
from gossamer.sim.studies.tree_brokers.unsubscription_burst import (
    SECOND,
    BurstResult,
    BurstRun,
    UnsubscriptionBurst,
)
from gossamer.sim.study.records import Column

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
        measured: microseconds after the first unsubscription; publications from the first to the
            second are those whose delays the paper reports, None: all.
    """

    study: str
    reading: str = LITERAL
    covering: str
    x: float
    burst: UnsubscriptionBurst
    measured: tuple[int, int] | None = None


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
        tables={
            "core": _core_table(result),
            "delays": delay_groups(times / SECOND, delays),
            "queues": _queue_table(run.burst, result),
        },
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
    counted = ("triggered", "table", "arrived", "false_positives")
    columns = {name: np.array([getattr(one, name) for one in tallies]) for name in counted}
    return {"broker": np.array(result.core), **columns}


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


# The controlled scenarios of both papers: which bursts are run, at which sizes (Sec. V).
#
# What the papers leave open is chosen here once, before anything was measured:
#
# - *Subscriptions* are those of `covering_workload`: every root has the covering degree exactly.
# - *Publications* match about seven subscriptions each: a root, or two, and six that they cover.
#   The average database of the selective paper, 4.5 MB at 857 bytes an entry on 29 brokers, holds
#   seven matches for each of its 21,000 publications. The incremental paper says nothing.
# - *Statistics* hold as many publications: selective covering has 8,400 s of them before the burst,
#   the others, which keep none, a minute. (A first run had 600 s; see docs/covering.md.)
# - *Readings.* All of it is run under the literal reading and under the alternative of
#   `covering.readings`; what follows is the literal one.
# - *Service times* of the incremental paper are its Table II, each covering its own column; packed,
#   selective and incremental are active covering's. The selective paper gives none, but says that
#   its congested brokers "processed publications and subscriptions at a rate of only 3.3 per
#   second": there a subscription takes 300 ms and the rest is as in Table II. Its main comparison
#   is run with Table II as well.
# - *Unwanted aggregates* stay, as in the papers (`drop_unpaid` is off).


COMPARED: Final = "compared"
COMPARED_TABLE_II: Final = "compared, Table II"
UNSUBSCRIPTIONS, DEGREES, CLUSTERED = "unsubscriptions", "degrees", "clustered"
INCREMENTAL: Final = "incremental"

ACTIVE, LAZY, PACKED = "active", "lazy", "packed"
SELECTIVE: Final = "selective"

# Besides the root, a publication matches so many of the subscriptions that it covers.
CHILDREN_MATCHED: Final = 6


@attrs.frozen(kw_only=True)
class Plan:
    """Sizes of the bursts; times are seconds; by default those of a full run.

    Attributes:
        subscriptions, unsubscriptions: of the selective paper.
        unsubscribe_s: for how long unsubscriptions are issued.
        calm_s, aftermath_s: publications before, and from the first unsubscription on.
        history_s: publications before it, and the window of statistics, where there are any.
        measured_s: when the publications are issued whose delays count.
        degree, degrees: the covering degree, and others.
        fewer: fewer unsubscriptions.
        with_table_ii: whether the comparison is run with Table II as well.
        large: subscriptions of the incremental paper.
        triggered: by each unsubscription, the last is the default.
        roots_taken: unsubscriptions of the incremental paper, two a second.
        large_calm_s, large_aftermath_s: as above.
        large_publish_ms: between two publications.
    """

    subscriptions: int = 30_000
    unsubscriptions: int = 300
    unsubscribe_s: int = 150
    calm_s: int = 60
    history_s: int = 8_400  # 21,000 publications
    aftermath_s: int = 1_800
    measured_s: tuple[int, int] = (750, 870)  # 300 publications, 600 s after the unsubscriptions
    degree: int = 30
    degrees: tuple[int, ...] = (10, 30, 50)
    fewer: tuple[int, ...] = (100, 200)
    with_table_ii: bool = True
    large: int = 80_000
    triggered: tuple[int, ...] = (700, 1_400, 2_100)
    roots_taken: int = 20
    large_calm_s: int = 30
    large_aftermath_s: int = 400
    large_publish_ms: int = 10


FULL: Final = Plan()
QUICK: Final = Plan(
    subscriptions=900,
    unsubscriptions=12,
    unsubscribe_s=6,
    calm_s=10,
    history_s=100,
    aftermath_s=120,
    measured_s=(30, 80),
    degree=30,
    degrees=(10, 30),
    fewer=(4,),
    with_table_ii=False,
    large=1_500,
    triggered=(25, 75),
    roots_taken=8,
    large_calm_s=20,
    large_aftermath_s=40,
    large_publish_ms=100,
)


def plan_bursts(plan: Plan) -> list[Bursts]:
    """All bursts of a plan, those together that can share their subscriptions.

    A small one comes first, for it runs alone and compiles; then the longest.
    """
    runs = [
        run
        for reading in (LITERAL, ALTERNATIVE)
        for study in (_compared, _fewer, _degrees, _clustered, _incremental)
        for run in study(plan, reading)
    ]
    tasks = [Bursts(runs=shared) for shared in _shared(runs)]
    clustered = [task for task in tasks if task.runs[0].study == CLUSTERED]
    rest = [task for task in tasks if task.runs[0].study != CLUSTERED]
    return clustered + sorted(rest, key=_size, reverse=True)


def _size(task: Bursts) -> int:
    workload = task.runs[0].burst.workload
    return workload.roots * workload.step * (1 + len(task.runs))


def _shared(runs: Sequence[Run]) -> Iterator[list[Run]]:
    groups: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        burst = run.burst
        key = (burst.overlay.name, burst.workload, burst.placement, run.covering == LAZY)
        groups.setdefault(key, []).append(run)
    yield from groups.values()


def _compared(plan: Plan, reading: str) -> Iterator[Run]:
    """Selective paper, Sec. V-B, Fig. 7."""
    for covering in (ACTIVE, LAZY, PACKED, SELECTIVE):
        burst = _selective(plan, reading, covering)
        yield _run(plan, reading, COMPARED, covering, plan.unsubscriptions, burst)
        if plan.with_table_ii and reading == LITERAL:
            aftermath = plan.measured_s[1] * SECOND
            burst = attrs.evolve(burst, service=table_ii(covering), aftermath=aftermath)
            yield _run(plan, reading, COMPARED_TABLE_II, covering, plan.unsubscriptions, burst)


def _fewer(plan: Plan, reading: str) -> Iterator[Run]:
    """Selective paper, Sec. V-C, Fig. 8; most unsubscriptions are those of `_compared`."""
    for number in plan.fewer:
        for covering in (ACTIVE, SELECTIVE):
            burst = attrs.evolve(
                _selective(plan, reading, covering),
                unsubscriptions=number,
                unsubscribe_every=plan.unsubscribe_s * SECOND // number,
            )
            yield _run(plan, reading, UNSUBSCRIPTIONS, covering, number, burst)


def _degrees(plan: Plan, reading: str) -> Iterator[Run]:
    """Selective paper, Sec. V-D, Fig. 9; the default degree is that of `_compared`."""
    for degree in plan.degrees:
        if degree != plan.degree:
            for covering in (ACTIVE, SELECTIVE):
                burst = _selective(plan, reading, covering, degree)
                yield _run(plan, reading, DEGREES, covering, degree, burst)


def _clustered(plan: Plan, reading: str) -> Iterator[Run]:
    """Selective paper, Sec. V-E, Fig. 10."""
    for covering in (ACTIVE, SELECTIVE):
        placement = BEHIND_CORE if reading == LITERAL else REGION
        burst = attrs.evolve(_selective(plan, reading, covering), placement=placement)
        yield _run(plan, reading, CLUSTERED, covering, plan.degree, burst)


def _incremental(plan: Plan, reading: str) -> Iterator[Run]:
    """Incremental paper, Sec. V-A2 and V-A3, Fig. 6 and 7."""
    for triggered in plan.triggered:
        default = triggered == plan.triggered[-1]
        for covering in (ACTIVE, LAZY, PACKED, INCREMENTAL) if default else (ACTIVE, INCREMENTAL):
            burst = UnsubscriptionBurst(
                overlay=controlled_49(),
                workload=CoveringWorkload(round(plan.large / (triggered + 1)), triggered),
                settings=settings_of(reading, covering),
                service=incremental_times(reading, covering),
                unsubscriptions=plan.roots_taken,
                subscribe_every=SECOND // 10,
                publish_every=plan.large_publish_ms * 1_000,
                calm=plan.large_calm_s * SECOND,
                aftermath=plan.large_aftermath_s * SECOND,
                drain=14_400 * SECOND,
                reach=_reach(triggered),
            )
            yield Run(
                study=INCREMENTAL, reading=reading, covering=covering, x=triggered, burst=burst
            )


def _selective(
    plan: Plan, reading: str, covering: str, degree: int | None = None
) -> UnsubscriptionBurst:
    degree = plan.degree if degree is None else degree
    history_s = plan.history_s if covering == SELECTIVE else plan.calm_s
    window = (plan.history_s + plan.unsubscribe_s) * SECOND
    return UnsubscriptionBurst(
        overlay=controlled_55(),
        workload=CoveringWorkload(round(plan.subscriptions / (degree + 1)), degree),
        settings=settings_of(reading, covering, statistics_window=window),
        service=selective_times(reading, covering),
        unsubscriptions=plan.unsubscriptions,
        unsubscribe_every=plan.unsubscribe_s * SECOND // plan.unsubscriptions,
        calm=history_s * SECOND,
        aftermath=plan.aftermath_s * SECOND,
        drain=36_000 * SECOND,
        reach=_reach(degree),
    )


def _run(
    plan: Plan, reading: str, study: str, covering: str, x: float, burst: UnsubscriptionBurst
) -> Run:
    begin, end = plan.measured_s
    of: dict[str, Any] = {"study": study, "reading": reading, "covering": covering, "x": float(x)}
    return Run(**of, burst=burst, measured=(begin * SECOND, end * SECOND))


def _reach(degree: int) -> float:
    return 1 + CHILDREN_MATCHED / (degree + 1)
