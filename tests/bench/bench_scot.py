"""What a SCOT costs: a burst on the 75 brokers of the paper, a large overlay, brokers in processes.

Run it by hand: ``python tests/bench/bench_scot.py [PART] [--subscribers N] [--publications N]``.
Parts are ``burst`` (of ``--burst`` notifications, to 500 subscribers, by each way of routing),
``large`` (100,000 subscribers of a thousand brokers), and ``node``: 15 brokers in processes, with
and without taking over. Times of the simulation are milliseconds; the last line is messages between
brokers that are simulated in a second of processor time, subscriptions and what compiles included.
With ``--out`` the plots are written into a folder.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import trio
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import read_options, timed
from gossamer.compiled.store import keep_compiled_code
from gossamer.node.local.client import LocalClient
from gossamer.protocol.brokers.core.messages import Attach
from gossamer.protocol.brokers.scot import ROUTINGS, BrokerLabel, Factor, Scot, ScotSettings
from gossamer.sim.bench.benchmarks import machine
from gossamer.sim.results.plot_style import plot_style, save
from gossamer.sim.studies.scot.burst import MINUTE, SECOND, Burst, BurstResult, run_burst
from gossamer.sim.studies.scot.plots import plot_delays, plot_messages, plot_queues, plot_scot
from gossamer.sim.studies.scot.replay import Publications, Replayed, Subscribers, broadcast, replay
from gossamer.sim.studies.scot.replay_network import Links, ScotNetwork, ServiceTimes, Unobserved
from gossamer.sim.studies.scot.workloads import Quotes, figure_8
from support.broker_processes import ScotProcesses, scot_processes
from support.node_processes import Shell

RATE = 100_000  # notifications of the burst a minute, the highest of the paper's
VARIANTS: Mapping[str, ScotSettings] = {
    **{routing: ScotSettings(routing=routing) for routing in ROUTINGS},
    "spare": ScotSettings(spare_links=True),
    "detours": ScotSettings(cluster_detours=True),
    "covering": ScotSettings(covering=True),
}


BATCH = 50
EDGES = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")]
SCOT = Scot(Factor.of("abcde", EDGES), Factor.complete(3))
MODES = {
    "static": {"routing": "static"},
    "dynamic": {"routing": "dynamic"},
    "dynamic, taking over": {"routing": "dynamic", "around_failures": "true", "take_over": "true"},
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


def processor_s(scot: ScotProcesses) -> float:
    times = [psutil.Process(one.pid).cpu_times() for one in scot.running.values()]
    return float(sum(one.user + one.system for one in times))


async def listen(
    scot: ScotProcesses, at: BrokerLabel, wanted: int, *, task_status: trio.TaskStatus[None]
) -> None:
    async def take(client: LocalClient) -> None:
        await client.subscribe("all", "present(x)")
        task_status.started()
        for _ in range(wanted):
            await client.acknowledge(await anext(client.events))

    await scot.with_client(at, f"client-{at.region}{at.cluster}", take)


async def publish(count: int, client: LocalClient) -> None:
    for first in range(0, count, BATCH):
        await client.publish_many([{"x": n} for n in range(first, min(first + BATCH, count))])


async def measure(folder: Path, count: int, settings: dict[str, str]) -> tuple[float, float]:
    """Seconds, and seconds of processor time, that publications to 15 subscribers take."""
    async with scot_processes(Shell(folder, forks=False), SCOT, **settings) as scot:
        async with trio.open_nursery() as nursery:
            for at in SCOT.brokers:
                await nursery.start(partial(listen, scot, at, count))
            began, before = trio.current_time(), processor_s(scot)
            await scot.with_client(SCOT.brokers[0], "exchange", partial(publish, count))
        return trio.current_time() - began, processor_s(scot) - before


def run_nodes(count: int) -> Table:
    """Publications with a subscriber at each broker."""
    heads = ("milliseconds of a publication", "processor time at each broker")
    table = Table("", *heads, title=machine())
    for name, settings in MODES.items():
        with tempfile.TemporaryDirectory() as folder:
            took_s, processor_s = trio.run(measure, Path(folder), count, settings)
        each = (took_s, processor_s / SCOT.broker_count)
        table.add_row(name, *(f"{1000 * seconds / count:.2f}" for seconds in each))
    return table


def main() -> None:
    parts = ("burst", "large", "node")
    sizes = {"subscribers": int, "burst": 5_000, "publications": int}
    chosen = read_options(__doc__, parts, **sizes, regions=100, clusters=10, out=Path)
    keep_compiled_code()
    if "burst" in chosen.words:
        Console().print(run_bursts(chosen.subscribers or 500, chosen.burst, chosen.out))
    if "large" in chosen.words:
        of_large = (chosen.subscribers or 100_000, chosen.publications or 2_000)
        Console().print(run_large(chosen.regions, chosen.clusters, *of_large))
    if "node" in chosen.words:
        Console().print(run_nodes(chosen.publications or 500))


if __name__ == "__main__":
    main()
