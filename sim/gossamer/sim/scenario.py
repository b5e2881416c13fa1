"""What a simulation is to run: typed, checked when built, independent of any file.

A scenario may be built from these classes in a script or read from TOML (`scenario_file`). Every
problem is a `ScenarioError` that names the field and what was expected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from gossamer.protocol import config
from gossamer.protocol.errors import ConfigError
from gossamer.sim.errors import ScenarioError

PRESETS: dict[str, Callable[..., config.Settings]] = {
    "paper": config.paper,
    "baseline": config.baseline,
    "resilient": config.resilient,
}
SUBSCRIPTION_KINDS = ("random", "skewed")
ENGINES = ("cycle", "event")
LATENCIES = ("none", "constant", "uniform", "matrix")


def _fail(field: str, value: object, expected: str) -> ScenarioError:
    return ScenarioError(None, field, value, expected)


def _check(holds: bool, field: str, value: object, expected: str) -> None:
    if not holds:
        raise _fail(field, value, expected)


@attrs.frozen(kw_only=True)
class Subscriptions:
    """What nodes subscribe to, and where events fall.

    Attributes:
        kind: "random": range centres uniform over the attribute space; "skewed": Zipf-like over
            popular places of it (Vinifera, Sec. V), events likewise.
        attributes: A, of the schema.
        width: mean width of a range, as a share of an attribute's domain; a guess, the paper
            gives none.
        places: popular places of a skewed workload; a guess.
        exponent: of the Zipf distribution over places; 1 is the classical Zipf law.
        spread: standard deviation around a place, as a share of the domain; a guess.
        per_node: subscriptions of a node.
        subscribers: share of nodes that subscribe to anything.
    """

    kind: str = "skewed"
    attributes: int = 1
    width: float = 0.1
    places: int = 100
    exponent: float = 1.0
    spread: float = 0.01
    per_node: int = 1
    subscribers: float = 1.0

    def __attrs_post_init__(self) -> None:
        where = "subscriptions."
        kinds = "one of " + ", ".join(SUBSCRIPTION_KINDS)
        _check(self.kind in SUBSCRIPTION_KINDS, where + "kind", self.kind, kinds)
        _check(
            1 <= self.attributes <= 16, where + "attributes", self.attributes, "1 to 16"
        )
        _check(0 < self.width <= 1, where + "width", self.width, "a share above 0, at most 1")
        _check(self.places >= 1, where + "places", self.places, "at least 1")
        _check(self.exponent >= 0, where + "exponent", self.exponent, "at least 0")
        _check(0 <= self.spread <= 1, where + "spread", self.spread, "a share from 0 to 1")
        _check(1 <= self.per_node <= 1024, where + "per_node", self.per_node, "1 to 1024")
        _check(
            0 < self.subscribers <= 1,
            where + "subscribers",
            self.subscribers,
            "a share above 0, at most 1",
        )


@attrs.frozen(kw_only=True)
class Events:
    """How much is published.

    Attributes:
        per_round: events published in a round, on average; by random online nodes.
        warm_up_rounds: rounds before the first event.
    """

    per_round: float = 1.0
    warm_up_rounds: int = 20

    def __attrs_post_init__(self) -> None:
        _check(0 <= self.per_round <= 1e6, "events.per_round", self.per_round, "0 to 1000000")
        _check(
            self.warm_up_rounds >= 0,
            "events.warm_up_rounds",
            self.warm_up_rounds,
            "a whole number of at least 0",
        )


@attrs.frozen(kw_only=True)
class Churn:
    """Who is online when: a trace file.

    Attributes:
        trace: path of an `.avt`, `.avt.gz` or Parquet trace.
        time_scale: factor on all times of the trace.
        start_s, end_s: the part of the (unscaled) trace to play; to its end if None.
        repeat: how many times the part is played.
    """

    trace: Path
    time_scale: float = 1.0
    start_s: float = 0.0
    end_s: float | None = None
    repeat: int = 1

    def __attrs_post_init__(self) -> None:
        _check(self.time_scale > 0, "churn.time_scale", self.time_scale, "a number above 0")
        _check(self.start_s >= 0, "churn.start_s", self.start_s, "a time of at least 0 s")
        _check(
            self.end_s is None or self.end_s > self.start_s,
            "churn.end_s",
            self.end_s,
            "a time after churn.start_s",
        )
        _check(self.repeat >= 1, "churn.repeat", self.repeat, "a whole number of at least 1")


@attrs.frozen(kw_only=True)
class Link:
    """What the network does to messages; the cycle engine knows only capacity and failures.

    Attributes:
        latency: "none", "constant", "uniform" or "matrix".
        latency_s: the constant, or the mean of the uniform (0 to twice it).
        matrix: path of a triangular matrix of latencies in milliseconds.
        loss: share of messages lost.
        duplication: share of messages that arrive twice.
        event_capacity: events that a node takes in a round, the rest is dropped; None no limit.
        reports_unreachable: whether a sender learns that a peer is gone, as over TCP.
    """

    latency: str = "none"
    latency_s: float = 0.0
    matrix: Path | None = None
    loss: float = 0.0
    duplication: float = 0.0
    event_capacity: int | None = None
    reports_unreachable: bool = True

    def __attrs_post_init__(self) -> None:
        kinds = "one of " + ", ".join(LATENCIES)
        _check(self.latency in LATENCIES, "network.latency", self.latency, kinds)
        _check(self.latency_s >= 0, "network.latency_s", self.latency_s, "at least 0 s")
        _check(0 <= self.loss < 1, "network.loss", self.loss, "a share from 0, below 1")
        _check(
            0 <= self.duplication <= 1,
            "network.duplication",
            self.duplication,
            "a share from 0 to 1",
        )
        _check(
            (self.latency == "matrix") == (self.matrix is not None),
            "network.matrix",
            self.matrix,
            'a file exactly if network.latency is "matrix"',
        )
        _check(
            self.event_capacity is None or self.event_capacity >= 1,
            "network.event_capacity",
            self.event_capacity,
            "a whole number of at least 1",
        )


@attrs.frozen(kw_only=True)
class System:
    """One of the systems that a run compares: a preset and visible differences from it.

    Attributes:
        name: of its column in tables and its folder in results.
        preset: "paper", "baseline" or "resilient".
        settings: fields of `config.Settings` that differ from the preset.
    """

    name: str
    preset: str = "paper"
    settings: Mapping[str, Any] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        allowed = self.name and all(c.isalnum() or c in "-_." for c in self.name)
        _check(
            bool(allowed) and not self.name.startswith("."),
            "system.name",
            self.name,
            "letters, digits, '-', '_' and '.'",
        )
        presets = "one of " + ", ".join(PRESETS)
        _check(self.preset in PRESETS, "system.preset", self.preset, presets)
        known = {field.name for field in attrs.fields(config.Settings)}
        for field in self.settings:
            expected = "one of " + ", ".join(sorted(known))
            _check(field in known, f"system.{self.name}", field, expected)

    def settings_for(self, nodes: int, attributes: int, per_node: int, seed: int) -> config.Settings:
        """The system's settings for a run; raises `ScenarioError`."""
        common = {"attributes": attributes, "subscriptions": per_node, "seed": seed}
        try:
            return PRESETS[self.preset](nodes, **{**common, **self.settings})
        except ConfigError as error:
            raise _fail(f"system.{self.name}.{error.field}", error.value, error.expected) from None


