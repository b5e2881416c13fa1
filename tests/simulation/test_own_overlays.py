"""Overlays of one's own beside the shipped ones: given the same, measured the same, resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import gossamer.sim as gs
from gossamer.protocol.kernel.errors import RuleError
from gossamer.sim.custom.pubsub.overlay import matching
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.results import result_hash
from gossamer.sim.studies.peers.inputs.own_workload import workload_of
from gossamer.sim.studies.peers.measuring.records import SystemRecord
from gossamer.sim.studies.peers.running.overlay_run import OverlayRun
from gossamer.sim.studies.peers.study import simulate
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.scenarios import read_scenario
from support.own_protocols import PROTOCOLS
from support.sim_commands import printed_by, sim, simulated_in_parts

FLOODING: Final = f"{PROTOCOLS / 'flooding_overlay.py'}:Flooding"
BOTH: Final = ["kindred", gs.System("flooding", protocol=FLOODING)]
SMALL: Final[dict[str, Any]] = {
    "nodes": 24,
    "rounds": 16,
    "round_s": 60,
    "subscriptions": gs.Subscriptions(kind="random", width=0.2, attributes=2, per_node=2),
    "events": gs.Events(per_round=2, warm_up_rounds=6),
}
SLOW: Final = gs.Link(latency="lognormal", latency_s=0.05, loss=0.02)


def scenario(**keys: Any) -> gs.Scenario:
    return gs.Scenario(**{**SMALL, "systems": BOTH, **keys})


def run(asked: gs.Scenario, threads: int = 1) -> dict[str, SystemRecord]:
    return dict(simulate(asked, execution=Execution(workers=threads)).systems)


def columns(record: SystemRecord, *names: str) -> list[Any]:
    return [record.events[name].tolist() for name in names]


@pytest.mark.parametrize("engine", ["cycle", "event"])
def test_an_event_that_everybody_sends_to_everybody_costs_what_it_has_to(engine: str) -> None:
    """Views hold all others, so that each node hears of an event from all but one of them."""
    asked = scenario(nodes=12, engine=engine, events=gs.Events(per_round=2, warm_up_rounds=9))
    found = run(asked)
    own, kindred = found["flooding"], found["kindred"]
    assert len(own.events["event"]) == 14
    assert columns(own, "event", "cycle", "time_s", "publisher", "expected") == columns(
        kindred, "event", "cycle", "time_s", "publisher", "expected"
    )
    boxes, _ = workload_of(asked).subscriptions(12)
    low, high = (boxes[:, :, first::2].reshape(12, -1) for first in (0, 1))
    wanted = np.array([matching(low, high, row) for row in workload_of(asked).events(0, 14)])
    assert own.events["expected"].tolist() == wanted.sum(axis=1).tolist()
    assert own.events["delivered"].tolist() == own.events["expected"].tolist()
    # The publisher sends to 11 first, each of whom sends to the 10 others.
    assert set(own.events["received"]) == {11 + 11 * 10}
    others = wanted.copy()
    others[np.arange(14), own.events["publisher"]] = False
    uninterested = 11 * (11 - others.sum(axis=1))
    assert own.events["uninterested"].tolist() == uninterested.tolist()
    assert own.nodes["received"].sum() == own.events["received"].sum()
    assert own.nodes["uninterested"].sum() == own.events["uninterested"].sum()
    idle = ~wanted
    idle[np.arange(14), own.events["publisher"]] = False
    assert own.nodes["load"].tolist() == (idle.sum(axis=0) / 14).tolist()
    assert own.deliveries["hops"].max() == 1
    assert own.events["duplicates"].sum() == own.events["false_positives"].sum() == 0


CHANGING: Final[dict[str, Any]] = {
    "engine": "event",
    "network": SLOW,
    "turnover": gs.Turnover(share=3),
    "drift": gs.Drift(every_s=240, replaced=0.3, late=0.2),
}


def test_churn_drift_and_publications_are_those_of_the_shipped_systems() -> None:
    found = run(scenario(**CHANGING))
    own, kindred = found["flooding"], found["kindred"]
    names = ("event", "cycle", "time_s", "publisher", "expected")
    assert columns(own, *names) == columns(kindred, *names)
    for name in ("population", "events", "expected"):
        assert own.cycles[name].tolist() == kindred.cycles[name].tolist()
    assert 0 < own.events["delivered"].sum() <= own.events["expected"].sum()
    traffic = own.traffic
    assert traffic is not None
    count, size = traffic.messages["count"], traffic.messages["size_bytes"]
    assert size.sum() == traffic.rounds["size_bytes"].sum() == traffic.nodes["sent_bytes"].sum()
    by_name = dict(zip(traffic.messages["message"].tolist(), count.tolist(), strict=True))
    assert by_name["copy"] == own.nodes["received"].sum() == own.events["received"].sum()
    assert own.cycles["control_messages"].sum() == count.sum() - by_name["copy"] > 0
    # A header, two fields and two values.
    at = traffic.messages["message"].tolist().index("copy")
    assert size[at] == by_name["copy"] * (32 + 16 + 16)
    assert traffic.fates["lost"] > 0


@pytest.mark.parametrize("engine", ["cycle", "event"])
def test_a_run_that_was_interrupted_gives_the_same(engine: str, tmp_path: Path) -> None:
    network = SLOW if engine == "event" else gs.Link()
    asked = scenario(**{**CHANGING, "engine": engine, "network": network})
    whole = simulate(asked, execution=Execution(workers=2))
    assert result_hash(simulated_in_parts(asked, tmp_path, 9, threads=1)) == result_hash(whole)


PRINTING: Final = """
from simulation.test_own_overlays import BOTH, CHANGING, result_hash, scenario, simulate
print(result_hash(simulate(scenario(systems=BOTH[1:], **CHANGING))))
"""


def test_hash_seeds_change_nothing() -> None:
    here = result_hash(simulate(scenario(systems=BOTH[1:], **CHANGING)))
    assert printed_by(PRINTING, "1") == here


def test_changed_interests_are_in_the_columns_and_said() -> None:
    asked = scenario(**CHANGING, systems=[BOTH[1]])
    made = OverlayRun(asked, asked.systems[0], None)
    before = made._rules.state.low.copy()
    while not made.is_finished:
        made.run_round()
    state, (boxes, constrained) = made._rules.state, made.interests.present
    assert (state.changes > 0).any()
    assert (state.low != before).any()
    assert (state.high[constrained[:, 0] < 0] == -1).all()
    kept = boxes[constrained[:, 0] >= 0]
    low, high = kept[:, :, 0::2], kept[:, :, 1::2]
    assert (state.low[constrained[:, 0] >= 0] == low.reshape(len(kept), -1)).all()
    assert (state.high[constrained[:, 0] >= 0] == high.reshape(len(kept), -1)).all()
    record = made.record()
    assert (record.nodes["routing_table_entries"] > 0).all()
    overlay = made.overlay()
    assert overlay is not None
    assert set(overlay.kinds) == {"everyone", "peers"}
    known = {*zip(*(overlay.links[end].tolist() for end in ("source", "target")), strict=True)}
    up = np.isin(np.arange(24), overlay.nodes["node"])
    in_degrees = np.bincount([target for _, target in known], minlength=24)
    assert record.nodes["in_degree"][up].tolist() == in_degrees[up].tolist()


FILE: Final = """
nodes = 12
rounds = 6
[events]
warm_up_rounds = 2
[[system]]
name = "kindred"
[[system]]
name = "flooding"
protocol = "{}"
memory = 16
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "s.toml").write_text(FILE.format(FLOODING))
    return tmp_path / "s.toml"


