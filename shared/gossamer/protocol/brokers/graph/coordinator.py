"""The coordinator (Sec. VI): samples in, trees out, and every broker can be it.

The broker of the least name among those that reach each other is coordinator. It takes office with
a term greater than all it has heard of, and whoever hears of a greater term obeys that one, so that
two never install trees at once. What it has to know all brokers tell it: their links and
subscriptions, which everybody knows; documents sampled, of which each keeps its latest for the next
coordinator; and how far they are.

Trees are installed in two steps. All brokers hold a version before any document is published in it
(`PREPARING`), and all earlier documents have arrived before earlier versions are forgotten
(`SWITCHING`). Both wait for whoever can be reached, and are told again at every tick.

Departs from the paper: its coordinator is one node, and how routes are exchanged is not said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from attrs import evolve, frozen

from gossamer.protocol.brokers.core.effects import Compute
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.graph import messages as m
from gossamer.protocol.brokers.graph.link_state import directive, report, use, whole_directive
from gossamer.protocol.brokers.graph.messages import Term, Version
from gossamer.protocol.brokers.graph.planning import least_added, solve
from gossamer.protocol.brokers.graph.settings import Problem
from gossamer.protocol.brokers.graph.state import (
    IDLE,
    PLANNING,
    PREPARING,
    SWITCHING,
    Coordination,
    GraphOutbox,
    Routes,
    State,
)
from gossamer.protocol.kernel.draws import mix

SOON_SOLVED: Final = 20_000
"""Subscriptions times documents that interpreted rules plan for in about half a second."""


@frozen
class MakePlan(Compute):
    """Make trees, and hand `Planned` with this number back; that takes long."""

    number: int
    problem: Problem

    @property
    def pays_to_compile(self) -> bool:
        """Whether the problem is one of those that take seconds."""
        return len(self.problem.interests) * len(self.problem.documents) > SOON_SOLVED

    def work(self) -> m.Planned:
        """The trees."""
        return solve(self.number, self.problem)


# What the coordinator makes trees from: brokers, links, subscriptions and sampled documents.


def absent(state: State, now: int) -> dict[str, str]:
    """Brokers that went away of late, and beside which other each hangs in trees."""
    since = now - state.settings.absence
    return state.topology.anchors(
        [one for one, lost in state.topology.lost.items() if lost > since]
    )


def routes_stand(state: State, missed: Mapping[str, str]) -> bool:
    """Whether the trees in use join all brokers by links that work.

    A broker that is away does no harm at an end of a tree.
    """
    routes = state.versions.present
    reachable = state.topology.reachable
    if routes is None or set(routes.plan.brokers) != reachable | missed.keys():
        return False
    names = routes.plan.brokers
    for tree in routes.plan.trees:
        for broker, above in enumerate(tree):
            if above >= 0 and not _stands(state, names[broker], names[above]):
                return False
    return True


def problem_of(
    state: State,
    version: Version,
    samples: Iterable[m.Sampled],
    missed: Mapping[str, str],
    *,
    comparable: bool,
) -> Problem:
    """What trees are to be made for.

    Args:
        state: of the coordinator.
        version: that the trees will be.
        samples: documents.
        missed: brokers that are away, and beside which other each hangs.
        comparable: whether the trees in use would do.
    """
    brokers = sorted(state.topology.reachable)
    numbers = {name: number for number, name in enumerate(brokers)}
    for name, beside in missed.items():
        numbers[name] = numbers[beside]  # its end of the tree is served there
    interests = [one for one in state.interests if one.broker in numbers]
    places = {one: number for number, one in enumerate(interests)}
    links = sorted(
        (numbers[one], numbers[other], cost)
        for (one, other), cost in state.topology.costs().items()
        if one < other and one in state.topology.reachable and other in state.topology.reachable
    )
    documents = []
    for sampled in samples:
        matched = state.interests.match(sampled.values)
        found = sorted(places[one] for one in matched if one in places)
        if found and sampled.id.broker in numbers:
            documents.append((numbers[sampled.id.broker], tuple(found)))
    present = state.versions.present
    return Problem(
        version=version,
        strategy=state.settings.strategy,
        brokers=tuple(brokers),
        links=tuple(links),
        absent=dict(missed),
        interests=tuple((one, numbers[one.broker]) for one in interests),
        documents=tuple(documents),
        present=present.as_it_is() if comparable and present is not None else None,
    )


def _stands(state: State, broker: str, above: str) -> bool:
    if state.topology.cost(broker, above) is not None:
        return True
    # Below a broker there may be one that is away, but nobody hangs below one that is.
    return broker not in state.topology.reachable and (
        above in state.topology.reachable or above in state.topology.lost
    )


MAX_HOPS = 255
"""Brokers that what is told to the coordinator passes at most; ways may go round for a while."""

_DRAWS = 1 << 62


# What every broker does.


def sample(state: State, document: m.Sampled) -> None:
    """Keep a document of this broker for the coordinator, with the probability that is set."""
    draw = mix.interpreted(state.settings.seed, _key(state.name), document.id.number)
    if draw >= state.settings.probability * _DRAWS:
        return
    state.samples.append(document)
    if len(state.samples) > state.settings.kept:
        state.samples.popleft()
        state.samples_sent = max(0, state.samples_sent - 1)


def report_progress(state: State, out: GraphOutbox) -> None:
    """Report how far this broker is, if the coordinator does not know."""
    if not state.term.number:
        return
    found = report(state)
    if found != state.reported:
        state.reported = found
        on_report(state, out, found)


def send_samples(state: State, out: GraphOutbox) -> None:
    """Send the coordinator the documents that were sampled since the last time."""
    _expire_own(state, out.now)
    fresh = tuple(state.samples)[state.samples_sent :]
    if fresh and state.term.number:
        state.samples_sent = len(state.samples)
        on_report(state, out, m.Samples(state.term, state.name, fresh))


def on_report(state: State, out: GraphOutbox, message: m.ToCoordinator) -> None:
    """Take what a broker tells the coordinator, or pass it on to it."""
    if message.to.broker == state.name:
        if state.coordination is None or state.coordination.term != message.to:
            state.counters.stale += 1
        elif isinstance(message, m.Report):
            state.coordination.reports[message.broker] = message
            advance(state, out, state.coordination)
        else:
            _collect(state, state.coordination, message)
        return
    hop = state.topology.way_to(message.to.broker)
    if hop is None or message.hops >= MAX_HOPS:
        state.counters.unrouted += 1
    else:
        out.send(hop, _passed_on(message))


# What the coordinator does.


def look_around(state: State, out: GraphOutbox) -> None:
    """Take office if it is this broker's turn, and see to what is due."""
    if state.coordination is None and _is_its_turn(state):
        _take_coordination(state, out)
    coordination = state.coordination
    if coordination is None:
        return
    assign(state, out, state.interests)
    if coordination.phase == IDLE and state.versions.oldest < state.versions.using:
        # What another coordinator began, or this one before it lost its memory, is finished first.
        coordination.phase, coordination.version = SWITCHING, state.versions.using
    advance(state, out, coordination)
    if coordination.phase in (PREPARING, SWITCHING) or not _all_reported(state, coordination):
        _direct(state, out, answer=True)
    elif coordination.phase == IDLE:
        _plan_if_due(state, out, coordination)


