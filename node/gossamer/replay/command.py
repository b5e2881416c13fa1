"""`gossamer node replay`: simulate, then do the same with real peers, then compare."""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from gossamer.command.waiting import waiting
from gossamer.node.commands.cluster.membership import MAX_LOCAL_PEERS
from gossamer.node.errors import ConfigurationError
from gossamer.protocol.peer.state.state import COUNTER_NAMES
from gossamer.replay.controller import (
    REAL,
    TOO_LATE,
    Played,
    choose_speed,
    play,
    processes_for,
    warn_of_speed,
)
from gossamer.replay.plan import make_plan
from gossamer.replay.recorder import Accounts
from gossamer.sim.commands.progress import Callback, progress_bars, stops_between_rounds
from gossamer.sim.commands.run import Destination, new_destination
from gossamer.sim.results.held import file_name
from gossamer.sim.results.results import write_results
from gossamer.sim.results.tables import print_json, print_summary
from gossamer.sim.studies.peers.inputs.own_workload import timetable_of, workload_of
from gossamer.sim.studies.peers.inputs.publications import PARTS
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.studies.peers.inputs.scenario_file import FORMAT, replay_scenario
from gossamer.sim.studies.peers.measuring.records import RunRecord
from gossamer.sim.studies.peers.running.population import load_trace
from gossamer.sim.studies.peers.study import preview, simulate
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.records import peak_memory_bytes
from gossamer.sim.study.scenario_format import parse_override

SIMULATED: Final = "simulated"
HOUR_S: Final = 3600.0
# As long as those of peers by default; short enough for a trace, and no strain on a processor.
ROUND_S: Final = 0.5
# Shorter rounds than this are over before interpreted rules are through with them.
SHORTEST_ROUND_S: Final = 0.05
# Tried first where nobody asks for another: ten minutes in a second.
FIRST_SPEED: Final = 600.0
EXIT_INTERRUPTED: Final = 130


@attrs.frozen(kw_only=True)
class Options:
    """How to replay.

    Attributes:
        peers: real peers, the first of the trace.
        speed: seconds of the trace that pass in a second; as many as this machine manages if None.
        processes: that hold the peers; as many as processors if None.
        out: the result folder; a free one is chosen if None.
        json: print `summary.json` instead of a table.
        plots: whether to draw plots and write the report.
    """

    peers: int
    speed: float | None = None
    processes: int | None = None
    out: Path | None = None
    json: bool = False
    plots: bool = True


def replay(
    trace: Path,
    options: Options,
    *,
    preset: str,
    round_s: float | None,
    events_per_hour: float,
    seed: int | None,
    changes: Iterable[str],
) -> int:
    """Replay ``trace`` on simulated and on real peers; return the exit code.

    Args:
        trace: the trace file.
        options: how.
        preset: of the protocol.
        round_s: seconds of the trace that a gossip round lasts; those of half a second if None.
        events_per_hour: of the trace.
        seed: of everything that is drawn; the scenario's own if None.
        changes: further settings of the scenario, as KEY=VALUE.

    Raises:
        SimulationError, NodeError, ConfigError: something is impossible, or went wrong; all
            peers are stopped, and no results written.
    """
    _check_peers_and_speed(options)
    asked = FIRST_SPEED if options.speed is None else options.speed
    round_s = ROUND_S * asked if round_s is None else round_s
    overrides: dict[str, object] = {
        "nodes": options.peers,
        "round_s": round_s,
        "events.per_round": events_per_hour * round_s / HOUR_S,
        **({} if seed is None else {"seed": seed}),
        **dict(map(parse_override, changes)),
    }
    scenario = _with_one_system(replay_scenario(trace, preset, overrides)[0])
    _check_rounds(scenario, options)
    preview(scenario)
    place = new_destination(options.out, file_name(f"{scenario.name}-peers-{scenario.seed}"))
    place.claim(FORMAT.write(scenario))
    try:
        with progress_bars() as bars:
            record, interrupted = _run(scenario, options, bars)
        if record is None:
            print("gossamer: interrupted before the first event; nothing is kept", file=sys.stderr)
            return EXIT_INTERRUPTED
        with waiting("drawing plots and writing results"):
            summary = write_results(record, place.out, pictures=options.plots and not interrupted)
    except KeyboardInterrupt:
        print("gossamer: interrupted; nothing is kept", file=sys.stderr)
        return EXIT_INTERRUPTED
    finally:
        place.release()
    _print(summary, place, options)
    return EXIT_INTERRUPTED if interrupted else 0


def _with_one_system(scenario: Scenario) -> Scenario:
    """The scenario without the baseline, which no real peer runs."""
    # As a list of anything: the type checker does not see through the converter `tuple`.
    systems: Any = [attrs.evolve(scenario.systems[0], name=SIMULATED)]
    return attrs.evolve(scenario, systems=systems)


