"""Publications over brokers whose decisions are taken once and replayed.

What a broker does with a notification depends on where it comes from, on what it says and carries,
and on the broker's revision (`ScotBroker.revision`). So each broker is asked once for each of them,
and does the same with all notifications that are alike; a compiled loop (`replay_loop`) sees to
queues and time. The outcome is that of a `ScotNetwork`, to the microsecond, some thirty times
faster where few different publications are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import attrs
import numpy as np

from gossamer.protocol.brokers.core.effects import Deliver, Effect, Refuse, Send
from gossamer.protocol.brokers.core.messages import Attach, Detach, Hop, Publish, client, neighbour
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
    Unsubscription,
)
from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.content.filters import Publication as Values
from gossamer.sim.errors import SimulationError
from gossamer.sim.studies.scot import replay_loop as loop
from gossamer.sim.studies.scot.replay_loop import Decisions, Fixed, Int64s
from gossamer.sim.studies.scot.replay_network import ScotNetwork, tell_queues
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


class _Tally(NamedTuple):
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
        added = (now - earlier for now, earlier in zip(self, before, strict=True))
        matched, lost, detours, case = added
        return _Tally(matched, lost, detours, case.bit_length() // 20)


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
        self._flow.brokers[:, loop.TAKEN] = list(network.taken.values())

    def run(self) -> Replayed:
        """Let everything happen."""
        while True:
            why = loop.run_events.compiled(self._fixed, self._flow, self._decisions.tables)
            if why == loop.IDLE:
                break
            if why == loop.UNDECIDED:
                self._decide()
            elif why == loop.WINDOW:
                self._tell_queues()
            else:
                self._flow = roomier(self._flow)
        self._network.now = int(self._flow.registers[loop.NOW])
        taken = self._flow.brokers[:, loop.TAKEN].tolist()
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
        event = int(self._flow.registers[loop.PENDING])
        what, which = event & 3, event >> 2
        if what == loop.PUBLISHED:
            broker = self._brokers[self._fixed.broker[which]]
            origin, shape = self._place[broker.name], int(self._fixed.shape[which])
            source = None
        else:
            link, shape = self._flow.messages[which, :2].tolist()
            one, other = self._fixed.ends[link].tolist()
            broker, origin = self._brokers[other], len(self._brokers) + link
            source = neighbour(self._brokers[one].name)
        before = _Tally.of(broker)
        self._network.now = int(self._flow.registers[loop.NOW])
        effects = self._ask(broker, source, self._messages[shape])
        self._tallies.append(_Tally.of(broker).since(before))
        copies = [self._copy(broker, shape, effect) for effect in effects_sent(broker, effects)]
        clients = sum(isinstance(effect, Deliver) for effect in effects)
        revision = int(self._flow.brokers[self._place[broker.name], loop.REVISION_NOW])
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
        flow, names = self._flow, list(self._network.brokers)
        told: dict[str, list[QueueReport]] = {}
        for row in flow.reports[: flow.registers[loop.REPORTS]].tolist():
            link, length, entered, left = row
            one, other = self._fixed.ends[link].tolist()
            told.setdefault(names[one], []).append(QueueReport(names[other], length, entered, left))
        now = int(flow.registers[loop.NOW])
        waiting: dict[str, InputQueue] = {}
        if self._network.settings.input_queues:
            columns = flow.brokers[:, [loop.FREE_AT, loop.TAKEN]].T.tolist()
            found = self._inputs.at(now, *columns)
            waiting = {names[place]: queue for place, queue in found.items()}
        before = [broker.revision for broker in self._brokers]
        tell_queues(self._network.brokers, now, told, waiting)
        for place, broker in enumerate(self._brokers):
            flow.brokers[place, loop.REVISION_NOW] += broker.revision != before[place]

    def _result(self) -> Replayed:
        flow, tables = self._flow, self._decisions.tables
        registers = flow.registers
        uses = self._decisions.uses()
        rows = flow.deliveries[: registers[loop.DELIVERIES]]
        cases: dict[int, int] = {}
        for tally, times in zip(self._tallies, uses.tolist(), strict=True):
            if tally.case:
                cases[tally.case] = cases.get(tally.case, 0) + times
        inter = self._sent_between_clusters(tables, uses)
        return Replayed(
            publication=rows[:, 0],
            received=rows[:, 1],
            clients=rows[:, 2],
            windows=flow.windows[: registers[loop.WINDOWS]],
            burst_links=int(flow.links[:, loop.MARKED].sum()),
            inter=inter,
            intra=int(registers[loop.MESSAGES]) - inter,
            matchings=_total(uses, [tally.matched for tally in self._tallies]),
            lost=_total(uses, [tally.lost for tally in self._tallies]),
            detours=_total(uses, [tally.detours for tally in self._tallies]),
            cases=dict(sorted(cases.items())),
            decisions=len(self._tallies),
            last=flow.last,
            ended=int(registers[loop.NOW]),
        )

    def _sent_between_clusters(self, tables: Decisions, uses: Int64s) -> int:
        clusters = np.array([broker.position.label.cluster for broker in self._brokers])
        between = clusters[self._fixed.ends[:, 0]] != clusters[self._fixed.ends[:, 1]]
        counts = tables.rows[: len(uses), loop.COPIES]
        links = tables.copies[: int(counts.sum()), loop.LINK]
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


# Subscription broadcast at scale: brokers are asked once for all subscriptions that are alike.
#
# What a broker does with a new subscription depends on where it comes from and on its host cluster
# (Algorithm 1), so that the broadcast can be replayed. Each way is asked with a probe, which is
# taken back at once; then the subscriptions are entered into the tables. The outcome is that of a
# `ScotNetwork`: the same tables, messages and times.


_PROBE, _LABEL = "probe", "one"


@attrs.frozen(kw_only=True, eq=False)
class Subscribers:
    """Clients that attach with one subscription each; in order of time.

    Attributes:
        at: int64, when each reaches its broker, microseconds.
        broker: int64, which broker, by place in the network.
        names: of the clients, all different.
        wanted: what each subscribes to.
    """

    at: Int64s
    broker: Int64s
    names: Sequence[str]
    wanted: Sequence[Filter]


def broadcast(network: ScotNetwork, subscribers: Subscribers) -> Replayed:
    """Let clients attach and subscribe in a network in which nothing is under way.

    Static or dynamic routing, without covering, all brokers sharing a catalogue. Brokers do not
    count what they send and receive; the result does.

    Raises `SimulationError` for other settings, and if a broker refuses anything.
    """
    settings = network.settings
    if settings.covering or settings.routing == "bid":
        raise SimulationError("only a broadcast in two steps, without covering, repeats itself")
    none = np.zeros(len(subscribers.at), np.int64)
    publications = Publications(
        at=subscribers.at,
        broker=subscribers.broker,
        content=none,
        marked=none,
        contents=(),
        publishers={},
    )
    attach = Attach(((_PROBE, parse(f"present({_PROBE})")),))
    replay = Replay(network, publications, [attach], _ask)
    result = replay.run()
    _enter(network, subscribers, replay)
    return result


def _ask(broker: ScotBroker, source: Hop | None, message: Message) -> list[Effect]:
    """What a broker does with a subscription; it is then as before."""
    if source is None:
        effects = broker.handle(0, client(_PROBE), message)
        broker.handle(0, client(_PROBE), Detach())
    else:
        assert isinstance(message, Subscription)
        effects = broker.handle(0, source, message)
        broker.handle(0, source, Unsubscription(message.id))
    return effects


def _enter(network: ScotNetwork, subscribers: Subscribers, replay: Replay) -> None:
    """Let brokers know the subscriptions: first at home, then wherever they came."""
    brokers = list(network.brokers.values())
    first: dict[int, int] = {}
    held: dict[int, list[int]] = {}
    for place, home in enumerate(subscribers.broker.tolist()):
        source, wanted = client(subscribers.names[place]), subscribers.wanted[place]
        effects = brokers[home].handle(network.now, source, Attach(((_LABEL, wanted),)))
        first.setdefault(home, place)
        held.setdefault(home, []).extend(_numbers(network, effects_sent(brokers[home], effects)))
    for home, place in first.items():
        numbers = np.array(held[home], np.intp)
        for one, other in replay.ways(place):
            network.brokers[other].learn(one, numbers)


def _numbers(network: ScotNetwork, sent: Sequence[Send]) -> list[int]:
    """The number of the subscription that is sent, if the broker has any neighbour."""
    messages = (effect.message for effect in sent[:1])
    ids = (message.id for message in messages if isinstance(message, Subscription))
    found = (network.catalogue.number_of(id_) for id_ in ids)
    return [number for number in found if number is not None]
