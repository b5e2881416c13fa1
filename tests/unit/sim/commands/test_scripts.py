"""`gossamer.sim` in a script: runs are those of the command line; they print and are compared."""

from __future__ import annotations

import io
import math
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
import pytest

import gossamer.sim as gs
from gossamer.sim.study.scenarios import study_of_kind
from support.checkout import ROOT
from support.made_up_results import contents
from support.sim_commands import sim

SMALL: Final = 'name = "small"\nseed = 5\nnodes = 30\nrounds = 12\n[events]\nwarm_up_rounds = 5\n'
RUMOR: Final = ROOT / "examples" / "cookbook" / "rumor.py"
# As scripts call it that nobody checks.
untyped: Any = gs.simulate
FEW: Final[dict[str, Any]] = {"nodes": 10, "rounds": 4, "events": {"warm_up_rounds": 2}}
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
Run = gs.Run[gs.PeersResult]


@pytest.fixture(scope="module")
def run() -> Run:
    return gs.simulate(
        name="small", seed=5, nodes=30, rounds=12, events=gs.Events(warm_up_rounds=5), snapshots=4
    )


@pytest.fixture(scope="module")
def saved(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run.save(tmp_path_factory.mktemp("saved") / "r", pictures=False)


@pytest.fixture
def rumor(monkeypatch: Patch) -> ModuleType:
    monkeypatch.syspath_prepend(str(RUMOR.parent))
    return import_module("rumor")


def test_a_saved_run_is_that_of_the_command_line(work: Path, run: Run, saved: Path) -> None:
    (work / "s.toml").write_text(SMALL)
    assert sim("run s.toml --no-plots --snapshots 4 --out there") == 0
    there, here = gs.load("there"), gs.load(saved)
    assert there.result_hash == here.result_hash == run.result_hash
    assert there.scenario == here.scenario == run.scenario
    ours, theirs = contents(saved), contents(work / "there")
    for name in theirs.keys() - {"summary.json", "scenario.toml"}:
        assert ours[name] == theirs[name], name
    # Its file gives the same run again, wherever it lies.
    assert gs.simulate(saved / "scenario.toml").result_hash == run.result_hash


@pytest.mark.usefixtures("work")
def test_a_file_a_scenario_and_keys_say_the_same(run: Run) -> None:
    Path("s.toml").write_text(SMALL.replace("seed = 5", "seed = 6"))
    by_file = gs.simulate("s.toml", seed=5, systems=["baseline"])
    scenario = gs.Scenario(name="small", seed=5, nodes=30, rounds=9, systems=["baseline"])
    by_object = gs.simulate(scenario, rounds=12, events={"warm_up_rounds": 5})
    assert by_file.result_hash == by_object.result_hash
    for one in (by_file, by_object):
        assert list(one) == ["baseline"]
        assert one["baseline"].measures == pytest.approx(run["baseline"].measures, nan_ok=True)


def test_systems_are_presets_objects_or_a_mapping() -> None:
    of_list = ["kindred", gs.System("wide", preset="kindred", ring_links=4)]
    named = {"kindred": "kindred", "wide": {"preset": "kindred", "ring_links": 4}}
    for systems in (of_list, named):
        found = untyped(systems=systems, **FEW)
        assert (list(found), found["wide"].settings["ring_links"]) == (["kindred", "wide"], 4)
        assert found["kindred"].settings["ring_links"] != 4


def test_churn_and_paths_are_taken_from_the_working_folder(work: Path) -> None:
    hashes = set()
    for churn in ("t.avt", Path("t.avt"), gs.Churn(trace="t.avt"), {"trace": "t.avt"}):
        found = untyped(churn=churn, systems=["baseline"])
        folder = found.save(work / f"{len(list(work.iterdir()))}", pictures=False)
        assert f'trace = "{work / "t.avt"}"' in (folder / "scenario.toml").read_text()
        hashes.add(found.result_hash)
    assert len(hashes) == 1


def test_none_leaves_out_what_a_scenario_says(work: Path) -> None:
    (work / "s.toml").write_text(SMALL + "[turnover]\nshare = 0.9\n")
    without = gs.simulate("s.toml", turnover=None, systems=["baseline"])
    scenario = gs.Scenario(name="small", seed=5, nodes=30, rounds=12, turnover=gs.Turnover())
    again = gs.simulate(scenario, turnover=None, systems=["baseline"], events={"warm_up_rounds": 5})
    assert without.result_hash == again.result_hash
    assert without.scenario["turnover"] is None


def test_measures_are_attributes_and_a_table(run: Run) -> None:
    kindred, summary = run["kindred"], run.summary["systems"]
    assert kindred.hit_ratio == summary["kindred"]["hit_ratio"]
    assert kindred.delivered == summary["kindred"]["delivered"] > 0
    nothing = summary["baseline"]["friend_utility_final"] is None
    assert math.isnan(run["baseline"].friend_utility_final) == nothing
    for one in study_of_kind("peers").measures:
        assert getattr(kindred, one.key) == pytest.approx(kindred.measures[one.key], nan_ok=True)
    assert list(run.measures.index) == ["kindred", "baseline"]
    assert run.measures.loc["baseline", "path_length_mean"] == run["baseline"].path_length_mean
    shown = str(kindred)
    assert all(name in shown for name in kindred.measures)
    assert set(kindred.measures) <= set(dir(kindred))


def test_measures_are_an_arrow_table_without_pandas(run: Run, monkeypatch: Patch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = run.measures
    assert table.column_names[:2] == ["system", "hit_ratio"]
    assert table["system"].to_pylist() == ["kindred", "baseline"]


def test_tables_are_arrow_tables_of_all_that_happened(run: Run, saved: Path) -> None:
    kindred, read = run["kindred"], gs.load(saved)["kindred"]
    assert len(kindred.deliveries) == kindred.delivered
    # Of a measure and a table of one name, the measure is the attribute.
    assert kindred.events == kindred.tables["events"].num_rows
    assert set(read.tables) == set(kindred.tables) >= {"events", "deliveries", "nodes", "cycles"}
    for name, table in kindred.tables.items():
        assert read.tables[name].to_pandas().equals(table.to_pandas()), name


def test_overlays_are_graphs_after_each_snapshot(run: Run, saved: Path) -> None:
    for one in (run["kindred"], gs.load(saved)["kindred"]):
        last = one.overlay()
        assert set(last.nodes) == set(range(30))
        assert last.nodes[3]["identifier"] == one.nodes["identifier"][3].as_py()
        links = one.tables["overlay_links"].to_pandas()
        assert set(last.edges) == set(zip(links.source, links.target, strict=True))
        assert "ring" in {kind for _, _, kind in last.edges(data="kind")}
        assert set(one.overlay(12).edges) == set(last.edges)
        assert set(one.overlay(4).edges) == set(one.overlay(-3).edges)
        with pytest.raises(gs.SimulationError, match=r"of round 5, but of 0, 4, 8, 12: simulate\("):
            one.overlay(5)


def test_an_overlay_that_was_not_kept_says_what_keeps_it(run: Run, tmp_path: Path) -> None:
    folder = run.save(tmp_path / "r", pictures=False)
    for file in (folder / "kindred").glob("snapshot_*/*"):
        file.unlink()
    with pytest.raises(gs.SimulationError, match=r"no overlay of kindred was kept: .*snapshots=N"):
        gs.load(folder)["kindred"].overlay()


@pytest.mark.usefixtures("work")
def test_a_run_prints_as_its_table(run: Run, capsys: Capture, monkeypatch: Patch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    Path("s.toml").write_text(SMALL)
    assert sim("run s.toml --no-plots") == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if "│" in line]
    assert len(rows) > 8
    assert ([line for line in str(run).splitlines() if "│" in line], repr(run)) == (rows, str(run))
    assert "\x1b" not in str(run)
    page = run._repr_html_()
    assert page.startswith("<pre")
    assert all(word in page for word in ("hit ratio", "kindred", "baseline"))


def test_plots_are_figures_of_a_run_and_of_a_folder(run: Run, saved: Path) -> None:
    read = gs.load(saved)
    assert read.plots == run.plots
    assert {"hit_ratio", "path_length", "traffic"} <= set(run.plots)
    for one in (run, read):
        bars: list[Any] = list(one.plot("path_length").axes[0].patches)
        # The share of each of two systems.
        assert sum(bar.get_height() for bar in bars) == pytest.approx(2)
    said = r"no plot of the run.*did you mean 'path_length'"
    with pytest.raises(gs.UnknownNameError, match=said):
        run.plot("path_lenght")


def test_runs_are_compared_by_name(run: Run, saved: Path) -> None:
    compared = gs.compare(run, saved, run, gs.simulate(name="other", systems=["kindred"], **FEW))
    assert compared.comparison.runs == ("small-5", str(saved), "small-5 (2)", "other-1")
    assert "The scenarios differ" in str(compared)
    assert "The results are identical" in str(gs.compare(run, saved))
    row = compared.measures.loc[("kindred", "path_length_mean")]
    assert row["small-5"] == row[str(saved)] == run["kindred"].path_length_mean
    with pytest.raises(gs.SimulationError, match="expected at least one"):
        gs.compare()


def test_a_run_is_saved_whole_where_nothing_is(run: Run, saved: Path, tmp_path: Path) -> None:
    with pytest.raises(gs.ResultsError, match="already holds results"):
        run.save(saved)
    again = gs.load(saved).save(tmp_path / "again")
    assert (again / "summary.json").read_bytes() == (saved / "summary.json").read_bytes()
    assert gs.load(again)["kindred"].deliveries.equals(run["kindred"].deliveries)
    with pytest.raises(gs.ResultsError, match="does not exist, expected a folder with results"):
        gs.load(tmp_path)


def test_what_a_run_keeps_beside_memory_is_removed_with_it() -> None:
    found = gs.simulate(systems=["baseline"], **FEW)
    kept = found._results.path
    assert kept.is_dir()
    del found
    assert not kept.exists()


def test_a_protocol_needs_no_file(rumor: ModuleType) -> None:
    ways, keys = (rumor.Rumor(k=1), f"{RUMOR}:Rumor"), {"nodes": 60, "rounds": 8}
    first, second = (untyped(one, **keys, settings={"k": 1}) for one in ways)
    assert (first.result_hash, first.kind) == (second.result_hash, "protocol")
    assert first["rumor"].settings["k"] == 1
    assert 0 < first["rumor"].residue < 1
    assert first["rumor"].rounds.num_rows == 9
    systems = {"eager": rumor.Rumor(k=3), "lazy": rumor.Rumor(k=1)}
    side_by_side = untyped(systems=systems, **keys)
    assert list(side_by_side) == ["eager", "lazy"]
    assert side_by_side["lazy"].residue == first["rumor"].residue
    with pytest.raises(gs.ScenarioError, match=r"Rumor\.kk is no setting.*did you mean 'k'\?"):
        rumor.Rumor(kk=2)


def test_classes_are_compared_record_by_record(rumor: ModuleType) -> None:
    nodes = import_module("rumor_nodes")
    assert gs.first_difference(gs.scenario_of(rumor.Rumor, nodes.Rumor, nodes=30, rounds=6)) is None
    other = gs.scenario_of(rumor.Rumor(k=1), nodes.Rumor(k=3), nodes=30, rounds=12)
    assert "in 1-Rumor" in str(gs.first_difference(other))


class Ping(gs.Message):
    """Goes to a random node."""


class Counting(gs.Node):
    """Counts in a dictionary, as rules cannot."""

    every: int = 1

    push = gs.Timer(rounds="every")

    def __init__(self) -> None:
        self.met: dict[int, int] = {}

    def on_push(self) -> None:
        self.send(self.draw_other(), Ping())

    def on_ping(self, sender: int, message: Ping) -> None:
        assert isinstance(message, Ping)
        self.met[sender] = self.met.get(sender, 0) + 1

    @gs.measure("met")
    def mean_met(self, run: Any) -> float:
        """Nodes that a node has met."""
        return float(np.mean([len(node.met) for node in run.nodes]))


def test_plain_classes_of_a_script_run_with_their_settings() -> None:
    counting: Any = Counting
    often, seldom = (gs.simulate(counting(every=n), nodes=20, rounds=12) for n in (1, 4))
    assert often["counting"].mean_met > seldom["counting"].mean_met > 0
    assert often.plots[0] == "mean_met"
    assert gs.simulate(Counting, nodes=20, rounds=12).result_hash == often.result_hash


def test_a_plot_of_a_measure_takes_no_other_plots_name(rumor: ModuleType) -> None:
    found = gs.simulate(rumor.Rumor, nodes=30, rounds=4)
    assert len(set(found.plots)) == len(found.plots)
    assert {"traffic", "measure_traffic"} <= set(found.plots)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: untyped(nodess=3), "nodess is an unknown key, did you mean 'nodes'?"),
        (lambda: gs.simulate(systems=["kindrd"]), "systems is 'kindrd', expected one of paper, "),
        (lambda: gs.simulate(systems="kindred"), "systems is 'kindred', expected systems or names"),
        (lambda: gs.System("a", preset="kindrd"), "resilient, kindred; did you mean 'kindred'?"),
        (lambda: gs.System("a", ring_link=4), "a.ring_link is no setting, did you mean 'ring_lin"),
        (lambda: gs.simulate(kind="broker"), "trees, protocol; did you mean 'brokers'?"),
        (lambda: gs.simulate(events={"per_rond": 1}), "did you mean 'events.per_round'?"),
        (lambda: gs.Subscriptions(kind="skewd"), "topics; did you mean 'skewed'?"),
        (lambda: gs.simulate(engine="cycl"), "synchronous; did you mean 'cycle'?"),
        (lambda: gs.simulate(snapshots=0), "snapshots is 0, expected a number of rounds from 1"),
        (lambda: gs.simulate(kind="trees", snapshots=1), "snapshots is 1, expected left out"),
        (lambda: untyped(3), "the scenario is 3, expected a scenario, the path of its"),
        (lambda: gs.simulate("none.toml"), "none.toml: the scenario file is missing"),
        (lambda: gs.simulate("none.py:Rumor"), "protocol is of no file"),
        (lambda: gs.sweep(nodes=10, seeds=[1], events={"x": 1}), "events.x is an unknown key"),
    ],
)
def test_a_wrong_argument_is_one_sentence(wrong: Callable[[], object], sentence: str) -> None:
    with pytest.raises(gs.ScenarioError) as caught:
        wrong()
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_that_a_result_has_not_is_one_sentence(run: Run) -> None:
    with pytest.raises(KeyError, match=r"'kindrd' is no system of the run.*did you mean 'kindred'"):
        _ = run["kindrd"]
    assert run.get("nobody") is None
    with pytest.raises(AttributeError, match="'hit_ration' is no measure or table of kindred, did"):
        _ = run["kindred"].hit_ration
    assert not hasattr(run["kindred"], "nothing_like_that")
    with pytest.raises(gs.UnknownNameError, match="'delivery' is no table of kindred"):
        _ = run["kindred"].tables["delivery"]


