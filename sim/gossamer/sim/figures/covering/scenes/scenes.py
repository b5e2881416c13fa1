"""Scenes behind the mobile and workflow figures of both papers: what is run, what it measures."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final

import attrs
import numpy as np

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.brokers.core.routing import compiled_index
from gossamer.protocol.brokers.tree import TreeSettings
from gossamer.sim.figures.common.points import Floats
from gossamer.sim.figures.common.readings import LITERAL
from gossamer.sim.studies.tree_brokers.overlay.topology import CORE
from gossamer.sim.studies.tree_brokers.workloads.performance import Performance, Stage
from gossamer.sim.studies.tree_brokers.workloads.scene import SECOND, Scene
from gossamer.sim.study.records import Column, Table

keep_compiled_code()

# Rows of the tables over time, at most.
GROUPS: Final = 240


@attrs.frozen(kw_only=True)
class SceneRun:
    """One scene of a study.

    Attributes:
        study: the figure that it belongs to.
        reading: of the papers, LITERAL or ALTERNATIVE.
        case: what the study varies, in words.
        covering: how the brokers cover.
        scene: what is run, seed and all.
    """

    study: str
    reading: str = LITERAL
    case: str
    covering: str
    scene: Scene


@attrs.frozen(kw_only=True)
class SharedRuns:
    """Scenes that differ in pruning alone and share what stands before them: a task of `run_tasks`.

    Active, selective and incremental covering build the same tables.
    """

    runs: Sequence[SceneRun]

    @property
    def label(self) -> str:
        """For progress and errors."""
        first = self.runs[0]
        other = "" if first.reading == LITERAL else ", read otherwise"
        coverings = ", ".join(run.covering for run in self.runs)
        return f"{first.study}, {first.case}{other}, {coverings}"

    def run(self) -> list[SceneResult]:
        """Run them; raises `SimulationError`."""
        before = pickle.dumps(Stage(self.runs[0].scene, new_index=compiled_index))
        return [seen(run, _on_a_copy(before, run.scene.settings)) for run in self.runs]


def _on_a_copy(before: bytes, settings: TreeSettings) -> Performance:
    stage: Stage = pickle.loads(before)
    stage.change(settings)
    return stage.perform()


@attrs.frozen(kw_only=True, eq=False)
class SceneResult:
    """What a scene measured.

    Attributes:
        task: the scene.
        measures: values by name, see `seen`.
        times: a table with a row for each stretch of time.
        brokers: a table with a row for each broker.
    """

    task: SceneRun
    measures: Mapping[str, float]
    times: Table
    brokers: Table


def seen(task: SceneRun, result: Performance) -> SceneResult:
    """The measures of a scene.

    ``delay_mean_s``, ``delay_max_s``, ``delay_p50_s``: of all deliveries; ``queue_core_max``,
    ``queue_max``: longest input queue of a core broker, and of any; ``queue_mean_max``: largest
    mean over the brokers; ``queue_core_first``, ``queue_core_last``: mean queue of the core brokers
    in the first and last third; ``table_mean``, ``table_sd``: of the mean table over time;
    ``table_first``, ``table_last``: in the first and last tenth; ``false_positives``: share of
    publications between brokers.
    """
    delays = result.deliveries[:, 1] / SECOND
    core = [_is_core(task, name) for name in result.brokers]
    at_core = result.queues[:, core].max(axis=1)
    third, tenth = max(1, len(at_core) // 3), max(1, len(at_core) // 10)
    tables = result.tables.mean(axis=1)
    measures = {
        "delay_mean_s": float(delays.mean()) if len(delays) else np.nan,
        "delay_p50_s": float(np.median(delays)) if len(delays) else np.nan,
        "delay_max_s": float(delays.max(initial=0.0)),
        "queue_core_max": float(at_core.max()),
        "queue_core_max_last": float(at_core[-third:].max()),
        "queue_max": float(result.queues.max()),
        "queue_mean_max": float(result.queues.mean(axis=1).max()),
        "queue_core_first": float(at_core[:third].mean()),
        "queue_core_last": float(at_core[-third:].mean()),
        "table_mean": float(tables.mean()),
        "table_sd": float(tables.std()),
        "table_first": float(tables[:tenth].mean()),
        "table_last": float(tables[-tenth:].mean()),
        "false_positives": float(result.false_positives.sum() / max(1, result.received.sum())),
        "publications": float(np.count_nonzero(result.published >= 0)),
        "deliveries": float(len(delays)),
    }
    return SceneResult(
        task=task,
        measures=measures,
        times=_over_time(result, at_core, delays),
        brokers=_by_broker(task, result),
    )


def _is_core(task: SceneRun, broker: str) -> bool:
    return bool(task.scene.workload.overlay.graph.nodes[broker]["role"] == CORE)


def _over_time(result: Performance, at_core: Column, delays: Floats) -> dict[str, Column]:
    """Queues are the longest of a stretch, tables a mean, delays by the time of publication."""
    every = -(-len(result.times) // GROUPS)
    starts = np.arange(0, len(result.times), every)
    ends = result.times[np.minimum(starts + every, len(result.times)) - 1]
    group = np.searchsorted(ends, result.published[result.deliveries[:, 0]])
    inside = [delays[group == place] for place in range(len(starts))]

    def each(of_group: Callable[[Floats], float]) -> Column:
        return np.array([of_group(one) if len(one) else np.nan for one in inside])

    return {
        "time_s": ends / SECOND,
        "queue_core": np.maximum.reduceat(at_core, starts),
        "queue_mean": np.maximum.reduceat(result.queues.mean(axis=1), starts),
        "table_mean": result.tables.mean(axis=1)[starts],
        "delay_mean_s": each(lambda one: float(one.mean())),
        "delay_max_s": each(lambda one: float(one.max())),
    }


def _by_broker(task: SceneRun, result: Performance) -> dict[str, Column]:
    nodes = task.scene.workload.overlay.graph.nodes
    return {
        "broker": np.array(result.brokers),
        "tier": np.array([nodes[name]["tier"] for name in result.brokers]),
        "received": result.received,
        "false_positives": result.false_positives,
        "triggered": result.triggered,
        "queue_max": result.queues.max(axis=0),
        "table_mean": result.tables.mean(axis=0),
    }


@attrs.frozen(eq=False)
class Scenes:
    """The outcomes of all scenes of a part under a reading of the papers, or under both."""

    outcomes: Sequence[SceneResult]

    @classmethod
    def of(cls, outcomes: Sequence[Sequence[SceneResult]], *readings: str) -> Scenes:
        """From what `run_tasks` returns; without ``readings`` under both."""
        every = chain.from_iterable(outcomes)
        return cls([one for one in every if not readings or one.task.reading in readings])

    def one(self, study: str, covering: str, case: str) -> SceneResult:
        """The only scene of a study with that case and covering."""
        key = study, covering, case
        (found,) = [
            one
            for one in self.outcomes
            if (one.task.study, one.task.covering, one.task.case) == key
        ]
        return found

    def value(self, measure: str, study: str, covering: str, case: str) -> float:
        """A measure of that scene."""
        return self.one(study, covering, case).measures[measure]

    def tables(self, name: str) -> dict[str, Table]:
        """By name of the Parquet file: all scenes, what they measured over time and by broker."""
        measures = [
            {key: np.array([value]) for key, value in one.measures.items()} for one in self.outcomes
        ]
        return {
            name: self._stack(measures),
            f"{name}_times": self._stack([one.times for one in self.outcomes]),
            f"{name}_brokers": self._stack([one.brokers for one in self.outcomes]),
        }

    def _stack(self, parts: Sequence[Table]) -> Table:
        """Tables of scenes under one another, with columns that tell them apart."""
        lengths = [len(next(iter(part.values()))) for part in parts]
        tasks = [one.task for one in self.outcomes]
        keys: dict[str, Column] = {
            "study": np.repeat([task.study for task in tasks], lengths),
            "reading": np.repeat([task.reading for task in tasks], lengths),
            "case": np.repeat([task.case for task in tasks], lengths),
            "covering": np.repeat([task.covering for task in tasks], lengths),
        }
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return keys | joined
