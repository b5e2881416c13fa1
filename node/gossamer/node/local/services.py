"""What the node gives to those who serve its clients, and what it counts of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

import trio
from attrs import asdict, define, field, frozen

from gossamer.node.config.node import Local
from gossamer.node.errors import NodeError
from gossamer.node.local.peer_like import EventLike, PeerLike
from gossamer.node.peer.membership.admission import MembershipStatus
from gossamer.node.transport.limits import Limits
from gossamer.protocol.kernel.errors import InvariantError, ProtocolError

# How long what has come already may take to be given away when a subscription ends.
DRAIN_S: Final = 1.0

# What a request may meet with no defect being to blame.
REFUSALS = (NodeError, ProtocolError)


@define
class LocalCounts:
    """What has happened at the local socket.

    Attributes:
        attached: clients let in.
        turned_away: clients not let in, by cause.
        ended: connections that ended, by cause; "stalled" are clients too slow for their events.
        requests: taken from clients.
        refused: of those, requests refused, by the name of the error.
        unacknowledged: events published for clients, and not acknowledged in time.
        events_sent: to clients, repetitions included.
        acknowledged: of those, acknowledged by clients with a name.
    """

    attached: int = 0
    turned_away: Counter[str] = field(factory=Counter)
    ended: Counter[str] = field(factory=Counter)
    requests: int = 0
    refused: Counter[str] = field(factory=Counter)
    unacknowledged: int = 0
    events_sent: int = 0
    acknowledged: int = 0

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


@frozen(kw_only=True)
class NodeServices:
    """What every node gives to its clients.

    Attributes:
        limits: what clients may cost.
        describe: what `status` tells, as plain values.
        snapshot: what `snapshot` tells, as plain values.
        metrics_text: what `metrics` tells.
        list_members: the members of the cluster, as `MemberTable.to_json` gives them.
        cluster: what `cluster` tells, as `monitoring.cluster.cluster_view` gives it.
        stop: ends the node.
        reload: has it read its configuration anew; what `reload` tells, as plain values.
        counts: added to by whoever serves clients.
        standing: of the node in its cluster.
    """

    limits: Local
    describe: Callable[[], Mapping[str, Any]]
    snapshot: Callable[[], Mapping[str, Any]]
    metrics_text: Callable[[], bytes]
    list_members: Callable[[], Mapping[str, Any]]
    cluster: Callable[[], Awaitable[Mapping[str, Any]]]
    stop: Callable[[], None]
    reload: Callable[[], Mapping[str, Any]] = lambda: {"changed": [], "restart": []}
    counts: LocalCounts = field(factory=LocalCounts)
    standing: MembershipStatus = field(factory=MembershipStatus)


def transport_limits(limits: Local) -> Limits:
    """The bounds of one client's connection.

    Clients are not pinged: a socket of this machine tells at once when its other end is gone.
    """
    return Limits(
        queue_bytes=limits.queue_bytes,
        frames_per_second=limits.requests_per_s,
        frames_burst=2 * limits.requests_per_s,
        ping_seconds=3600.0,
        silence_seconds=86_400.0,
        connections=limits.clients,
    )


def check_refusal(error: Exception) -> None:
    """Let an error pass that says something to the client, and raise any other."""
    if isinstance(error, InvariantError):
        raise error


async def feed(
    peer: PeerLike,
    expression: str,
    take: Callable[[EventLike], Awaitable[None]],
    *,
    past_s: float = 0.0,
    task_status: trio.TaskStatus[trio.CancelScope],
) -> None:
    """Give what matches ``expression`` to ``take`` until the scope it starts with is cancelled.

    It is in force for ``past_s`` already: what came since is still given.

    What has come by then is still given: a node that stops in order loses nothing that it has.

    Raises:
        ExpressionError, CapacityError: the peer does not take the subscription.
    """
    events: AsyncIterator[EventLike] | None = None
    interrupted: EventLike | None = None
    with trio.CancelScope() as scope:
        try:
            async with peer.subscribe(expression, past_s=past_s) as events:
                task_status.started(scope)
                async for event in events:
                    interrupted = event
                    await take(event)
                    interrupted = None
        except trio.Cancelled:
            if events is not None:
                await _drain(events, interrupted, take)
            raise


async def _drain(
    events: AsyncIterator[EventLike],
    interrupted: EventLike | None,
    take: Callable[[EventLike], Awaitable[None]],
) -> None:
    with trio.move_on_after(DRAIN_S, shield=True):
        if interrupted is not None:
            await take(interrupted)
        async for event in events:
            await take(event)
