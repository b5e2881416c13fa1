"""What a run of peers needs beside its scenario: files read, and everything refused that can be.

`gossamer sim check`, `gossamer sim run` and `simulate` all begin with this, so that none of them
takes what another refuses.
"""

from __future__ import annotations

import math

import attrs
import numpy as np
import psutil

from gossamer.sim.churn import ChurnTrace
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.peers.inputs.own_workload import (
    check_own,
    require_enough,
    taken_from,
    timetable_of,
    workload_of,
)
from gossamer.sim.studies.peers.inputs.publications import Timetable, parts_of
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.studies.peers.running.population import played_trace, size_of
from gossamer.sim.studies.worlds.network import make_latency
from gossamer.sim.study.scenarios import check

# What is kept of a round of a system, measured and rounded up.
ROUND_BYTES = 400


@attrs.frozen(eq=False)
class Prepared:
    """What a scenario comes to.

    Attributes:
        trace: of the churn, as it is played; None for a steady population.
        nodes, rounds: how many.
        timetable: of the events.
    """

    trace: ChurnTrace | None
    nodes: int
    rounds: int
    timetable: Timetable


def prepare(scenario: Scenario) -> Prepared:
    """Read the files of a scenario, and check what nobody sees from the scenario alone.

    Raises:
        TraceError: the churn trace is missing or impossible.
        ResultsError: there is no workload where one is to be taken from.
        ScenarioError: another file is; the trace or workload has fewer nodes, rounds or events
            than are asked for; nobody is ever online; or nothing would be published, although
            events are asked for.
    """
    trace = played_trace(scenario)
    nodes, rounds = size_of(scenario, trace)
    found = taken_from(scenario)
    if found is not None:
        require_enough(found, scenario, nodes, rounds)
    # The matrix is read again by each engine; whose rows the nodes take is of no matter here.
    make_latency(scenario.network, 1, scenario.seed)
    _check_rounds(scenario, rounds)
    workload, parts = workload_of(scenario), parts_of(scenario.engine, trace is None)
    timetable = timetable_of(scenario, workload, rounds, parts)
    played = None if trace is None else trace.limited(nodes)
    check_own(scenario, workload, nodes, timetable, played)
    if played is not None and scenario.churn is not None:
        _check_population(scenario, played, timetable)
    return Prepared(trace=trace, nodes=nodes, rounds=rounds, timetable=timetable)


def _check_rounds(scenario: Scenario, rounds: int) -> None:
    """Refuse runs of more rounds than there is memory for, or too few to publish and measure."""
    most = psutil.virtual_memory().total // (ROUND_BYTES * len(scenario.systems))
    expected = f"at most {most}, for which this machine has memory"
    check(rounds <= most, "rounds", rounds, expected)
    events = scenario.events
    from_file = scenario.workload is not None and scenario.workload.events is not None
    if events.per_round == 0 or from_file:
        return
    least = events.warm_up_rounds + math.ceil(1 / events.per_round)
    if math.floor((rounds - events.warm_up_rounds) * events.per_round) < 1:
        expected = (
            f"at least {least}, so that an event is published: events.warm_up_rounds is "
            f"{events.warm_up_rounds} and events.per_round {events.per_round:g}"
        )
        raise ScenarioError(None, "rounds", rounds, expected)


def _check_population(scenario: Scenario, trace: ChurnTrace, timetable: Timetable) -> None:
    """Refuse a trace without anybody, or with nobody who could publish."""
    assert scenario.churn is not None
    file, end_s = str(scenario.churn.trace), timetable.rounds * scenario.round_s
    online = trace.start_s < end_s
    if not online.any():
        expected = f"one that has a node online in the {end_s:g} s that are played"
        raise ScenarioError(file, "churn", None, expected, found="a trace with nobody online")
    times_s = np.unique(timetable.times_s(scenario.round_s))
    # Whoever is online at the end of the trace stays for the rest of the last round.
    seen = trace.population(times_s[times_s < trace.duration_s])
    stays = bool((trace.end_s == trace.duration_s).any()) and bool(
        (times_s >= trace.duration_s).any()
    )
    if len(times_s) and not stays and not (seen > 0).any():
        from_file = scenario.workload is not None and scenario.workload.events is not None
        warm_up = f" (events.warm_up_rounds is {scenario.events.warm_up_rounds})"
        expected = (
            f"one that has a node online when an event is published, from {times_s[0]:g} s on"
            f"{'' if from_file else warm_up}"
        )
        raise ScenarioError(file, "churn", None, expected, found="a trace with nobody to publish")
