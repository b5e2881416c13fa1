"""A scene: clients that subscribe, leave, move and publish, and what a broker overlay makes of it.

All clients of a broker are one to it, whose subscriptions have labels. A subscriber that moves is
"unsubscribed and resubscribed at different brokers" (selective paper, Sec. V-F).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

import attrs

from gossamer.protocol.brokers.core.messages import FromClient, Publish
from gossamer.protocol.brokers.tree import TreeSettings
from gossamer.protocol.content.filters import Filter
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.tree_brokers.overlay.engine import Links
from gossamer.sim.studies.tree_brokers.overlay.service import FixedTimes, ServiceTimes
from gossamer.sim.studies.tree_brokers.overlay.topology import BrokerOverlay

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
# Every publication carries its number, by which its deliveries are known.
NUMBER: Final = "number"


class Placed(NamedTuple):
    """A filter that the clients of a broker ask for, or announce, under a label."""

    broker: str
    label: str
    filter: Filter


class Step(NamedTuple):
    """Something that the clients of a broker do, at a time in microseconds of the scene."""

    at: int
    broker: str
    message: FromClient


class Workload(Protocol):
    """Who asks for what, and what happens; the same whenever it is asked for."""

    @property
    def overlay(self) -> BrokerOverlay:
        """Who is linked to whom."""

    def advertisements(self) -> Iterable[Placed]:
        """What publishers announce, `NUMBER` included."""

    def standing(self) -> Iterable[Placed]:
        """What is subscribed before the scene begins, in that order."""

    def steps(self, span: int) -> Iterator[Step]:
        """What happens within ``span`` microseconds, in the order of time.

        Publications carry their number, which counts from 0.
        """


@attrs.frozen(kw_only=True)
class Scene:
    """What is to happen; all times are microseconds.

    Attributes:
        workload: who asks for what, and when.
        settings: of all brokers.
        service: what messages cost from the beginning of the scene on; before, they cost nothing.
        links: what links do.
        warm_up: for how long nothing is measured.
        span: for how long after that.
        drain: for how long deliveries are waited for when nothing is done any more.
        sample_every: time between two looks at queues and tables.
    """

    workload: Workload
    settings: TreeSettings
    service: ServiceTimes
    links: Links = attrs.field(factory=Links)
    warm_up: int = 0
    span: int = 60 * MINUTE
    drain: int = 0
    sample_every: int = SECOND

    def __attrs_post_init__(self) -> None:
        for name, least in (("warm_up", 0), ("span", 1), ("drain", 0), ("sample_every", 1)):
            value = getattr(self, name)
            if value < least:
                raise ScenarioError(None, f"scene.{name}", value, f"at least {least}")


def publishes(at: int, broker: str, number: int, values: Mapping[str, object]) -> Step:
    """A publisher at a broker publishes values."""
    return Step(at, broker, Publish({**values, NUMBER: number}))


def standing_for(service: FixedTimes, publications: int) -> FixedTimes:
    """Service times where each publication stands for several, so that brokers are as busy.

    A run with one publication in ten, each of which takes ten times as long, has the same load and
    a tenth of the events; delays are known to within the service time of one.
    """
    return attrs.evolve(service, publication=service.publication * publications)
