"""The compiled loop of a replay: events in order of time, by decisions that brokers have taken.

It keeps the time of `network`: input queues, output queues, links and windows, with the same ties.
What a broker does with a notification it looks up; where it finds nothing it returns, and whoever
called it asks the broker and calls again.

An event is a whole number: what happens in its two lowest bits, to which message or publication in
the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.kernel.rules import inline_rule, rule

keep_compiled_code()

Int64s = npt.NDArray[np.int64]

# What happens: a message reaches a broker; a broker has worked on a message, or on a publication of
# a client; a window ends.
ARRIVES, WORKED_ON, PUBLISHED, WINDOW_ENDS = 0, 1, 2, 3

# Why the loop returns: nothing is left; a broker is to be asked; a column is full; brokers are to
# be told of their queues.
IDLE, UNDECIDED, FULL, WINDOW = 0, 1, 2, 3

# Places in the registers.
(
    NOW,
    PUSHED,
    WAITING,
    FREE,
    USED,
    NEXT,
    PENDING,
    WINDOW_SET,
    IN_USE,
    DELIVERIES,
    WINDOWS,
    REPORTS,
    MESSAGES,
    REGISTERS,
) = range(14)


class Fixed(NamedTuple):
    """What does not change in a run.

    Attributes:
        at, broker, shape, marked: of each publication, in order of time: when and where it comes,
            what it is, and whether it belongs to the burst.
        ends: int64[links, 2], the broker that each link in one direction leads from, and to.
        costs: latency, gap, uplink_gap, window; microseconds.
        work: int64[brokers], how long each works on what a client sends; microseconds.
        spread: int64[draws], thousandths by which such times are multiplied, see
            `network.spread_of`.
    """

    at: Int64s
    broker: Int64s
    shape: Int64s
    marked: Int64s
    ends: Int64s
    costs: Int64s
    work: Int64s
    spread: Int64s


LATENCY, GAP, UPLINK_GAP, WINDOW_LENGTH = range(4)


class Decisions(NamedTuple):
    """What brokers do with messages of a shape that come by a link, or from a client.

    Attributes:
        keys: int64[size, 3], a hash table: origin (-1: free), shape, decision.
        rows: int64[decisions, 5]: revision of the broker when it took it, first copy, number of
            copies, clients that the notification is handed to, how often it was replayed.
        copies: int64[copies, 4]: link, shape, time on the link beyond the usual, work at its end.
    """

    keys: Int64s
    rows: Int64s
    copies: Int64s


REVISION, FIRST, COPIES, CLIENTS, USES = range(5)
LINK, SHAPE, ADDED, WORK_THERE = range(4)


class Flow(NamedTuple):
    """What changes.

    Attributes:
        registers: int64[REGISTERS].
        heap: int64[capacity, 3]: time, order of insertion, event.
        messages: int64[capacity, 5], under way: link, shape, publication, when it leaves, and the
            next one in its output queue, or of those that are free.
        work: time that brokers work on each.
        brokers: int64[brokers, 4]: when the input queue is worked off, when the uplink is free, how
            often what the broker decides changed, and how many messages it has taken in.
        links: int64[links, 9], see the places below.
        in_use: int64[links], links whose queues are looked at when a window ends.
        deliveries: int64[capacity, 3]: publication, time, clients.
        windows: int64[capacity, 4]: time, longest output queue, messages in all of them, messages
            in those on the ways of the burst.
        reports: int64[links, 4]: link, length, entered, left.
        last: int64[publications], when a broker last worked on each.
    """

    registers: Int64s
    heap: Int64s
    messages: Int64s
    work: Int64s
    brokers: Int64s
    links: Int64s
    in_use: Int64s
    deliveries: Int64s
    windows: Int64s
    reports: Int64s
    last: Int64s


FREE_AT, UPLINK_AT, REVISION_NOW, TAKEN = range(4)
MESSAGE_LINK, MESSAGE_SHAPE, PUBLICATION, LEAVES, FOLLOWING = range(5)
# Of a link: when it is free, first and last message in its queue (-1: none), how many, entered and
# left in this window, whether it is in use, the length last told, and whether the burst used it.
LINK_FREE_AT, HEAD, TAIL, LENGTH, ENTERED, LEFT, USED_NOW, TOLD, MARKED = range(9)


@inline_rule
def push(flow: Flow, time: int, event: int) -> None:
    """Schedule an event; the caller has made sure of the room."""
    heap, place = flow.heap, flow.registers[WAITING]
    order = flow.registers[PUSHED]
    flow.registers[PUSHED] = order + 1
    flow.registers[WAITING] = place + 1
    while place > 0:
        above = (place - 1) >> 1
        if heap[above, 0] <= time:
            break
        heap[place, 0] = heap[above, 0]
        heap[place, 1] = heap[above, 1]
        heap[place, 2] = heap[above, 2]
        place = above
    heap[place, 0] = time
    heap[place, 1] = order
    heap[place, 2] = event


@inline_rule
def pop(flow: Flow) -> Any:
    """Take the earliest event, of equal ones that scheduled first."""
    heap = flow.heap
    flow.registers[NOW] = heap[0, 0]
    event = heap[0, 2]
    last = flow.registers[WAITING] - 1
    flow.registers[WAITING] = last
    time, order, moved = heap[last, 0], heap[last, 1], heap[last, 2]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        other = below + 1
        if other < last and (
            heap[other, 0] < heap[below, 0]
            or (heap[other, 0] == heap[below, 0] and heap[other, 1] < heap[below, 1])
        ):
            below = other
        if time < heap[below, 0] or (time == heap[below, 0] and order < heap[below, 1]):
            break
        heap[place, 0] = heap[below, 0]
        heap[place, 1] = heap[below, 1]
        heap[place, 2] = heap[below, 2]
        place = below
    heap[place, 0] = time
    heap[place, 1] = order
    heap[place, 2] = moved
    return event


@inline_rule
def expire(flow: Flow, link: int) -> None:
    """Let go what has left the output queue of a link."""
    links, messages, now = flow.links, flow.messages, flow.registers[NOW]
    head = links[link, HEAD]
    while head >= 0 and messages[head, LEAVES] <= now:
        head = messages[head, FOLLOWING]
        links[link, LENGTH] -= 1
        links[link, LEFT] += 1
    links[link, HEAD] = head
    if head < 0:
        links[link, TAIL] = -1


@inline_rule
def place_of(decisions: Decisions, origin: int, shape: int) -> Any:
    """The place of a key in the hash table, or the free one where it belongs."""
    keys = decisions.keys
    mask = len(keys) - 1
    place = (origin * 7919 + shape * 104729 + (shape >> 7)) & mask
    while keys[place, 0] >= 0 and (keys[place, 0] != origin or keys[place, 1] != shape):
        place = (place + 1) & mask
    return place


@inline_rule
def take_in(fixed: Fixed, flow: Flow, broker: int, work: int, event: int) -> None:
    """Let a message wait for its broker, which works on it for so long, times its draw."""
    now = flow.registers[NOW]
    begins = max(flow.brokers[broker, FREE_AT], now)
    draw = 7919 * broker + flow.brokers[broker, TAKEN]
    flow.brokers[broker, TAKEN] += 1
    ends = begins + work * fixed.spread[draw % len(fixed.spread)] // 1_000
    flow.brokers[broker, FREE_AT] = ends
    push(flow, ends, event)


@inline_rule
def transmit(
    fixed: Fixed, flow: Flow, decisions: Decisions, copy: int, broker: int, publication: int
) -> None:
    """Put a copy into the output queue of its link."""
    now = flow.registers[NOW]
    link = decisions.copies[copy, LINK]
    added = decisions.copies[copy, ADDED]
    uplink = max(flow.brokers[broker, UPLINK_AT], now) + fixed.costs[UPLINK_GAP] + added
    flow.brokers[broker, UPLINK_AT] = uplink
    free = max(flow.links[link, LINK_FREE_AT], now) + fixed.costs[GAP] + added
    leaves = max(free, uplink)
    message = flow.registers[FREE]
    if message >= 0:
        flow.registers[FREE] = flow.messages[message, FOLLOWING]
    else:
        message = flow.registers[USED]
        flow.registers[USED] = message + 1
    flow.registers[MESSAGES] += 1
    flow.messages[message, MESSAGE_LINK] = link
    flow.messages[message, MESSAGE_SHAPE] = decisions.copies[copy, SHAPE]
    flow.messages[message, PUBLICATION] = publication
    flow.messages[message, LEAVES] = leaves
    flow.messages[message, FOLLOWING] = -1
    flow.work[message] = decisions.copies[copy, WORK_THERE]
    tail = flow.links[link, TAIL]
    if tail >= 0:
        flow.messages[tail, FOLLOWING] = message
    else:
        flow.links[link, HEAD] = message
    flow.links[link, TAIL] = message
    flow.links[link, LINK_FREE_AT] = leaves
    flow.links[link, LENGTH] += 1
    flow.links[link, ENTERED] += 1
    if fixed.marked[publication]:
        flow.links[link, MARKED] = 1
    if flow.links[link, USED_NOW] == 0:
        flow.links[link, USED_NOW] = 1
        flow.in_use[flow.registers[IN_USE]] = link
        flow.registers[IN_USE] += 1
    push(flow, leaves + fixed.costs[LATENCY], message * 4 + ARRIVES)
    if flow.registers[WINDOW_SET] == 0:
        flow.registers[WINDOW_SET] = 1
        length = fixed.costs[WINDOW_LENGTH]
        push(flow, (now // length + 1) * length, WINDOW_ENDS)


@inline_rule
def end_window(fixed: Fixed, flow: Flow) -> None:
    """Look at the output queues; list those that brokers are to be told of."""
    registers, links = flow.registers, flow.links
    longest, total, marked, kept = 0, 0, 0, 0
    registers[REPORTS] = 0
    for place in range(registers[IN_USE]):
        link = flow.in_use[place]
        expire(flow, link)
        length, entered, left = links[link, LENGTH], links[link, ENTERED], links[link, LEFT]
        longest = max(longest, length)
        total += length
        marked += length * links[link, MARKED]
        # An empty queue that was empty before has no load, then as now.
        if length > 0 or links[link, TOLD] > 0:
            report = registers[REPORTS]
            registers[REPORTS] = report + 1
            flow.reports[report, 0] = link
            flow.reports[report, 1] = length
            flow.reports[report, 2] = entered
            flow.reports[report, 3] = left
            links[link, TOLD] = length
        links[link, ENTERED] = 0
        links[link, LEFT] = 0
        if length > 0 or entered > 0 or left > 0:
            flow.in_use[kept] = link
            kept += 1
        else:
            links[link, USED_NOW] = 0
    registers[IN_USE] = kept
    window = registers[WINDOWS]
    registers[WINDOWS] = window + 1
    flow.windows[window, 0] = registers[NOW]
    flow.windows[window, 1] = longest
    flow.windows[window, 2] = total
    flow.windows[window, 3] = marked
    registers[WINDOW_SET] = 0
    if kept > 0:
        registers[WINDOW_SET] = 1
        push(flow, registers[NOW] + fixed.costs[WINDOW_LENGTH], WINDOW_ENDS)


@rule
def enter_keys(keys: Int64s, decisions: Decisions) -> None:
    """Enter all keys of a hash table into a larger one."""
    for place in range(len(keys)):
        if keys[place, 0] >= 0:
            other = place_of(decisions, keys[place, 0], keys[place, 1])
            for column in range(3):
                decisions.keys[other, column] = keys[place, column]


@inline_rule
def publication_is_next(fixed: Fixed, flow: Flow) -> Any:
    """Whether a client's message comes before all other events, or with the earliest of them."""
    following = flow.registers[NEXT]
    return following < len(fixed.at) and (
        flow.registers[WAITING] == 0 or fixed.at[following] <= flow.heap[0, 0]
    )


