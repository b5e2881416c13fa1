"""What a simulation is to run: typed, checked when built, independent of any file.

A scenario may be built from these classes in a script or read from TOML (`scenario_file`). Every
problem is a `ScenarioError` that names the field and what was expected.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final

import attrs

from gossamer.protocol.kernel.errors import ConfigError, choice
from gossamer.protocol.peer.settings import config
from gossamer.protocol.peer.settings.presets import PRESETS, event_memory_for
from gossamer.sim.custom.language.declarations import ConfiguredProtocol, settings_with
from gossamer.sim.custom.loading import ProtocolClass
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.peers.inputs.changes import Drift, Turnover
from gossamer.sim.studies.peers.inputs.overlays import check_overlay, protocol_of
from gossamer.sim.studies.peers.inputs.taken_from import TakenFrom, check_left_out
from gossamer.sim.studies.worlds.network import (
    ABSENT_IN_CYCLES,
    ABSENT_IN_PHASES,
    Link,
    check_absent,
)
from gossamer.sim.study.scenarios import (
    TYPE_NAMES,
    check,
    matches_type,
    number_field,
    of_type,
    one_of,
    share_field,
    to_path,
    to_whole_values,
    whole_field,
)

RANDOM, SKEWED, TOPICS = "random", "skewed", "topics"
SUBSCRIPTION_KINDS = (RANDOM, SKEWED, TOPICS)
# Each node draws for every topic.
MOST_TOPICS = 4096
KIND: Final = "peers"
ENGINES = ("cycle", "event", "synchronous")
JOINING, FORMED = "joining", "formed"

# Fields of `config.Settings` that all systems of a scenario share, and what decides them.
SHARED_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "attributes": "subscriptions.attributes",
        "subscriptions": "subscriptions.per_node",
        "seed": "seed",
    }
)
SETTING_TYPES: Mapping[str, type] = MappingProxyType(typing.get_type_hints(config.Settings))

# What lies beside the systems' folders in a result folder.
RESULT_NAMES = frozenset(
    {
        *("plots", "summary.json", "scenario.toml", "report.html"),
        *("subscriptions.parquet", "event_values.parquet"),
    }
)

MOST_NODES = 10_000_000
MOST_ROUNDS = 1_000_000_000


@attrs.frozen(kw_only=True)
class Subscriptions:
    """What nodes subscribe to, and where events fall.

    Attributes:
        kind: "random": range centres uniform over the attribute space; "skewed": Zipf-like over
            popular places of it (Vinifera, Sec. V), events likewise; "topics": a subscription is
            one of as many topics as there are places, the same for all who have it, and an event
            is of one of them.
        attributes: A, of the schema.
        width: mean width of a range, as a share of an attribute's domain; a guess, the paper
            gives none. Topics do not overlap, however wide.
        width_decades: widths are log-uniform over so many powers of ten, around the same mean; 0
            draws them uniformly from half to one and a half times the mean.
        aspect: a range is so many times as wide on one attribute, drawn for each subscription, as
            on the others; its volume is that of 1.
        places: popular places of a skewed workload, or topics; a guess.
        exponent: of the Zipf distribution over places; 1 is the classical Zipf law.
        spread: standard deviation around a place, as a share of the domain; a guess.
        per_node: subscriptions of a node, different ones if they are topics.
        subscribers: share of nodes that subscribe to anything.
        correlation: share of a skewed workload's events that fall where subscriptions do; the
            others fall anywhere.
    """

    section: ClassVar[str] = "subscriptions."

    kind: str = attrs.field(default=SKEWED, validator=one_of(*SUBSCRIPTION_KINDS))
    attributes: int = whole_field(1, 16, default=1)
    width: float = number_field(
        "a share above 0, at most 1", lambda share: 0 < share <= 1, default=0.1
    )
    width_decades: float = number_field(
        "a number from 0 to 9", lambda decades: 0 <= decades <= 9, default=0.0
    )
    aspect: float = number_field(
        "a number from 1 to 1e6", lambda aspect: 1 <= aspect <= 1e6, default=1.0
    )
    places: int = whole_field(1, 10_000_000, default=100)
    exponent: float = number_field(
        "a number from 0 to 100", lambda exponent: 0 <= exponent <= 100, default=1.0
    )
    spread: float = share_field(0.01)
    per_node: int = whole_field(1, 1024, default=1)
    subscribers: float = number_field(
        "a share above 0, at most 1", lambda share: 0 < share <= 1, default=1.0
    )
    correlation: float = share_field(1.0)

    def __attrs_post_init__(self) -> None:
        alike = self.kind == TOPICS or self.attributes == 1
        expected = "1 with topics or one attribute, of which none is wider than another"
        check(self.aspect == 1 or not alike, "subscriptions.aspect", self.aspect, expected)
        if self.kind != TOPICS:
            return
        expected = f"at most {MOST_TOPICS} topics"
        check(self.places <= MOST_TOPICS, "subscriptions.places", self.places, expected)
        expected = f"at most {self.places}, the topics that there are (subscriptions.places)"
        check(self.per_node <= self.places, "subscriptions.per_node", self.per_node, expected)
        expected = "0, as topics have one width"
        decades = self.width_decades
        check(decades == 0, "subscriptions.width_decades", decades, expected)


@attrs.frozen(kw_only=True)
class Events:
    """How much is published.

    Attributes:
        per_round: events published in a round, on average; by random online nodes.
        warm_up_rounds: rounds before the first event.
        publishers: share of nodes that publish.
        publisher_exponent: of the Zipf distribution of events over those of them that are online;
            0: all publish as often.
    """

    section: ClassVar[str] = "events."

    per_round: float = number_field(
        "a number from 0 to 1000000", lambda rate: 0 <= rate <= 1e6, default=1.0
    )
    warm_up_rounds: int = whole_field(0, MOST_ROUNDS, default=20)
    publishers: float = number_field(
        "a share above 0, at most 1", lambda share: 0 < share <= 1, default=1.0
    )
    publisher_exponent: float = number_field(
        "a number from 0 to 100", lambda exponent: 0 <= exponent <= 100, default=0.0
    )


@attrs.frozen(kw_only=True)
class Churn:
    """Who is online when: a trace file.

    Attributes:
        trace: path of a trace in one of the formats of `read_trace`.
        time_scale: factor on all times of the trace.
        start_s, end_s: the part of the (unscaled) trace to play; to its end if None.
        repeat: how many times the part is played.
        backwards: whether it is played from its end to its beginning.
    """

    section: ClassVar[str] = "churn."

    trace: Path = attrs.field(
        converter=to_path, validator=of_type(Path, "the path of a trace file, as text")
    )
    time_scale: float = number_field("a number above 0", lambda x: x > 0, default=1.0)
    start_s: float = number_field("a time of at least 0 s", lambda time_s: time_s >= 0, default=0.0)
    end_s: float | None = number_field(
        "a time above 0 s", lambda time_s: time_s > 0, default=None, optional=True
    )
    repeat: int = whole_field(1, 1_000_000, default=1)
    backwards: bool = attrs.field(default=False, validator=of_type(bool, "true or false"))

    def __attrs_post_init__(self) -> None:
        check(
            self.end_s is None or self.end_s > self.start_s,
            "churn.end_s",
            self.end_s,
            f"a time after churn.start_s, which is {self.start_s!r}",
        )


def _preset_named(system: System) -> str | None:
    return system.name if system.name in tuple(PRESETS) else "kindred"


def _to_settings(given: Any) -> Any:
    return to_whole_values(given, SETTING_TYPES) if isinstance(given, Mapping) else given


@attrs.frozen(kw_only=True, init=False)
class System:
    """One of the systems that a run compares: a preset and visible differences from it.

        System("wide", preset="kindred", ring_links=4)
        System("scribe", protocol=Scribe)

    Attributes:
        name: of its column in tables and its folder in results; a preset's name is that preset's.
        preset: one of `PRESETS`; left out, the one of this name, or "kindred". None with a
            protocol.
        settings: fields of `config.Settings` that differ from the preset; those of the protocol.
        protocol: in place of a preset, an overlay of one's own: a class derived from
            `gossamer.sim.PubSub`, a call of it with settings, or "file.py:Class".
    """

    section: ClassVar[str] = "system."

    name: str = attrs.field(validator=of_type(str, "letters, digits, '-', '_' and '.'"))
    preset: str | None = attrs.field(
        default=attrs.Factory(_preset_named, takes_self=True),
        validator=attrs.validators.optional(one_of(*PRESETS)),
    )
    settings: Mapping[str, Any] = attrs.field(
        factory=dict, converter=_to_settings, validator=of_type(Mapping, "settings by name")
    )
    protocol: ProtocolClass | None = None

    def __init__(
        self,
        name: str,
        *,
        preset: str | None = None,
        settings: Mapping[str, Any] | None = None,
        protocol: Any = None,
        **more: Any,
    ) -> None:
        """Give settings in a mapping, or by their names.

        Raises:
            ScenarioError: there is no such preset, setting or protocol, or the name is taken.
        """
        given: dict[str, Any] = {} if preset is None else {"preset": preset}
        together: Any = {**settings, **more} if isinstance(settings, Mapping) else settings or more
        if protocol is not None:
            field = f"system.{name}.preset"
            expected = "left out beside a protocol, which is what the system's nodes run"
            check(preset is None, field, preset, expected)
            if isinstance(protocol, ConfiguredProtocol):
                protocol, together = protocol.owner, {**protocol.settings, **together}
            given = {"preset": None, "protocol": protocol_of(name, protocol)}
        self.__attrs_init__(name=name, settings=together, **given)

    def __attrs_post_init__(self) -> None:
        check_system_name(self.name)
        if self.protocol is not None:
            free = self.name not in PRESETS
            check(free, "system.name", self.name, "a name that is no preset's, for a protocol")
            for setting, value in self.settings.items():
                self._check_known(setting, value, self.protocol.declared.settings)
            settings_with(self.protocol.declared, self.settings, f"system.{self.name}.")
            return
        own = self.preset == self.name or self.name not in PRESETS
        expected = f"{self.name!r}, or another name for the system"
        check(own, f"system.{self.name}.preset", self.preset, expected)
        for setting, value in self.settings.items():
            self._check_known(setting, value, SETTING_TYPES)
            kind, field = SETTING_TYPES[setting], f"system.{self.name}.{setting}"
            check(matches_type(value, kind), field, value, TYPE_NAMES[kind])

    def _check_known(self, setting: str, value: object, known: Mapping[str, Any]) -> None:
        """Refuse what all systems share, and settings that are not known."""
        field = f"system.{self.name}.{setting}"
        if setting in SHARED_SETTINGS:
            expected = f"{SHARED_SETTINGS[setting]} in its place, for all systems alike"
            raise ScenarioError(None, field, value, expected)
        if setting not in known:
            others = sorted(set(known) - set(SHARED_SETTINGS))
            expected = choice(setting, others) if others else "none of it, as it has none"
            raise ScenarioError(None, field, value, expected, found="no setting")

    def settings_for(
        self, nodes: int, subscriptions: Subscriptions, events: Events, seed: int
    ) -> config.Settings:
        """The system's settings for a run; raises `ScenarioError`.

        Event copies are remembered as the rate of events asks for, unless the system says how many.
        """
        assert self.preset is not None
        attributes = subscriptions.attributes
        common = {"attributes": attributes, "subscriptions": subscriptions.per_node, "seed": seed}
        try:
            settings = PRESETS[self.preset](nodes, **{**common, **self.settings})
            if "event_memory" in self.settings:
                return settings
            memory = event_memory_for(events.per_round, attributes, settings.replay_rounds)
            return attrs.evolve(settings, event_memory=memory)
        except ConfigError as error:
            field = f"system.{self.name}.{error.field}"
            raise ScenarioError(None, field, error.value, error.expected) from None


# Not the class itself: mypy does not see what that is called with.
def _to_systems(systems: Iterable[System | str]) -> tuple[System, ...]:
    return tuple(_preset(one) if isinstance(one, str) else one for one in systems)


def _preset(name: str) -> System:
    """The system of a preset's name."""
    check(name in PRESETS, "systems", name, choice(name, PRESETS))
    return System(name)


