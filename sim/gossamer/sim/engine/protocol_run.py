"""Running a protocol of one's own from a script.

A script brings a protocol (state and step), an engine, and, in PeerSim's vocabulary (Montresor,
Jelasity, P2P'09): initialisers that set the state up, controls that interfere while it runs,
observers that measure it, and schedules that say when. See `examples/push_sum`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median

import attrs
from rich.console import Console

from gossamer.command.tables import FittingTable
from gossamer.sim.engine.cycle_engine import CycleEngine
from gossamer.sim.engine.event_engine import TimedEngine
from gossamer.sim.errors import ScenarioError

# What controls and observers see.
Engine = CycleEngine | TimedEngine
Initialiser = Callable[[Engine], None]
Control = Callable[[Engine], None]
Observer = Callable[[Engine], float]


@attrs.frozen
class Schedule:
    """The cycles in which something happens: begin, begin + every, ..., below end.

    Raises:
        ScenarioError: ``every`` is below 1 or ``begin`` below 0.
    """

    every: int = 1
    begin: int = 0
    end: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.every < 1:
            raise ScenarioError(None, "schedule.every", self.every, "at least 1 cycle")
        if self.begin < 0:
            raise ScenarioError(None, "schedule.begin", self.begin, "a cycle from 0 on")

    def __contains__(self, cycle: int) -> bool:
        on_beat = cycle >= self.begin and (cycle - self.begin) % self.every == 0
        return on_beat and (self.end is None or cycle < self.end)


ALWAYS = Schedule()


def once(cycle: int) -> Schedule:
    """The schedule of what happens in one cycle only."""
    return Schedule(begin=cycle, end=cycle + 1)


class ProtocolRun:
    """One run of a protocol under an engine.

    Before each cycle the controls that are due act, in the order given; after it, and once before
    the first, every observer takes its measure.

    Args:
        engine: a `CycleEngine` or `EventEngine` at cycle 0.
        initialisers: called with the engine at once, in the order given.
        controls: what interferes, and when (cycles are counted from 0).
        observers: named measures; each becomes a column.
        observe_when: cycles after which they are taken.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        initialisers: Sequence[Initialiser] = (),
        controls: Sequence[tuple[Control, Schedule]] = (),
        observers: Mapping[str, Observer] | None = None,
        observe_when: Schedule = ALWAYS,
    ) -> None:
        self.engine = engine
        self.columns: dict[str, list[float]] = {"cycle": [], "seconds": []}
        self._controls = controls
        self._observers = dict(observers or {})
        self._observe_when = observe_when
        self.columns |= {name: [] for name in self._observers}
        for initialise in initialisers:
            initialise(engine)
        self._observe(0.0)

    def run(self, cycles: int) -> dict[str, list[float]]:
        """Run ``cycles`` cycles more.

        Returns:
            The columns so far: "cycle" (cycles run), "seconds" (that the last of them took, the
            first with its compilation), and one by observer.
        """
        for _ in range(cycles):
            for control, schedule in self._controls:
                if self.engine.cycle in schedule:
                    control(self.engine)
            begin = time.perf_counter()
            self.engine.run_cycle()
            self._observe(time.perf_counter() - begin)
        return self.columns

    def table(self) -> FittingTable:
        """The columns as a table."""
        seconds = self.columns["seconds"][2:]
        caption = f"median {median(seconds):.4f} s a cycle" if seconds else None
        table = FittingTable(caption=caption, caption_justify="left")
        table.add_numbers(*self.columns)
        for row in zip(*self.columns.values(), strict=True):
            table.add_row(*(f"{value:.4g}" for value in row))
        return table

    def print_table(self) -> None:
        """Print the columns to standard output."""
        Console().print(self.table())

    def _observe(self, seconds: float) -> None:
        if self.engine.cycle in self._observe_when:
            self.columns["cycle"].append(self.engine.cycle)
            self.columns["seconds"].append(seconds)
            for name, observe in self._observers.items():
                self.columns[name].append(float(observe(self.engine)))
