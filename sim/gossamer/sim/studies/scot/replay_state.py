"""The columns that the rules of `replay_loop` run on, and the places in them.

An event is a whole number: what happens in its two lowest bits, to which message or publication in
the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

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
