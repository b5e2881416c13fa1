"""Finding neighbours: every address that is named is dialled until its broker is connected.

One end of a link names the other, or both do. Any broker of the cluster may come: its certificate
says that it belongs.
"""

from __future__ import annotations

import random
from typing import Final

import trio

from gossamer.node.broker.links.links import Neighbours
from gossamer.node.errors import PeerUnreachable
from gossamer.node.monitoring.logs import log
from gossamer.node.transport.base.back_off import BackOff
from gossamer.node.transport.base.base import Address, Admitted
from gossamer.node.transport.links import ConnectionPool

BACK_OFF: Final = BackOff(first_s=0.2, longest_s=15.0)
# Before a link is tried again that would have closed a cycle: somebody has to change something.
REFUSED_S: Final = 60.0


class Dialler:
    """Keeps one named neighbour connected."""

    def __init__(
        self, address: Address, pool: ConnectionPool, neighbours: Neighbours, draws: random.Random
    ) -> None:
        self._address = address
        self._pool = pool
        self._neighbours = neighbours
        self._draws = draws
        self._key: int | None = None

    async def run(self) -> None:
        """Dial, wait until the connection ends, and dial again, until cancelled."""
        failures = 0
        while True:
            if self._is_connected():
                failures = 0
                await self._neighbours.changed.park()
                continue
            if self._is_refused():
                await trio.sleep(REFUSED_S)
            try:
                await self._pool.meet([self._address], self._learn)
            except PeerUnreachable as error:
                failures += 1
                log.warning("neighbour is not reached", at=str(self._address), cause=str(error))
                await trio.sleep(BACK_OFF.delay_s(failures, self._draws))

    def _learn(self, admitted: Admitted) -> None:
        self._key = admitted.identity.key

    def _is_refused(self) -> bool:
        one = None if self._key is None else self._neighbours.known.get(self._key)
        return one is not None and bool(one.refused)

    def _is_connected(self) -> bool:
        """Whether the broker behind the address is connected, whoever dialled."""
        if self._key is not None:
            return self._pool.get(self._key) is not None
        return self._finds(self._pool)

    def _finds(self, pool: ConnectionPool) -> bool:
        for connection in pool:
            if self._address in connection.admitted.hello.addresses:
                self._key = connection.identity.key
                return True
        return False
