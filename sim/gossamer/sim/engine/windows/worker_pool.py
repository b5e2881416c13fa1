"""Workers and the calendar as the engine sees them between windows, when no thread is at work."""

from __future__ import annotations

import numpy as np

from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.kernel.records import FROM, KIND, LENGTH, TO, UNREACHABLE, Words
from gossamer.sim.engine.cycle_engine import Network
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
from gossamer.sim.engine.windows.worker import (
    ENTRIES_WANTED,
    ENTRY_WORDS,
    LATER_TAIL,
    OWN_TAIL,
    WANTED,
    Timers,
    Worker,
    apart,
    changed,
    make_worker,
)
from gossamer.sim.errors import ScenarioError

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
        self.workers = [
            make_worker(
                number,
                workers,
                self._network,
                self._links,
                self.calendar,
                self.timers,
                self.posted,
                self._reserve,
            )
            for number in range(workers)
        ]
        for number in range(workers):
            self._grant(number, _GRANT)
        self._post_all(entries)

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
