"""The command `gossamer` as it is when installed, and simulations that cost nothing."""

from __future__ import annotations

import contextlib
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from attrs import define, field

import gossamer.sim.studies.peers.study
from gossamer.command.main import main
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.studies.peers.measuring.records import RunRecord
from gossamer.sim.study.contract import Execution
from support.checkout import ROOT
from support.made_up_runs import made_up_run

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ENTRY_POINTS = "\n".join(
    f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
    for group, points in PROJECT["entry-points"].items()
)
METADATA = "Metadata-Version: 2.1\nName: installed-for-tests\nVersion: 1.0\n"


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_distribution(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # which typer replaces


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What `gossamer` says when it ends with exit code 2 and one sentence; it runs here."""
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    return sentence(told.err)


def sentence(told: str) -> str:
    """The sentence that a command said, below which there is nothing but where it is wrong."""
    assert "Traceback" not in told
    line, *picture = told.splitlines()
    assert line.startswith("gossamer: ")
    assert all(one.startswith("  ") for one in picture), told
    return line


def write_distribution(folder: Path) -> None:
    info = folder / "installed_for_tests-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(ENTRY_POINTS)


@define(eq=False)
class MadeUpSimulation:
    """Stands in for `simulate`: calls back, leaves a checkpoint if told to, and makes numbers up.

    Of every call it notes the scenario, the text and whether to resume.
    """

    calls: list[tuple[Scenario, str, bool]] = field(factory=list)
    leaves_checkpoint: bool = False
    meanwhile: Callable[[], None] = lambda: None

    def __call__(
        self,
        scenario: Scenario,
        text: str,
        execution: Execution,
    ) -> RunRecord:
        assert execution.workers >= 1
        self.calls.append((scenario, text, execution.resume))
        if self.leaves_checkpoint:
            assert execution.checkpoint is not None
            execution.checkpoint.mkdir(exist_ok=True)
            (execution.checkpoint / "kindred.checkpoint").write_bytes(b"state")
        self.meanwhile()
        for done in (1, 2):
            assert execution.progress is not None
            execution.progress("kindred", done, 2)
        return replace(made_up_run(scenario.seed), scenario_text=text)


def replace_simulation(monkeypatch: pytest.MonkeyPatch) -> MadeUpSimulation:
    made_up = MadeUpSimulation()
    monkeypatch.setattr(gossamer.sim.studies.peers.study, "simulate", made_up)
    return made_up


def content_of(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@contextlib.contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    before = content_of(folder)
    yield
    assert content_of(folder) == before