def size_field(low: int, high: int, default: int) -> Any:
    """A number of nodes or rounds; with churn, by default all of the trace (None)."""
    usual = attrs.Factory(lambda self: default if self.churn is None else None, takes_self=True)
    return whole_field(low, high, optional=True, default=usual)


def check_name_and_size(scenario: Any) -> None:
    """Refuse a name of several lines, and sizes that neither the scenario nor a trace tells."""
    name = scenario.name
    printable = name.isprintable() and bool(name.strip())
    check(printable, "name", name, "one line of text, not empty")
    for field in ("nodes", "rounds"):
        given = scenario.churn is not None or getattr(scenario, field) is not None
        check(given, field, None, f"a number of {field}, as there is no churn trace to tell it")


def check_system_name(name: str) -> None:
    """Refuse what cannot be a column, or a folder beside the files of results."""
    well_formed = bool(name) and all(c.isalnum() or c in "-_." for c in name)
    expected = "letters, digits, '-', '_' and '.', not beginning with '.'"
    check(well_formed and not name.startswith("."), "system.name", name, expected)
    free = name.casefold() not in RESULT_NAMES
    check(free, "system.name", name, "a name that results do not use for something else")


def check_distinct(names: list[str]) -> None:
    """Refuse systems of one name; some file systems tell folders apart only beyond case."""
    distinct = len({name.casefold() for name in names}) == len(names) > 0
    check(distinct, "system.name", names, "a different name for every system")


