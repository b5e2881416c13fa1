"""A burst of unsubscriptions over broker nodes: how long publications take meanwhile.

Run it by hand: ``python tests/bench/bench_unsubscriptions.py [--small] [--runs 3] [--out FILE]``.
Fifteen brokers are processes of their own, with TLS over loopback and state files on the disk: a
row of five as in the papers' controlled overlays, publishers behind its one end, and subscribers
behind the other four. Of 20,000 overlapping subscriptions (`support.overlapping_interests`), whose
clients are at random hosts, 300 random broad ones are taken back as fast as the clients'
connections allow, while publications go on at a steady rate.

The delay of a delivery is from when the publication was due by its publisher's clock until the
subscriber's client has it; only subscribers that stay count. A burst is over when no broker has
anything more to send or to take because of it. Unless every due delivery is made once, and nothing
else, the run ends with an error. Prints medians of the runs for each covering; ``--out`` writes
every run, and ``--continue`` adds runs to such a file.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import trio
from attrs import asdict, evolve

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import read_options
from gossamer.node.config.broker import COVERINGS
from gossamer.node.errors import NodeError
from gossamer.sim.bench.benchmarks import machine
from support.burst_clients import CARRIED
from support.burst_runs import FULL, PHASES, SMALL, Outcome, Plan, measure

INTERESTS = ("roots", "degree", "overlap")
OF_PLAN = ("taken_back", "history", "rate", "publications_first", "index")
AIM = 0.1  # the longest delay of incremental covering, over that of active covering


def rows(outcomes: Sequence[Outcome]) -> list[tuple[str, list[float]]]:
    """What is printed: for each line its name, and the median of each covering's runs."""
    by_covering: dict[str, list[Outcome]] = {}
    for one in outcomes:
        by_covering.setdefault(one.covering, []).append(one)
    figures: dict[str, Callable[[Outcome], float]] = {
        **{
            f"{phase}: {what}, ms": lambda one, p=phase, w=what: one.delays[p][w]  # type: ignore[misc]
            for phase, what in product(PHASES, ("median", "99th", "longest"))
        },
        "clients had their answers after, s": lambda one: one.asked_s,
        "burst over after, s": lambda one: float("inf") if one.over_s is None else one.over_s,
        "messages about subscriptions": lambda one: sum(one.messages.get(k, 0) for k in CARRIED),
        "of these triggered": lambda one: one.triggered,
        "subscriptions examined again": lambda one: one.examined,
        "preserved": lambda one: one.preserved,
        "held back": lambda one: one.held,
        "publications between brokers": lambda one: one.messages.get("Publication", 0),
        "longest queue seen, messages": lambda one: one.longest_queue,
        "entries of all tables before": lambda one: one.tables[0],
        "entries of all tables after": lambda one: one.tables[1],
        "processor time of brokers, s": lambda one: sum(one.processor_s.values()),
        "memory of all brokers, MB": lambda one: one.resident_bytes / 1e6,
        "subscribing took, s": lambda one: one.setup_s,
        "processor time of brokers until then, s": lambda one: one.setup_processor_s,
        "load before": lambda one: one.load,
    }
    runs = by_covering.values()
    found = [(name, [median(map(figure, one)) for one in runs]) for name, figure in figures.items()]
    return [*found, ("runs", [*map(len, runs)])]


def print_table(outcomes: Sequence[Outcome]) -> None:
    coverings, found = dict.fromkeys(one.covering for one in outcomes), rows(outcomes)
    print(f"{'':42}" + "".join(f"{name:>14}" for name in coverings))
    for name, values in found:
        print(f"{name:42}" + "".join(f"{value:>14,.4g}" for value in values))
    longest = dict(zip(coverings, dict(found)["during: longest, ms"], strict=True))
    if {"active", "incremental"} <= longest.keys() and longest["active"]:
        ratio = longest["incremental"] / longest["active"]
        print(f"longest delay, incremental over active: {ratio:.3f}   (aim: at most {AIM})")


