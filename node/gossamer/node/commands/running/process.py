"""A node as a process: its signals, its logs, and its end, whatever the node is."""

from __future__ import annotations

import ctypes
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

import attrs
import trio

from gossamer.client.link import LocalAddress
from gossamer.node.commands.signals import EXIT_INTERRUPTED, ending_signals, has_terminal
from gossamer.node.config.node import FAMILY_SECTIONS, SECTIONS, Logging, NodeConfig
from gossamer.node.errors import NodeError
from gossamer.node.local.address import local_address
from gossamer.node.local.services import LocalCounts
from gossamer.node.local.serving.server import LocalService
from gossamer.node.monitoring.logs import Repetitions, configure_logs, log
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.page.server import serve_page
from gossamer.node.security.cluster import open_membership
from gossamer.node.transport.base import Address
from gossamer.protocol.kernel.errors import ProtocolError

# Memory that was freed, and that the C library keeps for itself.
#
# A burst, of strangers or of events, leaves holes between what stays. glibc gives a hole back to
# the system only when it is asked: after ten minutes of floods that was 7 of 75 MB.


# A call takes a fifth of a millisecond in a peer, and 5 ms where a GB is in use.
PAUSE_S: Final = 60.0


async def give_back_spare_memory() -> None:
    """Give the system every minute what is spare, until cancelled; at once without glibc."""
    trim = find_trim()
    while trim is not None:
        await trio.sleep(PAUSE_S)
        trim()


def find_trim() -> Callable[[], None] | None:
    """What gives spare memory to the system; None where the C library is another than glibc."""
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):
        return None

    def trim() -> None:
        malloc_trim(ctypes.c_size_t(0))

    return trim


# What of a changed configuration a running node takes up, and what needs a restart.
#
# Taken up are settings that nothing else was built from: how it logs, what its clients may cost,
# and peers to look for. The certificate, the list of revoked peers and the schema are not settings:
# the node follows their files by itself.


# By section, the settings that a running node takes up.
LIVE: Final = {
    "logging": ("level", "format", "repeat_s", "name", "event_lines"),
    "local": (
        "clients",
        "subscriptions",
        "requests_per_s",
        "queue_bytes",
        "window",
        "publishing",
    ),
    "discovery": ("peers",),
}
LIVE_NAMES: Final = frozenset(
    f"{section}.{name}" for section, names in LIVE.items() for name in names
)


@attrs.frozen
class Reloaded:
    """What became of a changed configuration.

    Attributes:
        changed: names of the settings that are in force now.
        restart: names of those that the node keeps as they were until it starts anew.
    """

    changed: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"changed": list(self.changed), "restart": list(self.restart)}


def compare(before: NodeConfig, found: NodeConfig) -> tuple[Reloaded, NodeConfig]:
    """What differs in ``found``, and the configuration with what of it can be taken up."""
    old, new = settings_of(before), settings_of(found)
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    told = Reloaded(
        tuple(name for name in names if name in LIVE_NAMES),
        tuple(name for name in names if name not in LIVE_NAMES),
    )
    sections = {
        section: attrs.evolve(
            getattr(before, section), **{name: new[f"{section}.{name}"] for name in names_of}
        )
        for section, names_of in LIVE.items()
    }
    return told, attrs.evolve(before, **sections)


def settings_of(config: NodeConfig) -> dict[str, object]:
    """Every setting by its dotted name; what a preset decides is in the settings that it sets."""
    found: dict[str, object] = {}
    for section in (*SECTIONS, *FAMILY_SECTIONS):
        part = config.section(section.SECTION)
        for name, value in attrs.asdict(part, recurse=False).items():
            if name == "settings":
                found |= {f"{section.SECTION}.{key}": one for key, one in value.items()}
            else:
                found[f"{section.SECTION}.{name}"] = value
    found |= {f"limits.{name}": value for name, value in config.limits.items()}
    found["attributes"] = config.schema
    return found


# Within this everything is closed in order; what is not by then is cut off.
STOP_S: Final = 1.9


