"""Whether two ways of writing a protocol do the same, record by record.

Each system of a scenario runs beside the first one; every record that a node takes (messages,
timers, what it lets itself have after a delay) is compared with the first system's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import attrs

from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.custom.language.declarations import ConfiguredProtocol, ProtocolType
from gossamer.sim.custom.simulation import Simulation
from gossamer.sim.custom.tally import Taken
from gossamer.sim.studies.custom.scenario import CustomScenario, CustomSystem
from gossamer.sim.studies.custom.scenario_file import resolve_paths, scenario_from_document
from gossamer.sim.studies.custom.simulation import conditions_of, make_driver, prepare


@attrs.frozen
class Difference:
    """Where two systems part.

    Attributes:
        names: of the two systems.
        number: of the first record that differs, from 1 on.
        first, second: that record in each; None where there are no more.
    """

    names: tuple[str, str]
    number: int
    first: Taken | None
    second: Taken | None

    def __str__(self) -> str:
        sides = zip(self.names, (self.first, self.second), strict=True)
        said = " and ".join(f"in {name} {_described(record)}" for name, record in sides)
        return f"record {self.number:,} differs: {said}"


def _described(record: Taken | None) -> str:
    if record is None:
        return "there is none"
    body = f" {record.body}" if record.body else ""
    if record.sender == record.to:
        return f"node {record.to} takes its own {record.name}{body} at tick {record.tick:,}"
    return f"node {record.to} takes {record.name}{body} of node {record.sender} at {record.tick:,}"


def first_difference(scenario: CustomScenario, *, interpreted: bool = False) -> Difference | None:
    """Run the systems of a scenario beside its first one.

    Args:
        scenario: with two systems at least; use few nodes.
        interpreted: whether rules run interpreted.

    Returns:
        Where the first system that differs does so; None if all do the same.

    Raises:
        ScenarioError: the scenario cannot be run.
    """
    first, *others = scenario.systems
    for other in others:
        number = 0
        pairs = zip(
            _rounds(scenario, first, interpreted),
            _rounds(scenario, other, interpreted),
            strict=True,
        )
        for one, two in pairs:
            if one != two:
                return _first_of(one, two, number, (first.name, other.name))
            number += len(one)
    return None


def scenario_of(
    *protocols: str | ProtocolType | ConfiguredProtocol, folder: Path | None = None, **keys: Any
) -> CustomScenario:
    """A scenario in which protocols run side by side, for scripts.

    Args:
        protocols: as "rumor.py:Rumor", classes, or calls of these with settings; the systems are
            called by number and class.
        folder: that files are relative to; the working folder if None.
        keys: of the scenario: numbers of nodes and rounds, tables as dictionaries.

    Raises:
        ScenarioError: as `scenario_from_document`.
    """
    systems = []
    for number, given in enumerate(protocols, start=1):
        one = given.owner if isinstance(given, ConfiguredProtocol) else given
        settings = given.settings if isinstance(given, ConfiguredProtocol) else {}
        name = one.rpartition(":")[2] if isinstance(one, str) else one.__name__
        systems.append({"name": f"{number}-{name}", "protocol": one, **settings})
    document = {"name": "side by side", "system": systems, **keys}
    resolve_paths(document, (folder or Path()).absolute())
    return scenario_from_document(document, {})


def _rounds(
    scenario: CustomScenario, system: CustomSystem, interpreted: bool
) -> Iterator[list[Taken]]:
    """What nodes take, round by round; an empty one for every round after the run has ended."""
    prepared = prepare(scenario)
    conditions, changes = conditions_of(scenario, prepared, system)

    def taken() -> list[Taken]:
        trace = list(driver.trace())
        if scenario.engine == "windows":  # It fixes the order of what each node takes, no other.
            trace.sort(key=lambda record: (record.tick, record.to))
        return trace

    with _form(interpreted):
        driver: Any = make_driver(system, conditions, traced=True)
        run = Simulation(driver, prepared.rounds, changes)
        run.begin()
    yield taken()
    for _ in range(prepared.rounds):
        if not run.is_finished:
            with _form(interpreted):
                run.run_round()
        yield taken()


def _form(interpreted: bool) -> AbstractContextManager[None]:
    return use_compiled(False) if interpreted else nullcontext()


def _first_of(
    one: list[Taken], two: list[Taken], before: int, names: tuple[str, str]
) -> Difference:
    same = 0
    while same < min(len(one), len(two)) and one[same] == two[same]:
        same += 1
    return Difference(
        names,
        before + same + 1,
        one[same] if same < len(one) else None,
        two[same] if same < len(two) else None,
    )
