"""What a study is: scenarios of one kind, how they are run, and what they leave.

A study is one object of a class derived from `Study`. The command line, result folders, reports and
sweeps know studies by this class alone and find them by `gossamer.sim.study.scenarios`, so that one
outside this package works as those do that come with it. A study says

- what its scenarios are (`format`, `alone`),
- what can be refused before a run, and what would be run (`check`, `preview`),
- how a run is made (`run`), and
- what it leaves: the measures of its systems (`measures`, `summarise`), what a report shows
  (`facts`, `drawings`, `more`, `too_small`), and which tables are read back (`tables`, `rows`).

A run has *systems*: whatever is set side by side in it, such as protocols, coverings or strategies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import attrs
from rich.console import RenderableType

from gossamer.command.tables import FittingTable
from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.records import Columns, Expected, Measure, Row, Table
from gossamer.sim.study.scenario_format import Document, ScenarioFormat
from gossamer.sim.study.tasks import Progress
from gossamer.sim.study.watching import Course, Floats, Watch


class AnyScenario(Protocol):
    """What every scenario has; scenarios of one kind that would run the same compare equal."""

    @property
    def kind(self) -> str:
        """That of its study."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def seed(self) -> int:
        """Of everything random."""


@attrs.frozen(kw_only=True)
class Execution:
    """How to run, as opposed to what.

    Attributes:
        progress: called with a name, what is done of it and what there is in all.
        checkpoint: folder for what an interrupted run goes on from, see
            `gossamer.sim.study.checkpoints`; removed by whoever writes the results. Nothing is
            kept if None.
        resume: whether to go on from what is kept there.
        workers: systems that run at a time.
        watch: called for each system before its first round and after every one, by its thread;
            only by studies that can be `Study.watched`. Changes no result.
    """

    progress: Progress | None = None
    checkpoint: Path | None = None
    resume: bool = False
    workers: int = 2
    watch: Watch | None = None


def size_table(name: str, rows: Iterable[tuple[str, str]]) -> FittingTable:
    """What `Study.preview` shows of a scenario of this name: labels and values."""
    table = FittingTable(
        title=f"{name}: would run", title_justify="left", title_style="bold", show_header=False
    )
    for row in rows:
        table.add_row(*row)
    return table


S = TypeVar("S", bound=AnyScenario)
R = TypeVar("R")


