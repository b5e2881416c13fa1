"""What a run of peers was like, round by round, for whoever looks at it; and its overlay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.peer.settings.profile import LINK_KINDS
from gossamer.protocol.peer.space.ring import RING
from gossamer.sim.studies.peers.measuring.records import OverlaySnapshot
from gossamer.sim.study.records import Measure, Table
from gossamer.sim.study.watching import (
    NODE,
    SOURCE,
    TARGET,
    Course,
    Curve,
    Floats,
    Overlay,
    links_table,
    ratio,
)

_HIT = Measure("hit_ratio", "hit ratio", "ratio", "higher", "Share of due deliveries made.")
_OVERHEAD = Measure(
    "traffic_overhead",
    "traffic overhead",
    "ratio",
    "lower",
    "Share of event messages that reached a node without a matching subscription.",
)
_HOPS = Measure("path_length", "path length", "fine", "lower", "Mean hops of deliveries.")
_CONTROL = Measure(
    "control_messages", "control messages a node", "fine", "lower", "In a round, for each node up."
)
_EVENT_MESSAGES = Measure(
    "event_messages",
    "event messages a node",
    "fine",
    "lower",
    "With events that were published in a round, for each node up.",
)
_EVENTS = Measure("events", "events published", "count", None, "In a round.")
_TABLE = Measure(
    "routing_table_entries", "routing table entries a node", "fine", "lower", "For each node up."
)
# By column of the table of cycles.
_AS_THEY_ARE: Final = {
    "ring_correct": Measure(
        "ring_correct", "ring links correct", "ratio", "higher", "Share of nodes online."
    ),
    "friend_utility": Measure(
        "friend_utility", "friend utility", "ratio", "higher", "Mean over friend links."
    ),
}


def course_of(cycles: Table) -> Course:
    """The course of a run, from its table of cycles; columns without any number are left out."""
    return Course(
        rounds=cycles["cycle"].astype(np.int64) + 1,
        time_s=cycles["time_s"].astype(np.float64),
        population=cycles["population"].astype(np.float64),
        curves=tuple(curve for curve in _curves(cycles) if np.isfinite(curve.values).any()),
    )


def _curves(cycles: Table) -> Iterator[Curve]:
    up = cycles["population"]
    # Without any delivery whose hops are known there are no paths, rather than paths of no hops.
    delivered = cycles["delivered"] * bool(cycles["hops_sum"].any())
    yield Curve(_HIT, ratio(cycles["delivered"], cycles["expected"]))
    yield Curve(_OVERHEAD, ratio(cycles["uninterested"], cycles["received"]))
    yield Curve(_HOPS, ratio(cycles["hops_sum"], delivered))
    yield Curve(_CONTROL, ratio(cycles["control_messages"], up))
    yield Curve(_EVENT_MESSAGES, ratio(cycles["received"], up))
    yield Curve(_EVENTS, cycles["events"].astype(np.float64))
    yield Curve(_TABLE, ratio(cycles["routing_table_entries"], up))
    for column, about in _AS_THEY_ARE.items():
        values = cycles[column].astype(np.float64)
        # Where friends need not be alike, or there are none, they have no utility.
        yield Curve(about, values if np.nansum(values) > 0 else np.full(len(values), np.nan))


def numbered_overlay(found: OverlaySnapshot, online: npt.NDArray[np.int64]) -> Overlay:
    """A snapshot with the numbers of its nodes, which are those online, in order."""
    source, target = (online[found.links[end]] for end in (SOURCE, TARGET))
    return Overlay(
        nodes={NODE: online.astype(np.int32), **found.nodes},
        links=links_table(source, target, found.links["kind"]),
        kinds=LINK_KINDS,
    )


def places_of(nodes: Table) -> Mapping[str, Floats]:
    """Where nodes lie on the ring, and by the attribute and range that they subscribe to."""
    low, high = (nodes[end].astype(np.float64) for end in ("low", "high"))
    primary = nodes["primary"].astype(np.float64)
    attributes = primary.max(initial=0.0) + 1
    return {
        "identifier": nodes["identifier"].astype(np.float64) / RING,
        "subscribed range": (primary + np.clip((low + high) / 2 / RING, 0.0, 1.0)) / attributes,
    }
