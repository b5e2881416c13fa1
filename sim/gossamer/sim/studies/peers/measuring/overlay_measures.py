"""How good an overlay is: is the ring closed, are friends alike.

These see all rows at once, which no protocol rule may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy import sparse

from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.sampling.sampler import EMPTY, SamplerState
from gossamer.protocol.peer.settings.profile import LINK_KINDS, OFF_THE_RING, link_kinds
from gossamer.protocol.peer.space.ring import RING
from gossamer.protocol.peer.state.state import State, identifiers
from gossamer.protocol.peer.topology.utility import friend_utility
from gossamer.sim.studies.peers.measuring.records import OverlaySnapshot
from gossamer.sim.study.records import Table, measures_of
from gossamer.sim.study.watching import (
    NODE,
    SOURCE,
    TARGET,
    Course,
    Curve,
    Floats,
    Int64s,
    Overlay,
    links_table,
    ratio,
)

Alive = npt.NDArray[np.bool_]


def true_successors(s: State, alive: Alive) -> Int64s:
    """int64[n]: of every node online the next one clockwise, by identifier; -1 of the others."""
    online = np.flatnonzero(alive)
    order = online[np.argsort(identifiers(s)[online], kind="stable")]
    successors = np.full(len(alive), -1, np.int64)
    successors[order] = np.roll(order, -1)
    return successors


def ring_correctness(s: State, alive: Alive) -> float:
    """Share of the nodes on the ring and online whose successor link is right; 1 of less than 2."""
    alive = alive & (identifiers(s) < OFF_THE_RING)
    online = np.flatnonzero(alive)
    if len(online) < 2:
        return 1.0
    slots = s.successor[online]
    words = s.links[online, np.maximum(slots, 0)]
    held = np.where(slots >= 0, words & 0xFFFFFFFF, -1)
    return float(np.mean(held == true_successors(s, alive)[online]))


@rule
def sum_friend_utilities(s: State, alive: Any, totals: Any) -> None:
    """Add to ``totals`` the utility of all friend links of nodes online, and their number."""
    first = 2 * s.params.ring_links + s.params.small_world_links
    for p in range(len(alive)):
        if not alive[p]:
            continue
        for k in range(first, first + s.params.friend_links):
            if s.links[p, k] >= 0:
                totals[0] += friend_utility(s, p, s.link_profile[p, k], 0)
                totals[1] += 1.0


def mean_friend_utility(s: State, alive: Alive) -> float:
    """Mean utility over all friend links of nodes online; NaN where there are none."""
    totals = np.zeros(2)
    sum_friend_utilities.compiled(s, alive, totals)
    return float(totals[0] / totals[1]) if totals[1] else float("nan")


def in_degrees(s: State, alive: Alive) -> Int64s:
    """int64[n]: how many nodes online have each node among their links."""
    words = s.links[alive]
    return np.bincount(words[words >= 0] & 0xFFFFFFFF, minlength=len(alive))


def snapshot(s: State, alive: Alive) -> OverlaySnapshot:
    """The overlay of the nodes online, for pictures and files."""
    online = np.flatnonzero(alive)
    row_of = np.full(len(alive), -1, np.int64)
    row_of[online] = np.arange(len(online))
    words = s.links[online]
    source, slot = np.nonzero((words >= 0) & alive[np.maximum(words, 0) & 0xFFFFFFFF])
    kinds = np.array(link_kinds(s.params), np.int8)
    primary = s.primary[online]
    boxes = s.subscriptions[online, 0]
    return OverlaySnapshot(
        nodes={
            "identifier": identifiers(s)[online],
            "primary": primary.astype(np.int32),
            "low": boxes[np.arange(len(online)), 2 * primary],
            "high": boxes[np.arange(len(online)), 2 * primary + 1],
        },
        links={
            "source": source.astype(np.int32),
            "target": row_of[words[source, slot] & 0xFFFFFFFF].astype(np.int32),
            "kind": kinds[slot],
        },
    )


# Measures of the graph that the views of all peers form.


_HANDLE_MASK = (1 << 32) - 1


def view_edges(sampler: SamplerState, alive: Alive) -> tuple[Int64s, Int64s]:
    """The edges (holder, held) of all views, both ends up; handles must be rows.

    Returns:
        Two arrays int64[edges], ordered by holder and slot.
    """
    holder, slot = np.nonzero(sampler.views != EMPTY)
    held = sampler.views[holder, slot] & _HANDLE_MASK
    up = alive[holder] & alive[held]
    return holder[up], held[up]


def sampled_in_degrees(sampler: SamplerState, alive: Alive) -> Int64s:
    """In how many views each node that is up stands: int64[number of nodes up]."""
    _, held = view_edges(sampler, alive)
    return np.bincount(held, minlength=len(alive))[alive]


def undirected_view_graph(sampler: SamplerState, alive: Alive) -> sparse.csr_array:
    """The adjacency matrix of the nodes that are up, an edge where either holds the other."""
    holder, held = view_edges(sampler, alive)
    index = np.cumsum(alive) - 1
    size = int(index[-1]) + 1
    ends = (index[np.concatenate([holder, held])], index[np.concatenate([held, holder])])
    graph = sparse.csr_array((np.ones(len(ends[0]), np.int32), ends), shape=(size, size))
    graph.data[:] = 1
    return graph


# What a run of peers was like, round by round, for whoever looks at it; and its overlay.


_CURVES: Final = measures_of("""
    hit_ratio: hit ratio | ratio | higher
        Share of due deliveries made.
    traffic_overhead: traffic overhead | ratio | lower
        Share of event messages that reached a node without a matching subscription.
    path_length: path length | fine | lower
        Mean hops of deliveries.
    control_messages: control messages a node | fine | lower
        In a round, for each node up.
    event_messages: event messages a node | fine | lower
        With events that were published in a round, for each node up.
    events: events published | count | -
        In a round.
    routing_table_entries: routing table entries a node | fine | lower
        For each node up.
    ring_correct: ring links correct | ratio | higher
        Share of nodes online.
    friend_utility: friend utility | ratio | higher
        Mean over friend links.
""")


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
    values = {
        "hit_ratio": ratio(cycles["delivered"], cycles["expected"]),
        "traffic_overhead": ratio(cycles["uninterested"], cycles["received"]),
        "path_length": ratio(cycles["hops_sum"], delivered),
        "control_messages": ratio(cycles["control_messages"], up),
        "event_messages": ratio(cycles["received"], up),
        "events": cycles["events"].astype(np.float64),
        "routing_table_entries": ratio(cycles["routing_table_entries"], up),
    }
    for about in _CURVES:
        if about.key in values:
            yield Curve(about, values[about.key])
            continue
        measured = cycles[about.key].astype(np.float64)
        # Where friends need not be alike, or there are none, they have no utility.
        some = np.nansum(measured) > 0
        yield Curve(about, measured if some else np.full(len(measured), np.nan))


def numbered_overlay(found: OverlaySnapshot, online: Int64s) -> Overlay:
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
