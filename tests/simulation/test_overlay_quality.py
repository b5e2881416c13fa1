"""The overlay that gossip builds, against theory, and overlays of two to five nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gossamer.protocol.kernel.records import BODY, KIND, TO
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.record_table.records import DELIVER
from gossamer.protocol.peer.settings import presets
from gossamer.protocol.peer.settings.config import SAMPLERS
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.lookup import next_hop
from gossamer.protocol.peer.state.state import State, make_state
from gossamer.protocol.peer.topology.utility import friend_utility
from gossamer.sim.churn import ChurnTrace, write_trace
from gossamer.sim.engine.cycle_engine import CycleEngine, fill_random_views, make_network
from gossamer.sim.studies.peers.inputs import scenario as peers
from gossamer.sim.studies.peers.measuring import overlay_measures
from gossamer.sim.studies.peers.measuring.summary import summarise_system
from gossamer.sim.studies.peers.study import simulate
from gossamer.sim.studies.worlds.network import Link
from support.draws import larger, with_campaigns
from support.overlays import subscribe_to_box

NODES = 1500
CYCLES = 40
SEED = 21
SMALL_WORLD_LINKS = 8
EVENTS = 300

# Hops are at most this times log2(N)^2 / K_sw, on average. Friends and better knowledge of the
# own surroundings help: 0.34 was measured.
HOPS_CONSTANT = 0.5


@rule
def count_deliveries(
    collector: npt.NDArray[np.int64], _s: State, words: object, at: int, _n: int
) -> None:
    """Add to ``collector[event, peer]`` for every delivery."""
    if words[at + KIND] == DELIVER:  # type: ignore[index]
        collector[words[at + BODY], words[at + TO]] += 1  # type: ignore[index]


@pytest.fixture(scope="module")
def engine() -> CycleEngine:
    """The overlay after its run; tests after it change no links."""
    settings = presets.paper(
        NODES, attributes=2, small_world_links=SMALL_WORLD_LINKS, load_shifting=False, seed=SEED
    )
    state = make_state(settings, NODES)
    draws = np.random.default_rng(SEED)
    hot = draws.integers(0, RING_MASK - (RING_MASK >> 4), (40, 2))
    popular = (1 / np.arange(1, 41)) / (1 / np.arange(1, 41)).sum()
    for p in range(NODES):
        low = hot[draws.choice(40, p=popular)] + draws.integers(0, RING_MASK >> 6, 2)
        width = draws.integers(RING_MASK >> 8, RING_MASK >> 5, 2)
        subscribe_to_box(state, p, *zip(low.tolist(), (low + width).tolist(), strict=True))
    network = make_network(NODES)
    fill_random_views(state.sampler, network.alive, SEED, settings.view_size)
    running = CycleEngine(
        *(state, peer.step, peer.TIMERS, network, SEED),
        observe=count_deliveries,
        collector=np.zeros((EVENTS, NODES), np.int64),
        reserve=peer.largest_step(settings),
    )
    for _ in range(CYCLES):
        running.run_cycle()
    return running


def test_the_ring_is_right_for_everybody_with_both_neighbours(engine: CycleEngine) -> None:
    s, alive = engine.state, engine.network.alive
    assert overlay_measures.ring_correctness(s, alive) == 1.0, f"seed {SEED}"
    successors = overlay_measures.true_successors(s, alive)
    before = s.links[np.arange(NODES), s.predecessor] & 0xFFFFFFFF
    np.testing.assert_array_equal(before[successors], np.arange(NODES), f"seed {SEED}")


def best_utility(s: State, p: int) -> float:
    """The mean utility of the K_f best friends that ``p`` could have, by brute force.

    Ring and small-world links are seated first and take candidates away, in the optimum as well.
    """
    first = 2 * s.params.ring_links + s.params.small_world_links
    taken = {p} | {int(w) & 0xFFFFFFFF for w in s.links[p, :first] if w >= 0}
    others = [q for q in range(NODES) if q not in taken]
    utilities = [friend_utility(s, p, s.sampler.profile[q], 0) for q in others]
    return float(np.mean(sorted(utilities)[-s.params.friend_links :]))


def test_friends_are_nearly_the_best_there_are(engine: CycleEngine) -> None:
    """At least 95 % of the optimum, found by brute force for a sample of 60 peers."""
    s = engine.state
    sample = np.zeros(NODES, np.bool_)
    sample[:: NODES // 60] = True
    best = np.mean([best_utility(s, int(p)) for p in np.flatnonzero(sample)])
    assert overlay_measures.mean_friend_utility(s, sample) >= 0.95 * best, f"seed {SEED}"


def lookup_hops(s: State, start: int, value: int) -> tuple[int, int]:
    at, hops = start, 0
    while hops <= NODES:
        hop = int(next_hop(s, at, value))
        if hop < 0:
            break
        at = int(s.links[at, hop >> 1]) & 0xFFFFFFFF
        hops += 1
    return hops, at


def test_lookups_are_right_and_as_short_as_theory_says(engine: CycleEngine) -> None:
    """O(log2(N)^2 / K_sw), mean over random lookups, with the constant stated above."""
    s = engine.state
    draws = np.random.default_rng(SEED)
    places = s.sampler.profile[:, IDENTIFIER]
    order = np.argsort(places)
    hops = []
    for value in draws.integers(0, RING_MASK, 1000):
        taken, end = lookup_hops(s, int(draws.integers(NODES)), int(value))
        assert end == order[np.searchsorted(places[order], value) % NODES], f"seed {SEED}"
        hops.append(taken)
    assert np.mean(hops) <= HOPS_CONSTANT * np.log2(NODES) ** 2 / SMALL_WORLD_LINKS


def test_every_match_is_served_once_and_nobody_else(engine: CycleEngine) -> None:
    """Hit ratio exactly 1 without churn, by primary attributes of both kinds."""
    s = engine.state
    assert set(s.primary.tolist()) == {0, 1}
    draws = np.random.default_rng(SEED + 1)
    low, high = s.subscriptions[:, 0, ::2], s.subscriptions[:, 0, 1::2]
    expected = np.zeros((EVENTS, NODES), np.int64)
    for event in range(EVENTS):
        wanted = int(draws.integers(NODES))
        values = draws.integers(low[wanted], high[wanted], endpoint=True)
        expected[event] = ((low <= values) & (values <= high)).all(axis=1)
        engine.inject(peer.publish_record(int(draws.integers(NODES)), event, values))
    assert expected.sum() > EVENTS
    np.testing.assert_array_equal(engine.collector, expected, f"seed {SEED}")


# Overlays of two to five nodes: there is nobody else to learn a lost neighbour from


PRESETS = ("paper", "baseline", "resilient", "kindred")
SIZES = (2, 3, 4, 5)
SMALL_SEED = 3


def scenario(sampler: str = "cyclon", **fields: Any) -> peers.Scenario:
    """Every preset with a sampler; each node wants half of everything."""
    chosen = {"sampler": sampler}
    systems = tuple(peers.System(name=one, preset=one, settings=chosen) for one in PRESETS)
    wanted = peers.Subscriptions(kind="random", width=0.5)
    return peers.Scenario(
        **{"seed": SMALL_SEED, "subscriptions": wanted, "systems": systems, **fields}
    )


def under_churn(file: Path, trace: ChurnTrace, **fields: Any) -> peers.Scenario:
    write_trace(trace, file)
    return scenario(nodes=None, rounds=None, churn=peers.Churn(trace=file), **fields)


def assert_everything_arrives(asked: peers.Scenario) -> list[dict[str, object]]:
    """In all systems, whose ring is right in the end; gives their measures."""
    found = {name: summarise_system(one) for name, one in simulate(asked).systems.items()}
    for name, measures in found.items():
        assert measures["hit_ratio"] == 1.0, f"{name}, seed {SMALL_SEED}"
        assert measures["ring_correct_final"] == 1.0, f"{name}, seed {SMALL_SEED}"
    return list(found.values())


@pytest.mark.parametrize("engine", ["cycle", "event"])
@with_campaigns(
    "nodes, sampler",
    [(nodes, SAMPLERS[nodes % len(SAMPLERS)]) for nodes in SIZES],
    [(nodes, one) for nodes in SIZES for one in SAMPLERS if one != SAMPLERS[nodes % len(SAMPLERS)]],
)
def test_every_event_reaches_all_of_a_small_overlay(nodes: int, sampler: str, engine: str) -> None:
    rounds, events = larger(40, 60), peers.Events(per_round=2)
    asked = scenario(sampler, nodes=nodes, rounds=rounds, engine=engine, events=events)
    assert all(one["duplicates"] == 0 for one in assert_everything_arrives(asked))


@with_campaigns("seed", [0], [1, 2, 3])
def test_two_nodes_find_each_other_although_messages_are_lost(seed: int) -> None:
    asked = scenario(nodes=2, rounds=60, seed=seed, engine="event", network=Link(loss=0.4))
    for name, system in simulate(asked).systems.items():
        correct = system.cycles["ring_correct"][10:]
        assert np.mean(correct) > 0.9, f"{name}, seed {seed}"
        assert correct[-10:].any(), f"{name}, seed {seed}"


@with_campaigns(
    "engine, reports_unreachable",
    [("cycle", True), ("event", False)],
    [("cycle", False), ("event", True)],
)
def test_two_that_are_left_go_on(tmp_path: Path, engine: str, reports_unreachable: bool) -> None:
    ends_s = [6000.0, 1200.0, 1230.0, 6000.0, 1800.0]
    asked = under_churn(
        tmp_path / "leaving.avt",
        ChurnTrace("abcde", range(5), [0.0] * 5, ends_s, 6000.0),
        engine=engine,
        network=Link(reports_unreachable=reports_unreachable),
        # Failures that are noticed by silence alone take a while.
        events=peers.Events(per_round=2, warm_up_rounds=75),
    )
    assert_everything_arrives(asked)


@pytest.mark.parametrize("engine", ["cycle", "event"])
def test_two_that_take_turns_in_leaving_find_each_other_again(tmp_path: Path, engine: str) -> None:
    sessions = [(0, 0, 1800), (1, 0, 3000), (0, 2400, 6000), (1, 3600, 6000)]
    node, start_s, end_s = zip(*sessions, strict=True)
    asked = under_churn(
        tmp_path / "turns.avt",
        ChurnTrace("ab", node, start_s, end_s, 6000.0),
        engine=engine,
        events=peers.Events(per_round=2, warm_up_rounds=10),
    )
    assert_everything_arrives(asked)
