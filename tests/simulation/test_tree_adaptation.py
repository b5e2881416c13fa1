"""Trees that follow what changes, in time: nothing lost, nothing twice, and cheaper than before."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import attrs
import numpy as np
import pytest

from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.dissemination.adaptation.adaptation import (
    ADAPTIVE,
    Adaptation,
    run_adaptation,
)
from gossamer.sim.studies.dissemination.adaptation.adaptation_plot import (
    plot_adaptation,
    table_of_adaptation,
)
from gossamer.sim.studies.dissemination.adaptation.network import SECOND, Timing, TreeNetwork
from gossamer.sim.studies.dissemination.topologies.generators import waxman
from gossamer.sim.studies.dissemination.workload.dynamics import (
    DRIFT,
    DYNAMICS,
    FLASH,
    MOVING,
    Play,
    write_script,
)

SEED = 3
OVERLAY = waxman(18, 0.9, 0.3, seed=SEED)
LENGTH = 48.0
# A fifth of what `Play` and `ADAPTIVE` have, so that as much is planned in a fifth of the time.
SETTINGS = attrs.evolve(ADAPTIVE, interval=ADAPTIVE.interval // 5, window=ADAPTIVE.window // 5)


@cache
def run(kind: str) -> Adaptation:
    """A play, run once."""
    play = Play(
        kind=kind, length=LENGTH, rate=4.0, keywords=20, stays=12.0, flash=(16.0, 32.0, 0.8)
    )
    return run_adaptation(OVERLAY, play, SEED, settings=SETTINGS, stretch=4.0)


@pytest.mark.parametrize("kind", DYNAMICS)
def test_nothing_is_lost_or_doubled_while_trees_are_exchanged(kind: str) -> None:
    for one in (run(kind).adaptive, run(kind).frozen):
        assert (one.lost, one.doubled) == (0, 0)
        assert one.documents == LENGTH * 4
        assert one.deliveries > one.documents
    # One plan may have been under way when planning ended.
    assert len(run(kind).frozen.installed) <= 1


# The paper names no numbers (Sec. VI). Set before measuring: planning anew has to save a tenth
# where regions wander or clients move, and no trees may cost less than nine tenths of OPT, which is
# approximate. Where regions wander as fast as plans are made, only 6 % are saved.
@pytest.mark.parametrize("kind", [DRIFT, MOVING])
def test_planning_anew_saves(kind: str) -> None:
    assert len(run(kind).adaptive.installed) > 1
    assert run(kind).adaptive.cost.sum() < 0.9 * run(kind).frozen.cost.sum()


@pytest.mark.parametrize("kind", DYNAMICS)
def test_nothing_costs_less_than_the_optimum(kind: str) -> None:
    for one in (run(kind).adaptive, run(kind).frozen):
        assert one.cost.sum() > 0.9 * run(kind).optimum.sum()


def test_a_seed_fixes_a_run() -> None:
    again, first = run.__wrapped__(FLASH), run(FLASH)
    assert again.adaptive.installed == first.adaptive.installed
    assert np.array_equal(again.adaptive.cost, first.adaptive.cost)
    assert np.array_equal(again.adaptive.control_bytes, first.adaptive.control_bytes)
    assert np.array_equal(again.optimum, first.optimum)


def test_plots_and_tables_are_made(tmp_path: Path) -> None:
    found = {kind: run(kind) for kind in DYNAMICS}
    plot_adaptation(found, tmp_path, "adaptation")
    assert {path.name for path in tmp_path.iterdir()} == {
        f"adaptation.{one}" for one in ("pdf", "png", "svg")
    }
    assert table_of_adaptation(found).row_count == 2 * len(DYNAMICS)


def test_a_broker_that_stops_is_planned_around() -> None:
    """Documents of the others go on, on other trees, at another coordinator."""

    class Nobody:
        def delivered(self, now: int, effect: object) -> None: ...

    names = [f"{number:02}" for number in range(OVERLAY.graph.nodes)]
    links = {(names[one], names[other]): 1.0 for one, other in OVERLAY.graph.ends.tolist()}
    network = TreeNetwork(links, ADAPTIVE, Timing(), Nobody())
    network.run_until(5 * SECOND)
    assert network.brokers[names[0]].phase is not None
    network.stop_broker(names[0])
    network.run_until(10 * SECOND)
    assert network.brokers[names[1]].phase is not None
    present = network.brokers[names[5]].present
    assert present is not None
    leaves = [tree[present.plan.brokers.index(names[0])] for tree in present.plan.trees]
    assert all(present.plan.brokers.index(names[0]) not in tree for tree in present.plan.trees)
    assert all(above >= 0 for above in leaves)


def test_scripts_are_drawn_once_and_for_all() -> None:
    play = Play(kind=MOVING, length=20.0, rate=2.0)
    one, other = (write_script(OVERLAY.graph, play, SEED) for _ in range(2))
    assert (one.clients, one.documents, one.moves) == (other.clients, other.documents, other.moves)
    assert len(one.documents) == 40
    assert len(one.moves) == 9
    assert write_script(OVERLAY.graph, play, SEED + 1).documents != one.documents


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "storm"}, "kind is 'storm', expected one of drift, flash, moving"),
        ({"rate": 0}, "rate is 0, expected a number above 0"),
        ({"keywords": 0}, "keywords is 0, expected a whole number of at least 1"),
        ({"neighbourhood": 1.5}, "neighbourhood is 1.5, expected a share above 0, up to 1"),
    ],
)
def test_a_play_that_cannot_be_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        Play(**changes)  # type: ignore[arg-type]