def on_planned(state: State, out: GraphOutbox, planned: m.Planned) -> None:
    """Install trees that were made, if they save enough or the present ones do not do any more."""
    coordination = state.coordination
    if (
        coordination is None
        or coordination.phase != PLANNING
        or planned.number != coordination.question
    ):
        state.counters.stale += 1
        return
    coordination.phase = IDLE
    saved = planned.before - planned.cost
    if not coordination.forced and not saved > state.settings.threshold * planned.before:
        return
    state.counters.installed += 1
    coordination.phase, coordination.version = PREPARING, planned.plan.version
    state.versions.hold(planned.plan)
    _direct(state, out, plans=(planned.plan,), answer=True)
    assign(state, out, state.interests)
    advance(state, out, coordination)


def assign(state: State, out: GraphOutbox, interests: Iterable[Id]) -> None:
    """Give new subscriptions the tree on which they cost least more (Sec. VI)."""
    coordination = state.coordination
    if coordination is None:
        return
    found: list[tuple[Version, Id, int]] = []
    wanted = sorted(interests)
    for routes in state.versions.all():
        if routes.plan.version >= state.versions.using:
            known = set(routes.plan.brokers)
            for interest in wanted:
                if interest not in routes.groups and interest.broker in known:
                    group = _group_for(state, coordination, routes, interest)
                    routes.groups[interest] = group
                    found.append((routes.plan.version, interest, group))
    if found:
        _direct(state, out, assigned=tuple(found))