def test_a_sweep_refuses_a_protocol_of_the_script_itself(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Counting, "__module__", "__main__")
    with pytest.raises(gs.ScenarioError, match="'Counting', expected a class of another file"):
        gs.sweep(Counting, seeds=[1], nodes=10)


@pytest.mark.campaign
def test_a_sweep_takes_keys_and_protocols(rumor: ModuleType) -> None:
    frame = gs.sweep(seeds=range(1, 3), grid={"events.per_round": [1, 2]}, **FEW)
    one = gs.simulate(**(FEW | {"events": {"per_round": 2, "warm_up_rounds": 2}}), seed=2)
    chosen = frame[(frame.seed == 2) & (frame["events.per_round"] == 2)]
    assert set(chosen.result_hash) == {one.result_hash}
    assert len(gs.means_of(frame)) > 0
    (single,) = gs.sweep(rumor.Rumor(k=1), seeds=[4], nodes=30, rounds=5).result_hash
    assert single == gs.simulate(rumor.Rumor(k=1), seed=4, nodes=30, rounds=5).result_hash


def test_progress_is_shown_on_a_terminal_alone(monkeypatch: Patch, capsys: Capture) -> None:
    keys: Any = {**FEW, "systems": ["baseline"]}
    quiet = gs.simulate(**keys)
    assert capsys.readouterr().err == ""
    gs.simulate(**keys, progress=True)
    assert capsys.readouterr().err.startswith("gossamer: baseline 0 of 4 rounds")
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    assert gs.simulate(**keys).result_hash == quiet.result_hash
    assert terminal.getvalue() != ""


def test_the_example_of_the_reference_runs(work: Path, capsys: Capture) -> None:
    page = (ROOT / "docs" / "reference" / "simulator.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"(?ms)^```python\n(.*?)^```", page)
    exec(compile(code, "simulator.md", "exec"), {})
    shown = capsys.readouterr().out
    assert "hit ratio" in shown
    assert "The results are identical." in shown
    assert (work / "path_length.png").read_bytes().startswith(b"\x89PNG")
    assert (work / "results" / "report.html").is_file()
