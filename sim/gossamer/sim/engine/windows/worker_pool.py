"""Workers and the calendar as the engine sees them between windows, when no thread is at work."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    KIND,
    LENGTH,
    TO,
    UNREACHABLE,
    Outbox,
    Words,
    make_outbox,
)
from gossamer.protocol.kernel.struct import CACHE_LINE_WORDS, WORD_BYTES, Struct
from gossamer.sim.engine.cycle_engine import Network
from gossamer.sim.engine.event_engine import check_rows
from gossamer.sim.engine.latency import Int64s
from gossamer.sim.engine.link_conditions import IN_SERVICE, LinkConditions
from gossamer.sim.engine.windows.event_calendar import (
    CELL,
    CELL_BEGIN,
    CELLS,
    CHUNK,
    DUE,
    ENTRIES,
    FAR,
    FRESH,
    KEY,
    LIMIT,
    LIST_WORDS,
    MARK_WORDS,
    NOW,
    RECORD,
    USED_WORDS,
    EventCalendar,
    copy_entries,
    deal_out_far,
    find_entries,
    make_calendar,
    post_entries,
    set_clock,
    untouched,
    words_for,
)
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


# Shards that there are by default: some for each of many threads, none of them very small.
_SHARDS, _SMALLEST_SHIFT = 64, 6
# Words of the store that a worker is given at a time at least, and as a part of all that were.
_GRANT, _SHARE_OF_GRANT = 1 << 16, 16


def shift_for(rows: int, shard_rows: int | None) -> int:
    """Rows of a shard as a power of two, for so many rows in all.

    Raises:
        ScenarioError: ``shard_rows`` is no power of two.
    """
    if shard_rows is None:
        return max(_SMALLEST_SHIFT, (max(rows, 1) // _SHARDS).bit_length())
    if shard_rows < 1 or shard_rows & (shard_rows - 1):
        raise ScenarioError(None, "shard_rows", shard_rows, "a power of two")
    return shard_rows.bit_length() - 1


class WorkerPool:
    """Workers, and the calendar between them.

    Attributes:
        workers: one for each thread.
        calendar: where records wait.
        timers: of the present round.
        posted: int64[n], records that each row has posted.
    """

    def __init__(
        self,
        network: Network,
        links: LinkConditions,
        timers: Timers,
        *,
        shift: int,
        span: int,
        reserve: int,
        words: int,
        limit: int,
    ) -> None:
        self.timers = timers
        self.posted: Int64s = np.zeros(len(network.alive), np.int64)
        self._network = network
        self._links = links
        self._reserve = reserve
        self._limit = limit
        self._granted = 0
        self.calendar = make_calendar(1, len(network.alive), shift, span, 0, words)
        self.workers: list[Worker] = []
        self.set_workers(1)

    @property
    def pending(self) -> int:
        """Records on their way."""
        return int(self._lists()[:, ENTRIES].sum())

    def set_workers(self, workers: int) -> None:
        """Let there be so many."""
        if len(self.workers) == workers:
            return
        kept = self.entries() if self.workers else np.empty(0, np.int64)
        self._lay_out(workers, self.calendar, kept)

    def _lay_out(self, workers: int, calendar: EventCalendar, entries: Words) -> None:
        now, rows = int(calendar.clock[NOW]), len(self.posted)
        self.calendar = make_calendar(
            workers, rows, calendar.shift, calendar.span, now, len(calendar.words)
        )
        self._granted = 0
        self.workers = [self._idle_worker(number, workers) for number in range(workers)]
        for number in range(workers):
            self._grant(number, _GRANT)
        self._post_all(entries)

    def _idle_worker(self, number: int, workers: int) -> Worker:
        network, links, reserve = self._network, self._links, self._reserve
        return Worker(
            number=number,
            network=network._replace(counts=apart(len(network.counts))),
            links=links._replace(counts=apart(len(links.counts))),
            calendar=self.calendar,
            timers=self.timers,
            posted=self.posted,
            out=make_outbox(reserve)._replace(cursor=apart(len(make_outbox(0).cursor))),
            place=apart(PLACES),
            heads=np.full(1 << self.calendar.shift, -1, np.int64),
            table=np.zeros((1, ENTRY_WORDS), np.int64),
            picked=np.zeros(1, np.int64),
            chains=np.full(max(workers, CACHE_LINE_WORDS), -1, np.int64),
            own=apart(OWN_FIRST + reserve),
            later=apart(reserve),
        )

    def end_of_cell(self) -> int:
        """Where the present window ends at the latest."""
        return int(self.calendar.clock[CELL_BEGIN]) + self.calendar.span

    def advance(self, tick: int) -> None:
        """Let the next window begin at ``tick``, in this cell or the next."""
        cell = int(self.calendar.clock[CELL])
        set_clock(self.calendar, tick)
        if self.calendar.clock[CELL] != cell and self.calendar.clock[CELL] % (CELLS // 2) == 0:
            far = self._lists().reshape(len(self.workers), CELLS + 1, -1, LIST_WORDS)[:, FAR]
            self._make_room(int(far[..., ENTRIES].sum()), int(far[..., USED_WORDS].sum()))
            deal_out_far.run(self.calendar, len(self.workers))

    def post(self, due: int, key: int, record: Words) -> None:
        """Let a record wait for its tick."""
        self._post_all(np.concatenate([np.array([due, key]), record]))

    def entries(self) -> Words:
        """All that waits, as entries one after another, by (tick, taker, key)."""
        found = np.empty(self.pending, np.int64)
        find_entries.run(self.calendar, len(self.workers), found)
        words = self.calendar.words
        kind = words[found + RECORD + KIND]
        returned = (kind >= UNREACHABLE) & (kind < IN_SERVICE)
        taker = np.where(returned, words[found + RECORD + FROM], words[found + RECORD + TO])
        found = found[np.lexsort((words[found + KEY], taker, words[found + DUE]))]
        copy = np.empty(int((words[found + RECORD + LENGTH] + RECORD).sum()), np.int64)
        copy_entries.run(words, found, copy)
        return copy

    def start_over(self, tick: int, entries: Words) -> None:
        """Let it be ``tick``, and nothing wait but these entries."""
        set_clock(self.calendar, tick)
        self._lay_out(len(self.workers), self.calendar, entries)

    def _post_all(self, entries: Words) -> None:
        self._make_room(len(entries) // RECORD, len(entries))
        post_entries.run(self.calendar, entries)

    def _make_room(self, entries: int, words: int) -> None:
        """Let the first worker be able to post so many entries of so many words to any lists."""
        lists = self.calendar.shards * (CELLS + 1)
        wanted = 4 * words + CHUNK * (1 + min(entries, lists))
        if int(untouched.interpreted(self.calendar, 0)) < wanted:
            self._grant(0, wanted)

    def enlarge(self, number: int) -> None:
        """Give a worker what it found no room for.

        Raises:
            CapacityError: the store would exceed its limit.
        """
        worker = self.workers[number]
        place = worker.place
        wanted, entries = int(place[WANTED]), int(place[ENTRIES_WANTED])
        needed = 2 * int(words_for.interpreted(wanted))
        if int(untouched.interpreted(self.calendar, number)) < needed:
            share = self._granted // (_SHARE_OF_GRANT * len(self.workers))
            self._grant(number, max(_GRANT, share, needed))
            worker = self.workers[number]
        fields: dict[str, Int64s] = {}
        for name, tail in (("own", place[OWN_TAIL]), ("later", place[LATER_TAIL])):
            buffer = getattr(worker, name)
            if tail + wanted + RECORD > len(buffer):
                fields[name] = apart(2 * len(buffer) + wanted + RECORD)
                fields[name][: len(buffer)] = buffer
        if entries > len(worker.picked):
            fields["picked"] = np.zeros(entries + entries // 4, np.int64)
            fields["table"] = np.zeros((entries + entries // 4, ENTRY_WORDS), np.int64)
        if fields:
            self.workers[number] = changed(worker, **fields)

    def _grant(self, number: int, words: int) -> None:
        """Give a worker a part of the store that nobody has touched; the rest of its own is lost.

        Raises:
            CapacityError: the store would exceed its limit; nothing happened.
        """
        marks, first = self.calendar.marks, self._granted
        if first + words > len(self.calendar.words):
            capacity = max(min(2 * len(self.calendar.words), self._limit), first + words)
            if capacity > self._limit:
                raise CapacityError("the store of records", self._limit, "raise store_words_limit")
            larger = np.zeros(capacity, np.int64)
            larger[:first] = self.calendar.words[:first]
            self.calendar = self.calendar._replace(words=larger)
            self.workers = [changed(worker, calendar=self.calendar) for worker in self.workers]
        at = number * MARK_WORDS
        if marks[at + LIMIT] != first:
            marks[at + FRESH] = first
        marks[at + LIMIT] = first + words
        self._granted = first + words

    def gather_counts(self, network: Network, links: LinkConditions) -> None:
        """Move what workers have counted to the engine's own counts."""
        for worker in self.workers:
            for own, whole in (
                (worker.network.counts, network.counts),
                (worker.links.counts, links.counts),
            ):
                whole += own
                own[:] = 0

    def _lists(self) -> Int64s:
        return self.calendar.lists.reshape(-1, LIST_WORDS)


class Collectors:
    """How a collector is divided among workers; here it is not.

    All workers write to the one there is, which is sound where an observer writes nothing but rows
    of the node that takes the record. Another kind of collector comes with a class of its own that
    overrides these methods.
    """

    def part(self, whole: Any) -> Any:
        """What one worker writes to."""
        return whole

    def end_window(self, whole: Any, parts: list[Any]) -> None:
        """Called after every window with all parts: whatever depends on order is moved from them.

        A row is run by one worker in a window, and windows come in order of time.
        """

    def gather(self, whole: Any, parts: list[Any]) -> None:
        """Called before the engine returns: sums are moved from the parts to the whole."""