def _check_peers_and_speed(options: Options) -> None:
    if not 2 <= options.peers <= MAX_LOCAL_PEERS:
        raise ConfigurationError("", "--peers", options.peers, f"2 to {MAX_LOCAL_PEERS}")
    if options.speed is not None and not 0 < options.speed < math.inf:
        raise ConfigurationError("", "--speed", options.speed, "a number above 0")


def _check_rounds(scenario: Scenario, options: Options) -> None:
    fastest = _fastest(scenario)
    if options.speed is not None and options.speed > fastest:
        rounds = f"rounds of {scenario.round_s:g} s would be shorter than {SHORTEST_ROUND_S} s"
        expected = f"at most {fastest:g}, as {rounds}"
        raise ConfigurationError("", "--speed", options.speed, expected)


def _fastest(scenario: Scenario) -> float:
    return scenario.round_s / SHORTEST_ROUND_S


def _run(scenario: Scenario, options: Options, bars: Callback) -> tuple[RunRecord | None, bool]:
    """What was simulated and what was seen, None if nothing was; and whether it is cut short."""
    assert scenario.churn is not None
    plan = make_plan(scenario, load_trace(scenario.churn))
    processes = processes_for(options.peers, options.processes)
    speed = options.speed
    if speed is None:
        speed = choose_speed(plan, min(FIRST_SPEED, _fastest(scenario)), processes, bars)
    elif not warn_of_speed(plan, speed, processes, bars):
        return None, True
    if speed is None:
        return None, True
    with stops_between_rounds(bars) as progress:
        simulated = simulate(scenario, FORMAT.write(scenario), Execution(progress=progress))
    started = time.monotonic()
    length_s = plan.rounds * plan.scenario.round_s / speed
    print(f"gossamer: {len(plan.first)} real peers start, for {length_s:.0f} s", file=sys.stderr)
    played = play(plan, speed, processes, bars)
    if played.cycles == 0 or _before_all_events(scenario, played.cycles):
        return None, True
    if played.interrupted:
        # What was seen is set beside as much of the simulation.
        scenario = attrs.evolve(scenario, rounds=played.cycles)
        simulated = simulate(scenario, FORMAT.write(scenario))
    totals = _totals(played)
    real = Accounts(plan, played.recorder, played.cycles).record(REAL, totals)
    return (
        dataclasses.replace(
            simulated,
            wall_s=simulated.wall_s + time.monotonic() - started,
            peak_rss_bytes=peak_memory_bytes(),
            systems={**simulated.systems, REAL: real},
        ),
        played.interrupted,
    )


def _before_all_events(scenario: Scenario, cycles: int) -> bool:
    """Whether so few rounds publish nothing, although events are asked for."""
    timetable = timetable_of(scenario, workload_of(scenario), cycles, PARTS)
    return scenario.events.per_round > 0 and timetable.size == 0


def _totals(played: Played) -> dict[str, int | float]:
    counts = sum(played.recorder.tallies.values(), start=Counter[str]())
    sessions = [one for each in played.recorder.sessions.values() for one in each]
    return {
        "starts": len(sessions),
        "failed_starts": len(played.recorder.failures),
        "replaced_processes": played.deaths,
        "unpublished_events": len(played.recorder.unpublished),
        "rounds": counts["rounds"],
        "rounds_late": counts["rounds_late"],
        **{name: counts[name] for name in COUNTER_NAMES},
    }


def _print(summary: Mapping[str, Any], place: Destination, options: Options) -> None:
    if options.json:
        print_json(summary, sys.stdout)
        return
    print_summary(summary, place.out / "summary.json", notes(summary))


def notes(summary: Mapping[str, Any]) -> list[str]:
    """What else is to be said of the real peers."""
    totals = summary["systems"][REAL]["totals"]
    told = [f"Peers were started {totals['starts']} times, with TLS between all of them."]
    if totals["latency_p50_s"] is not None:
        told.append(
            f"Latency from publication to application: median {1000 * totals['latency_p50_s']:.1f}"
            f" ms, 99 % {1000 * totals['latency_p99_s']:.1f} ms."
        )
    troubles = {
        "failed_starts": "starts failed",
        "replaced_processes": "processes of peers died and were replaced",
        "unpublished_events": "events could not be published",
    }
    told += [f"{totals[key]} {words}." for key, words in troubles.items() if totals[key]]
    if totals["rounds_late"] > TOO_LATE * totals["rounds"]:
        share = totals["rounds_late"] / totals["rounds"]
        told.append(
            f"{share:.0%} of the rounds began late: this machine is too slow for so many peers "
            "at this speed; lower --speed or --peers."
        )
    return told
