"""A process that holds several peers: `python -m gossamer.replay.worker`.

It does what its standard input says and reports on standard output, see `gossamer.replay.lines`.
At the end of its input, which the death of whoever started it is as well, its peers say goodbye
and it ends.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from gossamer.node.config.node import (
    Discovery,
    Identity,
    Listen,
    NodeConfig,
    Page,
    Protocol,
)
from gossamer.node.errors import NodeError
from gossamer.node.monitoring.logs import configure_logs
from gossamer.node.peer.application import Peer
from gossamer.node.peer.peer import open_peer
from gossamer.protocol.content.attributes import IntegerAttribute
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.kernel.errors import ProtocolError
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING
from gossamer.replay.lines import Line, Lines, Setup
from gossamer.replay.observer import Observer, Reporter

CHUNK: Final = 1 << 16
# What subscribes at a peer.
APPLICATION: Final = "replay"
# Commands that wait for a peer which is still starting or stopping.
COMMANDS: Final = 1 << 16


@attrs.define
class Seat:
    """Where one peer comes and goes; commands to it are carried out in their order.

    Attributes:
        node: its number.
        config: of the peer, but for whom it knows.
        expressions: what its application subscribes to.
        watched: the observer of the peer that runs.
    """

    node: int
    config: NodeConfig
    expressions: list[str]
    reporter: Reporter
    watched: Observer | None = None

    async def run(self, commands: AsyncIterator[Line]) -> None:
        """Carry out commands until there are no more; then stop the peer."""
        async for command in commands:
            if command["do"] == "publish":
                self._tell("unpublished", event=command["event"], why="the peer does not run")
            elif command["do"] == "start":
                try:
                    await self._take_part(command["bootstrap"], commands)
                except (NodeError, ProtocolError) as error:
                    self._tell("failed", why=str(error))

    async def _take_part(self, bootstrap: list[str], commands: AsyncIterator[Line]) -> None:
        discovery = attrs.evolve(self.config.discovery, peers=tuple(bootstrap))
        async with (
            open_peer(attrs.evolve(self.config, discovery=discovery)) as peer,
            trio.open_nursery() as nursery,
        ):
            self.watched = Observer(self.node, peer, self.reporter)
            for expression in self.expressions:
                await nursery.start(self._listen, peer, expression, self.watched)
            self._tell("started", key=peer.key, address=str(peer.addresses[0]))
            async for command in commands:
                if command["do"] == "stop":
                    break
                if command["do"] == "publish":
                    # Whatever comes next, this event is on its way first.
                    await nursery.start(
                        self._publish, peer, self.watched, command["event"], command["values"]
                    )
            self.watched.tally()
            self.watched = None
            self._tell("stopped")
            nursery.cancel_scope.cancel()

    async def _listen(
        self,
        peer: Peer,
        expression: str,
        observer: Observer,
        task_status: trio.TaskStatus[None],
    ) -> None:
        # With a name, so that it gets no event twice over restarts of the peer.
        async with peer.subscribe(expression, name=APPLICATION) as events:
            task_status.started()
            async for event in events:
                observer.deliver(event)

    async def _publish(
        self,
        peer: Peer,
        observer: Observer,
        event: int,
        values: dict[str, int],
        task_status: trio.TaskStatus[None],
    ) -> None:
        observer.expect(event, values.values(), task_status.started)
        try:
            await peer.publish(values)
        except (NodeError, ProtocolError) as error:
            if observer.expects(event):
                self._tell("unpublished", event=event, why=str(error))
                task_status.started()

    def _tell(self, report: str, **fields: Any) -> None:
        self.reporter.tell(report, self.node, at=time.monotonic(), **fields)


@attrs.frozen(kw_only=True)
class ReplayConfig(NodeConfig):
    """A configuration that leaves nothing of the protocol to the node's own sections.

    Attributes:
        exact: the settings of the simulation.
    """

    exact: Settings

    def settings(self, schema: Schema) -> Settings:
        """Those of the simulation; ``schema`` is of as many attributes."""
        assert len(schema) == self.exact.attributes
        return self.exact


def config_of(setup: Setup, node: int) -> ReplayConfig:
    """The configuration of one peer, which knows nobody yet."""
    return ReplayConfig(
        exact=Settings(**setup.settings),
        preset="local",
        identity=Identity(folder=Path(setup.folder) / str(node)),
        listen=Listen(addresses=("127.0.0.1:0",)),
        # As in the simulation, a peer that comes back knows nobody but its contacts.
        discovery=Discovery(multicast=False, remember=False),
        protocol=Protocol(round_s=setup.round_s),
        page=Page(enabled=False),
        schema=Schema([IntegerAttribute(name, 0, RING - 1) for name in setup.attributes]),
    )


class Worker:
    """All peers of this process."""

    def __init__(self, setup: Setup, reporter: Reporter, nursery: trio.Nursery) -> None:
        self._setup = setup
        self._reporter = reporter
        self._nursery = nursery
        self._seats: dict[int, tuple[Seat, trio.MemorySendChannel[Line]]] = {}

    async def obey(self, command: Line) -> None:
        """Carry out one command, or hand it to the peer that it is for."""
        if command["do"] == "look":
            self._look(command["number"])
            return
        if command["node"] not in self._seats:
            self._open_seat(command["node"])
        await self._seats[command["node"]][1].send(command)

    async def tally(self) -> None:
        """Have all observers report once a round, until cancelled."""
        while True:
            await trio.sleep(self._setup.round_s)
            for observer in self._observers():
                observer.tally()

    def dismiss(self) -> None:
        """There are no more commands."""
        for _, commands in self._seats.values():
            commands.close()

    def _open_seat(self, node: int) -> None:
        config = config_of(self._setup, node)
        expressions = self._setup.subscriptions.get(str(node), [])
        seat = Seat(node, config, expressions, self._reporter)
        send, receive = trio.open_memory_channel[Line](COMMANDS)
        self._seats[node] = seat, send
        self._nursery.start_soon(seat.run, receive)

    def _look(self, number: int) -> None:
        for observer in self._observers():
            observer.look(number)

    def _observers(self) -> list[Observer]:
        """Those of the peers that run."""
        seats = (seat for seat, _ in self._seats.values())
        return [seat.watched for seat in seats if seat.watched is not None]


async def work(source: trio.abc.ReceiveStream, sink: trio.abc.SendStream) -> None:
    """Run peers as the lines of ``source`` say, until it ends."""
    lines, reporter = Lines(), Reporter(sink)
    async with trio.open_nursery() as background:
        background.start_soon(reporter.run)
        async with trio.open_nursery() as seats:
            worker: Worker | None = None
            async for data in source:
                for line in lines.feed(bytes(data)):
                    if worker is None:
                        worker = Worker(Setup(**line), reporter, seats)
                        background.start_soon(worker.tally)
                    else:
                        await worker.obey(line)
            if worker is not None:
                worker.dismiss()
        background.cancel_scope.cancel()
    await reporter.flush()


async def _main() -> None:
    source = trio.lowlevel.FdStream(os.dup(sys.stdin.fileno()))
    sink = trio.lowlevel.FdStream(os.dup(sys.stdout.fileno()))
    async with source, sink:
        try:
            await work(source, sink)
        except* trio.BrokenResourceError:
            pass  # nobody reads the reports any more: whoever started this process is gone


def main() -> None:
    """Hold peers until standard input ends.

    Ctrl-C at the terminal, and that it is closed, are not for this process.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    configure_logs("error", "text", stream=sys.stderr)
    trio.run(_main)


if __name__ == "__main__":
    main()
