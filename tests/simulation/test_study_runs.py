"""Brokers, SCOTs and trees by command: checked, run, one hash a seed, finished systems kept."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow.parquet as pq
import pytest

import gossamer.sim.studies.dissemination.study as trees
import gossamer.sim.studies.scot.study as scot
import gossamer.sim.studies.tree_brokers.study as brokers
from gossamer.sim.errors import SimulationError
from gossamer.sim.results.results import result_hash, summarise, write_results
from gossamer.sim.studies.dissemination.scenario import DEFAULT_STRATEGIES
from gossamer.sim.studies.side_by_side import SideBySideStudy
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.plot import FORMATS, PlotOptions, plots_as
from simulation import test_broker_runs, test_scot_runs, test_trees_runs
from support.draws import larger, with_campaigns
from support.installed_command import unchanged
from support.sim_commands import printed_by, sim

BROKERS, SCOT = test_broker_runs.SCENARIO, test_scot_runs.SCENARIO
TREES = test_trees_runs.SCENARIO
# They share what `whole` gives.
pytestmark = pytest.mark.xdist_group("study runs")


@attrs.frozen(kw_only=True)
class Kind:
    """A study.

    Attributes:
        scenario: a small one, of a seed and of some systems.
        names: of three systems.
        study: of its scenarios.
        module, run: where the function is that runs a system, and its name there.
        name_of: the system that this function is called for, by its first argument.
        unit: what progress calls systems.
        options, set: with which a run is begun, and the section's key that it changes.
        leaves: the file that is named in the end, with results of ``systems``.
        shows: words of the table of a run and of a comparison.
        plots: of three systems, but for those that there may be.
        page: what the report says.
    """

    scenario: Callable[..., Any]
    study: SideBySideStudy[Any, Any]
    names: tuple[str, ...]
    module: Any
    run: str
    name_of: Callable[[Any], str]
    unit: str
    text: str
    options: str
    set: tuple[str, str, int]
    leaves: str
    systems: tuple[str, ...]
    shows: tuple[str, str]
    plots: tuple[str, ...]
    page: tuple[str, ...]


KINDS: Final = {
    "brokers": Kind(
        scenario=test_broker_runs.scenario,
        study=brokers.BROKERS,
        names=("lazy", "selective", "incremental"),
        module=brokers,
        run="run_burst",
        name_of=lambda burst: str(burst.settings.covering),
        unit="coverings",
        text=BROKERS,
        options="--no-plots",
        set=("workload", "degree", 4),
        leaves="summary.json",
        systems=("active", "selective"),
        shows=("longest core queue", "triggered messages"),
        plots=("delay", "queues", "triggered", "tables"),
        page=("49 brokers, 104 subscriptions", "Subscriptions kept for nobody", "incremental"),
    ),
    "scot": Kind(
        scenario=test_scot_runs.scenario,
        study=scot.SCOT,
        names=("bid", "static", "dynamic"),
        module=scot,
        run="run_burst",
        name_of=lambda burst: str(burst.settings.routing),
        unit="routings",
        text=SCOT,
        options="--plots svg",
        set=("burst", "notifications", 300),
        leaves="report.html",
        systems=("static", "dynamic"),
        shows=("longest output queue", "longest output queue"),
        plots=("overlay", "delay", "queues", "messages"),
        page=("18 brokers in 3 clusters, 20 subscribers",),
    ),
    "trees": Kind(
        scenario=test_trees_runs.scenario,
        study=trees.TREES,
        names=("SPT", "MULT", "OPT"),
        module=trees,
        run="run_strategy",
        name_of=str,
        unit="strategies",
        text=TREES.replace('strategies = ["SINGLE", "MULT", "OPT"]\n', ""),
        options="--no-plots",
        set=("workload", "documents", 150),
        leaves="summary.json",
        systems=DEFAULT_STRATEGIES,
        shows=("SemCast-filtered", "cost of all documents"),
        plots=("cost", "mergers", "states", "trees"),
        page=("Links beyond their capacity",),
    ),
}
# Systems one after the other.
ALONE: Final = Execution(workers=1)
EVERY_KIND: Final = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@cache
def whole(kind: Kind) -> Any:
    return kind.study.run(kind.scenario(3, kind.names), "", ALONE)


@with_campaigns("study", ["scot"], ["brokers", "trees"])
def test_processes_change_nothing_and_another_seed_does(study: str) -> None:
    kind = KINDS[study]
    names = kind.names[1:]
    apart = kind.study.run(kind.scenario(3, names), "", Execution())
    same = dataclasses.replace(
        whole(kind), systems={name: whole(kind).systems[name] for name in names}
    )
    assert result_hash(apart) == result_hash(same)
    other = kind.study.run(kind.scenario(4, names[:1]), "", ALONE)
    assert summarise(other)["systems"][names[0]] != summarise(same)["systems"][names[0]]


@EVERY_KIND
def test_the_folder_holds_tables_plots_and_a_page_that_needs_no_network(
    kind: Kind, tmp_path: Path
) -> None:
    record, formats, out = whole(kind), larger(("svg",), FORMATS), tmp_path / "out"
    with plots_as(PlotOptions(formats)):
        summary = write_results(record, out)
    tables = {
        f"{name}/{table}.parquet": len(next(iter(columns.values())))
        for name, system in record.systems.items()
        for table, columns in system.tables()
    }
    assert {file: pq.read_metadata(out / file).num_rows for file in tables} == tables
    names = {path.relative_to(out).as_posix() for path in out.rglob("*.*")}
    assert names - {f"plots/false_positives.{one}" for one in formats} == {
        *tables,
        *(f"plots/{plot}.{one}" for plot in kind.plots for one in formats),
        *("summary.json", "scenario.toml", "report.html"),
    }
    assert json.loads((out / "summary.json").read_text()) == summary
    page = (out / "report.html").read_text()
    assert not re.search("https?:", page.replace("http://www.w3.org", ""))
    for words in kind.page:
        assert words in page


def hashes(*, all_systems: bool) -> list[str]:
    """Of a run of each study, with three or all of its systems."""
    return [
        result_hash(kind.study.run(kind.scenario(3), "", ALONE) if all_systems else whole(kind))
        for kind in KINDS.values()
    ]


@with_campaigns("hash_seed, all_systems", [("1", False)], [("0", True)])
def test_the_hash_does_not_depend_on_the_hash_seed(hash_seed: str, all_systems: bool) -> None:
    program = (
        f"from simulation.test_study_runs import hashes;print(*hashes(all_systems={all_systems}))"
    )
    assert printed_by(program, hash_seed).split() == hashes(all_systems=all_systems)


@EVERY_KIND
def test_finished_systems_are_kept_and_not_run_again(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = kind.names
    run, ran = getattr(kind.module, kind.run), []

    def stumbles_once(asked: Any, *others: Any, **named: Any) -> Any:
        ran.append(kind.name_of(asked))
        if ran == [first, second]:
            raise SimulationError("somebody stumbled over the cable")
        return run(asked, *others, **named)

    def simulate(seed: int, **how: Any) -> Any:
        made = kind.scenario(seed, kind.names)
        return kind.study.run(made, "", attrs.evolve(ALONE, checkpoint=tmp_path, **how))

    monkeypatch.setattr(kind.module, kind.run, stumbles_once)
    with pytest.raises(SimulationError, match=rf"^{second}: somebody stumbled"):
        simulate(3)
    assert [path.name for path in tmp_path.iterdir()] == [f"{first}.checkpoint"]
    told: list[tuple[str, int, int]] = []
    record = simulate(3, resume=True, progress=lambda *news: told.append(news))
    assert ran == [first, second, second, third]
    assert told == [(kind.unit, done, 3) for done in (1, 2, 3)]
    assert result_hash(record) == result_hash(whole(kind))
    expected = r"\.checkpoint: checkpoint is 'small', expected one of the same scenario and seed"
    with pytest.raises(SimulationError, match=expected):
        simulate(4, resume=True)


@EVERY_KIND
def test_a_run_prints_a_table_and_leaves_results(
    kind: Kind, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "s.toml").write_text(kind.text)
    section, key, value = kind.set
    assert sim(f"run s.toml {kind.options} --threads 1 --set {section}.{key}={value}") == 0
    shown = capsys.readouterr()
    assert kind.shows[0] in shown.out
    assert shown.out.endswith(f"Results: {Path('results/small-1') / kind.leaves}\n")
    assert shown.err.startswith(f"gossamer: {kind.unit} 0 of {len(kind.systems)} done")
    assert all(line.startswith(f"gossamer: {kind.unit} ") for line in shown.err.splitlines())
    summary = json.loads((work / "results/small-1/summary.json").read_text())
    assert summary["scenario"][section][key] == value
    assert tuple(summary["systems"]) == kind.systems
    assert os.listdir("results") == ["small-1"]
    assert sim("run s.toml --no-plots --threads 1 --seed 2 --json --out other") == 0
    assert capsys.readouterr().out == (work / "other/summary.json").read_text()
    assert sim("compare results/small-1 other") == 0
    assert kind.shows[1] in capsys.readouterr().out


SCOT_SHOWN = "18 brokers: 3 clusters of 6 regions"
TREES_SHOWN = "SINGLE, MULT, OPT|transit_stub_60"


@pytest.mark.parametrize(
    ("scenario", "key", "words"),
    [
        (BROKERS, 'coverings=["off"]', "off|controlled_55, 55 brokers|54|3 of 6 roots|table_ii"),
        (SCOT, 'routings=["bid"]', f"bid|{SCOT_SHOWN}|20, to quotes|400 at 100,000"),
        (TREES, "topology.capacity=5", f"{TREES_SHOWN}|60 brokers|5 each|20 % sampled"),
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
        (SCOT, "check s.toml --set burst.per_minute=0", "burst.per_minute is 0, expected a whole"),
        (SCOT, "run s.toml --resume", "small-1.unfinished does not exist, expected an unf"),
        (TREES, "run s.toml --set topology.brokers=20", "topology.brokers is 20, expected a who"),
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
    with unchanged(work):
        assert sim(line) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("gossamer: ")
    assert shown.err.count("\n") == 1
    assert words in shown.err
