"""Games, cities and processes at a small size: who gets what, and what is measured."""

from __future__ import annotations

from functools import cache

import numpy as np

from gossamer.protocol.brokers.tree import TreeSettings
from gossamer.sim.studies.tree_brokers.commuters import Commuters
from gossamer.sim.studies.tree_brokers.game import Game
from gossamer.sim.studies.tree_brokers.processes import Processes
from gossamer.sim.studies.tree_brokers.scene import (
    MINUTE,
    SECOND,
    Performance,
    Scene,
    Stage,
    Workload,
)
from gossamer.sim.studies.tree_brokers.service_times import TABLE_II
from gossamer.sim.studies.tree_brokers.siena import Siena
from support.draws import larger, with_campaigns
from support.scenes import play

GAME = Game(
    players=40,
    publishers=5,
    monitor_every=20 * SECOND,
    player_every=7 * SECOND,
    publish_every=SECOND,
    smallest=100,
    largest=300,
)
CITY = Commuters(
    content=Siena(names=20, most_constraints=4, most_attributes=8),
    subscribers=60,
    rush=MINUTE,
    rush_spread=MINUTE,
    walk_every=MINUTE,
    publish_every=SECOND,
)
WORK = Processes(
    small=larger(2, 3),
    medium=larger(1, 2),
    large=1,
    work=5 * SECOND,
    lead=4 * SECOND,
    audit_every=MINUTE,
    audit=20 * SECOND,
    first_audit=10 * SECOND,
    stagger=5 * SECOND,
)
SPAN = 90 * SECOND
UNPRUNED = [("off", False), ("lazy", False), ("packed", False)]
PRUNED = [("selective", False), ("selective", True), ("incremental", False), ("incremental", True)]


@with_campaigns(
    "workload, covering, drop_unpaid",
    [
        *((GAME, *settings) for settings in (("active", False), *PRUNED[::3])),
        *((CITY, *PRUNED[3]), (WORK, "active", False), (WORK, "incremental", False)),
    ],
    [(GAME, *one) for one in UNPRUNED + PRUNED[1:3]] + [(CITY, *one) for one in PRUNED[:3]],
)
def test_all_get_what_a_matcher_says(workload: Workload, covering: str, drop_unpaid: bool) -> None:
    # With so few subscriptions hardly any unsubscription triggers ten.
    settings = TreeSettings(covering=covering, drop_unpaid=drop_unpaid, some_triggered=2)
    assert play(workload, settings, SPAN) > 100


@cache
def measured(covering: str) -> Performance:
    settings, times = TreeSettings(covering=covering, drop_unpaid=False), TABLE_II["active"]
    scene = Scene(workload=GAME, settings=settings, service=times, warm_up=30 * SECOND, span=SPAN)
    return Stage(scene).perform()


def test_only_what_comes_after_the_warm_up_is_measured_again_the_same() -> None:
    result = measured("active")
    assert (result.published < 0).sum() == 30
    assert (result.published >= 0).sum() == SPAN // SECOND
    assert result.deliveries[:, 0].min() >= 30
    assert result.times.tolist() == [SECOND * (second + 1) for second in range(SPAN // SECOND)]
    assert result.queues.shape == result.tables.shape == (SPAN // SECOND, len(result.brokers))
    assert result.deliveries[:, 1].min() >= TABLE_II["active"].publication
    again = measured.__wrapped__("selective")
    for name in ("published", "deliveries", "queues", "tables", "received", "triggered"):
        np.testing.assert_array_equal(getattr(again, name), getattr(measured("selective"), name))


def test_monitors_that_leave_trigger_less_where_their_trees_are_preserved() -> None:
    assert measured("selective").triggered.sum() < measured("active").triggered.sum()
    assert measured("active").triggered.sum() > 100
