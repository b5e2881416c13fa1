"""Peers in processes are killed, paused, slow or out of disk while events flow, or replay churn."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
import numpy as np
import psutil
import pytest
import trio

from gossamer.node.errors import UnacknowledgedError
from gossamer.protocol.content.values import Payload
from gossamer.replay.command import SIMULATED
from gossamer.replay.controller import REAL, Played, play
from gossamer.replay.plan import Plan
from gossamer.sim.results.results import read_results
from gossamer.sim.studies.peers.inputs.publications import matching
from support.checkout import ROOT
from support.installed_command import install, refused
from support.node_fleets import QUICK, Fleet, Follower, Publisher, running_fleet, until
from support.node_processes import PATIENCE_S, Shell, end, wait_for_line
from support.replays import short_plan
from support.waiting import running, started_by

REPAIR_S = 30.0


@attrs.frozen
class Size:
    peers: int
    events: int
    settings: dict[str, object]


# That of the promise, with the rounds and limits of the preset `local`.
FULL = pytest.param(Size(10, 400, {}), marks=pytest.mark.campaign, id="full")
FEW = pytest.param(Size(3, 24, {**QUICK, "node__compiled": "never"}), id="few")
at_full_size = pytest.mark.parametrize("size", [FULL])
PAUSE_S = 30.0


@pytest.fixture
def fleet(tmp_path: Path, size: Size) -> Iterator[Fleet]:
    with running_fleet(Shell(tmp_path), size.peers, **size.settings) as made:
        yield made


@attrs.define(eq=False)
class Run:
    events: int
    followers: list[Follower]
    publishers: list[Publisher]
    title: str = ""

    @property
    def acknowledged(self) -> set[str]:
        return set.union(*(publisher.acknowledged for publisher in self.publishers))

    @property
    def has_published(self) -> bool:
        done = sum(len(one.acknowledged) + one.uncertain for one in self.publishers)
        return done >= self.events // len(self.publishers) * len(self.publishers)

    async def settled(self) -> None:
        due = self.acknowledged
        with trio.move_on_after(PATIENCE_S):
            await until(lambda: all(due <= set(one.got) for one in self.followers), 2 * PATIENCE_S)
        lost = {one.peer: len(due - set(one.got)) for one in self.followers}
        repeated = {one.peer: len(one.got) - len(set(one.got)) for one in self.followers}
        uncertain = sum(publisher.uncertain for publisher in self.publishers)
        print(
            f"{self.title}: {len(due)} events acknowledged, {uncertain} not; {len(self.followers)} "
            f"applications lost {sum(lost.values())} and got {sum(repeated.values())} twice"
        )
        assert len(due) >= self.events // 2
        assert not any(lost.values()), lost
        assert not any(repeated.values()), repeated


@asynccontextmanager
async def publishing(fleet: Fleet, size: Size, pause_s: float = 0.05) -> AsyncIterator[Run]:
    await fleet.ready()
    followers = [Follower(fleet, name, "app") for name in fleet.names]
    run = Run(size.events, followers, [Publisher(fleet, name) for name in fleet.names[:2]])
    async with running() as nursery:
        for follower in followers:
            await nursery.start(follower.run)
        async with trio.open_nursery() as publishers:
            for publisher in run.publishers:
                publishers.start_soon(publisher.run, size.events // len(run.publishers), pause_s)
            yield run
            await until(lambda: run.has_published)
        await run.settled()


@pytest.mark.parametrize("size", [FEW, FULL])
async def test_a_third_of_the_peers_are_killed_and_come_back(fleet: Fleet, size: Size) -> None:
    async with publishing(fleet, size) as run:
        await until(lambda: len(run.acknowledged) > size.events // 4)
        gone = fleet.names[2 : 2 + -(-3 * size.peers // 10)]
        fleet.kill(*gone)
        repair_s = await fleet.ready([name for name in fleet.names if name not in gone])
        await until(lambda: len(run.acknowledged) > size.events // 2)
        fleet.start(*gone)
        assert size.peers < 10 or repair_s < REPAIR_S
        run.title = f"{len(gone)} of {size.peers} killed, ring after {repair_s:.1f} s"


@at_full_size
async def test_a_peer_is_paused_for_long(fleet: Fleet, size: Size) -> None:
    async with publishing(fleet, size, PAUSE_S / size.events * 2) as run:
        await until(lambda: len(run.acknowledged) > size.events // 8)
        fleet.send(fleet.names[-1], signal.SIGSTOP)
        await trio.sleep(PAUSE_S)
        fleet.send(fleet.names[-1], signal.SIGCONT)
        repair_s = await fleet.ready()
        assert repair_s < REPAIR_S
        run.title = f"paused for {PAUSE_S:g} s, ring after {repair_s:.1f} s"


@at_full_size
async def test_the_node_of_an_application_is_killed_repeatedly(fleet: Fleet, size: Size) -> None:
    """Wherever that strikes: before an event is on its disk, after it, while it catches up."""
    async with publishing(fleet, size, 0.2) as run:
        victim, got = fleet.names[-1], run.followers[-1].got
        for _ in range(3):
            enough = len(got) + 3
            await until(lambda enough=enough: len(got) > enough or run.has_published)  # type: ignore[misc]
            fleet.kill(victim)
            fleet.start(victim)
        run.title = "killed three times"


@at_full_size
async def test_the_disk_of_a_peer_is_full_for_a_while(fleet: Fleet, size: Size) -> None:
    async with publishing(fleet, size) as run:
        await until(lambda: len(run.acknowledged) > size.events // 4)
        fleet.limit_files(fleet.names[-1], 1)
        await until(lambda: len(run.acknowledged) > size.events * 3 // 4)
        assert not set(run.followers[-1].got) >= run.acknowledged
        fleet.limit_files(fleet.names[-1], 1 << 40)
        run.title = "a full disk"


# A peer that takes less than it is sent, for longer than others remember what they sent.

# Of events of so many bytes a few dozen fit into a queue, a few thousand into buffers of the
# system, and all of them into what is held.
SIZE = 3_000
SETTINGS: dict[str, object] = {
    "discovery__multicast": False,
    "limits__frame_bytes": 64_000,
    "limits__queue_bytes": 128_000,
    "delivery__acknowledge_s": 60.0,
    "delivery__event_memory": 512,
    # The rendezvous node alone holds an event, so that none waits for the peer that is slow.
    "delivery__successors": 0,
}
AT_ONCE, BETWEEN_S = 8, 0.02
SLOW_S = 25.0
SLOW = pytest.param(Size(4, 0, SETTINGS), marks=pytest.mark.campaign, id="slow")
# Of which it runs a twentieth: too little for what it is sent, and enough to count as alive.
STOPPED_S, RUNNING_S = 0.38, 0.02
DELIVERED_S = 120.0
# Events that show who passes them on.
PROBES = 20
# Frames that were dropped, by which it shows that a peer is sent more than it takes.
ENOUGH = 100


@asynccontextmanager
async def slow(fleet: Fleet, name: str) -> AsyncIterator[None]:
    async def hold_up() -> None:
        try:
            while True:
                fleet.send(name, signal.SIGSTOP)
                await trio.sleep(STOPPED_S)
                fleet.send(name, signal.SIGCONT)
                await trio.sleep(RUNNING_S)
        finally:
            fleet.send(name, signal.SIGCONT)

    async with running(hold_up):
        yield


@pytest.mark.parametrize("size", [SLOW])
async def test_a_peer_that_is_slow_for_long_has_everything_afterwards(fleet: Fleet) -> None:
    """What does not fit into the queue to it is dropped, and forgotten soon after.

    It is told of that, and asks for what is held.
    """
    acknowledged: set[str] = set()
    await fleet.ready()
    slow_one = await one_aside(fleet)
    follower = Follower(fleet, slow_one, "app")
    async with running() as nursery:
        await nursery.start(follower.run)
        async with fleet.client(fleet.names[0]) as client, slow(fleet, slow_one):

            async def publish(place: int) -> None:
                number = place
                while True:
                    payload = Payload(bytes(SIZE))
                    with suppress(UnacknowledgedError):
                        acknowledged.add(await client.publish(quote(number), payload=payload))
                    number += AT_ONCE
                    await trio.sleep(BETWEEN_S)

            with trio.move_on_after(DELIVERED_S):
                async with running() as publishers:
                    for place in range(AT_ONCE):
                        publishers.start_soon(publish, place)
                    # A busy machine takes longer to bring more than is taken.
                    await trio.sleep(SLOW_S)
                    while sum(await dropped_by(fleet)) <= ENOUGH:
                        await trio.sleep(BETWEEN_S)
        print(f"{len(acknowledged)} events acknowledged, {len(follower.got)} there so far")
        dropped = await dropped_by(fleet)
        await until(lambda: acknowledged <= set(follower.got), DELIVERED_S)
    asked_for = await total(fleet, slow_one, "events_recovered_total")
    delivered = await total(fleet, slow_one, "events_delivered_total")
    again = await total(fleet, slow_one, 'redundant_total{cause="delivered before"}')
    print(f"{len(acknowledged)} events, {dropped} dropped, {asked_for:.0f} asked for")
    assert sum(dropped) > ENOUGH, "it was sent no more than it could take"
    assert asked_for > 0
    assert again >= asked_for - delivered
    assert len(follower.got) == len(set(follower.got))


def quote(number: int) -> dict[str, object]:
    """An event; all of them have one rendezvous node."""
    return {"symbol": "IBM", "price": float(number % 500), "volume": number}


async def one_aside(fleet: Fleet) -> str:
    """A peer by way of which no event comes from the first one to its rendezvous node and back.

    A slow peer there would slow the publisher down, and never be sent too much.
    """
    first, second, *others = fleet.names
    reader = Follower(fleet, second, "probe")
    async with running() as nursery, fleet.client(first) as client:
        await nursery.start(reader.run)
        for number in range(PROBES):
            await client.publish(quote(number))
        await until(lambda: len(reader.got) == PROBES, DELIVERED_S)
    passed_on = {name: await total(fleet, name, "events_forwarded_total") for name in others}
    return min(others, key=passed_on.__getitem__)


async def dropped_by(fleet: Fleet) -> list[float]:
    return [await total(fleet, name, 'dropped_total{cause="queue full"}') for name in fleet.names]


async def total(fleet: Fleet, name: str, metric: str) -> float:
    async with fleet.client(name) as client:
        lines = (await client.metrics()).splitlines()
    return sum(
        float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"gossamer_{metric} ")
    )


# Churn replayed on real peers.

TRACE = ROOT / "traces" / "flash_crowd.avt.gz"
SPEED = 300.0
# The simulation compiles where nothing has before, which takes minutes on a busy machine.
COMPILING_S = 600
# Six peers for forty rounds of a fifth of a second.
SMALL = ("--peers", "6", "--speed", "300", "--round-s", "60", "--events-per-hour", "120")
CUT = ("--set", "churn.end_s=2400", "--set", "events.warm_up_rounds=25")


def workers(of: int) -> list[psutil.Process]:
    return started_by(of, "gossamer.replay.worker")


def wait_for_end(processes: list[psutil.Process]) -> None:
    _, left = psutil.wait_procs(processes, timeout=PATIENCE_S)
    assert not left


@pytest.mark.campaign
def test_peers_and_simulation_are_measured_side_by_side(shell: Shell) -> None:
    command = ("node", "replay", str(TRACE), *SMALL, *CUT, "--out", "results", "--no-plots")
    done = shell.run(*command, patience_s=COMPILING_S)
    assert done.returncode == 0, done.stderr
    for word in (SIMULATED, REAL, "hit ratio", "traffic overhead", "path length", "Latency"):
        assert word in done.stdout
    results = read_results(shell.folder / "results")
    assert results.systems == (SIMULATED, REAL)
    ideal, real = (results.summary["systems"][name] for name in results.systems)
    assert real["events"] == ideal["events"] > 25
    assert real["duplicates"] == 0
    assert real["totals"]["unpublished_events"] == real["totals"]["failed_starts"] == 0
    assert real["delivered"] > 0.5 * ideal["expected"]
    for name in ("events", "deliveries", "nodes", "cycles", "overlay_nodes", "overlay_links"):
        assert results.table(REAL, name).keys() == results.table(SIMULATED, name).keys()
    assert not (shell.folder / "results.unfinished").exists()


def play_and(plan: Plan, at_round: int, do: Callable[[], None]) -> Played:
    def progress(_: str, done: int, _total: int) -> None:
        if done == at_round:
            do()

    return play(plan, SPEED, 2, progress)


@pytest.mark.parametrize("rounds", [13, pytest.param(20, marks=pytest.mark.campaign)])
def test_only_what_was_asked_for_is_delivered_and_once(tmp_path: Path, rounds: int) -> None:
    plan = short_plan(tmp_path, rounds)
    seen = play_and(plan, -1, lambda: None).recorder
    wanted = {
        event: set(np.flatnonzero(matching(plan.state, plan.values[made.number])).tolist())
        for event, made in seen.publications.items()
    }
    assert seen.arrivals
    assert all(node in wanted[event] for event, node in seen.arrivals)
    assert seen.duplicates.total() == 0
    assert [len(seen.sessions[node]) for node in range(6)] == [1, 1, 1, 1, 1, 2]
    if rounds == 20:  # a busy machine may start peers too late for the first events
        assert len(seen.publications) == len([step for step in plan.steps if step.event >= 0])
        assert {node for _, node in seen.arrivals} == set(range(6))


@pytest.mark.campaign
def test_ctrl_c_stops_all_peers_and_keeps_what_was_seen(tmp_path: Path) -> None:
    played = play_and(short_plan(tmp_path), 8, lambda: signal.raise_signal(signal.SIGINT))
    assert played.interrupted
    assert 8 <= played.cycles < 20
    assert played.recorder.arrivals
    assert not played.recorder.addresses, "peers that did not say that they stopped"
    assert not workers(os.getpid())


@pytest.mark.campaign
def test_a_process_of_peers_that_dies_is_replaced(tmp_path: Path) -> None:
    killed: list[int] = []

    def kill_one() -> None:
        victim = workers(os.getpid())[0]
        killed.append(victim.pid)
        victim.kill()

    played = play_and(short_plan(tmp_path), 3, kill_one)
    assert killed
    assert played.deaths == 1
    assert not played.interrupted
    sessions = played.recorder.sessions
    again = {node for node in (0, 1, 2, 3) if len(sessions[node]) == 2}
    assert again in ({0, 2}, {1, 3}), "its peers, and no others, began anew"


@pytest.mark.campaign
def test_peers_end_when_whoever_runs_them_is_killed(shell: Shell) -> None:
    process = shell.start("node", "replay", str(TRACE), *SMALL, "--no-plots", "--out", "results")
    try:
        wait_for_line(process, "real peers start")
        running: list[psutil.Process] = []
        while len(running) < 2:
            assert process.poll() is None
            running = workers(process.pid)
    finally:
        process.kill()
        end(process)
    wait_for_end(running)
    assert not (shell.folder / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("no.avt",), "no.avt"),
        ((str(TRACE), "--peers", "1"), "--peers is 1, expected 2 to 64"),
        ((str(TRACE), "--speed", "0"), "--speed is 0.0, expected a number above 0"),
        ((str(TRACE), "--speed", "nan"), "--speed is 'nan', expected a number"),
        (
            (str(TRACE), "--speed", "3000", "--round-s", "60"),
            "expected at most 1200, as rounds of 60 s would be shorter than 0.05 s",
        ),
        ((str(TRACE), "--preset", "best"), "preset"),
        ((str(TRACE), "--set", "churn.end_s=-1"), "churn.end_s"),
        (("six.avt", "--peers", "7"), "at most 6, the nodes of the trace"),
    ],
)
def test_bad_input_is_answered_in_one_sentence(
    arguments: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install(tmp_path / "installed", monkeypatch)
    monkeypatch.chdir(tmp_path)
    short_plan(tmp_path)
    Path("short.avt").rename("six.avt")
    assert sentence in refused(capsys, "node", "replay", *arguments)
    assert not Path("results").exists()
