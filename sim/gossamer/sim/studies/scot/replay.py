"""Publications over brokers whose decisions are taken once and replayed.

What a broker does with a notification depends on where it comes from, on what it says and carries,
and on the broker's revision (`ScotBroker.revision`). So each broker is asked once for each of them,
and does the same with all notifications that are alike; a compiled loop (`replay_loop`) sees to
queues and time. The outcome is that of a `ScotNetwork`, to the microsecond, some thirty times
faster where few different publications are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs
import numpy as np

from gossamer.protocol.brokers.core.effects import Deliver, Effect, Refuse, Send
from gossamer.protocol.brokers.core.messages import Hop, Publish, client, neighbour
from gossamer.protocol.brokers.scot import ScotBroker
from gossamer.protocol.brokers.scot.messages import (
    BetweenBrokers,
    BidNotification,
    Bypass,
    Detour,
    InputQueue,
    Message,
    Notification,
    QueueReport,
    Subscription,
    WindowEnded,
)
from gossamer.protocol.content.filters import Publication as Values
from gossamer.sim.errors import SimulationError
from gossamer.sim.studies.scot import replay_loop as loop
from gossamer.sim.studies.scot import replay_state as state
from gossamer.sim.studies.scot.replay_network import ScotNetwork
from gossamer.sim.studies.scot.replay_state import Decisions, Fixed, Int64s
from gossamer.sim.studies.scot.replay_tables import (
    DecisionTables,
    InputQueues,
    new_flow,
    roomier,
    spread_of,
)

Ask = Callable[[ScotBroker, Hop | None, Message], list[Effect]]


@attrs.frozen(kw_only=True, eq=False)
class Publications:
    """What is published; rows in order of time.

    Attributes:
        at: int64, when each reaches its broker, microseconds.
        broker: int64, which broker, by place in the network.
        content: int64, what it says, by place in ``contents``.
        marked: int64, 1 for those of the burst.
        contents: all that is said.
        publishers: an attached client of every broker that something is published at.
    """

    at: Int64s
    broker: Int64s
    content: Int64s
    marked: Int64s
    contents: Sequence[Values]
    publishers: Mapping[str, str]


@attrs.frozen(kw_only=True, eq=False)
class Replayed:
    """What happened; times are microseconds.

    Attributes:
        publication, received, clients: int64, a row for each broker that handed a publication to
            clients: which, when, and to how many.
        windows: int64[windows, 4]: time, longest output queue, messages in all of them, messages
            in those of links that the burst used at some time.
        burst_links: how many links the burst used.
        inter, intra: messages sent between and within clusters.
        matchings: how often a broker matched a notification with its table.
        lost: copies that had no link to go on.
        detours: copies that went around an overloaded link within the cluster.
        cases: notifications by case of Algorithm 4.
        decisions: how often a broker was asked.
        last: int64[publications], when a broker last worked on each.
        ended: when nothing was left.
    """

    publication: Int64s
    received: Int64s
    clients: Int64s
    windows: Int64s
    burst_links: int
    inter: int
    intra: int
    matchings: int
    lost: int
    detours: int
    cases: dict[int, int]
    decisions: int
    last: Int64s
    ended: int


def replay(network: ScotNetwork, publications: Publications) -> Replayed:
    """Publish over a network in which nothing is under way, and nothing has failed.

    The clock of the network is set forward; brokers count only what they were asked.

    Raises `SimulationError` if a broker refuses anything.
    """

    def ask(broker: ScotBroker, source: Hop | None, message: Message) -> list[Effect]:
        sender = client(publications.publishers[broker.name]) if source is None else source
        return broker.handle(network.now, sender, message)

    messages = [Publish(values) for values in publications.contents]
    return Replay(network, publications, messages, ask).run()


@attrs.frozen
class _Tally:
    """What a broker counted when it took a decision."""

    matched: int
    lost: int
    detours: int
    case: int

    @classmethod
    def of(cls, broker: ScotBroker) -> _Tally:
        counters = broker.counters
        # Each case is counted apart, so that the difference of two tallies tells which it was.
        case = sum(number << (20 * case) for case, number in counters.cases.items())
        return cls(counters.matched, counters.lost, counters.detours, case)

    def since(self, before: _Tally) -> _Tally:
        case = (self.case - before.case).bit_length() // 20
        return _Tally(
            self.matched - before.matched,
            self.lost - before.lost,
            self.detours - before.detours,
            case,
        )


class Replay:
    """A replay under way.

    Args:
        network: in which nothing is under way.
        publications: what clients send.
        messages: what that is, by `Publications.content`; brokers work equally long on all.
        ask: what a broker does with a message of a neighbour, or of a client if None.
    """

    def __init__(
        self,
        network: ScotNetwork,
        publications: Publications,
        messages: Sequence[Message],
        ask: Ask,
    ) -> None:
        self._network = network
        self._ask = ask
        self._brokers = list(network.brokers.values())
        self._place = {name: place for place, name in enumerate(network.brokers)}
        self._links = {ends: number for number, ends in enumerate(network.links())}
        ends = [(self._place[one], self._place[other]) for one, other in self._links]
        self._messages = list(messages)
        self._content = list(range(len(messages)))
        self._shapes: dict[tuple[object, ...], int] = {}
        self._tallies: list[_Tally] = []
        costs = network.times
        self._fixed = Fixed(
            at=publications.at,
            broker=publications.broker,
            shape=publications.content,
            marked=publications.marked,
            ends=np.array(ends, np.int64).reshape(-1, 2),
            costs=np.array([costs.latency, costs.gap, costs.uplink_gap, network.window], np.int64),
            work=np.array([network.service.of(name, messages[0]) for name in network.brokers]),
            spread=spread_of(network.service.spread),
        )
        self._decisions = DecisionTables()
        self._inputs = InputQueues(self._fixed.work.tolist())
        self._flow = new_flow(len(self._brokers), len(ends), len(publications.at), network.now)
        self._flow.brokers[:, state.TAKEN] = list(network.taken.values())

    def run(self) -> Replayed:
        """Let everything happen."""
        while True:
            why = loop.run_events.compiled(self._fixed, self._flow, self._decisions.tables)
            if why == state.IDLE:
                break
            if why == state.UNDECIDED:
                self._decide()
            elif why == state.WINDOW:
                self._tell_queues()
            else:
                self._flow = roomier(self._flow)
        self._network.now = int(self._flow.registers[state.NOW])
        taken = self._flow.brokers[:, state.TAKEN].tolist()
        self._network.taken.update(zip(self._network.brokers, taken, strict=True))
        return self._result()

    def ways(self, publication: int) -> Iterator[tuple[str, str]]:
        """The links that the copies of one took, if everything was decided once."""
        origin, shape = int(self._fixed.broker[publication]), int(self._fixed.shape[publication])
        waiting = [(origin, shape)]
        while waiting:
            for link, following in self._decisions.copies(*waiting.pop()):
                one, other = self._fixed.ends[link].tolist()
                yield self._brokers[one].name, self._brokers[other].name
                waiting.append((len(self._brokers) + link, following))

    def _decide(self) -> None:
        """Ask a broker what to do with the message that is pending, and keep the answer."""
        event = int(self._flow.registers[state.PENDING])
        what, which = event & 3, event >> 2
        if what == state.PUBLISHED:
            broker = self._brokers[self._fixed.broker[which]]
            origin, shape = self._place[broker.name], int(self._fixed.shape[which])
            source = None
        else:
            link, shape = self._flow.messages[which, :2].tolist()
            one, other = self._fixed.ends[link].tolist()
            broker, origin = self._brokers[other], len(self._brokers) + link
            source = neighbour(self._brokers[one].name)
        before = _Tally.of(broker)
        self._network.now = int(self._flow.registers[state.NOW])
        effects = self._ask(broker, source, self._messages[shape])
        self._tallies.append(_Tally.of(broker).since(before))
        copies = [self._copy(broker, shape, effect) for effect in effects_sent(broker, effects)]
        clients = sum(isinstance(effect, Deliver) for effect in effects)
        revision = int(self._flow.brokers[self._place[broker.name], state.REVISION_NOW])
        self._decisions.enter((origin, shape), revision, copies, clients)

    def _copy(self, broker: ScotBroker, shape: int, effect: Send) -> tuple[int, int, int, int]:
        """Link, shape, time on the link beyond the usual, and work at its end."""
        message, network = effect.message, self._network
        return (
            self._links[broker.name, effect.neighbour],
            self._shape_of(message, self._content[shape]),
            network.added(message),
            network.service.of(effect.neighbour, message),
        )

    def _shape_of(self, message: BetweenBrokers, content: int) -> int:
        key = (content, type(message), carried(message))
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = len(self._messages)
            self._messages.append(message)
            self._content.append(content)
        return shape

    def _tell_queues(self) -> None:
        """Tell brokers of their output queues, and see whether that changes what they decide."""
        flow = self._flow
        names = [broker.name for broker in self._brokers]
        told: dict[int, list[QueueReport]] = {}
        for row in flow.reports[: flow.registers[state.REPORTS]].tolist():
            link, length, entered, left = row
            one, other = self._fixed.ends[link].tolist()
            told.setdefault(one, []).append(QueueReport(names[other], length, entered, left))
        now = int(flow.registers[state.NOW])
        before = [broker.revision for broker in self._brokers]
        waiting = self._waiting(now)
        sent: list[tuple[str, Send]] = []
        for place in {**told, **waiting}:
            broker = self._brokers[place]
            ended = WindowEnded(tuple(told.get(place, ())), waiting.get(place))
            effects = broker.handle(now, None, ended)
            sent += [(broker.name, one) for one in effects if isinstance(one, Send)]
        for name, effect in sent:
            receiver = self._brokers[self._place[effect.neighbour]]
            receiver.handle(now, neighbour(name), effect.message)
        for place, broker in enumerate(self._brokers):
            flow.brokers[place, state.REVISION_NOW] += broker.revision != before[place]

    def _waiting(self, now: int) -> dict[int, InputQueue]:
        """How long input queues are, where brokers tell each other."""
        if not self._network.settings.input_queues:
            return {}
        columns = self._flow.brokers[:, [state.FREE_AT, state.TAKEN]].T.tolist()
        return self._inputs.at(now, *columns)

    def _result(self) -> Replayed:
        flow, tables = self._flow, self._decisions.tables
        registers = flow.registers
        uses = self._decisions.uses()
        rows = flow.deliveries[: registers[state.DELIVERIES]]
        cases: dict[int, int] = {}
        for tally, times in zip(self._tallies, uses.tolist(), strict=True):
            if tally.case:
                cases[tally.case] = cases.get(tally.case, 0) + times
        inter = self._sent_between_clusters(tables, uses)
        return Replayed(
            publication=rows[:, 0],
            received=rows[:, 1],
            clients=rows[:, 2],
            windows=flow.windows[: registers[state.WINDOWS]],
            burst_links=int(flow.links[:, state.MARKED].sum()),
            inter=inter,
            intra=int(registers[state.MESSAGES]) - inter,
            matchings=_total(uses, [tally.matched for tally in self._tallies]),
            lost=_total(uses, [tally.lost for tally in self._tallies]),
            detours=_total(uses, [tally.detours for tally in self._tallies]),
            cases=dict(sorted(cases.items())),
            decisions=len(self._tallies),
            last=flow.last,
            ended=int(registers[state.NOW]),
        )

    def _sent_between_clusters(self, tables: Decisions, uses: Int64s) -> int:
        clusters = np.array([broker.position.label.cluster for broker in self._brokers])
        between = clusters[self._fixed.ends[:, 0]] != clusters[self._fixed.ends[:, 1]]
        counts = tables.rows[: len(uses), state.COPIES]
        links = tables.copies[: int(counts.sum()), state.LINK]
        return int((between[links] * np.repeat(uses, counts)).sum())


def effects_sent(broker: ScotBroker, effects: Sequence[Effect]) -> list[Send]:
    """What is to be sent; raises `SimulationError` about what was refused."""
    for effect in effects:
        if isinstance(effect, Refuse):
            raise SimulationError(f"broker {broker.name}: {effect.error}")
    return [effect for effect in effects if isinstance(effect, Send)]


def carried(message: BetweenBrokers) -> object:
    """What tells messages apart that say the same, besides their kind."""
    match message:
        case Notification():
            return message.targets
        case BidNotification():
            return message.bids
        case Detour():
            return message.cluster, message.notification.targets
        case Subscription():
            return message.host
        case Bypass():
            return message.cluster, message.region, message.past, message.notification.targets
    raise SimulationError(f"what becomes of a {type(message).__name__} does not repeat itself")


def _total(uses: Int64s, values: Sequence[int]) -> int:
    return int((uses * np.array(values, np.int64)).sum())