@attrs.frozen(kw_only=True)
class Scenario:
    """A whole run.

    Attributes:
        name: for titles, and for the default name of the result folder.
        nodes: number of nodes; with churn, nodes of the trace that take part. By default 1000,
            with churn all (None).
        rounds: rounds to run. By default 100, with churn to the end of the trace (None).
        round_s: length of a gossip round.
        seed: of everything random.
        engine: "cycle", "event" or "synchronous".
        systems: compared on the same workload, churn and seed; a preset's name is that preset.
        subscriptions, events, churn, network: see there.
        drift: how interests and events change in the course of the run; they do not if None.
        turnover: how fast other nodes replace those online, where there is no trace of churn.
        workload: where subscriptions and events come from; they are drawn if None.
        measure_every: rounds between measurements of ring and friend links.
        start: "joining": all who are online at first join at once; "formed": they know their
            neighbours on the ring and their fingers.
    """

    kind: ClassVar[str] = KIND

    name: str = attrs.field(default="scenario", validator=of_type(str, "a text"))
    # Before what it decides the defaults of.
    churn: Churn | None = attrs.field(
        default=None, validator=of_type(Churn, "a Churn object", optional=True)
    )
    nodes: int | None = size_field(2, MOST_NODES, 1000)
    rounds: int | None = size_field(1, MOST_ROUNDS, 100)
    round_s: float = number_field(
        "a time above 0, at most 1000000 s", lambda time_s: 0 < time_s <= 1e6, default=60.0
    )
    seed: int = whole_field(0, (1 << 62) - 1, default=1)
    engine: str = attrs.field(default="cycle", validator=one_of(*ENGINES))
    systems: tuple[System, ...] = attrs.field(
        default=(System(name="kindred"), System(name="baseline")), converter=_to_systems
    )
    subscriptions: Subscriptions = attrs.field(
        factory=Subscriptions, validator=of_type(Subscriptions, "a Subscriptions object")
    )
    events: Events = attrs.field(factory=Events, validator=of_type(Events, "an Events object"))
    drift: Drift | None = attrs.field(
        default=None, validator=of_type(Drift, "a Drift object", optional=True)
    )
    turnover: Turnover | None = attrs.field(
        default=None, validator=of_type(Turnover, "a Turnover object", optional=True)
    )
    workload: TakenFrom | None = attrs.field(
        default=None, validator=of_type(TakenFrom, "a TakenFrom object", optional=True)
    )
    network: Link = attrs.field(factory=Link, validator=of_type(Link, "a Link object"))
    measure_every: int = whole_field(1, MOST_ROUNDS, default=1)
    start: str = attrs.field(default=JOINING, validator=one_of(JOINING, FORMED))

    def __attrs_post_init__(self) -> None:
        check_name_and_size(self)
        self._check_changes()
        self._check_network()
        self._check_systems()

    def _check_changes(self) -> None:
        """Refuse what cannot be had together."""
        if self.turnover is not None:
            expected = "no [turnover] beside [churn], which says who is online"
            check(self.churn is None, "turnover.share", self.turnover.share, expected)
        if self.workload is not None:
            shift = 0.0 if self.drift is None else self.drift.event_shift
            check_left_out(self.workload, self.subscriptions, self.events, shift)
        if self.drift is not None and self.workload is not None:
            expected = "0, as the workload has no further subscriptions"
            check(self.drift.replaced == 0, "drift.replaced", self.drift.replaced, expected)
        if self.drift is not None and self.subscriptions.kind == TOPICS:
            expected = "0, as topics are where they are (drift.replaced gives nodes others)"
            check(self.drift.shifted == 0, "drift.shifted", self.drift.shifted, expected)

    def _check_network(self) -> None:
        """Refuse what an engine in cycles would pass over in silence."""
        if self.engine != "event":
            absent = ABSENT_IN_CYCLES if self.engine == "cycle" else ABSENT_IN_PHASES
            check_absent(self.network, self.engine, absent)
        for field, name in self.network.attributes.items():
            expected = "left out: the nodes of this kind of scenario have no attributes"
            raise ScenarioError(None, field, name, expected)

    def _check_systems(self) -> None:
        check(len(self.systems) > 0, "system", self.systems, "at least one system")
        for system in self.systems:
            check(isinstance(system, System), "system", system, "a System object")
        check_distinct([system.name for system in self.systems])
        for system in self.systems:
            if system.protocol is not None:
                check_overlay(system.name, system.protocol, self)
                continue
            system.settings_for(self.nodes or 1000, self.subscriptions, self.events, self.seed)
