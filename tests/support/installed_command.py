"""The command `gossamer` as it is when installed, and simulations that cost nothing."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import gossamer.sim.studies.peers.study
from gossamer.command.main import main
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.studies.peers.measuring.records import RunRecord
from gossamer.sim.study.watching import Watch
from support.made_up_runs import made_up_run

ENTRY_POINTS = """\
[gossamer.commands]
advertise = gossamer.node.cli.broker:advertise_app
batch = gossamer.node.cli.broker:batch_app
node = gossamer.node.cli.starting:app
pub = gossamer.node.cli.node:pub_app
sim = gossamer.sim.commands.cli:app
spark = gossamer.spark.commands.cli:app
sub = gossamer.node.cli.node:sub_app
top = gossamer.node.cli.node:top_app
unsub = gossamer.node.cli.broker:unsub_app

[gossamer.node.commands]
replay = gossamer.replay.cli:replay

[gossamer.runners]
spark = gossamer.spark.sweep.runner:tasks_on_spark
"""
METADATA = "Metadata-Version: 2.1\nName: installed-for-tests\nVersion: 1.0\n"


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the subcommands as a distribution in ``folder`` would."""
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
    """Make what an installed distribution with the subcommands leaves in ``folder``."""
    info = folder / "installed_for_tests-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(ENTRY_POINTS)


class MadeUpSimulation:
    """Stands in for `simulate`: calls back, leaves a checkpoint if told to, and makes numbers up.

    Attributes:
        calls: the scenario, the text and whether to resume, of every call.
        leaves_checkpoint: whether a checkpoint is written.
        meanwhile: done after the first round, for what may happen during a run.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Scenario, str, bool]] = []
        self.leaves_checkpoint = False
        self.meanwhile: Callable[[], None] = lambda: None

    def __call__(
        self,
        scenario: Scenario,
        text: str = "",
        *,
        progress: Callable[[str, int, int], None],
        checkpoint: Path,
        resume: bool,
        threads: int,
        watch: Watch | None = None,
    ) -> RunRecord:
        assert threads >= 1
        del watch
        self.calls.append((scenario, text, resume))
        if self.leaves_checkpoint:
            checkpoint.mkdir(exist_ok=True)
            (checkpoint / "vinifera.checkpoint").write_bytes(b"state")
        self.meanwhile()
        for done in (1, 2):
            progress("vinifera", done, 2)
        return replace(made_up_run(scenario.seed), scenario_text=text)


def replace_simulation(monkeypatch: pytest.MonkeyPatch) -> MadeUpSimulation:
    """Put a `MadeUpSimulation` in the place of `simulate`."""
    made_up = MadeUpSimulation()
    monkeypatch.setattr(gossamer.sim.studies.peers.study, "simulate", made_up)
    return made_up


def content_of(folder: Path) -> dict[str, bytes | None]:
    """Everything below ``folder``: files with their bytes, folders with None."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@contextlib.contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    """Asserts that everything below ``folder`` is afterwards as it was."""
    before = content_of(folder)
    yield
    assert content_of(folder) == before
