"""A node with a real local socket in a thread of its own, for clients of any event loop."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio
from attrs import define, field

from gossamer.client import open_client
from support.local_nodes import LocalNode
from support.loopback_peer import LoopbackPeer, quote
from support.waiting import PATIENCE_S

# Of the node's peer: so many rounds it listens for others before it deals out events.
ROUND_S = 0.01
ALL = "price >= 0"
# From a client's event loop, whichever that is: do something with the node in a thread.
aside = anyio.to_thread.run_sync


@define(eq=False)
class ThreadedNode:
    """A node that is started and stopped from outside; used from its own thread while it runs."""

    node: LocalNode
    _thread: threading.Thread | None = None
    _up: threading.Event = field(factory=threading.Event)
    _token: trio.lowlevel.TrioToken | None = None
    _scope: trio.CancelScope | None = None

    @property
    def peer(self) -> LoopbackPeer:
        return self.node.peer

    def start(self) -> None:
        self._up.clear()
        self._thread = threading.Thread(target=trio.run, args=(self._serve,))
        self._thread.start()
        assert self._up.wait(PATIENCE_S), "the node did not start"

    def stop(self) -> None:
        if self._thread is not None and self._token is not None and self._scope is not None:
            self._token.run_sync_soon(self._scope.cancel)
            self._thread.join(PATIENCE_S)
            assert not self._thread.is_alive(), "the node did not stop"
        self._thread = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def publish(self, price: float) -> None:
        assert self._token is not None
        trio.from_thread.run(self.peer.publish, quote(price), trio_token=self._token)

    def until_publishing(self, count: int) -> None:
        assert self._token is not None

        async def wait() -> None:
            await self.peer.changes.until(lambda: self.peer.waiting == count)

        trio.from_thread.run(wait, trio_token=self._token)

    async def _serve(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as self._scope:
            async with self.node.running():
                self._up.set()
                await trio.sleep_forever()


@contextmanager
def threaded_node(folder: Path) -> Iterator[ThreadedNode]:
    node = ThreadedNode(LocalNode(folder, LoopbackPeer(round_s=ROUND_S)))
    node.start()
    try:
        yield node
    finally:
        node.stop()


async def prices(events: AsyncIterator[Any], count: int) -> list[object]:
    return [(await anext(events)).values["price"] for _ in range(count)]


def on_each_loop(use: Callable[..., Awaitable[None]]) -> Callable[[Path, str], None]:
    """A test with a ``client`` of a ``node`` that runs, under either event loop."""
    takes_node = "node" in signature(use).parameters

    async def main(node: ThreadedNode) -> None:
        with anyio.fail_after(PATIENCE_S):
            async with open_client(node.node.folder) as client:
                await (use(client, node) if takes_node else use(client))

    @pytest.mark.parametrize("loop", ["trio", "asyncio"])
    def test(tmp_path: Path, loop: str) -> None:
        with threaded_node(tmp_path) as node:
            anyio.run(main, node, backend=loop)

    test.__name__, test.__doc__ = getattr(use, "__name__", ""), use.__doc__
    return test
