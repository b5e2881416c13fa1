"""What one thread needs to run shards of rows: arrays of its own where others would write too."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.protocol.kernel.records import BODY, Outbox, Words, make_outbox
from gossamer.protocol.kernel.struct import CACHE_LINE_WORDS, WORD_BYTES, Struct
from gossamer.sim.engine.cycle_engine import Network
from gossamer.sim.engine.event_engine import check_rows
from gossamer.sim.engine.latency import Int64s
from gossamer.sim.engine.link_conditions import LinkConditions
from gossamer.sim.engine.windows.event_calendar import EventCalendar
from gossamer.sim.errors import ScenarioError

# Words of the place where a worker is: whether the entries of its shard have been collected; the
# row, and whether it has begun; the row's next entry and how many it has; its next timer; the tick;
# where its records to itself begin and end; where those of a later tick end and how many there are;
# words of a record, and entries of a shard, that were wanted and found no room.
COLLECTED, ROW, BEGUN, ENTRY, COUNT, TIMER, TICK = 0, 1, 2, 3, 4, 5, 6
OWN_HEAD, OWN_TAIL, LATER_TAIL, LATER_COUNT = 7, 8, 9, 10
WANTED, ENTRIES_WANTED, PLACES = 11, 12, 16

# Words of the row of an entry in `Worker.table`.
ENTRY_DUE, ENTRY_KEY, ENTRY_AT, ENTRY_NEXT, ENTRY_WORDS = 0, 1, 2, 3, 4

# Where in `Worker.own`, behind the record of a timer, records of the row to itself begin.
OWN_FIRST = 8
assert OWN_FIRST >= BODY


# The present round, the tick at which it began, and whether rules are told the tick rather than it.
ROUND, ROUND_BEGIN, TELLS_TICKS = 0, 1, 2


class Timers(Struct):
    """When timers fire, by row.

    Attributes:
        offsets: int64[n, T], ticks after the beginning of the round, ascending; NEVER for none.
        kinds: int64[n, T].
        round: int64[3], see ROUND.
    """

    offsets: Int64s
    kinds: Int64s
    round: Int64s


NEVER = 1 << 62


def make_timers(nodes: int, timers: int) -> Timers:
    """Timers of ``nodes`` rows, so many each, that never fire."""
    return Timers(
        offsets=np.full((nodes, timers), NEVER),
        kinds=np.zeros((nodes, timers), np.int64),
        round=np.zeros(3, np.int64),
    )


def write_timers(timers: Timers, kinds: Int64s, firing_ticks: Int64s, period: int) -> None:
    """Let timers fire at other ticks of a round, those of one tick in the order of their kinds.

    Args:
        timers: of n rows.
        kinds: int64[T], of a row's timers.
        firing_ticks: int64[m, T], of the first m rows; the others have none.
        period: ticks of a round.

    Raises:
        ScenarioError: a tick is not in the round, or there are more rows than n.
    """
    if firing_ticks.size and not 0 <= firing_ticks.min() <= firing_ticks.max() < period:
        wrong = (int(firing_ticks.min()), int(firing_ticks.max()))
        raise ScenarioError(None, "firing_ticks", wrong, f"0 to {period - 1}")
    nodes, rows = len(timers.offsets), len(firing_ticks)
    check_rows("firing_ticks", np.arange(min(rows, nodes + 1)), nodes)
    timers.offsets[rows:] = NEVER
    if firing_ticks.size:
        order = np.argsort(firing_ticks, axis=1, kind="stable")
        timers.offsets[:rows] = np.take_along_axis(firing_ticks, order, axis=1)
        timers.kinds[:rows] = kinds[order]


class Worker(Struct):
    """What one worker works on, the protocol's state apart.

    Attributes:
        number: which worker it is.
        network, links: the engine's, with counts of this worker's own.
        calendar: everybody's.
        timers: everybody's.
        posted: int64[n], records that each row has posted; written by whoever runs the row.
        out: what the step in hand has written.
        place: int64[PLACES], where this worker is, so that it can go on from there.
        heads: int64[rows of a shard], each row's first entry in ``table``, -1 for none.
        table: int64[e, ENTRY_WORDS], the shard's entries: when due, key, where in the store, next.
        picked: int64[e], the entries of the row in hand, in order.
        chains: int64[workers], first chunks of the lists that these stand in.
        own: int64[m], the record of a timer, and what the row in hand sends itself at one tick.
        later: int64[m], entries that the row in hand takes later in the window.
    """

    number: int
    network: Network
    links: LinkConditions
    calendar: EventCalendar
    timers: Timers
    posted: Int64s
    out: Outbox
    place: Int64s
    heads: Int64s
    table: Int64s
    picked: Int64s
    chains: Int64s
    own: Words
    later: Words


def make_worker(
    number: int,
    workers: int,
    network: Network,
    links: LinkConditions,
    calendar: EventCalendar,
    timers: Timers,
    posted: Int64s,
    reserve: int,
) -> Worker:
    """A worker with nothing to do yet."""
    return Worker(
        number=number,
        network=network._replace(counts=apart(len(network.counts))),
        links=links._replace(counts=apart(len(links.counts))),
        calendar=calendar,
        timers=timers,
        posted=posted,
        out=make_outbox(reserve)._replace(cursor=apart(len(make_outbox(0).cursor))),
        place=apart(PLACES),
        heads=np.full(1 << calendar.shift, -1, np.int64),
        table=np.zeros((1, ENTRY_WORDS), np.int64),
        picked=np.zeros(1, np.int64),
        chains=np.full(max(workers, CACHE_LINE_WORDS), -1, np.int64),
        own=apart(OWN_FIRST + reserve),
        later=apart(reserve),
    )


def apart(words: int) -> Int64s:
    """Zeros that share no cache line with anything else; they begin at one."""
    line = CACHE_LINE_WORDS
    spare = np.zeros(words + 4 * line, np.int64)
    begin = -(spare.ctypes.data // WORD_BYTES) % line + line
    return spare[begin : begin + words]


def changed(worker: Worker, **fields: Any) -> Worker:
    """The worker with other arrays in some places."""
    kept = {name: getattr(worker, name) for name in Worker.__annotations__}
    return Worker(**(kept | fields))
