"""Scenarios of trees: read strictly, written to be read back; and workloads of tables."""

from __future__ import annotations

import json
import math
from pathlib import Path

import attrs
import pyarrow.parquet as pq
import pytest

from gossamer.sim.errors import ScenarioError
from gossamer.sim.row_tables.keywords import KeywordTables
from gossamer.sim.row_tables.kinds import WorkloadRequest, make_workload
from gossamer.sim.studies.dissemination import study as trees_preview
from gossamer.sim.studies.dissemination.scenario import FORMAT, TreesScenario
from gossamer.sim.studies.dissemination.strategies import STRATEGIES
from gossamer.sim.studies.dissemination.study import check_trees
from gossamer.sim.studies.dissemination.topologies import barabasi_albert
from gossamer.sim.studies.dissemination.workload import read_tables, read_workload
from gossamer.sim.study.scenarios import read_scenario
from support.checkout import ROOT
from support.refusals import assert_listed, fault_of, read_as

EXAMPLE = ROOT / "examples" / "trees" / "scenario.toml"
REFERENCE = ROOT / "docs" / "trees_scenario.md"

FULL = """
kind = "trees"
name = "all of it"
seed = 7
strategies = ["MULT", "WITHIN", "OPT"]

[topology]
kind = "transit_stub"
brokers = 60
stub_stub_links = 5
capacity = 40

[workload]
neighbourhood = 0.1
keywords = 30
subscribers = 4
documents = 80
nearby = 3
document_keywords = 2
largest_size = 2.5

[planning]
sample_share = 0.5
neighbours = 0
manageable = 7
channels = 9
states = 3
"""

GRAPH = """graph [
  node [ id 0 label "Bern" ]
  node [ id 1 label "Rome" ]
  node [ id 2 label "Oslo" ]
  edge [ source 0 target 1 delay 2 ]
  edge [ source 1 target 2 delay 3 ]
]
"""
WAXMAN_STUBS = '[topology]\nkind = "waxman"\nstub_stub_links = 3'
SUBSCRIPTIONS = [{"broker": "Bern", "keywords": ["news", "sport"]}]
DOCUMENTS = [{"host": "Oslo", "keywords": ["sport"], "size": 2.5}, {"host": "Rome", "keywords": []}]


def read(folder: Path, text: str, **overrides: object) -> TreesScenario:
    return read_as(TreesScenario, folder, text, overrides)


def write_workload(folder: Path, **changes: object) -> Path:
    path = folder / "workload.json"
    path.write_text(json.dumps({"subscriptions": SUBSCRIPTIONS, "documents": DOCUMENTS, **changes}))
    return path


def of_files(folder: Path, graph: str = GRAPH, more: str = "", **changes: object) -> TreesScenario:
    (folder / "graph.gml").write_text(graph)
    write_workload(folder, **changes)
    text = f'kind = "trees"\n[topology]\nkind = "file"\nfile = "graph.gml"\n{more}\n'
    return read(folder, text + '[workload]\nfile = "workload.json"\n')


def test_every_value_of_a_file_arrives(tmp_path: Path) -> None:
    scenario = read(tmp_path, FULL)
    setting = scenario.setting()
    assert scenario.strategies == ("MULT", "WITHIN", "OPT")
    assert (setting.graph.nodes, set(setting.capacities.tolist())) == (60, {40.0})
    assert setting.routed.documents == 80
    assert 1 <= setting.routed.sizes.min() < setting.routed.sizes.max() <= 2.5
    assert 20 < setting.planned.documents < 60
    assert (setting.neighbours, setting.manageable, setting.most_channels) == (None, 7, 9)
    without = attrs.evolve(scenario, topology=attrs.evolve(scenario.topology, stub_stub_links=0))
    assert without.setting().graph.links < setting.graph.links


