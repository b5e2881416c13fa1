"""Scenarios of broker overlays: read strictly, written to be read back, one sentence a fault."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from gossamer.protocol.brokers.tree import COVERINGS
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.studies.tree_brokers import scenario as brokers
from gossamer.sim.studies.tree_brokers import service_times as overlay_service
from gossamer.sim.studies.tree_brokers import study as broker_preview
from gossamer.sim.studies.tree_brokers.scenario import FORMAT
from gossamer.sim.studies.tree_brokers.study import BROKERS
from gossamer.sim.studies.tree_brokers.unsubscription_burst import SECOND
from gossamer.sim.study.scenarios import read_scenario
from support.checkout import ROOT
from support.refusals import assert_listed, fault_of, read_as, write

EXAMPLE = ROOT / "examples" / "brokers" / "scenario.toml"
REFERENCE = ROOT / "docs" / "broker_scenario.md"

FULL = """
kind = "brokers"
name = "all of it"
seed = 7
coverings = ["off", "incremental"]

[overlay]
name = "controlled_49"
latency_ms = 2
gap_ms = 0.5
queue = 1000
congested = 50

[workload]
roots = 10
degree = 5
clustered = true
unsubscriptions = 3
matches = 2

[timing]
subscribe_every_s = 0.5
aftermath_s = 60

[service]
kind = "proportional"
subscription_ms = 3
per_entry_us = 2.5

