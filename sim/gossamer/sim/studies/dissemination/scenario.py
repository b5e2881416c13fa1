"""A scenario of kind "trees": strategies side by side on one topology and workload (Sec. VII).

May be built from these classes in a script or read from TOML (`scenario_file`). Every problem is a
`ScenarioError` that names the field and what was expected. Sections and figures are those of the
paper on content-aware trees.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Final

import attrs
import numpy as np

from gossamer.protocol.dissemination.capacities import read_capacities
from gossamer.protocol.dissemination.cost import Sample
from gossamer.protocol.dissemination.graph import Reals, TreesError
from gossamer.protocol.dissemination.semcast import CHANNELS
from gossamer.protocol.dissemination.strategies import MANAGEABLE
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.dissemination.strategies import COMPARED, NEIGHBOURS, STRATEGIES, Setting
from gossamer.sim.studies.dissemination.topologies import (
    GENERATORS,
    Topology,
    transit_stub,
    transit_stub_of,
)
from gossamer.sim.studies.dissemination.topology_files import read_topology
from gossamer.sim.studies.dissemination.workload import (
    ANYWHERE,
    BROKER,
    PUBLISHERS,
    SUBSCRIPTIONS,
    Locality,
    Workload,
    make_workload,
    read_workload,
    sampled,
)
from gossamer.sim.studies.side_by_side import check_names
from gossamer.sim.study.scenario_format import ScenarioFormat
from gossamer.sim.study.scenarios import check, number_field, of_type, one_of, to_path, whole_field

KIND: Final = "trees"
FILE: Final = "file"
MOST_BROKERS: Final = 10_000
MOST_DOCUMENTS: Final = 1_000_000
_A_FILE: Final = of_type(Path, "the path of a file", optional=True)
DEFAULT_STRATEGIES: Final = tuple(name for name in COMPARED if name != "HYBRID")


def _share(default: float) -> Any:
    return number_field("a share above 0, up to 1", lambda share: 0 < share <= 1, default=default)


@attrs.frozen(kw_only=True)
class TopologySection:
    """The brokers and their links.

    Attributes:
        kind: a generator's name, or "file".
        brokers: how many a generator makes.
        stub_stub_links: links between stub domains of a transit-stub graph, each of which hangs
            on one broker without these; GT-ITM's parameter.
        file: GML or GraphML, of kind "file".
        cost: field of the file's links that holds their cost; each costs 1 without.
        capacity: what each link can carry in all, in the unit of documents' sizes; 0: anything.
    """

    section: ClassVar[str] = "topology."

    kind: str = attrs.field(default="transit_stub", validator=one_of(*GENERATORS, FILE))
    brokers: int = whole_field(2, MOST_BROKERS, default=500)
    stub_stub_links: int = whole_field(0, MOST_BROKERS, default=0)
    file: Path | None = attrs.field(default=None, converter=to_path, validator=_A_FILE)
    cost: str | None = attrs.field(default=None, validator=of_type(str, "a text", optional=True))
    capacity: float = number_field(
        "a number of at least 0", lambda capacity: capacity >= 0, default=0.0
    )

    def __attrs_post_init__(self) -> None:
        named = self.file is not None
        if self.kind == FILE:
            check(named, "topology.file", self.file, "the path of a GML or GraphML file")
        else:
            check(not named, "topology.file", self.file, f"none, with topology.kind {self.kind!r}")
            check(self.cost is None, "topology.cost", self.cost, "none, without topology.file")
        apart = self.kind != "transit_stub" and self.stub_stub_links > 0
        expected = "0, as only a transit-stub graph has stub domains"
        check(not apart, "topology.stub_stub_links", self.stub_stub_links, expected)

    def build(self, seed: int) -> Topology:
        """The topology.

        Raises:
            ScenarioError: the file is no connected graph, or a generator's parameter impossible.
        """
        if self.file is not None:
            return read_topology(self.file, self.cost)
        try:
            if self.kind != "transit_stub":
                return GENERATORS[self.kind](self.brokers, seed)
            parameters = transit_stub_of(self.brokers)
            more = attrs.evolve(parameters, stub_stub_links=self.stub_stub_links)
            return transit_stub(more, seed)
        except ScenarioError as error:
            raise attrs.evolve(error, field=f"topology.{error.field}") from None

    def capacities(self, topology: Topology) -> Reals:
        """float64[m]: what each link can carry."""
        return read_capacities(self.capacity or np.inf, topology.graph)


@attrs.frozen(kw_only=True)
class WorkloadSection:
    """Who subscribes to what, and which documents are published: drawn, or read from a file.

    Attributes:
        neighbourhood, keywords, subscribers, documents, nearby, document_keywords, subscription,
            publishers: see `workload.Locality`.
        largest_size: of a document; sizes are drawn from 1 to this.
        file: subscriptions and documents instead, see `workload`.
    """

    section: ClassVar[str] = "workload."

    neighbourhood: float = _share(0.02)
    keywords: int = whole_field(1, MOST_DOCUMENTS, default=1000)
    subscribers: int = whole_field(1, MOST_BROKERS, default=10)
    documents: int = whole_field(1, MOST_DOCUMENTS, default=10_000)
    nearby: int = whole_field(1, MOST_BROKERS, default=5)
    document_keywords: int = whole_field(1, 1000, default=5)
    subscription: str = attrs.field(default=BROKER, validator=one_of(*SUBSCRIPTIONS))
    publishers: str = attrs.field(default=ANYWHERE, validator=one_of(*PUBLISHERS))
    largest_size: float = number_field(
        "a number from 1 to 1000000", lambda size: 1 <= size <= 1e6, default=1.0
    )
    file: Path | None = attrs.field(default=None, converter=to_path, validator=_A_FILE)

    def build(self, topology: Topology, seed: int) -> Workload:
        """The workload; raises `ScenarioError` about its file."""
        if self.file is not None:
            return read_workload(self.file, topology)
        shared = {field.name: getattr(self, field.name) for field in attrs.fields(Locality)}
        locality = Locality(**shared)
        return make_workload(topology.graph, locality, seed)


@attrs.frozen(kw_only=True)
class Planning:
    """How strategies plan.

    Attributes:
        sample_share: chance that a document is in the sample that trees are planned by.
        neighbours: others that MULT2 and HYBRID judge a group with; 0: all.
        manageable: groups that HYBRID leaves to Algorithm 2; a guess.
        channels: that SemCast may have, at most; a guess.
        states: of the mergers, numbers of trees for which all documents are routed (Fig. 6, 7).
    """

    section: ClassVar[str] = "planning."

    sample_share: float = _share(0.03)
    neighbours: int = whole_field(0, MOST_BROKERS, default=NEIGHBOURS)
    manageable: int = whole_field(1, MOST_BROKERS, default=MANAGEABLE)
    channels: int = whole_field(1, MOST_BROKERS, default=CHANNELS)
    states: int = whole_field(0, 1000, default=16)


@attrs.frozen(kw_only=True)
class TreesScenario:
    """A whole run: the same documents carried by several strategies' trees.

    Attributes:
        name: for titles, and for the default name of the result folder.
        seed: of everything random.
        strategies: names of `strategies.STRATEGIES`, in the order of tables and plots.
        topology, workload, planning: see there.
    """

    kind: ClassVar[str] = KIND

    name: str = attrs.field(default="trees", validator=of_type(str, "a text"))
    seed: int = whole_field(0, (1 << 62) - 1, default=1)
    strategies: tuple[str, ...] = DEFAULT_STRATEGIES
    topology: TopologySection = attrs.field(
        factory=TopologySection, validator=of_type(TopologySection, "a table")
    )
    workload: WorkloadSection = attrs.field(
        factory=WorkloadSection, validator=of_type(WorkloadSection, "a table")
    )
    planning: Planning = attrs.field(factory=Planning, validator=of_type(Planning, "a table"))

    def __attrs_post_init__(self) -> None:
        check_names(self, "strategies", STRATEGIES, "strategy")
        limited = "WITHIN" not in self.strategies or self.topology.capacity > 0
        expected = "a capacity above 0, as the strategy WITHIN keeps to it"
        check(limited, "topology.capacity", self.topology.capacity, expected)

    def routed(self, topology: Topology) -> Sample:
        """All documents with whom they reach.

        Raises:
            ScenarioError: the file of the workload cannot be read, or holds what is impossible.
        """
        workload = self.workload.build(topology, self.seed)
        try:
            return workload.sample(topology.graph)
        except TreesError as error:
            file = None if self.workload.file is None else str(self.workload.file)
            raise ScenarioError(file, "workload", None, "a workload", str(error)) from None

    def setting(self) -> Setting:
        """Topology, workload and sample, drawn or read.

        Raises:
            ScenarioError: a file cannot be read, or what it holds is impossible.
        """
        topology = self.topology.build(self.seed)
        routed = self.routed(topology)
        return Setting(
            topology,
            sampled(routed, self.planning.sample_share, self.seed),
            routed,
            self.seed,
            capacities=self.topology.capacities(topology),
            neighbours=self.planning.neighbours or None,
            manageable=self.planning.manageable,
            most_channels=self.planning.channels,
        )


FORMAT: Final = ScenarioFormat(
    scenario=TreesScenario,
    sections={"topology": TopologySection, "workload": WorkloadSection, "planning": Planning},
    paths=(("topology", "file"), ("workload", "file")),
)