def test_scenarios_and_the_example_read_back_also_with_other_values(tmp_path: Path) -> None:
    for text in (FULL, 'kind = "trees"'):
        scenario = read(tmp_path, text)
        assert read(tmp_path, FORMAT.write(scenario)) == scenario
    example, text = read_scenario(EXAMPLE, {})
    assert isinstance(example, TreesScenario)
    assert (example.topology.kind, example.topology.brokers) == ("transit_stub", 500)
    assert set(STRATEGIES) - set(example.strategies) == {"HYBRID", "WITHIN", "TRIED"}
    assert text == EXAMPLE.read_text()
    scenario = read(tmp_path, FULL, **{"topology.brokers": 90, "seed": 3, "strategies": ["SPT"]})
    assert (scenario.topology.brokers, scenario.seed, scenario.strategies) == (90, 3, ("SPT",))
    with pytest.raises(ScenarioError, match=r"^topology\.brokers is 1, expected a whole number"):
        read(tmp_path, FULL, **{"topology.brokers": 1})
    with pytest.raises(ScenarioError, match=r"^tree\.brokers is an unknown key"):
        read(tmp_path, FULL, **{"tree.brokers": 1})


def test_files_are_beside_the_scenario_and_its_text_can_be_moved(tmp_path: Path) -> None:
    scenario = of_files(tmp_path, more='cost = "delay"')
    setting = scenario.setting()
    assert setting.topology.names == ("Bern", "Rome", "Oslo")
    assert (setting.graph.costs.tolist(), setting.routed.hosts.tolist()) == ([2, 3], [2, 1])
    assert setting.routed.sizes.tolist() == [2.5, 1]
    assert [setting.routed.matches(d).tolist() for d in (0, 1)] == [[0], []]
    _, text = read_scenario(tmp_path / "scenario.toml", {})
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    assert read(moved, text) == scenario


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nodes = 5", "nodes is an unknown key, expected one of kind, name, seed, strategies"),
        ("strategies = []", "strategies is [], expected a list of some of SPT-flooded, SPT"),
        ('strategies = ["mult"]', "strategies is 'mult', expected one of SPT-flooded"),
        ('strategies = ["MST", "MST"]', "expected each strategy once"),
        ('strategies = ["WITHIN"]', "topology.capacity is 0.0, expected a capacity above 0"),
        ("topology = 5", "topology is 5, expected a table, [topology]"),
        ('[topology]\nkind = "ring"', "topology.kind is 'ring', expected one of transit_stub"),
        ("[topology]\nbrokers = 1", "topology.brokers is 1, expected a whole number from 2"),
        ('[topology]\nkind = "file"', "topology.file is None, expected the path of a GML"),
        ('[topology]\nfile = "a.gml"', "expected none, with topology.kind 'transit_stub'"),
        ('[topology]\ncost = "delay"', "topology.cost is 'delay', expected none, without"),
        ("[topology]\nfile = 5", "topology.file is 5, expected the path of a file"),
        ("[topology]\ncapacity = -1", "topology.capacity is -1.0, expected a number of at least"),
        (WAXMAN_STUBS, "topology.stub_stub_links is 3, expected 0, as only a transit-stub graph"),
        ("[workload]\nneighbourhood = 0", "workload.neighbourhood is 0.0, expected a share above"),
        ("[workload]\ndocuments = 0", "workload.documents is 0, expected a whole number from 1"),
        ("[workload]\nlargest_size = nan", "workload.largest_size is nan, expected a number from"),
        ("[planning]\nsample_share = 2", "planning.sample_share is 2.0, expected a share above 0"),
        ("[planning]\nneighbours = -1", "planning.neighbours is -1, expected a whole number"),
        ('name = " "', "name is ' ', expected one line of text"),
    ],
)
def test_every_fault_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    assert sentence in str(fault_of(tmp_path, f'kind = "trees"\n{text}'))


