"""What is to happen: the trace, the publishers and the events that the simulation has, as steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.state.state import State, make_state
from gossamer.sim.churn import ChurnTrace
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.peers.inputs.own_workload import (
    check_own,
    paced,
    timetable_of,
    workload_of,
)
from gossamer.sim.studies.peers.inputs.publications import (
    PARTS,
    Publishers,
    Timetable,
    end_of_part,
)
from gossamer.sim.studies.peers.inputs.scenario import JOINING, Scenario
from gossamer.sim.studies.peers.inputs.workload import Workload
from gossamer.sim.studies.peers.running.population import changes_of, changes_until, size_of
from gossamer.sim.studies.peers.running.system_run import subscribe_all

START: Final = "start"
STOP: Final = "stop"
PUBLISH: Final = "publish"


@attrs.frozen
class Step:
    """One thing to do.

    Attributes:
        time_s: when, in seconds of the trace.
        do: START, STOP or PUBLISH.
        node: to whom.
        event: number of the event, -1 where there is none.
    """

    time_s: float
    do: str
    node: int
    event: int = -1


@attrs.frozen(eq=False)
class Plan:
    """All of a replay.

    Attributes:
        scenario: what it was made of; one system.
        settings: of the protocol, as the simulation has them.
        nodes, rounds: how many.
        first: the nodes online at the beginning.
        steps: everything after that, in order of time.
        values: int64[events, A], hashed values of the events by number.
        state: of as many rows as nodes; holds their subscriptions.
    """

    scenario: Scenario
    settings: Settings
    nodes: int
    rounds: int
    first: tuple[int, ...]
    steps: tuple[Step, ...]
    values: npt.NDArray[np.int64]
    state: State

    @property
    def attributes(self) -> list[str]:
        """Names of the attributes of the events."""
        return [f"value{number}" for number in range(1, self.settings.attributes + 1)]

    def event(self, number: int) -> Mapping[str, int]:
        """The values of an event by attribute."""
        return dict(zip(self.attributes, self.values[number].tolist(), strict=True))

    def expressions(self, node: int) -> list[str]:
        """What a node subscribes to, as its application says it.

        The overlay may hold a subscription as several boxes, which differ in their keys alone.
        """
        told: dict[str, None] = {}
        for box, constrained in zip(
            self.state.subscriptions[node].tolist(),
            self.state.constrained[node].tolist(),
            strict=True,
        ):
            if constrained >= 0:
                ends = zip(self.attributes, box[0::2], box[1::2], strict=False)
                ranges = [f"{name} in [{low}, {high}]" for name, low, high in ends]
                told[" and ".join(ranges)] = None
        return list(told)


def make_plan(scenario: Scenario, trace: ChurnTrace) -> Plan:
    """The plan of a scenario with one system and the churn of ``trace``."""
    if scenario.drift is not None:
        expected = "none, as the subscriptions of real peers stay what they are"
        raise ScenarioError(None, "drift", "a table", expected)
    if scenario.start != JOINING:
        expected = f"{JOINING!r}, as real peers join"
        raise ScenarioError(None, "start", scenario.start, expected)
    nodes, rounds = size_of(scenario, trace)
    spec, workload = scenario.subscriptions, workload_of(scenario)
    (system,) = scenario.systems
    timetable = timetable_of(scenario, workload, rounds, PARTS)
    check_own(scenario, workload, nodes, timetable, trace.limited(nodes))
    events = paced(scenario, timetable)
    settings = system.settings_for(nodes, spec, events, scenario.seed)
    state = make_state(settings, nodes)
    subscribe_all(state, settings, *workload.subscriptions(nodes))
    first, steps = _steps(scenario, trace.limited(nodes), workload, timetable)
    return Plan(
        scenario=scenario,
        settings=settings,
        nodes=nodes,
        rounds=rounds,
        first=first,
        steps=steps,
        values=workload.events(0, timetable.size),
        state=state,
    )


def _steps(
    scenario: Scenario, trace: ChurnTrace, workload: Workload, timetable: Timetable
) -> tuple[tuple[int, ...], tuple[Step, ...]]:
    """Who is online first, and everything after that."""
    changes = changes_of(trace)
    times_s, changed, up = changes
    online = np.zeros(len(trace.names), np.bool_)
    publishers = Publishers(scenario.events, len(trace.names), scenario.seed)
    done = changes_until(changes, 0.0)
    online[changed[:done][up[:done]]] = True
    first = tuple(np.flatnonzero(online).tolist())
    steps: list[Step] = []
    for cycle, part in _parts(timetable.rounds):
        end_s = end_of_part(cycle, part, PARTS, scenario.round_s)
        last = changes_until(changes, end_s)
        for i in range(done, last):
            node, joins = int(changed[i]), bool(up[i])
            online[node] = joins
            steps.append(Step(float(times_s[i]), START if joins else STOP, node))
        done = last
        for event in timetable.of_part(cycle, part):
            publisher = workload.publisher(event)
            if publisher is None:
                publisher = publishers.choose(workload.publisher_rows(np.array([event]))[0], online)
            if publisher is not None:
                steps.append(Step(end_s, PUBLISH, publisher, event))
    return first, tuple(steps)


def _parts(rounds: int) -> Iterator[tuple[int, int]]:
    for cycle in range(rounds):
        for part in range(PARTS):
            yield cycle, part
