"""Six nodes in everyday use for a while: nothing grows, nothing leaks, no log is flooded.

`--draws` says for how many minutes, `--first-draw` what is drawn; samples are lines of JSON.
"""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import psutil
import pytest
import trio

from support.campaign import Campaign, Reader
from support.draws import Draws
from support.node_fleets import Fleet, running_fleet
from support.node_processes import Shell
from support.soak_measures import more_descriptors, runs_of, too_often
from support.soaking import (
    SETTLED_S,
    Browser,
    FleetNodes,
    Printer,
    Program,
    Soak,
    Watch,
    last_values,
)
from support.waiting import running

PEERS = 6
# Between two events of each peer, about.
PAUSE_S = 3.0
REPEAT_S, EVENT_LINES = 10.0, 50
# The tables of events, the largest of which has twice as many, fill within the warm-up of a long
# soak; as they are by default they do within hours. No peer is away for longer than events are
# kept, and a minute has fewer.
MEMORY, RETENTION_S = 512, 60.0
# Connections that may be there more than before: one to each other peer, for links change.
LINKS = PEERS - 1


@attrs.frozen
class Length:
    minutes: int
    seed: int

    @property
    def is_long(self) -> bool:
        return self.minutes >= 5

    @property
    def warm_up_s(self) -> float:
        """Until a process is judged: all is loaded by then, and in a long soak tables are full."""
        return max(20.0, 20.0 * self.minutes)

    @property
    def gap_s(self) -> float:
        """Between two faults, and between two floods, about."""
        return 10.0 if self.is_long else 3.0

    @property
    def look_s(self) -> float:
        return 5.0 if self.is_long else 1.5

    def settings(self) -> dict[str, object]:
        return {
            "page__enabled": True,
            "page__address": "127.0.0.1:0",
            "delivery__event_memory": MEMORY,
            "delivery__held_events": MEMORY,
            "delivery__retention_s": RETENTION_S,
            "logging__repeat_s": REPEAT_S,
            "logging__event_lines": EVENT_LINES,
            "protocol__round_s": 0.5,
            # Loading compiled rules is one step of memory, which a minute cannot tell from growth.
            "node__compiled": "auto" if self.is_long else "never",
        }


@attrs.define(eq=False)
class Use:
    run: Campaign[FleetNodes]  # the applications that the accounts are of
    program: Program
    printer: Printer
    browser: Browser

    def missing(self) -> dict[str, set[str]]:
        due = set(self.run.published)
        others = {"program": due - set(self.program.got), "printer": due - set(self.printer.got)}
        lacking = self.run.missing(trio.current_time()) | others
        return {name: events for name, events in lacking.items() if events}


@pytest.fixture
def length(draws: Draws) -> Length:
    return Length(1 if draws.count is None else draws.count, 1 + draws.first)


@pytest.fixture
def fleet(tmp_path: Path, length: Length) -> Iterator[Fleet]:
    with running_fleet(Shell(tmp_path, forks=False), PEERS, **length.settings()) as made:
        yield made


@asynccontextmanager
async def in_use(fleet: Fleet, length: Length) -> AsyncIterator[Use]:
    nodes = await FleetNodes.of(fleet)
    run = Campaign(nodes, random.Random(length.seed), request_s=5.0)
    first, second, *others = nodes.members
    readers = [
        *(Reader(first), Reader(second, ordered=True)),
        *(Reader(others[0], "ada"), Reader(others[1], "eve", ordered=True)),
    ]
    program = Program(fleet.folder(nodes.names[others[2]]))
    browser = Browser(fleet, nodes.names[second], length.look_s)
    use = Use(run, program, Printer(fleet, nodes.names[others[3]]), browser)
    async with trio.open_nursery() as nursery:
        await run.begin(nursery, readers, [first, *others[:2]], [second, others[2]])
        nursery.start_soon(trio.to_thread.run_sync, program.run)
        nursery.start_soon(use.browser.run)
        use.printer.start()
        try:
            await subscribed(nodes, others[2], 2)  # a replier is there as well
            await subscribed(nodes, others[3], 1)
            async with trio.open_nursery() as publishers:
                for key in nodes.members:
                    publishers.start_soon(run.publish, key, PAUSE_S)
                publishers.start_soon(run.request, first)
                yield use
                run.stopping = True
        finally:
            program.stop()
            use.printer.stop()
            nursery.cancel_scope.cancel()


