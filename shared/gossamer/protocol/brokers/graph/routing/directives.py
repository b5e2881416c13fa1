"""What the coordinator wants of all brokers, as each of them carries it out.

Directives flood as updates of the link state do. All brokers obey that of the latest term, and no
earlier one. A broker never goes back to an earlier version.
"""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.protocol.brokers.graph.memory.messages import Directive, Plan, Report, Version
from gossamer.protocol.brokers.graph.memory.outbox import GraphOutbox
from gossamer.protocol.brokers.graph.memory.state import State
from gossamer.protocol.brokers.graph.routing.forwarding import on_version_used


def whole_directive(state: State) -> Directive:
    """All that holds, for a neighbour that has missed some of it."""
    versions = state.versions
    return Directive(
        term=state.term,
        number=state.number,
        using=versions.using,
        oldest=versions.oldest,
        plans=tuple(one.as_it_is() for one in versions.all()),
        whole=True,
    )


def on_directive(state: State, out: GraphOutbox, source: str, directive: Directive) -> str | None:
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


def _hold(state: State, plans: Iterable[Plan]) -> None:
    """Hold the versions that join this broker, also those of a coordinator of former neighbours."""
    for plan in plans:
        if state.name in plan.brokers and plan.version >= state.versions.oldest:
            state.versions.hold(plan)


def report(state: State) -> Report:
    """How far this broker is."""
    versions = state.versions
    return Report(state.term, state.name, versions.latest, versions.using, state.oldest_in_use)
