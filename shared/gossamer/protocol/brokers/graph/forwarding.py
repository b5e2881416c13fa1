"""Documents on trees: every subscriber that matches gets each exactly once (Sec. III-A).

A document goes, for each group with a subscription that it matches, on the group's tree in the
version that its publisher's broker uses; the version is in its header, and it is never on another.
A broker passes it on over those links of the tree behind which a subscription of the group matches.
A client is in one group of a version, and a tree leads to a broker in one way: so it comes once.

Who sends a document on answers for it until all behind that link have it, and confirms it only
then to where it came from. Where a link fails, the broker before it answers for the document
alone: it sends it again if the link comes back, and otherwise, once there are trees without that
link, to just those brokers that were behind it. Some of these may have had it, and know that.
So one broker or link that fails loses nothing, of what others published.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import evolve

from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.graph import messages as m
from gossamer.protocol.brokers.graph.messages import Version
from gossamer.protocol.brokers.graph.network_view import Matches
from gossamer.protocol.brokers.graph.state import GraphOutbox, InFlight, Parked, State
from gossamer.protocol.content.filters import Publication as Values

NO_GROUP: Final = -1
NO_HOP: Final = ""


def publish(state: State, out: GraphOutbox, id_: Id, values: Values) -> None:
    """Send out what a client of this broker published."""
    state.counters.published += 1
    document = m.Document(id_, id_, m.NO_VERSION, NO_GROUP, values)
    found = state.interests.match(values)
    _deliver(state, out, document, _here(state, found))
    _set_out(state, out, document, found)


def on_document(state: State, out: GraphOutbox, source: str, document: m.Document) -> None:
    """Take a document of a neighbour: deliver it here, and pass it on."""
    routes = state.versions.get(document.version)
    if routes is None:
        out.send(source, m.Return(document.issue, document.group))
        return
    in_flight = state.in_flight.get((document.issue, document.group))
    if in_flight is None:
        _relay(state, out, document, source, state.interests.match(document.values))
    elif in_flight.source is None:
        in_flight.source = source
    elif in_flight.source != source:
        out.send(source, m.Confirm(document.issue, document.group))


def on_confirm(state: State, out: GraphOutbox, source: str, message: m.Confirm) -> None:
    """All behind a link have a document."""
    in_flight = state.in_flight.get((message.issue, message.group))
    if in_flight is None or in_flight.pending.pop(source, None) is None:
        state.counters.stale += 1
    else:
        _settle(state, out, in_flight)


def on_return(state: State, out: GraphOutbox, source: str, message: m.Return) -> None:
    """A neighbour does not know a document's trees; it sets out anew once there are others."""
    in_flight = state.in_flight.get((message.issue, message.group))
    if in_flight is None or source not in in_flight.pending:
        state.counters.stale += 1
        return
    targets = in_flight.pending.pop(source)
    _park(state, out, in_flight.document, source, targets)
    _settle(state, out, in_flight)


def on_link_down(state: State, out: GraphOutbox, neighbour: str) -> None:
    """Answer alone for what a neighbour has not confirmed."""
    for in_flight in list(state.in_flight.values()):
        targets = in_flight.pending.pop(neighbour, None)
        if targets is not None:
            _park(state, out, in_flight.document, neighbour, targets)
            _settle(state, out, in_flight)


def on_link_ready(state: State, out: GraphOutbox, neighbour: str) -> None:
    """Send a neighbour that can take documents again what waits for it."""
    if not any(one.hop == neighbour for one in state.parked):
        return
    for one in _take(state, lambda one: one.hop == neighbour):
        if state.versions.get(one.document.version) is None:
            _reissue(state, out, one.document, one.targets)
        else:
            assert one.targets is not None
            in_flight = state.in_flight.get((one.document.issue, one.document.group))
            if in_flight is None:
                in_flight = InFlight(one.document, None)
                state.take_in_flight(in_flight)
            in_flight.pending[neighbour] = one.targets
            out.send(neighbour, one.document)


def on_version_used(state: State, out: GraphOutbox, version: Version) -> None:
    """Let documents that wait on earlier trees set out anew on those that are used now."""
    for one in _take(state, lambda one: one.document.version < version):
        _reissue(state, out, one.document, one.targets)


