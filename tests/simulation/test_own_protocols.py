"""Protocols of one's own as a study: as the documents say, interrupted, edited."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gossamer.command.main import main
from gossamer.sim.results.results import read_results
from support.checkout import ROOT
from support.draws import with_campaigns
from support.own_protocols import COOKBOOK, protocol_file, scenario_file
from support.sim_commands import sim

RUMOR = COOKBOOK / "rumor.toml"


def test_a_scenario_that_names_a_file_runs_as_any_other_and_is_compared_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Result folder, plots, report, the same hash from the scenario that is kept, comparison."""
    monkeypatch.chdir(tmp_path)
    assert sim("run", RUMOR, "--nodes", 300, "--out", "a", "--plots", "svg") == 0
    assert sim("run", tmp_path / "a" / "scenario.toml", "--out", "b", "--no-plots") == 0
    changed = ("--nodes", 300, "--set", "settings.k=1", "--no-plots")
    assert sim("run", RUMOR, *changed, "--out", "c") == 0
    first, again, other = (read_results(Path(name)).summary for name in "abc")
    assert first["result_hash"] == again["result_hash"] != other["result_hash"]
    assert other["systems"]["rumor"]["residue"] > first["systems"]["rumor"]["residue"]
    assert (tmp_path / "a" / "plots" / "residue.svg").is_file()
    assert "Share of the nodes that have not heard the rumor." in Path("a/report.html").read_text()
    table = read_results(Path("a")).table("rumor", "rounds")
    assert table["residue"][0] == pytest.approx(299 / 300)
    assert len(table["round"]) == 41
    capsys.readouterr()
    assert sim("compare", "a", "c") == 0
    shown = capsys.readouterr().out
    assert "residue" in shown
    assert "The scenarios differ" in shown
    # A result never names code that is loaded.
    first["scenario"]["systems"][0]["protocol"] = "gone.py:Gone"
    Path("a/summary.json").write_text(json.dumps(first))
    assert sim("compare", "a") == 0
    assert "residue" in capsys.readouterr().out


def test_compiled_interpreted_and_checked_runs_have_one_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = set()
    for number, debug in enumerate("01"):
        monkeypatch.setenv("GOSSAMER_DEBUG", debug)
        out = tmp_path / f"r{number}"
        assert sim("run", RUMOR, "--nodes", 40, "--rounds", 9, "--out", out, "--no-plots") == 0
        hashes.add(read_results(out).summary["result_hash"])
    assert len(hashes) == 1


ENDLESS = """
class Own(Node):
    tick = Timer(rounds=1)

    def on_tick(self):
        if self.round == 2:
            print("begun", flush=True)
            while True:
                pass
"""


