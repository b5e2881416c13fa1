"""Subscriptions and events of a run as tables, which results have only if they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.peer.space.ring import RING
from gossamer.sim.studies.peers.inputs.own_workload import workload_of
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.studies.peers.inputs.workload import (
    Workload,
    changed_boxes,
    changes_before,
    drifted_values,
    late_changes,
)
from gossamer.sim.studies.peers.measuring.records import RunRecord
from gossamer.sim.study.draws import Floats, Int64s
from gossamer.sim.study.records import Column, Table

SUBSCRIPTIONS, EVENTS = "subscriptions", "events"
KEEPABLE: Final = (SUBSCRIPTIONS, EVENTS)
# The table of events of a system tells what became of them; this one what they were.
EVENT_VALUES: Final = "event_values"


def kept_tables(scenario: Scenario, record: RunRecord, what: str) -> Iterator[tuple[str, Table]]:
    """The tables of what is asked for, by name; all systems of a run have the same workload.

    ``subscriptions`` has a row a subscription and attribute that it constrains: from when on the
    node has it, the node, the number of the subscription, the attribute (from 1), and the range.
    ``event_values`` has a row an event and attribute. `inputs.own_tables` reads both. Values are
    places in the domain of their attribute, 0 to 1; ``hashed`` ones are those that peers compare.
    """
    workload = workload_of(scenario)
    systems = list(record.systems.values())
    if what == SUBSCRIPTIONS:
        nodes = len(systems[0].nodes["node"])
        rounds = len(systems[0].cycles["cycle"])
        yield SUBSCRIPTIONS, _subscriptions(scenario, workload, nodes, rounds)
    else:
        published = np.unique(np.concatenate([one.events["event"] for one in systems]))
        # Who publishes, and when, is the same in all systems.
        at: dict[int, tuple[float, int]] = {}
        for one in systems:
            columns = (one.events[name].tolist() for name in ("event", "time_s", "publisher"))
            at.update((event, (time_s, node)) for event, time_s, node in zip(*columns, strict=True))
        times = np.array([at[event][0] for event in published.tolist()], np.float64)
        publishers = np.array([at[event][1] for event in published.tolist()], np.int32)
        yield EVENT_VALUES, _event_values(scenario, workload, published, times, publishers)


def _subscriptions(scenario: Scenario, workload: Workload, nodes: int, rounds: int) -> Table:
    """All that nodes subscribe to, and all that they come to subscribe to."""
    boxes, constrained = workload.subscriptions(nodes)
    drift = scenario.drift
    if drift is None:
        return _table([_rows(-np.inf, np.arange(nodes), boxes, constrained)])
    late = late_changes(workload, drift, nodes)
    wanted = np.where((late > 0)[:, np.newaxis], -1, constrained)
    found = [_rows(-np.inf, np.arange(nodes), boxes, wanted)]
    # Changes apply at the beginning of a round.
    last_s = (rounds - 1) * scenario.round_s
    for change in range(1, changes_before(drift, last_s) + 1):
        changed, moved = changed_boxes(workload, drift, change, boxes, wanted)
        boxes[changed] = moved
        begins = np.flatnonzero(late == change)
        wanted[begins] = constrained[begins]
        rows = np.union1d(changed, begins)
        time_s = np.ceil(change * drift.every_s / scenario.round_s) * scenario.round_s
        found.append(_rows(float(time_s), rows, boxes[rows], wanted[rows]))
    return _table(found)


def _rows(since_s: float, nodes: Int64s, boxes: Int64s, constrained: Int64s) -> dict[str, Column]:
    """What these nodes subscribe to from a time on: int64[m, S, 2A], int64[m, S] of bits."""
    attributes = np.arange(boxes.shape[2] // 2)
    bits = constrained[:, :, np.newaxis]
    node, number, attribute = np.nonzero((bits >= 0) & ((bits >> attributes) & 1 > 0))
    low, high = (boxes[node, number, 2 * attribute + end] for end in (0, 1))
    return {
        "since_s": np.full(len(node), since_s),
        "node": nodes[node].astype(np.int32),
        "subscription": number.astype(np.int32),
        "attribute": (attribute + 1).astype(np.int16),
        "low": low / float(RING),
        "high": high / float(RING),
        "low_hashed": low,
        "high_hashed": high,
    }


def _table(parts: list[dict[str, Column]]) -> Table:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _event_values(
    scenario: Scenario,
    workload: Workload,
    events: Int64s,
    times: Floats,
    publishers: npt.NDArray[np.int32],
) -> Table:
    values, _ = workload.event_rows(events)
    if scenario.drift is not None:
        for row, time_s in enumerate(times.tolist()):
            values[row] = drifted_values(scenario.drift, values[row], time_s)
    count = values.shape[1]
    hashed = values.ravel()
    return {
        "event": np.repeat(events, count),
        "time_s": np.repeat(times, count),
        "publisher": np.repeat(publishers, count),
        "attribute": np.tile(np.arange(1, count + 1, dtype=np.int16), len(events)),
        "value": hashed / float(RING),
        "value_hashed": hashed,
    }