def test_files_the_door_and_commands_say_the_same(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    assert sim("check s.toml") == 0
    assert "flooding_overlay.py:Flooding" in capsys.readouterr().out
    assert sim("run s.toml --no-plots --set system.flooding.memory=8 --out there") == 0
    there = gs.load("there")
    assert there.scenario["systems"][1]["protocol"] == "flooding_overlay.py:Flooding"
    assert there["flooding"].settings["memory"] == 8
    own = gs.System("flooding", protocol=FLOODING, memory=8)
    given: dict[str, Any] = {"nodes": 12, "rounds": 6, "events": {"warm_up_rounds": 2}}
    here = gs.simulate(systems=["kindred", own], **given)
    assert here["flooding"].measures == pytest.approx(there["flooding"].measures, nan_ok=True)
    assert gs.simulate(Path("there/scenario.toml")).result_hash == there.result_hash
    text = str(gs.compare(here, there))
    assert "flooding" in text


def test_settings_of_an_overlay_are_swept(file: Path) -> None:
    values: dict[str, list[Any]] = {"system": ["flooding"], "system.flooding.memory": [4, 8]}
    swept = gs.sweep(file, seeds=[1, 2], grid=values, processes=1, progress=False)
    assert swept["system.flooding.memory"].tolist() == [4, 4, 8, 8]
    assert set(swept["hit_ratio"]) == {1.0}


def test_plots_and_a_report_are_drawn(file: Path, tmp_path: Path) -> None:
    assert sim("run", file, "--out", tmp_path / "out", "--plots", "svg") == 0
    drawn = {path.stem for path in (tmp_path / "out" / "plots").iterdir()}
    assert {"path_length", "hit_ratio"} <= drawn
    assert "flooding" in (tmp_path / "out" / "report.html").read_text()


OWN: Final = """
import gossamer.sim as gs
Copy = gs.message("Copy", event=int)
Late = gs.message("Late", known=gs.items(4), event=int)
class Whole(gs.PubSub):
    k: int = 3
    def on_publish(self, me, net, sender, event, values): pass
    def on_copy(self, me, net, sender, event): pass
class Controlled(Whole):
    @gs.control(once=3)
    def crash(self, run): pass
class Deaf(gs.PubSub):
    def on_copy(self, me, net, sender, event): pass
class Silent(gs.PubSub):
    def on_publish(self, me, net, sender, event, values): pass
    def on_late(self, me, net, sender, known, event): pass
class Other(gs.Protocol):
    def on_copy(self, me, net, sender, event): pass
class Rude(Whole):
    def on_publish(self, me, net, sender, event, values):
        self.low[(me + 1) % self.nodes, 0] = 1
"""


def test_a_rule_that_writes_to_another_node_is_found_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "rude_overlay.py").write_text(OWN)
    rude = gs.System("rude", protocol=f"{tmp_path}/rude_overlay.py:Rude")
    line = OWN.splitlines().index("        self.low[(me + 1) % self.nodes, 0] = 1") + 1
    with pytest.raises(RuleError, match=f"rude_overlay.py, line {line}.*expected its own"):
        gs.simulate(systems=["kindred", rude], nodes=20)


