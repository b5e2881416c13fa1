"""A run of a protocol, round by round: churn, controls, the engine, measures, observers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.peer.sampling.sampler import EMPTY, handle_of
from gossamer.sim.custom.faults import explained_faults
from gossamer.sim.custom.language.context import TICKS_A_SECOND
from gossamer.sim.custom.language.declarations import Declarations
from gossamer.sim.custom.language.functions import ControlOf, MeasureOf
from gossamer.sim.custom.language.places import declaration_error, place_of
from gossamer.sim.custom.protocol import parts_of
from gossamer.sim.engine.event_engine import make_transitions
from gossamer.sim.engine.event_loop import Transitions
from gossamer.sim.engine.latency import Int64s
from gossamer.sim.errors import SimulationError
from gossamer.sim.study.watching import NODE, Overlay, links_table

if TYPE_CHECKING:
    from gossamer.sim.custom.plain_driver import PlainDriver
    from gossamer.sim.custom.rule_driver import RuleDriver

# By a function ``overlay(self, run)``, of a `Node` below ``classmethod``, a class says who knows
# whom: it returns pairs of rows, the first of which knows the second, or such pairs by kind.
OVERLAY: Final = "overlay"
_UNNAMED: Final = "link"


def links_in(view: npt.ArrayLike) -> Int64s:
    """Pairs (row, entry) of a column of rows: int64[n] or int64[n, k], with -1 for none.

    For a function ``overlay``: ``return {"ring": links_in(self.successor)}``.
    """
    entries = np.asarray(view, np.int64)
    entries = entries.reshape(len(entries), -1)
    source, place = np.nonzero(entries >= 0)
    return np.column_stack((source, entries[source, place]))


def links_of_views(views: Int64s) -> Int64s:
    """Pairs (row, peer) of the views of a sampler: int64[n, c] of descriptors."""
    source, place = np.nonzero(views != EMPTY)
    return np.column_stack((source, handle_of.interpreted(views[source, place])))


def declared_links(declared: Declarations, subject: Any, run: Any) -> Iterator[tuple[str, Int64s]]:
    """What a class says of its overlay: pairs of rows by kind, nothing where it says nothing.

    Raises:
        ScenarioError: it returns something else; names its file and line.
    """
    function = getattr(declared.owner, OVERLAY, None)
    if function is None:
        return
    plain = getattr(function, "__func__", function)
    found = plain(subject, run)
    by_kind = found if isinstance(found, Mapping) else {_UNNAMED: found}
    for kind, given in by_kind.items():
        try:
            pairs = np.asarray(given if isinstance(given, np.ndarray) else list(given))
        except TypeError:
            pairs = np.asarray(given)
        if pairs.size == 0:
            yield str(kind), np.empty((0, 2), np.int64)
            continue
        whole = np.issubdtype(pairs.dtype, np.integer)
        rows = len(run.alive)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not whole:
            raise _wrong(declared, plain, kind, str(pairs.dtype) + str(list(pairs.shape)))
        if pairs.min() < 0 or pairs.max() >= rows:
            wrong = pairs[((pairs < 0) | (pairs >= rows)).any(axis=1)][0].tolist()
            raise _wrong(declared, plain, kind, wrong)
        yield str(kind), pairs.astype(np.int64)


def overlay_of(
    links: Mapping[str, npt.NDArray[np.int64]], alive: npt.NDArray[np.bool_]
) -> Overlay | None:
    """The overlay of the nodes that are up, of pairs of rows int64[m, 2] by kind; None of none."""
    if not links:
        return None
    kinds = np.repeat(np.arange(len(links)), [len(pairs) for pairs in links.values()])
    pairs = np.concatenate(list(links.values()))
    up = alive[pairs].all(axis=1)
    return Overlay(
        nodes={NODE: np.flatnonzero(alive).astype(np.int32)},
        links=links_table(pairs[up, 0], pairs[up, 1], kinds[up]),
        kinds=tuple(links),
    )


def _wrong(declared: Declarations, function: Any, kind: object, value: object) -> Exception:
    expected = "pairs of rows, from 0 to nodes - 1"
    name = f"{declared.owner.__name__}.{OVERLAY} of kind {kind!r}"
    return declaration_error(place_of(function), name, value, expected)


_CONTACTS: Final = 0x636F6E74616374
_LEAVES: Final = 0x6C65617665
_ONE: Final = float(1 << 62)
MOST_NODES: Final = 50_000_000
# Columns of the table of rounds that every protocol has.
ROUND_COLUMNS: Final[Mapping[str, str]] = {
    "round": "int64",
    "time_s": "float64",
    "population": "int64",
    "messages": "int64",
    "size_bytes": "int64",
}


NO_CHANGES: Final = make_transitions((), (), ())


class Simulation:
    """What controls, measures and observers have as ``run``.

    Args:
        driver: the protocol under its engine.
        rounds: to run at most.
        changes: who comes up and goes down when.
        leaving: share of those that go down that leave, and do not crash.

    Attributes:
        nodes: the objects of a `Node`; the rows of a `Protocol`.
        alive: bool[n], who is up; change it by `crash` and `start`.
        round: rounds run so far.
        rounds: to run at most.
        stopped: why an observer ended the run, None if none did.
    """

    def __init__(
        self,
        driver: RuleDriver | PlainDriver,
        rounds: int,
        changes: Transitions = NO_CHANGES,
        leaving: float = 0.0,
    ) -> None:
        self._driver = driver
        self._changes = changes
        self._leaving = leaving
        self._applied = 0
        self._joins = 0
        self._departures = 0
        self._joining = 0
        self._rows: list[tuple[float, ...]] = []
        self.round = 0
        self.rounds = rounds
        self.stopped: str | None = None
        declared = [part.declared for part in parts_of(driver.declared)]
        self._controls = list(driver.declared.controls.values())
        self._measures = dict(driver.declared.measures)
        # Layers set themselves up; what is measured is up to the protocol on top.
        self._initialisers = [
            (one, part) for part in declared for one in part.controls.values() if one.begin < 0
        ]

    # For controls, measures and observers.

    @property
    def nodes(self) -> Any:
        """The objects of a `Node`; the rows of a `Protocol`."""
        nodes = self._driver.nodes
        return nodes if isinstance(nodes, list) else range(self._driver.conditions.nodes)

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """bool[n], who is up."""
        return self._driver.alive

    @property
    def time_s(self) -> float:
        """Seconds of simulated time so far."""
        return self.round * self._driver.conditions.round_ticks / TICKS_A_SECOND

    @property
    def seed(self) -> int:
        """Of everything random."""
        return self._driver.conditions.seed

    @property
    def attributes(self) -> Mapping[str, npt.NDArray[Any]]:
        """By name, what each node is: those of the scenario and those that protocols declare."""
        return self._driver.conditions.attributes

    @property
    def messages(self) -> dict[str, int]:
        """By message, how many were taken so far."""
        return self._driver.traffic().messages

    @property
    def size_bytes(self) -> dict[str, int]:
        """By message, how many bytes were taken so far."""
        return self._driver.traffic().size_bytes

    def log(self, message: Any) -> dict[str, npt.NDArray[Any]]:
        """What nodes have logged of a message, a row an entry, in order of time and node.

        Returns:
            Columns: the round, the time in seconds and the node, and the fields of the message.

        Raises:
            ValueError: it is no class of messages.
            ScenarioError: it is one with fields that cannot be logged.
        """
        return self._driver.log().table(message, self._driver.conditions.round_ticks)

    def random(self, purpose: int = 0) -> np.random.Generator:
        """A generator of this round, the same in every run of the seed."""
        return np.random.Generator(np.random.Philox(key=[self.seed, self.round << 8 | purpose]))

    def crash(self, rows: Iterable[int]) -> None:
        """Let nodes go down without a word; raises `ValueError` about rows that there are not."""
        self.alive[self._rows_of("crash", rows)] = False

    def leave(self, rows: Iterable[int]) -> None:
        """Let nodes go down after they have said so, see ``on_leave``; raises as `crash`."""
        for row in self._rows_of("leave", rows).tolist():
            if self.alive[row]:
                self._leave(row)

    def grow(self, count: int) -> range:
        """Let new nodes join, beyond those that there are, as soon as the control has returned.

        They get attributes, sites and rates as the first ones did, and a contact each.

        Returns:
            The rows that they will have.

        Raises:
            ValueError: there would be too many.
            SimulationError: the run cannot grow.
        """
        conditions = self._driver.conditions
        before = conditions.nodes + self._joining
        if type(count) is not int or count < 0 or before + count > MOST_NODES:
            room = MOST_NODES - before
            raise ValueError(f"run.grow is asked for {count!r} nodes, expected 0 to {room}")
        if conditions.grown is None:
            raise SimulationError("run.grow is asked of a run that cannot grow")
        self._joining += count
        return range(before, before + count)

    def start(self, rows: Iterable[int]) -> None:
        """Let nodes that are down come up, each with a random contact; raises as `crash`."""
        for row in self._rows_of("start", rows).tolist():
            if not self.alive[row]:
                self._start(row)

    def stop(self, reason: str) -> None:
        """End the run after this round."""
        self.stopped = reason

    # For whoever runs it.

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing more to run."""
        return self.round >= self.rounds or self.stopped is not None

    def begin(self) -> None:
        """Set the nodes up, start those that are up and take the first measures."""
        self.start_nodes()
        with explained_faults():
            self._measure()

    def start_nodes(self) -> None:
        """Set the nodes up, and start those that are up."""
        with explained_faults():
            for one, declared in self._initialisers:
                one.act_on(self._driver.subject_of(declared), self)
            self._driver.begin()
            self._let_join()

    def run_round(self) -> None:
        """Run one round."""
        ticks = self._driver.conditions.round_ticks
        with explained_faults():
            for one in self._controls:
                if not one.after and one.begin >= 0 and one.is_due(self.round):
                    self._act(one)
            self._advance((self.round + 1) * ticks)
            self.round += 1
            self._measure()
            for one in self._controls:
                if one.after and one.is_due(self.round - 1):
                    self._act(one)

    def table(self) -> dict[str, npt.NDArray[Any]]:
        """The table of rounds: `ROUND_COLUMNS`, and a column of numbers for each measure."""
        names = {**ROUND_COLUMNS, **dict.fromkeys(self._measures, "float64")}
        values = zip(*self._rows, strict=True)
        return {
            name: np.array(column).astype(kind)
            for (name, kind), column in zip(names.items(), values, strict=True)
        }

    def logs(self) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """By name of a message that nodes have logged, what `log` has of it."""
        return {message.name: self.log(message) for message in self._driver.log().kept()}

    def links(self) -> dict[str, Int64s]:
        """Who knows whom now: pairs of rows by kind, nothing where nobody says it."""
        views = self._driver.views()
        found = {name: links_of_views(each) for name, each in views.items()}
        with explained_faults():
            for part in parts_of(self._driver.declared):
                if part.sampler is not None:
                    continue
                subject = self._driver.subject_of(part.declared)
                prefix = part.path.removeprefix(".")
                for kind, pairs in declared_links(part.declared, subject, self):
                    found[f"{prefix}.{kind}".removeprefix(".")] = pairs
        return found

    def dynamic_state(self) -> dict[str, Any]:
        """All that changes; may be pickled."""
        kept = {name: getattr(self, name) for name in _DYNAMIC}
        return {**kept, "driver": self._driver.dynamic_state()}

    def restore(self, dynamic: dict[str, Any]) -> None:
        """Go on from a `dynamic_state` of such a run."""
        for name in _DYNAMIC:
            setattr(self, name, dynamic[name])
        self._driver.restore(dynamic["driver"])

    def _rows_of(self, what: str, given: Iterable[int]) -> Int64s:
        """Rows as a control gives them: whole numbers, or a bool for each row."""
        nodes = len(self.alive)
        expected = f"a list or array of rows from 0 to {nodes - 1}, or of {nodes} bools"
        if not isinstance(given, Iterable):
            raise ValueError(f"run.{what} is given {given!r}, expected {expected}")
        rows = np.asarray(given if isinstance(given, np.ndarray) else list(given))
        if rows.dtype == np.bool_ and rows.shape == (nodes,):
            rows = np.flatnonzero(rows)
        fits = rows.ndim == 1 and (rows.size == 0 or np.issubdtype(rows.dtype, np.integer))
        wrong = rows[(rows < 0) | (rows >= nodes)] if fits else rows.ravel()[:1]
        if wrong.size:
            found = wrong[0].item() if rows.dtype != np.bool_ else f"{rows.size} bools"
            raise ValueError(f"run.{what} is given {found}, expected {expected}")
        return rows.astype(np.int64)

    def _advance(self, tick: int) -> None:
        """Let everything happen before a tick, with nodes coming and going on the way."""
        changes, driver = self._changes, self._driver
        in_cycles = driver.conditions.engine == "cycle"
        # In the cycle engine those of a round come and go at its beginning.
        last = int(np.searchsorted(changes.ticks, tick, "left"))
        for i in range(self._applied, last):
            if not in_cycles and changes.ticks[i] > driver.tick:
                driver.run_until(int(changes.ticks[i]))
            row = int(changes.rows[i])
            if not changes.up[i]:
                self._go(row)
            elif not self.alive[row]:
                self._start(row)
        self._applied = last
        driver.run_until(tick)

    def _act(self, one: ControlOf) -> None:
        """Let a control act; nodes that it lets join do so behind it, as their arrays are new."""
        one.act_on(self._driver.subject_of(self._driver.declared), self)
        self._let_join()

    def _let_join(self) -> None:
        if self._joining == 0:
            return
        conditions = self._driver.conditions
        before, after = conditions.nodes, conditions.nodes + self._joining
        self._joining = 0
        assert conditions.grown is not None
        self._driver.grow(conditions.grown(after))
        others = np.append(np.flatnonzero(self.alive), range(before, after))
        first = len(others) - (after - before)
        for i in range(after - before):
            self._start(before + i, others[: first + i])

    def _go(self, row: int) -> None:
        """Let a node crash or leave, by a draw."""
        self._departures += 1
        drawn = mix.interpreted(self.seed, _LEAVES, self._departures) / _ONE
        if self.alive[row] and drawn < self._leaving:
            self._leave(row)
        self.alive[row] = False

    def _leave(self, row: int) -> None:
        self._driver.leave(row)
        self.alive[row] = False

    def _start(self, row: int, others: Int64s | None = None) -> None:
        """Let a node come up; ``others`` are those that are up."""
        if others is None:
            others = np.flatnonzero(self.alive)
            others = others[others != row]
        contact = -1
        if len(others):
            drawn = mix.interpreted(self.seed, _CONTACTS, self._joins)
            contact = int(others[below.interpreted(drawn, len(others))])
        self._joins += 1
        self.alive[row] = True
        self._driver.start(row, contact)

    def _measure(self) -> None:
        traffic = self._driver.traffic()
        known = (
            self.round,
            self.time_s,
            int(self.alive.sum()),
            sum(traffic.messages.values()),
            sum(traffic.size_bytes.values()),
        )
        subject = self._driver.subject_of(self._driver.declared)
        own = [_number(one, one.take(subject, self)) for one in self._measures.values()]
        self._rows.append((*known, *own))


def _number(one: MeasureOf, taken: Any) -> float:
    try:
        return float(taken)
    except (TypeError, ValueError):
        place, name = place_of(one.take), one.take.__name__
        raise declaration_error(place, f"measure {name}", taken, "a number") from None


_DYNAMIC: Final = ("round", "stopped", "_applied", "_joins", "_departures", "_rows")
