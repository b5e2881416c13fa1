"""What happens to messages between nodes: latency, loss, partitions, bandwidth, waiting.

All draws depend on (seed, sender, number of the sender's message), so that a message fares the
same whatever else goes on in the simulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import mix
from gossamer.protocol.kernel.errors import RecordError
from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    KIND,
    LENGTH,
    OPEN,
    TAIL,
    TO,
    UNREACHABLE,
    USER,
    Outbox,
    Words,
)
from gossamer.protocol.kernel.rules import inline_rule
from gossamer.sim.engine.event_queue import NOW, RECORD, EventQueue, enlist, push
from gossamer.sim.engine.latency import (
    Bandwidth,
    Int64s,
    Latency,
    make_bandwidth,
    no_latency,
    ticks_to_enter,
    ticks_to_leave,
    trip_ticks,
)
from gossamer.sim.errors import ScenarioError

LOST_ON_WAY, DUPLICATED, PARTED, OVERFLOWED, FULL_UP, FULL_DOWN = 0, 1, 2, 3, 4, 5
COUNTS = 6

# Added to the kind of a record while it waits in its addressee's input queue.
IN_SERVICE = 1 << 24
# Added while it comes in over the addressee's link; more than IN_SERVICE, so that whoever asks
# whether a record waits at its addressee need not tell the two apart.
IN_TRANSFER = IN_SERVICE + (1 << 23)
# Added to the kind of a record that a partition has stopped, until its sender takes it.
STOPPED = 1 << 25

# The kind of a record that a node sends itself to take after a delay: the low bits of its first
# body word are the ticks. Whoever writes one keeps the delay at LONGEST_DELAY or below.
LATER = USER - 1
DELAY_BITS = 48
LONGEST_DELAY = 1 << 46
_DELAY_MASK = (1 << DELAY_BITS) - 1

# What the draws of one message decide.
LOSS, LATENCY, DUPLICATION, LATENCY_OF_COPY, DRAWS = 0, 1, 2, 3, 4

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


class LossPeriod(NamedTuple):
    """A time during which another share of messages is lost.

    Attributes:
        begin, end: ticks, the end excluded.
        loss: probability that a message is lost that is sent meanwhile.
    """

    begin: int
    end: int
    loss: float


class LinkConditions(NamedTuple):
    """The network between n nodes and their input queues. See `make_link_conditions`.

    Attributes:
        seed: of all draws.
        latency: of messages and of reports that a node cannot be reached.
        loss, duplication: probabilities in units of 2^-62.
        sent: int64[n], messages sent so far, counted only where draws are made.
        losses: int64[k, 3], begin and end ticks, and the loss meanwhile; of several the last.
        bandwidth: of nodes' links into the network.
        windows: int64[k, 2], begin and end ticks of partitions.
        groups: int64[k, n], each node's group during them.
        service: int64[n], ticks that a node takes to serve a record; int64[0] for none.
        queue_limit: records that an input queue holds, the one in service included.
        free_at: int64[n], tick at which a node will have served what it holds.
        waiting, longest: int64[n], records in the input queue, now and at most so far.
        counts: int64[COUNTS]: messages lost, duplicated, stopped by a partition, and refused by a
            full input queue, a full link up, and a full link down.
    """

    seed: int
    latency: Latency
    loss: int
    duplication: int
    sent: Int64s
    losses: Int64s
    bandwidth: Bandwidth
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
    loss_periods: Sequence[LossPeriod] = (),
    partitions: Sequence[Partition] = (),
    bandwidth: Bandwidth | None = None,
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
        loss_periods: when another share is lost.
        partitions: when messages between groups of nodes do not arrive. Where the network
            reports unreachable nodes they come back to their sender.
        bandwidth: of nodes' links into the network; they take no time by default.
        service_ticks: ticks a node takes to serve one message, for all nodes or int64[n]; it
            takes effect when it has been served. 0: nodes serve at once and do not queue.
        queue_limit: messages that a node holds, the one in service included; others are dropped.

    Raises:
        ScenarioError: a value is impossible.
    """
    check(0 <= loss <= 1, "loss", loss, "a probability from 0 to 1")
    check(0 <= duplication <= 1, "duplication", duplication, "a probability from 0 to 1")
    check(queue_limit >= 1, "queue_limit", queue_limit, "a whole number of at least 1")
    sites = 0 if latency is None else len(latency.site)
    check(sites in (0, nodes), "latency", sites, f"sites of {nodes} nodes, or none")
    for period in loss_periods:
        check(0 <= period.begin < period.end, "loss period", period[:2], "a begin before its end")
        check(0 <= period.loss <= 1, "loss", period.loss, "a probability from 0 to 1")
    for part in partitions:
        check(0 <= part.begin < part.end, "partition", part[:2], "a begin before its end")
        check(part.groups.shape == (nodes,), "groups", part.groups.shape, f"({nodes},)")
    service = np.array(np.broadcast_to(service_ticks, nodes), np.int64)
    check(bool((service >= 0).all()), "service_ticks", service.min(), "at least 0")
    queues = nodes if service.any() else 0
    groups = [np.asarray(part.groups, np.int64) for part in partitions]
    return LinkConditions(
        seed=seed,
        latency=latency or no_latency(),
        loss=round(loss * _ONE),
        duplication=round(duplication * _ONE),
        sent=np.zeros(nodes, np.int64),
        losses=np.array(
            [(begin, end, round(share * _ONE)) for begin, end, share in loss_periods], np.int64
        ).reshape(-1, 3),
        bandwidth=bandwidth or make_bandwidth(nodes),
        windows=np.array([part[:2] for part in partitions], np.int64).reshape(-1, 2),
        groups=np.array(groups, np.int64).reshape(-1, nodes),
        service=service[:queues],
        queue_limit=queue_limit,
        free_at=np.zeros(queues, np.int64),
        waiting=np.zeros(queues, np.int64),
        longest=np.zeros(queues, np.int64),
        counts=np.zeros(COUNTS, np.int64),
    )


