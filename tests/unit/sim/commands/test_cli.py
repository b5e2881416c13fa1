"""`gossamer sim`: what each subcommand prints, where results go, how runs stop and go on."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from gossamer.command.main import main
from gossamer.protocol.peer.settings.config import paper
from gossamer.protocol.peer.state.state import make_state
from gossamer.sim.commands.progress import ProgressLines, progress_bars, stops_between_rounds
from gossamer.sim.results.names import file_name
from gossamer.sim.results.results import whole_folder
from gossamer.sim.studies.peers.inputs.scenario import Scenario, System
from gossamer.sim.studies.peers.preview import bytes_per_node
from gossamer.sim.study.scenarios import read_scenario
from support.installed_command import (
    MadeUpSimulation,
    content_of,
    install,
    replace_simulation,
    unchanged,
)
from support.other_processes import another_at_work

TRACE = "a 2 0 600 900 3600\nb 1 0 3600\nc 1 120.5 1800\n"
SCENARIO = 'name = "small"\nseed = 5\nnodes = 50\nrounds = 10\n[events]\nwarm_up_rounds = 5\n'


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder but for a scenario and a trace, with the command installed."""
    install(tmp_path / "site", monkeypatch)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "s.toml").write_text(SCENARIO)
    (folder / "t.avt").write_text(TRACE)
    return folder


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch) -> MadeUpSimulation:
    """The stand-in for `simulate`."""
    return replace_simulation(monkeypatch)


def sim(line: str) -> int:
    """The exit code of `gossamer sim` with the arguments in ``line``."""
    return main(["sim", *shlex.split(line)])


def run_of(simulation: MadeUpSimulation) -> Scenario:
    """The scenario of the only call of the stand-in."""
    assert len(simulation.calls) == 1
    return simulation.calls[0][0]


