"""The observer of a run: counts what every event cost and whom it reached.

A collector sees every record that a node takes. It stands outside the protocol and may therefore
know what no peer does: who ought to get an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.records import BODY, FROM, KIND, LENGTH, TO
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.record_table.records import (
    CATCH_UP,
    DELIVER,
    EVENT_ID,
    EVENT_MESSAGES,
    EVENT_VALUES,
    HELD,
    INSTALL_TIMER,
    JOIN,
    LINK_BROKE,
    NOT_PUBLISHED,
    OVERLAY_TIMER,
    PUBLISH,
    PUBLISHED,
    ROUNDS_SKIPPED,
    SAMPLE_TIMER,
    TABLE,
    WITHDRAW,
)
from gossamer.protocol.peer.rendezvous.delivery import is_false_positive
from gossamer.protocol.peer.sampling.sampler import FAMILY
from gossamer.protocol.peer.state.routing_table import is_interested
from gossamer.protocol.peer.state.state import State
from gossamer.sim.engine.latency import WORD_BYTES, Sizes, make_sizes
from gossamer.sim.engine.windows.worker_pool import Collectors
from gossamer.sim.studies.peers.measuring.records import TRAFFIC_COLUMNS, TrafficTables
from gossamer.sim.study.records import Table, message_table, table_of_rows

Int64s = npt.NDArray[np.int64]

KINDS = 64
# Columns of `Collector.costs`, in the order of the events table.
RECEIVED, UNINTERESTED, FALSE_POSITIVES = 0, 1, 2
COSTS = ("received", "uninterested", "false_positives")

# Records that are no control messages: timers, commands, events and effects.
NOT_CONTROL = (
    *(SAMPLE_TIMER, OVERLAY_TIMER, INSTALL_TIMER),
    *(JOIN, PUBLISH, WITHDRAW, CATCH_UP, LINK_BROKE, ROUNDS_SKIPPED),
    *EVENT_MESSAGES,
    *(DELIVER, PUBLISHED, NOT_PUBLISHED, HELD),
)
# Those of them that nodes do not send each other.
NO_MESSAGES = tuple(kind for kind in NOT_CONTROL if kind not in EVENT_MESSAGES and kind < KINDS)
LOG_EVENT, LOG_NODE, LOG_HOPS, LOG_TREE_HOPS, LOG_CYCLE = 0, 1, 2, 3, 4
WRITTEN, UNWRITTEN = 0, 1
# Columns of `Collector.messages`.
COUNT, SIZE = 0, 1


class Collector(Struct):
    """What the observer writes; n nodes, ``slots`` events watched at a time.

    Messages may come long after the event they carry, and count all the same.

    Attributes:
        watched: int64[slots], the event in each slot (its number modulo slots), -1 none.
        reached: bool[slots, n], who the event in a slot was delivered to.
        burdens: bool[slots, n], who took it without interest.
        costs: int64[events, COSTS], by event, messages received with it, of these uninterested,
            and those that nothing at or below their receiver asked for.
        kinds: int64[64], records taken, by kind.
        messages: int64[64, 2], those of them that came from another node, and their bytes.
        sent_bytes, received_bytes: int64[n], of messages that others took from a node, and that it
            took.
        received, uninterested, forwarded: int64[n], event messages a node took and caused.
        burdened: int64[n], events that a node took without interest in them, each counted once
            while it is watched.
        log: int64[rows, 5], all deliveries, also second ones: event, node, hops, hops from the
            rendezvous node, cycle.
        logged: int64[2], rows written, and rows that found no room.
    """

    watched: Int64s
    reached: npt.NDArray[np.bool_]
    burdens: npt.NDArray[np.bool_]
    costs: Int64s
    kinds: Int64s
    messages: Int64s
    sent_bytes: Int64s
    received_bytes: Int64s
    received: Int64s
    uninterested: Int64s
    forwarded: Int64s
    burdened: Int64s
    log: Int64s
    logged: Int64s


def make_collector(nodes: int, slots: int, events: int, log_rows: int) -> Collector:
    """A collector that has seen nothing, for events numbered below ``events``."""
    return Collector(
        watched=np.full(slots, -1, np.int64),
        reached=np.zeros((slots, nodes), np.bool_),
        burdens=np.zeros((slots, nodes), np.bool_),
        costs=np.zeros((events, len(COSTS)), np.int64),
        kinds=np.zeros(KINDS, np.int64),
        messages=np.zeros((KINDS, 2), np.int64),
        sent_bytes=np.zeros(nodes, np.int64),
        received_bytes=np.zeros(nodes, np.int64),
        received=np.zeros(nodes, np.int64),
        uninterested=np.zeros(nodes, np.int64),
        forwarded=np.zeros(nodes, np.int64),
        burdened=np.zeros(nodes, np.int64),
        log=np.zeros((log_rows, 5), np.int64),
        logged=np.zeros(2, np.int64),
    )


@rule
def observe(c: Any, s: State, words: Any, at: int, now: int) -> None:
    """Count one record; the observer that engines call."""
    kind = words[at + KIND]
    if kind >= KINDS:
        return
    c.kinds[kind] += 1
    source, node = words[at + FROM], words[at + TO]
    if source != node:
        size = WORD_BYTES * words[at + LENGTH]
        c.messages[kind, COUNT] += 1
        c.messages[kind, SIZE] += size
        c.sent_bytes[source] += size
        c.received_bytes[node] += size
    if kind in EVENT_MESSAGES:
        observe_event(c, s, words, at)
    elif kind == DELIVER:
        observe_delivery(c, words, at, now)


@rule
def observe_event(c: Any, s: State, words: Any, at: int) -> None:
    """Count an event message and, if its receiver does not want it, the burden."""
    event = words[at + BODY + EVENT_ID]
    node = words[at + TO]
    wanted = is_interested(s, node, words, at + BODY + EVENT_VALUES)
    if not wanted:
        c.costs[event, FALSE_POSITIVES] += is_false_positive(s, node, words, at)
    count_copy(c, event, words[at + FROM], node, wanted)


@rule
def count_copy(c: Any, event: int, source: int, node: int, wanted: bool) -> None:
    """Count a message that brings a node an event, which its subscriptions match or do not."""
    c.costs[event, RECEIVED] += 1
    c.received[node] += 1
    c.forwarded[source] += 1
    if not wanted:
        c.costs[event, UNINTERESTED] += 1
        c.uninterested[node] += 1
        slot = event % c.watched.shape[0]
        if c.watched[slot] != event:
            c.burdened[node] += 1
        elif not c.burdens[slot, node]:
            c.burdens[slot, node] = True
            c.burdened[node] += 1


@rule
def observe_delivery(c: Any, words: Any, at: int, now: int) -> None:
    """Count the delivery that a record tells of."""
    hops, tree_hops = words[at + BODY + 1], words[at + BODY + 2]
    count_delivery(c, words[at + BODY], words[at + TO], hops, tree_hops, now)


@rule
def count_delivery(c: Any, event: int, node: int, hops: int, tree_hops: int, now: int) -> None:
    """Log a delivery, and note whom a watched event has reached."""
    slot = event % c.watched.shape[0]
    if c.watched[slot] == event:
        c.reached[slot, node] = True
    row = c.logged[WRITTEN]
    if row == c.log.shape[0]:
        c.logged[UNWRITTEN] += 1
        return
    c.log[row, LOG_EVENT] = event
    c.log[row, LOG_NODE] = node
    c.log[row, LOG_HOPS] = hops
    c.log[row, LOG_TREE_HOPS] = tree_hops
    c.log[row, LOG_CYCLE] = now
    c.logged[WRITTEN] = row + 1


# The collector when several threads observe, and the order of its log.
#
# What an observer writes in rows of the taking node all threads share. Counts of events and kinds,
# the log, and whose messages were forwarded each thread has of its own.


_SUMS = ("costs", "kinds", "messages", "sent_bytes", "forwarded")
_LOG = ("log", "logged")


class CollectorParts(Collectors):
    """Divides a `Collector`, and brings its log in an order that no thread has a say in."""

    def __init__(self) -> None:
        self._logs: list[npt.NDArray[np.int64]] = []

    def part(self, whole: Collector) -> Collector:
        """A collector for one thread."""
        own = {name: np.zeros_like(getattr(whole, name)) for name in (*_SUMS, *_LOG)}
        shared = {name: getattr(whole, name) for name in Collector.__annotations__}
        return Collector(**(shared | own))

    def end_window(self, whole: Collector, parts: list[Collector]) -> None:
        """Keep what the threads have logged, window by window."""
        for part in parts:
            if part is not whole and part.logged[WRITTEN]:
                self._logs.append(part.log[: part.logged[WRITTEN]].copy())
                part.logged[WRITTEN] = 0

    def gather(self, whole: Collector, parts: list[Collector]) -> None:
        """Add up the threads' counts, and bring the log in order."""
        for part in parts:
            if part is whole:
                continue
            for name in _SUMS:
                own = getattr(part, name)
                getattr(whole, name)[...] += own
                own[...] = 0
            whole.logged[UNWRITTEN] += part.logged[UNWRITTEN]
            part.logged[UNWRITTEN] = 0
        for rows in self._logs:
            written = int(whole.logged[WRITTEN])
            kept = rows[: len(whole.log) - written]
            whole.log[written : written + len(kept)] = kept
            whole.logged[WRITTEN] += len(kept)
            whole.logged[UNWRITTEN] += len(rows) - len(kept)
        self._logs.clear()
        sort_log(whole)


