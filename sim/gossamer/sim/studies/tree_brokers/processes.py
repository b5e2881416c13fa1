"""Business processes with monitors and auditors (incremental paper, Sec. V-C).

Processes are deployed on execution engines: small ones of three activities on one engine, medium
ones of ten across a domain, large ones of 26 across the system. An activity begins when those
before it have completed: its engine subscribes to their messages, publishes when it is done itself,
and announces that it will. "30 % of the processes are monitored by a client that subscribes to the
associated control flow messages", and four auditors "periodically subscribe to all process trigger
messages for a period of one minute every ten minutes".

An engine announces all that it publishes in one advertisement: the paper's critical distances are
those of publishers, ours of advertisements.

What the paper leaves open is chosen here: a process is triggered once a minute, and an activity
works for half a minute on average, so that about ten instances of a large process run at a time,
each with subscriptions of its own; activities fork into two and join again by turns; every other
instance runs the middle third of its process twice; there is an auditor in each domain, and all
audit at the same time unless ``stagger`` says otherwise. Messages come at their times whatever
happens to those before them, so that they are the same under every covering.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from heapq import heappop, heappush
from itertools import count, pairwise
from typing import Final, NamedTuple

import attrs
import numpy as np

from gossamer.protocol.brokers.core.messages import FromClient, Subscribe, Unsubscribe
from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.content.filters.constraint import Constraint
from gossamer.protocol.content.filters.predicates import constraint_of
from gossamer.protocol.content.grammar import Comparison, Operator
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.tree_brokers.scene import MINUTE, NUMBER, SECOND, Placed, Step, publishes
from gossamer.sim.studies.tree_brokers.topology import BrokerOverlay, workflow_40
from gossamer.sim.study.draws import choices, rows_from, uniform

SMALL, MEDIUM, LARGE = 3, 10, 26
_START: Final = "start"
EVERYTHING, TRIGGERS = "everything", "triggers"
_AUDITED: Final = {
    EVERYTHING: parse("present(process)"),
    TRIGGERS: parse(f'activity == "{_START}"'),
}
# Whether an instance loops, and how long each of its activities takes, twice if it does.
_DRAWS: Final = 1 + 2 * LARGE

# The seed's streams.
_DOMAINS, _ENGINES, _MONITORS, _AUDITORS, _PHASES, _WORK = 241, 242, 243, 244, 245, 246


class Process(NamedTuple):
    """A process as deployed.

    Attributes:
        number: of the process.
        stages: activities that run side by side, stage after stage.
        engines: the broker of each activity's engine.
    """

    number: int
    stages: tuple[tuple[int, ...], ...]
    engines: tuple[str, ...]

    @property
    def name(self) -> str:
        """As messages have it."""
        return f"P{self.number}"


_Doing = tuple[int, str, FromClient | dict[str, object]]
"""A step in the making: when, at which broker, and a message or what is published."""


@attrs.frozen(kw_only=True)
class Processes:
    """Processes, monitors and auditors; all times are microseconds.

    Attributes:
        overlay: its regions are the domains, its subscriber hosts have the engines.
        small, medium, large: processes of each size.
        monitored: share of processes with a monitor.
        period: time between two instances of a process.
        work: mean time that an activity takes; half to three halves of it, all equally likely.
        lead: time from an instance's subscriptions to its trigger.
        auditors: how many.
        audited: what they subscribe to, "all process trigger messages": "everything" that processes
            send, which triggers activities; "triggers": only the messages that trigger a process.
        audit_every, audit: how often each audits, and for how long.
        first_audit: when the first audit begins.
        stagger: time from the beginning of an auditor's audit to that of the next one's.
        seed: of all draws.
    """

    overlay: BrokerOverlay = attrs.field(factory=workflow_40)
    small: int = 80
    medium: int = 80
    large: int = 40
    monitored: float = 0.3
    period: int = MINUTE
    work: int = 30 * SECOND
    lead: int = 5 * SECOND
    auditors: int = 4
    audited: str = EVERYTHING
    audit_every: int = 10 * MINUTE
    audit: int = MINUTE
    first_audit: int = MINUTE
    stagger: int = 0
    seed: int = 1

    def __attrs_post_init__(self) -> None:
        if self.small + self.medium + self.large < 1:
            raise ScenarioError(None, "workload.small", self.small, "at least one process in all")
        if not 0 <= self.monitored <= 1:
            raise ScenarioError(None, "workload.monitored", self.monitored, "from 0 to 1")
        if not 0 < self.audit < self.audit_every:
            expected = f"from 1 to less than workload.audit_every, {self.audit_every}"
            raise ScenarioError(None, "workload.audit", self.audit, expected)
        if self.audited not in _AUDITED:
            expected = f"one of {', '.join(_AUDITED)}"
            raise ScenarioError(None, "workload.audited", self.audited, expected)
        for name in ("period", "work"):
            if getattr(self, name) < 1:
                raise ScenarioError(None, f"workload.{name}", getattr(self, name), "at least 1")

    def processes(self) -> list[Process]:
        """All processes as deployed, small ones first."""
        sizes = [SMALL] * self.small + [MEDIUM] * self.medium + [LARGE] * self.large
        return [self._deployed(number, size) for number, size in enumerate(sizes)]

    def advertisements(self) -> Iterator[Placed]:
        """Every engine announces that it publishes messages of processes."""
        for engine in self.overlay.publisher_hosts:
            offer = (
                f'engine == "{engine}" and present(process) and present(activity) '
                f"and present(instance) and present({NUMBER})"
            )
            yield Placed(engine, "engine", parse(offer))

    def standing(self) -> Iterator[Placed]:
        """Monitors, and what instances ask for that began before the scene."""
        yield from self.monitors()
        for at, broker, message in self._doings(0):
            if at < 0 and isinstance(message, Subscribe):
                yield Placed(broker, message.label, message.filter)

    def monitors(self) -> Iterator[Placed]:
        """Of the processes with the lowest draws, an exact share of all."""
        processes = self.small + self.medium + self.large
        hosts = self.overlay.subscriber_hosts
        draws = uniform(self.seed, _MONITORS, rows_from(0, processes), 0)
        homes = choices(self.seed, _MONITORS, rows_from(0, processes), 1, len(hosts))
        for one in np.argsort(draws, kind="stable")[: round(self.monitored * processes)].tolist():
            wanted = parse(f'process == "P{one}"')
            yield Placed(hosts[int(homes[one])], f"monitor of P{one}", wanted)

    def steps(self, span: int) -> Iterator[Step]:
        """Instances and auditors."""
        numbers = count()
        for at, broker, message in self._doings(span):
            if at < 0:
                continue
            if isinstance(message, dict):
                yield publishes(at, broker, next(numbers), message)
            else:
                yield Step(at, broker, message)

    def _deployed(self, number: int, size: int) -> Process:
        engines = self.overlay.subscriber_hosts
        if size < LARGE:
            domains = list(self.overlay.regions().values())
            chosen = choices(self.seed, _DOMAINS, rows_from(number, 1), 0, len(domains))
            engines = domains[int(chosen[0])]
        rows = rows_from(number * LARGE, size)
        if size == SMALL:
            rows = np.repeat(rows[:1], size)
        drawn = choices(self.seed, _ENGINES, rows, 0, len(engines)).tolist()
        return Process(number, _stages(size), tuple(engines[one] for one in drawn))

    def _doings(self, span: int) -> Iterator[_Doing]:
        """What happens before ``span``, in the order of time, from the first instance on of which
        something may be left when the scene begins."""
        pending: list[tuple[int, int, _Doing]] = []
        orders = count()
        for begin, doings in sorted(self._plans(span), key=lambda plan: plan[0]):
            while pending and pending[0][0] < begin:
                yield heappop(pending)[2]
            for doing in doings:
                heappush(pending, (doing[0], next(orders), doing))
        while pending:
            yield heappop(pending)[2]

    def _plans(self, span: int) -> Iterator[tuple[int, Iterator[_Doing]]]:
        """When each audit and instance begins, and what happens in it."""
        for turn in range(span // self.audit_every + 1):
            for auditor in range(self.auditors):
                begin = self.first_audit + self.audit_every * turn + self.stagger * auditor
                yield begin, self._audit(auditor, begin, span)
        processes = self.processes()
        phases = uniform(self.seed, _PHASES, rows_from(0, len(processes)), 0).tolist()
        longest = self.lead + 3 * self.work * len(_stages(LARGE))
        turns_before = longest // self.period + 1
        for process, phase in zip(processes, phases, strict=True):
            for turn in range(turns_before + span // self.period + 1):
                begin = round((turn - turns_before + phase) * self.period)
                yield begin, self._instance(process, turn, begin, span)

    def _audit(self, auditor: int, begin: int, span: int) -> Iterator[_Doing]:
        domains = list(self.overlay.regions().values())
        hosts = domains[auditor % len(domains)]
        host = hosts[int(choices(self.seed, _AUDITORS, rows_from(auditor, 1), 0, len(hosts))[0])]
        label = f"auditor {auditor}"
        if begin < span:
            yield begin, host, Subscribe(label, _AUDITED[self.audited])
        if begin + self.audit < span:
            yield begin + self.audit, host, Unsubscribe(label)

    def _instance(self, process: Process, turn: int, begin: int, span: int) -> Iterator[_Doing]:
        """Subscriptions, messages, and the end of the subscriptions when all is done; nothing of
        an instance that is over when the scene begins."""
        completed = self._completions(process, turn, begin + self.lead)
        end = max(at for at, _, _ in completed) + self.lead
        if end < 0 or begin >= span:
            return
        wanted = list(_wanted(process, turn))
        for broker, label, filter_ in wanted:
            yield begin, broker, Subscribe(label, filter_)
        for at, engine, activity in completed:
            if at < span:
                yield at, engine, _content(process, turn, engine, activity)
        if end < span:
            for broker, label, _ in wanted:
                yield end, broker, Unsubscribe(label)

    def _completions(self, process: Process, turn: int, at: int) -> list[tuple[int, str, str]]:
        """When each activity of an instance completes, its broker and name; first the trigger."""
        first = ((process.number << 24) + turn) * _DRAWS
        draws = iter(uniform(self.seed, _WORK, rows_from(first, _DRAWS), 0).tolist())
        found = [(at, process.engines[0], _START)]
        for stage in _run(process.stages, looping=next(draws) < 0.5):
            done = [(at + round(self.work * (0.5 + next(draws))), one) for one in stage]
            found += [(when, process.engines[one], _activity(one)) for when, one in done]
            at = max(when for when, _ in done)
        return found


def _activity(number: int) -> str:
    return f"A{number}"


def _stages(size: int) -> tuple[tuple[int, ...], ...]:
    """One activity and two side by side by turns, as many as there are."""
    stages: list[tuple[int, ...]] = []
    first = 0
    while first < size:
        width = min(1 + len(stages) % 2, size - first)
        stages.append(tuple(range(first, first + width)))
        first += width
    return tuple(stages)


def _run(stages: Sequence[tuple[int, ...]], *, looping: bool) -> list[tuple[int, ...]]:
    """The stages in the order in which an instance runs them."""
    begin, end = len(stages) // 3, 2 * len(stages) // 3
    again = stages[begin:end] if looping else ()
    return [*stages[:end], *again, *stages[end:]]


def _wanted(process: Process, instance: int) -> Iterator[Placed]:
    """What the engines of an instance wait for: every activity for each of those before it."""
    waiting = [(_START, process.engines[0], process.stages[0])]
    for before, after in pairwise(process.stages):
        waiting += [(_activity(one), process.engines[one], after) for one in before]
    for activity, engine, after in waiting:
        asked = _content(process, instance, engine, activity)
        wanted = Filter.from_constraints({name: _equal(value) for name, value in asked.items()})
        for a in after:
            label = f"{process.name}.{instance} {_activity(a)} after {activity}"
            yield Placed(process.engines[a], label, wanted)


def _content(process: Process, instance: int, engine: str, activity: str) -> dict[str, object]:
    """What a message says: an activity of an instance has completed."""
    return {"engine": engine, "process": process.name, "instance": instance, "activity": activity}


@cache
def _equal(value: object) -> Constraint:
    return constraint_of(Comparison("value", Operator.EQUAL, value))
