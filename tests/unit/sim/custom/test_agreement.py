"""Plain nodes and rules do the same, also over layers and samplers; functions of plain classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gossamer.command.main import main
from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.studies.custom.rehearsal import first_difference, scenario_of
from gossamer.sim.studies.custom.simulation import simulate_custom
from support.draws import larger
from support.own_protocols import COOKBOOK, PROTOCOLS, protocol_file, scenario_file

Capture = pytest.CaptureFixture[str]
BOTH = ("errands.py:Errands", "errands_nodes.py:Errands")
WORLDS: dict[str, dict[str, Any]] = {
    "perfect": {},
    "lossy": {
        "network": {"latency": "uniform", "latency_s": 0.08, "loss": 0.05, "duplication": 0.05},
        "clock_drift": 0.02,
    },
    "silent": {"network": {"latency": "constant", "latency_s": 0.03, "reports_unreachable": False}},
}


@pytest.mark.parametrize("world", WORLDS)
def test_nodes_and_interpreted_rules_do_the_same(world: str) -> None:
    """With samplers, layers, delays, jitter, crashes, returns and whatever links do."""
    keys = {"nodes": larger(20, 30), "rounds": 26, **WORLDS[world]}
    assert first_difference(scenario_of(*BOTH, folder=PROTOCOLS, **keys), interpreted=True) is None


@pytest.mark.parametrize("world", WORLDS)
def test_nodes_and_compiled_rules_do_the_same_and_measure_it(world: str) -> None:
    scenario = scenario_of(*BOTH, folder=PROTOCOLS, nodes=80, rounds=40, **WORLDS[world])
    assert first_difference(scenario) is None
    rules, nodes = simulate_custom(scenario).systems.values()
    assert rules.totals == nodes.totals
    for (name, one), (_, other) in zip(rules.tables(), nodes.tables(), strict=True):
        for column in one:
            assert one[column].tolist() == pytest.approx(other[column].tolist()), (name, column)
    taken = dict(zip(rules.messages["message"].tolist(), rules.messages["count"], strict=True))
    assert taken.pop("reminder") == 0  # to oneself
    assert min(taken.values()) > 100
    assert rules.rounds["done_mean"][-1] > 2
    assert (rules.rounds["population"] < 80).any()


def test_the_first_record_that_differs_is_named() -> None:
    """Nodes take one more useless push before they lose interest."""
    rumor: dict[str, Any] = {"folder": COOKBOOK, "nodes": 60}
    scenario = scenario_of("rumor.py:Rumor", **rumor)
    patient = scenario_of("rumor.py:Rumor", **rumor, settings={"k": 3}).systems[0]
    object.__setattr__(patient, "name", "patient")
    object.__setattr__(scenario, "systems", (scenario.systems[0], patient))
    found = first_difference(scenario, interpreted=True)
    assert found is not None
    assert found.names == ("1-Rumor", "patient")
    assert found.number > 300
    assert found.first != found.second
    assert str(found).startswith(f"record {found.number:,} differs: in 1-Rumor node ")


STACKS = ("OverCyclon", "OverNewscast", "OverHyParView", "OverTMan")


def stacked(stack: str, **keys: Any) -> Any:
    return scenario_of(f"stacked.py:{stack}", f"stacked_nodes.py:{stack}", folder=PROTOCOLS, **keys)


@pytest.mark.parametrize("engine", ["event", "cycle"])
@pytest.mark.parametrize("stack", STACKS)
def test_nodes_and_interpreted_rules_over_a_layer_do_the_same(stack: str, engine: str) -> None:
    """With crashes and returns, in which layers learn of nodes that are gone."""
    scenario = stacked(stack, nodes=larger(12, 18), rounds=larger(8, 10), engine=engine)
    assert first_difference(scenario, interpreted=True) is None


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.campaign)])
@pytest.mark.parametrize(
    "stack", ["OverTMan", *(pytest.param(one, marks=pytest.mark.campaign) for one in STACKS[:-1])]
)
def test_messages_pass_between_the_protocols_of_a_node(stack: str, compiled: bool) -> None:
    """Every token is counted below and reported above, in rules as with plain nodes."""
    nodes = 150 if compiled else 30
    network = {"latency": "uniform", "latency_s": 0.1, "loss": 0.02}
    scenario = stacked(stack, nodes=nodes, rounds=30 if compiled else 16, network=network)
    assert first_difference(scenario, interpreted=not compiled) is None
    with use_compiled(compiled):
        rules, plain = simulate_custom(scenario).systems.values()
    taken = dict(zip(rules.messages["message"].tolist(), rules.messages["count"], strict=True))
    assert rules.rounds["tokens"][-1] == pytest.approx(taken["token"] / nodes)
    assert rules.rounds["tokens"].tolist() == pytest.approx(plain.rounds["tokens"].tolist())
    assert rules.rounds["tokens"][-1] > 10
    assert taken["ask"] == taken["tell"] == 0  # nothing of them goes over a link
    if stack == "OverTMan":
        assert rules.rounds["in_line"][-1] == 1


WRONG = {
    "no_rule": ("tman(min)", "the ranking of tman is <built-in function min>, expected a function"),
    "no_size": ("tman(rank, nearest=0)", "tman nearest is 0, expected a whole number, 1 to 256"),
    "no_sampler": ("tman(rank, sampler='cylon')", "Sampler is 'cylon', expected one of cyclon"),
    "two_of_them": ("tman(rank)\n    low = layer(tman(rank))", "a stack of samplers"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_topology_is_one_sentence(what: str, tmp_path: Path, capsys: Capture) -> None:
    text, said = WRONG[what]
    text = text if "layer" not in text else text.replace("tman(rank)", "layer(tman(rank))", 1)
    body = (
        "from gossamer.sim import rule\n"
        "from gossamer.sim.custom.topologies.tman import tman\n\n"
        "@rule\ndef rank(state, base, node):\n    return abs(base - node)\n\n"
        f"class Own(Protocol):\n    ring = {text}\n"
    )
    file = scenario_file(tmp_path, protocol_file(tmp_path, f"topology_{what}", body))
    assert main(["sim", "check", str(file)]) == 2
    assert said in capsys.readouterr().err


# What initialisers, controls and measures of plain classes see of their class

COUNTING = """
from gossamer.sim import initialiser

