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
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
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
from gossamer.node.peer.application import Peer, PeerInternals
from gossamer.node.peer.frames.core import SELF, Record
from gossamer.node.peer.frames.events import Event
from gossamer.node.peer.peer import open_peer
from gossamer.protocol.content.attributes import IntegerAttribute
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.kernel.errors import ProtocolError
from gossamer.protocol.kernel.records import BODY, KIND
from gossamer.protocol.peer.record_table.records import (
    DELIVER,
    EVENT_ID,
    EVENT_MESSAGES,
    EVENT_VALUES,
    PUBLISH,
)
from gossamer.protocol.peer.rendezvous.delivery import is_false_positive
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING, low_bits
from gossamer.protocol.peer.state.links import HANDLE_MASK
from gossamer.protocol.peer.state.routing_table import is_interested
from gossamer.protocol.peer.state.state import COUNTER_NAMES
from gossamer.replay.lines import Line, Lines, Setup, encode
from gossamer.sim.studies.peers.running.collector import KINDS, NOT_CONTROL

# What is seen of one peer while it runs, and how it is told.


# Reports are written together this often, so that they cost little.
FLUSH_S: Final = 0.05
# Of an event that came by no path, but out of a store.
UNKNOWN_HOPS: Final = 0, 0


class Reporter:
    """Collects reports; `run` writes them."""

    def __init__(self, stream: trio.abc.SendStream) -> None:
        self._stream = stream
        self._waiting = bytearray()

    def tell(self, report: str, node: int, **fields: Any) -> None:
        """Report something soon."""
        self._waiting += encode({"report": report, "node": node, **fields})

    async def run(self) -> None:
        """Write what there is, again and again, until cancelled."""
        while True:
            await trio.sleep(FLUSH_S)
            await self.flush()

    async def flush(self) -> None:
        """Write what there is, cancelled or not: half a line would make nonsense of the next."""
        waiting, self._waiting = self._waiting, bytearray()
        if waiting:
            with trio.CancelScope(shield=True):
                await self._stream.send_all(waiting)


class Observer:
    """Watches the records that one peer takes."""

    def __init__(self, node: int, peer: Peer, reporter: Reporter) -> None:
        self.inside: PeerInternals = peer.observe(self.see)
        self._node = node
        self._attributes = len(peer.schema)
        self._peer = peer
        self._reporter = reporter
        self._hops: dict[int, tuple[int, int]] = {}
        self._expected: dict[tuple[int, ...], list[tuple[int, Callable[[], None]]]] = {}
        self._control = 0
        self._told: Counter[str] = Counter()

    def see(self, record: Record) -> None:
        """Count a record that the peer is about to take."""
        kind = record[KIND]
        if kind in EVENT_MESSAGES:
            self._see_event(record)
        elif kind == PUBLISH:
            self._see_publication(record)
        elif kind == DELIVER:
            self._hops[record[BODY]] = record[BODY + 1], record[BODY + 2]
        elif kind < KINDS and kind not in NOT_CONTROL:
            self._control += 1

    def _see_event(self, record: Record) -> None:
        state, values = self.inside.state, BODY + EVENT_VALUES
        interested = is_interested.interpreted(state, SELF, record, values)
        self._tell(
            "taken",
            id=record[BODY + EVENT_ID],
            interested=bool(interested),
            false_positive=bool(is_false_positive.interpreted(state, SELF, record, 0)),
        )

    def expect(self, number: int, values: Iterable[int], begun: Callable[[], None]) -> None:
        """The application is about to publish an event of these hashed values, in order.

        ``begun`` is called once the peer publishes it.
        """
        self._expected.setdefault(self._known_by(tuple(values)), []).append((number, begun))

    def expects(self, number: int) -> bool:
        """Whether that event is still not being published."""
        return any(number == one for waiting in self._expected.values() for one, _ in waiting)

    def _see_publication(self, record: Record) -> None:
        # When an event is on its way is not when its publisher is told that others hold it.
        values = record[BODY + EVENT_VALUES :][: self._attributes]
        waiting = self._expected.get(self._known_by(tuple(values)))
        if waiting:
            number, begun = waiting.pop(0)
            self._tell("published", event=number, id=record[BODY + EVENT_ID])
            begun()

    def _known_by(self, values: tuple[int, ...]) -> tuple[int, ...]:
        """What of an event's values stays as it is where it is routed by its key."""
        if self.inside.state.params.key == 0:
            return (values[0] >> low_bits(1),)
        return values

    def deliver(self, event: Event) -> None:
        """The application has got an event."""
        hops, tree_hops = self._hops.get(event.id, UNKNOWN_HOPS)
        self._tell(
            "delivered",
            id=event.id,
            hops=hops,
            tree_hops=tree_hops,
            latency_s=time.time() - event.published_at,
        )

    def tally(self) -> None:
        """Report what was counted since the last time."""
        counters = self._peer.counters
        counts = Counter(
            control=self._control,
            forwarded=counters.events_forwarded,
            rounds=counters.rounds,
            rounds_late=counters.rounds_late,
            **dict(zip(COUNTER_NAMES, self.inside.state.counters[SELF].tolist(), strict=True)),
        )
        if counts != self._told:
            self._tell("tally", counts=counts - self._told)
            self._told = counts

    def look(self, number: int) -> None:
        """Report links, place and table of the peer."""
        state, key_of = self.inside.state, self.inside.key_of
        links = state.links[SELF].tolist()
        self._tell(
            "seen",
            number=number,
            profile=state.sampler.profile[SELF].tolist(),
            links=[key_of(word & HANDLE_MASK) if word >= 0 else None for word in links],
            link_profiles=state.link_profile[SELF].tolist(),
            successor=int(state.successor[SELF]),
            table=int(state.table_count[SELF]),
        )

    def _tell(self, report: str, **fields: Any) -> None:
        self._reporter.tell(report, self._node, at=time.monotonic(), **fields)


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
    """A configuration that leaves nothing of the protocol to the node's own sections."""

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
