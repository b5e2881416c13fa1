"""Scenes behind the mobile and workflow figures of both papers: what is run, what it measures."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Final

import attrs
import numpy as np

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.brokers.core.broker import compiled_index
from gossamer.protocol.brokers.tree import TreeSettings
from gossamer.sim.figures.common.claims import ALTERNATIVE, LITERAL
from gossamer.sim.figures.common.measurements import RunResult, Runs
from gossamer.sim.figures.common.points import Floats
from gossamer.sim.figures.covering.readings import (
    incremental_times,
    selective_times,
    settings_of,
)
from gossamer.sim.studies.tree_brokers.commuters import Commuters
from gossamer.sim.studies.tree_brokers.game import EACH, IN_TURN, Game
from gossamer.sim.studies.tree_brokers.processes import (
    EVERYTHING,
    TRIGGERS,
    Processes,
)
from gossamer.sim.studies.tree_brokers.scene import (
    MINUTE,
    SECOND,
    Performance,
    Scene,
    Stage,
    standing_for,
)
from gossamer.sim.studies.tree_brokers.topology import CORE
from gossamer.sim.study.records import Column

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

    def run(self) -> list[RunResult]:
        """Run them; raises `SimulationError`."""
        before = pickle.dumps(Stage(self.runs[0].scene, new_index=compiled_index))
        return [seen(run, _on_a_copy(before, run.scene.settings)) for run in self.runs]


def _on_a_copy(before: bytes, settings: TreeSettings) -> Performance:
    stage: Stage = pickle.loads(before)
    stage.change(settings)
    return stage.perform()


def seen(task: SceneRun, result: Performance) -> RunResult:
    """The measures of a scene.

    ``delay_mean_s``, ``delay_max_s``, ``delay_p50_s``: of all deliveries; ``queue_core_max``,
    ``queue_max``: longest input queue of a core broker, and of any; ``queue_mean_max``: largest
    mean over the brokers; ``queue_core_first``, ``queue_core_last``: mean queue of the core brokers
    in the first and last third; ``table_mean``, ``table_sd``: of the mean table over time;
    ``table_first``, ``table_last``: in the first and last tenth; ``false_positives``: share of
    publications between brokers.
    """
    delays = result.deliveries[:, 1] / SECOND
    nodes = task.scene.workload.overlay.graph.nodes
    core = [nodes[name]["role"] == CORE for name in result.brokers]
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
    tables = {
        "times": _over_time(result, at_core, delays),
        "brokers": _by_broker(task, result),
    }
    return RunResult(run=task, measures=measures, tables=tables)


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


class Scenes(Runs):
    """What scenes measured, by study, covering and case."""

    varied = "case"


# The scenes behind the mobile figures: what is run, at which sizes.
#
# - *The game* (selective paper, Sec. V-F) has the service times of that paper's congested brokers
#   (`covering.readings`), one publication every two seconds, whose rate the paper does not tell,
#   and half of its six hours.
# - *The city* (incremental paper, Sec. V-B) is seen for the four minutes around the peak of the
#   morning. One publication stands for twenty, and takes a broker twenty times what Table II says:
#   brokers are as busy, at a twentieth of the events.
# - Aggregates stay for good, as in the papers (`drop_unpaid` is off).


GAME, CITY = "game", "city"
MONITORS, EVERYBODY = "only monitors move", "all move"
RUSH: Final = "rush hour"
ACTIVE, SELECTIVE, INCREMENTAL = "active", "selective", "incremental"
WORKFLOW: Final = "workflow"
TOGETHER, STAGGERED = "auditors together", "auditors one after another"
CASES: Final = (TOGETHER, STAGGERED)


@attrs.frozen(kw_only=True)
class Plan:
    """Sizes of the scenes; by default those of a full run.

    Attributes:
        players, game_minutes: subscribers and length of the game.
        subscribers: of the city.
        rush_minutes: from the beginning of the city's scene to the peak, at its middle.
        standing_for: publications of the city that one stands for.
    """

    players: int = 5_000
    game_minutes: int = 180
    subscribers: int = 200_000
    rush_minutes: int = 2
    standing_for: int = 20


FULL: Final = Plan()
QUICK: Final = Plan(players=200, game_minutes=20, subscribers=500, rush_minutes=1, standing_for=100)


def plan_mobile(quick: bool) -> list[SharedRuns]:
    """Both scenes under active covering and the papers' pruning, for both readings; the longest
    come first."""
    plan = QUICK if quick else FULL
    readings = (LITERAL, ALTERNATIVE)
    return [
        *(_city(plan, reading) for reading in readings),
        *(_game(plan, reading, case) for reading in readings for case in (EVERYBODY, MONITORS)),
    ]


def _shared(study: str, reading: str, case: str, pruned: str, **scene: Any) -> SharedRuns:
    """A scene under active covering, and under what prunes."""
    runs = [
        SceneRun(
            study=study,
            reading=reading,
            case=case,
            covering=covering,
            scene=Scene(settings=settings_of(reading, covering), **scene),
        )
        for covering in (ACTIVE, pruned)
    ]
    return SharedRuns(runs=runs)


def _city(plan: Plan, reading: str) -> SharedRuns:
    workload = Commuters(
        subscribers=plan.subscribers,
        rush=plan.rush_minutes * MINUTE,
        publish_every=4_000 * plan.standing_for,
    )
    return _shared(
        CITY,
        reading,
        RUSH,
        INCREMENTAL,
        workload=workload,
        service=standing_for(incremental_times(reading, ACTIVE), plan.standing_for),
        span=2 * plan.rush_minutes * MINUTE,
        drain=40 * MINUTE,
        sample_every=SECOND,
    )


def _game(plan: Plan, reading: str, case: str) -> SharedRuns:
    workload = Game(
        players=plan.players,
        player_every=SECOND if case == EVERYBODY else 0,
        publish_every=2 * SECOND,
        monitors_move=IN_TURN if reading == LITERAL else EACH,
    )
    return _shared(
        GAME,
        reading,
        case,
        SELECTIVE,
        workload=workload,
        service=selective_times(reading, ACTIVE),
        span=plan.game_minutes * MINUTE,
        sample_every=10 * SECOND,
    )


# The scenes behind the workflow figure of the incremental paper (Sec. V-C): what is run.
#
# The paper does not say whether the four auditors audit at the same time: its claim is judged where
# they do, and they are run one after another as well. Aggregates stay for good, as in the paper
# (`drop_unpaid` is off); service times are its Table II.


def plan_workflow(quick: bool) -> list[SharedRuns]:
    """Active covering and incremental pruning, for both readings of the paper and of when the
    auditors audit."""
    whole = Processes()
    processes = attrs.evolve(whole, small=4, medium=4, large=2) if quick else whole
    minutes, every, cases = (4, 3, CASES[:1]) if quick else (11, 10, CASES)
    return [
        _shared(
            WORKFLOW,
            reading,
            case,
            INCREMENTAL,
            workload=attrs.evolve(
                processes,
                audit_every=every * MINUTE,
                stagger=0 if case == TOGETHER else every * MINUTE // 4,
                audited=EVERYTHING if reading == LITERAL else TRIGGERS,
            ),
            service=incremental_times(reading, ACTIVE),
            span=minutes * MINUTE,
            drain=minutes * MINUTE,
            sample_every=SECOND,
        )
        for reading, case in product((LITERAL, ALTERNATIVE), cases)
    ]