class NodeProcess:
    """Runs until a signal or a client stops it; subclasses know what.

    Attributes:
        exit_code: of the process, once it has stopped.
    """

    def __init__(self, config: NodeConfig, reread: Callable[[], NodeConfig]) -> None:
        """A node that is about to run.

        Args:
            config: of it.
            reread: its configuration as it would be, were it started now.
        """
        self.exit_code = 0
        self._config = config
        self._reread = reread
        self._repetitions: Repetitions | None = None
        self._address: LocalAddress = local_address(config.identity.folder, config.local)
        self._scope = trio.CancelScope()
        self._stopping: trio.Event | None = None
        self._counts = LocalCounts()
        self._started_at = time.monotonic()
        self._server: LocalService | None = None
        self._page = ""
        self._join_addresses: Sequence[Address] = ()

    async def run(self) -> None:
        """Run until stopped."""
        self._repetitions = start_logs(self._config.logging)
        with self._scope:
            async with trio.open_nursery() as nursery:
                await nursery.start(self._watch_signals)
                nursery.start_soon(self._flush_logs)
                nursery.start_soon(give_back_spare_memory)
                async with AsyncExitStack() as stack:
                    await self._work(stack, nursery)
                    self._stopping = trio.Event()
                    await self._stopping.wait()
                nursery.cancel_scope.cancel()
        self._repetitions.flush()
        log.info("stopped")

    def stop(self) -> None:
        """Stop soon: in order, so that others are told goodbye, but within `STOP_S`."""
        if self._stopping is None:
            self._scope.cancel()
        else:
            self._scope.deadline = trio.current_time() + STOP_S
            self._stopping.set()

    def reload(self) -> Reloaded:
        """Read the configuration anew, and take up what a running node can.

        Raises:
            NodeError, ProtocolError: it cannot be used; the node goes on as before.
        """
        found = self._reread()
        if not found.listen.plain_text:
            open_membership(found.identity.folder)
        told, config = compare(self._config, found)
        before, self._config = self._config, config
        if config.logging != before.logging:
            self._flush()
            self._repetitions = start_logs(config.logging)
        if self._server is not None:
            self._server.limit(config.local)
        if config.discovery.peers != before.discovery.peers:
            self._look_for_peers(config)
        log.info(
            "configuration read anew",
            changed=", ".join(told.changed) or "nothing",
            restart=", ".join(told.restart) or "nothing",
        )
        return told

    def reloaded(self) -> Mapping[str, Any]:
        """`reload` for clients."""
        return self.reload().to_json()

    def _look_for_peers(self, config: NodeConfig) -> None:
        """Try the peers that the configuration names now; a broker has its neighbours."""

    async def _work(self, stack: AsyncExitStack, nursery: trio.Nursery) -> None:
        """Start everything, and say when it is ready; what was started last stops first."""
        raise NotImplementedError

    async def _open_page(
        self,
        nursery: trio.Nursery,
        snapshot: Callable[[], dict[str, Any]],
        metrics: Callable[[], bytes],
        counts: Counters,
        cluster: Callable[[], Mapping[str, Any]],
    ) -> None:
        page = self._config.page
        if page.enabled:
            host, port = await serve_page(
                nursery,
                page.endpoint,
                snapshot,
                metrics,
                hosts=page.hosts,
                counts=counts,
                cluster=cluster,
            )
            self._page = f"http://{Address(host, port)}/"
            log.info("page", at=self._page)

    @property
    def _clients(self) -> int:
        return 0 if self._server is None else self._server.clients

    @property
    def _uptime_s(self) -> float:
        return round(time.monotonic() - self._started_at, 1)

    async def _watch_signals(self, *, task_status: trio.TaskStatus[None]) -> None:
        reloads = not has_terminal()
        with trio.open_signal_receiver(signal.SIGINT, *ending_signals()) as signals:
            task_status.started()
            async for number in signals:
                if number == signal.SIGHUP and reloads:
                    self._reload_by_signal()
                    continue
                self.exit_code = EXIT_INTERRUPTED if number == signal.SIGINT else 0
                log.info("stopping", signal=signal.Signals(number).name)
                self.stop()

    def _reload_by_signal(self) -> None:
        try:
            self.reload()
        except (NodeError, ProtocolError) as error:
            log.error("the configuration cannot be used, and stays as it was", cause=str(error))

    async def _flush_logs(self) -> None:
        """Tell now and then how often warnings were repeated."""
        while True:
            await trio.sleep(max(1.0, self._config.logging.repeat_s))
            self._flush()

    def _flush(self) -> None:
        if self._repetitions is not None:
            self._repetitions.flush()


def start_logs(logging: Logging) -> Repetitions:
    """Log as a configuration says, from now on."""
    return configure_logs(
        logging.level, logging.format, logging.repeat_s, logging.name, logging.event_lines
    )
