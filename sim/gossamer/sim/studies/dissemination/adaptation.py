"""Trees that follow what changes (Sec. VI): cost over time, and what following it costs.

The same play is run with a coordinator that goes on planning, and with one that stops once the
first trees by samples stand. Beside them is OPT, a Steiner tree for every document where its
subscribers are at that moment. Every delivery is checked: a client that wanted a document from well
before it was published until well after has to get it, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.brokers.core.effects import Deliver
from gossamer.protocol.brokers.core.messages import Attach, Detach, Id, Publish
from gossamer.protocol.brokers.graph.messages import by_keywords, keyword_filter
from gossamer.protocol.brokers.graph.settings import GraphSettings
from gossamer.protocol.dissemination.cost import make_sample
from gossamer.protocol.dissemination.optimum import document_costs
from gossamer.protocol.dissemination.plan import make_plan
from gossamer.sim.studies.dissemination.adaptation_network import (
    SECOND,
    RememberingIndex,
    Timing,
    TreeNetwork,
)
from gossamer.sim.studies.dissemination.dynamics import Moved, Play, Published, Script, write_script
from gossamer.sim.studies.dissemination.topologies import Topology

WARM_UP: Final = 30 * SECOND
"""Before a play begins; in its second half documents go by what the play begins with."""
GRACE: Final = 3 * SECOND
"""How long a subscription has to stand before it counts, and a delivery may take."""

ADAPTIVE = GraphSettings(probability=0.25, window=30 * SECOND, interval=10 * SECOND, threshold=0.02)
"""What brokers go by unless something else is said; plays are short, so they sample more."""

Reals = npt.NDArray[np.float64]
Words = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class Run:
    """What one run came to, by stretches of time.

    Attributes:
        cost: of documents on links, of each stretch (Eq. 1, as it happened).
        control_bytes, document_bytes, confirm_bytes: on all links, of each stretch.
        trees: how many there were at the end of each stretch.
        installed: seconds at which other trees came into use.
        documents: how many were published; deliveries: how many were made.
        lost: deliveries that should have been made and were not; doubled: that were made again.
    """

    cost: Reals
    control_bytes: Words
    document_bytes: Words
    confirm_bytes: Words
    trees: Words
    installed: tuple[float, ...]
    documents: int
    deliveries: int
    lost: int
    doubled: int


@attrs.frozen(eq=False)
class Adaptation:
    """A play with trees that follow it, and with trees that do not.

    Attributes:
        stretch: seconds.
        optimum: cost of OPT, of each stretch.
        adaptive, frozen: the two runs.
    """

    play: Play
    stretch: float
    optimum: Reals
    adaptive: Run
    frozen: Run


def run_adaptation(
    topology: Topology,
    play: Play,
    seed: int,
    *,
    settings: GraphSettings = ADAPTIVE,
    timing: Timing | None = None,
    stretch: float = 10.0,
    watch: Callable[[str, float], None] | None = None,
) -> Adaptation:
    """Run a play with and without planning anew, and OPT beside it.

    Args:
        topology: the brokers.
        play: what happens.
        seed: of everything that is drawn.
        settings: of the brokers.
        timing: how long things take.
        stretch: seconds that are summed up at a time.
        watch: told the run and the share of it that is done.
    """
    script = write_script(topology.graph, play, seed)
    runs = {}
    for name in ("adaptive", "frozen"):
        theatre = _Theatre(topology, play, script, settings, timing or Timing(), stretch)
        runs[name] = theatre.run(name, watch)
    optimum = _optimum(topology, play, script, stretch)
    return Adaptation(play, stretch, optimum, runs["adaptive"], runs["frozen"])


class _Theatre:
    """One run of a play."""

    def __init__(
        self,
        topology: Topology,
        play: Play,
        script: Script,
        settings: GraphSettings,
        timing: Timing,
        stretch: float,
    ) -> None:
        # Numbers in front let names go by the topology's order whatever brokers are called.
        self._names = [f"{number:04} {name}" for number, name in enumerate(topology.names)]
        ends = topology.graph.ends.tolist()
        costs = topology.graph.costs.tolist()
        links = {
            (self._names[one], self._names[other]): cost
            for (one, other), cost in zip(ends, costs, strict=True)
        }
        self._network = TreeNetwork(links, settings, timing, self._delivered, RememberingIndex)
        self._play = play
        self._script = script
        self._stretches = round(play.length / stretch)
        self._stretch = int(stretch * SECOND)
        self._audience = _Audience()
        self._places = [broker for broker, _ in script.clients]
        self._installed: list[float] = []
        self._using: object = None

    def run(self, name: str, watch: Callable[[str, float], None] | None) -> Run:
        """Run it."""
        self._warm_up()
        self._network.may_plan = name == "adaptive"
        for document in self._script.documents:
            self._network.call(self._at(document.at), self._publishing(document))
        for move in self._script.moves:
            self._network.call(self._at(move.at), self._moving(move))
        self._network.take_traffic()
        self._installed.clear()
        traffic, trees = [], []
        for number in range(self._stretches):
            self._network.run_until(WARM_UP + (number + 1) * self._stretch)
            traffic.append(self._network.take_traffic())
            trees.append(self._trees())
            if watch is not None:
                watch(name, (number + 1) / self._stretches)
        self._network.run_until(self._network.now + GRACE)
        lost, doubled = self._audience.count_wrong()
        return Run(
            cost=np.array([one.copies for one in traffic]),
            control_bytes=np.array([one.control_bytes for one in traffic], np.int64),
            document_bytes=np.array([one.copies_bytes for one in traffic], np.int64),
            confirm_bytes=np.array([one.confirm_bytes for one in traffic], np.int64),
            trees=np.array(trees, np.int64),
            installed=tuple(self._installed),
            documents=len(self._script.documents),
            deliveries=self._audience.deliveries,
            lost=lost,
            doubled=doubled,
        )

    def _delivered(self, _now: int, effect: Deliver) -> None:
        self._audience.delivered(effect.client, effect.publication.id)

    def _warm_up(self) -> None:
        """Everybody subscribes; then documents as at the beginning of the play are published."""
        network = self._network
        for number, (broker, wanted) in enumerate(self._script.clients):
            self._attach(number, broker, wanted)
        first = [one for one in self._script.documents if one.at < WARM_UP / 2 / SECOND]
        for document in first:
            at = WARM_UP // 2 + int(document.at * SECOND)
            network.call(at, self._publishing(document, counts=False))
        network.run_until(WARM_UP)

    def _at(self, seconds: float) -> int:
        return WARM_UP + round(seconds * SECOND)

    def _attach(self, number: int, broker: int, wanted: tuple[int, ...]) -> None:
        filters = tuple((_word(one), keyword_filter(_word(one))) for one in wanted)
        self._network.send(_client(number), self._names[broker], Attach(filters))
        self._audience.came(self._network.now, _client(number), wanted)

    def _publishing(self, document: Published, *, counts: bool = True) -> Callable[[], None]:
        def publish() -> None:
            name = self._names[document.broker]
            publisher = f"publisher at {name}"
            broker = self._network.brokers[name]
            if all(one.name != publisher for one in broker.clients()):
                self._network.send(publisher, name, Attach())
            id_ = broker.next_id
            if counts:
                self._audience.published(self._network.now, id_, document.keywords)
            values = by_keywords(map(_word, document.keywords))
            self._network.send(publisher, name, Publish(values))
            self._note_version()

        return publish

    def _moving(self, move: Moved) -> Callable[[], None]:
        def leave_and_come() -> None:
            name = _client(move.client)
            here = self._names[self._places[move.client]]
            self._network.send(name, here, Detach())
            self._audience.left(self._network.now, name)
            self._places[move.client] = move.broker
            self._attach(move.client, move.broker, self._script.clients[move.client][1])

        return leave_and_come

    def _note_version(self) -> None:
        routes = self._network.brokers[self._names[0]].present
        version = None if routes is None else routes.plan.version
        if version != self._using:
            self._using = version
            self._installed.append((self._network.now - WARM_UP) / SECOND)

    def _trees(self) -> int:
        return self._network.brokers[self._names[0]].sizes().trees


class _Audience:
    """Who should have got what, and who did."""

    def __init__(self) -> None:
        self.deliveries = 0
        # Of each client the stretches of time at one broker: from when, until when.
        self._stays: dict[str, list[tuple[int, int]]] = {}
        self._wanted: dict[str, frozenset[int]] = {}
        self._documents: dict[Id, tuple[int, tuple[int, ...]]] = {}
        self._got: Counter[tuple[str, Id]] = Counter()

    def came(self, now: int, name: str, wanted: tuple[int, ...]) -> None:
        """A client asks for keywords from now on."""
        self._wanted[name] = frozenset(wanted)
        self._stays.setdefault(name, []).append((now, _FOREVER))

    def left(self, now: int, name: str) -> None:
        """A client asks for nothing any more."""
        begin, _ = self._stays[name].pop()
        self._stays[name].append((begin, now))

    def published(self, now: int, id_: Id, keywords: tuple[int, ...]) -> None:
        """A document was published."""
        self._documents[id_] = now, keywords

    def delivered(self, name: str, id_: Id) -> None:
        """A client got a document."""
        if id_ in self._documents:
            self.deliveries += 1
            self._got[name, id_] += 1

    def count_wrong(self) -> tuple[int, int]:
        """Deliveries that are missing, and those that were made again."""
        lost = 0
        for id_, (at, keywords) in self._documents.items():
            for name, wanted in self._wanted.items():
                if wanted.intersection(keywords) and self._stood(name, at):
                    lost += self._got[name, id_] == 0
        return lost, sum(count - 1 for count in self._got.values() if count > 1)

    def _stood(self, name: str, at: int) -> bool:
        return any(begin + GRACE <= at and at + GRACE <= end for begin, end in self._stays[name])


_FOREVER: Final = 1 << 62


def _optimum(topology: Topology, play: Play, script: Script, stretch: float) -> Reals:
    """OPT: a Steiner tree for each document, by where its subscribers are when it is published."""
    graph = topology.graph
    places = [broker for broker, _ in script.clients]
    holders: dict[int, list[int]] = {}
    for number, (_, wanted) in enumerate(script.clients):
        for keyword in wanted:
            holders.setdefault(keyword, []).append(number)
    costs = np.zeros(round(play.length / stretch))
    moves = list(script.moves)
    table = None
    for number in range(len(costs)):
        documents = [
            one for one in script.documents if number * stretch <= one.at < (number + 1) * stretch
        ]
        matches: list[list[int]] = []
        stood: list[int] = []
        for one in documents:
            while moves and moves[0].at < one.at:
                places[moves[0].client] = moves[0].broker
                moves.pop(0)
            found = {client for keyword in one.keywords for client in holders.get(keyword, ())}
            # Each document has its subscribers to itself, as these move.
            matches.append(list(range(len(stood), len(stood) + len(found))))
            stood += [places[client] for client in sorted(found)]
        sample = make_sample(graph.nodes, [one.broker for one in documents], matches, stood)
        plan = make_plan(graph, sample, table)
        table = plan.table
        costs[number] = document_costs(plan, sample).sum()
    return costs


def _client(number: int) -> str:
    return f"client {number:04}"


def _word(keyword: int) -> str:
    return f"k{keyword}"
