"""Peers that rest: what they send while nothing changes, and what they miss when something does.

    python tests/bench/bench_rest.py [rest events drift crowd told silent-5 silent-25 turnover]
        [--nodes 1000] [--rests 1 16 64] [--seeds 3] [--first 1] [--out FILE]

Of each workload a line for each `rest_rounds` and seed of `kindred` in the cycle engine; all but
the bundled flash crowd begin formed. `rest` has hardly any event, `events` 25 a round, `drift` has
one in a hundred subscriptions change every ten rounds, and in round 100 a quarter of the nodes
leaves in `told`, where senders learn of it, 5 and 25 % in `silent`, where nobody does; `turnover`
is 5 % an hour of silent replacements. A delivery is *late* that comes after the round that follows
the publication, and *lost* if it never comes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import Row, read_options, write_rows
from gossamer.sim.churn import ChurnTrace, write_trace
from gossamer.sim.results.results import summarise
from gossamer.sim.studies.peers.inputs import scenario as peers
from gossamer.sim.studies.peers.inputs.changes import Drift, Turnover
from gossamer.sim.studies.peers.measuring.records import SystemRecord
from gossamer.sim.studies.peers.study import simulate
from gossamer.sim.studies.worlds.network import Link

CROWD = Path(__file__).parents[2] / "traces" / "flash_crowd.avt.gz"
ROUND_S, ROUNDS, LEAVE_IN = 60.0, 200, 100
LAST = 64
WORKLOADS = ("rest", "events", "drift", "crowd", "told", "silent-5", "silent-25", "turnover")


def trace_of(folder: Path, nodes: int, share: float, seed: int) -> Path:
    """A share of the nodes leaves at once, the others stay."""
    ends_s = np.full(nodes, ROUNDS * ROUND_S)
    leaving = np.random.default_rng(seed).permutation(nodes)[: int(share * nodes)]
    ends_s[leaving] = (LEAVE_IN + 0.25) * ROUND_S
    names = tuple(f"n{i}" for i in range(nodes))
    path = folder / "leaving.avt.gz"
    write_trace(
        ChurnTrace(names, np.arange(nodes), np.zeros(nodes), ends_s, ROUNDS * ROUND_S), path
    )
    return path


def scenario(workload: str, nodes: int, folder: Path, seed: int) -> dict[str, Any]:
    """What makes a workload of a scenario."""
    events: dict[str, Any] = {"per_round": 8.0, "warm_up_rounds": LEAVE_IN - 5}
    made: dict[str, Any] = {"nodes": nodes, "rounds": ROUNDS, "start": peers.FORMED}
    link = Link(reports_unreachable=not workload.startswith(("silent", "turnover")))
    if workload == "rest":
        made["rounds"] = 5 * LAST
        events = {"per_round": 0.02}
    elif workload == "events":
        events["per_round"] = 25.0
    elif workload == "drift":
        events = {"per_round": 8.0, "warm_up_rounds": 40}
        made["drift"] = Drift(every_s=10 * ROUND_S, replaced=0.01)
    elif workload == "crowd":
        events = {"per_round": 4.0}
        made = {"churn": peers.Churn(trace=CROWD)}
    elif workload == "turnover":
        made = {"nodes": nodes, "rounds": ROUNDS, "turnover": Turnover(share=0.05)}
        events["warm_up_rounds"] = 60
    else:
        share = {"told": 0.25, "silent-5": 0.05, "silent-25": 0.25}[workload]
        made |= {"nodes": None, "churn": peers.Churn(trace=trace_of(folder, nodes, share, seed))}
    return {**made, "network": link, "events": peers.Events(**events)}


def measured(workload: str, record: SystemRecord, measures: dict[str, Any]) -> Row:
    """What a run is judged by."""
    cycles, events = record.cycles, record.events
    control = cycles["control_messages"] / np.maximum(cycles["population"], 1)
    got = np.bincount(record.deliveries["event"], minlength=int(events["event"].max()) + 1)
    wrong = np.flatnonzero(cycles["ring_correct"] < 1)
    leaves = workload in ("told", "silent-5", "silent-25")
    return {
        "control": round(float(control[-LAST:].mean()), 2),
        "control before": round(float(control[LEAVE_IN - LAST : LEAVE_IN].mean()), 2),
        "due": int(events["expected"].sum()),
        "late": int((events["expected"] - events["delivered"]).sum()),
        "lost": int(np.maximum(events["expected"] - got[events["event"]], 0).sum()),
        "overhead %": round(100 * float(measures["traffic_overhead"]), 2),
        "hops": round(float(measures["path_length_mean"]), 2),
        "rounds until right": int(wrong.max(initial=LEAVE_IN - 1)) + 1 - LEAVE_IN
        if leaves
        else None,
    }


def play(workload: str, nodes: int, rests: list[int], seed: int) -> list[Row]:
    """One workload with each setting."""
    systems = tuple(
        peers.System(name=f"rest-{rest}", preset="kindred", settings={"rest_rounds": rest})
        for rest in rests
    )
    with tempfile.TemporaryDirectory() as folder:
        given = scenario(workload, nodes, Path(folder), seed)
        subscriptions = peers.Subscriptions(kind="random")
        common: dict[str, Any] = {"seed": seed, "round_s": ROUND_S, "subscriptions": subscriptions}
        run = simulate(peers.Scenario(systems=systems, **common, **given))
    measures = summarise(run)["systems"]
    return [
        {"workload": workload, "seed": seed, "rest_rounds": rest}
        | measured(workload, run.systems[f"rest-{rest}"], measures[f"rest-{rest}"])
        for rest in rests
    ]


def main() -> None:
    given = read_options(
        *(__doc__, WORKLOADS), nodes=1000, rests=[1, 16, 64], seeds=3, first=1, out=Path
    )
    rows: list[Row] = []
    for workload in given.words:
        for seed in range(given.first, given.first + given.seeds):
            for row in play(workload, given.nodes, given.rests, seed):
                rows.append(row)
                print(" | ".join(str(value) for value in row.values()), flush=True)
    if rows:
        print(" | ".join(rows[0]))
    write_rows(given.out, rows)


if __name__ == "__main__":
    main()