[broker]
similarity = 0.8
drop_unpaid = false
"""


def read(folder: Path, text: str, **overrides: object) -> brokers.BrokerScenario:
    return read_as(brokers.BrokerScenario, folder, text, overrides)


def test_every_value_of_a_file_arrives(tmp_path: Path) -> None:
    scenario = read(tmp_path, FULL)
    burst = scenario.burst("incremental")
    assert scenario.coverings == ("off", "incremental")
    assert (burst.overlay.name, len(burst.overlay.graph)) == ("controlled_49", 49)
    assert (burst.workload.roots, burst.workload.degree, burst.workload.seed) == (10, 5, 7)
    assert (burst.placement, burst.unsubscriptions, burst.seed) == ("behind_core", 3, 7)
    assert (burst.links.latency, burst.links.gap, burst.links.queue) == (2_000, 500, 1_000)
    assert (burst.subscribe_every, burst.aftermath) == (SECOND // 2, 60 * SECOND)
    assert (burst.settings.similarity, burst.settings.drop_unpaid) == (0.8, False)
    assert burst.service == overlay_service.ProportionalTimes(
        overlay_service.FixedTimes(3_000, 1_400, 3_000),
        overlay_service.FixedTimes(2_500, 2_500, 2_500),
    )
    assert burst.reach == pytest.approx(1 + 2 / 6)


def test_scenarios_read_back_as_written_whatever_was_changed(tmp_path: Path) -> None:
    for text in (FULL, 'kind = "brokers"'):
        scenario = read(tmp_path, text)
        assert read(tmp_path, FORMAT.write(scenario)) == scenario
    assert isinstance(read_scenario(write(tmp_path, "nodes = 50"))[0], Scenario)
    changes = {"workload.degree": 9, "broker.similarity": 0.5, "seed": 3, "coverings": ["lazy"]}
    scenario = read(tmp_path, FULL, **changes)
    assert (scenario.workload.degree, scenario.seed, scenario.coverings) == (9, 3, ("lazy",))
    assert scenario.settings("selective").similarity == 0.5
    changed, text = read_scenario(write(tmp_path, FULL), {"workload.degree": 9})
    assert text.startswith("# As run, from 'scenario.toml'.\n")
    assert read_scenario(write(tmp_path, text))[0] == changed


def test_the_example_is_a_scenario_of_five_coverings() -> None:
    scenario, text = read_scenario(EXAMPLE, {})
    assert isinstance(scenario, brokers.BrokerScenario)
    assert scenario.coverings == ("active", "lazy", "packed", "selective", "incremental")
    assert text == EXAMPLE.read_text()


@pytest.mark.parametrize(
    ("text", "sentence"),
    {
        'kind = "vines"': "kind is 'vines', expected nothing for peers without servers, or one of",
        "kind = 5": "kind is 5, expected nothing for peers without servers, or one of brokers",
        "nodes = 5": "nodes is an unknown key, expected one of kind, name, seed, coverings",
        "[overlay]\nnam = 1": "overlay.nam is an unknown key, did you mean 'overlay.name'?",
        "overlay = 5": "overlay is 5, expected a table, [overlay]",
        'overlay.name = "star_17"': "overlay.name is 'star_17', expected one of controlled_55, co",
        '[overlay]\nname = ["A"]': "overlay.name is ['A'], expected one of",
        "[overlay]\nlatency_ms = -1": "overlay.latency_ms is -1.0, expected a time from 0",
        "[overlay]\nqueue = 1.5": "overlay.queue is 1.5, expected a whole number",
        "coverings = 5": "coverings is 5, expected a list of some of off, lazy",
        "coverings = []": "coverings is [], expected a list of some of off",
        'coverings = ["greedy"]': "coverings is 'greedy', expected one of off, lazy, active",
        "coverings = [[]]": "coverings is [], expected one of off, lazy, active",
        'coverings = ["lazy", "lazy"]': "coverings is ['lazy', 'lazy'], expected each covering",
        "[workload]\nroots = 0": "workload.roots is 0, expected a whole number from 1",
        "[workload]\ndegree = true": "workload.degree is True, expected a whole number from 0",
        "[workload]\nclustered = 1": "workload.clustered is 1, expected true or false",
        'broker.critical_rule = "no"': "broker.critical_rule is 'no', expected one of below, at_",
        'broker.displaced = "all"': "broker.displaced is 'all', expected one of triggered, quench",
        "[service]\npacked = 2": "service.packed is 2.0, expected a share from 0 to 1",
        "[workload]\nroots = 2000\ndegree = 2000": (
            "workload.degree is 2000, expected at most 1,000,000 subscriptions in all"
        ),
        "workload = {roots = 5, unsubscriptions = 6}": "workload.unsubscriptions is 6, expected at",
        "[timing]\npublish_every_s = 0": "timing.publish_every_s is 0.0, expected a time from",
        "[timing]\ncalm_s = inf": "timing.calm_s is inf, expected a time from 0",
        "[timing]\ncalm_s = 1000000\npublish_every_s = 0.01": (
            "timing.publish_every_s is 0.01, expected at most 10,000,000 publications"
        ),
        "[timing]\naftermath_s = 1000000\nsample_every_s = 0.01": (
            "timing.sample_every_s is 0.01, expected at most 10,000,000 looks"
        ),
        '[service]\nkind = "slow"': "service.kind is 'slow', expected one of table_ii, fixed",
        "[service]\nfactor = 0": "service.factor is 0.0, expected a number above 0",
        "[broker]\nsimilarity = 2": "broker.similarity is 2, expected a number from 0.0 to 1.0",
        "[broker]\nsimilar = 2": (
            "broker.similar is an unknown key, did you mean 'broker.similarity'?"
        ),
        '[broker]\ncovering = "lazy"': "broker.covering is an unknown key, expected one of",
        "[broker]\ndrop_unpaid = 2": "broker.drop_unpaid is 2, expected true or false",
        'name = " "': "name is ' ', expected one line of text",
        "seed = -1": "seed is -1, expected a whole number from 0",
        "seed = ": "line",
    }.items(),
)
def test_every_fault_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    head = "" if text.startswith("kind") else 'kind = "brokers"\n'
    assert sentence in str(fault_of(tmp_path, head + text))


def test_a_fault_in_a_replaced_value_does_not_blame_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, FULL)
    with pytest.raises(ScenarioError, match=r"^workload\.degree is -1, expected a whole number"):
        read_scenario(path, {"workload.degree": -1})
    with pytest.raises(ScenarioError, match=r"^workloads\.degree is an unknown key"):
        read_scenario(path, {"workloads.degree": 1})


def test_times_are_of_table_ii_or_of_congested_brokers_and_charge_what_is_examined() -> None:
    service, table = brokers.Service(), overlay_service.TABLE_II
    for name in ("off", "lazy", "active"):
        assert service.times(name) == table[name]
    assert service.times("incremental") == table["active"]
    measured = brokers.Service(kind="measured", factor=2).times("active")
    assert measured == overlay_service.MeasuredTimes(2.0)
    assert brokers.Service(kind="fixed").times("lazy") == table["active"]
    congested = brokers.Service(kind="congested", congested_ms=200, bound_ms=1_000, packed=0.5)
    lazy = attrs.evolve(overlay_service.TABLE_II["lazy"], packed=0.5)
    assert congested.times("lazy") == overlay_service.CongestedTimes(lazy, 200_000, 1_000_000)
    examined = brokers.Service(examined_ms=12).times("packed")
    assert examined == attrs.evolve(overlay_service.TABLE_II["active"], examined=12_000)


def test_clusters_are_behind_a_core_broker_or_a_region_and_times_whole_microseconds() -> None:
    for clustered, clusters, placement in (
        (False, "region", "anywhere"),
        (True, "behind_core", "behind_core"),
        (True, "region", "region"),
    ):
        workload = brokers.Workload(clustered=clustered, clusters=clusters)
        assert brokers.BrokerScenario(workload=workload).burst("active").placement == placement
    scenario = brokers.BrokerScenario(timing=brokers.Timing(publish_every_s=0.0015))
    assert scenario.burst("active").publish_every == 1_500


def test_what_no_machine_has_memory_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = brokers.BrokerScenario()
    BROKERS.check(scenario)
    monkeypatch.setattr(broker_preview, "SUBSCRIPTION_BYTES", 1 << 40)
    with pytest.raises(ScenarioError, match=r"^workload\.roots is 100, expected fewer subscript"):
        BROKERS.check(scenario)


def test_the_reference_lists_every_key_with_its_default() -> None:
    assert_listed(
        REFERENCE, brokers.FORMAT.sections, *brokers.BROKER_SETTINGS, *COVERINGS, "coverings"
    )
