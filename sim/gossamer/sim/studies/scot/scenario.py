"""A scenario of kind "scot": a burst on a structured cyclic overlay, typed and checked.

May be built from these classes in a script or read from TOML (`scenario_file`). Every problem is a
`ScenarioError` that names the field and what was expected. The paper is that on SCOT (OctopiS).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs

from gossamer.protocol.brokers.scot import ROUTINGS, BrokerLabel, Scot, ScotSettings
from gossamer.protocol.kernel.errors import ConfigError
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.scot.burst import SECOND, Burst
from gossamer.sim.studies.scot.replay_network import Links, ServiceTimes
from gossamer.sim.studies.scot.replay_tables import CONSTANT, SPREADS
from gossamer.sim.studies.scot.workloads import FACTORS, OVERLAYS, Quotes, Topics, scot_of
from gossamer.sim.studies.scot.workloads import Workload as Contents
from gossamer.sim.studies.side_by_side import check_names
from gossamer.sim.study.scenario_format import ScenarioFormat
from gossamer.sim.study.scenarios import (
    check,
    number_field,
    of_type,
    one_of,
    to_whole_values,
    whole_field,
)

KIND: Final = "scot"
TOPICS, QUOTES = "topics", "quotes"
MOST_BROKERS: Final = 10_000
MOST_SUBSCRIBERS: Final = 1_000_000
MOST_PUBLICATIONS: Final = 100_000_000
MOST_CONTENTS: Final = 5_000
MOST_A_MINUTE: Final = 60_000_000

# Nothing fails in a scenario, and its clients do not say what they have taken.
SCOT_SETTINGS: Final = tuple(
    field.name
    for field in attrs.fields(ScotSettings)
    if field.name not in ("routing", "take_over", "backups")
)
_SETTING_TYPES: Final = {field.name: type(field.default) for field in attrs.fields(ScotSettings)}


def _milliseconds(default: int) -> Any:
    """A field of milliseconds; the default is given in microseconds."""
    return number_field(
        "a time from 0 to 1000000 ms", lambda time: 0 <= time <= 1e6, default=default / 1_000
    )


def _microseconds(milliseconds: float) -> int:
    return round(SECOND / 1_000 * milliseconds)


def _all_microseconds(section: Any, kind: type) -> dict[str, Any]:
    """The fields of a class whose names end in _ms in a section, as microseconds."""
    names = [name for name in attrs.fields_dict(kind) if hasattr(section, f"{name}_ms")]
    return {name: _microseconds(getattr(section, f"{name}_ms")) for name in names}


@attrs.frozen(kw_only=True)
class Overlay:
    """The factors of the overlay, whose Cartesian product it is.

    Attributes:
        name: "figure_8" or "figure_2" of the paper, or "factors", which are those below.
        regions, region_links: vertices and edges of the acyclic factor.
        clusters: vertices of the connectivity factor.
        cluster_links: its edges; all there can be if None.
    """

    section: ClassVar[str] = "overlay."

    name: str = attrs.field(default="figure_8", validator=one_of(*OVERLAYS, FACTORS))
    regions: Sequence[str] = ()
    region_links: Sequence[Sequence[str]] = ()
    clusters: Sequence[int] = ()
    cluster_links: Sequence[Sequence[int]] | None = None

    def __attrs_post_init__(self) -> None:
        for field in ("regions", "clusters"):
            _check_vertices(f"overlay.{field}", getattr(self, field))
        for field in ("region_links", "cluster_links"):
            _check_edges(f"overlay.{field}", getattr(self, field))
        for field in ("regions", "region_links", "clusters", "cluster_links"):
            given = getattr(self, field)
            expected = f'nothing but with name = "{FACTORS}"'
            check(self.name == FACTORS or not given, f"overlay.{field}", given, expected)
        brokers = len(self.regions) * len(self.clusters)
        expected = f"at most {MOST_BROKERS:,} brokers in all"
        check(brokers <= MOST_BROKERS, "overlay.clusters", len(self.clusters), expected)
        self.build()

    def build(self) -> Scot:
        """The overlay; raises `ScenarioError` that names the factor without its property."""
        if self.name != FACTORS:
            return OVERLAYS[self.name]()
        return scot_of(self.regions, self.region_links, self.clusters, self.cluster_links)


@attrs.frozen(kw_only=True)
class LinkTimes:
    """What all links and uplinks have in common; guesses, see docs/scot.md.

    Attributes:
        latency_ms: from one end to the other.
        gap_ms: how long a message takes its link.
        uplink_gap_ms: how long it takes the broker that sends it, whatever the link.
        bid_gap_ms: what each BID that a notification carries adds to both.
    """

    section: ClassVar[str] = "links."

    latency_ms: float = _milliseconds(Links().latency)
    gap_ms: float = _milliseconds(Links().gap)
    uplink_gap_ms: float = _milliseconds(Links().uplink_gap)
    bid_gap_ms: float = _milliseconds(Links().bid_gap)

    def build(self) -> Links:
        """In microseconds."""
        return Links(**_all_microseconds(self, Links))


@attrs.frozen(kw_only=True)
class Service:
    """How long brokers work on messages; guesses, see docs/scot.md.

    Attributes:
        matching_ms: on a notification that is matched with the routing table.
        forwarding_ms: on one that is only passed on, by its BIDs.
        bid_ms: on each BID that a notification carries.
        subscription_ms: on a subscription, duplicates included.
        spread: how the times for messages of one kind are distributed, one of `SPREADS`.
        unevenness: brokers take from 2 ** -unevenness to 2 ** unevenness times as long.
    """

    section: ClassVar[str] = "service."

    matching_ms: float = _milliseconds(ServiceTimes().matching)
    forwarding_ms: float = _milliseconds(ServiceTimes().forwarding)
    bid_ms: float = _milliseconds(ServiceTimes().bid)
    subscription_ms: float = _milliseconds(ServiceTimes().subscription)
    spread: str = attrs.field(default=CONSTANT, validator=one_of(*SPREADS))
    unevenness: float = number_field(
        "a number from 0 to 10", lambda unevenness: 0 <= unevenness <= 10, default=0.0
    )

    def build(self) -> ServiceTimes:
        """In microseconds."""
        times = _all_microseconds(self, ServiceTimes)
        return ServiceTimes(**times, spread=self.spread, unevenness=self.unevenness)


@attrs.frozen(kw_only=True)
class Workload:
    """Who subscribes, and who publishes at a steady rate.

    Attributes:
        kind: "topics", or "quotes" with ten attributes.
        topics: different publications of kind "topics"; a subscription is to one of them.
        quotes: different publications of kind "quotes"; a subscription matches 2 % of them.
        file: quotes to choose from, gzipped CSV; made-up ones if empty.
        subscribers: clients with one subscription each.
        subscribe_every_ms: time between two of them; 0: all at once.
        publishers: how many.
        notifications, per_minute: of each publisher.
    """

    section: ClassVar[str] = "workload."

    kind: str = attrs.field(default=TOPICS, validator=one_of(TOPICS, QUOTES))
    topics: int = whole_field(1, MOST_CONTENTS, default=50)
    quotes: int = whole_field(1, MOST_CONTENTS, default=100)
    file: str = attrs.field(
        default="", validator=of_type(str, "the path of a file, or an empty text")
    )
    subscribers: int = whole_field(0, MOST_SUBSCRIBERS, default=500)
    subscribe_every_ms: float = _milliseconds(0)
    publishers: int = whole_field(1, MOST_SUBSCRIBERS, default=20)
    notifications: int = whole_field(1, MOST_PUBLICATIONS, default=20)
    per_minute: int = whole_field(1, MOST_A_MINUTE, default=60)

    def __attrs_post_init__(self) -> None:
        check(
            self.publishers * self.notifications <= MOST_PUBLICATIONS,
            "workload.notifications",
            self.notifications,
            f"at most {MOST_PUBLICATIONS:,} in all, with {self.publishers:,} publishers",
        )
        missing = bool(self.file) and not Path(self.file).is_file()
        check(not missing, "workload.file", self.file, "a file that exists")

    def contents(self, seed: int) -> Contents:
        """What is published and subscribed to."""
        if self.kind == TOPICS:
            return Topics(self.topics)
        return Quotes(self.quotes, seed, Path(self.file) if self.file else None)


@attrs.frozen(kw_only=True)
class HighRate:
    """The publisher with a high rate (HRP), which causes the burst (Sec. 7.3).

    Attributes:
        notifications: of the burst; 0: there is none.
        per_minute: its rate; the paper has 60,000 to 100,000.
        subscribers: in each cluster, at other brokers.
        broker: where it is, such as "B(vi,0)"; drawn if empty.
    """

    section: ClassVar[str] = "burst."

    notifications: int = whole_field(0, MOST_PUBLICATIONS, default=5_000)
    per_minute: int = whole_field(1, MOST_A_MINUTE, default=100_000)
    subscribers: int = whole_field(0, 1_000, default=2)
    broker: str = attrs.field(default="", validator=of_type(str, 'a broker such as "B(vi,0)"'))

    def label(self, scot: Scot) -> BrokerLabel | None:
        """Where it is in an overlay; raises `ScenarioError` if there is no such broker."""
        if not self.broker:
            return None
        try:
            label = BrokerLabel.parse(self.broker)
            scot.position(label)
        except ConfigError as error:
            expected = f"{error.expected} ({error.field})"
            raise ScenarioError(None, "burst.broker", self.broker, expected) from None
        return label


@attrs.frozen(kw_only=True)
class ScotScenario:
    """A whole run: the same burst under several ways of routing.

    Attributes:
        name: for titles, and for the default name of the result folder.
        seed: of everything random.
        routings: ways of routing, side by side.
        overlay, workload, burst, links, service: see there.
        scot: fields of `ScotSettings` that differ from their defaults.
    """

    kind: ClassVar[str] = KIND

    name: str = attrs.field(default="scot", validator=of_type(str, "a text"))
    seed: int = whole_field(0, (1 << 62) - 1, default=1)
    routings: tuple[str, ...] = ROUTINGS
    overlay: Overlay = attrs.field(factory=Overlay, validator=of_type(Overlay, "a table"))
    workload: Workload = attrs.field(factory=Workload, validator=of_type(Workload, "a table"))
    burst: HighRate = attrs.field(factory=HighRate, validator=of_type(HighRate, "a table"))
    links: LinkTimes = attrs.field(factory=LinkTimes, validator=of_type(LinkTimes, "a table"))
    service: Service = attrs.field(factory=Service, validator=of_type(Service, "a table"))
    scot: Mapping[str, Any] = attrs.field(
        factory=dict, validator=of_type(Mapping, "settings by name")
    )

    def __attrs_post_init__(self) -> None:
        check_names(self, "routings", ROUTINGS, "way of routing")
        for routing in self.routings:
            self.settings(routing)
        self.burst.label(self.overlay.build())

    def settings(self, routing: str) -> ScotSettings:
        """The settings of brokers that route in one way; raises `ScenarioError`."""
        values = to_whole_values(self.scot, _SETTING_TYPES)
        for field in attrs.fields(ScotSettings):
            if field.name in values:
                _check_setting(field.name, values[field.name], field.default)
        for name, value in values.items():
            expected = "one of " + ", ".join(SCOT_SETTINGS)
            check(name in SCOT_SETTINGS, f"scot.{name}", value, expected)
        try:
            return ScotSettings(routing=routing, **values)
        except ConfigError as error:
            raise ScenarioError(None, f"scot.{error.field}", error.value, error.expected) from None

    def run_of(self, routing: str) -> Burst:
        """What happens under a way of routing."""
        scot, workload, burst = self.overlay.build(), self.workload, self.burst
        steady = ("subscribers", "publishers", "notifications", "per_minute")
        high = ("notifications", "per_minute", "subscribers")
        return Burst(
            scot=scot,
            settings=self.settings(routing),
            links=self.links.build(),
            service=self.service.build(),
            workload=workload.contents(self.seed),
            subscribe_every=_microseconds(workload.subscribe_every_ms),
            hrp=burst.label(scot),
            seed=self.seed,
            **{name: getattr(workload, name) for name in steady},
            **{f"burst_{name}": getattr(burst, name) for name in high},
        )


def _check_setting(name: str, value: object, default: object) -> None:
    """Settings are switches, or numbers within what a clock can count."""
    if isinstance(default, bool):
        check(isinstance(value, bool), f"scot.{name}", value, "true or false")
    elif isinstance(default, int):
        whole_number = type(value) is int and 0 < value <= 10**12
        check(whole_number, f"scot.{name}", value, "a whole number of microseconds above 0")
    elif isinstance(default, float):
        finite = isinstance(value, int | float) and math.isfinite(value)
        check(finite and not isinstance(value, bool), f"scot.{name}", value, "a number from 0 on")


def _check_vertices(field: str, given: object) -> None:
    kind = str if field == "overlay.regions" else int
    listed = isinstance(given, list | tuple) and all(type(vertex) is kind for vertex in given)
    expected = "a list of names" if kind is str else "a list of numbers"
    check(listed, field, given, expected)


def _check_edges(field: str, given: object) -> None:
    if given is None:
        return
    listed = isinstance(given, list | tuple)
    check(listed, field, given, "a list of pairs")
    assert isinstance(given, list | tuple)
    for pair in given:
        paired = isinstance(pair, list | tuple) and len(pair) == 2
        named = paired and all(type(end) in (str, int) for end in pair)
        check(named, field, pair, "pairs of names, or of numbers")


FORMAT: Final = ScenarioFormat(
    scenario=ScotScenario,
    sections={
        "overlay": Overlay,
        "workload": Workload,
        "burst": HighRate,
        "links": LinkTimes,
        "service": Service,
    },
    settings={"scot": SCOT_SETTINGS},
)