async def subscribed(nodes: FleetNodes, key: int, count: int) -> None:
    async with nodes.fleet.client(nodes.names[key]) as client:
        with trio.fail_after(SETTLED_S):
            while (await client.status())["subscriptions"] < count:
                await trio.sleep(0.2)


@pytest.mark.campaign
async def test_a_cluster_used_for_long_stays_as_it_was(fleet: Fleet, length: Length) -> None:
    """Rates are low: the nodes take a small part of a processor, and other tests run beside them.

    Peers are killed, restarted and paused, the schema changes, clients and strangers ask too much,
    while applications of every kind publish, read, work in a group, request and reply.
    """
    watch = Watch(fleet, length.look_s)
    await fleet.ready(patience_s=SETTLED_S)
    async with running(watch.run), in_use(fleet, length) as use:
        soak = Soak(use.run, length.gap_s)
        await trio.sleep(length.gap_s)
        before = {name: look.descriptors for name in fleet.names if (look := watch.look(name))}
        until = trio.current_time() + 60 * length.minutes
        async with trio.open_nursery() as events:
            events.start_soon(soak.churn, until)
            events.start_soon(soak.floods, until)
        use.run.stopping = True
        await soak.settled()
        await fleet.ready(patience_s=SETTLED_S)
        with trio.move_on_after(SETTLED_S):
            while leaked := more_than(watch, before):
                await trio.sleep(1)
        with trio.move_on_after(SETTLED_S):
            while lost := use.missing():
                await trio.sleep(0.2)
        symbols = {one.symbol for one in use.run.published.values() if one.is_last}
        values = {
            name: await last_values(use.run.crowd, key, symbols)
            for key, name in use.run.crowd.names.items()
        }
    report(watch, soak, use, length)
    assert (lost, leaked, grown(watch, length)) == ({}, {}, {})
    check_logs(fleet)
    check_accounts(use, values)


def more_than(watch: Watch, before: Mapping[str, Mapping[str, int]]) -> dict[str, list[str]]:
    found = {name: ["it does not run"] for name in before}
    for name, descriptors in before.items():
        if (look := watch.look(name)) is not None:
            found[name] = more_descriptors(descriptors, look.descriptors, LINKS)
    return {name: kinds for name, kinds in found.items() if kinds}


def grown(watch: Watch, length: Length) -> dict[str, str]:
    return {
        f"{name} ({pid})": str(one)
        for (name, pid), one in watch.trends(length.warm_up_s).items()
        if one is not None and not one.is_flat
    }


def check_logs(fleet: Fleet) -> None:
    """No line more often than its limit, and nothing that nobody expected."""
    for name in fleet.names:
        runs, others = runs_of(fleet.log(name))
        assert others == [], f"{name} says what is no event"
        for run in runs:
            assert too_often(run, REPEAT_S, EVENT_LINES) == [], name
            assert [one for one in run if "exception" in one] == [], name


def check_accounts(use: Use, values: Mapping[str, Mapping[str, str]]) -> None:
    run = use.run
    run.check()
    assert len(set(use.program.got)) == len(use.program.got)
    assert all(len(set(one.repliers)) == len(one.repliers) for one in run.asked if one.repliers)
    assert any(one.repliers for one in run.asked)
    outdated = {name: run.outdated(dict(one)) for name, one in values.items()}
    assert not any(outdated.values()), outdated
    assert use.browser.seen > 0


def report(watch: Watch, soak: Soak, use: Use, length: Length) -> None:
    print(f"{length}; {use.run.summary()}; {json.dumps(soak.done)}")
    lines = [
        json.dumps({"peer": name, "process": pid, **attrs.asdict(one)})
        for (name, pid), samples in watch.samples.items()
        for one in samples
    ]
    file = watch.fleet.shell.folder / "samples.jsonl"
    file.write_text("\n".join(lines) + "\n")
    print(f"all samples are in {file}")
    trends = watch.trends(length.warm_up_s)
    for (name, pid), samples in watch.samples.items():
        used, seen = samples[-1], trends[name, pid] or "too short a life for a trend"
        print(f"{name} ({pid}): {used.private >> 10} KiB private; {seen}", end="; ")
        print(f"descriptors {dict(used.descriptors)}", end="; ")
        is_up = psutil.pid_exists(pid)
        seconds = f"{sum(psutil.Process(pid).cpu_times()[:2]):.1f} s" if is_up else "unknown time"
        print(f"{seconds} of a processor")
