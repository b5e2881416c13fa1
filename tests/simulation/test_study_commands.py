"""Scenarios of brokers, SCOTs and trees are checked; what cannot be is said in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation.test_broker_runs import SCENARIO as BROKERS
from simulation.test_scot_runs import SCENARIO as SCOT
from simulation.test_trees_runs import SCENARIO as TREES
from support.installed_command import unchanged
from support.sim_commands import sim

FROM_FILE = "run s.toml --set topology.kind=file --set topology.stub_stub_links=0"


@pytest.mark.parametrize(
    ("scenario", "key", "words"),
    [
        (BROKERS, 'coverings=["off"]', "off|controlled_55, 55 brokers|54|3 of 6 roots|table_ii"),
        (
            SCOT,
            'routings=["bid"]',
            "bid|18 brokers: 3 clusters of 6 regions|20, to quotes|400 at 100,000",
        ),
        (
            TREES,
            "topology.capacity=5",
            "SINGLE, MULT, OPT|transit_stub_60|60 brokers|5 each|20 % sampled",
        ),
    ],
    ids=["brokers", "scot", "trees"],
)
def test_check_shows_what_would_run(
    work: Path, capsys: pytest.CaptureFixture[str], scenario: str, key: str, words: str
) -> None:
    (work / "s.toml").write_text(scenario)
    with unchanged(work):
        assert sim(f"check s.toml --set '{key}'") == 0
    shown = capsys.readouterr().out
    for word in words.split("|"):
        assert word in shown


@pytest.mark.parametrize(
    ("scenario", "line", "words"),
    [
        (BROKERS, "run s.toml --set workload.roots=0", "workload.roots is 0, expected a whole"),
        (BROKERS, "check s.toml --set overlay.name=ring", "overlay.name is 'ring', expected one"),
        (BROKERS, "run s.toml --out s.toml", "s.toml is a file, expected a new folder"),
        (BROKERS, "run s.toml --out taken", "taken already holds results"),
        (BROKERS, "run s.toml --resume", "small-1.unfinished does not exist, expected an unf"),
        (SCOT, "run s.toml --set burst.per_minute=0", "burst.per_minute is 0, expected a whole"),
        (SCOT, "check s.toml --set 'burst.broker=\"B(a,3)\"'", "expected a number from 0 to 2"),
        (SCOT, "run s.toml --resume", "small-1.unfinished does not exist, expected an unf"),
        (TREES, "run s.toml --set topology.brokers=20", "topology.brokers is 20, expected a who"),
        (
            TREES,
            f"{FROM_FILE} --set topology.file=apart.gml",
            "apart.gml: the graph is in 2 components (a; b), expected brokers that all reach",
        ),
        (
            TREES,
            f"{FROM_FILE} --set topology.file=none.gml",
            "none.gml: the graph is No such file or directory, expected a readable file",
        ),
        (
            TREES,
            "check s.toml --set workload.file=w.json",
            "host of document 1 is 'Paris', expected one of the 60 brokers of the topology",
        ),
        *(
            (one, "run s.toml --nodes 50", "nodes is an unknown key, expected one of")
            for one in (BROKERS, SCOT, TREES)
        ),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(
    work: Path, capsys: pytest.CaptureFixture[str], scenario: str, line: str, words: str
) -> None:
    (work / "s.toml").write_text(scenario)
    (work / "taken").mkdir()
    (work / "taken" / "summary.json").write_text("{}")
    (work / "apart.gml").write_text(
        'graph [ node [ id 0 label "a" ] node [ id 1 label "b" ] edge [ source 0 target 0 ] ]'
    )
    (work / "w.json").write_text(
        '{"subscriptions": [{"broker": "T1-1", "keywords": ["a"]}],'
        ' "documents": [{"host": "Paris", "keywords": ["a"]}]}'
    )
    with unchanged(work):
        assert sim(line) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("gossamer: ")
    assert shown.err.count("\n") == 1
    assert words in shown.err
