"""Brokers and their clients as people run them: every one a process, TLS on, over loopback."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field

from gossamer.client import open_client as open_nodes_client
from gossamer.command.main import main
from gossamer.node.broker.families.tree import tables
from gossamer.node.local.client import open_client
from gossamer.protocol.brokers.core.messages import Advertise, Subscribe, Unsubscribe
from gossamer.protocol.brokers.tree import TreeSettings
from gossamer.protocol.content import filters
from support.broker_overlay import Overlay, path
from support.broker_processes import POLL_S, BrokerProcesses, broker_processes
from support.checkout import ROOT
from support.installed_command import install, refused
from support.node_processes import COMMAND, PATIENCE_S, Shell, end, free_ports
from support.waiting import running

CaptureFixture = pytest.CaptureFixture[str]

OFFER = "present(symbol) and price >= 0 and present(volume)"
WIDE = "price >= 0"
TURNS = 20


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcesses]:
    with broker_processes(Shell(tmp_path_factory.mktemp("brokers"))) as made:
        yield made


WANTED = {"ada": (3, "price >= 40"), "bob": (2, 'symbol == "A"'), "cyd": (3, "0 <= price < 5")}


def test_nothing_is_lost_when_the_middle_broker_is_killed_under_load(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with broker_processes(shell) as brokers:
        shell.ok("advertise", OFFER, "--name", "exchange", *brokers.at(1))
        for number in (1, 2, 3):
            brokers.wait_for(number, advertisements=1)
        subscribers = [subscribe(brokers, name) for name in WANTED]
        # What the others want there hangs below it.
        (tmp_path / "batch").write_text(f"subscribe wide {WIDE}\n")
        shell.ok("batch", "batch", "--name", "cyd", *brokers.at(3))
        brokers.wait_for(1, subscriptions=2)

        exchange = Exchange(brokers)
        exchange.finish(exchange.start(60))
        load = exchange.start(60)
        shell.ok("unsub", "wide", "--name", "cyd", *brokers.at(3))
        brokers.kill(2)
        exchange.finish(load)
        load = exchange.start(60)
        brokers.start(2)
        exchange.finish(load)
        brokers.wait_for(1, subscriptions=3)
        exchange.finish(exchange.start(20))

        for name, (_, text) in WANTED.items():
            due = [one for one in exchange.published if filters.parse(text).matches(one)]
            got = wait_for_events(shell, name, due)
            assert len({one["volume"] for one in got}) == len(got), f"{name} got something twice"
            if name != "cyd":
                assert got == due, name
        found = {number: tables_of(trio.run(brokers.tables, number)) for number in (1, 2, 3)}
        assert found == without_faults()
        for process in subscribers:
            end(process, signal.SIGINT)
        shell.ok("sub", "--forget", "--name", "bob", *brokers.at(2))


@pytest.mark.campaign
def test_what_is_published_straight_after_advertise_reaches_all(tmp_path: Path) -> None:
    """Also by a client whose broker was killed, which advertises anew and publishes straight on."""

    async def play(brokers: BrokerProcesses) -> None:
        got: Counter[int] = Counter()
        published = 0
        async with (
            running() as nursery,
            open_nodes_client(brokers.folder(3)) as reader,
            open_nodes_client(brokers.folder(1)) as exchange,
            reader.subscribe(WIDE, name="reader") as events,
        ):

            async def read() -> None:
                async for event in events:
                    got[int(event.values["volume"])] += 1

            async def publish(turn: int) -> None:
                nonlocal published
                for _ in range(4):
                    await exchange.publish({"symbol": "A", "price": turn, "volume": published})
                    published += 1

            nursery.start_soon(read)
            await exchange.advertise("first", OFFER)  # brokers that have not met know of nobody
            await trio.to_thread.run_sync(partial(brokers.wait_for, 1, subscriptions=1))
            await exchange.unadvertise("first")
            for turn in range(TURNS):
                await exchange.advertise(f"offer {turn}", OFFER)
                await publish(turn)
                await exchange.unadvertise(f"offer {turn}")
                if turn % 4 == 3:
                    await exchange.advertise("standing", OFFER)
                    brokers.kill(1)
                    await trio.to_thread.run_sync(brokers.start, 1)
                    await publish(turn)
                    await exchange.unadvertise("standing")
            with trio.fail_after(PATIENCE_S):
                while len(got) < published:
                    await trio.sleep(POLL_S)
            assert got == Counter(range(published))

    with broker_processes(Shell(tmp_path)) as brokers:
        trio.run(play, brokers)


@define
class Exchange:
    brokers: BrokerProcesses
    published: list[dict[str, Any]] = field(factory=list)

    def start(self, count: int) -> subprocess.Popen[str]:
        first = len(self.published)
        made = [
            {"symbol": "AB"[number % 2], "price": number % 50, "volume": number}
            for number in range(first, first + count)
        ]
        self.published += made
        words = ("pub", "--name", "exchange", *self.brokers.at(1), "--jsonl", "-")
        process = self.brokers.shell.start(*words, stdin=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write("".join(json.dumps(one) + "\n" for one in made))
        process.stdin.close()
        process.stdin = None
        return process

    def finish(self, process: subprocess.Popen[str]) -> None:
        code, _, told = end(process)
        assert code == 0, told


def subscribe(brokers: BrokerProcesses, name: str) -> subprocess.Popen[str]:
    number, text = WANTED[name]
    with (brokers.shell.folder / f"{name}.jsonl").open("w") as out:
        return brokers.shell.subscriber(text, "--name", name, *brokers.at(number), stdout=out)


def wait_for_events(shell: Shell, name: str, due: list[dict[str, Any]]) -> list[dict[str, Any]]:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        lines = (shell.folder / f"{name}.jsonl").read_text().splitlines(keepends=True)
        got = [json.loads(line)["values"] for line in lines if line.endswith("\n")]
        if not (missing := [one for one in due if one not in got]):
            return got
        assert time.monotonic() < deadline, f"{name} missed {missing}"
        time.sleep(POLL_S)


def tables_of(told: dict[str, Any]) -> tuple[object, ...]:
    return (
        {(row["filter"], kind(row["from"])) for row in told["subscriptions"]},
        {(row["filter"], kind(row["from"])) for row in told["advertisements"]},
        {kind("broker " + row["neighbour"]): row["sent"] for row in told["links"]},
    )


def kind(hop: str) -> str:
    return re.sub(r" \([0-9a-f]{16}\)", "", hop)


def without_faults() -> dict[int, object]:
    overlay = Overlay(path("peer1", "peer2", "peer3"), TreeSettings(covering="active"))
    overlay.attach("exchange", "peer1")
    overlay.ask("exchange", Advertise("adv", filters.parse(OFFER)))
    overlay.settle()
    for name, (number, text) in WANTED.items():
        overlay.attach(name, f"peer{number}")
        overlay.ask(name, Subscribe("sub", filters.parse(text)))
    overlay.ask("cyd", Subscribe("wide", filters.parse(WIDE)))
    overlay.settle()
    overlay.ask("cyd", Unsubscribe("wide"))
    overlay.settle()
    return {
        number: tables_of(tables(overlay.brokers[f"peer{number}"], lambda name: name))
        for number in (1, 2, 3)
    }


# What people get wrong is said in a sentence, with exit code 2. The commands run in this process.


@pytest.fixture
def here(brokers: BrokerProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(tmp_path / "installed", monkeypatch)
    monkeypatch.chdir(brokers.shell.folder)
    return brokers.shell.folder


@pytest.mark.usefixtures("here")
def test_a_publication_outside_its_advertisement(capsys: CaptureFixture) -> None:
    at = ("--folder", "demo/peer1")
    assert main(["advertise", OFFER, "--name", "nyse", *at]) == 0
    publish = ("pub", "--name", "nyse", *at)
    words = "client 'nyse' has no advertisement that allows"
    assert f"{words} price = -1" in refused(capsys, *publish, "price=-1")
    assert f"{words} colour = 'red'" in refused(capsys, *publish, "colour=red")
    assert f"{words} price = '5'" in refused(capsys, *publish, 'price="5"')
    assert "--name is missing" in refused(capsys, "pub", "price=1", *at)
    assert main([*publish, "price=1"]) == 0
    capsys.readouterr()
    other = refused(capsys, "advertise", WIDE, "--name", "nyse", *at)
    assert "client 'nyse' has an advertisement labelled 'adv' already" in other


def test_a_bad_line_of_a_batch(here: Path, capsys: CaptureFixture) -> None:
    for lines, words in (
        ("subscribe a x > 1\nsubscrbe b x > 2", "line 2, column 1: expected one of advertise, "),
        ("  subscribe a", "line 1, column 14: expected a label and a filter"),
        ("subscribe a x > 1\n\nsubscribe b x >> 2", "line 3, column 15: expected a comparison"),
        ("publish x = 1, y", "line 1, column 17: expected '='"),
        ("unsubscribe a b", "line 1, column 15: expected nothing after the label"),
    ):
        (here / "batch").write_text(lines)
        told = refused(capsys, "batch", "batch", "--name", "x", "--folder", "demo/peer1")
        assert (words in told, told.endswith("; nothing was done")) == (True, True), told
    (here / "batch").write_text("subscribe a x > 1\n# a remark\nunsubscribe b\n")
    told = refused(capsys, "batch", "batch", "--folder", "demo/peer1")
    assert "batch, line 3: client '~" in told
    assert "no subscription labelled 'b'; the operation before it was done" in told


AT = "--folder demo/peer1"
RUN = "node run demo/peer1 --role broker"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"sub 'price > 5 and price < 3' {AT}", "contradict each other: .* at column 15"),
        (f"sub '[price,foo,3]' {AT}", r"unknown operator 'foo', there are eq neq .* at column 8"),
        (f"sub '{'not ' * 1500}price > 5' {AT}", "more than the 4096 allowed"),
        (f"sub '{'not ' * 1000}price > 5' {AT}", "at most 64 'not' in a row"),
        (f"advertise 'price ~ 5' --name x {AT}", "expected a comparison .* at column 7"),
        (f"sub 'price > 1' --group work {AT}", "broker.* no queue groups"),
        (f"sub 'price > 1' --ordered {AT}", "broker.* no order"),
        (f"sub 'price > 1' --last {AT}", "broker.* keeps nothing for those who come later"),
        (f"pub price=1 --name x --retained-last price {AT}", "broker.* no last values"),
        (f"request price=1 {AT}", "broker.* no requests"),
        (f"reply 'price > 1' --echo {AT}", "broker.* no requests"),
        (f"reply 'price > 1' --echo --group work {AT}", "broker.* no requests"),
        (f"{RUN} --role king", "node.role is 'king', expected one of peer, broker"),
        (f"{RUN} --covering much", "broker.covering is 'much', expected one of off, lazy"),
        (f"{RUN} --neighbour nowhere:x", "broker.neighbours is .* expected an address such as"),
        (f"{RUN} --set broker.colour=red", "an unknown setting"),
        ("node trace demo/peer1 --message 0000000000000001:7", "is not remembered here"),
        ("node trace demo/peer1 --message 7", "expected a broker's key, a colon and a number"),
    ],
    ids=lambda one: one[:60],
)
@pytest.mark.usefixtures("here")
def test_what_people_get_wrong(capsys: CaptureFixture, command: str, words: str) -> None:
    told = refused(capsys, *shlex.split(command))
    assert re.search(words, told), told


@pytest.mark.usefixtures("here")
def test_a_broker_tells_of_itself(brokers: BrokerProcesses, capsys: CaptureFixture) -> None:
    folder = str(brokers.folder(2))

    async def ask() -> tuple[str, dict[str, Any]]:
        async with open_client(brokers.address(2)) as client:
            return await client.metrics(), await client.snapshot()

    metrics, snapshot = trio.run(ask)
    assert re.search(r'(?m)^gossamer_broker_sent_total\{kind="Synchronise"\} [1-9]', metrics)
    assert re.search(r"(?m)^gossamer_broker_table_subscriptions \d", metrics)
    assert re.search(r"(?m)^gossamer_received_bytes_total [1-9]", metrics)
    assert {peer["name"] for peer in snapshot["peers"]} == {"peer1", "peer3"}
    assert (main(["top", folder, "--once"]), main(["node", "status", folder])) == (0, 0)
    assert main(["node", "trace", folder]) == 0
    told = capsys.readouterr().out
    assert "peer1: up" in told
    assert "kept for nobody, and what that costs" in told


# By example: how many ports and lines it has, and settings so that its nodes do not wait long.
EXAMPLES: dict[str, tuple[int, int, Sequence[str]]] = {
    "brokers/node/three_brokers.py": (3, 5, ()),
    "scot/node/take_over.py": (4, 6, ()),
    "trees/node/ring.py": (4, 6, ("--set=graph.interval_s=0.3", "--set=graph.tick_s=0.1")),
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_prints_what_its_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: CaptureFixture, example: str
) -> None:
    """The example runs in this process, and its commands are forked."""
    path, shell, start = ROOT / "examples" / example, Shell(tmp_path), subprocess.Popen
    ports, lines, settings = EXAMPLES[example]
    started: list[subprocess.Popen[str]] = []

    def popen(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        if tuple(command[:3]) != COMMAND:
            return start(command, **options)
        options = {"stdout": subprocess.DEVNULL, **options}
        more = settings if "run" in command else ()
        started.append(shell.start(*command[3:], *more, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setenv("FIRST_PORT", str(free_ports(ports)))
    runpy.run_path(str(path))["main"](tmp_path / "market")
    for process in started:
        process.wait()
    out = capsys.readouterr().out.splitlines()
    said = (path.parent / "README.md").read_text(encoding="utf-8")
    assert all(f"\n    {line}\n" in said for line in out), out
    assert len(out) == lines
