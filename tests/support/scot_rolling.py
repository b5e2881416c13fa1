"""SCOT brokers that are restarted one after another with other settings, while clients go on."""

from __future__ import annotations

import random
from collections.abc import Callable

from gossamer.protocol.brokers.core.effects import Awaits, Effect
from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.brokers.core.messages import Detach
from gossamer.protocol.brokers.scot import Factor, Scot, ScotSettings
from support.scot_clients import Published, Subscriber
from support.scot_overlay import random_tree
from support.scot_take_over import TakeOverPlay


class RollingPlay(TakeOverPlay):
    """All brokers of a SCOT, of which some may take over clients and others not.

    There are ``most`` regions at most, and at most four clusters.

    Attributes:
        taken: what clients had taken at a broker when it was stopped.
    """

    def __init__(self, draw: random.Random, settings: ScotSettings, most: int) -> None:
        regions = random_tree(draw.randrange(2, most + 1), draw)
        clusters = Factor.complete(draw.randrange(2, min(most, 4) + 1))
        super().__init__(draw, scot=Scot(regions, clusters), settings=settings)
        self.taken: set[tuple[str, Id]] = set()

    def _note(self, broker: str, effects: list[Effect], what: Published | Subscriber) -> None:
        waits = any(isinstance(effect, Awaits) for effect in effects)
        assert waits is self.brokers[broker].settings.take_over
        if waits:
            super()._note(broker, effects, what)

    def restart(self, broker: str, settings: ScotSettings, meanwhile: Callable[[], None]) -> None:
        """Stop a broker and start it with other settings; `meanwhile` happens again and again."""
        self.taken |= self.kill(broker)
        meanwhile()
        self.draw.choice([self.notice, self.settle, self.step])()
        meanwhile()
        self.notice()
        self.settings = settings
        self.covers = self.covers or settings.covering
        self.revive(broker, memory=True, meanwhile=meanwhile)
        meanwhile()

    def quieten(self) -> None:
        """Let everything settle while every broker is there: then all that was asked is done."""
        assert not self.dead
        self.settle()
        for one in self.subscribers.values():
            one.safe = True

    def publish_in_peace(self) -> None:
        """Publish at every broker while nothing else happens: that has to reach everybody."""
        self.quieten()
        made = [self.publish(one, x=self.draw.randrange(10)) for one in sorted(self.brokers)]
        self.settle()
        for one in made:
            assert one.safe is not False, f"{one} is not safe"
            one.safe = True

    def check_in_the_end(self, settings: ScotSettings) -> None:
        """Every broker keeps what it would keep if it had always had these settings.

        That is nothing of clients that have gone.
        """
        assert self.refusals == []
        self.check_due()
        for broker in self.brokers.values():
            memory = broker.take_over_memory
            assert memory is not None
            assert not memory.copies
            assert not memory.held
            assert broker.settings == settings
            if not settings.take_over:
                assert not memory.replicas
                assert not any(memory.unacknowledged.values())
        for name, broker in self.brokers.items():
            for session in broker.clients():
                self.tell(name, session.name, Detach())
        self.subscribers.clear()
        self.settle()
        assert not any(self.tables().values())