def advance(state: State, out: GraphOutbox, coordination: Coordination) -> None:
    """Take the next step of an installation, if all have taken the last one."""
    if coordination.phase == PREPARING and all(
        one is not None and one.held >= coordination.version
        for one in _reports(state, coordination, joined_by=coordination.version)
    ):
        coordination.phase = SWITCHING
        use(state, out, coordination.version)
        _direct(state, out, answer=True)
    if coordination.phase == SWITCHING and all(
        one is not None and min(one.using, one.oldest) >= coordination.version
        for one in _reports(state, coordination, joined_by=coordination.version)
    ):
        coordination.phase = IDLE
        state.versions.forget_before(coordination.version)
        _direct(state, out)


def resume(state: State) -> None:
    """Go on after this broker was loaded: whoever was making trees is gone."""
    if state.coordination is not None and state.coordination.phase == PLANNING:
        state.coordination.phase = IDLE
        state.coordination.planned_at = None


def _is_its_turn(state: State) -> bool:
    """Who is alone, and was never joined by trees, has nothing to coordinate."""
    reachable = state.topology.reachable
    useful = len(reachable) > 1 or state.versions.present is not None
    return useful and min(reachable) == state.name


def _take_coordination(state: State, out: GraphOutbox) -> None:
    state.counters.takeovers += 1
    state.term = Term(state.term.number + 1, state.name)
    state.number = 1
    state.samples_sent = 0
    state.reported = None
    state.coordination = Coordination(state.term)
    out.flood(evolve(whole_directive(state), answer=True))


def _direct(
    state: State,
    out: GraphOutbox,
    *,
    plans: tuple[m.Plan, ...] = (),
    assigned: tuple[tuple[Version, Id, int], ...] = (),
    answer: bool = False,
) -> None:
    """Tell all brokers something new."""
    state.number += 1
    out.flood(directive(state, plans=plans, assigned=assigned, answer=answer))


def _reports(
    state: State, coordination: Coordination, joined_by: Version | None = None
) -> list[m.Report | None]:
    """The last report of every broker that can be reached, and that a version joins."""
    own = report(state)
    routes = None if joined_by is None else state.versions.get(joined_by)
    joined = state.topology.reachable if routes is None else set(routes.plan.brokers)
    reachable = sorted(state.topology.reachable & joined)
    return [own if one == state.name else coordination.reports.get(one) for one in reachable]


def _all_reported(state: State, coordination: Coordination) -> bool:
    return all(one is not None for one in _reports(state, coordination))


def _plan_if_due(state: State, out: GraphOutbox, coordination: Coordination) -> None:
    _expire_samples(state, coordination, out.now)
    if state.versions.present is not None:
        # A broker without memory hears of trees before it hears how others are linked.
        state.topology.miss(state.versions.present.plan.brokers, out.now)
    missed = absent(state, out.now)
    stand = routes_stand(state, missed)
    agreed = all(
        one is not None and one.using == state.versions.using
        for one in _reports(state, coordination)
    )
    coordination.forced = not (stand and agreed)
    since = None if coordination.planned_at is None else out.now - coordination.planned_at
    if not coordination.forced and since is not None and since < state.settings.interval:
        return
    coordination.planned_at = out.now
    coordination.question = state.new_id().number
    coordination.phase = PLANNING
    state.counters.plans += 1
    version = Version(coordination.term.number, state.name, coordination.question)
    problem = problem_of(state, version, coordination.samples.values(), missed, comparable=stand)
    out.add(MakePlan(coordination.question, problem))


def _group_for(state: State, coordination: Coordination, routes: Routes, interest: Id) -> int:
    filters = state.interests.filters(interest)
    matching = [
        (one.id.broker, sorted(state.interests.match(one.values)))
        for one in coordination.samples.values()
        if any(wanted.matches(one.values) for wanted in filters)
    ]
    return least_added(routes.plan, state.topology.costs(), routes.groups, interest, matching)


def _collect(state: State, coordination: Coordination, message: m.Samples) -> None:
    for one in message.documents:
        coordination.samples[one.id] = one
    while len(coordination.samples) > state.settings.samples:
        coordination.samples.popitem(last=False)


def _expire_samples(state: State, coordination: Coordination, now: int) -> None:
    begin = now - state.settings.window
    for one in [one for one in coordination.samples.values() if one.at < begin]:
        del coordination.samples[one.id]


def _expire_own(state: State, now: int) -> None:
    while state.samples and state.samples[0].at < now - state.settings.window:
        state.samples.popleft()
        state.samples_sent = max(0, state.samples_sent - 1)


def _passed_on(message: m.ToCoordinator) -> m.ToCoordinator:
    return evolve(message, hops=message.hops + 1)


def _key(name: str) -> int:
    """A number for a name: the same everywhere and always."""
    key = 0
    for byte in name.encode():
        key = (key * 257 + byte + 1) % (1 << 61)
    return key
