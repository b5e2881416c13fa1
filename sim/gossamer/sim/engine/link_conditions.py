"""What happens to messages between nodes: latency, loss, duplication, partitions, waiting.

All draws depend on (seed, sender, number of the sender's message), so that a message fares the
same whatever else goes on in the simulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import mix
from gossamer.protocol.kernel.records import FROM, KIND, TO, UNREACHABLE, Words
from gossamer.protocol.kernel.rules import inline_rule
from gossamer.sim.engine.event_queue import NOW, RECORD, EventQueue, enlist, push
from gossamer.sim.engine.latency import Int64s, Latency, no_latency, trip_ticks
from gossamer.sim.errors import ScenarioError

LOST_ON_WAY, DUPLICATED, PARTED, OVERFLOWED = 0, 1, 2, 3

# Added to the kind of a record while it waits in its addressee's input queue.
IN_SERVICE = 1 << 24

# What the draws of one message decide.
_LOSS, _LATENCY, _DUPLICATION, _LATENCY_OF_COPY, _DRAWS = 0, 1, 2, 3, 4

_ONE = 1 << 62


class Partition(NamedTuple):
    """A time during which messages sent from one group of nodes to another do not arrive.

    Attributes:
        begin, end: ticks, the end excluded.
        groups: int[n], the group of each node.
    """

    begin: int
    end: int
    groups: npt.NDArray[np.integer[Any]]


class LinkConditions(NamedTuple):
    """The network between n nodes and their input queues. See `make_link_conditions`.

    Attributes:
        seed: of all draws.
        latency: of messages and of reports that a node cannot be reached.
        loss, duplication: probabilities in units of 2^-62.
        sent: int64[n], messages sent so far, counted only where draws are made.
        windows: int64[k, 2], begin and end ticks of partitions.
        groups: int64[k, n], each node's group during them.
        service: int64[n], ticks that a node takes to serve a record; int64[0] for none.
        queue_limit: records that an input queue holds, the one in service included.
        free_at: int64[n], tick at which a node will have served what it holds.
        waiting, longest: int64[n], records in the input queue, now and at most so far.
        counts: int64[4]: messages lost, duplicated, stopped by a partition, and refused by a
            full input queue.
    """

    seed: int
    latency: Latency
    loss: int
    duplication: int
    sent: Int64s
    windows: Int64s
    groups: Int64s
    service: Int64s
    queue_limit: int
    free_at: Int64s
    waiting: Int64s
    longest: Int64s
    counts: Int64s


def make_link_conditions(
    nodes: int,
    *,
    seed: int = 0,
    latency: Latency | None = None,
    loss: float = 0.0,
    duplication: float = 0.0,
    partitions: Sequence[Partition] = (),
    service_ticks: int | Int64s = 0,
    queue_limit: int = 1 << 30,
) -> LinkConditions:
    """Links between ``nodes`` nodes; by default they are perfect and take no time.

    Args:
        nodes: number of nodes n.
        seed: of losses, duplications and latencies.
        latency: of every message; `no_latency` by default.
        loss: probability that a message is lost without a report.
        duplication: probability that a message arrives twice, each time with its own latency.
        partitions: when messages between groups of nodes do not arrive. Where the network
            reports unreachable nodes they come back to their sender.
        service_ticks: ticks a node takes to serve one message, for all nodes or int64[n]; it
            takes effect when it has been served. 0: nodes serve at once and do not queue.
        queue_limit: messages that a node holds, the one in service included; others are dropped.

    Raises:
        ScenarioError: a value is impossible.
    """
    _check(0 <= loss <= 1, "loss", loss, "a probability from 0 to 1")
    _check(0 <= duplication <= 1, "duplication", duplication, "a probability from 0 to 1")
    _check(queue_limit >= 1, "queue_limit", queue_limit, "a whole number of at least 1")
    sites = 0 if latency is None else len(latency.site)
    _check(sites in (0, nodes), "latency", sites, f"sites of {nodes} nodes, or none")
    for part in partitions:
        _check(0 <= part.begin < part.end, "partition", part[:2], "a begin before its end")
        _check(part.groups.shape == (nodes,), "groups", part.groups.shape, f"({nodes},)")
    service = np.array(np.broadcast_to(service_ticks, nodes), np.int64)
    _check(bool((service >= 0).all()), "service_ticks", service.min(), "at least 0")
    queues = nodes if service.any() else 0
    groups = [np.asarray(part.groups, np.int64) for part in partitions]
    return LinkConditions(
        seed=seed,
        latency=latency or no_latency(),
        loss=round(loss * _ONE),
        duplication=round(duplication * _ONE),
        sent=np.zeros(nodes, np.int64),
        windows=np.array([part[:2] for part in partitions], np.int64).reshape(-1, 2),
        groups=np.array(groups, np.int64).reshape(-1, nodes),
        service=service[:queues],
        queue_limit=queue_limit,
        free_at=np.zeros(queues, np.int64),
        waiting=np.zeros(queues, np.int64),
        longest=np.zeros(queues, np.int64),
        counts=np.zeros(4, np.int64),
    )


def _check(holds: bool, field: str, value: object, expected: str) -> None:
    if not holds:
        raise ScenarioError(None, field, value, expected)


@inline_rule
def next_draws(links: LinkConditions, source: int) -> Any:
    """The counter of the first draw for the next message of ``source``."""
    if links.loss == 0 and links.duplication == 0 and links.latency.spread == 0:
        return 0
    links.sent[source] += 1
    return links.sent[source] * _DRAWS


@inline_rule
def are_parted(links: LinkConditions, source: int, to: int, tick: int) -> Any:
    """Whether a partition lies between two nodes at ``tick``."""
    for k in range(len(links.windows)):
        during = links.windows[k, 0] <= tick and tick < links.windows[k, 1]
        if during and links.groups[k, source] != links.groups[k, to]:
            return True
    return False


@inline_rule
def send(
    links: LinkConditions, reports: bool, queue: EventQueue, tick: int, words: Words, at: int
) -> None:
    """Put the record at ``words[at:]`` on its way; records to oneself pass no link.

    The kind of a record that a partition stops is changed in place.
    """
    source = words[at + FROM]
    to = words[at + TO]
    if source == to:
        push(queue, tick, words, at)
        return
    draws = next_draws(links, source)
    if links.loss > 0 and mix(links.seed, source, draws + _LOSS) < links.loss:
        links.counts[LOST_ON_WAY] += 1
        return
    arrives = tick + trip_ticks(links.latency, source, to, links.seed, draws + _LATENCY)
    if are_parted(links, source, to, tick):
        links.counts[PARTED] += 1
        if reports:
            words[at + KIND] += UNREACHABLE
            push(queue, arrives + return_ticks(links, words, at), words, at)
        return
    push(queue, arrives, words, at)
    if links.duplication > 0 and (
        mix(links.seed, source, draws + _DUPLICATION) < links.duplication
    ):
        links.counts[DUPLICATED] += 1
        copy = trip_ticks(links.latency, source, to, links.seed, draws + _LATENCY_OF_COPY)
        push(queue, tick + copy, words, at)


@inline_rule
def return_ticks(links: LinkConditions, words: Words, at: int) -> Any:
    """Ticks that a report takes from the addressee of a record back to its sender."""
    back_from = words[at + TO]
    draws = next_draws(links, back_from)
    return trip_ticks(links.latency, back_from, words[at + FROM], links.seed, draws + _LATENCY)


@inline_rule
def join_input_queue(links: LinkConditions, queue: EventQueue, slot: int, p: int) -> Any:
    """Let the record in ``slot`` wait until node p has served it; returns False if p is full."""
    if links.waiting[p] >= links.queue_limit:
        links.counts[OVERFLOWED] += 1
        return False
    links.waiting[p] += 1
    links.longest[p] = max(links.longest[p], links.waiting[p])
    links.free_at[p] = max(links.free_at[p], queue.marks[NOW]) + links.service[p]
    queue.words[slot + RECORD + KIND] += IN_SERVICE
    enlist(queue, slot, links.free_at[p])
    return True