@pytest.mark.parametrize(
    ("system", "more", "words"),
    [
        (
            {"protocol": "own.py:Other"},
            "",
            "system.o.protocol is 'own.py:Other', expected a class derived from PubSub",
        ),
        (
            {"protocol": "own.py:Deaf"},
            "",
            "expected a class with on_publish(self, me, net, sender, event, values)",
        ),
        (
            {"protocol": "own.py:Silent"},
            "",
            "expected a class that handles a message with a field event: int",
        ),
        ({"protocol": "own.py:Controlled"}, "", "expected a class without controls and observers"),
        (
            {"protocol": "own.py:Whole"},
            "[drift]\nreplaced = 0.1\n",
            "expected a class with on_resubscribe",
        ),
        (
            {"protocol": "none.py:Whole"},
            "",
            "system.o.protocol is of no file none.py, expected a file and a class in it",
        ),
        (
            {"protocol": "own.py:None_"},
            "",
            "expected one of Whole, Controlled, Deaf, Silent, Other, Rude",
        ),
        ({"protocol": 3}, "", "system.o.protocol is 3, expected a file and a class in it"),
        (
            {"protocol": "own.py:Whole", "preset": "kindred"},
            "",
            "system.o.preset is 'kindred', expected left out beside a protocol",
        ),
        (
            {"protocol": "own.py:Whole", "ring_links": 3},
            "",
            "system.o.ring_links is no setting, expected one of k",
        ),
        ({"protocol": "own.py:Whole", "k": 0.5}, "", "system.o.k is 0.5, expected a whole number"),
        (
            {"protocol": "own.py:Whole", "attributes": 3},
            "",
            "expected subscriptions.attributes in its place",
        ),
        (
            {"protocol": "own.py:Whole"},
            'engine = "synchronous"',
            'engine is \'synchronous\', expected "cycle" or "event"',
        ),
        (
            {"protocol": "own.py:Whole"},
            'start = "formed"',
            "start is 'formed', expected \"joining\"",
        ),
        (
            {"protocol": "own.py:Whole"},
            "[network]\nevent_capacity = 3\n",
            "network.event_capacity is 3, expected left out",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(
    system: dict[str, Any], more: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"own_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(OWN)
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in system.items())
    text = text.replace("own.py", f"{name}.py")
    (tmp_path / "s.toml").write_text(f'{more}\n[[system]]\nname = "o"\n{text}')
    with pytest.raises(ScenarioError) as caught:
        read_scenario(tmp_path / "s.toml")
    told = str(caught.value).replace(f"{name}.py", "own.py").replace(f"{tmp_path}/", "")
    assert words in told
    assert "\n" not in told
