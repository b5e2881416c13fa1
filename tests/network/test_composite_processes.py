"""Brokers in processes: composite subscriptions, and bursts of unsubscriptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
import trio
from attrs import evolve

from bench.bench_unsubscriptions import main as bench_main
from bench.bench_unsubscriptions import rows
from gossamer.client import RefusedByNodeError, connect, open_client
from gossamer.command.main import main
from gossamer.node.local.client import open_client as open_local_client
from support.broker_processes import BrokerProcesses, Overlay, broker_processes
from support.burst_clients import CONNECTIONS
from support.burst_runs import SMALL, Plan, measure
from support.checkout import ROOT
from support.installed_command import install, refused
from support.local_nodes import LocalNode
from support.node_processes import PATIENCE_S, Shell, end
from support.overlapping_interests import Interests

CaptureFixture = pytest.CaptureFixture[str]

OFFER = "present(symbol) and price >= 0"
THEN = '{symbol == "IBM" and price > 80} -> {symbol == "HPQ" and price == $X} & {price == $X}'
PAIR = '{symbol == "IBM"} & {symbol == "HPQ"}'
ALONE = '{symbol == "IBM"} -> {symbol == "IBM"}'
WITHIN = ("--within", "300")


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcesses]:
    """Three brokers, at the first of which an exchange publishes."""
    with broker_processes(Shell(tmp_path_factory.mktemp("brokers"))) as made:
        made.shell.ok("advertise", OFFER, "--name", "exchange", *made.at(1))
        for number in (1, 2, 3):
            made.wait_for(number, advertisements=1)
        yield made


def publish(brokers: BrokerProcesses, symbol: str, price: float) -> str:
    return brokers.shell.ok(
        *("pub", f"symbol={symbol}", f"price={price}"), *("--name", "exchange", *brokers.at(1))
    ).split()[-1]


def subscribe(brokers: BrokerProcesses, *more: str) -> subprocess.Popen[str]:
    return brokers.shell.subscriber(*more, *brokers.at(3))


def matches_of(process: subprocess.Popen[str]) -> list[list[str]]:
    """What `gossamer sub` printed until it ended: the ids of the publications of each match."""
    code, out, told = end(process)
    assert code == 0, told
    return [[one["id"] for one in json.loads(line)["match"]] for line in out.splitlines()]


def test_a_named_subscriber_has_its_matches_over_a_kill(brokers: BrokerProcesses) -> None:
    named = (PAIR, *WITHIN, "--name", "ada", "--label", "pair")
    first = subscribe(brokers, *named, "--count", "1")
    brokers.wait_for(1, subscriptions=2)
    ids = [publish(brokers, "IBM", 81), publish(brokers, "HPQ", 20)]
    assert matches_of(first) == [ids]
    # Nobody is connected: the match is kept on the disk of a broker that is killed.
    kept = [publish(brokers, "IBM", 82)]
    wait_for_deliveries(brokers.folder(3), 1)
    brokers.kill(3)
    brokers.start(3)
    (row,) = brokers.wait_for(3, subscriptions=2)["composites"]
    assert (row["client"], row["label"], row["composite"]) == ("ada", "pair", PAIR)
    brokers.wait_for(1, subscriptions=2)
    second = subscribe(brokers, *named, "--count", "2")
    later = [publish(brokers, "IBM", 83), publish(brokers, "HPQ", 21)]
    assert matches_of(second) == [[kept[0], ids[1]], later]
    brokers.shell.ok("unsub", "pair", "--name", "ada", *brokers.at(3))
    assert brokers.wait_for(3, subscriptions=0)["composites"] == []
    brokers.wait_for(1, subscriptions=0)


def wait_for_deliveries(folder: Path, number: int) -> None:
    with connect(folder) as client:
        deadline = time.monotonic() + PATIENCE_S
        while client.status()["deliveries"] != number:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_line_has_the_publications_of_a_match(brokers: BrokerProcesses) -> None:
    process = subscribe(brokers, THEN, *WITHIN, "--count", "1")
    brokers.wait_for(1, subscriptions=1)  # the last part covers the others
    publish(brokers, "HPQ", 10)
    ids = [publish(brokers, "IBM", 81), *[publish(brokers, "HPQ", 11)] * 2]
    code, out, told = end(process)
    assert code == 0, told
    (line,) = map(json.loads, out.splitlines())
    assert line["id"].startswith("match-")
    assert list(line) == ["id", "published_at", "match"]
    assert [one["id"] for one in line["match"]] == ids
    assert [one["values"] for one in line["match"]] == [
        {"symbol": "IBM", "price": 81},
        {"symbol": "HPQ", "price": 11},
        {"symbol": "HPQ", "price": 11},
    ]
    assert all(one["publisher"] == ids[0].partition(":")[0] for one in line["match"])
    brokers.wait_for(1, subscriptions=0)


@pytest.mark.parametrize("loop", ["trio", "asyncio"])
def test_programs_subscribe_likewise(brokers: BrokerProcesses, loop: str) -> None:
    async def use() -> None:
        async with (
            open_client(brokers.folder(3)) as node,
            node.subscribe(PAIR, ALONE, within=300) as found,
        ):
            await anyio.to_thread.run_sync(lambda: brokers.wait_for(1, subscriptions=2))
            ids = [
                await anyio.to_thread.run_sync(publish, brokers, symbol, 5)
                for symbol in ("IBM", "HPQ")
            ]
            with anyio.fail_after(PATIENCE_S):
                event = await anext(found)
            assert ([one.id for one in event.match], event.subscriptions) == (ids, ("1",))
            assert (event.match[0].values, event.values) == ({"symbol": "IBM", "price": 5}, {})

    anyio.run(use, backend=loop)
    brokers.wait_for(1, subscriptions=0)


def test_programs_that_wait_or_are_interrupted_leave_nothing(brokers: BrokerProcesses) -> None:
    with connect(brokers.folder(3)) as node, node.subscribe(PAIR, within=300) as found:
        brokers.wait_for(1, subscriptions=2)
        ids = [publish(brokers, "IBM", 5), publish(brokers, "HPQ", 5)]
        assert [one.id for one in next(found).match] == ids
    brokers.wait_for(1, subscriptions=0)
    process = subscribe(brokers, PAIR, *WITHIN)
    brokers.wait_for(1, subscriptions=2)
    end(process, signal.SIGINT)
    brokers.wait_for(1, subscriptions=0)


def test_a_plain_subscription_takes_the_place_of_one_of_its_label(brokers: BrokerProcesses) -> None:
    async def use() -> None:
        async with open_local_client(brokers.address(3)) as client:
            await client.subscribe("mine", PAIR, within=300)
            assert len((await client.tables())["composites"]) == 1
            await client.subscribe("mine", "price > 50")
            told = await client.tables()
            assert (told["composites"], told["sizes"]["subscriptions"]) == ([], 1)
            await client.unsubscribe("mine")
            with pytest.raises(RefusedByNodeError, match="no subscription labelled 'mine'"):
                await client.unsubscribe("mine")

    trio.run(use)


# What people get wrong is said in a sentence, with exit code 2. The commands run in this process.


@pytest.fixture
def here(
    brokers: BrokerProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str]:
    install(tmp_path / "installed", monkeypatch)
    monkeypatch.chdir(brokers.shell.folder)
    return brokers.at(3)


def test_what_is_no_composite_subscription(here: tuple[str, str], capsys: CaptureFixture) -> None:
    for words, *arguments in (
        ("expected --within SECONDS with an expression in braces", PAIR),
        ("expected one expression in braces with --within", "price > 5", "--within", "10"),
        ("expected one expression in braces with --within", PAIR, PAIR, "--within", "10"),
        ("--within is '0', expected a number from 0.001 to 86400", PAIR, "--within", "0"),
        ("expected no --retained, --group, --ordered, --last or --into", PAIR, *WITHIN, "--last"),
    ):
        assert main(["sub", *arguments, *here]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert words in " ".join(told.err.replace("│", "").split())
    no_number = refused(capsys, "sub", "{price > 5} & {price >}", *WITHIN, *here)
    assert "expected a number, date, true" in no_number
    no_label = refused(capsys, "sub", PAIR, *WITHIN, "--label", "~part 1", *here)
    assert "a label does not begin with '~part '" in no_label


def test_programs_are_refused_with_a_sentence(brokers: BrokerProcesses) -> None:
    async def ask(expression: str, within: float | None) -> None:
        node = open_client(brokers.folder(3))
        async with node as client, client.subscribe(expression, within=within):
            raise AssertionError("it was not refused")

    with pytest.raises(RefusedByNodeError, match=r"a composite subscription .* needs a window"):
        anyio.run(ask, PAIR, None)
    with pytest.raises(RefusedByNodeError, match="only a composite subscription has a window"):
        anyio.run(ask, "price > 5", 10.0)


@pytest.mark.trio
async def test_peers_take_none(node: LocalNode) -> None:
    async with node.running(), open_local_client(node.address) as client:
        with pytest.raises(RefusedByNodeError, match="peer and has no composite subscriptions"):
            await client.subscribe("pair", PAIR, within=10)
        asked: dict[str, Any] = {"id": "x", "expression": PAIR, "within": 10.0}
        with pytest.raises(RefusedByNodeError, match="peer and has no composite subscriptions"):
            await client._request("subscribe", **asked)


# A burst of unsubscriptions over broker processes: every due delivery is made once.

# More than there are before the last of those connects who take deliveries.
CLIENTS = len(SMALL.overlay.subscribers) * CONNECTIONS
BROKERS = len(SMALL.overlay.brokers)
BENCH = [sys.executable, str(ROOT / "tests/bench/bench_unsubscriptions.py")]


TINY = evolve(
    SMALL,
    overlay=Overlay(core=2, subscriber_hosts=1, publisher_hosts=1),
    interests=Interests(roots=8, degree=4, overlap=2),
    taken_back=4,
    history=40,
    before_s=0.3,
    after_s=0.3,
)


@pytest.mark.parametrize(
    ("plan", "covering", "first"),
    [
        (TINY, "active", False),
        *(
            pytest.param(SMALL, covering, first, marks=pytest.mark.campaign)
            for covering, first in (("active", False), ("incremental", False), ("active", True))
        ),
    ],
    ids=lambda one: f"{len(one.overlay.brokers)} brokers" if isinstance(one, Plan) else str(one),
)
def test_every_due_delivery_is_made_once_during_a_burst(
    plan: Plan, covering: str, first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if plan is TINY:
        monkeypatch.setattr("support.burst_clients.LOOK_S", 0.05)
    plan = evolve(plan, publications_first=first)
    outcome = measure(plan, covering, 1, tmp_path, forks=True)
    assert outcome.wrong == {}
    assert outcome.due > plan.history
    assert outcome.over_s is not None
    assert 0 < outcome.asked_s <= outcome.over_s
    assert dict(rows([outcome]))["during: longest, ms"] == [outcome.longest_ms]
    assert outcome.longest_ms >= outcome.delays["during"]["median"] > 0
    assert outcome.examined > 0


def test_what_cannot_be_run_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refusal(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["bench", *arguments])
        with pytest.raises(SystemExit, match="2"):
            bench_main()
        return capsys.readouterr().err

    for arguments, words in (
        ("--small --taken-back 26", "expected at most the 25 that are broad"),
        ("--runs 0", "--runs is 0, expected at least 1"),
        ("--rate 0", "--rate is 0, expected more than 0 and at most 1000"),
        ("--continue", "--continue needs --out"),
    ):
        assert words in refusal(*arguments.split())
    out = tmp_path / "runs.json"
    for text in ("{}", json.dumps({"plan": {}, "runs": []})):
        out.write_text(text)
        assert f"--out {out} has " in refusal("--small", "--continue", "--out", str(out))
        assert out.read_text() == text


@pytest.mark.campaign
@pytest.mark.parametrize("whole_group", [False, True])
def test_a_bench_that_is_stopped_leaves_no_broker(whole_group: bool, tmp_path: Path) -> None:
    bench = subprocess.Popen(
        [*BENCH, "--small"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        brokers = _wait_for_brokers_with_clients(bench)
        bench.send_signal(signal.SIGTERM)
        if whole_group:  # as `timeout` does: brokers leave their clients, and the bench hears twice
            os.killpg(bench.pid, signal.SIGTERM)
        _, said = bench.communicate(timeout=PATIENCE_S)
    finally:
        bench.kill()
        bench.wait()
    assert (said, bench.returncode) == ("stopped before it was done\n", 1)
    assert not any(one.is_running() for one in brokers)


def _wait_for_brokers_with_clients(bench: subprocess.Popen[str]) -> list[psutil.Process]:
    parent = psutil.Process(bench.pid)
    while _runs_on(bench):
        found = [one for one in parent.children() if _is_broker(one)]
        if len(found) == BROKERS and len(parent.net_connections("unix")) > CLIENTS:
            return found
    raise AssertionError("it ended without brokers")


def _is_broker(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):  # a command that has ended, or is about to
        return "run" in process.cmdline()
    return False


def _runs_on(bench: subprocess.Popen[str]) -> bool:
    """Whether it runs, after leaving it and its brokers the processor for a moment."""
    with suppress(subprocess.TimeoutExpired):
        bench.wait(0.1)
    return bench.returncode is None