@attrs.frozen(kw_only=True)
class Scenario:
    """A whole run.

    Attributes:
        name: for titles.
        nodes: number of nodes; with churn, nodes of the trace that take part (None: all).
        rounds: rounds to run; with churn None runs to the end of the trace.
        round_s: length of a gossip round.
        seed: of everything random.
        engine: "cycle" or "event".
        systems: compared on the same workload, churn and seed.
        subscriptions, events, churn, network: see there.
        measure_every: rounds between measurements of ring and friend links.
    """

    name: str = "scenario"
    nodes: int | None = 1000
    rounds: int | None = 100
    round_s: float = 60.0
    seed: int = 1
    engine: str = "cycle"
    systems: tuple[System, ...] = (
        System(name="vinifera"),
        System(name="baseline", preset="baseline"),
    )
    subscriptions: Subscriptions = attrs.field(factory=Subscriptions)
    events: Events = attrs.field(factory=Events)
    churn: Churn | None = None
    network: Link = attrs.field(factory=Link)
    measure_every: int = 1

    def __attrs_post_init__(self) -> None:
        most = 10_000_000
        _check(
            self.nodes is None or 2 <= self.nodes <= most,
            "nodes",
            self.nodes,
            f"a whole number from 2 to {most}",
        )
        _check(
            self.churn is not None or self.nodes is not None, "nodes", None, "a number of nodes"
        )
        _check(
            self.churn is not None or self.rounds is not None, "rounds", None, "a number of rounds"
        )
        _check(
            self.rounds is None or self.rounds >= 1, "rounds", self.rounds, "at least 1 round"
        )
        _check(0 < self.round_s <= 1e6, "round_s", self.round_s, "a time above 0 s")
        _check(0 <= self.seed < 1 << 62, "seed", self.seed, "a whole number from 0, below 2^62")
        engines = "one of " + ", ".join(ENGINES)
        _check(self.engine in ENGINES, "engine", self.engine, engines)
        _check(len(self.systems) > 0, "system", self.systems, "at least one system")
        names = [system.name for system in self.systems]
        _check(len(set(names)) == len(names), "system", names, "different names")
        _check(self.measure_every >= 1, "measure_every", self.measure_every, "at least 1 round")
        for system in self.systems:
            system.settings_for(
                self.nodes or 1000,
                self.subscriptions.attributes,
                self.subscriptions.per_node,
                self.seed,
            )
