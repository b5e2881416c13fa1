"""The windows engine as a stand-in for others, in tests that are the same for all engines."""

from __future__ import annotations

from typing import Any

from gossamer.sim.engine.cycle_engine import Network
from gossamer.sim.engine.latency import constant_latency
from gossamer.sim.engine.link_conditions import make_link_conditions
from gossamer.sim.engine.windows.window_engine import WindowEngine


def make_window_engine(
    state: Any, step: Any, timers: Any, network: Network, seed: int, **options: Any
) -> WindowEngine:
    """A windows engine; by default links are perfect but take a tick, and shards are small."""
    links = make_link_conditions(len(network.alive), latency=constant_latency(1))
    made: dict[str, Any] = {"links": links, "shard_rows": 2} | options
    return WindowEngine(state, step, timers, network, seed, **made)