def sort_log(collector: Collector) -> None:
    """Sort the log by node; what one node took stays in order of time, in which it was logged."""
    log = collector.log[: collector.logged[WRITTEN]]
    log[:] = log[np.argsort(log[:, LOG_NODE], kind="stable")]


# What the messages of peers come to in bytes.


def record_sizes() -> Sizes:
    """A message is its record, header and body, a word of 8 bytes each."""
    base = np.full(KINDS, BODY * WORD_BYTES)
    base[list(NO_MESSAGES)] = -1
    return make_sizes(base, np.zeros(KINDS))


class TrafficLog:
    """Keeps the traffic of every round."""

    def __init__(self, round_s: float) -> None:
        self._round_s = round_s
        self._before = np.zeros(2, np.int64)
        self._rows: list[tuple[float, ...]] = []

    def note(self, total: Int64s, population: int) -> None:
        """Note messages and bytes taken so far, int64[2], as a round is over with so many up."""
        cycle = len(self._rows)
        count, size = (total - self._before).tolist()
        node_s = population * self._round_s
        self._rows.append((cycle, (cycle + 1) * self._round_s, node_s, count, size))
        self._before = total

    def tables(
        self, messages: Table, sent: Int64s, received: Int64s, fates: Mapping[str, int]
    ) -> TrafficTables:
        """What there is so far.

        Args:
            messages: of `messages_by_kind`, or such a one.
            sent, received: int64[n], bytes that others took from a node, and that it took.
            fates: of messages that were not taken as sent.
        """
        return TrafficTables(
            messages=messages,
            rounds=table_of_rows(self._rows, TRAFFIC_COLUMNS),
            nodes={
                "node": np.arange(len(received), dtype=np.int32),
                "sent_bytes": sent.copy(),
                "received_bytes": received.copy(),
            },
            fates=fates,
        )


def messages_by_kind(collector: Collector) -> Table:
    """The table of messages that were taken, a row a kind."""
    sampled = (kind for one in FAMILY for kind in one.records)
    names = {kind.number: kind.name.lower() for kind in (*TABLE, *sampled)}
    kinds = sorted(np.flatnonzero(collector.messages[:, COUNT]).tolist())
    shown = [names.get(kind, f"kind {kind}") for kind in kinds]
    count, size_bytes = (collector.messages[kinds, column] for column in (COUNT, SIZE))
    return message_table(shown, count, size_bytes)
