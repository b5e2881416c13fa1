"""Points of a figure: one system on one scenario each; a point's scenario carries the seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from gossamer.sim.figures.common.claims import Claim, write_claims, write_readings
from gossamer.sim.results.held import UNFINISHED
from gossamer.sim.results.plot_style import plot_style, save
from gossamer.sim.results.results import whole_folder, write_table
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.studies.peers.inputs.workload import Workload
from gossamer.sim.studies.peers.measuring.records import SystemRecord
from gossamer.sim.studies.peers.measuring.summary import HOUR_S, load_shares, summarise_system
from gossamer.sim.studies.peers.study import simulate
from gossamer.sim.study.checkpoints import Checkpoints
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.records import Column, Table
from gossamer.sim.study.tasks import Progress, Task, run_tasks

Floats = npt.NDArray[np.float64]

# Measures of `summarise_system` that the figures use or that tell whether a point can be trusted.
_MEASURES = (
    "hit_ratio",
    "hit_ratio_worst_hour",
    "traffic_overhead",
    "path_length_mean",
    "path_length_p99",
    "tree_length_mean",
    "load_p95",
    "load_max",
    "routing_table_entries_mean",
    "routing_table_entries_max",
    "control_messages_per_node_cycle",
    "ring_correct_final",
    "events",
    "expected",
    "delivered",
    "received",
    "uninterested",
    "duplicates",
    "false_positives",
)


@attrs.frozen(kw_only=True)
class Point:
    """One run of a study.

    Attributes:
        study: the sweep that it belongs to.
        system: name of the one system in ``scenario``.
        kind: of subscriptions, "random" or "skewed".
        x: the value of what the study varies.
        scenario: what is run, seed and all.
    """

    study: str
    system: str
    kind: str
    x: float
    scenario: Scenario

    @property
    def label(self) -> str:
        """For progress and errors."""
        return f"{self.study} {self.x:g}, {self.system}, {self.kind}, seed {self.scenario.seed}"

    def run(self) -> Outcome:
        """Run it, see `measure`."""
        return measure(self)


@attrs.frozen(kw_only=True, eq=False)
class Outcome:
    """What a point measured.

    Attributes:
        point: the point.
        measures: values by name: those of ``summary.json``, and those of `measure`.
        load: float64[nodes], sorted: share of all events that each node handled without interest.
        hours: columns of equal length, one row an hour of simulated time.
    """

    point: Point
    measures: Mapping[str, float]
    load: Floats
    hours: Mapping[str, Column]


def measure(point: Point) -> Outcome:
    """Run one point, and measure it.

    Raises:
        ScenarioError, CapacityError: as `simulate`.
    """
    record = simulate(point.scenario, execution=Execution(workers=1)).systems[point.system]
    return measure_record(point, record)


def measure_record(point: Point, record: SystemRecord, further: Sequence[str] = ()) -> Outcome:
    """What a run of a point measured.

    Beside the measures of a summary there are: ``messages_per_event``; ``lookup_hops``, the mean
    way from publisher to rendezvous node; ``merged`` and ``refused``, table entries that were
    widened or lost for want of room; ``load_zero`` and ``load_above_60``, shares of nodes with no
    load and with more than 60 %; ``in_degree_mean`` and ``in_degree_max``, links to a node; and
    ``feasible_hit_ratio``, see there.

    Args:
        point: what was run.
        record: of its system.
        further: names of measures of a summary that others do without.
    """
    summary = summarise_system(record)
    measures = {name: float(summary[name]) for name in (*_MEASURES, *further)}
    load = np.sort(record.nodes["load"])
    measures |= {
        "messages_per_event": measures["received"] / max(measures["events"], 1.0),
        "lookup_hops": measures["path_length_mean"] - measures["tree_length_mean"],
        "merged": float(record.totals.get("merged_subscriptions", 0)),
        "refused": float(record.totals.get("refused_subscriptions", 0)),
        **load_shares(load),
        "in_degree_mean": float(record.nodes["in_degree"].mean()),
        "in_degree_max": float(record.nodes["in_degree"].max()),
        "feasible_hit_ratio": feasible_hit_ratio(point.scenario, record.events["cycle"]),
    }
    return Outcome(point=point, measures=measures, load=load, hours=hourly(record))


def feasible_hit_ratio(scenario: Scenario, cycles: Column) -> float:
    """The most that any system could deliver, relays and all costing nothing.

    A node takes at most the network's event capacity in a round, whatever it wants. Assumes that
    everybody is online; 1 without a capacity.

    Args:
        scenario: the run.
        cycles: int[events], the round in which each event was published.
    """
    capacity = scenario.network.event_capacity
    if capacity is None or scenario.nodes is None or len(cycles) == 0:
        return 1.0
    workload = Workload(scenario.subscriptions, scenario.seed)
    boxes, constrained = workload.subscriptions(scenario.nodes)
    low, high = boxes[:, :, 0::2], boxes[:, :, 1::2]
    wanted_in_all = taken_in_all = 0
    first = 0
    for count in np.bincount(cycles)[np.unique(cycles)]:
        wanted = np.zeros(scenario.nodes, np.int64)
        for values in workload.events(first, int(count)):
            inside = np.all((low <= values) & (values <= high), axis=2) & (constrained >= 0)
            wanted += inside.any(axis=1)
        wanted_in_all += int(wanted.sum())
        taken_in_all += int(np.minimum(wanted, capacity).sum())
        first += int(count)
    return taken_in_all / wanted_in_all if wanted_in_all else 1.0


def hourly(record: SystemRecord) -> dict[str, Column]:
    """Hit ratio, traffic overhead, mean path length and nodes online, hour by hour."""
    cycles, deliveries = record.cycles, record.deliveries
    hour = np.floor_divide(cycles["time_s"], HOUR_S).astype(np.int64)
    delivered_in = np.floor_divide(deliveries["time_s"], HOUR_S).astype(np.int64)
    hours = int(hour[-1]) + 1 if len(hour) else 0

    def sums(group: Column, values: Column) -> Floats:
        return np.bincount(group, weights=values, minlength=hours).astype(np.float64)

    expected = sums(hour, cycles["expected"])
    received = sums(hour, cycles["received"])
    deliveries_in = np.bincount(delivered_in, minlength=hours).astype(np.float64)
    return {
        "hour": np.arange(hours, dtype=np.float64),
        "population": ratio(sums(hour, cycles["population"]), np.bincount(hour, minlength=hours)),
        "hit_ratio": ratio(sums(hour, cycles["delivered"]), expected),
        "traffic_overhead": ratio(sums(hour, cycles["uninterested"]), received),
        "path_length": ratio(sums(delivered_in, deliveries["hops"]), deliveries_in),
        "expected": expected,
    }


def ratio(parts: Column, wholes: Column) -> Floats:
    """float64: ``parts`` over ``wholes``, NaN where that is zero."""
    absent = np.full(len(wholes), np.nan)
    return np.asarray(np.divide(parts, wholes, out=absent, where=wholes > 0))


def kept_beside(out: Path) -> Path:
    """Where the outcomes of figures are kept that are written to ``out`` in the end."""
    return out.with_name(out.name + UNFINISHED)


def run_kept_points(
    points: Sequence[Point], processes: int, folder: Path, progress: Progress | None = None
) -> list[Outcome]:
    """Run ``points``, but for those that ``folder`` has outcomes of, and return all in order.

    Each outcome is a checkpoint: it serves the same point under the same sources only.

    Args:
        points: of different labels.
        processes: how many run at a time.
        folder: each outcome is saved there as it comes; whoever has used them removes it.
        progress: as of `run_tasks`; counts those that were kept, too.

    Raises:
        ScenarioError: an outcome there is damaged, or of other sources than these.
        SimulationError: as `run_tasks`.
    """
    kept = {point.label: Checkpoints(folder, point.scenario) for point in points}
    found: dict[str, Outcome] = {}
    for label, checkpoints in kept.items():
        outcome = checkpoints.load(_name(label))
        if outcome is not None:
            found[label] = outcome
    missing = [point for point in points if point.label not in found]
    already = len(found)

    def save(outcome: Outcome) -> None:
        label = outcome.point.label
        kept[label].save(_name(label), outcome)
        found[label] = outcome

    def show(name: str, done: int, _total: int) -> None:
        if progress is not None:
            progress(name, already + done, len(points))

    run_tasks(missing, processes, show, finished=save)
    return [found[point.label] for point in points]


def _name(label: str) -> str:
    """The file of a point, whose label may hold anything."""
    return hashlib.sha256(label.encode()).hexdigest()[:20]


@attrs.frozen(kw_only=True)
class Experiment:
    """Claims with the runs that decide them.

    Attributes:
        tasks: what is run, reduced if the argument says so.
        check: the claims, from the outcomes of all tasks in their order.
        tables: what is kept of the outcomes, by name of the Parquet file.
        draw: the plots, by name of the file; called within `plot_style`.
    """

    tasks: Callable[[bool], Sequence[Task[Any]]]
    check: Callable[[Sequence[Any]], Sequence[Claim]]
    tables: Callable[[Sequence[Any]], Mapping[str, Table]]
    draw: Callable[[Sequence[Any]], Iterable[tuple[str, Figure]]]


def stacked(of: Sequence[Any], keys: Sequence[str], parts: Sequence[Table]) -> dict[str, Column]:
    """Tables under one another, with columns that tell them apart.

    Args:
        of: what each table is of.
        keys: attributes of these, as "run.study"; the last part of each names a column.
        parts: the tables, of the same columns.
    """
    lengths = [len(next(iter(part.values()))) for part in parts]
    known = {
        key.rpartition(".")[-1]: np.repeat([attrgetter(key)(one) for one in of], lengths)
        for key in keys
    }
    return {**known, **{name: np.concatenate([part[name] for part in parts]) for name in parts[0]}}


def row_of(measures: Mapping[str, float]) -> dict[str, Column]:
    """Measures as a table of one row."""
    return {name: np.array([value]) for name, value in measures.items()}


def write_figures(
    out: Path,
    claims: Sequence[Claim],
    tables: Mapping[str, Table],
    plots: Callable[[], Iterable[tuple[str, Figure]]],
    *,
    readings: bool = True,
    report: str | None = None,
) -> None:
    """Write the figures of a paper into the new folder ``out``, whole.

    Args:
        out: the folder; on any error it is not made.
        claims: with their verdicts.
        tables: by name of the Parquet file.
        plots: draws them, by name of the file; called within `plot_style`.
        readings: whether the claims have two readings, and ``readings.md`` sets them side by side.
        report: what ``report.md`` says, if there is one.
    """
    with whole_folder(Path(out), replace=False) as folder:
        write_claims(claims, folder)
        if readings:
            write_readings(claims, folder)
        if report is not None:
            (folder / "report.md").write_text(report, encoding="utf-8")
        for name, table in tables.items():
            write_table(table, folder / f"{name}.parquet")
        drawn = folder / "plots"
        drawn.mkdir()
        with plot_style():
            for name, figure in plots():
                save(figure, drawn, name)


# Where the checkout is that figures take examples and data from.
CHECKOUT: Final = Path(__file__).resolve().parents[5]
