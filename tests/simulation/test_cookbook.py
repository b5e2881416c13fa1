"""The protocols of the cookbook meet the numbers published about them; the push-sum example."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from math import ceil, comb, exp, log
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.custom.simulation import Simulation
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from gossamer.sim.engine.event_engine import EventEngine
from gossamer.sim.engine.protocol_run import Engine, ProtocolRun, Schedule, once
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.custom import simulation
from gossamer.sim.studies.custom.records import CustomRecord
from gossamer.sim.studies.custom.rehearsal import first_difference, scenario_of
from gossamer.sim.study.scenarios import read_scenario
from support.checkout import ROOT
from support.draws import larger, with_campaigns
from support.own_protocols import COOKBOOK
from support.ping_protocol import TICK, make_pings, ping_step

# Demers et al., PODC 1987, Table 1: residue and rumors sent a node, push with feedback and counter.
TABLE_1 = {1: (0.18, 1.7), 2: (0.037, 3.3), 3: (0.011, 4.5)}
SEEDS = range(1, 9)
# By file: the class, the engine of its scenario, nodes and rounds of interpreted runs.
PROTOCOLS = {
    "rumor": ("Rumor", "event", larger(24, 40), 12),
    "push_sum": ("PushSum", "event", larger(24, 40), 12),
    "averaging": ("Averaging", "cycle", larger(24, 40), 12),
    "hyparview": ("HyParView", "cycle", larger(24, 40), 8),
    "broadcast": ("Broadcast", "cycle", 24, 54),
    "tman": ("Torus", "cycle", larger(16, 25), larger(4, 5)),
    "tchord": ("TChord", "cycle", larger(10, 20), larger(3, 4)),
    "lookup": ("Lookups", "cycle", larger(10, 16), larger(4, 5)),
    "sir": ("Epidemic", "event", larger(24, 40), 12),
    "kademlia": ("Kademlia", "cycle", larger(12, 16), larger(2, 3)),
    "swim": ("Swim", "event", larger(16, 24), 12),
    "gossip_learning": ("Learning", "event", larger(12, 24), larger(4, 6)),
}
SETTINGS: dict[str, dict[str, object]] = {
    "broadcast": {"fails": 0.5},
    "lookup": {"begin": 2},
    "sir": {"beta": 0.8, "cases": 2},
    "kademlia": {"k": 3, "settled": False},
    "swim": {"fails": 4},
}


def run_all(name: str, **overrides: object) -> Mapping[str, CustomRecord]:
    """What the systems of a scenario have measured."""
    scenario, text = read_scenario(COOKBOOK / f"{name}.toml", overrides)
    return simulation.simulate_custom(scenario, text).systems  # type: ignore[arg-type]


def run(name: str, **overrides: object) -> CustomRecord:
    return next(iter(run_all(name, **overrides).values()))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_way_of_writing_does_the_same(name: str) -> None:
    """Nodes beside interpreted rules."""
    _, _, nodes, rounds = PROTOCOLS[name]
    assert _difference(name, nodes, rounds, interpreted=True) is None


# Of one that trades numbers, and one with timers; all are compared interpreted, above.
COMPILED_HERE = ("averaging", "rumor")


@with_campaigns(
    "name, many",
    [(name, False) for name in COMPILED_HERE],
    [
        (one, many)
        for one in PROTOCOLS
        for many in (False, True)
        if many or one not in COMPILED_HERE
    ],
)
def test_nodes_do_what_compiled_rules_do(name: str, many: bool) -> None:
    _, _, nodes, rounds = PROTOCOLS[name]
    if many:
        nodes, rounds = 400, 60 if name == "broadcast" else 12
    assert _difference(name, nodes, rounds, interpreted=False) is None


@with_campaigns(
    "name, nodes, interpreted",
    [("hyparview", 24, True), ("swim", 16, True)],
    [("hyparview", 200, False), ("swim", 200, False)],
)
def test_both_agree_with_messages_under_way_or_lost(
    name: str, nodes: int, interpreted: bool
) -> None:
    """With latency joins and shuffles cross each other, and with loss proxies are asked, too."""
    keys: dict[str, Any] = {"network": {"latency": "uniform", "latency_s": 0.05}}
    if name == "swim":
        network = {"latency": "uniform", "latency_s": 0.03, "loss": 0.1}
        keys = {"network": network, "settings": {"fails": 2}}
    scenario = both_of(name, nodes=nodes, rounds=10, **keys)
    assert first_difference(scenario, interpreted=interpreted) is None


def both_of(name: str, **keys: Any) -> Any:
    """A scenario of both ways of writing a protocol."""
    written = PROTOCOLS[name][0]
    files = (f"{name}.py:{written}", f"{name}_nodes.py:{written}")
    return scenario_of(*files, folder=COOKBOOK, **keys)


def _difference(name: str, nodes: int, rounds: int, *, interpreted: bool) -> object:
    engine, settings = PROTOCOLS[name][1], SETTINGS.get(name, {})
    scenario = both_of(name, nodes=nodes, rounds=rounds, engine=engine, settings=settings)
    return first_difference(scenario, interpreted=interpreted)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("averaging", {"newscast"}),
        ("broadcast", {"neighbour"}),
        ("tman", {"peers", "nearest"}),
        ("lookup", {"ring.peers", "neighbour", "finger"}),
        ("kademlia", {"link"}),
    ],
)
def test_overlays_of_the_cookbook_can_be_looked_at(name: str, kinds: set[str]) -> None:
    """For pages, snapshots and exports; the same links in both ways of writing."""
    _, engine, nodes, rounds = PROTOCOLS[name]
    rounds = min(rounds, larger(3, 6))
    scenario = both_of(name, nodes=nodes, rounds=rounds, engine=engine)
    found = []
    for system in scenario.systems:
        conditions, _ = simulation.conditions_of(scenario, simulation.prepare(scenario), system)
        with use_compiled(False):
            run = Simulation(simulation.make_driver(system, conditions), rounds)
            run.begin()
            while not run.is_finished:
                run.run_round()
            links = run.links()
        found.append({kind: sorted(map(tuple, pairs.tolist())) for kind, pairs in links.items()})
    rules, plain = found
    assert rules.keys() == kinds
    assert all(rules.values())
    assert rules == plain


def test_examples_are_short() -> None:
    for file in COOKBOOK.glob("*.py"):
        assert len(file.read_text().splitlines()) <= 80, file
    source = SCRIPT.read_text()
    documentation = ast.get_docstring(ast.parse(source), clean=False) or ""
    lines = source.replace(f'"""{documentation}"""', "").splitlines()
    assert 20 < sum(bool(line.strip()) for line in lines) < 40


@pytest.mark.parametrize("k", TABLE_1)
def test_rumors_leave_the_residue_of_the_paper(k: int) -> None:
    """Residue within a seventh and four nodes, traffic within a twentieth, over eight seeds."""
    runs = [run("rumor", **{"settings.k": k, "seed": seed}).rounds for seed in SEEDS]
    residue = sum(float(rounds["residue"][-1]) for rounds in runs) / len(runs)
    traffic = sum(float(rounds["traffic"][-1]) for rounds in runs) / len(runs)
    assert residue == pytest.approx(TABLE_1[k][0], rel=1 / 7, abs=0.004)
    assert traffic == pytest.approx(TABLE_1[k][1], rel=1 / 20)


def test_push_sum_halves_the_variance_in_a_round_at_least() -> None:
    """Kempe et al., Lemma 2.3: the potential falls to less than half in expectation."""
    rounds = run("push_sum", nodes=2000).rounds
    assert rounds["variance"][25] < rounds["variance"][5] * 0.5**20
    assert rounds["mass"][-1] == pytest.approx(2000)


def test_averaging_over_newscast_falls_as_fast_as_over_random_graphs() -> None:
    """Jelasity et al., TOCS 2005: 1/(2 sqrt e) = 0.303 a round, over Newscast a little more."""
    rounds = run("averaging", nodes=2000).rounds
    factor = float(rounds["variance"][15] / rounds["variance"][3]) ** (1 / 12)
    assert 0.27 < factor < 0.37
    assert rounds["mean"][-1] == pytest.approx(999.5)


@pytest.mark.campaign
def test_hyparview_makes_the_graph_of_the_paper() -> None:
    """Leitao et al., DSN 2007, Table 1: clustering 0.00092, paths 6.38, last delivery 9.0 hops.

    Within a quarter, a twentieth and one hop, at the paper's size; nearly all have five neighbours.
    """
    rounds = run("hyparview", **{"settings.fails": 0.0, "rounds": 60}).rounds
    assert rounds["clustering"][50] == pytest.approx(0.00092, rel=1 / 4)
    assert rounds["path_length"][50] == pytest.approx(6.38, rel=1 / 20)
    assert rounds["last_delivery"][51:].mean() == pytest.approx(9.0, abs=1)
    assert rounds["degree"][50] > 4.95
    assert (rounds["reliability"][51:] == 1).all()


@with_campaigns("fails, least", [(0.8, 0.99)], [(0.5, 0.995), (0.9, 0.98)])
def test_broadcasts_over_hyparview_survive_mass_failures(fails: float, least: float) -> None:
    """Ibid., Fig. 2 and 3: nearly all that are left are reached; here from the fourth broadcast on.

    Those before it find the failed neighbours.
    """
    reliability = run("hyparview", **{"settings.fails": fails, "rounds": 60}).rounds["reliability"]
    assert reliability[54:].min() > least


@pytest.mark.campaign
def test_tman_builds_a_torus_in_as_few_cycles_as_in_the_paper() -> None:
    """Jelasity et al., Computer Networks 53, 2009: 50 x 50 nodes look finished after 7 cycles.

    A thousandth of the links at most are missing then; four times the nodes take a cycle more or
    two, as the number of cycles is logarithmic.
    """
    missing = {nodes: run("tman", nodes=nodes).rounds["missing"] for nodes in (625, 2500, 10_000)}
    assert missing[2500][7] < 0.001
    assert missing[2500][-1] == 0
    cycles = [int((line > 0.01).sum()) for line in missing.values()]
    assert all(1 <= more - less <= 2 for less, more in pairwise(cycles)), cycles


@with_campaigns("bits", [8], [10, 12])
def test_chord_by_tman_stands_after_a_logarithmic_number_of_cycles(bits: int) -> None:
    """Montresor et al., P2P 2005: of 100 nodes 99 have successor and fingers after log2(N) cycles.

    Lookups then take half of log2(N) hops, as Chord's do (Stoica et al., SIGCOMM 2001, Sec. 6.3),
    within a twentieth.
    """
    rounds = run("tchord", nodes=1 << bits).rounds
    assert rounds["unfinished"][bits] < 0.01
    assert rounds["share_found"][-1] == 1
    assert rounds["mean_hops"][-1] == pytest.approx(bits / 2, rel=1 / 20)


# Kermack, McKendrick, 1927: the share that is ever infected solves z = 1 - exp(-R0 z).
FINAL_SIZES = {1.5: 0.583, 2.0: 0.797, 3.0: 0.940}


@with_campaigns("nodes, seeds", [(5000, range(1, 4))], [(10_000, SEEDS)])
def test_epidemics_infect_whom_the_equation_of_the_paper_says(nodes: int, seeds: range) -> None:
    """Within 0.03, and at the peak within 0.015.

    Below the threshold, R0 = 1, epidemics end: they infect 1/(1 - R0) nodes for each case at first.
    """
    systems = [run_all("sir", nodes=nodes, seed=seed) for seed in seeds]

    def most(name: str, measure: str) -> float:
        return float(np.mean([one[name].rounds[measure].max() for one in systems]))

    for reproduction, size in FINAL_SIZES.items():
        assert size == pytest.approx(1 - exp(-reproduction * size), abs=5e-4)
        assert most(f"R0-{reproduction:g}", "ever_infected") == pytest.approx(size, abs=0.03)
        peak = 1 - (1 + log(reproduction)) / reproduction
        assert most(f"R0-{reproduction:g}", "infected") == pytest.approx(peak, abs=0.015)
    assert most("R0-0.8", "ever_infected") * nodes == pytest.approx(20 / (1 - 0.8), rel=1 / 2)
    assert all(record.rounds["infected"][-1] == 0 for one in systems for record in one.values())


@cache
def hops_to_one_of(nodes: int, k: int) -> float:
    """Hops to a node of a subtree of so many, a power of two, of which one knows k random nodes.

    The one that is asked, the nearest, shares some more bits with the target, and it is again in a
    subtree of which k nodes are known: the routing of Cai and Devroye, ISAAC 2013, solved exactly.
    """
    if nodes <= k:
        return 1.0
    bits = nodes.bit_length() - 1
    without = [comb(nodes - (nodes >> more), k) / comb(nodes, k) for more in range(bits + 1)]
    return 1 + sum(
        (none - fewer) * hops_to_one_of(nodes >> more + 1, k)
        for more, (fewer, none) in enumerate(pairwise(without))
    )


@with_campaigns("bits", [8], [10, 12])
def test_lookups_of_kademlia_take_the_hops_of_its_analysis(bits: int) -> None:
    """Cai, Devroye, ISAAC 2013: log2(N) / 2 hops for k = 1, fewer for more; within a thirtieth.

    Questions in parallel take no more. All find their node, with k = 20 in at most log2(N) hops
    (Maymounkov, Mazieres, IPTPS 2002, Sec. 3: log2(N) + c).
    """
    systems = run_all("kademlia", nodes=1 << bits)
    hops = {name: float(one.rounds["mean_hops"][1:].mean()) for name, one in systems.items()}
    for k in (1, 8, 20):
        # The target is in the half, quarter, ... of the identifiers that do not begin as one's own.
        sizes = [1 << left for left in range(bits)]
        expected = sum(size * hops_to_one_of(size, k) for size in sizes) / sum(sizes)
        assert hops[f"k-{k}"] == pytest.approx(expected, rel=1 / 30), k
    assert hops["k-1"] == pytest.approx(bits / 2, rel=1 / 20)
    assert hops["k-20-alpha-3"] <= hops["k-20"]
    assert all((one.rounds["found"][1:] == 1).all() for one in systems.values())
    assert systems["k-20-alpha-3"].rounds["most_hops"].max() <= bits


@with_campaigns("nodes", [1000], [4000])
def test_swim_detects_failures_as_soon_as_in_the_paper(nodes: int) -> None:
    """Das et al., DSN 2002, Sec. 3.1: after 1/(1 - exp(-q)) periods; q is the share that is up.

    That is 1.58 as q goes to 1, however many nodes there are. Within 0.15, of 400 failures.
    """
    runs = [run("swim", nodes=nodes, seed=seed).rounds for seed in SEEDS]
    detection = float(np.mean([rounds["detection"][-1] for rounds in runs]))
    assert detection == pytest.approx(1 / (1 - exp(50 / nodes - 1)), abs=0.15)


@pytest.mark.parametrize(("loss", "proxies"), [(0.1, 0), (0.1, 1), (0.1, 3), (0.2, 3)])
def test_swim_takes_as_few_for_failed_as_in_the_paper(loss: float, proxies: int) -> None:
    """Ibid.: a probe fails if a message there or back is lost, and one of four through each proxy.

    Within a seventh; nobody fails.
    """
    settings = {"settings.fails": 0, "settings.proxies": proxies, "network.loss": loss, "rounds": 8}
    runs = [run("swim", seed=seed, **settings).rounds for seed in SEEDS]
    # The probes of the last round are not yet judged.
    declared = float(np.mean([rounds["declared_failed"][-1] for rounds in runs])) * 8 / 7
    arrives = 1 - loss
    expected = (1 - arrives**2) * (1 - arrives**4) ** proxies
    assert declared == pytest.approx(expected, rel=1 / 7)


@with_campaigns("sizes", [(250, 1000)], [(250, 1000, 4000, 16_000)])
def test_swim_spreads_failures_in_a_logarithmic_number_of_periods(sizes: tuple[int, ...]) -> None:
    """Ibid., Sec. 4.1: four times the nodes take one period more or two until all know.

    While nothing fails a node sends a ping and an answer in a period, however many nodes there are.
    """
    periods = []
    for nodes in sizes:
        rounds = run("swim", nodes=nodes, **{"settings.fails": 1}).rounds
        assert rounds["messages"][4] == 4 * 2 * nodes
        assert rounds["known"][-1] == 1
        periods.append(int(((rounds["known"] > 0) & (rounds["known"] < 1)).sum()))
        assert periods[-1] <= ceil(2 * log(nodes))
    assert all(1 <= more - less <= 2 for less, more in pairwise(periods)), periods


@with_campaigns("seed", [1], [2, 3, 4])
def test_gossip_learning_is_as_good_as_learning_in_one_place(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ormandi et al., CCPE 2013: a model that walks errs as often as one in one place does.

    Of as many examples, within a tenth. Merged ones learn in far fewer cycles: after 20 they err
    less than single walks after 100, and after 100 as little as Pegasos after 20,000 examples.
    """
    monkeypatch.syspath_prepend(str(COOKBOOK))
    learning = importlib.import_module("gossip_learning")
    walks, merged = (one.rounds for one in run_all("gossip_learning", seed=seed).values())
    nodes, noise = SimpleNamespace(nodes=range(1000), seed=seed), 0.05
    x, y = (each[:1000] for each in learning.examples(nodes, noise))
    signed = x * y[:, None]

    def pegasos(steps: int, models: int = 50) -> float:
        """The error of Pegasos after so many random examples, of several models in the mean."""
        weights = np.zeros((models, x.shape[1]))
        drawn = np.random.default_rng(seed).integers(len(x), size=(steps, models))
        for step, rows in enumerate(drawn, 1):
            wrong = np.einsum("ij,ij->i", weights, signed[rows]) < 1
            weights *= 1 - 1 / step
            weights += wrong[:, None] * signed[rows] / (0.01 * step)
        return float(learning.error_of(weights, nodes, noise))

    assert walks["error"][100] == pytest.approx(pegasos(round(walks["mean_age"][100])), rel=1 / 10)
    assert merged["error"][20] < walks["error"][100]
    assert merged["error"][100] <= pegasos(20_000) + 0.01


