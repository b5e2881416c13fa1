"""A scenario of kind "brokers": the controlled burst of both pruning papers, typed and checked.

May be built from these classes in a script or read from TOML (`scenario_file`). Every problem is a
`ScenarioError` that names the field and what was expected. "Selective paper" and "incremental
paper" are the two on filter aggregation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import attrs

from gossamer.protocol.brokers.tree import COVERINGS, TreeSettings
from gossamer.protocol.kernel.errors import ConfigError
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.side_by_side import check_names
from gossamer.sim.studies.tree_brokers.covering_workload import (
    ANYWHERE,
    BEHIND_CORE,
    REGION,
    CoveringWorkload,
)
from gossamer.sim.studies.tree_brokers.overlay_engine import Links
from gossamer.sim.studies.tree_brokers.service_times import (
    TABLE_II,
    CongestedTimes,
    FixedTimes,
    MeasuredTimes,
    ProportionalTimes,
    ServiceTimes,
)
from gossamer.sim.studies.tree_brokers.topology import OVERLAYS, BrokerOverlay
from gossamer.sim.studies.tree_brokers.unsubscription_burst import SECOND, UnsubscriptionBurst
from gossamer.sim.study.scenario_format import ScenarioFormat
from gossamer.sim.study.scenarios import (
    check,
    number_field,
    of_type,
    one_of,
    share_field,
    to_whole_values,
    whole_field,
)

KIND: Final = "brokers"
# The burst needs publishers on one side of a core and subscribers on the other.
BURST_OVERLAYS: Final = ("controlled_55", "controlled_49")
SERVICES: Final = ("table_ii", "fixed", "proportional", "congested", "measured")
MOST_SUBSCRIPTIONS: Final = 1_000_000
MOST_PUBLICATIONS: Final = 10_000_000
MOST_LOOKS: Final = 10_000_000

BROKER_SETTINGS: Final = tuple(
    field.name
    for field in attrs.fields(TreeSettings)
    if field.init and field.name not in ("covering", "retained_publications")
)
_SETTING_TYPES: Final = {field.name: type(field.default) for field in attrs.fields(TreeSettings)}


def _seconds(low: float, high: float, default: float) -> Any:
    """A field of seconds from ``low`` to ``high``."""
    return number_field(
        f"a time from {low:g} to {high:g} s", lambda time: low <= time <= high, default=default
    )


def _milliseconds(default: float) -> Any:
    return number_field(
        "a time from 0 to 1000000 ms", lambda time: 0 <= time <= 1e6, default=default
    )


@attrs.frozen(kw_only=True)
class Overlay:
    """The brokers and their links.

    Attributes:
        name: of an overlay in `topology` that has a core between publishers and subscribers.
        latency_ms: of a link; a guess, the papers' machines stood in one room.
        gap_ms: between two messages on a link; 0: any number at once.
        queue: messages that an input queue holds, the rest is dropped; 0: no bound.
        congested: input queue from which a broker is told how congested it is; a guess.
        publications_first: whether they are served before what others sent earlier.
    """

    section: ClassVar[str] = "overlay."

    name: str = attrs.field(default="controlled_55", validator=one_of(*BURST_OVERLAYS))
    latency_ms: float = _milliseconds(1.0)
    gap_ms: float = _milliseconds(0.0)
    queue: int = whole_field(0, 1_000_000_000, default=0)
    congested: int = whole_field(0, 1_000_000_000, default=100)
    publications_first: bool = attrs.field(default=False, validator=of_type(bool, "true or false"))

    def build(self) -> BrokerOverlay:
        """The overlay."""
        return OVERLAYS[self.name]()

    def links(self) -> Links:
        """What all links have in common."""
        return Links(
            latency=round(1_000 * self.latency_ms),
            gap=round(1_000 * self.gap_ms),
            queue=self.queue,
            congested=self.congested,
            publications_first=self.publications_first,
        )


@attrs.frozen(kw_only=True)
class Workload:
    """Who subscribes to what, and what is published.

    Attributes:
        roots: subscriptions that no other covers.
        degree: subscriptions that each root covers: the covering degree, 30 in the selective
            paper, 2,100 in the incremental one.
        clusters: which hosts are adjacent: "behind_core": two to four subscriber hosts behind one
            core broker; "region": an inner broker with its edge brokers.
        clustered: whether a root and what it covers have clients at adjacent brokers (selective
            paper, Sec. V-E).
        unsubscriptions: roots that are taken back.
        matches: subscriptions besides its root that a publication matches, about; 6 comes from
            the size of the selective paper's databases (Sec. V-B).
    """

    section: ClassVar[str] = "workload."

    roots: int = whole_field(1, MOST_SUBSCRIPTIONS, default=100)
    degree: int = whole_field(0, MOST_SUBSCRIPTIONS, default=30)
    clustered: bool = attrs.field(default=False, validator=of_type(bool, "true or false"))
    clusters: str = attrs.field(default=BEHIND_CORE, validator=one_of(BEHIND_CORE, REGION))
    unsubscriptions: int = whole_field(1, MOST_SUBSCRIPTIONS, default=20)
    matches: int = whole_field(0, MOST_SUBSCRIPTIONS, default=6)

    def __attrs_post_init__(self) -> None:
        check(
            self.subscriptions <= MOST_SUBSCRIPTIONS,
            "workload.degree",
            self.degree,
            f"at most {MOST_SUBSCRIPTIONS:,} subscriptions in all, with {self.roots:,} roots",
        )
        check(
            self.unsubscriptions <= self.roots,
            "workload.unsubscriptions",
            self.unsubscriptions,
            f"at most all {self.roots} of workload.roots",
        )

    @property
    def subscriptions(self) -> int:
        """How many there are."""
        return self.roots * (self.degree + 1)


@attrs.frozen(kw_only=True)
class Timing:
    """When things happen; the defaults are those of the selective paper (Sec. V-A, V-B).

    Attributes:
        subscribe_every_s, unsubscribe_every_s, publish_every_s: time between two.
        calm_s: publications before the first unsubscription.
        aftermath_s: publications from it on.
        drain_s: how long queues may take to empty afterwards, at most.
        sample_every_s: time between two looks at the queues.
    """

    section: ClassVar[str] = "timing."

    subscribe_every_s: float = _seconds(1e-3, 1e6, 1.5)
    unsubscribe_every_s: float = _seconds(0.0, 1e6, 0.5)
    publish_every_s: float = _seconds(1e-3, 1e6, 0.4)
    calm_s: float = _seconds(0.0, 1e6, 600.0)
    aftermath_s: float = _seconds(1e-3, 1e6, 3600.0)
    drain_s: float = _seconds(0.0, 1e6, 14_400.0)
    sample_every_s: float = _seconds(1e-3, 1e6, 1.0)

    def __attrs_post_init__(self) -> None:
        check(
            (self.calm_s + self.aftermath_s) / self.publish_every_s <= MOST_PUBLICATIONS,
            "timing.publish_every_s",
            self.publish_every_s,
            f"at most {MOST_PUBLICATIONS:,} publications in all",
        )
        check(
            (self.aftermath_s + self.drain_s) / self.sample_every_s <= MOST_LOOKS,
            "timing.sample_every_s",
            self.sample_every_s,
            f"at most {MOST_LOOKS:,} looks in all",
        )


@attrs.frozen(kw_only=True)
class Service:
    """How long brokers work on messages.

    Attributes:
        kind: "table_ii": as Table II of the incremental paper has it for each covering; "fixed":
            the times below; "proportional": those, and more for every entry of the broker's table;
            "congested": Table II while no more than `bound_ms` of work waits in the input queue,
            and `congested_ms` for every message beyond; "measured": what this code takes here and
            now, which no seed fixes.
        subscription_ms, unsubscription_ms, publication_ms: of "fixed" and "proportional".
        per_entry_us: added for every entry, microseconds a message.
        congested_ms, bound_ms: of "congested"; the selective paper's "rate of only 3.3 per second"
            (Sec. V-B), and a guess.
        examined_ms: added for each subscription that a broker examines again because one that
            covered it goes, whatever the kind but "measured".
        packed: share of its time that a subscription takes in a pack, likewise.
        factor: on measured times.
    """

    section: ClassVar[str] = "service."

    kind: str = attrs.field(default="table_ii", validator=one_of(*SERVICES))
    subscription_ms: float = _milliseconds(TABLE_II["active"].subscription / 1_000)
    unsubscription_ms: float = _milliseconds(TABLE_II["active"].unsubscription / 1_000)
    publication_ms: float = _milliseconds(TABLE_II["active"].publication / 1_000)
    per_entry_us: float = number_field(
        "a time from 0 to 1000000 us", lambda time: 0 <= time <= 1e6, default=1.0
    )
    congested_ms: float = _milliseconds(300.0)
    bound_ms: float = _milliseconds(500.0)
    examined_ms: float = _milliseconds(0.0)
    packed: float = share_field(1.0)
    factor: float = number_field(
        "a number above 0, at most 1000000", lambda factor: 0 < factor <= 1e6, default=1.0
    )

    def times(self, covering: str) -> ServiceTimes:
        """What messages cost brokers that cover in one way."""
        if self.kind == "measured":
            return MeasuredTimes(self.factor)
        given = FixedTimes(
            subscription=round(1_000 * self.subscription_ms),
            unsubscription=round(1_000 * self.unsubscription_ms),
            publication=round(1_000 * self.publication_ms),
        )
        of_table = self.kind in ("table_ii", "congested")
        fixed = attrs.evolve(
            TABLE_II.get(covering, TABLE_II["active"]) if of_table else given,
            examined=round(1_000 * self.examined_ms),
            packed=self.packed,
        )
        if self.kind == "congested":
            congested, bound = round(1_000 * self.congested_ms), round(1_000 * self.bound_ms)
            return CongestedTimes(fixed, congested, bound)
        if self.kind != "proportional":
            return fixed
        nanoseconds = round(1_000 * self.per_entry_us)
        return ProportionalTimes(fixed, FixedTimes(nanoseconds, nanoseconds, nanoseconds))


@attrs.frozen(kw_only=True)
class BrokerScenario:
    """A whole run: the same burst under several coverings.

    Attributes:
        name: for titles, and for the default name of the result folder.
        seed: of everything random.
        coverings: how brokers cover, side by side.
        overlay, workload, timing, service: see there.
        broker: fields of `BrokerSettings` that differ from their defaults.
    """

    kind: ClassVar[str] = KIND

    name: str = attrs.field(default="brokers", validator=of_type(str, "a text"))
    seed: int = whole_field(0, (1 << 62) - 1, default=1)
    coverings: tuple[str, ...] = ("active", "lazy", "packed", "selective", "incremental")
    overlay: Overlay = attrs.field(factory=Overlay, validator=of_type(Overlay, "a table"))
    workload: Workload = attrs.field(factory=Workload, validator=of_type(Workload, "a table"))
    timing: Timing = attrs.field(factory=Timing, validator=of_type(Timing, "a table"))
    service: Service = attrs.field(factory=Service, validator=of_type(Service, "a table"))
    broker: Mapping[str, Any] = attrs.field(
        factory=dict, validator=of_type(Mapping, "settings by name")
    )

    def __attrs_post_init__(self) -> None:
        check_names(self, "coverings", COVERINGS, "covering")
        for covering in self.coverings:
            self.settings(covering)

    def settings(self, covering: str) -> TreeSettings:
        """The settings of brokers with a covering; raises `ScenarioError`."""
        known = "one of " + ", ".join(BROKER_SETTINGS)
        for name, value in self.broker.items():
            check(name in BROKER_SETTINGS, f"broker.{name}", value, known)
        values = {"drop_unpaid": True, **to_whole_values(self.broker, _SETTING_TYPES)}
        check(
            isinstance(values["drop_unpaid"], bool),
            "broker.drop_unpaid",
            values["drop_unpaid"],
            "true or false",
        )
        try:
            return TreeSettings(covering=covering, **values)
        except ConfigError as error:
            raise ScenarioError(None, error.field, error.value, error.expected) from None

    def burst(self, covering: str) -> UnsubscriptionBurst:
        """What happens under a covering."""
        timing, workload = self.timing, self.workload
        return UnsubscriptionBurst(
            overlay=self.overlay.build(),
            workload=CoveringWorkload(workload.roots, workload.degree, self.seed),
            settings=self.settings(covering),
            service=self.service.times(covering),
            links=self.overlay.links(),
            unsubscriptions=workload.unsubscriptions,
            reach=1 + workload.matches / (workload.degree + 1),
            placement=workload.clusters if workload.clustered else ANYWHERE,
            seed=self.seed,
            **{
                field.removesuffix("_s"): round(SECOND * time)
                for field, time in attrs.asdict(timing).items()
            },
        )


FORMAT: Final = ScenarioFormat(
    scenario=BrokerScenario,
    sections={"overlay": Overlay, "workload": Workload, "timing": Timing, "service": Service},
    settings={"broker": BROKER_SETTINGS},
)
