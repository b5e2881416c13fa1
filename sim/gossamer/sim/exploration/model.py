"""A protocol as it is explored: its rules over a few nodes, and the state in which they begin.

What is explored are the rules of a `Protocol`, the same that run at a million nodes:

- Messages are taken in any order. One to a node that is down comes back, as in a run, if a node
  that the sender has set up can notice: the network reports it and a class has ``on_unreachable``.
- Time is abstract. A timer may fire at any moment at a node that is up, and so may what ``after``
  has set for later, whatever the delay: no order follows from delays. The clock stands still, so
  that ``net.now`` is 0 and `seconds` too, but for the budget of rounds: each lets it go on by a
  round at any moment. A rule that compares readings sees these values only.
- A step that draws is explored with each of so many first draws, spread evenly over all; what it
  draws then follows from the first. With at least as many as ``draw_below`` has values, and a
  multiple of them, each value comes.
- Nodes that initialisers let crash are not up yet; each may come up at any moment, with any node
  that is up as its contact.
- What is logged is no part of a state, nor are measures, controls and observers explored.
- A handle of ``after`` is never given out twice, so that a protocol that cancels timers has states
  without end: give it a depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np

from gossamer.protocol.kernel.debugging.checked_run import CheckedRun, checked_step, is_wanted
from gossamer.protocol.kernel.draws import mix
from gossamer.protocol.kernel.errors import CapacityError, RecordError
from gossamer.protocol.kernel.records import make_outbox
from gossamer.protocol.kernel.struct import Struct
from gossamer.sim.custom.conditions import Conditions, Traffic, whole_seconds
from gossamer.sim.custom.faults import explained_faults
from gossamer.sim.custom.language.declarations import Declarations
from gossamer.sim.custom.language.messages import misused
from gossamer.sim.custom.protocol import make_state, parts_of
from gossamer.sim.custom.rule_driver import places_of
from gossamer.sim.custom.simulation import Simulation
from gossamer.sim.custom.step import step_of
from gossamer.sim.engine.latency import Int64s
from gossamer.sim.engine.link_conditions import fault_at
from gossamer.sim.errors import ScenarioError
from gossamer.sim.exploration.loops import BEGIN, FULL, make_apply
from gossamer.sim.exploration.packed import (
    BUDGET_BITS,
    BUDGET_NAMES,
    COLUMNS,
    MOST_BUDGET,
    MOST_NODES,
    NEVER,
    STATUS,
    UP,
    Workspace,
    find_records,
    with_status,
)
from gossamer.sim.exploration.symmetry import naming_tables
from gossamer.sim.studies.custom.scenario import CustomScenario
from gossamer.sim.studies.custom.simulation import attributes_of

MOST_RECORDS: Final = 256
RECORD_WORDS: Final = 2048
_OUTBOX_WORDS: Final = 1 << 16
# Arrays of a state that are no part of what is explored.
_OTHERS: Final = ("draws", "life", "rates", "refused")
_SEARCHED: Final = 1 << 20


@attrs.frozen(kw_only=True)
class Bounds:
    """What may go wrong, and how far an exploration goes.

    Attributes:
        losses, duplicates, crashes, leaves, restarts: how often in all; 0 to 255.
        rounds: by how many the clock goes on.
        in_flight: a timer fires only while fewer messages are in flight.
        draws: with how many first draws a step that draws is explored.
        depth: actions from the beginning at most; None without a bound.
        states: stop behind the level in which there are more.
        symmetric: whether states that differ in the names of nodes only are one.
    """

    losses: int = 0
    duplicates: int = 0
    crashes: int = 0
    leaves: int = 0
    restarts: int = 0
    rounds: int = 0
    in_flight: int = 4
    draws: int = 4
    depth: int | None = None
    states: int | None = None
    symmetric: bool = False

    def __attrs_post_init__(self) -> None:
        low = {"in_flight": 1, "draws": 1, "depth": 1, "states": 1}
        high = {"in_flight": MOST_RECORDS // 2, "depth": 1 << 30, "states": 1 << 33}
        for name, value in attrs.asdict(self).items():
            if name == "symmetric" or (value is None and name in ("depth", "states")):
                continue
            least, most = low.get(name, 0), high.get(name, MOST_BUDGET)
            if type(value) is not int or not least <= value <= most:
                raise ScenarioError(None, name, value, f"a whole number from {least} to {most}")

    @property
    def budgets(self) -> int:
        """The word of all budgets."""
        values = [getattr(self, name) for name in BUDGET_NAMES]
        return sum(value << (BUDGET_BITS * place) for place, value in enumerate(values))


class Model:
    """The rules of a protocol over a few nodes.

    Args:
        scenario: of one system, whose settings, attributes, network and seed are taken.
        nodes: how many there are.
        bounds: what may go wrong.
        debug: whether rules run interpreted and checked; None: as the environment says.

    Attributes:
        state: of the protocol, of one global state at a time.
        workspace: where actions happen.
        apply: the loop of one action.
        first: int64[], the packed state in which everything begins.
        step_number: the step of a story that is taken; errors of a checked one say it.

    Raises:
        ScenarioError: it cannot be explored.
        SimulationError: an initialiser raised something.
    """

    def __init__(
        self,
        scenario: CustomScenario,
        nodes: int,
        bounds: Bounds,
        *,
        debug: bool | None = False,
    ) -> None:
        (system,) = scenario.systems
        self.declared: Declarations = system.protocol.declared
        self.scenario, self.nodes, self.bounds = scenario, nodes, bounds
        self.parts = list(parts_of(self.declared))
        self.round_ticks = whole_seconds(scenario.round_s)
        self._check(nodes)
        reports = scenario.network.reports_unreachable and any(
            "unreachable" in part.declared.handlers for part in self.parts
        )
        attributes = attributes_of(scenario, system, nodes)
        plain: Any = make_state(
            self.declared,
            nodes,
            system.settings,
            scenario.seed,
            attributes,
            life=np.zeros(nodes, np.int64),
            rates=np.empty(0),
            refused=np.zeros(1, np.int64),
            handles=np.zeros((nodes, places_of(self.parts)), np.int64),
            drifting=False,
            in_cycles=True,  # timers are actions: the protocol's step is to arm none
            ticks_a_now=1,
            round_ticks=self.round_ticks,
            round_s=self.round_ticks / 1000,
        )
        self.attributes = attributes
        self._build(plain, nodes, reports)
        self.step_number = 0
        self._given: Any = self.state
        step = step_of(self.declared)
        if is_wanted(debug):
            step = checked_step(step)
            self._given = CheckedRun(self.state, 0, nodes, lambda: f"step {self.step_number}")
        self.apply = make_apply(step)
        self.first = self._first()

    def _check(self, nodes: int) -> None:
        if not 1 <= nodes <= MOST_NODES:
            raise ScenarioError(None, "nodes", nodes, f"1 to {MOST_NODES}")
        for part in self.parts:
            if part.sampler is not None:
                expected = "columns of whom a node knows, as samplers are not explored"
                raise self.declared.error("layers", None, expected, found="a stack with a sampler")

    def _build(self, plain: Any, nodes: int, reports: bool) -> None:
        """Lay the columns of the state out in one piece, and make the workspace."""
        named = list(_explored(plain))
        whole = [array for _, array in named if array.dtype != np.bool_]
        flags = [array for _, array in named if array.dtype == np.bool_]
        words = (array.ravel().view(np.int64) for array in whole)
        columns = np.concatenate([np.empty(0, np.int64), *words])
        bools = np.concatenate([np.empty(0, np.bool_), *(array.ravel() for array in flags)])
        draws = np.zeros((len(self.parts), nodes), np.int64)
        places: dict[int, Any] = {}
        for arrays, memory in ((whole, columns), (flags, bools)):
            begin = 0
            for array in arrays:
                piece = memory[begin : begin + array.size]
                places[id(array)] = piece.view(array.dtype).reshape(array.shape)
                begin += array.size
        # Where each column begins among the words of a packed state.
        self.columns: dict[str, tuple[int, tuple[int, ...], Any]] = {}
        begins = {False: 0, True: columns.size}
        for name, array in named:
            is_flag = array.dtype == np.bool_
            self.columns[name] = (begins[is_flag], array.shape, array.dtype)
            begins[is_flag] += array.size
        drawn = {id(part.state_in(plain).draws): draws[i] for i, part in enumerate(self.parts)}
        laid: Any = _laid_out(plain, places | drawn)
        self.state = laid
        width = columns.size + bools.size
        self.workspace = Workspace(
            nodes=nodes,
            width=width,
            whole=columns.size,
            choices=self.bounds.draws,
            in_flight=self.bounds.in_flight,
            rounds=self.bounds.rounds,
            round_ticks=self.round_ticks,
            reports=reports,
            columns=columns,
            flags=bools,
            draws=draws,
            positions=self._positions(nodes),
            life=plain.life,
            handles=laid.handles,
            alive=np.ones(nodes, np.bool_),
            timers=np.array([timer.kind for timer in self.timers], np.int64),
            out=make_outbox(_OUTBOX_WORDS),
            own=np.zeros(_OUTBOX_WORDS, np.int64),
            pool=np.zeros(RECORD_WORDS, np.int64),
            order=np.zeros(MOST_RECORDS, np.int64),
            offsets=np.zeros(MOST_RECORDS, np.int64),
            counts=np.zeros(3, np.int64),
            made=np.zeros(COLUMNS + width + RECORD_WORDS, np.int64),
            digest=np.zeros(2, np.uint64),
            other=np.zeros(COLUMNS + width + RECORD_WORDS, np.int64),
            **naming_tables(self, width),
        )

    @property
    def timers(self) -> list[Any]:
        """All timers of the stack, those of layers first."""
        return [timer for part in self.parts for timer in part.declared.timers.values()]

    def _positions(self, nodes: int) -> Int64s:
        """Where nodes' draws begin in a step, by part, node and choice: int64[parts, n, choices].

        The first draw of choice c of k is in the middle half of [c / k, (c + 1) / k).
        """
        choices = self.bounds.draws
        found = np.full((len(self.parts), nodes, choices), -1, np.int64)
        for part, row in np.ndindex(found.shape[:2]):
            seed = self.parts[part].state_in(self.state).seed
            for counter in range(_SEARCHED):
                drawn = mix.interpreted(seed, row, counter + 1) / (1 << 62) * choices
                choice = int(drawn)
                if found[part, row, choice] < 0 and abs(drawn - choice - 0.5) < 0.25:
                    found[part, row, choice] = counter
                    if found[part, row].min() >= 0:
                        break
        return found

    def _first(self) -> Int64s:
        """The state in which initialisers have acted and those who are up have started."""
        w = self.workspace
        run = Simulation(_Beginning(self), 1)  # type: ignore[arg-type]
        run.begin()
        status = sum((UP if up else NEVER) << (2 * p) for p, up in enumerate(w.alive))
        # Those who are up start one after another, as if they had not been up before.
        words = np.zeros(COLUMNS + w.width, np.int64)
        words[:COLUMNS] = len(words), self.bounds.budgets, status
        words[COLUMNS : COLUMNS + w.whole] = w.columns
        words[COLUMNS + w.whole :] = w.flags
        for p in np.flatnonzero(w.alive).tolist():
            words[STATUS] = with_status.interpreted(int(words[STATUS]), p, NEVER)
            words = self.after(words, BEGIN, p, 0, 0)
        return words

    def after(self, words: Int64s, kind: int, a: int, b: int, choice: int) -> Int64s:
        """The state that follows from one by an action; raises as `refuse`."""
        find_records(self.workspace, words, 0)
        with explained_faults():
            verdict = self.apply(self._given, self.workspace, words, 0, kind, a, b, choice)
        if verdict < 0:
            self.refuse(verdict)
        return self.workspace.made[: self.workspace.made[0]].copy()

    def look_at(self, words: Int64s) -> None:
        """Let ``state`` and the workspace's ``alive`` be those of a packed state."""
        w = self.workspace
        w.columns[:] = words[COLUMNS : COLUMNS + w.whole]
        w.flags[:] = words[COLUMNS + w.whole : COLUMNS + w.width]
        status = int(words[STATUS])
        w.alive[:] = [status >> (2 * p) & 3 == UP for p in range(w.nodes)]

    def refuse(self, verdict: int) -> None:
        """Raise the error about an action that could not be taken.

        Raises:
            CapacityError: more is in flight than an exploration has room for.
            RecordError: a rule wrote a record that cannot be.
            ScenarioError: a rule sent a message as it is not declared.
        """
        w = self.workspace
        if verdict == FULL:
            expected = "a smaller in_flight, or a protocol that sends less"
            raise CapacityError("an explored state", RECORD_WORDS, expected)
        error: RecordError = fault_at(w.out, 0, w.nodes)
        for part in self.parts:
            for message in part.declared.messages.values():
                if message.kind == -error.kind:
                    raise misused(message) from error
        raise error