# The push-sum example, and what `protocol_run` gives to scripts

SCRIPT = ROOT / "examples" / "push_sum" / "push_sum.py"


def test_push_sum_finds_the_average_and_after_a_change_the_new_one(
    push_sum: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """Variance falls at least by a fifth each cycle; values and weights are conserved."""
    run = push_sum.main(nodes=1000, cycles=60)
    variance = np.array(run.columns["variance"])
    assert run.columns["cycle"] == list(range(61))
    assert variance[0] > 0.05
    assert variance[30] < variance[0] * 0.8**30
    assert variance[31] > 0.01
    assert variance[60] < variance[31] * 0.8**29
    state = run.engine.state
    average = np.random.default_rng(1).random(1000).mean() + 334 / 1000
    assert np.allclose(state.total / state.weight, average, atol=1e-3)
    assert np.isclose(state.weight.sum(), 1000, rtol=1e-12)
    assert "variance" in capsys.readouterr().out


def test_a_schedule_names_its_cycles() -> None:
    for schedule, cycles in (
        (Schedule(), [0, 1, 2, 3, 4, 5, 6, 7]),
        (Schedule(every=3), [0, 3, 6]),
        (Schedule(every=3, begin=2, end=8), [2, 5]),
        (once(4), [4]),
    ):
        assert [cycle for cycle in range(8) if cycle in schedule] == cycles
    for field, wrong in (("every", 0), ("begin", -1)):
        with pytest.raises(ScenarioError, match=rf"schedule\.{field} is "):
            Schedule(**{field: wrong})


@pytest.mark.parametrize("engine", [CycleEngine, EventEngine])
def test_initialisers_controls_and_observers_take_their_turns(engine: Any) -> None:
    """Initialisers once, controls before the cycles due, observers after the cycles due."""
    calls: list[tuple[str, int]] = []

    def called(name: str) -> Any:
        def call(engine: Engine) -> float:
            calls.append((name, engine.cycle))
            return engine.state.fired.sum()  # type: ignore[no-any-return]

        return call

    run = ProtocolRun(
        engine(make_pings(3), ping_step, (TICK,), make_network(3), 1),
        initialisers=[called("initialiser")],
        controls=[(called("control"), Schedule(every=2, begin=1))],
        observers={"fired": called("observer")},
        observe_when=Schedule(every=2),
    )
    columns = run.run(4)
    assert calls == [
        *(("initialiser", 0), ("observer", 0), ("control", 1)),
        *(("observer", 2), ("control", 3), ("observer", 4)),
    ]
    assert columns["cycle"] == [0, 2, 4]
    assert columns["fired"] == [0, 6, 12]
