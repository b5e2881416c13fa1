"""Overlays at rest send a fraction of the messages, deliver the same, and wake for a change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.sim.churn import ChurnTrace, write_trace
from gossamer.sim.studies.peers.inputs import scenario as peers
from gossamer.sim.studies.peers.inputs.changes import Drift
from gossamer.sim.studies.peers.measuring.records import SystemRecord
from gossamer.sim.studies.peers.study import simulate
from gossamer.sim.studies.worlds.network import Link
from support.draws import with_campaigns

NODES, ROUNDS, CRASH = 300, 100, 60
RESTS = (1, 16, 64)


def run(settings: dict[str, Any] | None = None, **fields: Any) -> list[SystemRecord]:
    """A formed overlay of `kindred` without rest and with more and more of it."""
    systems = tuple(
        peers.System(
            name=f"rest-{rest}",
            preset="kindred",
            settings={"rest_rounds": rest, **(settings or {})},
        )
        for rest in RESTS
    )
    common: dict[str, Any] = {"nodes": NODES, "rounds": ROUNDS, "round_s": 1.0, "start": "formed"}
    common |= {"subscriptions": peers.Subscriptions(kind="random")}
    found = simulate(peers.Scenario(systems=systems, **{**common, **fields}))
    return list(found.systems.values())


def control(record: SystemRecord, last: int) -> float:
    return float(record.cycles["control_messages"][-last:].mean()) / NODES


def never_got(record: SystemRecord) -> int:
    """Deliveries due that there never were."""
    events = record.events
    got = np.bincount(record.deliveries["event"], minlength=int(events["event"].max()) + 1)
    return int(np.maximum(events["expected"] - got[events["event"]], 0).sum())


def test_a_formed_overlay_sends_ever_fewer_messages_and_stays_as_it_is() -> None:
    records = run(rounds=320, events=peers.Events(per_round=0.01), measure_every=20)
    awake, resting, fast_asleep = (control(record, 64) for record in records)
    assert awake > 10
    assert resting < awake / 8
    assert fast_asleep < awake / 32
    for record in records:
        assert (record.cycles["ring_correct"][::20] == 1).all()
        assert record.totals["identifier_shifts"] == 0


def ways(record: SystemRecord) -> list[tuple[int, int, int, int]]:
    columns = (record.deliveries[name].tolist() for name in ("event", "node", "hops", "tree_hops"))
    return sorted(zip(*columns, strict=True))


def test_events_of_an_overlay_at_rest_take_the_same_ways() -> None:
    """Where load does not move them: at rest peers hear of a neighbour's load more rarely."""
    events = peers.Events(per_round=5, warm_up_rounds=40)
    awake, *resting = run({"load_shifting": False}, events=events)
    for record in resting:
        assert ways(record) == ways(awake)
        assert record.events["delivered"].sum() == record.events["expected"].sum()
        assert control(record, 32) < control(awake, 32) / 2


def crash(folder: Path, share: float, seed: int) -> peers.Churn:
    """A share of the nodes leaves in the middle of a round."""
    ends_s = np.full(NODES, float(ROUNDS))
    leaving = np.random.default_rng(seed).permutation(NODES)[: int(share * NODES)]
    ends_s[leaving] = CRASH + 0.25
    names = tuple(f"n{i}" for i in range(NODES))
    path = folder / f"crash-{share}.avt.gz"
    write_trace(ChurnTrace(names, np.arange(NODES), np.zeros(NODES), ends_s, float(ROUNDS)), path)
    return peers.Churn(trace=path)


@with_campaigns(
    "share, is_reported, seed",
    [(0.05, False, 1), (0.25, True, 1)],
    [(0.25, False, 1), (0.05, False, 2), (0.25, False, 2), (0.25, True, 2)],
)
def test_no_rest_costs_an_event_though_nodes_fail(
    share: float, is_reported: bool, seed: int, tmp_path: Path
) -> None:
    """Silent failures are found by the events that go to them, and the ring wakes to be mended."""
    awake, *resting = run(
        nodes=None,
        seed=seed,
        churn=crash(tmp_path, share, seed),
        network=Link(reports_unreachable=is_reported),
        events=peers.Events(per_round=8, warm_up_rounds=CRASH - 5),
    )
    for record in resting:
        due, on_time = (record.events[name].sum() for name in ("expected", "delivered"))
        assert never_got(record) <= never_got(awake), f"seed {seed}"
        assert on_time >= 0.98 * due, f"seed {seed}"
        assert record.cycles["ring_correct"][-1] == 1, f"seed {seed}"


@pytest.mark.campaign
@pytest.mark.parametrize("engine", ["cycle", "event"])
def test_what_is_due_arrives_though_interests_drift_and_nodes_join(engine: str) -> None:
    for start in ("formed", "joining"):
        for record in run(
            seed=3,
            engine=engine,
            start=start,
            round_s=60.0,
            drift=Drift(every_s=600.0, replaced=0.02),
            events=peers.Events(per_round=4, warm_up_rounds=30),
        ):
            due, on_time = (record.events[name].sum() for name in ("expected", "delivered"))
            assert on_time >= 0.999 * due, start
            assert record.cycles["ring_correct"][-1] == 1, start