class _Beginning:
    """What initialisers act by, in place of a driver of a run."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.declared = attrs.evolve(model.declared, measures={})
        self.nodes = model.state
        self.alive = model.workspace.alive
        self.conditions = Conditions(
            nodes=model.workspace.nodes,
            seed=model.scenario.seed,
            round_ticks=model.round_ticks,
            attributes=model.attributes,
        )

    def subject_of(self, declared: Declarations) -> Any:
        """The state of a part."""
        for part in self._model.parts:
            if part.declared is declared:
                return part.state_in(self._model.state)
        return self._model.state

    def begin(self) -> None:
        """Start nobody: that is an action."""

    def traffic(self) -> Traffic:
        """Nothing has been sent."""
        return Traffic({}, {}, _NONE, _NONE)


_NONE: Final = np.zeros(0, np.int64)


def _explored(struct: Struct, path: str = "") -> Iterator[tuple[str, Any]]:
    """The arrays of a state that are explored, with where they are."""
    for name in struct.field_names():
        value = getattr(struct, name)
        if isinstance(value, Struct):
            yield from _explored(value, f"{path}{name}.")
        elif isinstance(value, np.ndarray) and name not in _OTHERS and value.size:
            yield f"{path}{name}", value


def _laid_out(struct: Struct, places: Mapping[int, Any]) -> Struct:
    """A struct with other arrays in place of some."""
    fields = {}
    for name in struct.field_names():
        value = getattr(struct, name)
        if isinstance(value, Struct):
            value = _laid_out(value, places)
        fields[name] = places.get(id(value), value)
    return type(struct)(**fields)
