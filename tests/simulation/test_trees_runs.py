"""Trees: measures and pictures of runs; trees that follow what changes, in time."""

from __future__ import annotations

from functools import cache

import attrs
import numpy as np
import pytest

from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.dissemination import dynamics
from gossamer.sim.studies.dissemination import scenario as trees
from gossamer.sim.studies.dissemination.adaptation import (
    ADAPTIVE,
    Adaptation,
    run_adaptation,
)
from gossamer.sim.studies.dissemination.adaptation_network import SECOND, Timing, TreeNetwork
from gossamer.sim.studies.dissemination.plots import pictures_of, places_of
from gossamer.sim.studies.dissemination.records import TreesRunRecord, summarise_strategy
from gossamer.sim.studies.dissemination.strategies import STRATEGIES
from gossamer.sim.studies.dissemination.study import TREES
from gossamer.sim.studies.dissemination.topologies import waxman
from gossamer.sim.study.contract import Execution

SCENARIO = """
kind = "trees"
name = "small"
strategies = ["SINGLE", "MULT", "OPT"]
[topology]
brokers = 60
stub_stub_links = 20
[workload]
keywords = 60
documents = 200
[planning]
sample_share = 0.2
states = 3
"""


def scenario(seed: int = 3, strategies: tuple[str, ...] = tuple(STRATEGIES)) -> trees.TreesScenario:
    return trees.TreesScenario(
        name="small",
        seed=seed,
        strategies=strategies,
        topology=trees.TopologySection(brokers=60, stub_stub_links=20, capacity=60),
        workload=trees.WorkloadSection(
            neighbourhood=0.1, keywords=60, documents=200, document_keywords=2, largest_size=2.0
        ),
        planning=trees.Planning(sample_share=0.3, states=4),
    )


@pytest.fixture(scope="module")
def finished() -> TreesRunRecord:
    return TREES.run(scenario(), "# text\n", Execution(workers=1))


def test_every_strategy_has_measures_that_follow_from_its_tables(finished: TreesRunRecord) -> None:
    measures = {name: summarise_strategy(one) for name, one in finished.systems.items()}
    assert tuple(measures) == tuple(STRATEGIES)
    for found in measures.values():
        assert found["cost_over_optimum"] > 0.9
        assert found["load_max"] > 0
        assert found["documents"] == 200
    assert measures["OPT"]["cost_over_optimum"] == 1
    assert measures["SPT-flooded"]["cost"] > measures["SPT"]["cost"]
    assert measures["SemCast"]["cost"] >= measures["SemCast-filtered"]["cost"]
    assert measures["SINGLE"]["trees"] == 1
    assert measures["SINGLE"]["duplicate_visits"] == 0
    assert measures["WITHIN"]["overload"] <= measures["MULT"]["overload"]
    record = finished.systems["MULT"]
    found, links = measures["MULT"], record.links
    assert (links["load"] * links["cost"]).sum() == pytest.approx(found["cost"])
    over = links["load"] > links["capacity"]
    assert found["overloaded_links"] == over.sum() > 0
    worst = found["worst_links"][0]
    assert worst["load"] == links["load"].max()
    assert record.trees["load"].sum() == pytest.approx(links["load"].sum())
    assert record.trees["documents"].sum() == record.documents["trees"].sum()
    assert record.mergers["trees"][-1] == 1
    last = record.states["trees"].tolist().index(1)
    assert record.states["duplicates"][last] == 0


def test_trees_are_pictured_and_states_spread_over_all_groups(finished: TreesRunRecord) -> None:
    several = {name: one for name, one in finished.systems.items() if one.totals["trees"] > 1}
    pictures = pictures_of(finished.systems)
    assert len(pictures) == 2
    assert all(len(picture.links) == 59 for picture in pictures)
    assert several
    one_each = pictures_of({name: finished.systems[name] for name in ("SPT", "SINGLE", "OPT")})
    assert [picture.title.split(",")[0] for picture in one_each] == ["SPT", "SINGLE"]
    topology = trees.TopologySection(kind="barabasi_albert", brokers=20).build(seed=1)
    assert np.isfinite(places_of(topology)).all()
    states = finished.systems["MULT"].states["trees"]
    merged = finished.systems["MULT"].mergers["trees"]
    assert states[0] == merged[0]
    assert states[-1] == 1
    assert (np.diff(states) < 0).all()


SEED = 3
OVERLAY = waxman(18, 0.9, 0.3, seed=SEED)
LENGTH = 48.0
# A fifth of what `Play` and `ADAPTIVE` have, so that as much is planned in a fifth of the time.
SETTINGS = attrs.evolve(ADAPTIVE, interval=ADAPTIVE.interval // 5, window=ADAPTIVE.window // 5)


@cache
def run(kind: str) -> Adaptation:
    play = dynamics.Play(
        kind=kind, length=LENGTH, rate=4.0, keywords=20, stays=12.0, flash=(16.0, 32.0, 0.8)
    )
    return run_adaptation(OVERLAY, play, SEED, settings=SETTINGS, stretch=4.0)


# The paper names no numbers (Sec. VI). Set before measuring: planning anew has to save a tenth
# where regions wander or clients move, and no trees may cost less than nine tenths of OPT, which is
# approximate. Where regions wander as fast as plans are made, only 6 % are saved.
@pytest.mark.parametrize("kind", dynamics.DYNAMICS)
def test_exchanged_trees_lose_and_double_nothing_and_save_down_to_the_optimum(kind: str) -> None:
    adaptive, frozen = run(kind).adaptive, run(kind).frozen
    for one in (adaptive, frozen):
        assert (one.lost, one.doubled) == (0, 0)
        assert one.documents == LENGTH * 4
        assert one.deliveries > one.documents
        assert one.cost.sum() > 0.9 * run(kind).optimum.sum()
    # One plan may have been under way when planning ended.
    assert len(frozen.installed) <= 1
    if kind in (dynamics.DRIFT, dynamics.MOVING):
        assert len(adaptive.installed) > 1
        assert adaptive.cost.sum() < 0.9 * frozen.cost.sum()


def test_a_seed_fixes_a_run_and_its_script() -> None:
    again, first = run.__wrapped__(dynamics.FLASH), run(dynamics.FLASH)
    assert again.adaptive.installed == first.adaptive.installed
    assert np.array_equal(again.adaptive.cost, first.adaptive.cost)
    assert np.array_equal(again.adaptive.control_bytes, first.adaptive.control_bytes)
    assert np.array_equal(again.optimum, first.optimum)
    play = dynamics.Play(kind=dynamics.MOVING, length=20.0, rate=2.0)
    one, other = (dynamics.write_script(OVERLAY.graph, play, SEED) for _ in range(2))
    assert (one.clients, one.documents, one.moves) == (other.clients, other.documents, other.moves)
    assert len(one.documents) == 40
    assert len(one.moves) == 9
    assert dynamics.write_script(OVERLAY.graph, play, SEED + 1).documents != one.documents


def test_a_broker_that_stops_is_planned_around() -> None:
    """Documents of the others go on, on other trees, at another coordinator."""
    names = [f"{number:02}" for number in range(OVERLAY.graph.nodes)]
    links = {(names[one], names[other]): 1.0 for one, other in OVERLAY.graph.ends.tolist()}
    network = TreeNetwork(links, ADAPTIVE, Timing(), lambda _now, _effect: None)
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
        dynamics.Play(**changes)  # type: ignore[arg-type]
