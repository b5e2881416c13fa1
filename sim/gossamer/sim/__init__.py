"""The simulator: scenarios in, runs with their measures, tables, overlays and plots out.

    import gossamer.sim as gs

    run = gs.simulate(nodes=1_000, systems=["kindred", "baseline"])
    print(run["kindred"].hit_ratio)

`docs/reference/simulator.md` describes all names that are offered here; everything else may change.
A name is loaded when it is first used.

- `engine`: runs protocols; knows no study
- `study`: what a study is, how it is found, and what all of them use
- `studies`: peers, brokers on trees and SCOT, dissemination trees, protocols of one's own
- `custom`: the language of protocols of one's own
- `exploration`: explorations of these, every order of what can happen to a few nodes
- `results`: runs and result folders: written, read, compared, printed, drawn
- `churn`: who is online when
- `row_tables`: workloads as tables
- `figures`: the figures of the papers, and which of their claims hold
- `bench`: benchmarks of speed and memory
- `commands`: the command line, and what scripts run by

Begin with `study.contract`, then a folder of `studies`, which `built_in_studies` lists. Errors are
in `errors`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gossamer.command.extras import check_requirements

if TYPE_CHECKING:
    from gossamer.protocol.kernel.draws import below, float_to_word, mix, mix_many, word_to_float
    from gossamer.protocol.kernel.records import (
        BODY,
        FROM,
        KIND,
        TO,
        USER,
        close_record,
        open_record,
    )
    from gossamer.protocol.kernel.rules import rule, use_compiled
    from gossamer.protocol.kernel.struct import Struct
    from gossamer.sim.churn import (
        ChurnSpec,
        ChurnTrace,
        CorrelatedFailure,
        FlashCrowd,
        Pareto,
        StationaryChurn,
        Weibull,
        generate,
        read_trace,
        write_trace,
    )
    from gossamer.sim.commands.finished_run import PeersResult, Run, SystemResult
    from gossamer.sim.commands.printed import ComparedRuns
    from gossamer.sim.commands.scripts import ScenarioKeys, compare, load, simulate, sweep
    from gossamer.sim.custom.language.context import Net, cancel, seconds
    from gossamer.sim.custom.language.declarations import layer
    from gossamer.sim.custom.language.functions import control, initialiser, measure, observer
    from gossamer.sim.custom.language.members import Sampler, Timer, attribute, column, setting
    from gossamer.sim.custom.language.messages import Message, items, message
    from gossamer.sim.custom.library import (
        NOBODY,
        add_to,
        clustering,
        count_in,
        draw,
        draw_below,
        draw_but,
        draw_float,
        draw_from,
        draw_other,
        graph_of,
        holds,
        insert_at,
        largest_component,
        mean_path_length,
        peer_at,
        peers_known,
        place_in,
        put_into,
        random_peer,
        remove_from,
    )
    from gossamer.sim.custom.node import Node
    from gossamer.sim.custom.protocol import Protocol
    from gossamer.sim.custom.pubsub.overlay import PubSub, deliver, wants
    from gossamer.sim.custom.simulation import links_in
    from gossamer.sim.custom.topologies.tman import tman
    from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
    from gossamer.sim.engine.event_engine import EventEngine
    from gossamer.sim.engine.latency import (
        constant_latency,
        lognormal_latency,
        make_bandwidth,
        make_sizes,
        no_latency,
        uniform_latency,
    )
    from gossamer.sim.engine.latency_files.site_latency import SiteFile, site_latency
    from gossamer.sim.engine.link_conditions import LossPeriod, Partition, make_link_conditions
    from gossamer.sim.engine.protocol_run import ProtocolRun, Schedule, once
    from gossamer.sim.engine.windows.window_engine import WindowEngine
    from gossamer.sim.engine.windows.worker_pool import Collectors
    from gossamer.sim.engine.windows.worker_threads import spread_over_cores
    from gossamer.sim.errors import (
        ResultsError,
        ScenarioError,
        SimulationError,
        SweepStopped,
        TraceError,
        UnknownNameError,
    )
    from gossamer.sim.exploration.exploration import Exploration, explore
    from gossamer.sim.exploration.properties import assumption, eventually, invariant
    from gossamer.sim.exploration.story import Story
    from gossamer.sim.exploration.symmetry import symmetric_nodes
    from gossamer.sim.results.sweeps.table import differences_of, means_of
    from gossamer.sim.studies.custom.rehearsal import first_difference, scenario_of
    from gossamer.sim.studies.dissemination.scenario import TreesScenario
    from gossamer.sim.studies.dissemination.topologies import (
        Topology,
        TransitStub,
        barabasi_albert,
        transit_stub,
        transit_stub_of,
        waxman,
    )
    from gossamer.sim.studies.dissemination.topology_files import read_topology
    from gossamer.sim.studies.peers.inputs.changes import Drift, Turnover
    from gossamer.sim.studies.peers.inputs.scenario import (
        Churn,
        Events,
        Scenario,
        Subscriptions,
        System,
    )
    from gossamer.sim.studies.peers.inputs.taken_from import TakenFrom
    from gossamer.sim.studies.scot.scenario import ScotScenario
    from gossamer.sim.studies.tree_brokers.game import Game
    from gossamer.sim.studies.tree_brokers.scenario import BrokerScenario
    from gossamer.sim.studies.tree_brokers.scene import MINUTE, Scene, Stage
    from gossamer.sim.studies.tree_brokers.service_times import TABLE_II
    from gossamer.sim.studies.worlds.network import Link, LossSchedule, PartitionPeriod
    from gossamer.sim.studies.worlds.sessions import Sessions
    from gossamer.sim.study.contract import Study
    from gossamer.sim.study.scenarios import read_scenario

__all__ = [
    "BODY",
    "FROM",
    "KIND",
    "MINUTE",
    "NOBODY",
    "TABLE_II",
    "TO",
    "USER",
    "BrokerScenario",
    "Churn",
    "ChurnSpec",
    "ChurnTrace",
    "Collectors",
    "ComparedRuns",
    "CorrelatedFailure",
    "CycleEngine",
    "Drift",
    "EventEngine",
    "Events",
    "Exploration",
    "FlashCrowd",
    "Game",
    "Link",
    "LossPeriod",
    "LossSchedule",
    "Message",
    "Net",
    "Node",
    "Pareto",
    "Partition",
    "PartitionPeriod",
    "PeersResult",
    "Protocol",
    "ProtocolRun",
    "PubSub",
    "ResultsError",
    "Run",
    "Sampler",
    "Scenario",
    "ScenarioError",
    "ScenarioKeys",
    "Scene",
    "Schedule",
    "ScotScenario",
    "Sessions",
    "SimulationError",
    "SiteFile",
    "Stage",
    "StationaryChurn",
    "Story",
    "Struct",
    "Study",
    "Subscriptions",
    "SweepStopped",
    "System",
    "SystemResult",
    "TakenFrom",
    "Timer",
    "Topology",
    "TraceError",
    "TransitStub",
    "TreesScenario",
    "Turnover",
    "UnknownNameError",
    "Weibull",
    "WindowEngine",
    "add_to",
    "assumption",
    "attribute",
    "barabasi_albert",
    "below",
    "cancel",
    "close_record",
    "clustering",
    "column",
    "compare",
    "constant_latency",
    "control",
    "count_in",
    "deliver",
    "differences_of",
    "draw",
    "draw_below",
    "draw_but",
    "draw_float",
    "draw_from",
    "draw_other",
    "eventually",
    "explore",
    "first_difference",
    "float_to_word",
    "generate",
    "graph_of",
    "holds",
    "initialiser",
    "insert_at",
    "invariant",
    "items",
    "largest_component",
    "layer",
    "links_in",
    "load",
    "lognormal_latency",
    "make_bandwidth",
    "make_link_conditions",
    "make_network",
    "make_sizes",
    "mean_path_length",
    "means_of",
    "measure",
    "message",
    "mix",
    "mix_many",
    "no_latency",
    "observer",
    "once",
    "open_record",
    "peer_at",
    "peers_known",
    "place_in",
    "put_into",
    "random_peer",
    "read_scenario",
    "read_topology",
    "read_trace",
    "remove_from",
    "rule",
    "scenario_of",
    "seconds",
    "setting",
    "simulate",
    "site_latency",
    "spread_over_cores",
    "sweep",
    "symmetric_nodes",
    "tman",
    "transit_stub",
    "transit_stub_of",
    "uniform_latency",
    "use_compiled",
    "wants",
    "waxman",
    "word_to_float",
    "write_trace",
]

_PLACES = {
    "gossamer.protocol.kernel.draws": "below float_to_word mix mix_many word_to_float",
    "gossamer.protocol.kernel.records": "BODY FROM KIND TO USER close_record open_record",
    "gossamer.protocol.kernel.rules": "rule use_compiled",
    "gossamer.protocol.kernel.struct": "Struct",
    "gossamer.sim.churn": (
        "ChurnSpec ChurnTrace CorrelatedFailure FlashCrowd Pareto StationaryChurn Weibull "
        "generate read_trace write_trace"
    ),
    "gossamer.sim.commands.finished_run": "PeersResult Run SystemResult",
    "gossamer.sim.commands.printed": "ComparedRuns",
    "gossamer.sim.commands.scripts": "ScenarioKeys compare load simulate sweep",
    "gossamer.sim.custom.language.context": "Net cancel seconds",
    "gossamer.sim.custom.language.declarations": "layer",
    "gossamer.sim.custom.language.functions": "control initialiser measure observer",
    "gossamer.sim.custom.language.members": "Sampler Timer attribute column setting",
    "gossamer.sim.custom.language.messages": "Message items message",
    "gossamer.sim.custom.library": (
        "NOBODY add_to clustering count_in draw draw_below draw_but draw_float draw_from "
        "draw_other graph_of holds insert_at largest_component mean_path_length peer_at "
        "peers_known place_in put_into random_peer remove_from"
    ),
    "gossamer.sim.custom.node": "Node",
    "gossamer.sim.custom.protocol": "Protocol",
    "gossamer.sim.custom.pubsub.overlay": "PubSub deliver wants",
    "gossamer.sim.custom.simulation": "links_in",
    "gossamer.sim.custom.topologies.tman": "tman",
    "gossamer.sim.engine.cycle_engine": "CycleEngine make_network",
    "gossamer.sim.engine.event_engine": "EventEngine",
    "gossamer.sim.engine.latency": (
        "constant_latency lognormal_latency make_bandwidth make_sizes no_latency uniform_latency"
    ),
    "gossamer.sim.engine.latency_files.site_latency": "SiteFile site_latency",
    "gossamer.sim.engine.link_conditions": "LossPeriod Partition make_link_conditions",
    "gossamer.sim.engine.protocol_run": "ProtocolRun Schedule once",
    "gossamer.sim.engine.windows.window_engine": "WindowEngine",
    "gossamer.sim.engine.windows.worker_pool": "Collectors",
    "gossamer.sim.engine.windows.worker_threads": "spread_over_cores",
    "gossamer.sim.errors": (
        "ResultsError ScenarioError SimulationError SweepStopped TraceError UnknownNameError"
    ),
    "gossamer.sim.exploration.exploration": "Exploration explore",
    "gossamer.sim.exploration.properties": "assumption eventually invariant",
    "gossamer.sim.exploration.story": "Story",
    "gossamer.sim.exploration.symmetry": "symmetric_nodes",
    "gossamer.sim.results.sweeps.table": "differences_of means_of",
    "gossamer.sim.studies.custom.rehearsal": "first_difference scenario_of",
    "gossamer.sim.studies.dissemination.scenario": "TreesScenario",
    "gossamer.sim.studies.dissemination.topologies": (
        "Topology TransitStub barabasi_albert transit_stub transit_stub_of waxman"
    ),
    "gossamer.sim.studies.dissemination.topology_files": "read_topology",
    "gossamer.sim.studies.peers.inputs.changes": "Drift Turnover",
    "gossamer.sim.studies.peers.inputs.scenario": "Churn Events Scenario Subscriptions System",
    "gossamer.sim.studies.peers.inputs.taken_from": "TakenFrom",
    "gossamer.sim.studies.scot.scenario": "ScotScenario",
    "gossamer.sim.studies.tree_brokers.game": "Game",
    "gossamer.sim.studies.tree_brokers.scenario": "BrokerScenario",
    "gossamer.sim.studies.tree_brokers.scene": "MINUTE Scene Stage",
    "gossamer.sim.studies.tree_brokers.service_times": "TABLE_II",
    "gossamer.sim.studies.worlds.network": "Link LossSchedule PartitionPeriod",
    "gossamer.sim.studies.worlds.sessions": "Sessions",
    "gossamer.sim.study.contract": "Study",
    "gossamer.sim.study.scenarios": "read_scenario",
}

check_requirements(__name__)

_MODULES = {name: module for module, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(_no_such_name(name))
    # Kept, so that rules find it as they find any other global name.
    found = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _no_such_name(name: str) -> str:
    near = "" if name.startswith("_") else _nearest(name)
    return f"module {__name__!r} has no attribute {name!r}{near}"


def _nearest(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, __all__, n=1)
    return f", did you mean {near[0]!r}?" if near else ""
