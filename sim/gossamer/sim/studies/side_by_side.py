"""Studies whose systems run side by side, a process each, and share nothing; see `study.contract`.

A system that is finished is kept at once, so that an interrupted run goes on with the others.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import attrs
import psutil
from rich.console import Group, RenderableType

from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.checkpointed_runs import Named, run_systems
from gossamer.sim.study.contract import Execution, S, Study, size_table
from gossamer.sim.study.records import RunRecord, SystemRecord, versions
from gossamer.sim.study.scenarios import check


class FinishedSystem(SystemRecord, Named, Protocol):
    """What one system of a run leaves in memory, with its name."""

    @property
    def peak_rss_bytes(self) -> int:
        """Largest resident memory of its process."""


One = TypeVar("One", bound=FinishedSystem)


@dataclass(frozen=True, kw_only=True)
class SideBySideRun(RunRecord[One]):
    """A finished run.

    Attributes:
        common: what all systems had in common, where plots show it.
    """

    common: Any = None


@attrs.frozen
class _System(Generic[S, One]):
    """One system of a scenario: a task of `run_tasks`."""

    study: SideBySideStudy[S, One]
    scenario: S
    label: str

    def run(self) -> One:
        return self.study.run_one(self.scenario, self.label)


class SideBySideStudy(Study[S, SideBySideRun[One]], Generic[S, One]):
    """A study of this kind.

    Attributes:
        listed: the field of a scenario that names its systems; also what progress calls them.
    """

    listed: ClassVar[str]

    @abstractmethod
    def run_one(self, scenario: S, system: str) -> One:
        """Run one system; raises `SimulationError`."""

    @abstractmethod
    def sizes(self, scenario: S) -> Iterable[tuple[str, str]]:
        """What would run, by label; checked as by `check`, with the same errors."""

    def common(self, scenario: S) -> Any:
        """What all systems have in common, see `SideBySideRun`; raises `ScenarioError`."""
        del scenario

    def preview(self, scenario: S) -> RenderableType:
        return Group(size_table(scenario.name, self.sizes(scenario)))

    def run(self, scenario: S, text: str, execution: Execution) -> SideBySideRun[One]:
        started = time.monotonic()
        common = self.common(scenario)
        tasks = {name: _System(self, scenario, name) for name in getattr(scenario, self.listed)}
        systems = run_systems(tasks, scenario, execution, name=self.listed)
        values: Any = scenario
        return SideBySideRun(
            scenario={"kind": scenario.kind, **attrs.asdict(values)},
            scenario_text=text,
            seed=scenario.seed,
            versions=versions(),
            wall_s=time.monotonic() - started,
            peak_rss_bytes=max(one.peak_rss_bytes for one in systems.values()),
            systems=systems,
            common=common,
        )


def effort(summary: Mapping[str, Any]) -> str:
    """The end of a report's facts: the seed, and what the run took."""
    memory = summary["peak_rss_bytes"] / 2**20
    return (
        f"seed {summary['seed']}; "
        f"{summary['wall_s']:.1f} s of computing, at most {memory:,.0f} MiB of memory"
    )


def check_memory(needed: int, field: str, value: object, words: str) -> int:
    """Refuse a run that needs more bytes than this machine has; returns them.

    Args:
        needed: bytes.
        field, value: what there is too much of.
        words: what is expected, with ``{}`` where the memory needed stands.

    Raises:
        ScenarioError: there is too little memory.
    """
    present = psutil.virtual_memory().total
    if needed > present:
        expected = f"{words.format(_gib(needed))}, and this machine has {_gib(present)}"
        raise ScenarioError(None, field, value, expected)
    return needed


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def check_names(scenario: Any, field: str, known: Collection[str], each: str) -> None:
    """Check what a scenario is called and which systems it lists; a list becomes a tuple.

    Args:
        scenario: to be checked.
        field: that lists them.
        known: systems that there are.
        each: what one of them is called.

    Raises:
        ScenarioError: the name is no line of text, or the list not one of different known systems.
    """
    name, given, choices = scenario.name, getattr(scenario, field), ", ".join(known)
    check(name.isprintable() and bool(name.strip()), "name", name, "one line of text, not empty")
    listed = isinstance(given, list | tuple) and len(given) > 0
    check(listed, field, given, f"a list of some of {choices}")
    for one in given:
        check(isinstance(one, str) and one in known, field, one, f"one of {choices}")
    check(len(set(given)) == len(given), field, given, f"each {each} once")
    object.__setattr__(scenario, field, tuple(given))
