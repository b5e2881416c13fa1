"""Notifications around links and brokers that failed or are overloaded, by parallel links.

Beyond the paper, which leaves faults out (Sec. 5); `ScotSettings.around_failures`. No routing table
changes: subscriptions made before the failure lead where they led, and only the missing step is
replaced. A broker knows that a link does not work, not whether the broker behind it lives.

- Into another cluster: a primary neighbour enters that cluster from its own region (`Detour`).
- Within the cluster, from region r to region s: a secondary neighbour takes it from r to s in its
  own cluster, and back into the first one there (`Bypass`). If the broker of that cluster in s does
  not answer either, it is taken on to every region behind s but r, past the dead broker.

Every subscriber at a living broker is still served exactly once, without a loop, if one link or one
broker failed and there are two regions and two clusters at least:

- A detour moves away on the tree until a link into the cluster works, which is one or two hops. It
  enters a cluster that would else have been entered by the failed link, so still once; from
  wherever it is entered, its tree leads to all subscribers.
- A tree without the failed link or broker falls into parts. A notification comes into one of them,
  and only the broker there beside the failure sees it; that takes the notification to the others.
  Each is entered once, beside the failure and with the order not to look there again (`past`). A
  bypass moves away from `past` on the tree of another cluster, and cannot come back. Where more has
  failed and that cluster has no way on either, the next does it, in the order of clusters.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from gossamer.protocol.brokers.core.messages import Hop
from gossamer.protocol.brokers.scot.messages import Bypass, Detour, Notification
from gossamer.protocol.brokers.scot.settings import DYNAMIC
from gossamer.protocol.brokers.scot.state import ScotOutbox, State, wrong_clusters
from gossamer.protocol.brokers.scot.table import Entry, Matching
from gossamer.protocol.brokers.scot.topology import NO_CLUSTERS, BrokerLabel, ClusterBitVector
from gossamer.protocol.kernel.errors import RemoteProtocolError

# The target links of a notification at a broker (Sec. 4.2, 6.2).


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


# Notifications around overloaded links within a cluster, by a parallel link of another one.
#
# Beyond the paper, whose Algorithm 4 relieves links between clusters only (Sec. 6.3: "intra-cluster
# dynamic routing is part of the future work"); `ScotSettings.cluster_detours`. Where a target link
# from region r to region s of a cluster is overloaded and a link of region r to another cluster is
# not, a copy takes that link, the link from r to s there, and the link back, as a `Bypass`.
#
# Every subscriber is still served exactly once, without a loop, whatever the loads:
#
# - Brokers of the other cluster do not route a `Bypass`: they hand it on, by the cluster and region
#   that it names. It comes to the broker in s, as the copy on the link would have, and nowhere
#   else.
# - So brokers make the same copies for the same brokers as without detours, and each copy takes one
#   hop or three. What `dynamic_routing` says of copies holds as it stands; the messages within
#   clusters are three times as many at most.
# - A copy that names clusters to see to is never on an overloaded link within a cluster (cases I to
#   III), so detours carry plain copies only, and no case changes.
#
# Copies of different hops may meet at a broker that hands them on; none is routed there. Settings
# refuse this together with ways around failures, where a `Bypass` that cannot enter its region says
# that the broker there is dead, which it does not if the link from the first region works.


def send(
    state: State,
    out: ScotOutbox,
    notification: Notification,
    name: str,
    clusters: ClusterBitVector = NO_CLUSTERS,
) -> None:
    """Send a copy of a notification to a neighbour that is up, on its link or around that."""
    copy = evolve(notification, targets=clusters)
    way = _way_around(state, name)
    if way is None or clusters:
        out.send(name, copy)
    else:
        here = state.position.label
        region = state.labels[name].region
        state.counters.detours += 1
        out.send(way, Bypass(copy, here.cluster, region, past=here.region))


def _way_around(state: State, name: str) -> str | None:
    """The least loaded link to another cluster, if it is to be preferred to a primary one.

    Of equal ones that to the cluster whose number comes next after the own one, so that the
    detours of several clusters do not meet in one.
    """
    links, settings = state.links, state.settings
    if not settings.cluster_detours or settings.routing != DYNAMIC:
        return None
    if name not in state.primary or not links.overloaded(name):
        return None
    free = [
        (links.load_of(other), (cluster - state.cluster) % state.position.clusters, other)
        for cluster, other in state.secondary.items()
        if other not in state.down and not links.overloaded(other)
    ]
    return min(free)[2] if free else None


def reroute(state: State, out: ScotOutbox, notification: Notification, targets: Targets) -> Targets:
    """Send a notification around the target links that do not work; returns those that do."""
    if not state.settings.around_failures or not state.down:
        return targets
    plain = evolve(notification, targets=NO_CLUSTERS)
    for cluster, name in targets.inter.items():
        if name in state.down:
            _detour(state, out, Detour(plain, cluster))
    for name in targets.intra:
        if name in state.down:
            _bypass(state, out, plain, state.labels[name].region)
    return evolve(
        targets,
        intra=tuple(name for name in targets.intra if name not in state.down),
        inter={c: name for c, name in targets.inter.items() if name not in state.down},
        spare=tuple(name for name in targets.spare if name not in state.down),
    )


def again(
    state: State, out: ScotOutbox, name: str, message: Notification | Detour | Bypass
) -> None:
    """Send what was under way to a neighbour when its link failed, around that link.

    The neighbour may have it all the same, and passed it on.
    """
    here = state.position.label
    match message:
        case Notification():
            _notification_again(state, out, state.labels[name], message)
        case Detour():
            _detour(state, out, message)
        case Bypass() if message.region == here.region:
            _cross(state, out, message)
        case Bypass() if message.cluster == here.cluster:
            _bypass(state, out, message.notification, message.region)
        case Bypass():
            there = state.labels[name]
            beside = there.region == here.region
            _to_region(state, out, message, tried=there.cluster if beside else message.cluster)


def _notification_again(
    state: State, out: ScotOutbox, label: BrokerLabel, notification: Notification
) -> None:
    """Into the cluster or part of the tree behind the link, and into each cluster that it names."""
    plain = evolve(notification, targets=NO_CLUSTERS)
    if label.cluster == state.cluster:
        _bypass(state, out, plain, label.region)
    else:
        _detour(state, out, Detour(plain, label.cluster))
    for cluster in notification.targets:
        secondary = state.secondary.get(cluster)
        if secondary is None or secondary in state.down:
            _detour(state, out, Detour(plain, cluster))
        else:
            out.send(secondary, plain)


def on_detour(state: State, out: ScotOutbox, hop: Hop, message: Detour) -> None:
    """Send a notification into another cluster by the link of this region.

    Raises `RemoteProtocolError`, and leaves everything as it was, for a cluster that does not exist
    or that the broker is in.
    """
    _check_cluster(state, hop, "Detour", message.cluster, own=False)
    name = state.secondary.get(message.cluster)
    if name is not None and name not in state.down:
        out.send(name, message.notification)
        return
    away = [one for one in _working(state, state.primary) if one != hop.name]
    if away:
        out.send(state.links.least_loaded(away), message)
    else:
        state.counters.lost += 1


def on_bypass(state: State, out: ScotOutbox, hop: Hop, message: Bypass) -> None:
    """Take a notification a step further around a link, or take it in behind that.

    Raises `RemoteProtocolError`, and leaves everything as it was, for a cluster that does not exist
    or a region that is neither this one nor beside it.
    """
    _check_cluster(state, hop, "Bypass", message.cluster, own=True)
    here = state.position.label
    if message.region not in {here.region, *state.position.primary}:
        raise RemoteProtocolError(
            f"Bypass from broker {hop.name!r} is to go to region {message.region!r}, "
            "expected its receiver's or one beside that"
        )
    if message.region != here.region:
        beside = state.labels[hop.name].region == here.region
        _to_region(state, out, message, tried=state.cluster if beside else message.cluster)
    elif message.cluster == here.cluster:
        _take_in(state, out, message)
    else:
        _cross(state, out, message)


def _detour(state: State, out: ScotOutbox, message: Detour) -> None:
    """Through a neighbour of the same cluster, as the broker of the region may be dead."""
    secondary = (name for c, name in state.secondary.items() if c != message.cluster)
    working = _working(state, state.primary) or _working(state, secondary)
    if working:
        out.send(state.links.least_loaded(working), message)
    else:
        state.counters.lost += 1


def _bypass(state: State, out: ScotOutbox, notification: Notification, region: str) -> None:
    here = state.position.label
    message = Bypass(notification, here.cluster, region, past=here.region)
    working = _working(state, state.secondary.values())
    if not working:
        state.counters.lost += 1
    elif state.settings.backups > 1:
        _by_another_cluster(state, out, message, here.cluster)
    else:
        out.send(state.links.least_loaded(working), message)


def _to_region(state: State, out: ScotOutbox, message: Bypass, tried: int) -> None:
    """Into a region by its broker of this cluster, or if that does not work by another cluster."""
    name = state.primary_in(message.region)
    if name is None or name in state.down:
        _by_another_cluster(state, out, message, tried)
    else:
        out.send(name, message)


def _by_another_cluster(state: State, out: ScotOutbox, message: Bypass, tried: int) -> None:
    """To the broker of this region in the next cluster after those that were tried.

    They are tried in turn, from the cluster of the bypass on, and none before one that was.
    """
    clusters = state.position.clusters
    begin = (tried - message.cluster) % clusters
    for step in range(begin + 1, clusters):
        name = state.secondary.get((message.cluster + step) % clusters)
        if name is not None and name not in state.down:
            out.send(name, message)
            return
    state.counters.lost += 1


def _cross(state: State, out: ScotOutbox, message: Bypass) -> None:
    """Back into the cluster, or past its broker in this region, which is dead."""
    name = state.secondary.get(message.cluster)
    if name is not None and name not in state.down:
        out.send(name, message)
        return
    here = state.position.label.region
    for region in sorted(state.position.primary - {message.past}):
        onward = evolve(message, region=region, past=here)
        _to_region(state, out, onward, tried=message.cluster)
    state.take_over.stand_in(state, out, message.notification, message.cluster)


def _take_in(state: State, out: ScotOutbox, message: Bypass) -> None:
    targets = within_cluster(state, message.notification, state.primary_in(message.past))
    out.deliver_to(message.notification, targets.local)
    for name in reroute(state, out, message.notification, targets).intra:
        send(state, out, message.notification, name)


def _working(state: State, names: Iterable[str]) -> list[str]:
    return [name for name in names if name not in state.down]


def _check_cluster(state: State, hop: Hop, kind: str, cluster: int, *, own: bool) -> None:
    highest = state.position.clusters - 1
    if not 0 <= cluster <= highest or (not own and cluster == state.cluster):
        expected = f"expected one from 0 to {highest}" + ("" if own else " but its receiver's")
        raise wrong_clusters(kind, hop.name, [cluster], expected)