def _take(state: State, wanted: Callable[[Parked], bool]) -> list[Parked]:
    found = [one for one in state.parked if wanted(one)]
    kept = [one for one in state.parked if not wanted(one)]
    state.parked.clear()
    state.parked.extend(kept)
    return found


def _reissue(
    state: State, out: GraphOutbox, document: m.Document, targets: frozenset[str] | None
) -> None:
    """Send a document out anew on the present trees, to some brokers."""
    state.counters.reissued += 1
    routes = state.versions.present
    if routes is not None and targets is not None:
        state.counters.lost += len(targets.difference(routes.plan.brokers))
    found = state.interests.match(document.values)
    again = evolve(document, issue=state.new_id(), version=m.NO_VERSION, only=targets)
    _set_out(state, out, again, found)


def _set_out(state: State, out: GraphOutbox, document: m.Document, found: Matches) -> None:
    """Begin the way of a document on the trees in use; before there are any it waits."""
    routes = state.versions.present
    wanted = [one for one in found if _is_for(document, one) and one.broker != state.name]
    if routes is None:
        if wanted:
            _park(state, out, document, NO_HOP, document.only)
        return
    groups = {routes.groups[one] for one in wanted if one in routes.groups}
    for group in sorted(groups):
        set_out = evolve(document, version=state.versions.using, group=group)
        _relay(state, out, set_out, None, found)


def _relay(
    state: State, out: GraphOutbox, document: m.Document, source: str | None, found: Matches
) -> None:
    routes = state.versions.get(document.version)
    assert routes is not None
    group = document.group
    wanted = [one for one in found if routes.groups.get(one) == group and _is_for(document, one)]
    if source is not None:
        _deliver(state, out, document, _here(state, {one: found[one] for one in wanted}))
    ways: dict[str, set[str]] = {}
    for one in wanted:
        if one.broker != state.name:
            hop = routes.way(group, one.broker)
            if hop is not None and hop != source:
                ways.setdefault(hop, set()).add(one.broker)
    in_flight = InFlight(document, source)
    state.take_in_flight(in_flight)
    for hop in sorted(ways):
        targets = frozenset(ways[hop])
        if state.ready(hop):
            in_flight.pending[hop] = targets
            out.send(hop, document)
        else:
            _park(state, out, document, hop, targets)
    _settle(state, out, in_flight)


def _park(
    state: State, out: GraphOutbox, document: m.Document, hop: str, targets: frozenset[str] | None
) -> None:
    """Let a document wait for a link, or send it out on later trees if there are some."""
    if hop != NO_HOP and document.version < state.versions.using:
        _reissue(state, out, document, targets)
        return
    state.parked.append(Parked(document, hop, targets))
    if len(state.parked) > state.settings.waiting:
        state.parked.popleft()
        state.counters.lost += 1


def _settle(state: State, out: GraphOutbox, in_flight: InFlight) -> None:
    """Confirm a document if all that it was sent to have confirmed it."""
    if in_flight.pending:
        return
    state.release(in_flight)
    if in_flight.source is not None:
        out.send(in_flight.source, m.Confirm(in_flight.document.issue, in_flight.document.group))


def _is_for(document: m.Document, interest: Id) -> bool:
    return document.only is None or interest.broker in document.only


def _here(state: State, found: Matches) -> Matches:
    return {one: filters for one, filters in found.items() if one.broker == state.name}


def _deliver(state: State, out: GraphOutbox, document: m.Document, matched: Matches) -> None:
    """Hand a document to clients, but not to those that had it."""
    for interest in sorted(matched):
        session = state.hosted.get(interest)
        if session is None:
            continue
        had = state.delivered.setdefault(document.id, set())
        if session.name in had:
            state.counters.duplicates += 1
            continue
        had.add(session.name)
        labels = [label for one in matched[interest] for label in session.labels(one)]
        out.deliver(session.name, document, tuple(sorted(labels)))
    while len(state.delivered) > state.settings.remembered:
        state.delivered.popitem(last=False)
