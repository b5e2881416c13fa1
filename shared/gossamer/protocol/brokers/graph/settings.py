"""How brokers of a general graph sample, plan and wait, and what trees are made for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.graph.messages import Plan, Version
from gossamer.protocol.kernel.errors import ConfigError

SINGLE, MULT, MULT2, HYBRID, TRIED = "single", "mult", "mult2", "hybrid", "tried"
STRATEGIES: Final = (SINGLE, MULT, MULT2, HYBRID, TRIED)

_SECOND: Final = 1_000_000

MAX_SAMPLES: Final = 10_000
"""Most documents sent as samples at once, and kept."""


@frozen
class GraphSettings:
    """What the brokers of an overlay have in common; times are microseconds.

    Where nothing else is said the paper leaves the value open, and it is a guess.

    Attributes:
        probability: that a document is sampled; 0.03 is the paper's (Sec. VII-B).
        window: for so long a sample counts.
        samples: documents that count at the coordinator at most, the latest.
        kept: of these, how many a broker keeps of its own for the next coordinator.
        tick: between two looks of a broker at what there is to do.
        interval: between two plans, while nothing fails.
        threshold: the share of the cost that new trees have to save (Sec. VI).
        strategy: of `strategies`: "single", "mult", "mult2" or "hybrid"; or "tried", `trial`:
            as "mult" with as many trees as cost least on documents that they were not planned
            with, which may be one.
        absence: how long documents wait for a broker that is away; it is an end of every tree then.
        waiting: documents that wait at a broker for a link, at most.
        remembered: documents that a broker remembers to have delivered. Only where something fails
            does a document come again.
        seed: draws which documents are sampled.
    """

    probability: float = field(default=0.03)
    window: int = field(default=600 * _SECOND)
    samples: int = field(default=2_000)
    kept: int = field(default=500)
    tick: int = field(default=_SECOND)
    interval: int = field(default=60 * _SECOND)
    threshold: float = field(default=0.05)
    strategy: str = field(default=MULT)
    absence: int = field(default=3_600 * _SECOND)
    waiting: int = field(default=100_000)
    remembered: int = field(default=10_000)
    seed: int = field(default=0)

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise ConfigError("probability", self.probability, "a number from 0 to 1")
        if not 0 <= self.threshold < 1:
            raise ConfigError("threshold", self.threshold, "a number from 0 to less than 1")
        if self.strategy not in STRATEGIES:
            raise ConfigError("strategy", self.strategy, f"one of {', '.join(STRATEGIES)}")
        for name in ("window", "samples", "kept", "tick", "interval", "waiting", "remembered"):
            if not getattr(self, name) >= 1:
                raise ConfigError(name, getattr(self, name), "a whole number of at least 1")
        for name in ("samples", "kept"):
            if getattr(self, name) > MAX_SAMPLES:
                expected = f"at most {MAX_SAMPLES}, as one message tells all"
                raise ConfigError(name, getattr(self, name), expected)
        if not self.absence >= 0:
            raise ConfigError("absence", self.absence, "a number of microseconds from 0 on")


@frozen
class Problem:
    """What trees are made for.

    Attributes:
        version: that they will be.
        strategy: by which they are made.
        brokers: that can be reached, by name.
        links: between them: two numbers of brokers and a cost.
        absent: brokers that are away, and beside which other each hangs.
        interests: subscriptions, and the number of the broker where each is served.
        documents: of the sample: where they were published, and which subscriptions match.
        present: the trees in use, where they can be compared with new ones.
    """

    version: Version
    strategy: str
    brokers: tuple[str, ...]
    links: tuple[tuple[int, int, float], ...]
    absent: Mapping[str, str]
    interests: tuple[tuple[Id, int], ...]
    documents: tuple[tuple[int, tuple[int, ...]], ...]
    present: Plan | None
