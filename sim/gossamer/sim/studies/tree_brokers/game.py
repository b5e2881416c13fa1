"""The mobile scenario of the selective paper (Sec. V-F, Fig. 11, 12): a distributed online game.

Players subscribe to what happens near them in the game's world and move between the brokers of
their region; monitors, one a region at first, subscribe to everything and move between all brokers;
publishers stay.

The paper gives neither filters nor the rate of publications. Here a player asks for a square around
a place of the world, which stays the same when the player moves to another broker ("unsubscribed
and resubscribed"); publications come at the rate of its other experiments, one every 400 ms. That
monitors leave their region is our reading: only of the others is it said that they do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from typing import Final

import attrs

from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.content.grammar import Comparison, Operator
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.tree_brokers.commuters import Journey, journeys
from gossamer.sim.studies.tree_brokers.scene import MINUTE, NUMBER, SECOND, Placed, Step, publishes
from gossamer.sim.studies.tree_brokers.topology import BrokerOverlay, tiered
from gossamer.sim.study.draws import choices, rows_from, uniform

WORLD: Final = 1_000
IN_TURN, EACH = "in_turn", "each"
_EVERYTHING: Final = parse("present(x) and present(y)")
_OFFER: Final = parse(f"present(x) and present(y) and present({NUMBER})")

# The seed's streams.
_HOMES, _SQUARES, _PUBLISHERS, _PLACES, _MONITORS, _MOVES = 221, 222, 223, 224, 225, 226
# Rows of a stream that are drawn at a time.
_BATCH: Final = 1_024


@attrs.frozen(kw_only=True)
class Game:
    """Players, monitors and publishers; all times are microseconds.

    Attributes:
        overlay: with regions.
        players, publishers: how many; the paper's 5,000 and 40.
        monitor_every: time between two moves of a monitor.
        monitors_move: "the monitors move at a rate of one movement every 2 minutes": "in_turn":
            all together; "each": each of them.
        player_every: time between two moves of any player; 0: none moves.
        publish_every: time between two publications of any publisher.
        away: how long whoever moves is nowhere, a guess.
        smallest, largest: half the side of a player's square, of a world of 1,000.
        seed: of all draws.
    """

    overlay: BrokerOverlay = attrs.field(factory=tiered)
    players: int = 5_000
    publishers: int = 40
    monitor_every: int = 2 * MINUTE
    monitors_move: str = IN_TURN
    player_every: int = 0
    publish_every: int = 400_000
    away: int = SECOND
    smallest: int = 10
    largest: int = 50
    seed: int = 1

    def __attrs_post_init__(self) -> None:
        for name in ("players", "publishers", "monitor_every", "publish_every", "smallest"):
            if getattr(self, name) < 1:
                raise ScenarioError(None, f"workload.{name}", getattr(self, name), "at least 1")
        if self.monitors_move not in (IN_TURN, EACH):
            expected = f"one of {IN_TURN}, {EACH}"
            raise ScenarioError(None, "workload.monitors_move", self.monitors_move, expected)
        if not self.smallest <= self.largest < WORLD // 2:
            expected = f"from the smallest, {self.smallest}, to less than {WORLD // 2}"
            raise ScenarioError(None, "workload.largest", self.largest, expected)

    def advertisements(self) -> Iterator[Placed]:
        """Every publisher announces everything."""
        hosts = self.overlay.publisher_hosts
        rows = rows_from(0, self.publishers)
        for number, host in enumerate(choices(self.seed, _PUBLISHERS, rows, 0, len(hosts))):
            yield Placed(hosts[int(host)], f"publisher {number}", _OFFER)

    def standing(self) -> Iterator[Placed]:
        """One monitor in each region, then the players."""
        yield from self._monitors()
        yield from self._players()

    def steps(self, span: int) -> Iterator[Step]:
        """Publications and moves."""
        streams: list[Iterable[Step]] = [self._publications(span), self._monitor_moves(span)]
        if self.player_every:
            streams.append(self._player_moves(span))
        return merge(*streams, key=lambda step: step.at)

    def square(self, player: int) -> Filter:
        """What a player asks for."""
        row = rows_from(player, 1)
        half = self.smallest + int(
            choices(self.seed, _SQUARES, row, 2, self.largest - self.smallest + 1)[0]
        )
        comparisons = []
        for column, name in enumerate(("x", "y")):
            middle = half + int(choices(self.seed, _SQUARES, row, column, WORLD - 2 * half)[0])
            comparisons += [
                Comparison(name, Operator.AT_LEAST, middle - half),
                Comparison(name, Operator.LESS, middle + half),
            ]
        return Filter.of(comparisons)

    def _players(self) -> list[Placed]:
        hosts = self.overlay.subscriber_hosts
        homes = choices(self.seed, _HOMES, rows_from(0, self.players), 0, len(hosts)).tolist()
        return [
            Placed(hosts[home], f"player {player}", self.square(player))
            for player, home in enumerate(homes)
        ]

    def _monitors(self) -> list[Placed]:
        regions = list(self.overlay.regions().values())
        drawn = uniform(self.seed, _MONITORS, rows_from(0, len(regions)), 0).tolist()
        return [
            Placed(hosts[int(draw * len(hosts))], f"monitor {number}", _EVERYTHING)
            for number, (hosts, draw) in enumerate(zip(regions, drawn, strict=True))
        ]

    def _publications(self, span: int) -> Iterator[Step]:
        hosts = [placed.broker for placed in self.advertisements()]
        for first in range(0, -(-span // self.publish_every), _BATCH):
            rows = rows_from(first, _BATCH)
            x, y = (choices(self.seed, _PLACES, rows, column, WORLD) for column in (0, 1))
            who = choices(self.seed, _PLACES, rows, 2, len(hosts))
            for row in range(_BATCH):
                at = (first + row) * self.publish_every
                if at >= span:
                    return
                values: dict[str, object] = {"x": int(x[row]), "y": int(y[row])}
                yield publishes(at, hosts[int(who[row])], first + row, values)

    def _monitor_moves(self, span: int) -> Iterator[Step]:
        monitors, hosts = self._monitors(), self.overlay.subscriber_hosts
        each = self.monitors_move == EACH
        every = max(1, self.monitor_every // len(monitors)) if each else self.monitor_every
        drawn = uniform(self.seed, _MONITORS, rows_from(0, span // every), 1)
        going = (
            Journey((row + 1) * every, row % len(monitors), hosts, draw)
            for row, draw in enumerate(drawn.tolist())
        )
        return journeys(monitors, going, self.away)

    def _player_moves(self, span: int) -> Iterator[Step]:
        regions = {host: hosts for hosts in self.overlay.regions().values() for host in hosts}
        players = self._players()
        rows = rows_from(0, span // self.player_every)
        who = choices(self.seed, _MOVES, rows, 0, self.players).tolist()
        drawn = uniform(self.seed, _MOVES, rows, 1).tolist()
        going = (
            Journey((row + 1) * self.player_every, one, regions[players[one].broker], draw)
            for row, (one, draw) in enumerate(zip(who, drawn, strict=True))
        )
        return journeys(players, going, self.away)
