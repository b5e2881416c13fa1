"""The versions of trees that a broker holds: on which tree, and by which neighbour, to whom."""

from __future__ import annotations

from collections import deque

from attrs import define, evolve, field

from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.graph.messages import NO_VERSION, Plan, Version


@define(eq=False)
class Routes:
    """One version as a broker uses it.

    Attributes:
        plan: as it was made.
        groups: the tree of each subscription, those included that came later.
    """

    plan: Plan
    groups: dict[Id, int]
    _name: str
    _ways: dict[int, dict[str, str]] = field(factory=dict)

    def way(self, group: int, broker: str) -> str | None:
        """The neighbour by which a tree leads from here to a broker; None where it does not."""
        if group not in self._ways:
            self._ways[group] = self._ways_of(group)
        return self._ways[group].get(broker)

    def as_it_is(self) -> Plan:
        """The plan with the subscriptions that came later."""
        return evolve(self.plan, groups=dict(sorted(self.groups.items())))

    def _ways_of(self, group: int) -> dict[str, str]:
        names = self.plan.brokers
        beside: dict[str, list[str]] = {}
        for broker, above in zip(names, self.plan.trees[group], strict=True):
            if above >= 0:
                beside.setdefault(broker, []).append(names[above])
                beside.setdefault(names[above], []).append(broker)
        ways = {other: other for other in beside.get(self._name, ())}
        queue = deque(ways)
        while queue:
            one = queue.popleft()
            for other in beside[one]:
                if other not in ways and other != self._name:
                    ways[other] = ways[one]
                    queue.append(other)
        return ways


@define(eq=False)
class Versions:
    """All versions that a broker holds.

    Attributes:
        using: that in which it publishes documents.
        oldest: those before it are forgotten.
    """

    name: str
    using: Version = NO_VERSION
    oldest: Version = NO_VERSION
    _held: dict[Version, Routes] = field(factory=dict)

    def get(self, version: Version) -> Routes | None:
        """A version, or None if it is not held."""
        return self._held.get(version)

    @property
    def present(self) -> Routes | None:
        """The version in use, None before there are trees."""
        return self._held.get(self.using)

    @property
    def latest(self) -> Version:
        """The latest version held."""
        return max(self._held, default=NO_VERSION)

    def all(self) -> list[Routes]:
        """Everything held, the oldest first."""
        return [self._held[version] for version in sorted(self._held)]

    def hold(self, plan: Plan) -> None:
        """Hold a version from now on; of one that is held, take over what is new."""
        held = self._held.get(plan.version)
        if held is None:
            self._held[plan.version] = Routes(plan, dict(plan.groups), self.name)
        else:
            held.groups.update(plan.groups)

    def forget_before(self, version: Version) -> None:
        """Forget versions before one, but never that in use or a later one."""
        self.oldest = max(self.oldest, version)
        for one in [one for one in self._held if one < min(version, self.using)]:
            del self._held[one]