def check(holds: bool, field: str, value: object, expected: str) -> None:
    """Raise `ScenarioError` about a field unless it holds."""
    if not holds:
        raise ScenarioError(None, field, value, expected)


@inline_rule
def next_draws(links: LinkConditions, source: int) -> Any:
    """The counter of the first draw for the next message of ``source``."""
    drawn = links.loss > 0 or links.duplication > 0 or links.latency.spread > 0
    if not drawn and len(links.losses) == 0:
        return 0
    links.sent[source] += 1
    return links.sent[source] * DRAWS


@inline_rule
def loss_at(links: LinkConditions, tick: int) -> Any:
    """The probability that a message is lost that is sent at ``tick``, in units of 2^-62."""
    loss = links.loss
    for k in range(len(links.losses)):
        if links.losses[k, 0] <= tick and tick < links.losses[k, 1]:
            loss = links.losses[k, 2]
    return loss


@inline_rule
def are_parted(links: LinkConditions, source: int, to: int, tick: int) -> Any:
    """Whether a partition lies between two nodes at ``tick``."""
    for k in range(len(links.windows)):
        during = links.windows[k, 0] <= tick and tick < links.windows[k, 1]
        if during and links.groups[k, source] != links.groups[k, to]:
            return True
    return False


@inline_rule
def delay_ticks(words: Words, at: int) -> Any:
    """Ticks after which a node takes the record at ``words[at:]``, which it has sent itself."""
    return words[at + BODY] & _DELAY_MASK if words[at + KIND] == LATER else 0


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
        push(queue, tick + delay_ticks(words, at), words, at)
        return
    leaves = ticks_to_leave(links.bandwidth, source, tick, words, at)
    if leaves < 0:
        links.counts[FULL_UP] += 1
        return
    leaves += tick
    draws = next_draws(links, source)
    loss = loss_at(links, tick)
    if loss > 0 and mix(links.seed, source, draws + LOSS) < loss:
        links.counts[LOST_ON_WAY] += 1
        return
    arrives = leaves + trip_ticks(links.latency, source, to, links.seed, draws + LATENCY)
    if are_parted(links, source, to, tick):
        links.counts[PARTED] += 1
        if reports:
            # Its sender draws the way back as well: it knows no more of the addressee than that.
            back = next_draws(links, source)
            arrives += trip_ticks(links.latency, to, source, links.seed, back + LATENCY)
            words[at + KIND] += UNREACHABLE + STOPPED
            push(queue, arrives, words, at)
        return
    push(queue, arrives, words, at)
    if links.duplication > 0 and (mix(links.seed, source, draws + DUPLICATION) < links.duplication):
        links.counts[DUPLICATED] += 1
        copy = trip_ticks(links.latency, source, to, links.seed, draws + LATENCY_OF_COPY)
        push(queue, leaves + copy, words, at)