@inline_rule
def publication_arrives(fixed: Fixed, flow: Flow) -> None:
    """The next message of a client reaches its broker."""
    publication = flow.registers[NEXT]
    flow.registers[NEXT] = publication + 1
    flow.registers[NOW] = fixed.at[publication]
    broker = fixed.broker[publication]
    take_in(fixed, flow, broker, fixed.work[broker], publication * 4 + PUBLISHED)


@inline_rule
def message_arrives(fixed: Fixed, flow: Flow, message: int) -> None:
    """A message has crossed its link."""
    link = flow.messages[message, MESSAGE_LINK]
    expire(flow, link)
    take_in(fixed, flow, fixed.ends[link, 1], flow.work[message], message * 4 + WORKED_ON)


@inline_rule
def matter_of(fixed: Fixed, flow: Flow, event: int) -> Any:
    """What a broker has worked on: broker, origin, shape, publication."""
    which = event >> 2
    if event & 3 == PUBLISHED:
        broker = fixed.broker[which]
        return broker, broker, fixed.shape[which], which
    link = flow.messages[which, MESSAGE_LINK]
    shape, publication = flow.messages[which, MESSAGE_SHAPE], flow.messages[which, PUBLICATION]
    return fixed.ends[link, 1], len(flow.brokers) + link, shape, publication


