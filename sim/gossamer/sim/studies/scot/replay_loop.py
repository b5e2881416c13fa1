"""The compiled loop of a replay: events in order of time, by decisions that brokers have taken.

It keeps the time of `network`: input queues, output queues, links and windows, with the same ties.
What a broker does with a notification it looks up; where it finds nothing it returns, and whoever
called it asks the broker and calls again.
"""

from __future__ import annotations

from typing import Any

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.sim.studies.scot.replay_state import (
    ADDED,
    ARRIVES,
    CLIENTS,
    COPIES,
    DELIVERIES,
    ENTERED,
    FIRST,
    FOLLOWING,
    FREE,
    FREE_AT,
    FULL,
    GAP,
    HEAD,
    IDLE,
    IN_USE,
    LATENCY,
    LEAVES,
    LEFT,
    LENGTH,
    LINK,
    LINK_FREE_AT,
    MARKED,
    MESSAGE_LINK,
    MESSAGE_SHAPE,
    MESSAGES,
    NEXT,
    NOW,
    PENDING,
    PUBLICATION,
    PUBLISHED,
    PUSHED,
    REPORTS,
    REVISION,
    REVISION_NOW,
    SHAPE,
    TAIL,
    TAKEN,
    TOLD,
    UNDECIDED,
    UPLINK_AT,
    UPLINK_GAP,
    USED,
    USED_NOW,
    USES,
    WAITING,
    WINDOW,
    WINDOW_ENDS,
    WINDOW_LENGTH,
    WINDOW_SET,
    WINDOWS,
    WORK_THERE,
    WORKED_ON,
    Decisions,
    Fixed,
    Flow,
    Int64s,
)

keep_compiled_code()


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
