"""The target links of a notification at a broker (Sec. 4.2, 6.2)."""

from __future__ import annotations

from attrs import frozen

from gossamer.protocol.brokers.core.messages import Hop
from gossamer.protocol.brokers.scot.memory.messages import Notification
from gossamer.protocol.brokers.scot.memory.state import State, wrong_clusters
from gossamer.protocol.brokers.scot.memory.table import Entry, Matching


@frozen
class Targets:
    """Where a notification goes from a broker.

    Attributes:
        local: subscriptions of the broker's own clients that match.
        intra: target links within the cluster, by name: those where subscriptions of this cluster
            that match came from, except where the notification came from.
        inter: target links between clusters: the neighbour in each target cluster.
        spare: links within the cluster that are no target links and do not lead back.
    """

    local: tuple[Entry, ...]
    intra: tuple[str, ...]
    inter: dict[int, str]
    spare: tuple[str, ...] = ()


def targets_of(state: State, hop: Hop, notification: Notification) -> Targets:
    """The target links of a notification that came from `hop`.

    Only the host broker of the publisher looks for target clusters in its routing table. At all
    others they are those that the header names, which is none under static routing (Algorithm 3,
    lines 7-9; Algorithm 4).
    """
    matching = _match(state, notification)
    clusters = (
        {state.labels[name].cluster for name in matching.neighbours} - {state.cluster}
        if hop.is_client
        else set(notification.targets)
    )
    inter = {c: state.secondary[c] for c in sorted(clusters) if c in state.secondary}
    state.counters.lost += len(clusters) - len(inter)
    return _targets(state, matching, None if hop.is_client else hop.name, inter)


def within_cluster(state: State, notification: Notification, source: str | None) -> Targets:
    """The target links within the cluster only, but for that to `source`."""
    return _targets(state, _match(state, notification), source, {})


def _match(state: State, notification: Notification) -> Matching:
    state.counters.matched += 1
    return state.table.directions(notification.values)


def _targets(
    state: State, matching: Matching, source: str | None, inter: dict[int, str]
) -> Targets:
    # A subscription of this cluster came from a primary neighbour, any other from a secondary one.
    primary = {name for name in matching.neighbours if state.labels[name].cluster == state.cluster}
    return Targets(
        local=matching.own,
        intra=tuple(sorted(primary - {source})),
        inter=inter,
        spare=tuple(name for name in state.primary if name not in {*primary, source}),
    )


def check_header(state: State, hop: Hop, notification: Notification) -> None:
    """Check the clusters in the header of a neighbour's notification.

    Raises `RemoteProtocolError`, and leaves everything as it was, for a cluster that does not
    exist, and for one that the notification is in or comes from. A broker with static routing takes
    the carriers of neighbours with dynamic routing, and sends their copies without delay.
    """
    if not notification.targets:
        return
    here = {state.cluster, state.labels[hop.name].cluster}
    allowed = set(range(state.position.clusters)) - here
    if not set(notification.targets) <= allowed:
        shown = ", ".join(map(str, sorted(allowed))) or "none"
        expected = f"expected no others than {shown}"
        raise wrong_clusters("Notification", hop.name, notification.targets, expected)