def test_help_loads_neither_compiler_nor_numerics() -> None:
    program = (
        "import sys; from gossamer.sim.commands.cli import app;"
        "app(['--help'], standalone_mode=False);"
        "heavy = ('numba', 'numpy', 'matplotlib', 'pyarrow', 'scipy', 'gossamer.protocol');"
        "print([name for name in heavy if name in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_subcommand_is_in_the_help(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert work.is_dir()
    assert sim("--help") == 0
    shown = capsys.readouterr().out
    for name in ("run", "check", "replay", "figures", "bench", "compare"):
        assert re.search(rf"^\W*{name}\b", shown, re.MULTILINE), name


def test_a_run_leaves_results_and_prints_a_table(
    work: Path, simulation: MadeUpSimulation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sim("run s.toml --no-plots") == 0
    shown = capsys.readouterr()
    assert "hit ratio" in shown.out
    assert shown.out.endswith(f"Results: {Path('results/small-5/summary.json')}\n")
    assert shown.err == "gossamer: vinifera 1 of 2 rounds, after 0 s\n"
    assert simulation.calls == [(read_scenario("s.toml")[0], SCENARIO, False)]
    assert (work / "results/small-5/scenario.toml").read_text() == SCENARIO
    assert os.listdir("results") == ["small-5"]


@pytest.mark.usefixtures("simulation")
def test_json_is_all_there_is_on_standard_output(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sim("run s.toml --no-plots --json --out o") == 0
    assert capsys.readouterr().out == (work / "o/summary.json").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("simulation")
def test_plots_and_report_are_written_unless_declined(work: Path) -> None:
    assert sim("run s.toml --out with") == 0
    assert sim("run s.toml --out without --no-plots") == 0
    assert (work / "with/report.html").is_file()
    assert not (work / "without/report.html").exists()


@pytest.mark.usefixtures("simulation")
def test_later_runs_take_the_next_free_folder(work: Path) -> None:
    (work / "results/small-5-3.unfinished").mkdir(parents=True)
    for _ in range(3):
        assert sim("run s.toml --no-plots") == 0
    made = {"small-5", "small-5-2", "small-5-4", "small-5-3.unfinished"}
    assert set(os.listdir("results")) == made


@pytest.mark.usefixtures("work")
def test_options_replace_values_of_the_scenario(simulation: MadeUpSimulation) -> None:
    line = "run s.toml --no-plots --seed 9 --nodes 2 --rounds 8 --trace t.avt --set name=other"
    assert sim(f"{line} --set system.vinifera.ring_links=2") == 0
    scenario = run_of(simulation)
    assert (scenario.name, scenario.seed, scenario.nodes, scenario.rounds) == ("other", 9, 2, 8)
    assert scenario.churn is not None
    assert scenario.churn.trace == Path("t.avt").resolve()
    assert scenario.systems[0].settings == {"ring_links": 2}


@pytest.mark.usefixtures("work")
def test_saved_scenario_of_an_overridden_run_gives_the_same_scenario(
    simulation: MadeUpSimulation,
) -> None:
    assert sim("run s.toml --no-plots --seed 9 --trace t.avt --out o --nodes 3 --rounds 9") == 0
    assert read_scenario("o/scenario.toml")[0] == run_of(simulation)


@pytest.mark.usefixtures("work")
def test_replay_runs_both_systems_under_all_of_the_trace(simulation: MadeUpSimulation) -> None:
    assert sim("replay t.avt --no-plots --round-s 30 --seed 2 --set events.per_round=3") == 0
    scenario = run_of(simulation)
    assert scenario.systems == (
        System(name="vinifera", preset="resilient"),
        System(name="baseline", preset="baseline"),
    )
    assert (scenario.nodes, scenario.rounds, scenario.round_s) == (None, None, 30.0)
    assert (scenario.name, scenario.seed, scenario.events.per_round) == ("t", 2, 3.0)
    assert read_scenario("results/t-2/scenario.toml")[0] == scenario


@pytest.mark.usefixtures("work", "simulation")
def test_replay_of_another_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim("replay t.avt --preset best") == 2
    assert "system.preset is 'best', expected one of paper" in capsys.readouterr().err


def test_check_shows_what_would_run_and_writes_nothing(
    work: Path, simulation: MadeUpSimulation, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "c.toml").write_text(
        '[churn]\ntrace = "t.avt"\n[[system]]\nname = "deep"\nring_links = 3\n'
        '[[system]]\nname = "plain"\n'
    )
    with unchanged(work):
        assert sim("check c.toml") == 0
    shown = capsys.readouterr().out
    assert simulation.calls == []
    for row in (r"nodes\W+3\b", r"online\W+2 to 3\b", r"rounds\W+60 of 60 s, 1\.0 h", "about 0.4"):
        assert re.search(row, shown), row
    assert re.search(r"deep\W+paper\W+ring_links = 3", shown)
    assert re.search(r"plain\W+paper\W+nothing", shown)


def test_memory_is_estimated_from_the_arrays_that_are_allocated() -> None:
    settings = paper(100)
    sampled = make_state(settings, 11).links.nbytes - make_state(settings, 10).links.nbytes
    assert bytes_per_node(settings) > sampled > 0
    wider = paper(100, routing_table_entries=2 * settings.routing_table_entries)
    entry_words = make_state(settings, 1).table.shape[-1] + 1  # and its owner
    grown = settings.routing_table_entries * entry_words * 8
    assert bytes_per_node(wider) - bytes_per_node(settings) == grown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_before_a_checkpoint_leaves_nothing(
    work: Path,
    simulation: MadeUpSimulation,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
    code: int,
) -> None:
    """Before, SIGTERM and SIGHUP ended the process at once, with its folder half-written."""
    simulation.meanwhile = lambda: signal.raise_signal(number)
    assert sim("run s.toml --out o") == code
    told = capsys.readouterr().err.splitlines()[-1]
    assert told == "gossamer: interrupted; there was no checkpoint yet, nothing is kept"
    assert set(content_of(work)) == {"s.toml", "t.avt"}


@pytest.mark.usefixtures("work")
def test_ctrl_c_tells_how_to_resume_and_that_finishes_the_run(
    simulation: MadeUpSimulation, capsys: pytest.CaptureFixture[str]
) -> None:
    simulation.leaves_checkpoint = True
    simulation.meanwhile = lambda: signal.raise_signal(signal.SIGINT)
    assert sim("run s.toml --seed 7 --no-plots") == 130
    told = capsys.readouterr().err.splitlines()[-1]
    assert "the checkpoint in results/small-7.unfinished is kept" in told
    command = re.search(r"go on with it by 'gossamer sim (.*)'$", told)
    assert command is not None
    assert os.listdir("results") == ["small-7.unfinished"]

    simulation.meanwhile = lambda: None
    assert sim(command[1] + " --no-plots") == 0
    (first, text, fresh), (second, kept, resumed) = simulation.calls
    assert (first, text) == (second, kept)
    assert (fresh, resumed) == (False, True)
    assert os.listdir("results") == ["small-7"]


def interrupt(simulation: MadeUpSimulation, line: str) -> None:
    """Leave an unfinished run behind."""
    simulation.leaves_checkpoint = True
    simulation.meanwhile = lambda: signal.raise_signal(signal.SIGINT)
    assert sim(line) == 130
    simulation.meanwhile = lambda: None


@pytest.mark.usefixtures("work")
def test_resume_finds_the_only_unfinished_run_by_itself(simulation: MadeUpSimulation) -> None:
    assert sim("run s.toml --no-plots") == 0
    interrupt(simulation, "run s.toml")
    assert sim("run s.toml --no-plots --resume") == 0
    assert set(os.listdir("results")) == {"small-5", "small-5-2"}


@pytest.mark.usefixtures("work")
def test_resume_after_a_kill_before_any_checkpoint_starts_over(
    simulation: MadeUpSimulation,
) -> None:
    interrupt(simulation, "run s.toml --out o")
    for file in Path("o.unfinished/checkpoint").iterdir():
        file.unlink()
    assert sim("run s.toml --no-plots --out o --resume") == 0
    assert os.path.isfile("o/summary.json")
    assert not os.path.exists("o.unfinished")


@pytest.mark.parametrize(
    ("prepare", "line", "words"),
    [
        ([], "--resume", "results/small-5.unfinished does not exist"),
        ([], "--resume --out o", "o.unfinished does not exist"),
        (["run s.toml"] * 2, "--resume", "expected --out with results/small-5, results/small-5-2"),
        (["run s.toml --out o"], "--resume --out o --nodes 60", "the scenario is another one"),
        (["run s.toml --out o"], "--out o", "o.unfinished holds an unfinished run; go on with it"),
    ],
)
def test_what_cannot_be_resumed_or_begun_says_why(
    work: Path,
    simulation: MadeUpSimulation,
    capsys: pytest.CaptureFixture[str],
    prepare: list[str],
    line: str,
    words: str,
) -> None:
    for earlier in prepare:
        interrupt(simulation, earlier)
    done = len(simulation.calls)
    capsys.readouterr()
    with unchanged(work):
        assert sim(f"run s.toml {line}") == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1
    assert len(simulation.calls) == done


def test_a_signal_is_told_by_commands_that_keep_nothing(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before, SIGTERM left the folder half-written, and Ctrl-C was not told."""

    def half_written(out: Path, **_: object) -> None:
        with whole_folder(out, replace=False):
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("gossamer.sim.figures.FIGURES", {"vinifera": half_written})
    with unchanged(work):
        assert sim("figures vinifera --out o") == 143
    assert capsys.readouterr().err == "gossamer: interrupted\n"


@pytest.mark.slow
@pytest.mark.parametrize("line", ["run s.toml --out o", "run s.toml --out o --resume"])
def test_a_run_beside_a_live_one_is_refused(
    work: Path, simulation: MadeUpSimulation, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    """Before, what was resumed beside the run that went on used its checkpoints as well."""
    interrupt(simulation, "run s.toml --out o")
    done = len(simulation.calls)
    capsys.readouterr()
    with another_at_work(work / "o") as process, unchanged(work):
        assert sim(line) == 2
    told = capsys.readouterr().err
    assert f"is being worked on by process {process.pid}, expected to be alone with it" in told
    assert told.count("\n") == 1
    assert len(simulation.calls) == done
    assert sim("run s.toml --out o --resume --no-plots") == 0
    assert sorted(path.name for path in work.iterdir()) == ["o", "s.toml", "t.avt"]


@pytest.mark.slow
def test_figures_and_benchmarks_beside_others_are_refused(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with another_at_work(work / "o") as process, unchanged(work):
        for line in ("figures vinifera --out o", "bench --out o"):
            assert sim(line) == 2
            assert f"is being worked on by process {process.pid}" in capsys.readouterr().err


def test_a_second_ctrl_c_interrupts_at_once() -> None:
    before = signal.getsignal(signal.SIGINT)
    reports: list[int] = []
    with stops_between_rounds(lambda _system, done, _total: reports.append(done)) as report:
        report("v", 1, 3)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            report("v", 2, 3)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert reports == [1, 2]
    assert signal.getsignal(signal.SIGINT) is before


class Terminal(io.StringIO):
    """A terminal that keeps what is drawn on it."""

    def isatty(self) -> bool:
        return True


def test_progress_is_bars_on_a_terminal_and_lines_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress_bars() as report:
            report("vinifera", 5, 10)
            report("baseline", 10, 10)
        assert ("5/10" in stream.getvalue()) == stream.isatty()
        line = "gossamer: vinifera 5 of 10 rounds, after 0 s\n"
        assert (stream.getvalue() == line) != stream.isatty()


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_lines_of_progress_come_by_tenths_or_minutes_and_never_fast() -> None:
    clock, lines = Clock(), []
    report = ProgressLines("rounds", clock=clock, write=lines.append)
    report("a", 0, 1000)
    report("b", 0, 1000)
    assert lines == ["gossamer: a 0 of 1,000 rounds, a first run compiles"]
    for done in range(1, 401):  # within five seconds of the first
        clock.now = done / 100
        report("a", done, 1000)
    assert len(lines) == 1
    clock.now = 5.0
    report("b", 1, 1000)
    assert lines[1:] == ["gossamer: a 400 of 1,000 rounds, b 1 of 1,000 rounds, after 5 s"]
    clock.now = 64.9
    report("b", 2, 1000)
    assert len(lines) == 2
    clock.now = 65.0
    report("b", 3, 1000)
    assert lines[-1].endswith("b 3 of 1,000 rounds, after 65 s")


@pytest.mark.parametrize(("round_s", "rounds"), [(0.001, 5000), (1.0, 400), (30.0, 1000)])
def test_a_run_of_any_length_writes_few_lines(round_s: float, rounds: int) -> None:
    clock, times = Clock(), []
    report = ProgressLines("rounds", clock=clock, write=lambda _line: times.append(clock.now))
    for done in range(rounds + 1):
        clock.now = done * round_s
        report("a", done, rounds)
    assert times[0] == 0.0
    assert all(later - sooner >= 5.0 for sooner, later in pairwise(times))
    assert min(10, clock.now // 6) <= len(times) <= 11 + clock.now / 60


@pytest.mark.usefixtures("work", "simulation")
def test_compare_sets_runs_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    for seed in (1, 2):
        assert sim(f"run s.toml --no-plots --seed {seed}") == 0
    capsys.readouterr()
    assert sim("compare results/small-1 results/small-2") == 0
    shown = capsys.readouterr().out
    assert "The seeds differ: 1, 2." in shown
    assert "hit ratio" in shown


CLAIM = {
    "id": "V1",
    "claim": "less [overhead]",
    "measured": 0.5,
    "verdict": "holds",
    "reason": "",
    "alternative": {
        "reading": "[links]",
        "sentences": ["as it says"],
        "measured": 0.7,
        "verdict": "differs",
        "reason": "",
    },
}


def test_figures_are_asked_by_name_and_their_claims_printed(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def draw(
        out: Path, *, quick: bool, processes: int, progress: Callable[[str, int, int], None]
    ) -> None:
        asked.append((out, quick, processes))
        progress("figures", 1, 2)
        out.mkdir(parents=True)
        (out / "claims.json").write_text(json.dumps([CLAIM]))

    module = types.SimpleNamespace(FIGURES={"vinifera": draw})
    monkeypatch.setitem(sys.modules, "gossamer.sim.figures", module)
    assert sim("figures vinifera --quick --processes 3") == 0
    assert asked == [(Path("results/figures-vinifera"), True, 3)]
    shown = capsys.readouterr()
    assert re.search(r"V1\W+less \[overhead\]\W+0\.5\W+holds", shown.out)
    assert re.search(r"read otherwise: \[links\]\. as it says\W+0\.7\W+differs", shown.out)
    assert shown.err == "gossamer: figures 1 of 2 points, after 0 s\n"
    with unchanged(work):
        assert sim("figures vinifera --out results/figures-vinifera") == 2
        assert sim("figures venifera") == 2
    assert "figures is 'venifera', expected one of vinifera" in capsys.readouterr().err


@pytest.mark.slow
def test_bench_asks_for_names_and_sizes(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert work.is_dir()

    def measure(
        names: list[str],
        sizes: list[int],
        *,
        quick: bool,
        progress: Callable[[str, int, int], None],
    ) -> list[dict[str, object]]:
        assert quick
        progress("benchmarks", 0, 2)
        row = {"median_s": 0.25, "runs": 3, "bytes": 2048, "unit": "cycle"}
        return [{"name": name, "size": size, **row} for name in names for size in sizes]

    module = types.SimpleNamespace(
        BENCHMARKS={"cyclon": None, "tman": None}, run_benchmarks=measure
    )
    monkeypatch.setitem(sys.modules, "gossamer.sim.bench.benchmarks", module)
    assert sim("bench cyclon --quick --json --sizes 10,20") == 0
    told = capsys.readouterr()
    assert told.err == "gossamer: benchmarks 0 of 2 done, a first run compiles\n"
    rows = json.loads(told.out)
    assert [(row["name"], row["size"]) for row in rows] == [("cyclon", 10), ("cyclon", 20)]
    assert sim("bench --quick --sizes 1000") == 0
    shown = capsys.readouterr().out
    assert re.search(r"tman\W+1,000\W+0\.25 s / cycle\W+3\W+2,048", shown)
    assert sim("bench --quick --sizes 10,1000 --out grown") == 0
    assert len(json.loads((work / "grown/bench.json").read_text())) == 4
    assert {path.name for path in (work / "grown").iterdir()} == {
        "bench.json",
        "growth.pdf",
        "growth.png",
        "growth.svg",
    }
    capsys.readouterr()
    assert sim("bench --quick --out grown") == 2
    assert "grown already" in capsys.readouterr().err
    assert sim("bench --sizes 10,x") == 2
    assert "--sizes is 'x', expected whole numbers" in capsys.readouterr().err
    assert sim("bench chord") == 2
    assert "bench is 'chord', expected one of cyclon, tman" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a b/c", "a-b-c"),
        ("../x", "-x"),
        ("ä-1.5", "ä-1.5"),
        ("...", "run"),
        ("x" * 300, "x" * 100),
    ],
)
def test_names_become_file_names(text: str, name: str) -> None:
    assert file_name(text) == name
