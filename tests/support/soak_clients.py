"""Clients of other kinds than `support.campaign` has, for as long as a soak takes."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Collection
from pathlib import Path

import attrs
import trio

from gossamer.client import connect
from gossamer.client.frames import LAST
from gossamer.node.local.client import open_client
from support.campaign import ALL
from support.node_fleets import Fleet
from support.node_processes import PATIENCE_S
from support.soaking import FleetNodes


@attrs.define(eq=False)
class Program:
    """A program without an event loop that reads under a name, in a thread."""

    folder: Path
    got: list[str] = attrs.field(factory=list)  # ids of what it was handed
    _stopping: threading.Event = attrs.field(factory=threading.Event)

    def run(self) -> None:
        with (
            connect(self.folder, patience_s=600) as client,
            client.subscribe(ALL, name="program") as events,
        ):
            while not self._stopping.is_set():
                try:
                    event = events.receive(timeout_s=0.5)
                except TimeoutError:
                    continue
                self.got.append(event.id)
                events.acknowledge(event)

    def stop(self) -> None:
        self._stopping.set()


@attrs.define(eq=False)
class Printer:
    """`gossamer sub` in a process of its own."""

    fleet: Fleet
    name: str
    _process: subprocess.Popen[str] | None = None

    @property
    def _file(self) -> Path:
        return self.fleet.shell.folder / "printed.jsonl"

    def start(self) -> None:
        with self._file.open("w") as out, self._file.with_suffix(".log").open("w") as log:
            self._process = self.fleet.shell.start(
                "sub", ALL, *self.fleet.at(self.name), "--name", "printer", stdout=out, stderr=log
            )

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(PATIENCE_S)

    @property
    def got(self) -> list[str]:
        lines = self._file.read_text().split("\n")[:-1]
        return [str(json.loads(line)["id"]) for line in lines]


@attrs.define(eq=False)
class Browser:
    """Looks at the page and the metrics of a peer now and then."""

    fleet: Fleet
    name: str
    every_s: float
    seen: int = 0  # how often it got both

    async def run(self) -> None:
        while True:
            await trio.to_thread.run_sync(self._look, abandon_on_cancel=True)
            await trio.sleep(self.every_s)

    def _look(self) -> None:
        address = self._address()
        try:
            for path in ("", "metrics"):
                with urllib.request.urlopen(address + path, timeout=PATIENCE_S) as answer:
                    assert answer.read()
        except (urllib.error.URLError, OSError):
            return  # the peer is away
        self.seen += 1

    def _address(self) -> str:
        """Where the page is, by the log."""
        lines = self.fleet.log(self.name).splitlines()
        told = [json.loads(line) for line in lines if '"page"' in line]
        return str([one["at"] for one in told if one["event"] == "page"][-1])


async def last_values(nodes: FleetNodes, key: int, symbols: Collection[str]) -> dict[str, str]:
    """By symbol, the id of the last value that a peer knows, once it knows one of each."""
    found: dict[str, str] = {}
    async with open_client(nodes.address(key), patience_s=0) as client:
        await client.subscribe("last", ALL, LAST)
        with trio.move_on_after(PATIENCE_S):
            while not set(symbols) <= set(found):
                event = await client.events.receive()
                if event.last:
                    found[str(event.values["symbol"])] = event.id
    return found