def test_a_second_interrupt_ends_a_handler_that_does_not_end(tmp_path: Path) -> None:
    """The first one waits for the end of the round, which never comes."""
    file = scenario_file(tmp_path, protocol_file(tmp_path, "own_endless", ENDLESS))
    line = [sys.executable, "-m", "gossamer.command.main", "sim", "run", str(file), "--no-plots"]
    run = subprocess.Popen(
        [*line, "--out", str(tmp_path / "r")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Whoever runs in the background of a shell ignores interrupts, and what it starts as well.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    hung = threading.Timer(600, run.kill)
    hung.start()
    try:
        assert run.stdout is not None
        assert run.stderr is not None
        assert run.stdout.readline() == "begun\n"
        run.send_signal(signal.SIGINT)
        for said in run.stderr:
            if "stopping after this round" in said:
                break
        run.send_signal(signal.SIGINT)
        _, said = run.communicate()
        assert run.returncode == 130
        assert "interrupted; there was no checkpoint yet, nothing is kept" in said
        assert not list(tmp_path.glob("r*"))
    finally:
        hung.cancel()
        run.kill()
        run.communicate()


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands(page: str) -> list[list[str]]:
    text = (ROOT / "docs" / page).read_text()
    return [line.split() for line in re.findall(r"^    gossamer (sim .*)$", text, re.MULTILINE)]


def test_the_tutorial_can_be_typed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gossamer.sim.study.plot.FORMATS", ("svg",))
    rules, nodes = blocks("first-protocol.md", "python")
    (scenario,) = blocks("first-protocol.md", "toml")
    Path("gossip.py").write_text(rules)
    Path("gossip.toml").write_text(scenario)
    Path("gossip_nodes.py").write_text(nodes)
    for line in commands("first-protocol.md"):
        assert main(line) == 0, line
    names = ("spread", "lossless", "plain")
    spread, lossless, plain = (read_results(Path(one)).summary["systems"] for one in names)
    assert round(spread["one"]["residue"], 3) == 0.477
    assert spread["one"]["messages"] == plain["one"]["messages"] == 7_379
    assert spread["two"]["residue"] == 0
    assert round(lossless["one"]["residue"], 2) == 0.25
    assert plain["one"]["residue"] == pytest.approx(spread["one"]["residue"])
    assert Path("spread/plots/residue.svg").is_file()
    noted = "self.knows[{}] = True\n\n    @measure"
    wrong = rules.replace(noted.format("me"), noted.format("sender"))
    Path("gossip_wrong.py").write_text(wrong)
    Path("wrong.toml").write_text(scenario.replace("gossip.py", "gossip_wrong.py"))
    capsys.readouterr()
    assert main(["sim", "check", "wrong.toml"]) == 2
    assert "line 25), row 8, tick 169 of cycle 0, taking news of node 0" in capsys.readouterr().err


@pytest.mark.usefixtures("interpreted")
def test_the_stack_of_the_page_about_stacking_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = next(block for block in blocks("stacking.md", "python") if "class Walk" in block)
    Path("walk_of_the_page.py").write_text(whole)
    Path("walk.toml").write_text('protocol = "walk_of_the_page.py:Walk"\nnodes = 60\nrounds = 4\n')
    assert main(["sim", "run", "walk.toml", "--out", "r", "--no-plots"]) == 0
    assert read_results(Path("r")).summary["systems"]["walk"]["by_message"]["token"] > 100


# A script, run, edited and run again, in processes of their own


ENGINES = {
    "cycle": "from gossamer.sim.engine.cycle_engine import CycleEngine as Engine",
    "event": "from gossamer.sim.engine.event_engine import EventEngine as Engine",
}
SCRIPT = """
import sys

import numpy as np

from gossamer.protocol.kernel.records import USER
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.sim.engine.cycle_engine import make_network
{engine}


class Cells(Struct):
    a: np.ndarray


def run(step):
    state = Cells(a=np.zeros(3, np.int64))
    engine = Engine(state, step, (USER,), make_network(3), 1)
    engine.run_cycle()
    print(*state.a)


GIVEN = int(sys.argv[1])


@rule
def step(s, p, now, words, at, out):
    s.a[p] = {value}


def make(value):
    @rule
    def step(s, p, now, words, at, out):
        s.a[p] = value
    return step


run(step)
for value in {made}:
    run(make(value))
"""


def run_script(script: Path, given: int, cache: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, script, str(given)],
        env={**os.environ, "GOSSAMER_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# Each a folder, the value in its script, the given one, and what is found.
FEW = [("one", "1", 0, 1), ("one", "GIVEN", 4, 4)]
MANY = [*FEW[:1], ("one", "2", 0, 2), ("other", "3", 0, 3)]
MANY += [("other", "GIVEN", given, given) for given in (4, 5)]


@with_campaigns(
    "engine, made, versions",
    [("cycle", (7, 8), FEW)],
    [(one, (7, 8, 9), MANY) for one in ENGINES],
)
def test_each_run_is_of_the_script_as_it_stands(
    engine: str, made: tuple[int, ...], versions: list[tuple[str, str, int, int]], tmp_path: Path
) -> None:
    """In a folder a script has a value, perhaps the given one; then what it gives."""
    for folder, value, given, found in versions:
        script = tmp_path / folder / "script.py"
        script.parent.mkdir(exist_ok=True)
        script.write_text(SCRIPT.format(engine=ENGINES[engine], value=value, made=made))
        lines = run_script(script, given, tmp_path / "cache")
        assert lines == [" ".join(3 * [str(number)]) for number in (found, *made)]
