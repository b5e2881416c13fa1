"""The section `[graph]` of a node's configuration: brokers of a general graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from gossamer.node.config import checks
from gossamer.node.config.broker import BrokerFamily
from gossamer.protocol.kernel.errors import ConfigError

if TYPE_CHECKING:
    from gossamer.protocol.brokers.graph.settings import GraphSettings


# Those of `gossamer.protocol.brokers.graph.settings`, which other nodes do not load.
STRATEGIES: Final = ("single", "mult", "mult2", "hybrid", "tried")
_MICROSECONDS: Final = 1_000_000


def _share(_instance: Any, field: attrs.Attribute[Any], value: Any) -> None:
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise ConfigError(f"graph.{field.name}", value, "a number from 0 to 1")


@attrs.frozen(kw_only=True)
class GraphSection:
    """How brokers of a general graph sample, plan and wait.

    All brokers of an overlay are better set alike: any may be coordinator.

    Attributes:
        probability: that a publication is sampled; 0.03 is the paper's.
        window_s: seconds for which a sample counts; all times are guesses, as the paper names none.
        samples: publications that count at the coordinator at most.
        interval_s: seconds between two plans, while nothing fails.
        tick_s: seconds between two looks at what there is to do, such as a broker that is gone.
        threshold: the share of the cost that new trees have to save.
        strategy: mult, mult2, hybrid, single for one tree, or tried for as many as pay on
            publications that they were not planned with.
        absence_s: seconds that publications wait for a broker that is away.
    """

    SECTION: ClassVar = "graph"
    probability: float = attrs.field(default=0.03, validator=_share)
    window_s: float = attrs.field(default=600.0, validator=checks.seconds(1, 86_400))
    samples: int = attrs.field(default=2_000, validator=checks.whole_number(1, 10_000))
    interval_s: float = attrs.field(default=60.0, validator=checks.seconds(0.1, 86_400))
    tick_s: float = attrs.field(default=1.0, validator=checks.seconds(0.05, 60))
    threshold: float = attrs.field(default=0.05, validator=_share)
    strategy: str = attrs.field(default="mult", validator=checks.one_of(STRATEGIES))
    absence_s: float = attrs.field(default=3_600.0, validator=checks.seconds(0, 604_800))

    def settings(self, waiting: int) -> GraphSettings:
        """What the broker is told; ``waiting`` publications wait at most."""
        from gossamer.protocol.brokers.graph.settings import GraphSettings

        return GraphSettings(
            probability=self.probability,
            window=_microseconds(self.window_s),
            samples=self.samples,
            interval=_microseconds(self.interval_s),
            tick=_microseconds(self.tick_s),
            threshold=self.threshold,
            strategy=self.strategy,
            absence=_microseconds(self.absence_s),
            waiting=waiting,
        )


def _microseconds(seconds: float) -> int:
    return int(seconds * _MICROSECONDS)


GRAPH: Final = BrokerFamily(
    name=GraphSection.SECTION,
    schema="that of graph brokers, version 1",
    host="gossamer.node.broker.families.graph:host_of",
    section=GraphSection,
)
