"""When events are published, and who has to get them: the same for simulated and real peers.

A hit is counted as Sec. V-E of the paper needs it to be under churn: an event has to reach every
subscriber that it matches and that is online from two rounds before the publication to one round
after it. Sessions are half-open, [start, end): a node that leaves at the time of a publication is
gone, one that joins then is there.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.peer.state.state import State
from gossamer.sim.studies.peers.inputs.scenario import Events
from gossamer.sim.study.draws import Floats, Int64s, rows_from, uniform, zipf_ranks
from gossamer.sim.study.records import Column

ROUNDS_TO_SETTLE = 2
ROUNDS_TO_ARRIVE = 1
# Parts of a round between which nodes come and go and events are published.
PARTS = 4

# The stream of the draws of who publishes.
_WHO = 106

Bools = npt.NDArray[np.bool_]


def published_before(spec: Events, rounds: int) -> Int64s:
    """int64[rounds + 1]: number of events published before each round."""
    warm = np.maximum(np.arange(rounds + 1) - spec.warm_up_rounds, 0)
    return np.floor(warm * spec.per_round).astype(np.int64)


def end_of_part(cycle: Any, part: Any, parts: int, round_s: float) -> Any:
    """When part ``part`` of ``parts`` of a round is over, in seconds of the run."""
    return (cycle + (part + 1) / parts) * round_s


def parts_of(engine: str, is_steady: bool) -> int:
    """Parts of a round of a run; nothing happens between those of a steady one in cycles."""
    return 1 if is_steady and engine == "cycle" else PARTS


@attrs.frozen(eq=False)
class Timetable:
    """Which events are published in which part of which round.

    Attributes:
        rounds, parts: of the run, and of a round.
        numbers: int64[k], events in the order in which they are published; all below k.
        places: int64[k], the part of the run in which each is: round times parts and part.
        late: how many there are besides, after the last round.
    """

    rounds: int
    parts: int
    numbers: Int64s
    places: Int64s
    late: int = 0

    @staticmethod
    def of(cycle: Int64s, part: Int64s, rounds: int, parts: int, late: int = 0) -> Timetable:
        """The timetable of events by number, int64[k] of the round and the part of each."""
        places = cycle * parts + part
        order = np.argsort(places, kind="stable")
        return Timetable(rounds, parts, order, places[order], late)

    @property
    def size(self) -> int:
        """How many events there are."""
        return len(self.numbers)

    @property
    def counts(self) -> Int64s:
        """int64[rounds]: how many are published in each round."""
        return np.bincount(self.places // self.parts, minlength=self.rounds)

    def of_part(self, cycle: int, part: int) -> list[int]:
        """The events of a part of a round."""
        place = cycle * self.parts + part
        first, last = np.searchsorted(self.places, (place, place + 1))
        found: list[int] = self.numbers[first:last].tolist()
        return found

    def times_s(self, round_s: float) -> Floats:
        """float64[k]: when each of ``numbers`` is published, in seconds of the run."""
        cycle, part = self.places // self.parts, self.places % self.parts
        return np.asarray(end_of_part(cycle, part, self.parts, round_s), np.float64)


def timetable_by_rate(spec: Events, rounds: int, parts: int) -> Timetable:
    """So many events a round, spread over its parts."""
    before = published_before(spec, rounds)
    cycle = np.repeat(np.arange(rounds), np.diff(before))
    return Timetable.of(cycle, (np.arange(before[-1]) - before[cycle]) % parts, rounds, parts)


class Publishers:
    """Who publishes.

    Args:
        spec: which share of the nodes does, and how unevenly.
        nodes: how many there are.
        seed: decides which of them, and who publishes most.
    """

    def __init__(self, spec: Events, nodes: int, seed: int) -> None:
        self._exponent = spec.publisher_exponent
        order = np.argsort(uniform(seed, _WHO, rows_from(0, nodes), 0), kind="stable")
        self._chosen = order[: max(1, round(spec.publishers * nodes))]
        if self._exponent == 0:
            self._chosen = np.sort(self._chosen)

    def choose(self, draw: float, online: Bools) -> int | None:
        """The publisher of an event, by its draw from [0, 1); None where none is online."""
        nodes = self._chosen[online[self._chosen]]
        if len(nodes) == 0:
            return None
        if self._exponent == 0:
            return int(nodes[int(draw * len(nodes))])
        return int(nodes[zipf_ranks(np.array([draw]), len(nodes), self._exponent)[0]])


def due_at(
    time_s: float, round_s: float, online: Bools, joined_s: Floats, leaves_s: Floats, wanting: Bools
) -> Bools:
    """bool[n]: who has to get an event of this time.

    Args:
        time_s: of the publication.
        round_s: length of a round.
        online: bool[n], who is in a session then: one that begins then is, one that ends is not.
        joined_s, leaves_s: float64[n], beginning and end of that session; inf if it never ends.
        wanting: bool[n], who subscribes to it.
    """
    long_enough = joined_s <= time_s - ROUNDS_TO_SETTLE * round_s
    return online & wanting & long_enough & (leaves_s > time_s + ROUNDS_TO_ARRIVE * round_s)


def matching(s: State, values: Int64s) -> Bools:
    """bool[n]: the rows with a subscription that matches ``values`` on every attribute."""
    low, high = s.subscriptions[:, :, 0::2], s.subscriptions[:, :, 1::2]
    inside = np.all((low <= values) & (values <= high), axis=2)
    return np.asarray(np.any(inside & (s.constrained >= 0), axis=1))


def per_cycle_sums(
    cycles: int, events: dict[str, Column], deliveries: dict[str, Column]
) -> dict[str, Column]:
    """The columns of the table of cycles that are sums over the events published in a cycle."""
    sums = {
        name: np.bincount(events["cycle"], weights=events[name], minlength=cycles)
        for name in ("expected", "delivered", "received", "uninterested")
    }
    known = np.concatenate((events["event"], deliveries["event"]))
    published_in = np.zeros(int(known.max(initial=-1)) + 1, np.int64)
    published_in[events["event"]] = events["cycle"]
    sums["hops_sum"] = np.bincount(
        published_in[deliveries["event"]], weights=deliveries["hops"], minlength=cycles
    )
    return sums
