"""A drawn play of documents, installations and one failure, and what has to be true of it."""

from __future__ import annotations

import random
from collections import Counter
from typing import Final

import networkx as nx
from attrs import define, field

from gossamer.protocol.brokers.graph.memory.settings import STRATEGIES, GraphSettings
from gossamer.protocol.content.filters import parse
from support.tree_brokers import TICK, TreeOverlay, random_links

NOTHING, KILL, REVIVE, FORGET, CUT, SPLIT = "nothing", "kill", "revive", "forget", "cut", "split"
FAILURES: Final = (NOTHING, KILL, REVIVE, FORGET, CUT, SPLIT)
TEXTS: Final = ("a == true", "b == true", "n > 3", "n < 7", "n > 2 and a == true")
STEPS: Final = 160
AWAY: Final = 25
"""Steps that a broker or link is away, where it comes back."""


@define(eq=False)
class TreePlay:
    """A random overlay with clients, in which one thing fails at a drawn moment.

    The clients that are there from the beginning ask for ``texts``; ``failed`` has the brokers that
    died, whether they came back or not.
    """

    failure: str
    draw: random.Random
    overlay: TreeOverlay
    texts: dict[str, str] = field(factory=dict)
    failed: set[str] = field(factory=set)
    _cut: list[tuple[str, str]] = field(factory=list)

    @classmethod
    def drawn(cls, failure: str, seed: int) -> TreePlay:
        """A play that has not begun, with clients whose subscriptions stand."""
        draw = random.Random(seed)
        settings = GraphSettings(
            probability=1.0,
            interval=draw.choice([1, 3]) * TICK,
            threshold=draw.choice([0.0, 0.1]),
            strategy=draw.choice(STRATEGIES),
        )
        links = random_links(draw.randrange(2, 9), draw.randrange(0, 6), draw)
        play = cls(failure, draw, TreeOverlay(links, settings, seed))
        for number in range(draw.randrange(1, 8)):
            name, text = f"client {number}", draw.choice(TEXTS)
            play.texts[name] = text
            play.overlay.subscribe(name, draw.choice(sorted(play.overlay.brokers)), text)
            if draw.random() < 0.3:
                play.overlay.subscribe(name, play.overlay.home[name], "a == true and n < 2")
                play.texts[name] = f"{text} or a == true and n < 2"
        play.overlay.come_to_rest(4)
        return play

    def run(self) -> None:
        """Publish, let messages arrive, let something fail, and in the end all come to rest."""
        moment = self.draw.randrange(STEPS - AWAY)
        for step in range(STEPS):
            self._do_something(step)
            if step == moment:
                self._fail()
            if step == moment + AWAY:
                self._mend()
        self.overlay.come_to_rest(12)

    def run_wildly(self) -> None:
        draw, overlay = self.draw, self.overlay
        for step in range(STEPS):
            self._do_something(step)
            broken = [one for one in overlay.links if overlay.can_mend(one)]
            working = [one for one in overlay.links if overlay.works(one)]
            chance = draw.random()
            if chance < 0.03 and len(overlay.brokers) > 1:
                overlay.kill(draw.choice(sorted(overlay.brokers)))
            elif chance < 0.07 and overlay.dead:
                overlay.revive(draw.choice(sorted(overlay.dead)))
            elif chance < 0.10 and working:
                overlay.break_link(*draw.choice(working))
            elif chance < 0.14 and broken:
                overlay.mend_link(*draw.choice(broken))
        for broker in sorted(overlay.dead):
            overlay.revive(broker)
        for link in overlay.links:
            if overlay.can_mend(link):
                overlay.mend_link(*link)
        overlay.come_to_rest(14)

    def _do_something(self, step: int) -> None:
        draw, overlay = self.draw, self.overlay
        chance = draw.random()
        broker = draw.choice(sorted(overlay.brokers))
        if chance < 0.25:
            flags = draw.random() < 0.3, draw.random() < 0.5
            overlay.publish(broker, n=draw.randrange(10), a=flags[0], b=flags[1])
        elif chance < 0.30:
            overlay.tick()
        elif chance < 0.32:
            overlay.subscribe(f"late {step}", broker, draw.choice(TEXTS))
        else:
            for _ in range(draw.randrange(1, 6)):
                overlay.step()

    def _fail(self) -> None:
        """Mostly it is the coordinator that fails."""
        draw, overlay = self.draw, self.overlay
        if self.failure == CUT:
            self._cut = [draw.choice(overlay.links)]
        elif self.failure == SPLIT:
            side = set(draw.sample(sorted(overlay.brokers), len(overlay.brokers) // 2))
            self._cut = [link for link in overlay.links if len(side.intersection(link)) == 1]
        elif self.failure != NOTHING:
            leading = [name for name, one in overlay.brokers.items() if one.phase is not None]
            anybody = sorted(overlay.brokers)
            broker = draw.choice(leading if leading and draw.random() < 0.7 else anybody)
            overlay.kill(broker)
            self.failed.add(broker)
        for link in self._cut:
            overlay.break_link(*link)

    def _mend(self) -> None:
        if self.failure in (REVIVE, FORGET):
            for broker in self.failed:
                self.overlay.revive(broker, remembers=self.failure == REVIVE)
        elif self.failure == SPLIT or self.draw.random() < 0.5:
            for link in self._cut:
                self.overlay.mend_link(*link)

    # What has to be true.

    def twice(self) -> list[tuple[str, object]]:
        found = Counter((one.client, one.id) for one in self.overlay.deliveries)
        return [key for key, count in found.items() if count > 1]

    def missed(self) -> list[tuple[str, object]]:
        """Documents that a client should have got, and did not: none while brokers are in parts.

        Brokers that died for good, or lost their memory, promise nothing to clients and publishers.
        """
        overlay = self.overlay
        if not nx.is_connected(overlay.graph()):
            return []
        silent = self.failed if self.failure != REVIVE else set()
        got = {(one.client, one.id) for one in overlay.deliveries}
        return [
            (name, id_)
            for id_, (publisher, values) in overlay.published.items()
            for name in self.texts
            if self.wants(name, values)
            and overlay.home.get(name, "") in overlay.brokers.keys() - silent
            and publisher not in silent
            and (name, id_) not in got
        ]

    def unwanted(self) -> list[tuple[str, object]]:
        overlay = self.overlay
        return [
            (one.client, one.id)
            for one in overlay.deliveries
            if one.client in self.texts and not self.wants(one.client, one.values)
        ]

    def wants(self, name: str, values: dict[str, object]) -> bool:
        return any(parse(text).matches(values) for text in self.texts[name].split(" or "))
