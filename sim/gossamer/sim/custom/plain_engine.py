"""The order of what happens to plain nodes, which is that of the other engines.

At one tick: whoever joins or leaves then does so, then records are taken in order of insertion, or
for the windows engine in the order of `engine.event_loop`.
In cycles: nodes have their turns in the cycle engine's order, and what follows from a turn is taken
before the next. What waits is ``(to, sender, message)``; of records to oneself after a delay the
sender is -1 less the life in which the node set them.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from gossamer.protocol.kernel.draws import mix
from gossamer.sim.custom.conditions import FATES, Conditions
from gossamer.sim.custom.faults import HandlerError
from gossamer.sim.custom.language.context import DELAYS, delay_ticks
from gossamer.sim.custom.language.messages import MessageClass
from gossamer.sim.custom.plain_entries import (
    Entered,
    Leave,
    Returned,
    Start,
    bytes_of_message,
    rank_of,
    wrong_sending,
)
from gossamer.sim.engine.cycle_engine import visiting_order
from gossamer.sim.engine.latency import make_sizes, ticks_through, trip_ticks
from gossamer.sim.engine.link_conditions import (
    DRAWS,
    DUPLICATION,
    LATENCY,
    LATENCY_OF_COPY,
    LOSS,
    are_parted,
    loss_at,
)


class Way(NamedTuple):
    """What becomes of a message that is sent.

    Attributes:
        arrives: the ticks after which copies of it arrive: one, none or two.
        returns: the ticks after which it is back at its sender, -1 if it does not come back.
    """

    arrives: tuple[int, ...] = ()
    returns: int = -1


class PlainLinks:
    """The links of a run, which do as `engine.link_conditions` has it, draw by draw.

    Attributes:
        ticks: of every message where nothing is drawn and all links are alike; else None.
        sizes: whether it matters how large messages are.
        comes_in: whether messages take time to come in at their addressee.
        fates: int, by name as `conditions.FATES`, what became of messages so far.
    """

    def __init__(self, conditions: Conditions) -> None:
        latency = conditions.latency
        self._links = conditions.links(make_sizes())
        self._bandwidth = self._links.bandwidth
        self._reports = conditions.reports_unreachable
        self._drawn = (
            conditions.loss > 0
            or len(conditions.loss_periods) > 0
            or conditions.duplication > 0
            or latency.spread > 0
        )
        self._leaves = len(self._bandwidth.up) > 0
        self.comes_in = len(self._bandwidth.down) > 0
        self.sizes = self._leaves or self.comes_in
        self._sent = [0] * conditions.nodes
        sited = len(latency.matrix) > 0 or len(latency.places) > 0
        alike = not (self._drawn or sited or self._leaves or conditions.partitions)
        self.ticks = int(latency.shortest) if alike else None
        self.fates = dict.fromkeys(FATES[1:], 0)

    def send(self, source: int, to: int, tick: int, size: int) -> Way:
        """What becomes of a message of so many bytes that is sent now."""
        band, leaves = self._bandwidth, 0
        if self._leaves:
            given = band.up, band.up_free, band.up_queue, source, tick, size
            leaves = int(ticks_through.interpreted(*given))
        if leaves < 0:
            self.fates["up_overflowed"] += 1
            return Way()
        links, draws = self._links, self._next_draws(source)
        loss = loss_at.interpreted(links, tick)
        if loss and mix.interpreted(links.seed, source, draws + LOSS) < loss:
            self.fates["lost"] += 1
            return Way()
        first = leaves + self._trip(source, to, draws + LATENCY)
        if are_parted.interpreted(links, source, to, tick):
            self.fates["parted"] += 1
            if not self._reports:
                return Way()
            back = self._next_draws(source)
            return Way(returns=first + self._trip(to, source, back + LATENCY))
        if links.duplication and (
            mix.interpreted(links.seed, source, draws + DUPLICATION) < links.duplication
        ):
            self.fates["duplicated"] += 1
            copy = leaves + self._trip(source, to, draws + LATENCY_OF_COPY)
            return Way((first, copy))
        return Way((first,))

    def come_in(self, to: int, tick: int, size: int) -> int:
        """The ticks that a message takes to come in; -1 if it is lost."""
        band = self._bandwidth
        ticks = ticks_through.interpreted(
            band.down, band.down_free, band.down_queue, to, tick, size
        )
        if ticks < 0:
            self.fates["down_overflowed"] += 1
        return int(ticks)

    def return_delay(self, source: int, back_from: int) -> int:
        """The ticks of a report to ``source`` that ``back_from`` cannot be reached."""
        draws = self._next_draws(back_from)
        return self._trip(back_from, source, draws + LATENCY)

    def _next_draws(self, source: int) -> int:
        if not self._drawn:
            return 0
        self._sent[source] += 1
        return self._sent[source] * DRAWS

    def _trip(self, source: int, to: int, counter: int) -> int:
        links = self._links
        return int(trip_ticks.interpreted(links.latency, source, to, links.seed, counter))

    def grown(self, before: PlainLinks) -> PlainLinks:
        """These links of more nodes, gone on with from those of fewer."""
        kept = before.dynamic_state()
        fresh = self.dynamic_state()
        for name in ("sent", "up_free", "down_free"):
            kept[name] = [*kept[name], *fresh[name][len(kept[name]) :]]
        self.restore(kept)
        return self

    def dynamic_state(self) -> dict[str, Any]:
        """All that changes."""
        return {
            "sent": list(self._sent),
            "fates": dict(self.fates),
            "up_free": self._bandwidth.up_free.tolist(),
            "down_free": self._bandwidth.down_free.tolist(),
        }

    def restore(self, dynamic: dict[str, Any]) -> None:
        """Go on from a `dynamic_state`."""
        self._sent, self.fates = list(dynamic["sent"]), dict(dynamic["fates"])
        self._bandwidth.up_free[:] = np.array(dynamic["up_free"], np.int64)
        self._bandwidth.down_free[:] = np.array(dynamic["down_free"], np.int64)


Entry = tuple[int, int, Any]
# Records of one tick, and so many more for each node, before they count as a chain without an end.
_MOST_AT_A_TICK: Final = 1_000_000
_MOST_A_NODE: Final = 1_000


class PlainEngine(ABC):
    """What waits for nodes, and when each takes it; derived classes say what nodes do."""

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self.alive = conditions.alive
        self.tick = 0
        self._in_cycles = conditions.engine == "cycle"
        self._by_sender = conditions.engine == "windows"
        self._links = PlainLinks(conditions)
        self._rates = conditions.rates.tolist() or None
        self._life = [0] * conditions.nodes
        self._buckets: dict[int, list[Entry]] = {}
        self._due: list[int] = []
        self._now: deque[Entry] = deque()
        # What arrives when all that is sent at this tick does, once there is any.
        self._ahead: list[Entry] | None = None
        self._most = _MOST_AT_A_TICK + _MOST_A_NODE * conditions.nodes

    @abstractmethod
    def _turns(self, row: int) -> Iterator[None]:
        """Give a node its turns of a cycle, one at a time."""

    @abstractmethod
    def _take(self, to: int, sender: int, message: Any) -> None:
        """Let a node take what has come to it."""

    @abstractmethod
    def _miss(self, to: int, sender: int, message: Any) -> None:
        """What becomes of a message to a node that is down."""

    @abstractmethod
    def _endless(self, entry: Entry) -> HandlerError:
        """What is wrong where an entry is one too many at its tick."""

    # What nodes ask for.

    def send(self, source: int, to: int, message: object) -> None:
        """Put a message on its way; see `Node.send`."""
        try:
            wrong = not 0 <= to < len(self._life) or to.__class__ is float
        except TypeError:
            wrong = True
        if wrong or message.__class__ is MessageClass:
            raise wrong_sending(to, message, len(self._life))
        if source != to and self._ahead is not None:
            self._ahead.append((to, source, message))
        elif self._in_cycles:
            self._now.append((to, source, message))
        elif source == to:
            self._push(self.tick, (to, source, message))
        elif self._links.ticks is None:
            self._send_over(source, to, message)
        else:
            due = self.tick + self._links.ticks
            self._push(due, (to, source, message))
            self._ahead = self._buckets[due]

    def _send_over(self, source: int, to: int, message: Any) -> None:
        """Put a message on its way over links that are not all alike."""
        links = self._links
        way = links.send(source, to, self.tick, bytes_of_message(message) if links.sizes else 0)
        for delay in way.arrives:
            self._push(self.tick + delay, (to, source, message))
        if way.returns >= 0:
            self._push(self.tick + way.returns, (source, source, Returned(to, message, True)))

    def _arm(self, me: int, delay_s: float, message: Any, least: int) -> None:
        rate = 1.0 if self._rates is None else self._rates[me]
        delay = delay_ticks.interpreted(delay_s, rate)
        if delay < 0:
            raise ValueError(f"a delay of {delay_s!r} s, expected one {DELAYS}")
        due = self.tick + (delay if delay > least else least)
        self._push(due, (me, -1 - self._life[me], message))

    def _push(self, due: int, entry: Entry) -> None:
        bucket = self._buckets.get(due)
        if bucket is None:
            self._buckets[due] = [entry]
            heapq.heappush(self._due, due)
        else:
            bucket.append(entry)

    # The run.

    def _grow(self, conditions: Conditions) -> None:
        """Make room for more nodes, all of them down."""
        more = conditions.nodes - self.conditions.nodes
        self.alive = np.concatenate([self.alive, np.zeros(more, np.bool_)])
        self.conditions, self._rates = conditions, conditions.rates.tolist() or None
        self._links, self._ahead = PlainLinks(conditions).grown(self._links), None
        self._life.extend([0] * more)

    def run_until(self, tick: int) -> None:
        if self._in_cycles:
            while self.tick < tick:
                self._run_cycle()
            return
        while self._due and self._due[0] < tick:
            self.tick = self._due[0]
            self._take_due()
        self.tick = tick

    def _command(self, row: int, command: Start | Leave) -> None:
        """Let a node take a command behind what is due at this tick, and before what follows."""
        aside = self._buckets.get(self.tick, []) if self._by_sender else []
        if aside:  # It comes ahead of all that is due, which is not in order yet.
            self._buckets[self.tick] = []
        self._push(self.tick, (row, row, command))
        self._take_due()
        for entry in aside:
            self._push(self.tick, entry)

    def _take_due(self) -> None:
        """Take everything that is due at the present tick, what is sent without delay as well."""
        bucket = self._buckets.get(self.tick)
        if bucket is None:
            return
        self._ahead = None
        entries = iter(bucket)
        # A memoryview reads one element in half the time that an array takes.
        alive, take = self.alive.data, self._take
        if self._by_sender:
            bucket.sort(key=rank_of)
        if self._links.comes_in:
            self._take_all_in(entries)
        for to, sender, message in islice(entries, self._most):
            if alive[to]:
                take(to, sender, message)
            else:
                self._miss(to, sender, message)
        for entry in entries:
            raise self._endless(entry)
        self._ahead = None
        del self._buckets[self.tick]
        heapq.heappop(self._due)

    def _take_all_in(self, entries: Iterator[Entry]) -> None:
        """Take all entries, of which there come to be more meanwhile, when they have come in."""
        for to, sender, arrived in islice(entries, self._most):
            message = arrived
            if not self.alive[to]:
                message = arrived.message if arrived.__class__ is Entered else arrived
                self._miss(to, sender, message)
                continue
            if arrived.__class__ is Entered:
                message = arrived.message
            elif sender >= 0 and sender != to:
                ticks = self._links.come_in(to, self.tick, bytes_of_message(arrived))
                if ticks >= 0:
                    self._push(self.tick + ticks, (to, sender, Entered(arrived)))
                continue
            self._take(to, sender, message)

    def _run_cycle(self) -> None:
        cycle = self.tick // self.conditions.round_ticks
        for row in visiting_order(self.conditions.seed, cycle, len(self.alive)).tolist():
            for _ in self._turns(row):
                self._drain()
        self.tick += self.conditions.round_ticks

    def _drain(self) -> None:
        now = self._now
        for _ in range(self._most):
            if not now:
                return
            to, sender, message = now.popleft()
            if self.alive[to]:
                self._take(to, sender, message)
            else:
                self._miss(to, sender, message)

        if now:
            raise self._endless(now[0])
