"""A burst on the 75 brokers of the SCOT paper, by each way of routing, and what that costs.

Run it by hand: ``python tests/bench/bench_scot.py [--subscribers 500] [--burst 5000] [--out DIR]``.
Times of the simulation are milliseconds; the last line is messages between brokers that are
simulated in a second of processor time, subscriptions and what compiles included. With ``--out``
the plots are written into a folder. ``--large`` runs a thousand brokers with 100,000 subscribers.
"""

from __future__ import annotations

import random
import resource
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import read_options, timed
from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.brokers.core.messages import Attach
from gossamer.protocol.brokers.scot import ROUTINGS, Factor, Scot, ScotSettings
from gossamer.sim.bench.benchmarks import machine
from gossamer.sim.results.plot_style import plot_style, save
from gossamer.sim.studies.scot.burst import MINUTE, SECOND, Burst, BurstResult, run_burst
from gossamer.sim.studies.scot.plots import plot_delays, plot_messages, plot_queues, plot_scot
from gossamer.sim.studies.scot.replay.broadcast import Subscribers, broadcast
from gossamer.sim.studies.scot.replay.network import Links, ScotNetwork, ServiceTimes, Unobserved
from gossamer.sim.studies.scot.replay.replay import Publications, Replayed, replay
from gossamer.sim.studies.scot.workloads import Quotes, figure_8

RATE = 100_000  # notifications of the burst a minute, the highest of the paper's
VARIANTS: Mapping[str, ScotSettings] = {
    **{routing: ScotSettings(routing=routing) for routing in ROUTINGS},
    "spare": ScotSettings(spare_links=True),
    "detours": ScotSettings(cluster_detours=True),
    "covering": ScotSettings(covering=True),
}


def rows(result: BurstResult, seconds: float, burst: int) -> Mapping[str, str]:
    burst_ended = result.started + 5 * SECOND + burst * MINUTE // RATE
    settled = (result.burst_ended - burst_ended) / 1_000
    speed = (result.subscription_messages + result.messages) / seconds
    return {
        "subscription messages": f"{result.subscription_messages:,}",
        "duplicates of them": f"{result.subscription_duplicates:,}",
        "hops to a broker, mean": f"{result.subscription_hops.mean():.2f}",
        "subscription delay, mean": f"{result.subscription_delays.mean() / 1_000:.1f}",
        "notification messages": f"{result.messages:,}",
        "between clusters": f"{result.inter_messages:,}",
        "matchings": f"{result.matchings:,}",
        "delay in the burst, mean": f"{result.mean_delay(burst=True) / 1_000:.1f}",
        "largest": f"{result.delays.max() / 1_000:.1f}",
        "delay of the others, mean": f"{result.mean_delay(burst=False) / 1_000:.1f}",
        "below 1 s": f"{100 * result.share_below(SECOND):.1f} %",
        "longest queue": f"{result.windows[:, 1].max():,}",
        "settled after the burst": f"{settled:.0f}",
        "cases I, II, III, spare": ", ".join(str(result.cases.get(i, 0)) for i in range(1, 5)),
        "detours within clusters": f"{result.detours:,}",
        "subscriptions kept back": f"{result.kept_back:,}",
        "table entries of a broker": f"{result.table_entries / 75:,.1f}",
        "messages a second": f"{speed:,.0f}",
    }


def large_network(regions: int, clusters: int) -> ScotNetwork:
    draw, names = random.Random(1), [f"r{i}" for i in range(regions)]
    tree = Factor.of(names, [(draw.choice(names[:i]), names[i]) for i in range(1, regions)])
    scot = Scot(tree, Factor.complete(clusters))
    return ScotNetwork(scot, ScotSettings(), Links(), ServiceTimes(), Unobserved())


def large_broadcast(network: ScotNetwork, number: int, workload: Quotes) -> Replayed:
    """Subscribers anywhere, one each millisecond."""
    draw = random.Random(2)
    return broadcast(
        network,
        Subscribers(
            at=np.arange(number, dtype=np.int64) * 1_000,
            broker=np.array([draw.randrange(len(network.brokers)) for _ in range(number)]),
            names=[f"S{i}" for i in range(number)],
            wanted=[workload.wanted(draw) for _ in range(number)],
        ),
    )


def large_publishing(network: ScotNetwork, number: int, workload: Quotes) -> Replayed:
    """Publications at twenty brokers, one each ten milliseconds."""
    draw = random.Random(3)
    names = list(network.brokers)
    hosts = draw.sample(range(len(names)), min(20, len(names)))
    for host in hosts:
        network.send(network.now, f"P{host}", names[host], Attach())
    network.run_until_idle()
    contents = list(workload.contents)
    return replay(
        network,
        Publications(
            at=network.now + 10_000 * np.arange(1, number + 1, dtype=np.int64),
            broker=np.array([draw.choice(hosts) for _ in range(number)]),
            content=np.array([draw.randrange(len(contents)) for _ in range(number)]),
            marked=np.zeros(number, np.int64),
            contents=contents,
            publishers={names[host]: f"P{host}" for host in hosts},
        ),
    )


def run_large(regions: int, clusters: int, subscribers: int, publications: int) -> Table:
    table = Table("", "messages", "CPU s", "messages a CPU s", title=machine())
    workload = Quotes()
    spent, network = timed(partial(large_network, regions, clusters))
    table.add_row(f"{len(network.brokers):,} brokers", "", f"{spent:.1f}", "")
    for name, number, play in (
        ("subscriptions", subscribers, large_broadcast),
        ("publications", publications, large_publishing),
    ):
        spent, found = timed(partial(play, network, number, workload))
        sent = found.inter + found.intra
        table.add_row(f"{number:,} {name}", f"{sent:,}", f"{spent:.1f}", f"{sent / spent:,.0f}")
        if len(found.clients):
            table.add_row("deliveries", f"{int(found.clients.sum()):,}", "", "")
    entries = sum(broker.table_size for broker in network.brokers.values())
    table.add_row("table entries", f"{entries:,}", "", "")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    table.add_row("peak memory", f"{peak:.2f} GiB", "", "")
    return table


def run_bursts(subscribers: int, burst: int, out: Path | None) -> Table:
    results, columns = {}, {}
    for name, settings in VARIANTS.items():
        planned = Burst(
            scot=figure_8(),
            settings=settings,
            subscribers=subscribers,
            burst_notifications=burst,
            burst_per_minute=RATE,
        )
        seconds, results[name] = timed(partial(run_burst, planned))
        columns[name] = rows(results[name], seconds, burst)
    table = Table("", *columns, title=machine())
    for row in columns["spare"]:
        table.add_row(row, *(column[row] for column in columns.values()))
    if out:
        out.mkdir(parents=True, exist_ok=True)
        with plot_style():
            save(plot_scot(figure_8()), out, "overlay")
            save(plot_delays(results), out, "delay")
            save(plot_queues(results), out, "queues")
            save(plot_messages(results), out, "messages")
    return table


def main() -> None:
    of_large = {"regions": 100, "clusters": 10, "publications": 2_000}
    chosen = read_options(__doc__, subscribers=int, burst=5_000, out=Path, large=False, **of_large)
    keep_compiled_code()
    if chosen.large:
        subscribers = chosen.subscribers or 100_000
        table = run_large(chosen.regions, chosen.clusters, subscribers, chosen.publications)
    else:
        table = run_bursts(chosen.subscribers or 500, chosen.burst, chosen.out)
    Console().print(table)


if __name__ == "__main__":
    main()