@inline_rule
def return_ticks(links: LinkConditions, words: Words, at: int) -> Any:
    """Ticks that a report takes from the addressee of a record back to its sender."""
    back_from = words[at + TO]
    draws = next_draws(links, back_from)
    return trip_ticks(links.latency, back_from, words[at + FROM], links.seed, draws + LATENCY)


@inline_rule
def come_in(links: LinkConditions, queue: EventQueue, slot: int, p: int) -> Any:
    """Let the record in ``slot`` pass node p's link; returns False if its queue is full."""
    tick = queue.marks[NOW]
    ticks = ticks_to_enter(links.bandwidth, p, tick, queue.words, slot + RECORD)
    if ticks < 0:
        links.counts[FULL_DOWN] += 1
        return False
    queue.words[slot + RECORD + KIND] += IN_TRANSFER
    enlist(queue, slot, tick + ticks)
    return True


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


# Whether what a step has written can be passed on, and what is wrong with it where it cannot.
#
# Engines look at every record once, when the step that wrote it has ended: they index by its words,
# so a wrong one would write into foreign memory.


@inline_rule
def is_sound(words: Words, at: int, end: int, population: int) -> Any:
    """Whether the record at ``words[at:end]``, or more records from there, begins as one should."""
    length, kind = words[at + LENGTH], words[at + KIND]
    to, source = words[at + TO], words[at + FROM]
    return (
        length >= BODY
        and length <= end - at
        and kind > 0
        and kind < UNREACHABLE
        and to >= 0
        and to < population
        and source >= 0
        and source < population
    )


@inline_rule
def all_closed(out: Outbox, first: int) -> Any:
    """Whether a step that began to write at ``first`` has finished every record it opened."""
    tail = out.cursor[TAIL]
    return out.cursor[OPEN] == 0 and first <= tail and tail <= len(out.words)


@inline_rule
def find_fault(out: Outbox, first: int, population: int) -> Any:
    """Where the first wrong record from offset ``first`` on begins, -1 where there is none."""
    if not all_closed(out, first):
        return first
    at = first
    while at < out.cursor[TAIL]:
        if not is_sound(out.words, at, out.cursor[TAIL], population):
            return at
        at += out.words[at + LENGTH]
    return -1


def fault_at(out: Outbox, at: int, population: int) -> RecordError:
    """The error that says what is wrong with the record that begins at offset ``at``."""
    opened = int(out.cursor[OPEN])
    if opened > 0:
        at = opened - 1
    at = min(max(at, 0), len(out.words) - BODY)
    header = [int(word) for word in out.words[at : at + BODY]]
    if opened > 0:
        fault = "it was opened and never closed, expected close_record before the step ends"
    elif opened < 0:
        fault = (
            "records were opened and closed in turns or closed with less than a header, "
            "expected each closed with its body words before the next is opened"
        )
    else:
        fault = _fault_of(header, int(out.cursor[TAIL]) - at, population)
    return RecordError(header[KIND], header[FROM], header[TO], population, fault)


def _fault_of(header: list[int], room: int, population: int) -> str:
    highest = population - 1
    if not 0 <= header[TO] <= highest:
        return f"TO is {header[TO]}, expected a peer from 0 to {highest}"
    if not 0 <= header[FROM] <= highest:
        return f"FROM is {header[FROM]}, expected a peer from 0 to {highest}"
    if not 0 < header[KIND] < UNREACHABLE:
        return f"KIND is {header[KIND]}, expected 1 to {UNREACHABLE - 1}"
    return f"LENGTH is {header[LENGTH]}, expected {BODY} to {max(room, BODY)}"


def check_command(record: Words, population: int) -> None:
    """Refuse a record that a host hands in, before anything happens.

    Raises:
        ValueError: it is not as long as it says.
        RecordError: it is to or from a peer that there is not.
    """
    if len(record) < BODY or record[LENGTH] != len(record):
        raise ValueError(f"record of {len(record)} words, expected as many as it says")
    header = [int(word) for word in record[:BODY]]
    if not (0 <= header[TO] < population and 0 <= header[FROM] < population):
        fault = _fault_of(header, len(record), population)
        raise RecordError(header[KIND], header[FROM], header[TO], population, fault)
