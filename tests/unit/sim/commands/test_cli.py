"""`gossamer sim`: what each subcommand prints, and where results go."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gossamer.protocol.peer.settings.presets import paper
from gossamer.protocol.peer.state.state import make_state
from gossamer.sim.bench import benchmarks
from gossamer.sim.results.held import file_name
from gossamer.sim.studies.peers.inputs.scenario import Scenario, System
from gossamer.sim.studies.peers.study import bytes_per_node
from gossamer.sim.study.scenarios import read_scenario
from support.installed_command import MadeUpSimulation, unchanged
from support.sim_commands import SCENARIO, printed_by, run_of, sim

Progress = Callable[[str, int, int], None]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def test_help_loads_neither_compiler_nor_numerics() -> None:
    heavy = ("numba", "numpy", "matplotlib", "pyarrow", "scipy", "gossamer.protocol")
    program = (
        "import sys; from gossamer.sim.commands.cli import app;"
        "app(['--help'], standalone_mode=False);"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    assert printed_by(program, "0").splitlines()[-1] == "[]"


@pytest.mark.usefixtures("work")
def test_every_subcommand_is_in_the_help(capsys: Capture) -> None:
    assert sim("--help") == 0
    shown = capsys.readouterr().out
    for name in ("run", "check", "replay", "figures", "bench", "compare"):
        assert re.search(rf"^\W*{name}\b", shown, re.MULTILINE), name


def test_a_run_leaves_a_table(work: Path, simulation: MadeUpSimulation, capsys: Capture) -> None:
    assert sim("run s.toml --no-plots") == 0
    shown = capsys.readouterr()
    assert "hit ratio" in shown.out
    assert shown.out.endswith(f"Results: {Path('results/small-5/summary.json')}\n")
    assert shown.err == "gossamer: kindred 1 of 2 rounds, after 0 s\n"
    assert simulation.calls == [(read_scenario("s.toml")[0], SCENARIO, False)]
    assert (work / "results/small-5/scenario.toml").read_text() == SCENARIO
    assert os.listdir("results") == ["small-5"]


@pytest.mark.usefixtures("simulation")
def test_a_scenario_that_says_nothing_is_said_to(work: Path, capsys: Capture) -> None:
    (work / "s.toml").write_text("# nothing = 1\n\n")
    assert sim("run s.toml --no-plots") == 0
    assert capsys.readouterr().err.startswith("gossamer: the scenario is empty: everything has its")


@pytest.mark.usefixtures("simulation")
def test_json_and_report_are_as_asked(work: Path, monkeypatch: Patch, capsys: Capture) -> None:
    monkeypatch.setattr("gossamer.sim.study.plot.FORMATS", ("svg",))
    assert sim("run s.toml --no-plots --json --out without") == 0
    assert capsys.readouterr().out == (work / "without/summary.json").read_text()
    assert sim("run s.toml --out with") == 0
    assert (work / "with/report.html").is_file()
    assert (work / "with/plots/hit_ratio.svg").is_file()
    assert not (work / "without/report.html").exists()


@pytest.mark.usefixtures("simulation")
def test_later_runs_take_the_next_free_folder_and_are_compared(work: Path, capsys: Capture) -> None:
    (work / "results/small-5-3.unfinished").mkdir(parents=True)
    for seed in (5, 5, 5, 1):
        assert sim(f"run s.toml --no-plots --seed {seed}") == 0
    made = {"small-5", "small-5-2", "small-5-4", "small-5-3.unfinished", "small-1"}
    assert set(os.listdir("results")) == made
    capsys.readouterr()
    assert sim("compare results/small-1 results/small-5") == 0
    shown = capsys.readouterr().out
    assert "The seeds differ: 1, 5." in shown
    assert "hit ratio" in shown


@pytest.mark.usefixtures("work")
def test_options_replace_values_of_the_scenario_that_is_saved(simulation: MadeUpSimulation) -> None:
    line = "run s.toml --no-plots --seed 9 --nodes 2 --rounds 8 --trace t.avt --set name=other"
    assert sim(f"{line} --set system.kindred.ring_links=2 --out o") == 0
    scenario = run_of(simulation)
    assert (scenario.name, scenario.seed, scenario.nodes, scenario.rounds) == ("other", 9, 2, 8)
    assert scenario.churn is not None
    assert scenario.churn.trace == Path("t.avt").resolve()
    assert scenario.systems[0].settings == {"ring_links": 2}
    assert read_scenario("o/scenario.toml")[0] == scenario


@pytest.mark.usefixtures("work")
def test_replay_runs_both_under_the_trace(simulation: MadeUpSimulation, capsys: Capture) -> None:
    assert sim("replay t.avt --no-plots --round-s 30 --seed 2 --set events.per_round=3") == 0
    scenario = run_of(simulation)
    assert scenario.systems == (System(name="kindred"), System(name="baseline"))
    assert (scenario.nodes, scenario.rounds, scenario.round_s) == (None, None, 30.0)
    assert (scenario.name, scenario.seed, scenario.events.per_round) == ("t", 2, 3.0)
    assert read_scenario("results/t-2/scenario.toml")[0] == scenario
    assert sim("replay t.avt --preset best") == 2
    assert "system.preset is 'best', expected one of paper" in capsys.readouterr().err


def test_check_only_shows_a_run(work: Path, simulation: MadeUpSimulation, capsys: Capture) -> None:
    (work / "c.toml").write_text(
        '[churn]\ntrace = "t.avt"\n[[system]]\nname = "deep"\npreset = "paper"\n'
        'ring_links = 3\n[[system]]\nname = "paper"\n'
    )
    with unchanged(work):
        assert sim("check c.toml") == 0
    shown = capsys.readouterr().out
    assert simulation.calls == []
    for row in (r"nodes\W+3\b", r"online\W+2 to 3\b", r"rounds\W+60 of 60 s, 1\.0 h", "about 0.4"):
        assert re.search(row, shown), row
    assert re.search(r"deep\W+paper\W+ring_links = 3", shown)
    assert re.search(r"paper\W+paper\W+nothing", shown)


def test_memory_is_estimated_from_the_arrays_that_are_allocated() -> None:
    settings = paper(100)
    sampled = make_state(settings, 11).links.nbytes - make_state(settings, 10).links.nbytes
    assert bytes_per_node(settings) > sampled > 0
    wider = paper(100, routing_table_entries=2 * settings.routing_table_entries)
    entry_words = make_state(settings, 1).table.shape[-1] + 1  # and its owner
    grown = settings.routing_table_entries * entry_words * 8
    assert bytes_per_node(wider) - bytes_per_node(settings) == grown


CLAIM = {"id": "V1", "claim": "less [overhead]", "measured": 0.5, "verdict": "holds", "reason": ""}
CLAIM["alternative"] = {**CLAIM, "reading": "[links]", "sentences": ["so"], "verdict": "differs"}


def test_figures_print_their_claims(work: Path, monkeypatch: Patch, capsys: Capture) -> None:
    asked = []

    def draw(out: Path, *, quick: bool, processes: int, progress: Progress) -> None:
        asked.append((out, quick, processes))
        progress("figures", 1, 2)
        out.mkdir(parents=True)
        (out / "claims.json").write_text(json.dumps([CLAIM]))

    monkeypatch.setattr("gossamer.sim.figures.FIGURES", {"vinifera": draw})
    assert sim("figures vinifera --quick --processes 3") == 0
    assert asked == [(Path("results/figures-vinifera"), True, 3)]
    shown = capsys.readouterr()
    assert re.search(r"V1\W+holds\W+less \[overhead\]", shown.out)
    assert re.search(r"differs\W+read otherwise: \[links\]", shown.out)
    assert "Measured, and why: results/figures-vinifera/claims.json" in shown.out
    assert shown.err == "gossamer: figures 1 of 2 points, after 0 s\n"
    with unchanged(work):
        assert sim("figures vinifera --out results/figures-vinifera") == 2
        assert sim("figures venifera") == 2
    assert "figures is 'venifera', expected one of vinifera" in capsys.readouterr().err


def test_bench_asks_for_names_and_sizes(work: Path, monkeypatch: Patch, capsys: Capture) -> None:
    def measure(names: list[str], sizes: list[int], *, quick: bool, progress: Progress) -> Any:
        assert quick
        progress("benchmarks", 0, 2)
        row = {"median_s": 0.25, "runs": 3, "bytes": 2048, "unit": "cycle"}
        return [{"name": name, "size": size, **row} for name in names for size in sizes]

    monkeypatch.setattr(benchmarks, "BENCHMARKS", {"cyclon": None, "tman": None})
    monkeypatch.setattr(benchmarks, "run_benchmarks", measure)
    assert sim("bench cyclon --quick --json --sizes 10,20") == 0
    told = capsys.readouterr()
    assert told.err == "gossamer: benchmarks 0 of 2 done, a first run compiles\n"
    rows = json.loads(told.out)
    assert [(row["name"], row["size"]) for row in rows] == [("cyclon", 10), ("cyclon", 20)]
    assert sim("bench --quick --sizes 1000") == 0
    assert re.search(r"tman\W+1,000\W+0\.25 s / cycle\W+3\W+2,048", capsys.readouterr().out)
    assert sim("bench --quick --sizes 10,1000 --out grown") == 0
    assert len(json.loads((work / "grown/bench.json").read_text())) == 4
    assert {*os.listdir("grown")} == {"bench.json", "growth.png", "growth.svg"}
    capsys.readouterr()
    for line, said in (
        ("bench --quick --out grown", "grown already"),
        ("bench --sizes 10,x", "--sizes is 'x', expected whole numbers"),
        ("bench chord", "bench is 'chord', expected one of cyclon, tman"),
    ):
        assert sim(line) == 2
        assert said in capsys.readouterr().err


def test_names_become_file_names() -> None:
    texts = ("a b/c", "../x", "ä-1.5", "...", "x" * 300)
    assert [*map(file_name, texts)] == ["a-b-c", "-x", "ä-1.5", "run", "x" * 100]


# Without a scenario: peers under the defaults, but for what is set


@pytest.mark.usefixtures("work")
def test_what_is_not_set_has_its_default() -> None:
    scenario, text = read_scenario(None, {"nodes": 1e4, "events.per_round": 2})
    Path("d.toml").write_text(text)
    assert scenario == read_scenario("d.toml")[0]
    assert isinstance(scenario, Scenario)
    assert (scenario.nodes, scenario.rounds) == (10_000, Scenario().rounds)
    assert read_scenario(None, {"kind": "scot"})[0].kind == "scot"


@pytest.mark.usefixtures("work")
def test_the_command_checks_the_defaults(capsys: Capture) -> None:
    assert sim("check --nodes 1e3") == 0
    assert "1,000" in capsys.readouterr().out
    for command in ("check", "run"):
        assert sim(f"{command} --nodes 1") == 2
        told = "gossamer: nodes is 1, expected a whole number from 2 to 10000000\n"
        assert capsys.readouterr().err == told
