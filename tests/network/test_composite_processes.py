"""Composite subscriptions as people use them: brokers in processes, TLS on, over loopback."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio

from gossamer.client import RefusedByNodeError, connect, open_client
from gossamer.command.main import main
from gossamer.node.local.client import open_client as open_local_client
from support.broker_processes import BrokerProcesses, broker_processes
from support.installed_command import install, refused
from support.local_nodes import LocalNode
from support.node_processes import PATIENCE_S, Shell, end

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
    told = brokers.shell.ok(
        *("pub", f"symbol={symbol}", f"price={price}"), *("--name", "exchange", *brokers.at(1))
    )
    return told.split()[-1]


def subscribe(brokers: BrokerProcesses, *more: str) -> subprocess.Popen[str]:
    """`gossamer sub` at the third broker, once its subscription is in force."""
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
    told = brokers.wait_for(3, subscriptions=2)
    (row,) = told["composites"]
    assert (row["client"], row["label"], row["composite"]) == ("ada", "pair", PAIR)
    brokers.wait_for(1, subscriptions=2)
    second = subscribe(brokers, *named, "--count", "2")
    later = [publish(brokers, "IBM", 83), publish(brokers, "HPQ", 21)]
    assert matches_of(second) == [[kept[0], ids[1]], later]
    brokers.shell.ok("unsub", "pair", "--name", "ada", *brokers.at(3))
    assert brokers.wait_for(3, subscriptions=0)["composites"] == []
    brokers.wait_for(1, subscriptions=0)


def wait_for_deliveries(folder: Path, number: int) -> None:
    async def wait() -> None:
        async with open_client(folder) as client:
            with anyio.fail_after(PATIENCE_S):
                while (await client.status())["deliveries"] != number:
                    await anyio.sleep(0.05)

    anyio.run(wait)


def test_a_line_has_the_publications_of_a_match(brokers: BrokerProcesses) -> None:
    process = subscribe(brokers, THEN, *WITHIN, "--count", "1")
    brokers.wait_for(1, subscriptions=1)  # the last part covers the others
    publish(brokers, "HPQ", 10)
    before = publish(brokers, "IBM", 81)
    ids = [before, *[publish(brokers, "HPQ", 11)] * 2]
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
            assert [one.id for one in event.match] == ids
            assert event.subscriptions == ("1",)
            assert event.match[0].values == {"symbol": "IBM", "price": 5}
            assert event.values == {}

    anyio.run(use, backend=loop)
    brokers.wait_for(1, subscriptions=0)


def test_programs_that_wait_and_one_that_is_interrupted_leave_nothing(
    brokers: BrokerProcesses,
) -> None:
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
        address = brokers.address(3)
        async with open_local_client(address) as client:
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((PAIR,), "expected --within SECONDS with an expression in braces"),
        (("price > 5", "--within", "10"), "expected one expression in braces with --within"),
        ((PAIR, PAIR, "--within", "10"), "expected one expression in braces with --within"),
        ((PAIR, "--within", "0"), "--within is '0', expected a number from 0.001 to 86400"),
        ((PAIR, *WITHIN, "--last"), "expected no --retained, --group, --ordered, --last or --into"),
    ],
)
def test_options_that_do_not_go_together(
    here: tuple[str, str], capsys: CaptureFixture, arguments: tuple[str, ...], words: str
) -> None:
    assert main(["sub", *arguments, *here]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert words in " ".join(told.err.replace("│", "").split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("{price > 5} & {price >}", *WITHIN), "expected a number, date, true"),
        ((PAIR, *WITHIN, "--label", "~part 1"), "a label does not begin with '~part '"),
    ],
)
def test_what_is_no_composite_subscription(
    here: tuple[str, str], capsys: CaptureFixture, arguments: tuple[str, ...], words: str
) -> None:
    assert words in refused(capsys, "sub", *arguments, *here)


def test_programs_are_refused_with_a_sentence(brokers: BrokerProcesses) -> None:
    async def ask(expression: str, within: float | None) -> None:
        async with (
            open_client(brokers.folder(3)) as node,
            node.subscribe(expression, within=within),
        ):
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