@inline_rule
def has_room(flow: Flow, copies: int) -> Any:
    """Whether a decision with so many copies can be carried out."""
    registers = flow.registers
    return (
        registers[WAITING] + copies + 2 <= len(flow.heap)
        and registers[USED] + copies <= len(flow.messages)
        and registers[DELIVERIES] < len(flow.deliveries)
    )


@inline_rule
def carry_out(
    fixed: Fixed, flow: Flow, decisions: Decisions, decision: int, broker: int, publication: int
) -> None:
    """Do what a broker has decided."""
    now, row = flow.registers[NOW], decisions.rows[decision]
    row[USES] += 1
    flow.last[publication] = now
    if row[CLIENTS] > 0:
        delivery = flow.registers[DELIVERIES]
        flow.registers[DELIVERIES] = delivery + 1
        flow.deliveries[delivery, 0] = publication
        flow.deliveries[delivery, 1] = now
        flow.deliveries[delivery, 2] = row[CLIENTS]
    for copy in range(row[FIRST], row[FIRST] + row[COPIES]):
        transmit(fixed, flow, decisions, copy, broker, publication)


@rule
def run_events(fixed: Fixed, flow: Flow, decisions: Decisions) -> Any:
    """Let things happen until nothing is left or the caller is needed; returns why.

    With UNDECIDED and FULL the event is kept as PENDING, and is taken up by the next call.
    """
    registers = flow.registers
    while True:
        if registers[WAITING] + 2 > len(flow.heap) or registers[WINDOWS] >= len(flow.windows):
            return FULL
        event = registers[PENDING]
        if event < 0:
            if publication_is_next(fixed, flow):
                publication_arrives(fixed, flow)
                continue
            if registers[WAITING] == 0:
                return IDLE
            event = pop(flow)
        what = event & 3
        if what == ARRIVES:
            message_arrives(fixed, flow, event >> 2)
        elif what == WINDOW_ENDS:
            end_window(fixed, flow)
            if registers[REPORTS] > 0:
                return WINDOW
        else:
            registers[PENDING] = event
            broker, origin, shape, publication = matter_of(fixed, flow, event)
            place = place_of(decisions, origin, shape)
            decision = decisions.keys[place, 2]
            revision = flow.brokers[broker, REVISION_NOW]
            if decisions.keys[place, 0] < 0 or decisions.rows[decision, REVISION] != revision:
                return UNDECIDED
            if not has_room(flow, decisions.rows[decision, COPIES]):
                return FULL
            registers[PENDING] = -1
            if what == WORKED_ON:
                flow.messages[event >> 2, FOLLOWING] = registers[FREE]
                registers[FREE] = event >> 2
            carry_out(fixed, flow, decisions, decision, broker, publication)
