"""Subscriptions and events taken from tables, in place of being drawn.

Those of a folder are the tables of a workload of kind "vinifera"
(`gossamer.sim.row_tables.vinifera`): the rows that `Workload` draws for the same seed, made
elsewhere and perhaps long before. Those of single files are the user's own (`own_workload`).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np

from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.storage.workloads import WorkloadFolder, workload_folder
from gossamer.sim.studies.peers.inputs.own_workload import OwnWorkload
from gossamer.sim.studies.peers.inputs.publications import published_before
from gossamer.sim.studies.peers.inputs.scenario import Scenario, Subscriptions
from gossamer.sim.studies.peers.inputs.workload import Workload
from gossamer.sim.study.draws import Floats, Int64s

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
        """Boxes int64[rows, 2A], the attributes they constrain, and the places they lie near."""
        boxes, constrained, places = _subscriptions(self._folder, self.spec.attributes)
        return boxes[rows], constrained[rows], places[rows]

    def event_rows(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Values int64[rows, A] of these events, and the places they lie near."""
        values, places, _ = _events(self._folder, self.spec.attributes)
        return values[rows], places[rows]

    def publisher_rows(self, rows: Int64s) -> Floats:
        """The draws in [0, 1) by which publishers of these events are chosen."""
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
