"""The connections of one client to its node, one after another.

connected -- the connection ends ----------------------->  away
away      -- the node is found, and takes all again ---->  connected
away      -- for longer than the client's patience ----->  over
away      -- the node refuses the client --------------->  over
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import anyio.abc

from gossamer.client.errors import (
    HandshakeFailed,
    NodeLostError,
    NodeNotRunningError,
    RefusedByNodeError,
    TransportBroken,
    unwrapped,
)
from gossamer.client.link import (
    BAD_FRAME,
    BUSY,
    FULL,
    LOST,
    SHUTDOWN,
    Farewell,
    Introduction,
    Link,
    LocalAddress,
    NotSentError,
    open_link,
)

if TYPE_CHECKING:
    from gossamer.client.session import Session

T = TypeVar("T")

CONNECTED: Final = "connected"

# Seconds to wait after the first failure, and at most; they double, and up to half is drawn off.
_FIRST_S: Final = 0.2
_LONGEST_S: Final = 5.0
_TRANSIENT: Final = (NodeNotRunningError, HandshakeFailed, TransportBroken)
# Seconds for which a client waits for its turn where a node that runs has no room for it.
ENTRY_S: Final = 10.0

_log = logging.getLogger(__name__)


class Links:
    """The connections of one client; `run` keeps one up.

    Attributes:
        link: the connection that there is.
        newest: that by which events come, also while subscriptions are asked for again.
        ended: why there will be no connection any more.
    """

    def __init__(
        self,
        folder: Path,
        find: Callable[[], LocalAddress],
        who: Introduction,
        owner: Session[Any],
        patience_s: float,
        on_change: Callable[[str], None] | None,
    ) -> None:
        """Connections to the node in ``folder``, each where ``find`` says that it listens."""
        self.patience_s = patience_s
        self._folder, self._find = folder, find
        self._who = who
        self._owner = owner
        self._tell = on_change or self._log
        self.link: Link | None = None
        self.newest: Link | None = None
        self._changed = anyio.Event()  # of `_link` and `_taking_up`
        self._taking_up = False
        self.ended: Exception | None = None
        self._farewell: Farewell | None = None

    @property
    def farewell(self) -> Farewell | None:
        """How the last connection ended, None while there is one."""
        return self._farewell if self.link is None else self.link.farewell

    @property
    def reconnects(self) -> bool:
        """Whether there is more than one connection, where need be."""
        return self.patience_s > 0

    async def ask(self, ask: Callable[[Link], Awaitable[T]], *, repeat: bool) -> T:
        """Ask over the connection that there is, or will be; with ``repeat`` over several."""
        while True:
            link = self.link
            if link is not None:
                try:
                    return await ask(link)
                except NotSentError:
                    pass
                except TransportBroken:
                    if not (repeat and self.reconnects) or _broke_a_rule(link):
                        raise
            await self.until_another(link)

    async def until_another(self, link: Link | None) -> None:
        """Wait for a connection that is not ``link``.

        Raises:
            TransportBroken, NodeLostError, RefusedByNodeError: there will be none.
        """
        while self.link is None or self.link is link:
            if self.ended is not None:
                raise self.ended
            await self._changed.wait()

    async def run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Stay connected until cancelled, refused, or without a node for too long."""
        draws, failures, lost_at = random.Random(), 0, 0.0
        taken_up: Callable[[], None] = task_status.started
        try:
            link = await self._enter(draws)
            while True:
                connected_at = anyio.current_time()
                was_up = await self._hold(link, taken_up)
                reason = str(link.farewell)
                if not self.reconnects:
                    self.ended = TransportBroken("the node", reason)
                    return
                if was_up:
                    lost_at = anyio.current_time()
                    failures = 0 if lost_at - connected_at > _LONGEST_S else failures
                    tell = _unheard if _broke_a_rule(link) else self._tell
                    taken_up = partial(tell, CONNECTED)
                    tell(reason)
                link, failures = await self._find_again(reason, lost_at, failures, draws)
        except Exception as error:
            self.ended = error
            raise
        finally:
            self._change(None)

    async def _enter(self, draws: random.Random) -> Link:
        """The first connection; while the node has no room for it, others' are waited for.

        Raises:
            NodeError: as of `open_link`.
        """
        deadline, failures = anyio.current_time() + ENTRY_S, 0
        while True:
            try:
                return await open_link(self._find(), self._who, self._owner.resume)
            except (RefusedByNodeError, HandshakeFailed) as error:
                if error.cause not in (FULL, LOST) or anyio.current_time() >= deadline:
                    raise
            failures += 1
            await anyio.sleep(_delay_s(failures, draws))

    async def _find_again(
        self, reason: str, lost_at: float, failures: int, draws: random.Random
    ) -> tuple[Link, int]:
        """The next connection, and how many attempts failed since the last good one.

        Raises:
            NodeLostError: there was none within the client's patience.
            RefusedByNodeError: the node does not let the client in any more.
        """
        deadline = lost_at + self.patience_s
        while (now := anyio.current_time()) < deadline:
            failures += 1
            await anyio.sleep(min(_delay_s(failures, draws), deadline - now))
            try:
                return await open_link(self._find(), self._who, self._owner.resume), failures
            except _TRANSIENT as error:
                reason = str(error)
            except RefusedByNodeError as error:
                # The node may not have noticed yet that the last connection is over.
                if error.cause not in (BUSY, FULL, SHUTDOWN):
                    raise
                reason = str(error)
        raise NodeLostError(self._folder, self.patience_s, reason)

    async def _hold(self, link: Link, taken_up: Callable[[], None]) -> bool:
        """Serve ``link`` until it ends; return whether all was asked for again before that."""
        self._owner.adopt(link)
        self._taking_up, self.newest = True, link
        over, was_up = anyio.Event(), False
        with unwrapped():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._serve, link, over)
                try:
                    await self._owner.ask_again(link)
                    taken_up()
                    self._change(link)
                    was_up = True
                    await over.wait()
                except (NotSentError, TransportBroken):
                    pass
                finally:
                    self.newest = None
                    self._change(None)
                    with anyio.CancelScope(shield=True):
                        await link.close()
        return was_up

    async def _serve(self, link: Link, over: anyio.Event) -> None:
        try:
            await link.run(partial(self._owner.take_event, link))
        finally:
            self._farewell = link.farewell
            over.set()

    async def settled(self) -> None:
        """Wait while what was asked for is asked for again."""
        while self._taking_up:
            await self._changed.wait()

    def _change(self, link: Link | None) -> None:
        self.link = link
        self._taking_up = False
        self._changed.set()
        self._changed = anyio.Event()

    def _log(self, change: str) -> None:
        if change == CONNECTED:
            _log.warning("connected to the node in %s again", self._folder)
            return
        how_long = "" if math.isinf(self.patience_s) else f" for {self.patience_s:g} s"
        said = "without the node in %s (%s); trying again%s"
        _log.warning(said, self._folder, change, how_long)


def _delay_s(failures: int, draws: random.Random) -> float:
    """Seconds to wait after ``failures`` failures in a row, the last one just now."""
    longest = min(_LONGEST_S, _FIRST_S * 2.0 ** min(failures - 1, 8))
    return longest * (1 - 0.5 * draws.random())


def _unheard(_: str) -> None:
    """Nobody has to be told."""


def _broke_a_rule(link: Link) -> bool:
    """Whether the node ended a connection because of a request, which would end the next one too.

    Whoever made that request is told by an error.
    """
    farewell = link.farewell
    return farewell is not None and farewell.cause == BAD_FRAME and not farewell.by_us
