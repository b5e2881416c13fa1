"""Files of the user's own as the workload of a run: who wants what, what is published, and when."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np

from gossamer.sim.churn import ChurnTrace
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.storage.workloads import WorkloadFolder, workload_folder
from gossamer.sim.studies.peers.inputs.own_tables import (
    NODE,
    PUBLISHER,
    Bools,
    Published,
    Subscribed,
    published,
    subscribed,
)
from gossamer.sim.studies.peers.inputs.publications import (
    Timetable,
    end_of_part,
    published_before,
    timetable_by_rate,
)
from gossamer.sim.studies.peers.inputs.scenario import Events, Scenario, Subscriptions
from gossamer.sim.studies.peers.inputs.taken_from import TakenFrom, check_no_publishers
from gossamer.sim.studies.peers.inputs.workload import Workload
from gossamer.sim.study.draws import Floats, Int64s


class OwnWorkload(Workload):
    """Subscriptions and events of files of one's own; what there is no file of is drawn.

    Events are numbered in order of their rounds.

    Args:
        spec: how many attributes and subscriptions there are, and what is drawn.
        seed: of draws.
        taken: the files.
        round_s: length of a round.
    """

    def __init__(self, spec: Subscriptions, seed: int, taken: TakenFrom, round_s: float) -> None:
        super().__init__(spec, seed)
        self._taken = taken
        self._round_s = round_s

    def subscriptions(self, nodes: int) -> tuple[Int64s, Int64s]:
        found = self.subscribed
        if found is None:
            return super().subscriptions(nodes)
        spec = self.spec
        boxes = np.zeros((nodes, spec.per_node, 2 * spec.attributes), np.int64)
        constrained = np.full((nodes, spec.per_node), -1, np.int64)
        boxes[found.node, found.slot] = found.boxes
        constrained[found.node, found.slot] = found.constrained
        return boxes, constrained

    def event_rows(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        found = self.published
        if found is None:
            return super().event_rows(rows)
        return found.values[rows], np.full(len(rows), -1, np.int64)

    def publisher(self, event: int) -> int | None:
        found = self.published
        if found is None or found.publisher is None:
            return None
        return int(found.publisher[event])

    @property
    def subscribed(self) -> Subscribed | None:
        """The subscriptions of the file, if there is one; raises `ScenarioError`."""
        file, spec = self._taken.subscriptions, self.spec
        return None if file is None else subscribed(file, spec.attributes, spec.per_node)

    @property
    def published(self) -> Published | None:
        """The events of the file, if there is one; raises `ScenarioError`."""
        file = self._taken.events
        return None if file is None else published(file, self.spec.attributes, self._round_s)


def timetable_of(scenario: Scenario, workload: Workload, rounds: int, parts: int) -> Timetable:
    """When the events of a scenario are published; those of a file as it says."""
    found = workload.published if isinstance(workload, OwnWorkload) else None
    if found is None:
        return timetable_by_rate(scenario.events, rounds, parts)
    count = int(np.searchsorted(found.cycle, rounds))
    cycle, late = found.cycle[:count], len(found.cycle) - count
    if found.time_s is None:
        first = np.searchsorted(cycle, cycle)
        return Timetable.of(cycle, (np.arange(count) - first) % parts, rounds, parts, late)
    ends = [end_of_part(cycle, part, parts, scenario.round_s) for part in range(parts - 1)]
    part = np.array([end < found.time_s[:count] for end in ends]).sum(axis=0, dtype=np.int64)
    return Timetable.of(cycle, part, rounds, parts, late)


def paced(scenario: Scenario, timetable: Timetable) -> Events:
    """The events of a scenario with their rate; of a file the most that there are in a round."""
    if scenario.workload is None or scenario.workload.events is None:
        return scenario.events
    return attrs.evolve(scenario.events, per_round=float(timetable.counts.max(initial=0)))


def check_own(
    scenario: Scenario,
    workload: Workload,
    nodes: int,
    timetable: Timetable,
    trace: ChurnTrace | None,
) -> None:
    """Refuse files of one's own that do not fit the run, whose trace is None if all are online.

    Raises:
        ScenarioError: a node is not there, or not online when it publishes; or there is no event
            in the rounds of the run.
    """
    if not isinstance(workload, OwnWorkload):
        return
    expected = f"a node from 0 to {nodes - 1}"
    wanted, events = workload.subscribed, workload.published
    if wanted is not None and wanted.node[-1] >= nodes:
        at = int(np.argmax(wanted.node >= nodes))
        raise wanted.table.error(int(wanted.rows[at]), NODE, expected)
    if events is None:
        return
    if timetable.size == 0:
        until_s = timetable.rounds * scenario.round_s
        asked = f"an event in the {until_s:g} s that are run"
        raise ScenarioError(str(events.table.path), "the first round", int(events.cycle[0]), asked)
    if events.publisher is None:
        return
    check_no_publishers(scenario.events)
    if (events.publisher >= nodes).any():
        at = int(np.argmax(events.publisher >= nodes))
        raise events.table.error(int(events.rows[at]), PUBLISHER, expected)
    if trace is None:
        return
    times = timetable.times_s(scenario.round_s)
    there = online_at(trace, events.publisher[timetable.numbers], times)
    if not there.all():
        at = int(np.argmin(there))
        asked = f"a node that is online at {times[at]:g} s, when the event is published"
        raise events.table.error(int(events.rows[timetable.numbers[at]]), PUBLISHER, asked)


def online_at(trace: ChurnTrace, nodes: Int64s, times_s: Floats) -> Bools:
    """bool[k]: whether each node is online at its time; who is so at the end of the trace stays."""
    order = np.lexsort((trace.start_s, trace.node))
    node, start_s, end_s = trace.node[order], trace.start_s[order], trace.end_s[order]
    end_s = np.where(end_s == trace.duration_s, np.inf, end_s)
    first = np.searchsorted(node, nodes, side="left")
    last = np.searchsorted(node, nodes, side="right")
    found = np.zeros(len(nodes), np.bool_)
    for i, (begin, end, time_s) in enumerate(zip(first, last, times_s, strict=True)):
        at = begin + int(np.searchsorted(start_s[begin:end], time_s, side="right")) - 1
        found[i] = at >= begin and time_s < end_s[at]
    return found


# Subscriptions and events taken from tables, in place of being drawn.
#
# Those of a folder are the tables of a workload of kind "vinifera"
# (`gossamer.sim.row_tables.vinifera`): the rows that `Workload` draws for the same seed, made
# elsewhere and perhaps long before. Those of single files are the user's own (`own_workload`).


KIND: Final = "vinifera"
SUBSCRIPTIONS, EVENTS = "subscriptions", "events"


class TableWorkload(Workload):
    """Subscriptions and events of a folder; rows are read when they are first asked for.

    Args:
        spec: what the rows are like.
        seed: of draws of the scenario that are none of the workload's.
        folder: of the workload.
    """

    def __init__(self, spec: Subscriptions, seed: int, folder: Path) -> None:
        super().__init__(spec, seed)
        self._folder = folder

    def subscription_rows(self, rows: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        boxes, constrained, places = _subscriptions(self._folder, self.spec.attributes)
        return boxes[rows], constrained[rows], places[rows]

    def event_rows(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        values, places, _ = _events(self._folder, self.spec.attributes)
        return values[rows], places[rows]

    def publisher_rows(self, rows: Int64s) -> Floats:
        _, _, draws = _events(self._folder, self.spec.attributes)
        return np.asarray(draws[rows])


def workload_of(scenario: Scenario) -> Workload:
    """What nodes subscribe to and publish in a scenario: drawn, or taken from tables."""
    spec, taken = scenario.subscriptions, scenario.workload
    if taken is None:
        return Workload(spec, scenario.seed)
    if taken.folder is not None:
        return TableWorkload(spec, scenario.seed, taken.folder)
    return OwnWorkload(spec, scenario.seed, taken, scenario.round_s)


def taken_from(scenario: Scenario) -> WorkloadFolder | None:
    """The folder that a scenario takes its workload from.

    Raises:
        ResultsError: there is no workload in it.
        ScenarioError: it is of another kind, or its subscriptions are not those of the scenario.
    """
    if scenario.workload is None or scenario.workload.folder is None:
        return None
    found = workload_folder(scenario.workload.folder)
    file = str(found.path)
    if found.kind != KIND:
        raise ScenarioError(file, "kind", found.kind, f"{KIND!r}, for a simulation of peers")
    made_for = subscriptions_of(found)
    for field in attrs.fields(Subscriptions):
        asked, made = (getattr(one, field.name) for one in (scenario.subscriptions, made_for))
        if asked != made:
            expected = f"{made!r}, as in the workload {file}"
            raise ScenarioError(None, f"subscriptions.{field.name}", asked, expected)
    return found


def subscriptions_of(found: WorkloadFolder) -> Subscriptions:
    """What the subscriptions of a workload are like.

    Raises:
        ScenarioError: its description does not say so.
    """
    settings = {key: value for key, value in found.settings.items() if key not in found.rows}
    try:
        return Subscriptions(**settings)
    except (TypeError, ScenarioError) as error:
        reason = str(error).rstrip(".")
        expected = "those of [subscriptions]"
        raise ScenarioError(str(found.path), "settings", None, expected, reason) from None


def values_for(folder: Path) -> dict[str, object]:
    """What a scenario has to say to take a workload, by dotted key.

    Raises:
        ScenarioError: its description does not say what its subscriptions are like.
    """
    made_for = attrs.asdict(subscriptions_of(workload_folder(folder)))
    values = {f"subscriptions.{name}": value for name, value in made_for.items()}
    return {"workload.folder": folder} | values


def require_enough(found: WorkloadFolder, scenario: Scenario, nodes: int, rounds: int) -> None:
    """Refuse a run that needs more rows than there are.

    Raises:
        ScenarioError: it has more nodes, or publishes more, than the workload has rows for.
    """
    most = found.rows.get(SUBSCRIPTIONS, 0) // scenario.subscriptions.per_node
    if nodes > most:
        expected = f"at most {most:,}, for which the workload {found.path} has subscriptions"
        raise ScenarioError(None, "nodes", nodes, expected)
    needed, there = int(published_before(scenario.events, rounds)[-1]), found.rows.get(EVENTS, 0)
    if needed > there:
        expected = f"a rate by which no more are published than the {there:,} of {found.path}"
        raise ScenarioError(None, "events.per_round", scenario.events.per_round, expected)


@lru_cache(maxsize=2)
def _subscriptions(folder: Path, attributes: int) -> tuple[Int64s, Int64s, Int64s]:
    ends = [f"{end}_{a}" for a in range(attributes) for end in ("low", "high")]
    table = workload_folder(folder).columns(SUBSCRIPTIONS, [*ends, "constrained", "place"])
    boxes = np.stack([_whole(table, name) for name in ends], axis=1)
    return boxes, _whole(table, "constrained"), _whole(table, "place")


@lru_cache(maxsize=2)
def _events(folder: Path, attributes: int) -> tuple[Int64s, Int64s, Floats]:
    names = [f"value_{a}" for a in range(attributes)]
    table = workload_folder(folder).columns(EVENTS, [*names, "place", "publisher"])
    values = np.stack([_whole(table, name) for name in names], axis=1)
    return values, _whole(table, "place"), table["publisher"].to_numpy().astype(np.float64)


def _whole(table: Any, name: str) -> Int64s:
    return np.asarray(table[name].to_numpy(), np.int64)