def describe(plan: Plan) -> str:
    interests = plan.interests
    order = "taken first" if plan.publications_first else "taken in their turn"
    return (
        f"{len(plan.overlay.brokers)} brokers, {interests.roots * (1 + interests.degree):,} "
        f"subscriptions of which {interests.roots} are broad, each narrow one covered by "
        f"{interests.overlap}; {plan.taken_back} broad ones taken back, "
        f"{plan.rate:g} publications a second, {order}, index {plan.index}"
    )


def main() -> None:
    given = read_options(
        __doc__,
        small=False,
        runs=3,
        covering=["active", "incremental"],
        **dict.fromkeys((*INTERESTS, "taken_back", "history"), int),
        rate=float,
        publications_first=False,
        index=("", "auto", "interpreted", "compiled"),
        out=Path,
        continue_=False,
    )
    plan = _chosen(given)
    outcomes = _earlier(given, plan)
    print(machine(), describe(plan), sep="\n", flush=True)
    signal.signal(signal.SIGTERM, _stop_once)
    failed = ""
    try:
        _run(plan, given, outcomes)
    except* KeyboardInterrupt:
        failed = "stopped before it was done"
    except* (NodeError, RuntimeError, trio.TooSlowError) as group:
        # Brokers that were stopped with the bench leave their clients, which is no fault of theirs.
        failed = failed or f"a run failed: {_first(group)!r}"
    if outcomes:
        print_table(outcomes)
    wrong = sum((Counter(one.wrong) for one in outcomes), Counter[str]())
    if wrong:
        failed = failed or f"deliveries were wrong: {dict(wrong)}"
    if failed:
        sys.exit(failed)
    print(f"all {sum(one.due for one in outcomes):,} due deliveries were made once, and no other")


def _stop_once(*_: object) -> None:
    """Stop as Ctrl-C does, which leaves no broker behind, however often it is asked for."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.raise_signal(signal.SIGINT)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of a group that is no group itself."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def _run(plan: Plan, given: Any, outcomes: list[Outcome]) -> None:
    done = Counter(one.covering for one in outcomes)
    for run, covering in product(range(given.runs), given.covering):
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            outcomes.append(measure(plan, covering, done[covering] + run + 1, Path(folder)))
        took = time.monotonic() - begun
        print(f"{covering}: longest {outcomes[-1].longest_ms:,.0f} ms ({took:.0f} s)", flush=True)
        if given.out:
            runs = [asdict(one) for one in outcomes]
            told = {"machine": machine(), "plan": asdict(plan), "runs": runs}
            given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _chosen(given: Any) -> Plan:
    plan = SMALL if given.small else FULL
    if unknown := {*given.covering} - {*COVERINGS}:
        given.refuse(f"--covering is {min(unknown)!r}, expected some of {', '.join(COVERINGS)}")
    for name in ("runs", *INTERESTS, "taken_back"):
        number = getattr(given, name)
        if number is not None and number < 1:
            given.refuse(f"--{name.replace('_', '-')} is {number}, expected at least 1")
    if given.rate is not None and not 0 < given.rate <= 1000:
        given.refuse(f"--rate is {given.rate:g}, expected more than 0 and at most 1000")
    if given.history is not None and given.history < 0:
        given.refuse(f"--history is {given.history}, expected at least 0")
    named = {name: value for name, value in vars(given).items() if value not in (None, "")}
    interests = {name: named[name] for name in INTERESTS if name in named}
    others = {name: named[name] for name in OF_PLAN if name in named}
    plan = evolve(plan, interests=evolve(plan.interests, **interests), **others)
    if plan.taken_back > plan.interests.roots:
        expected = f"at most the {plan.interests.roots} that are broad"
        given.refuse(f"--taken-back is {plan.taken_back}, expected {expected}")
    return plan


def _earlier(given: Any, plan: Plan) -> list[Outcome]:
    """The runs that the file has which is to be continued."""
    if not given.continue_:
        return []
    if given.out is None:
        given.refuse("--continue needs --out, the file with the earlier runs")
    if not given.out.exists():
        return []
    try:
        written = json.loads(given.out.read_text(encoding="utf-8"))
        found = [Outcome(**one) for one in written["runs"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        given.refuse(f"--out {given.out} has no runs of this bench: {error}")
    if written["plan"] != asdict(plan):
        given.refuse(f"--out {given.out} has runs with other settings, expected the same")
    return found


if __name__ == "__main__":
    main()
