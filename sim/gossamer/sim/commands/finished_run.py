"""A run in a script or notebook: its measures, tables, overlays and plots, printed as its table.

`Run` is a mapping from the names of systems to their `SystemResult`. It is backed by the record
that a simulation leaves in memory, or by a result folder; both have the same attributes.
"""

from __future__ import annotations

import math
import shutil
import sys
import weakref
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from gossamer.sim.commands.looking import written
from gossamer.sim.commands.printed import Printed, frame_of
from gossamer.sim.errors import SimulationError, UnknownNameError
from gossamer.sim.results.held import held
from gossamer.sim.results.overlay_files import MOST_NODES, read_snapshot, snapshot_rounds
from gossamer.sim.results.results import SCENARIO_FILE, Results, whole_folder, write_results
from gossamer.sim.results.tables import remarks, summary_table
from gossamer.sim.study.records import Measure, RunRecord
from gossamer.sim.study.scenarios import PEERS, AnyStudy, study_of_values
from gossamer.sim.study.watching import KIND, NODE, SOURCE, TARGET, Overlay

if TYPE_CHECKING:
    import networkx as nx
    import pyarrow as pa
    from matplotlib.figure import Figure


class SystemResult(Printed):
    """What one system of a run did.

    Every measure is an attribute, NaN where there was nothing to observe; printed, a result lists
    them with unit and definition. Every table is one as well, unless a measure has its name.

    Attributes:
        name: of the system.
    """

    def __init__(self, run: Run[Any], name: str) -> None:
        self._run = run
        self.name = name

    @property
    def settings(self) -> Mapping[str, Any]:
        """The parameters that it ran with, plain values."""
        found: Mapping[str, Any] = self._summary["settings"]
        return found

    @property
    def totals(self) -> Mapping[str, float]:
        """Further counts, which enter the result hash."""
        found: Mapping[str, float] = self._summary["totals"]
        return found

    @property
    def measures(self) -> dict[str, float]:
        """All measures by name, in the order of tables; NaN where there was nothing to observe."""
        return {one.key: _number(self._summary.get(one.key)) for one in self._run.about}

    @property
    def tables(self) -> Mapping[str, pa.Table]:
        """Its tables by name, Arrow; those of a result folder are read when they are asked for."""
        return _Tables(self._run, self.name)

    def overlay(self, round: int = -1) -> nx.DiGraph:
        """Who knows whom after a round: nodes by number, links with their ``kind``.

        Nodes have what the study says of them; several kinds of one link have commas between them.

        Args:
            round: one that a snapshot was kept of; from the last ones if negative.

        Raises:
            SimulationError: none was kept of that round.
        """
        return _graph_of(self._run.overlay_of(self.name, round))

    @property
    def _summary(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._run.summary["systems"][self.name]
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        measures = self.measures
        if name in measures:
            return measures[name]
        if name in self.tables:
            return self.tables[name]
        raise UnknownNameError(f"measure or table of {self.name}", name, self._names())

    def _names(self) -> list[str]:
        return list(dict.fromkeys((*self.measures, *self.tables)))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._names()})

    def __rich__(self) -> RenderableType:
        table = RichTable(title=self.name, title_justify="left", title_style="bold")
        table.add_column("measure", no_wrap=True)
        table.add_column("value", justify="right")
        table.add_column("unit", overflow="fold")
        table.add_column("definition", overflow="fold")
        for one in self._run.about:
            value = self._summary.get(one.key)
            table.add_row(one.key, one.format(value), one.unit, one.meaning)
        return table


class PeersResult(SystemResult):
    """What a system of peers did; `gossamer.sim.studies.peers.measuring.summary` defines all."""

    hit_ratio: float
    hit_ratio_worst_hour: float
    traffic_overhead: float
    path_length_mean: float
    path_length_p99: float
    path_length_max: float
    tree_length_mean: float
    load_p50: float
    load_p95: float
    load_p99: float
    load_max: float
    routing_table_entries_mean: float
    routing_table_entries_max: float
    control_messages_per_node_cycle: float
    bytes_per_node_and_second: float
    duplicates: float
    false_positives: float
    ring_correct_final: float
    friend_utility_final: float
    events: float
    expected: float
    delivered: float
    received: float
    deliveries: pa.Table
    nodes: pa.Table
    cycles: pa.Table