class Study(ABC, Generic[S, R]):
    """One kind of simulation. Its objects have no state, and are made when they are registered.

    Attributes:
        kind: by which scenario files, summaries and the registry know it.
        format: how its scenarios stand in TOML.
        progress_unit: what is counted in the progress of a run.
        threaded: whether systems run in threads. An interrupt then reaches the run as a
            `KeyboardInterrupt` out of `Execution.progress`, when a system's state is whole.
        watched: whether runs can be looked at, see `gossamer.sim.study.watching`.
        keepable: what `keep` knows.
        measures: what `summarise` returns, explained; in the order of tables and reports.
        row_order: by table, the columns that order its rows for the result hash. Tables that are
            not named are hashed as they are.
        unhashed: tables that the result hash passes over, as they were added to it and tell nothing
            that the others do not depend on.
        tables: by name, what is expected of those that are read back by `gossamer spark crunch`.
            A table "deliveries" has a row a delivery.
    """

    kind: ClassVar[str]
    format: ClassVar[ScenarioFormat[Any]]
    progress_unit: ClassVar[str] = "done"
    threaded: ClassVar[bool] = False
    watched: ClassVar[bool] = False
    keepable: ClassVar[tuple[str, ...]] = ()
    measures: ClassVar[tuple[Measure, ...]] = ()
    row_order: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
    unhashed: ClassVar[tuple[str, ...]] = ()
    tables: ClassVar[Mapping[str, Expected]] = MappingProxyType({})

    def resolve_paths(self, document: Document, folder: Path) -> bool:
        """Make paths in a scenario file's content absolute; returns whether any was not.

        Args:
            document: the content, which is changed.
            folder: that relative paths are relative to.
        """
        return self.format.resolve_paths(document, folder)

    def read(self, document: Document, overrides: Mapping[str, object]) -> S:
        """The scenario of a file's content.

        Args:
            document: the content, its paths absolute; ``overrides`` are written into it.
            overrides: values by dotted key, as given by ``--set``.

        Raises:
            ScenarioError: a key is unknown or missing, or a value impossible.
        """
        scenario: S = self.format.read(document, overrides)
        return scenario

    def compiles(self, scenario: S) -> bool:
        """Whether a first run of ``scenario`` compiles rules, for which people wait."""
        del scenario
        return True

    def write(self, scenario: S) -> str:
        """The text of a scenario file that reads back as ``scenario``.

        Raises:
            ScenarioError: TOML cannot express it.
        """
        return self.format.write(scenario)

    def alone(self, scenario: S, system: str) -> S:
        """``scenario`` with one of its systems alone.

        Raises:
            ScenarioError: it has no such system, or is of a kind that has none to choose from.
        """
        expected = f"no such key in a scenario of kind {scenario.kind!r}"
        raise ScenarioError(None, "system", system, expected)

    def taken_from(self, kind: str, folder: Path) -> Mapping[str, object]:
        """Values by dotted key, as ``overrides`` of `read`, by which a workload is simulated.

        Args:
            kind: of the workload, as `gossamer spark workload` calls it.
            folder: of its tables.

        Raises:
            ScenarioError: simulations of this kind take no such workload.
        """
        del folder
        expected = f"a workload that scenarios of kind {self.kind!r} take"
        raise ScenarioError(None, "--workload", kind, expected)

    @abstractmethod
    def check(self, scenario: S) -> int:
        """About how many bytes a run needs, when all that can be refused before it is possible.

        Raises:
            ScenarioError: a file that the scenario names is at fault, or this machine has too
                little memory.
        """

    @abstractmethod
    def preview(self, scenario: S) -> RenderableType:
        """What would run, for people; checked as by `check`, with the same errors."""

    @abstractmethod
    def run(self, scenario: S, text: str, execution: Execution) -> R:
        """Run a scenario to its end.

        Args:
            scenario: what to run.
            text: its file, kept with the results.
            execution: how.

        Raises:
            ScenarioError: the scenario cannot be run, or what is kept is of another one.
            SimulationError: a system failed; what is kept of the others can be gone on from.
        """

    @abstractmethod
    def summarise(self, system: Any) -> dict[str, Any]:
        """The measures of one system of a run, with its ``totals`` and ``settings``.

        Ratios are 0 to 1, times in seconds; NaN where there was nothing to observe.
        """

    def measures_of(self, summary: Mapping[str, Any]) -> tuple[Measure, ...]:
        """The measures of a run; by default those of the study.

        Args:
            summary: the content of its ``summary.json``.
        """
        del summary
        return self.measures

    @abstractmethod
    def facts(self, record: R, summary: Mapping[str, Any]) -> str:
        """The line below the title of the report, HTML."""

    def drawings(self, record: R) -> Iterable[Drawing]:
        """The plots of a run, in the order of its report; of different names."""
        del record
        return ()

    def restored(self, name: str, summary: Mapping[str, Any], tables: Mapping[str, Table]) -> Any:
        """The record of a system of a finished run as far as plots need it, from its results.

        Args:
            name: of the system.
            summary: what ``summary.json`` has of it.
            tables: all that there are of it, by name.

        Raises:
            ScenarioError: results of this kind do not hold all that its plots need.
        """
        del name, summary, tables
        expected = "one whose results hold all that plots show; the folder plots has those drawn"
        raise ScenarioError(None, "kind", self.kind, expected)

    def more(self, record: R, summary: Mapping[str, Any]) -> str:
        """What the report has between plots and settings, HTML."""
        del record, summary
        return ""

    def too_small(self, systems: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        """A sentence for everything of fixed size that a run has outgrown.

        Args:
            systems: what `summary.json` has of each, by name.
        """
        del systems
        yield from ()

    def remarks(self, systems: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        """A sentence for everything about a run that its measures do not tell.

        Args:
            systems: what `summary.json` has of each, by name.
        """
        del systems
        yield from ()

    def course(self, tables: Callable[[str], Table], scenario: Mapping[str, Any]) -> Course:
        """What happened in one system of a finished run, if it can be looked at.

        Args:
            tables: reads a table of its results, by name.
            scenario: as ``summary.json`` has it.
        """
        del tables
        expected = "a kind whose runs can be looked at"
        raise ScenarioError(None, "kind", scenario.get("kind"), expected)

    def places(self, nodes: Table) -> Mapping[str, Floats]:
        """Where nodes of an overlay lie, if that means anything: by name, float64 from 0 to 1.

        Nodes can be drawn on a circle by any of them, and get their colour from the last.

        Args:
            nodes: of an `gossamer.sim.study.watching.Overlay`.
        """
        del nodes
        return {}

    def keep(self, scenario: S, record: R, what: str) -> Iterator[tuple[str, Table]]:
        """Further tables of a run for its result folder, by name.

        Args:
            scenario: that was run.
            record: of the run.
            what: one of `keepable`.
        """
        del scenario, record, what
        yield from ()

    def rows(self, tables: Mapping[str, Columns]) -> Iterator[Row]:
        """Measures, distributions and series of one system.

        Args:
            tables: those of `tables`, by name, but that of deliveries.
        """
        del tables
        yield from ()
