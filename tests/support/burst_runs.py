"""A burst of unsubscriptions over brokers in processes: what is run, and what it measures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

import trio
from attrs import frozen

from support.broker_processes import BrokerTree, Overlay, broker_tree
from support.burst_clients import Clients, open_clients
from support.burst_ledger import Ledger, percentile
from support.node_processes import Shell
from support.overlapping_interests import Interest, Interests

ANYWHERE, NEAR = "anywhere", "near"
PLACEMENTS = (ANYWHERE, NEAR)
SETUP_S = 1_800.0  # after which a run is given up whose subscriptions do not stand
PHASES = ("before", "during", "after")


@frozen(kw_only=True)
class Plan:
    """What is run.

    Attributes:
        placement: where clients are: each subscription's at any host, or those of what overlaps
            at the hosts of one core broker.
        taken_back: broad subscriptions that the burst takes back.
        history: publications before, for statistics.
        rate: publications a second from then on.
        patience_s: for a burst to be over.
        index: `broker.index` of all brokers; what is interpreted takes far longer to set up.
    """

    overlay: Overlay
    interests: Interests
    placement: str = ANYWHERE
    taken_back: int
    history: int
    rate: float
    before_s: float
    after_s: float
    patience_s: float
    publications_first: bool = False
    index: str = "auto"


FULL = Plan(
    overlay=Overlay(core=5, subscriber_hosts=8, publisher_hosts=2),
    interests=Interests(roots=625, degree=31, overlap=2),
    taken_back=300,
    history=3_000,
    rate=20.0,
    before_s=15.0,
    after_s=10.0,
    patience_s=240.0,
    index="compiled",
)
SMALL = Plan(
    overlay=Overlay(core=2, subscriber_hosts=2, publisher_hosts=1),
    interests=Interests(roots=25, degree=19, overlap=2),
    taken_back=12,
    history=100,
    rate=20.0,
    before_s=2.0,
    after_s=2.0,
    patience_s=60.0,
)


@frozen(kw_only=True)
class Outcome:
    """What a run measured.

    Attributes:
        setup_s, setup_processor_s: until all subscriptions stood, and what brokers took for that.
        asked_s: until every client had its answer, from the first unsubscription on.
        over_s: until the burst was over, None if it was not in time.
        delays: milliseconds by phase: deliveries, median, 99th percentile, longest.
        by_second: the longest delay in milliseconds of each second of the burst.
        messages: between brokers during the burst, by kind.
        tables: subscriptions in all tables before and after.
        processor_s: of each broker during the burst.
        due: deliveries that had to be made.
        wrong: deliveries that were missing, repeated or false.
        load: of the machine before the run.
    """

    covering: str
    seed: int
    setup_s: float
    setup_processor_s: float
    asked_s: float
    over_s: float | None
    delays: dict[str, dict[str, float]]
    by_second: list[float]
    messages: dict[str, int]
    triggered: int
    examined: int
    held: int
    preserved: int
    longest_queue: int
    tables: tuple[int, int]
    processor_s: dict[str, float]
    resident_bytes: int
    due: int
    wrong: dict[str, int]
    load: float

    @property
    def longest_ms(self) -> float:
        return self.delays["during"]["longest"]


def measure(plan: Plan, covering: str, seed: int, folder: Path, *, forks: bool = False) -> Outcome:
    """Run the burst once, with brokers that are forked or started the long way."""
    settings = {
        "broker.covering": covering,
        "broker.index": plan.index,
        "broker.publications_first": str(plan.publications_first).lower(),
    }
    load = os.getloadavg()[0]
    with broker_tree(Shell(folder, forks=forks), plan.overlay, settings) as tree:
        return trio.run(partial(_measure, plan, covering, seed, tree, load))


async def _measure(plan: Plan, covering: str, seed: int, tree: BrokerTree, load: float) -> Outcome:
    wanted, homes, roots = placed(plan, seed)
    ledger = Ledger(plan.interests, homes)
    places = plan.interests.publications(plan.history + _steady_count(plan), seed)
    await tree.settle()
    async with open_clients(tree, ledger) as clients, trio.open_nursery() as nursery:
        begin = trio.current_time()
        with trio.fail_after(SETUP_S):
            await clients.advertise()
            await clients.subscribe(wanted)
            await clients.until_quiet()
            setup_s = trio.current_time() - begin
            setup_processor_s = sum(tree.processor_s().values())
            await clients.publish_all(places[: plan.history])
        rest = places[plan.history :]
        await nursery.start(partial(clients.publish_steadily, rest, plan.rate))
        start = trio.current_time()
        await trio.sleep(plan.before_s)

        before, used = await clients.look(), tree.processor_s()
        clients.longest_queue = 0
        hit = trio.current_time()
        over = None
        with trio.move_on_after(plan.patience_s):
            over = await _burst(clients, roots)
        after, used_after = await clients.look(), tree.processor_s()
        longest_queue, end = clients.longest_queue, over or trio.current_time()

        await trio.sleep(plan.after_s)
        clients.stop_publishing()
        await clients.until_delivered()
        bounds = dict(zip(PHASES, ((start, hit), (hit, end), (end, float("inf"))), strict=True))
        pairs = ledger.delays()
        triggered = [look.by_kind("triggered_sent_total") for look in (before, after)]
        tables = [look.total("table_subscriptions") for look in (before, after)]

        def grown(metric: str) -> int:
            return int(after.total(metric) - before.total(metric))

        return Outcome(
            covering=covering,
            seed=seed,
            setup_s=setup_s,
            setup_processor_s=setup_processor_s,
            asked_s=max(ledger.answered.values(), default=end) - hit,
            over_s=None if over is None else over - hit,
            delays={name: _described(pairs, *bounds[name]) for name in PHASES},
            by_second=_by_second(pairs, hit, end),
            messages=dict(after.by_kind("sent_total") - before.by_kind("sent_total")),
            triggered=sum((triggered[1] - triggered[0]).values()),
            examined=grown("examined_total"),
            held=grown("held_total"),
            preserved=grown("preserved_total"),
            longest_queue=longest_queue,
            tables=(int(tables[0]), int(tables[1])),
            processor_s={name: used_after[name] - used[name] for name in used},
            resident_bytes=tree.resident_bytes(),
            due=len(ledger.due()),
            wrong=dict(ledger.wrong()),
            load=load,
        )


async def _burst(clients: Clients, roots: Sequence[Interest]) -> float:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(clients.watch)
        await clients.take_back(roots)
        nursery.cancel_scope.cancel()
    return await clients.until_quiet()


def placed(plan: Plan, seed: int) -> tuple[list[Interest], dict[str, str], list[Interest]]:
    """The subscriptions in a random order, their hosts, and those that the burst takes back."""
    draws = Random(f"places {seed}")
    wanted = plan.interests.all()
    hosts = plan.overlay.subscribers
    if plan.placement == ANYWHERE:
        homes = {one.label: draws.choice(hosts) for one in wanted}
    else:
        core = plan.overlay.row[:-1]
        beside = [[host for host in hosts if plan.overlay.core_of(host) == name] for name in core]
        homes = {
            one.label: draws.choice(beside[one.root * len(core) // plan.interests.roots])
            for one in wanted
        }
    roots = draws.sample([one for one in wanted if one.is_root], plan.taken_back)
    draws.shuffle(wanted)
    return wanted, homes, roots


def _steady_count(plan: Plan) -> int:
    longest_s = plan.before_s + plan.patience_s + plan.after_s
    return int(2 * plan.rate * longest_s)


def _described(pairs: Sequence[tuple[float, float]], begin: float, end: float) -> dict[str, float]:
    delays = sorted(1e3 * delay for due, delay in pairs if begin <= due < end)
    return {
        "deliveries": len(delays),
        "median": percentile(delays, 50),
        "99th": percentile(delays, 99),
        "longest": percentile(delays, 100),
    }


def _by_second(pairs: Sequence[tuple[float, float]], begin: float, end: float) -> list[float]:
    longest = [0.0] * (int(end - begin) + 1)
    for due, delay in pairs:
        if begin <= due < end:
            second = int(due - begin)
            longest[second] = max(longest[second], round(1e3 * delay, 1))
    return longest
