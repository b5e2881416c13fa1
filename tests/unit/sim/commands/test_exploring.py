"""`gossamer sim explore` as it is typed: what it prints, writes and returns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.commands import exploring
from support.own_protocols import PROTOCOLS
from support.sim_commands import sim

Capture = pytest.CaptureFixture[str]
FILE = f"{PROTOCOLS}/explored.py"


@pytest.fixture(autouse=True)
def interpreted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with use_compiled(False):
        yield


def test_what_holds_is_said_and_counted(capsys: Capture) -> None:
    code = sim("explore", f"{FILE}:Clock", "--nodes", 1, "--rounds", 2, "--in-flight", 1)
    assert code == 0
    told = capsys.readouterr().out
    assert told.startswith("never_ahead holds in all states (")
    summary = json.loads(Path("results/explore-clock/exploration.json").read_text())
    assert summary["exhausted"]
    assert summary["story"] is None
    assert f"{summary['states']:,} states" in told
    assert not list(Path("results").glob("*.unfinished"))


def test_a_violation_is_a_story_that_can_be_taken_again(capsys: Capture) -> None:
    line = ("explore", f"{FILE}:Alarm", "--nodes", 2, "--out", "found", "--plots", "svg")
    assert sim(*line) == 1
    told = capsys.readouterr().out
    assert "1  deliver Stop from 0 to 1" in told
    assert "Story: found/story.json" in told
    assert {path.name for path in Path("found").iterdir()} == {
        *("exploration.json", "story.json", "story.svg")
    }
    assert sim("explore", "--replay", "found/story.json", "--debug") == 1
    assert "2  time for Ring of 0; rings 0 -> 1" in capsys.readouterr().out


WRONG = {
    "": "expected a file and a class in it, such as rumor.py:Rumor",
    f"{FILE}:Nothing": "the class of the protocol is 'Nothing'",
    f"{FILE}:Watch --invariant nothing": "invariant is 'nothing'",
    f"{FILE}:Watch --set settings.k=2": "settings.k",
    "--replay nowhere.json": "nowhere.json does not exist, expected a story.json",
    f"{FILE}:Clock --resume --out gone": "gone.unfinished does not exist",
}


@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_is_one_sentence(line: str, capsys: Capture) -> None:
    assert sim("explore", *line.split()) == 2
    assert WRONG[line] in capsys.readouterr().err.splitlines()[-1]
    assert not Path("results").exists()


def test_an_interrupted_one_goes_on(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    line = ("explore", f"{FILE}:Clock", "--nodes", 1, "--rounds", 2, "--in-flight", 1)
    assert sim(*line, "--out", "whole") == 0

    class Interrupting:
        calls = 0

        def __enter__(self) -> Interrupting:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def __call__(self, *_: int) -> None:
            self.calls += 1
            if self.calls == 3:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(exploring, "progress_of_levels", Interrupting)
        assert sim(*line, "--out", "half") == 130
    assert "go on with the same command and '--out half --resume'" in capsys.readouterr().err
    assert sim(*line, "--out", "half") == 2
    assert sim(*line, "--out", "half", "--resume") == 0
    whole, half = (Path(name, "exploration.json").read_text() for name in ("whole", "half"))
    assert whole == half
