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
from support.node_processes import Shell
from support.overlapping_interests import Interest, Interests, Ledger, percentile

SETUP_S = 1_800.0  # after which a run is given up whose subscriptions do not stand
PHASES = ("before", "during", "after")


@frozen(kw_only=True)
class Plan:
    overlay: Overlay
    interests: Interests
    taken_back: int  # broad subscriptions
    history: int  # publications before, for statistics
    rate: float = 20.0  # publications a second from then on
    before_s: float
    after_s: float
    patience_s: float  # for the burst to be over
    publications_first: bool = False
    index: str = "auto"  # what is interpreted takes far longer to set up


FULL = Plan(
    overlay=Overlay(core=5, subscriber_hosts=8, publisher_hosts=2),
    interests=Interests(roots=625, degree=31, overlap=2),
    taken_back=300,
    history=3_000,
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
    before_s=2.0,
    after_s=2.0,
    patience_s=60.0,
)


@frozen(kw_only=True)
class Outcome:
    """What a run measured, of brokers during the burst where nothing else is said."""

    covering: str
    seed: int
    setup_s: float  # until all subscriptions stood
    setup_processor_s: float  # that brokers took for that
    asked_s: float  # until every client had its answer, from the first unsubscription on
    over_s: float | None  # until the burst was over, None if it was not in time
    delays: dict[str, dict[str, float]]  # milliseconds by phase
    by_second: list[float]  # the longest delay of each second of the burst, in milliseconds
    messages: dict[str, int]  # by kind
    triggered: int
    examined: int
    held: int
    preserved: int
    longest_queue: int
    tables: tuple[int, int]  # subscriptions in all of them before and after
    processor_s: dict[str, float]
    resident_bytes: int
    due: int  # deliveries that had to be made
    wrong: dict[str, int]  # deliveries that were missing, repeated or false
    load: float  # of the machine before the run

    @property
    def longest_ms(self) -> float:
        return self.delays["during"]["longest"]


def measure(plan: Plan, covering: str, seed: int, folder: Path, *, forks: bool = False) -> Outcome:
    settings = {
        "broker.covering": covering,
        "broker.index": plan.index,
        "broker.publications_first": str(plan.publications_first).lower(),
    }
    load = os.getloadavg()[0]
    with broker_tree(Shell(folder, forks=forks), plan.overlay, settings) as tree:
        return trio.run(partial(_measure, plan, covering, seed, tree, load))


async def _measure(plan: Plan, covering: str, seed: int, tree: BrokerTree, load: float) -> Outcome:
    draws, wanted = Random(f"places {seed}"), plan.interests.all()
    homes = {one.label: draws.choice(plan.overlay.subscribers) for one in wanted}
    roots = draws.sample([one for one in wanted if one.is_root], plan.taken_back)
    draws.shuffle(wanted)
    ledger = Ledger(plan.interests, homes)
    longest_s = plan.before_s + plan.patience_s + plan.after_s
    places = plan.interests.publications(plan.history + int(2 * plan.rate * longest_s), seed)
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
        bounds = zip(PHASES, ((start, hit), (hit, end), (end, float("inf"))), strict=True)
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
            delays={name: _described(pairs, *phase) for name, phase in bounds},
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
