"""What changes while brokers run: interests that drift, a topic that flares up, people who move.

Keywords have a home in the graph, and are wanted by clients near it, as in `workload`. What is
published changes: documents go from one region to another, and both regions wander (`DRIFT`); for
some time most documents are about one keyword that many want (`FLASH`); or clients leave for other
brokers, far away (`MOVING`).
"""

from __future__ import annotations

import math
from typing import Final

import attrs

from gossamer.protocol.dissemination.graph import Graph
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.dissemination.topologies import Stream
from gossamer.sim.studies.dissemination.workload import Nearest

DRIFT, FLASH, MOVING = "drift", "flash", "moving"
DYNAMICS: Final = (DRIFT, FLASH, MOVING)

_KEY = 64


@attrs.frozen(kw_only=True)
class Play:
    """How much happens; times are seconds.

    Attributes:
        kind: which of `DYNAMICS`.
        length: from when the first trees stand to the end.
        rate: documents in a second.
        keywords: how many there are.
        subscribers: of each keyword.
        neighbourhood: share of the brokers that a region has.
        stays: in `DRIFT`, for how long documents go from one region to another.
        flash: in `FLASH`, when it begins and ends, and the share of documents that are about it.
        moves: in `MOVING`, a client moves every so many seconds.
    """

    kind: str = DRIFT
    length: float = 240.0
    rate: float = 10.0
    keywords: int = 40
    subscribers: int = 6
    neighbourhood: float = 0.15
    stays: float = 60.0
    flash: tuple[float, float, float] = (80.0, 160.0, 0.8)
    moves: float = 2.0

    def __attrs_post_init__(self) -> None:
        if self.kind not in DYNAMICS:
            raise ScenarioError(None, "kind", self.kind, f"one of {', '.join(DYNAMICS)}")
        for name in ("length", "rate", "stays", "moves"):
            if not getattr(self, name) > 0:
                raise ScenarioError(None, name, getattr(self, name), "a number above 0")
        for name in ("keywords", "subscribers"):
            if getattr(self, name) < 1:
                value = getattr(self, name)
                raise ScenarioError(None, name, value, "a whole number of at least 1")
        if not 0 < self.neighbourhood <= 1:
            value = self.neighbourhood
            raise ScenarioError(None, "neighbourhood", value, "a share above 0, up to 1")


@attrs.frozen
class Published:
    """A document: when (seconds), at which broker, about what."""

    at: float
    broker: int
    keywords: tuple[int, ...]


@attrs.frozen
class Moved:
    """A client moves to another broker: when (seconds), who, and where to."""

    at: float
    client: int
    broker: int


@attrs.frozen(eq=False)
class Script:
    """What happens, in order of time.

    Attributes:
        clients: by number, the broker where each is at first and the keywords that it wants.
        documents: what is published.
        moves: who moves.
    """

    clients: tuple[tuple[int, tuple[int, ...]], ...]
    documents: tuple[Published, ...]
    moves: tuple[Moved, ...]


def write_script(graph: Graph, play: Play, seed: int) -> Script:
    """Draw what happens in a play on a graph."""
    return _Writer(graph, play, seed).script()


class _Writer:
    def __init__(self, graph: Graph, play: Play, seed: int) -> None:
        self._brokers = graph.nodes
        self._near = Nearest(graph)
        self._size = max(1, math.ceil(play.neighbourhood * graph.nodes))
        self._play = play
        self._stream = Stream(seed, _KEY)

    def script(self) -> Script:
        homes, wanted = self._interests()
        # One client a broker, as in Sec. VII-A, so that clients can move apart.
        clients = tuple((broker, tuple(sorted(found))) for broker, found in sorted(wanted.items()))
        return Script(clients, tuple(self._documents(homes)), tuple(self._moves(len(clients))))

    def _interests(self) -> tuple[list[int], dict[int, set[int]]]:
        homes: list[int] = []
        wanted: dict[int, set[int]] = {}
        for keyword in range(self._play.keywords):
            home = self._stream.below(self._brokers)
            homes.append(home)
            around = self._near.to(home, self._size)
            if keyword == 0 and self._play.kind == FLASH:
                around = list(range(self._brokers))
            count = self._play.subscribers
            for broker in self._stream.some(around, 3 * count if keyword == 0 else count):
                wanted.setdefault(broker, set()).add(keyword)
        return homes, wanted

    def _documents(self, homes: list[int]) -> list[Published]:
        play, stream = self._play, self._stream
        found = []
        source, target = stream.below(self._brokers), stream.below(self._brokers)
        stage = 0
        for number in range(round(play.length * play.rate)):
            at = number / play.rate
            if play.kind == DRIFT and at >= (stage + 1) * play.stays:
                stage += 1
                source, target = stream.below(self._brokers), stream.below(self._brokers)
            begin, end, share = play.flash
            if play.kind == FLASH and begin <= at < end and stream.uniform() < share:
                found.append(Published(at, stream.below(self._brokers), (0,)))
                continue
            publisher = self._one_near(source)
            region = set(self._near.to(target, self._size))
            local = [keyword for keyword, home in enumerate(homes) if home in region]
            about = stream.some(local or list(range(len(homes))), 2)
            found.append(Published(at, publisher, tuple(sorted(about))))
        return found

    def _moves(self, clients: int) -> list[Moved]:
        if self._play.kind != MOVING:
            return []
        count = int(self._play.length / self._play.moves)
        stream = self._stream
        return [
            Moved(
                (1 + number) * self._play.moves, stream.below(clients), stream.below(self._brokers)
            )
            for number in range(count - 1)
        ]

    def _one_near(self, broker: int) -> int:
        return self._near.to(broker, self._size)[self._stream.below(self._size)]
