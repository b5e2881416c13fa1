"""A burst on the 75 brokers of the SCOT paper, by each way of routing, and what that costs.

Run it by hand: ``python tests/bench/bench_scot.py [--subscribers 500] [--burst 5000] [--out DIR]``.
Times of the simulation are milliseconds; the last line is messages between brokers that are
simulated in a second of processor time. With ``--out`` the plots are written into a folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from time import process_time

from rich.console import Console
from rich.table import Table

from gossamer.protocol.scot import ROUTINGS, ScotSettings
from gossamer.sim.benchmarks import machine
from gossamer.sim.scot.burst import MINUTE, SECOND, Burst, BurstResult, run_burst
from gossamer.sim.scot.overlays import figure_8
from gossamer.sim.scot.plots import plot_burst, plot_scot

RATE = 100_000
"""Notifications of the burst a minute, the highest of the paper's."""


def measure(
    routing: str, subscribers: int, burst: int, *, spare_links: bool = False
) -> tuple[BurstResult, float]:
    """Run a burst; returns its result and messages in a second of processor time."""
    settings = ScotSettings(routing=routing, spare_links=spare_links)
    begun = process_time()
    result = run_burst(
        Burst(
            scot=figure_8(),
            settings=settings,
            subscribers=subscribers,
            burst_notifications=burst,
            burst_per_minute=RATE,
        )
    )
    messages = result.subscription_messages + result.messages
    return result, messages / (process_time() - begun)


def rows(result: BurstResult, speed: float, burst: int) -> Mapping[str, str]:
    """What the table says of a run."""
    delays = result.delays / 1_000
    burst_ended = result.started + 5 * SECOND + burst * MINUTE // RATE
    settled = (result.received[result.burst].max() - burst_ended) / 1_000
    return {
        "subscription messages": f"{result.subscription_messages:,}",
        "duplicates of them": f"{result.subscription_duplicates:,}",
        "hops to a broker, mean": f"{result.subscription_hops.mean():.2f}",
        "subscription delay, mean": f"{result.subscription_delays.mean() / 1_000:.1f}",
        "notification messages": f"{result.messages:,}",
        "between clusters": f"{result.inter_messages:,}",
        "matchings": f"{result.matchings:,}",
        "delay in the burst, mean": f"{delays[result.burst].mean():.1f}",
        "largest": f"{delays.max():.1f}",
        "delay of the others, mean": f"{delays[~result.burst].mean():.1f}",
        "below 1 s": f"{100 * (delays < 1_000).mean():.1f} %",
        "longest queue": f"{result.windows[:, 1].max():,}",
        "settled after the burst": f"{settled:.0f}",
        "cases I, II, III, spare": ", ".join(str(result.cases.get(i, 0)) for i in range(1, 5)),
        "messages a second": f"{speed:,.0f}",
    }


def main() -> None:
    """Measure, print, and draw if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscribers", type=int, default=500)
    parser.add_argument("--burst", type=int, default=5_000)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    found = {name: measure(name, chosen.subscribers, chosen.burst) for name in ROUTINGS}
    found["spare"] = measure("dynamic", chosen.subscribers, chosen.burst, spare_links=True)
    columns = {name: rows(*measured, chosen.burst) for name, measured in found.items()}
    table = Table("", *columns, title=machine())
    for row in next(iter(columns.values())):
        table.add_row(row, *(column[row] for column in columns.values()))
    Console().print(table)
    if chosen.out:
        chosen.out.mkdir(parents=True, exist_ok=True)
        plot_scot(figure_8(), chosen.out)
        plot_burst({name: result for name, (result, _) in found.items()}, chosen.out)


if __name__ == "__main__":
    main()