def rome(**changes: object) -> dict[str, object]:
    """A workload of one document that Rome publishes, so changed."""
    return {"documents": [{"host": "Rome", "keywords": [], **changes}]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (rome(host="Paris"), "host of document 1 is 'Paris', expected one of the 3 brokers"),
        (
            {"subscriptions": [*SUBSCRIPTIONS, {"keywords": []}]},
            "broker of subscription 2 is None, expected one of the 3 brokers of the topology",
        ),
        (rome(size=-1), "size of document 1 is -1, expected a finite number above 0"),
        (rome(size="big"), "size of document 1 is 'big', expected a finite number above 0"),
        (rome(size=math.nan), "size of document 1 is nan, expected a finite number above 0"),
        ({"documents": [{"host": "Rome"}]}, "keywords of document 1 is None, expected a list"),
        (rome(keywords=[5]), "keyword of document 1 is 5, expected a text"),
        ({"documents": []}, "documents is [], expected a list with an entry at least"),
        ({"documents": ["news"]}, "document 1 is 'news', expected an object with host and keyw"),
        (rome(weight=2), "document 1, weight is an unknown key, expected one of host, keywords"),
        ({"events": []}, "events is an unknown key"),
    ],
)
def test_a_workload_that_cannot_be_is_told_in_a_sentence(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    scenario = of_files(tmp_path, **changes)  # type: ignore[arg-type]
    with pytest.raises(ScenarioError) as caught:
        check_trees(scenario)
    told = str(caught.value)
    assert told.startswith(f"{tmp_path / 'workload.json'}: {words}")
    assert "\n" not in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "the workload is No such file.*, expected a readable"),
        ("{", r"workload\.json: the workload is unreadable .* JSON$"),
        ("[]", "expected an object with subscriptions and documents"),
        ("\ufeff[]", "expected an object with subscriptions and documents"),
        ("[]".encode("utf-16"), "is not UTF-8 but UTF-16, expected JSON in UTF-8"),
    ],
)
def test_a_workload_without_json_is_named(
    tmp_path: Path, text: str | bytes | None, words: str
) -> None:
    path = tmp_path / "workload.json"
    if text is not None:
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ScenarioError, match=words):
        read_workload(path, barabasi_albert(5, seed=1))


def test_what_no_generator_makes_or_memory_holds_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = attrs.evolve(TreesScenario().topology, brokers=30)
    with pytest.raises(ScenarioError, match=r"^topology\.brokers is 30, expected a whole number"):
        check_trees(TreesScenario(topology=few))
    check_trees(TreesScenario())
    monkeypatch.setattr(trees_preview, "PAIR_BYTES", 1 << 40)
    with pytest.raises(ScenarioError, match=r"^topology\.brokers is 500, expected fewer: .* GiB"):
        check_trees(TreesScenario())


def test_the_reference_lists_every_key_with_its_default() -> None:
    assert_listed(REFERENCE, FORMAT.sections, *STRATEGIES, "strategies")


# Workloads that are taken from tables


BROKERS = 50


@pytest.fixture
def made(tmp_path: Path) -> KeywordTables:
    asked = WorkloadRequest(subscriptions=60, events=80, seed=3, settings={"brokers": BROKERS})
    workload = make_workload("keywords", asked)
    assert isinstance(workload, KeywordTables)
    tables = workload.tables()
    for table in tables:
        (tmp_path / table.name).mkdir()
        pq.write_table(table.table(), tmp_path / table.name / "part-00000.parquet")
    rows = {table.name: {"rows": table.units} for table in tables}
    told = {"kind": "keywords", "seed": 3, "settings": dict(asked.settings), "tables": rows}
    (tmp_path / "workload.json").write_text(json.dumps(told))
    return workload


def test_tables_are_the_workload_that_is_drawn_for_enough_brokers_and_of_the_right_kind(
    tmp_path: Path, made: KeywordTables
) -> None:
    assert attrs.asdict(read_tables(tmp_path, BROKERS)) == attrs.asdict(made.spec.workload())
    workload = made.spec.workload()
    last = max(*workload.places, *workload.hosts)
    assert read_tables(tmp_path, last + 1).places == workload.places
    with pytest.raises(ScenarioError, match=f"broker is {last}, expected at most {last - 1}"):
        read_tables(tmp_path, last)
    file = tmp_path / "workload.json"
    file.write_text(file.read_text().replace('"kind": "keywords"', '"kind": "quotes"'))
    with pytest.raises(ScenarioError, match="expected 'keywords', for dissemination trees"):
        read_tables(tmp_path, BROKERS)
    assert made.spec.brokers == BROKERS