T_co = TypeVar("T_co", bound=SystemResult, covariant=True)


class Run(Printed, Mapping[str, T_co], Generic[T_co]):
    """A finished run: ``run["kindred"]`` is what that system did.

    Attributes:
        summary: the content of ``summary.json``.
    """

    def __init__(self, results: Results, record: RunRecord[Any] | None = None) -> None:
        """Take over results; where a ``record`` has the tables, their folder goes with the run."""
        self._results = results
        self._held = record
        self.summary = results.summary
        self._study: AnyStudy = study_of_values(self.summary["scenario"])
        if record is not None:
            weakref.finalize(self, shutil.rmtree, results.path, ignore_errors=True)

    @property
    def name(self) -> str:
        """Of the scenario."""
        return str(self.scenario.get("name", "run"))

    @property
    def kind(self) -> str:
        """Of the study, such as "peers"."""
        return self._study.kind

    @property
    def scenario(self) -> Mapping[str, Any]:
        """The scenario as plain values."""
        found: Mapping[str, Any] = self.summary["scenario"]
        return found

    @property
    def seed(self) -> int:
        """Of everything random."""
        return int(self.summary["seed"])

    @property
    def result_hash(self) -> str:
        """Over all that scenario and seed decide; the same on any machine."""
        return str(self.summary["result_hash"])

    @property
    def wall_s(self) -> float:
        """Wall-clock time of the run, seconds."""
        return float(self.summary["wall_s"])

    @cached_property
    def about(self) -> tuple[Measure, ...]:
        """The measures of its systems: what each is called and means, and its unit."""
        return self._study.measures_of(self.summary)

    def __getitem__(self, name: str) -> T_co:
        if name not in self._results.systems:
            raise UnknownNameError("system of the run", name, self._results.systems)
        kind: Any = PeersResult if self.kind == PEERS else SystemResult
        found: T_co = kind(self, name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._results.systems)

    def __len__(self) -> int:
        return len(self._results.systems)

    # Two runs may have the same result and are two runs still.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def measures(self) -> Any:
        """A row a system, a column a measure: a pandas DataFrame where pandas is, else Arrow."""
        columns = {
            one.key: [_number(self.summary["systems"][name].get(one.key)) for name in self]
            for one in self.about
        }
        return frame_of({"system": list(self), **columns}, ["system"])

    @property
    def plots(self) -> tuple[str, ...]:
        """Names of the plots that `plot` draws."""
        return tuple(one.name for one in self._study.drawings(self._record))

    def plot(self, name: str) -> Figure:
        """Draw a plot of the run, all systems in it, as its report has it.

        Raises:
            UnknownNameError: there is no such plot; names those that there are.
            SimulationError: the run did not keep what it shows.
            ScenarioError: plots of runs of this kind are not drawn from a result folder.
        """
        from gossamer.sim.results.plot_style import plot_style

        found = {one.name: one for one in self._study.drawings(self._record)}
        if name not in found:
            raise UnknownNameError("plot of the run", name, found)
        with plot_style():
            figure = found[name].draw()
        if figure is None:
            raise SimulationError(
                f"there is nothing to draw in {name!r}: nothing of it happened, or it was not kept"
            )
        if "ipykernel" in sys.modules:
            pass  # notebooks show figures only then
        return figure

    def save(self, folder: str | Path, *, pictures: bool = True) -> Path:
        """Write the result folder that `gossamer sim run` writes; returns its path.

        Args:
            folder: new, or empty.
            pictures: whether to draw plots and a report.

        Raises:
            ResultsError: there is something in it, or it cannot be written.
        """
        path, kept = Path(folder), self._results.path
        with written(path), held(path):
            if self._held is not None:
                write_results(self._held, path, pictures=pictures, beside=kept)
            else:
                with whole_folder(path, replace=False) as new:
                    shutil.copytree(kept, new, dirs_exist_ok=True)
        return path

    def table_names(self, system: str) -> list[str]:
        """Names of the tables of a system."""
        if self._held is None:
            return self._results.table_names(system)
        return [name for name, _ in self._held.systems[system].tables()]

    def table(self, system: str, name: str) -> pa.Table:
        """A table of a system, Arrow; raises `ResultsError` where its file is damaged."""
        import pyarrow as pa

        if self._held is None:
            return self._results.arrow(system, name)
        return pa.table(dict(dict(self._held.systems[system].tables())[name]))

    def overlay_of(self, system: str, round: int) -> Overlay:
        """The overlay of a system after a round, see `SystemResult.overlay`."""
        rounds = snapshot_rounds(self._results, system)
        if not rounds:
            raise SimulationError(
                f"no overlay of {system} was kept: simulate(..., snapshots=N) keeps one every N "
                f"rounds, and runs of up to {MOST_NODES:,} nodes of kinds that have overlays keep "
                "the last"
            )
        if round not in rounds and not -len(rounds) <= round < 0:
            shown = ", ".join(map(str, rounds[:20])) + (", ..." if len(rounds) > 20 else "")
            raise SimulationError(
                f"no overlay of {system} was kept of round {round}, but of {shown}: "
                "simulate(..., snapshots=N) keeps one every N rounds"
            )
        return read_snapshot(self._results, system, rounds[round] if round < 0 else round)

    @cached_property
    def _record(self) -> Any:
        """What plots are drawn from."""
        if self._held is not None:
            return self._held
        systems = {
            name: self._study.restored(
                name,
                self.summary["systems"][name],
                {
                    table: self._results.table(name, table)
                    for table in self._results.table_names(name)
                },
            )
            for name in self
        }
        text = self._results.path / SCENARIO_FILE
        return RunRecord(
            scenario=self.scenario,
            scenario_text=text.read_text(encoding="utf-8") if text.is_file() else "",
            seed=self.seed,
            versions=self.summary["versions"],
            wall_s=self.wall_s,
            peak_rss_bytes=self.summary["peak_rss_bytes"],
            systems=systems,
        )

    def __rich__(self) -> RenderableType:
        return Group(summary_table(self.summary), *map(Text, remarks(self.summary)))


