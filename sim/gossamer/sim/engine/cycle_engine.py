"""The cycle engine: every node once a cycle, in random order, exchanges immediate.

PeerSim's cycle-driven model (Montresor, Jelasity, P2P'09) over the protocol's one door: a node's
turn is its timers, and whatever records they cause are taken in first-in first-out order until
none is left. The loop and the protocol's `step` compile into one function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.debugging.checked_run import (
    CheckedRun,
    checked_hint,
    checked_observer,
    checked_step,
    is_wanted,
)
from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    HEAD,
    KIND,
    LENGTH,
    REFUSED,
    TAIL,
    TO,
    UNREACHABLE,
    Outbox,
    Words,
    make_outbox,
)
from gossamer.protocol.kernel.rules import Rule, rule
from gossamer.protocol.peer.sampling.descriptors import find, seat
from gossamer.protocol.peer.sampling.sampler import EMPTY, SamplerState, add_contact, pack
from gossamer.sim.engine.link_conditions import check_command, fault_at, find_fault
from gossamer.sim.engine.loops import loop_factory


class Network(NamedTuple):
    """What the engine knows of nodes and links; rules never see it.

    Attributes:
        alive: bool[n].
        reports_unreachable: whether a record for a dead node comes back to its sender, as a
            broken TCP connection does; otherwise it is lost.
        limited_kind: the kind that ``capacity`` limits, or 0 for none.
        capacity: records of ``limited_kind`` that a node takes in a cycle; the rest are dropped.
        taken: int64[n], records of ``limited_kind`` taken in this cycle.
        counts: int64[3]: records passed, lost to dead nodes, dropped for capacity.
    """

    alive: npt.NDArray[np.bool_]
    reports_unreachable: bool
    limited_kind: int
    capacity: int
    taken: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


PASSED, LOST, DROPPED = 0, 1, 2

# To `approach` in place of the kind of a record, where a row takes several one after another.
SEVERAL_KINDS = -1

# How many turns ahead a protocol may bring memory near.
HINT_SOON, HINT_LATER = 2, 4


def make_network(
    nodes: int,
    *,
    alive: bool = True,
    reports_unreachable: bool = True,
    limited_kind: int = 0,
    capacity: int = 0,
) -> Network:
    """A network of ``nodes`` rows, all up or all down."""
    return Network(
        np.full(nodes, alive),
        reports_unreachable,
        limited_kind,
        capacity,
        np.zeros(nodes, np.int64),
        np.zeros(3, np.int64),
    )


@rule
def observe_nothing(_collector: Any, _state: Any, _words: Any, _at: int, _now: int) -> None:
    """The observer of runs that collect nothing by record."""


@rule
def give_no_hint(_state: Any, _kind: int, _soon: int, _later: int) -> None:
    """The hint of protocols that have none."""


@rule
def compact(out: Outbox) -> None:
    """Move the records not yet taken to the front of the outbox."""
    head, tail = out.cursor[HEAD], out.cursor[TAIL]
    for i in range(tail - head):
        out.words[i] = out.words[head + i]
    out.cursor[HEAD] = 0
    out.cursor[TAIL] = tail - head


@rule
def return_to_sender(network: Network, words: Any, at: int) -> Any:
    """Mark the record at ``words[at]`` unreachable; returns who takes it back, -1 for nobody."""
    source = words[at + FROM]
    if (
        not network.reports_unreachable
        or words[at + KIND] >= UNREACHABLE
        or not network.alive[source]
    ):
        return -1
    words[at + KIND] += UNREACHABLE
    return source


@rule
def approach_nobody(_state: Any, _row: int, _kind: int) -> None:
    """What protocols do that have no memory to bring near before a record is taken."""


@loop_factory(inline=False)
def make_turns(step: Rule, observe: Rule, hint: Rule, approach: Rule) -> Callable[..., int]:
    """The compiled loop: takes the records in the outbox, then gives nodes their turns.

    One loop serves both, because compiling the protocol into a loop takes long. It returns -1, or
    where in the outbox a record begins that cannot be passed on, with which it stopped.
    """

    def turns(
        state: Any,
        network: Network,
        out: Outbox,
        now: int,
        collector: Any,
        reserve: int,
        order: Any,
        timers: Any,
    ) -> int:
        words, cursor = out.words, out.cursor
        turn, timer, p = -1, len(timers), 0
        while True:
            if cursor[HEAD] == cursor[TAIL]:
                if timer == len(timers):
                    turn += 1
                    if turn >= len(order):
                        break
                    timer = 0
                    p = order[turn]
                    if not network.alive[p]:
                        timer = len(timers)
                        continue
                words[LENGTH] = BODY
                words[KIND] = timers[timer]
                words[TO] = p
                words[FROM] = p
                cursor[HEAD] = 0
                cursor[TAIL] = BODY
                timer += 1
            at = cursor[HEAD]
            if turn + HINT_LATER < len(order):
                soon, later = order[turn + HINT_SOON], order[turn + HINT_LATER]
                hint(state, words[at + KIND], soon, later)
            if len(words) - cursor[TAIL] < reserve and at > 0:
                compact(out)
                at = 0
            after = at + words[at + LENGTH]
            cursor[HEAD] = after
            if after < cursor[TAIL]:
                after += words[after + LENGTH]
                if after < cursor[TAIL] and words[after + TO] != p:
                    approach(state, words[after + TO], words[after + KIND])
            to = words[at + TO]
            if not network.alive[to]:
                network.counts[LOST] += 1
                to = return_to_sender(network, words, at)
                if to < 0:
                    continue
            else:
                if words[at + KIND] == network.limited_kind:
                    if network.taken[to] >= network.capacity:
                        network.counts[DROPPED] += 1
                        continue
                    network.taken[to] += 1
                network.counts[PASSED] += 1
                observe(collector, state, words, at, now)
            written = cursor[TAIL]
            step(state, to, now, words, at, out)
            fault: int = find_fault(out, written, len(network.alive))
            if fault >= 0:
                return fault
            if written == cursor[HEAD] and written < cursor[TAIL]:
                # Nothing else was waiting, so that nobody was told of who takes these.
                after = written + words[written + LENGTH]
                if words[written + TO] != p:
                    approach(state, words[written + TO], words[written + KIND])
                if after < cursor[TAIL] and words[after + TO] != p:
                    approach(state, words[after + TO], words[after + KIND])
        return -1

    return turns


def checked_rules(
    debug: bool | None, step: Rule, observe: Rule, *hints: Rule, **run: Any
) -> tuple[CheckedRun | None, tuple[Rule, ...]]:
    """Rules as a run takes them, and what checks it, of ``run``: None where nobody asks for it."""
    if not is_wanted(debug):
        return None, (step, observe, *hints)
    rules = (checked_step(step), checked_observer(observe), *map(checked_hint, hints))
    return CheckedRun(**run), rules


_NOBODY = np.empty(0, np.int64)


def visiting_order(seed: int, cycle: int, nodes: int) -> npt.NDArray[np.int64]:
    """int64[n], a random order of all nodes, fixed by the seed and the cycle."""
    draws = np.random.Generator(np.random.Philox(key=[seed, cycle]))
    return draws.permutation(nodes)


class CycleEngine:
    """Runs a protocol cycle by cycle.

    Args:
        state: the protocol's struct of arrays, one row a node.
        step: the protocol's one door, ``step(state, p, now, words, at, out)``.
        timers: kinds of the timers that fire once a cycle, in order.
        network: who is up; the engine reads it afresh at each record.
        seed: fixes the visiting orders.
        observe: rule called with every record before the protocol takes it,
            ``observe(collector, state, words, at, now)``; effects (deliveries) pass it too.
        collector: what ``observe`` writes to.
        hint: rule called with the kind of every record that is taken in a turn, and the rows that
            are HINT_SOON and HINT_LATER turns away, ``hint(state, kind, soon, later)``, to bring
            near what a record of that kind will make them read; changes nothing. A turn's memory
            brought near all at once would keep waiting what the present turn reads.
        approach: rule called with the row that takes the record after next, unless that is the one
            whose turn it is, and the record's kind, ``approach(state, row, kind)``, likewise.
        reserve: words that one step may write at most.
        debug: run the rules interpreted and checked, see `protocol.kernel.debugging`; by default
            as the variable GOSSAMER_DEBUG of the environment says.

    Raises:
        CapacityError: from `run_cycle` and `inject`, when the outbox was too small for the
            records of one turn; the state then lacks what those records would have done.
        RecordError: from `run_cycle` and `inject`, when a rule wrote a record that cannot be
            passed on (to a row that there is not), or opened one and did not close it; the cycle
            ended there.
        RuleError: from the same, in a checked run, when a rule did what rules may not.
    """

    def __init__(
        self,
        state: Any,
        step: Rule,
        timers: tuple[int, ...],
        network: Network,
        seed: int,
        *,
        observe: Rule = observe_nothing,
        collector: Any = 0,
        hint: Rule = give_no_hint,
        approach: Rule = approach_nobody,
        reserve: int = 1 << 16,
        outbox_words: int = 1 << 22,
        debug: bool | None = None,
    ) -> None:
        self.state = state
        self.network = network
        self.seed = seed
        self.cycle = 0
        self.collector = collector
        self._timers = np.array(timers, np.int64)
        self._out = make_outbox(max(outbox_words, 4 * reserve))
        self._reserve = reserve
        self._checked, rules = checked_rules(
            *(debug, step, observe, hint, approach),
            state=state,
            collector=collector,
            population=len(network.alive),
            when=lambda: f"cycle {self.cycle}",
        )
        self._turns = make_turns(*rules)

    def visiting_order(self) -> npt.NDArray[np.int64]:
        """A random order of all nodes, fixed by the seed and the cycle."""
        return visiting_order(self.seed, self.cycle, len(self.network.alive))

    def run_cycle(self) -> None:
        """Give every node that is up its turn."""
        self.begin_cycle()
        self.take_turns(self.visiting_order())
        self.end_cycle()

    def begin_cycle(self) -> None:
        """Let every node take its full capacity again."""
        self.network.taken[:] = 0

    def take_turns(self, order: npt.NDArray[np.int64]) -> None:
        """Give the nodes of ``order`` that are up their turns; without timers they have none."""
        self._out.cursor[:] = 0
        if len(self._timers):
            self._run(order)

    def end_cycle(self) -> None:
        """Let the next cycle be the present one."""
        self.cycle += 1

    def inject(self, record: npt.NDArray[np.int64]) -> None:
        """Hand one record (a command) to the node it names, and run what follows from it.

        Raises:
            ValueError: its length contradicts; nothing happened.
            RecordError: it names a node that there is not; nothing happened.
        """
        check_command(record, len(self.network.alive))
        out = self._out
        out.words[: len(record)] = record
        out.cursor[:] = 0, len(record), 0, 0
        self._run(_NOBODY)

    def _run(self, order: npt.NDArray[np.int64]) -> None:
        fault = self._turns(
            self._checked or self.state,
            self.network,
            self._out,
            self.cycle,
            self.collector,
            self._reserve,
            order,
            self._timers,
        )
        if self._out.cursor[REFUSED]:
            raise CapacityError("the engine's outbox", len(self._out.words), "raise outbox_words")
        if fault >= 0:
            raise fault_at(self._out, fault, len(self.network.alive))


# Initialisers: how overlays begin, in PeerSim's sense of the word.


def fill_random_views(
    sampler: SamplerState, alive: npt.NDArray[np.bool_], seed: int, count: int
) -> None:
    """Give every node that is up ``count`` random others that are up (PeerSim's WireKOut).

    Each view is a uniform sample without repetition, of freshness 0, fixed by the seed and the
    node's key; where fewer than ``count`` others are up it holds them all. Nodes that are down
    get an empty view. Handles must be rows.

    Args:
        sampler: its ``views`` and ``view_profile`` are written.
        alive: bool[n].
        seed: any signed 64-bit number.
        count: 0 to C.

    Raises:
        ValueError: ``count`` exceeds the view size; nothing was changed.
    """
    if not 0 <= count <= sampler.view_size:
        raise ValueError(f"count is {count}, expected 0 to view_size, {sampler.view_size}")
    sampler.views[:] = EMPTY
    fill_rows.run(sampler, np.flatnonzero(alive), seed, count)


@rule
def fill_rows(sampler: SamplerState, rows: Words, seed: int, count: int) -> None:
    """The loop of `fill_random_views` over ``rows``, the nodes that are up."""
    count = min(count, len(rows) - 1)
    for p in rows:
        draws = 0
        length = 0
        while length < count:
            other = rows[below(mix(seed, sampler.key[p], draws), len(rows))]
            draws += 1
            if other != p and find(sampler, p, other) < 0:
                seat(sampler, p, length, pack(0, other), sampler.profile[other], 0)
                length += 1


@rule
def join_via(sampler: SamplerState, p: int, now: int, contact: int) -> None:
    """Start row p afresh with row ``contact`` as all it knows.

    This is what a bootstrap server does for a node: p's view is emptied and the contact seated
    with its profile as of now.
    """
    for slot in range(sampler.view_size):
        sampler.views[p, slot] = EMPTY
    add_contact(sampler, p, now, sampler.handle[contact], sampler.profile[contact], 0)