class Own(Node):
    step: int = 1
    {more}

    tick = Timer(rounds=1)

    def __init__(self):
        self.count = 0

    @initialiser
    def begin(cls, run):
        for node in run.nodes:
            node.count = cls.first()

    @classmethod
    def first(cls):
        return 100 * cls.step

    def on_tick(self):
        self.count += self.step

    @measure
    def in_steps(cls, run):
        return sum(node.count for node in run.nodes) / len(run.nodes) / cls.step
"""


@pytest.mark.parametrize("step", [1, 7])
def test_settings_are_those_of_the_scenario(tmp_path: Path, step: int) -> None:
    protocol = protocol_file(tmp_path, f"counting_by_{step}", COUNTING.format(more=""))
    given = {"nodes": 3, "rounds": 4, "settings": {"step": step}}
    (system,) = simulate_custom(scenario_of(protocol, folder=tmp_path, **given)).systems.values()
    assert system.rounds["in_steps"].tolist() == [100, 101, 102, 103, 104]


def test_a_setting_is_not_set_by_a_function_of_the_class(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    more = "@control(once=1)\n    def change(cls, run):\n        cls.step = 3"
    scenario_file(tmp_path, protocol_file(tmp_path, "counting_and_set", COUNTING.format(more=more)))
    assert main(["sim", "run", "own.toml", "--out", "out"]) == 2
    assert "Own.step is a setting, which the scenario sets" in capsys.readouterr().err


def test_a_run_of_plain_classes_says_no_compiling(tmp_path: Path, capsys: Capture) -> None:
    protocol = protocol_file(tmp_path, "counting_alone", COUNTING.format(more=""))
    scenario = scenario_file(tmp_path, protocol)
    assert main(["sim", "run", str(scenario), "--out", str(tmp_path / "out"), "--no-plots"]) == 0
    told = capsys.readouterr().err
    assert "0 of 3 rounds, begun" in told
    assert "compile" not in told
