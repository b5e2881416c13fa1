"""What a client asks of the node itself, over whichever connection there is."""

from __future__ import annotations

import json
from typing import Any

from gossamer.client.errors import RefusedByNodeError
from gossamer.client.frames import BROKER, PEER, Frame
from gossamer.client.links import Links


class NodeRequests:
    """Asks the node what it knows, and what it is to do; others ask more of it.

    Attributes:
        role: what the node is, `PEER` or `BROKER` of `gossamer.client.frames`.
    """

    def __init__(self, links: Links) -> None:
        self.role = PEER
        self._links = links

    async def status(self) -> dict[str, Any]:
        """What the node says of itself."""
        return await self._json("status")

    async def snapshot(self) -> dict[str, Any]:
        """The overlay as the peer sees it; see `gossamer.node.page.snapshot`."""
        return await self._json("snapshot")

    async def members(self) -> dict[str, Any]:
        """The members of the cluster that the node has met, and what happened to them."""
        return await self._json("members")

    async def cluster(self) -> dict[str, Any]:
        """The members of the cluster, and what those of them say of themselves who answer now."""
        return await self._json("cluster")

    async def tables(self) -> dict[str, Any]:
        """The tables of a broker; see `gossamer.node.broker.contract.host`.

        Raises:
            RefusedByNodeError: the node is none.
        """
        self._check_role("tables")
        return await self._json("tables")

    async def trace(self, event: str) -> list[dict[str, Any]]:
        """The brokers that a publication passed, as far as they remember it.

        Raises:
            RefusedByNodeError: the node is no broker, or does not remember it.
        """
        self._check_role("routes")
        return list(json.loads((await self._request("trace", id=event))["result"]))

    async def metrics(self) -> str:
        """The metrics in Prometheus' text format."""
        return str((await self._request("metrics"))["result"])

    async def reload(self) -> dict[str, Any]:
        """Have the node read its configuration anew: `changed` is in force, `restart` is not.

        Raises:
            RefusedByNodeError: it cannot be used; the node goes on as before.
        """
        return await self._json("reload")

    async def shutdown(self) -> None:
        """Stop the node."""
        await self._links.ask(lambda link: link.request("shutdown"), repeat=False)

    async def _json(self, kind: str) -> dict[str, Any]:
        result: dict[str, Any] = json.loads((await self._request(kind))["result"])
        return result

    async def _request(self, kind: str, **fields: object) -> Frame:
        """A request that does no harm when it is made twice."""
        return await self._links.ask(lambda link: link.request(kind, **fields), repeat=True)

    def _check_role(self, what: str) -> None:
        if self.role != BROKER:
            reason = f"the node is a peer and has no {what}, expected a broker (node.role)"
            raise RefusedByNodeError("role", reason)

    def check_peer(self, what: str) -> None:
        """Refuse at a broker what only peers have.

        Raises:
            RefusedByNodeError: the node is a broker.
        """
        if self.role == BROKER:
            reason = f"the node is a broker and has no {what}, expected a peer (node.role)"
            raise RefusedByNodeError("role", reason)