class _Tables(Mapping[str, Any]):
    """The tables of a system, each read when it is asked for."""

    def __init__(self, run: Run[Any], system: str) -> None:
        self._run, self._system = run, system

    def __getitem__(self, name: str) -> Any:
        if name not in self._names():
            raise UnknownNameError(f"table of {self._system}", name, self._names())
        return self._run.table(self._system, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def __len__(self) -> int:
        return len(self._names())

    def __repr__(self) -> str:
        return f"tables of {self._system}: {', '.join(self)}"

    def _names(self) -> list[str]:
        return self._run.table_names(self._system)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _graph_of(overlay: Overlay) -> nx.DiGraph:
    import networkx as nx

    graph = nx.DiGraph()
    columns = {name: column.tolist() for name, column in overlay.nodes.items()}
    numbers = columns.pop(NODE)
    for place, number in enumerate(numbers):
        graph.add_node(number, **{name: column[place] for name, column in columns.items()})
    kinds: dict[tuple[int, int], str] = {}
    ends = (overlay.links[name].tolist() for name in (SOURCE, TARGET, KIND))
    for source, target, at in zip(*ends, strict=True):
        known, kind = kinds.get((source, target)), overlay.kinds[at]
        kinds[source, target] = kind if known is None else f"{known}, {kind}"
    graph.add_edges_from((*pair, {KIND: kind}) for pair, kind in kinds.items())
    return graph
