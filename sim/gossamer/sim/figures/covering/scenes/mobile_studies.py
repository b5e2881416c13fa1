"""The scenes behind the mobile figures: what is run, at which sizes.

- *The game* (selective paper, Sec. V-F) has the service times of that paper's congested brokers
  (`covering.readings`), one publication every two seconds, whose rate the paper does not tell,
  and half of its six hours.
- *The city* (incremental paper, Sec. V-B) is seen for the four minutes around the peak of the
  morning. One publication stands for twenty, and takes a broker twenty times what Table II says:
  brokers are as busy, at a twentieth of the events.
- Aggregates stay for good, as in the papers (`drop_unpaid` is off).
"""

from __future__ import annotations

from typing import Final

import attrs

from gossamer.sim.figures.common.readings import ALTERNATIVE, LITERAL
from gossamer.sim.figures.covering.readings.readings import (
    incremental_times,
    selective_times,
    settings_of,
)
from gossamer.sim.figures.covering.scenes.scenes import SceneRun, SharedRuns
from gossamer.sim.studies.tree_brokers.workloads.commuters import Commuters
from gossamer.sim.studies.tree_brokers.workloads.game import EACH, IN_TURN, Game
from gossamer.sim.studies.tree_brokers.workloads.scene import MINUTE, SECOND, Scene, standing_for

GAME, CITY = "game", "city"
MONITORS, EVERYBODY = "only monitors move", "all move"
RUSH: Final = "rush hour"
ACTIVE, SELECTIVE, INCREMENTAL = "active", "selective", "incremental"


@attrs.frozen(kw_only=True)
class Plan:
    """Sizes of the scenes.

    Attributes:
        players, game_minutes: subscribers and length of the game.
        subscribers: of the city.
        rush_minutes: from the beginning of the city's scene to the peak, at its middle.
        standing_for: publications of the city that one stands for.
    """

    players: int
    game_minutes: int
    subscribers: int
    rush_minutes: int
    standing_for: int


FULL: Final = Plan(
    players=5_000, game_minutes=180, subscribers=200_000, rush_minutes=2, standing_for=20
)
QUICK: Final = Plan(players=200, game_minutes=20, subscribers=500, rush_minutes=1, standing_for=100)


def plan_mobile(quick: bool) -> list[SharedRuns]:
    """Both scenes under active covering and the papers' pruning, for both readings; the longest
    come first."""
    plan = QUICK if quick else FULL
    return [
        *(SharedRuns(runs=_city_runs(plan, reading)) for reading in (LITERAL, ALTERNATIVE)),
        *(
            SharedRuns(runs=_game_runs(plan, reading, case))
            for reading in (LITERAL, ALTERNATIVE)
            for case in (EVERYBODY, MONITORS)
        ),
    ]


def _city_runs(plan: Plan, reading: str) -> list[SceneRun]:
    workload = Commuters(
        subscribers=plan.subscribers,
        rush=plan.rush_minutes * MINUTE,
        publish_every=4_000 * plan.standing_for,
    )
    return [
        SceneRun(
            study=CITY,
            reading=reading,
            case=RUSH,
            covering=covering,
            scene=Scene(
                workload=workload,
                settings=settings_of(reading, covering),
                service=standing_for(incremental_times(reading, ACTIVE), plan.standing_for),
                span=2 * plan.rush_minutes * MINUTE,
                drain=40 * MINUTE,
                sample_every=SECOND,
            ),
        )
        for covering in (ACTIVE, INCREMENTAL)
    ]


def _game_runs(plan: Plan, reading: str, case: str) -> list[SceneRun]:
    workload = Game(
        players=plan.players,
        player_every=SECOND if case == EVERYBODY else 0,
        publish_every=2 * SECOND,
        monitors_move=IN_TURN if reading == LITERAL else EACH,
    )
    return [
        SceneRun(
            study=GAME,
            reading=reading,
            case=case,
            covering=covering,
            scene=Scene(
                workload=workload,
                settings=settings_of(reading, covering),
                service=selective_times(reading, ACTIVE),
                span=plan.game_minutes * MINUTE,
                sample_every=10 * SECOND,
            ),
        )
        for covering in (ACTIVE, SELECTIVE)
    ]
