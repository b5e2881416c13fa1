"""K1 to K12: what `kindred` is to achieve, in numbers of our own.

Each is a mean over the seeds that were run. The bounds were set from prototypes, before the preset
was there (overheads, hops, hit ratios), or are what we hold to be bearable (load, control messages,
tables). A claim of which nothing was run is skipped, and says why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import attrs

from gossamer.sim.figures.common.claims import Check, Claim
from gossamer.sim.figures.common.measurements import OVERHEAD, PATH, TREE, Measurements, unit_of
from gossamer.sim.figures.common.points import Outcome
from gossamer.sim.figures.kindred.studies import (
    BACKWARDS,
    FAST,
    FULL,
    KINDRED,
    MONTH,
    RANGES,
    SILENT,
    STANDARD,
    SUBSCRIBERS,
    TOPICS,
)
from gossamer.sim.figures.vinifera.studies import (
    ATTRIBUTES,
    KINDS,
    RANDOM,
    RATES,
    REAL_TRACE,
    SIZES,
)
from gossamer.sim.studies.peers.inputs.scenario import TOPICS as TOPIC_KIND

HIT, WORST_HOUR = "hit_ratio", "hit_ratio_worst_hour"
LOAD, CONTROL = "load_max", "control_messages_per_node_cycle"


@attrs.frozen
class Bound:
    """One measured value and its bound.

    Attributes:
        name: of the value; with which subscriptions is added.
        measure: what is measured.
        study, kind, x: where.
        low, high: the bounds, both included.
    """

    name: str
    measure: str
    study: str
    kind: str
    x: float = 0
    low: float = -math.inf
    high: float = math.inf

    def outcomes(self, found: Measurements) -> Sequence[Outcome]:
        """What it is about."""
        return found.select(self.study, KINDRED, self.kind, self.x)

    def check(self, found: Measurements) -> Check | None:
        """The check, or None where it was not measured with the nodes that it is about."""
        sizes = {outcome.point.scenario.nodes for outcome in self.outcomes(found)}
        # Of churn, any number.
        wanted = {SIZES: int(self.x), ATTRIBUTES: FULL.attribute_nodes}.get(self.study, STANDARD)
        if not sizes or (self.study not in _CHURN and wanted not in sizes):
            return None
        return Check(
            f"{self.name}, {self.kind}",
            found.value(self.measure, self.study, KINDRED, self.kind, self.x),
            unit_of(self.measure),
            low=self.low,
            high=self.high,
        )


_Row = tuple[str, str, str, float, float, float]


def _most(*rows: _Row) -> list[Bound]:
    """Upper bounds: name, measure, study and x, with random and with skewed subscriptions."""
    return [
        Bound(*row[:3], kind, row[3], high=high)
        for row in rows
        for kind, high in zip(KINDS, row[4:], strict=True)
    ]


def _least(*rows: _Row) -> list[Bound]:
    """Lower bounds of the same form."""
    return [attrs.evolve(one, low=one.high, high=math.inf) for one in _most(*rows)]


_CHURN: Final = (MONTH, FAST, BACKWARDS, SILENT)
# Sentences of the claims, with their bounds.
CLAIMS: Final[Mapping[str, tuple[str, list[Bound]]]] = MappingProxyType(
    {
        "K1": (
            "1,000 nodes: little overhead, short paths, shallow trees, no busy node, few messages.",
            _most(
                ("overhead", OVERHEAD, SIZES, 1000, 0.24, 0.01),
                ("hops", PATH, SIZES, 1000, 4.6, 6.3),
                ("hops, 99 %", "path_length_p99", SIZES, 1000, 7, 10),
                ("depth of the tree", TREE, SIZES, 1000, 1.2, 3.0),
                ("busiest node", LOAD, SIZES, 1000, 0.02, 0.04),
                ("control messages a node and round", CONTROL, SIZES, 1000, 25, 25),
            ),
        ),
        "K2": (
            "10,000 nodes: overhead vanishes, and paths grow by two hops.",
            _most(
                ("overhead", OVERHEAD, SIZES, 10_000, 0.04, 0.005),
                ("hops", PATH, SIZES, 10_000, 6.5, 8.5),
            ),
        ),
        "K3": (
            "100,000 nodes: the same again.",
            _most(
                ("overhead", OVERHEAD, SIZES, 100_000, 0.01, 0.005),
                ("hops", PATH, SIZES, 100_000, 9, 11),
            ),
        ),
        "K4": (
            "Two, three and five attributes: overhead grows slowly.",
            _most(
                ("2 attributes: overhead", OVERHEAD, ATTRIBUTES, 2, 0.55, 0.02),
                ("3 attributes: overhead", OVERHEAD, ATTRIBUTES, 3, 0.62, 0.02),
                ("5 attributes: overhead", OVERHEAD, ATTRIBUTES, 5, 0.72, 0.02),
            ),
        ),
        "K5": (
            "Nodes with three and eight unrelated ranges cause little overhead.",
            _most(
                ("3 ranges: overhead", OVERHEAD, RANGES, 3, 0.15, 0.02),
                ("8 ranges: overhead", OVERHEAD, RANGES, 8, 0.1, 0.02),
            ),
        ),
        "K6": (
            "Eight of fifty topics a node: hardly any overhead, and no busy node.",
            [
                Bound("overhead", OVERHEAD, TOPICS, TOPIC_KIND, high=0.02),
                Bound("busiest node", LOAD, TOPICS, TOPIC_KIND, high=0.04),
            ],
        ),
        "K7": (
            "60 % of the nodes want nothing: they are spared.",
            [
                Bound("one range: overhead", OVERHEAD, SUBSCRIBERS, RANDOM, 1, high=0.42),
                Bound("three ranges: overhead", OVERHEAD, SUBSCRIBERS, RANDOM, 3, high=0.3),
            ],
        ),
        "K8": (
            "5,000 nodes: routing tables stay small.",
            _most(("largest routing table", "routing_table_entries_max", SIZES, 5000, 64, 300)),
        ),
        "K9": (
            "A month of the Skype trace: next to nothing is missed, and overhead stays low.",
            [
                *_least(
                    ("hit ratio", HIT, MONTH, 0, 0.99999, 0.99999),
                    ("worst hour", WORST_HOUR, MONTH, 0, 0.999, 0.999),
                ),
                *_most(("overhead", OVERHEAD, MONTH, 0, 0.31, 0.04)),
            ],
        ),
        "K10": (
            "The same played four times as fast, and backwards.",
            _least(
                ("four times as fast: hit ratio", HIT, FAST, 0, 0.9999, 0.9999),
                ("backwards: hit ratio", HIT, BACKWARDS, 0, 0.9999, 0.9999),
            ),
        ),
        "K11": (
            "Failures that are noticed by silence alone, hours 250 to 256 of the Skype trace.",
            _least(("hit ratio", HIT, SILENT, 0, 0.98, 0.98)),
        ),
        "K12": (
            "Congestion at 5 X: what nodes can take arrives.",
            _least(("hit ratio", HIT, RATES, 5, 0.99, 0.5)),
        ),
    }
)
_OF_THE_REAL_TRACE: Final = ("K9", "K10", "K11")
_EXPLANATIONS: Final = {
    "K5": (
        "a peer stands at one of its ranges and is a guest for at most eight others; with few "
        "nodes the way to a range is a larger part of what an event costs"
    ),
    "K7": (
        "peers that want nothing stand on the ring at places that are drawn, and relay what passes "
        "them"
    ),
    "K10": (
        "between a failure and its repair lies a round, so that what is lost grows with the speed "
        "of churn"
    ),
}


def check_bounds(found: Measurements, *, real_trace: bool) -> list[Claim]:
    """K1 to K12, those of which nothing was run as skipped."""
    return [_claim(found, name, real_trace=real_trace) for name in CLAIMS]


def _claim(found: Measurements, name: str, *, real_trace: bool) -> Claim:
    sentence, bounds = CLAIMS[name]
    checks = [check for check in (bound.check(found) for bound in bounds) if check is not None]
    skipped = ""
    if not checks:
        skipped = "not run: its sizes are those of a run without --quick"
        if name in _OF_THE_REAL_TRACE and not real_trace:
            skipped = f"not run: {REAL_TRACE} is not in shared/data beside the checkout"
    return Claim(
        name,
        sentence,
        checks,
        _EXPLANATIONS.get(name, "") or "docs/kindred.md says what decides these values",
        _seeds(found, bounds) if checks else "",
        skipped=skipped,
    )


def _seeds(found: Measurements, bounds: list[Bound]) -> str:
    """How many seeds there were."""
    outcomes = [outcome for bound in bounds for outcome in bound.outcomes(found)]
    seeds = len({outcome.point.scenario.seed for outcome in outcomes})
    return f"mean of {seeds} seeds" if seeds > 1 else "one seed"
