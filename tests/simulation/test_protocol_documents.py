"""What the documents about protocols of one's own say to type works, and comes to what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gossamer.command.main import main
from gossamer.sim.results.results import read_results
from support.checkout import ROOT


def blocks(page: str, language: str) -> list[str]:
    """The code of a page in a language."""
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands(page: str) -> list[list[str]]:
    """The commands of a page, in their order."""
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
    spread, lossless, plain = (
        read_results(Path(name)).summary["systems"] for name in ("spread", "lossless", "plain")
    )
    assert round(spread["one"]["residue"], 3) == 0.477
    assert spread["one"]["messages"] == 7_379
    assert spread["two"]["residue"] == 0
    assert round(lossless["one"]["residue"], 2) == 0.25
    assert plain["one"]["residue"] == pytest.approx(spread["one"]["residue"])
    assert plain["one"]["messages"] == spread["one"]["messages"]
    assert Path("spread/plots/residue.svg").is_file()
    wrong = rules.replace(
        "self.knows[me] = True\n\n    @measure", "self.knows[sender] = True\n\n    @measure"
    )
    Path("gossip_wrong.py").write_text(wrong)
    Path("wrong.toml").write_text(scenario.replace("gossip.py", "gossip_wrong.py"))
    capsys.readouterr()
    assert main(["sim", "check", "wrong.toml"]) == 2
    assert "line 25), row 8, tick 169 of cycle 0, taking news of node 0" in capsys.readouterr().err


def test_the_stack_of_the_page_about_stacking_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = next(block for block in blocks("stacking.md", "python") if "class Walk" in block)
    Path("walk_of_the_page.py").write_text(whole)
    Path("walk.toml").write_text('protocol = "walk_of_the_page.py:Walk"\nnodes = 60\nrounds = 4\n')
    assert main(["sim", "run", "walk.toml", "--out", "r", "--no-plots"]) == 0
    assert read_results(Path("r")).summary["systems"]["walk"]["by_message"]["token"] > 100
