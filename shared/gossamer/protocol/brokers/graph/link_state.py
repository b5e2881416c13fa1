"""Link state, by which each broker announces its links to all, and the coordinator's directives.

Updates of a broker are numbered, and links are first in, first out, so that all receive them in
order and pass each on once. When a link comes up, its ends tell each other how much they know, and
then what the other does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gossamer.protocol.brokers.core.messages import Id, unknown_neighbour
from gossamer.protocol.brokers.graph import messages as m
from gossamer.protocol.brokers.graph.forwarding import on_link_down, on_link_ready, on_version_used
from gossamer.protocol.brokers.graph.messages import Version
from gossamer.protocol.brokers.graph.state import GraphOutbox, Link, State
from gossamer.protocol.content.filters import Filter

# What the coordinator wants of all brokers, as each of them carries it out.
#
# Directives flood as updates of the link state do. All brokers obey that of the latest term, and no
# earlier one. A broker never goes back to an earlier version.


def directive(state: State, **told: Any) -> m.Directive:
    """What the broker obeys, with what is told besides."""
    using, oldest = state.versions.using, state.versions.oldest
    return m.Directive(state.term, state.number, using, oldest, **told)


def whole_directive(state: State) -> m.Directive:
    """All that holds, for a neighbour that has missed some of it."""
    plans = tuple(one.as_it_is() for one in state.versions.all())
    return directive(state, plans=plans, whole=True)


def on_directive(state: State, out: GraphOutbox, source: str, directive: m.Directive) -> str | None:
    """Carry out a directive and pass it on, unless it was heard already.

    Returns the name of a neighbour that is to be asked for what is missing before it, else None.
    """
    at, known = (directive.term, directive.number), (state.term, state.number)
    if at <= known:
        state.counters.stale += not directive.whole
        _hold(state, directive.plans)
        return None
    follows = directive.term == state.term and directive.number == state.number + 1
    if not (follows or directive.whole):
        return source
    if directive.term != state.term:
        state.samples_sent = 0
        state.coordination = None
    state.term, state.number = at
    out.flood(directive, source)
    _hold(state, directive.plans)
    for version, interest, group in directive.assigned:
        routes = state.versions.get(version)
        if routes is not None and group < len(routes.plan.trees):
            routes.groups.setdefault(interest, group)
    use(state, out, directive.using)
    state.versions.forget_before(directive.oldest)
    if directive.answer:
        state.reported = None
    return None


def use(state: State, out: GraphOutbox, version: Version) -> None:
    """Publish documents in a version from now on, if it is a later one and joins this broker."""
    if version > state.versions.using and state.versions.get(version) is not None:
        state.versions.using = version
        on_version_used(state, out, version)


def _hold(state: State, plans: Iterable[m.Plan]) -> None:
    """Hold the versions that join this broker, also those of a coordinator of former neighbours."""
    for plan in plans:
        if state.name in plan.brokers and plan.version >= state.versions.oldest:
            state.versions.hold(plan)


def report(state: State) -> m.Report:
    """How far this broker is."""
    versions = state.versions
    return m.Report(state.term, state.name, versions.latest, versions.using, state.oldest_in_use)


# No broker has told so much: who says so would leave no numbers for what comes.
_NONSENSE = 1 << 62

# What this broker tells.


def announce_links(state: State, out: GraphOutbox, besides: str | None = None) -> None:
    """Tell all neighbours but one which links of this broker work."""
    links = {name: state.links[name].cost for name in sorted(state.links) if state.links[name].up}
    state.topology.set_links(state.name, links, out.now)
    out.flood(m.LinksChanged(state.name, _next_number(state), links), besides)


def announce_interest(
    state: State, out: GraphOutbox, interest: Id, added: Iterable[Filter], removed: Iterable[Filter]
) -> None:
    """Tell all how a subscription of this broker has changed."""
    more, less = tuple(added), tuple(removed)
    if more or less:
        state.interests.add(interest, more)
        state.interests.remove(interest, less)
        out.flood(m.InterestChanged(state.name, _next_number(state), interest, more, less))


def summary(state: State) -> m.Summary:
    """How much is known here."""
    return m.Summary(dict(sorted(state.topology.numbers.items())), state.term, state.number)


def record_of(state: State, broker: str) -> m.Record:
    """All that is known of a broker."""
    interests = {one: state.interests.filters(one) for one in state.interests.of(broker)}
    links = state.topology.links.get(broker, {})
    return m.Record(broker, state.topology.numbers[broker], dict(links), interests)


def on_neighbour_up(state: State, out: GraphOutbox, name: str, cost: float) -> None:
    """A link works: tell its other end how much is known here."""
    link = state.links.setdefault(name, Link(name, cost))
    if link.up and link.ready:
        on_neighbour_down(state, out, name)
    link.cost, link.up, link.ready = cost, True, False
    announce_links(state, out, besides=name)
    out.send(name, summary(state))


def on_neighbour_down(state: State, out: GraphOutbox, name: str) -> None:
    """A link does not work; raises `RemoteProtocolError`."""
    link = state.links.get(name)
    if link is None:
        raise unknown_neighbour(name)
    link.up = link.ready = False
    announce_links(state, out)
    on_link_down(state, out, name)


def on_summary(state: State, out: GraphOutbox, source: str, message: m.Summary) -> None:
    """Tell a neighbour what it does not know, and send it documents if it knows as much."""
    for broker in sorted(state.topology.numbers):
        if state.topology.numbers[broker] > message.numbers.get(broker, -1):
            out.send(source, record_of(state, broker))
    known = (message.term, message.number)
    here = (state.term, state.number)
    if known < here or (known != here and state.versions.present is not None):
        out.send(source, whole_directive(state))
    if known <= here:
        make_ready(state, out, source)


def make_ready(state: State, out: GraphOutbox, name: str) -> None:
    """Send a neighbour documents from now on."""
    link = state.links[name]
    if link.up and not link.ready:
        link.ready = True
        on_link_ready(state, out, name)


# What other brokers tell.


def on_update(state: State, out: GraphOutbox, source: str, update: m.LinkStateUpdate) -> bool:
    """Take over an update of a broker and pass it on; returns whether it was new.

    If one before it is missing, the neighbour is asked for it.
    """
    known = state.topology.numbers.get(update.broker, -1)
    if update.broker == state.name:
        _announce_again(state, out, update.number)
        return False
    if update.number <= known:
        state.counters.stale += 1
        return False
    if not isinstance(update, m.Record) and update.number > known + 1:
        out.send(source, summary(state))
        return False
    state.topology.numbers[update.broker] = update.number
    match update:
        case m.Record(broker, _, links, interests):
            state.topology.set_links(broker, links, out.now)
            state.interests.replace(broker, interests)
        case m.LinksChanged(broker, _, links):
            state.topology.set_links(broker, links, out.now)
        case m.InterestChanged(_, _, interest, added, removed):
            state.interests.add(interest, added)
            state.interests.remove(interest, removed)
    out.flood(update, source)
    return True


def _announce_again(state: State, out: GraphOutbox, number: int) -> None:
    """Tell all of this broker, if they remember it from a life that it has forgotten itself."""
    if state.update_number < number < _NONSENSE:
        state.update_number = number
        _next_number(state)
        out.flood(record_of(state, state.name))


def _next_number(state: State) -> int:
    state.update_number += 1
    state.topology.numbers[state.name] = state.update_number
    return state.update_number
