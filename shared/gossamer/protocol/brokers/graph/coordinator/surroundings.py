"""What the coordinator makes trees from: brokers, links, subscriptions and sampled documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gossamer.protocol.brokers.graph.memory.messages import Sampled, Version
from gossamer.protocol.brokers.graph.memory.problem import Problem
from gossamer.protocol.brokers.graph.memory.state import State


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
    samples: Iterable[Sampled],
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
