"""What scripts call: an exploration of a protocol, and what came of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs

from gossamer.sim.custom.language.declarations import (
    ConfiguredProtocol,
    ProtocolType,
    settings_with,
)
from gossamer.sim.custom.node import Node
from gossamer.sim.errors import ScenarioError
from gossamer.sim.exploration.levels import Levels
from gossamer.sim.exploration.loops import action_of
from gossamer.sim.exploration.model import Bounds, Model
from gossamer.sim.exploration.properties import Property, properties_of
from gossamer.sim.exploration.search import MOST_LAPS, Report, Search, Violation
from gossamer.sim.exploration.story import Story, beginning_of, read_story, steps_of
from gossamer.sim.studies.custom.rehearsal import scenario_of


@attrs.frozen
class Exploration:
    """What came of an exploration.

    Attributes:
        states: how many were found.
        actions: how many were taken, each of which led to a state that was new or known.
        depth: actions from the beginning to the last states.
        exhausted: whether all states were explored; else ``depth`` or ``states`` were the bound.
        held_back: in how many states no timer fired, as too many messages were in flight.
        properties: the names of what was checked.
        story: the shortest way to a state in which one of them does not hold; None if all hold.
    """

    states: int
    actions: int
    depth: int
    exhausted: bool
    held_back: int
    properties: list[str]
    story: Story | None

    def __str__(self) -> str:
        found = f"{self.states:,} states, {self.actions:,} actions, depth {self.depth}"
        if self.story is not None:
            steps = len(self.story.steps)
            return f"{self.story.property} does not hold after {steps} actions ({found})"
        held = f"{', '.join(self.properties)} hold{'s' * (len(self.properties) == 1)}"
        where = "in all states" if self.exhausted else "as far as was explored"
        bound = f"; no timer fired in {self.held_back:,}" if self.held_back else ""
        return f"{held} {where} ({found}{bound})"


def explore(
    protocol: str | ProtocolType | ConfiguredProtocol,
    nodes: int = 3,
    *,
    invariants: Iterable[str] = (),
    scenario: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    memory: int | None = None,
    resume: bool = False,
    report: Report | None = None,
    **bounds: Any,
) -> Exploration:
    """Explore every order in which messages, timers and faults can come in a small overlay.

    Breadth first, so that what is found is as short as can be (MaceMC, Killian et al., NSDI 2007,
    for overlays and what is eventual; Stateright for states by fingerprints). Two states are taken
    for one if 128 bits of a hash agree, which for 10^8 states has a chance below 10^-22. Orders of
    actions that commute are each explored: a reduction that leaves some out would have to keep
    what it left out beside every state.

    Args:
        protocol: "file.py:Class", a class of rules, or a call of one with settings.
        nodes: how many; 1 to 31.
        invariants: names of properties of the class, or functions ``(self, alive)`` of its file;
            all that the class declares if none.
        scenario: keys of a scenario, such as ``{"settings": {"k": 2}}``; of ``network`` only
            ``reports_unreachable`` counts.
        folder: keeps every finished level, to go on from; nowhere if None.
        memory: bytes of the states of a level in memory at most; the others are in files.
        resume: go on with what is in the folder, maybe to another depth or number of states.
        report: called now and then with the level, the states and actions so far, and how many
            states of the level before are done, of how many.
        bounds: ``losses``, ``duplicates``, ``crashes``, ``leaves``, ``restarts`` and ``rounds`` (0:
            how often each may happen), ``in_flight`` (4: timers fire only while fewer messages are
            in flight), ``draws`` (4: with how many first draws a step is explored), ``depth`` and
            ``states`` (None: where to end), ``symmetric`` (False: whether nodes are alike). What
            they mean exactly is said in `gossamer.sim.exploration.model`.

    Raises:
        ScenarioError: it cannot be explored.
        ProtocolError: a rule did what rules may not.
        SimulationError: code of the protocol's file raised something.
    """
    asked = Asked(protocol, nodes, dict(scenario or {}), _bounds(bounds))
    model = asked.model()
    properties = properties_of(model.declared.owner, invariants)
    with ExitStack() as stack:
        if memory is not None and folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gossamer-")))
        levels = Levels(folder, memory)
        about = {**asked.about(model), "properties": [one.name for one in properties]}
        del about["bounds"]["depth"], about["bounds"]["states"]
        search = Search(model, properties, levels, report or _say_nothing, about)
        if resume:
            search.resume()
        else:
            search.begin()
        search.run()
        story = _story(asked, search, search.violation) if search.violation else None
    return Exploration(
        search.states,
        search.actions,
        search.depth + (story is not None and len(story.steps) > search.depth),
        search.exhausted,
        search.held_back,
        [one.name for one in properties if one.kind != "assumption"],
        story,
    )


def _say_nothing(*_: int) -> None:
    """The report of explorations that nobody watches."""


def _bounds(given: Mapping[str, Any]) -> Bounds:
    known = [field.name for field in attrs.fields(Bounds)]
    for name, value in given.items():
        if name not in known:
            raise ScenarioError(None, name, value, f"one of {', '.join(known)}", found="no bound")
    return Bounds(**given)


@attrs.frozen
class Asked:
    """What is to be explored."""

    protocol: str | ProtocolType | ConfiguredProtocol
    nodes: int
    scenario: dict[str, Any]
    bounds: Bounds

    def model(self, *, debug: bool | None = False) -> Model:
        """Its model; raises `ScenarioError`."""
        common = dict(self.scenario.get("settings", {}))
        keys = {key: value for key, value in self.scenario.items() if key != "settings"}
        given = scenario_of(self.protocol, **keys, settings=common)
        if issubclass(given.systems[0].protocol.declared.owner, Node):
            name = given.systems[0].protocol.name
            raise ScenarioError(None, "protocol", name, "a class of rules, derived from Protocol")
        settings_with(given.systems[0].protocol.declared, common, "settings.")
        return Model(given, self.nodes, self.bounds, debug=debug)

    def about(self, model: Model) -> dict[str, Any]:
        """What is needed to take a story again, as plain values."""
        one = model.scenario.systems[0]
        file, settings = Path(one.protocol.file).resolve(), dict(one.settings)
        return {
            "protocol": f"{file}:{one.protocol.name}",
            "nodes": self.nodes,
            "scenario": {**self.scenario, "settings": settings},
            "bounds": attrs.asdict(self.bounds),
            "sources": one.protocol.sources,
        }


def _story(asked: Asked, search: Search, violation: Violation) -> Story:
    model = search.model
    actions = [action_of(code) for code in search.levels.way_to(violation.state)]
    begins, up = beginning_of(model)
    return Story(
        about=asked.about(model),
        property=violation.property.name,
        ending=_ending(violation.property, violation.laps),
        begins=begins,
        nodes=asked.nodes,
        up=up,
        steps=[step for step, _ in steps_of(model, actions)],
    )


def _ending(one: Property, laps: int) -> str:
    said = f"{one.name} does not hold: {one.meaning}"
    if one.kind == "invariant":
        return said
    if laps >= MOST_LAPS:
        return f"from here on {said} (not within {laps} laps of all timers without a fault)"
    if laps == 0:
        return f"from here on {said} (nothing more happens without a fault)"
    return f"from here on {said} (after {laps} laps of all timers states come again)"


def replay(file: Path, *, debug: bool | None = None) -> tuple[Story, bool]:
    """Take a story again, step by step, by the rules as they are now.

    Args:
        file: that `Story.save` has written.
        debug: whether rules run interpreted and checked, so that ``breakpoint()`` stops in them; by
            default as the variable GOSSAMER_DEBUG of the environment says.

    Returns:
        The story as it goes now, and whether its end is still one in which the property fails.

    Raises:
        ResultsError: the file is no story, or the protocol has changed so that a step is none.
    """
    held = read_story(file)
    about = held["about"]
    bounds = _bounds(about["bounds"])
    asked = Asked(about["protocol"], about["nodes"], about["scenario"], bounds)
    model = asked.model(debug=debug)
    actions = [tuple(step["code"]) for step in held["steps"]]
    begins, up = beginning_of(model)
    taken = list(steps_of(model, actions))
    steps = [step for step, _ in taken]
    last = taken[-1][1] if taken else model.first
    (one,) = properties_of(model.declared.owner, [held["property"]])
    fails = Search(asked.model(), [one], Levels(None, None), _say_nothing).fails(one, last)
    return Story(about, one.name, held["ending"], begins, asked.nodes, up, steps), fails
