"""P1 to P5: what the selective paper claims in Fig. 7 (Sec. V-B), held against measurements.

The checks were written from the paper before anything was measured. Where it gives a number we
accept from half of it to twice as much, and for a share of another algorithm about a third around
it; where it gives a shape ("a slight increase") the bounds are our reading of it.
"""

from __future__ import annotations

from gossamer.sim.figures.common.claims import COUNT, LITERAL, RATIO, SECONDS, SHARE, Check, Claim
from gossamer.sim.figures.covering.burst_plots import Outcomes
from gossamer.sim.figures.covering.burst_studies import (
    ACTIVE,
    COMPARED,
    COMPARED_TABLE_II,
    LAZY,
    PACKED,
    SELECTIVE,
)


def check_comparison(found: Outcomes) -> list[Claim]:
    """P1 to P5, in order."""
    return [
        check_p1(found),
        check_p2(found),
        check_p3(found),
        check_p4(found),
        check_p5(found),
    ]


def check_p1(found: Outcomes) -> Claim:
    """Fig. 7(a): publication delay 600 s after the unsubscriptions."""

    def delay(covering: str) -> float:
        return found.value("measured_s", COMPARED, covering)

    return Claim(
        "P1",
        "Mean publication delay: active covering above 4,400 s; lazy and packing less than "
        "half of that; selective 0.4 s, 0.2 s in steady state.",
        [
            Check(
                "active over selective",
                delay(ACTIVE) / delay(SELECTIVE),
                RATIO,
                "more than 99 % better",
                low=100,
            ),
            Check("active", delay(ACTIVE), SECONDS, "above 4,400 s", low=2_200, high=8_800),
            Check(
                "lazy over active", delay(LAZY) / delay(ACTIVE), RATIO, "less than half", high=0.5
            ),
            Check(
                "packed over active",
                delay(PACKED) / delay(ACTIVE),
                RATIO,
                "less than half",
                high=0.5,
            ),
            Check("selective", delay(SELECTIVE), SECONDS, "0.4 s", high=0.6),
            Check(
                "selective in steady state",
                found.value("steady_s", COMPARED, SELECTIVE),
                SECONDS,
                "0.2 s",
                high=0.3,
            ),
        ],
        _EXPLAIN_DELAYS,
        _with_table_ii(found, "measured_s", "s"),
    )


def check_p2(found: Outcomes) -> Claim:
    """Fig. 7(d): triggered messages along the core; what brokers get, or what they send on."""
    counted = "triggered" if found.reading == LITERAL else "onward"

    def last(covering: str) -> float:
        return found.value(f"{counted}_last", COMPARED, covering)

    def first(covering: str) -> float:
        return found.value(f"{counted}_first", COMPARED, covering)

    unsubscriptions = found.one(COMPARED, PACKED).run.burst.unsubscriptions
    return Claim(
        "P2",
        "Triggered messages, broker A to broker E: active 700 to 5,900; lazy 100 to 3,600; "
        "packing below 300; selective 200 to 0, falling where the others rise.",
        [
            Check(
                "active at E for each unsubscription",
                last(ACTIVE) / unsubscriptions,
                RATIO,
                "5,900 for 300",
                low=10,
                high=40,
            ),
            Check(
                "active, E over A",
                last(ACTIVE) / first(ACTIVE),
                RATIO,
                "5,900 over 700",
                low=4,
                high=17,
            ),
            Check(
                "lazy over active at E",
                last(LAZY) / last(ACTIVE),
                RATIO,
                "3,600 over 5,900",
                low=0.4,
                high=0.8,
            ),
            Check(
                "packed, most at a broker, for each unsubscription",
                found.value(f"{counted}_max", COMPARED, PACKED) / unsubscriptions,
                RATIO,
                "fewer than 300 for 300",
                high=1,
            ),
            Check(
                "selective, E over A",
                last(SELECTIVE) / max(first(SELECTIVE), 1.0),
                RATIO,
                "0 over 200",
                high=0.1,
            ),
            Check(
                "selective over active at A",
                first(SELECTIVE) / first(ACTIVE),
                RATIO,
                "200 over 700",
                high=1,
            ),
        ],
        _EXPLAIN_TRIGGERED,
    )


def check_p3(found: Outcomes) -> Claim:
    """Fig. 7(e): input queues of the core."""
    longest = found.value("queue_max", COMPARED, ACTIVE)

    def share(covering: str) -> float:
        return found.value("queue_max", COMPARED, covering) / longest

    return Claim(
        "P3",
        "Longest core input queue: active near 2,000, lazy 1,500, packing 1,200, selective a "
        "slight rise that ends quickly.",
        [
            Check("active", longest, COUNT, "near 2,000", low=1_000, high=4_000),
            Check("lazy over active", share(LAZY), RATIO, "1,500 over 2,000", low=0.5, high=1.0),
            Check(
                "packed over active", share(PACKED), RATIO, "1,200 over 2,000", low=0.4, high=0.8
            ),
            Check("selective over active", share(SELECTIVE), RATIO, "a slight increase", high=0.1),
        ],
        _EXPLAIN_QUEUES,
        _with_table_ii(found, "queue_max", "messages"),
    )


def check_p4(found: Outcomes) -> Claim:
    """Fig. 7(b): routing tables at the core at the end."""

    def tables(covering: str) -> float:
        return found.value("table_core", COMPARED, covering)

    workload = found.one(COMPARED, ACTIVE).run.burst.workload
    subscriptions = workload.roots * workload.step
    return Claim(
        "P4",
        "Routing tables at the core at the end: active about 1,000 entries of 30,000, lazy "
        "larger, selective smallest once covering subscriptions have gone.",
        [
            Check(
                "active, of all subscriptions",
                tables(ACTIVE) / subscriptions,
                SHARE,
                "1,000 of 30,000",
                low=1 / 60,
                high=1 / 15,
            ),
            Check("lazy over active", tables(LAZY) / tables(ACTIVE), RATIO, "larger", low=1.01),
            Check(
                "selective over active",
                tables(SELECTIVE) / tables(ACTIVE),
                RATIO,
                "smallest",
                high=0.99,
            ),
        ],
        _EXPLAIN_TABLES,
        f"of {subscriptions:,} subscriptions the core's mean is {tables(ACTIVE):,.0f} entries "
        f"with active, {tables(LAZY):,.0f} with lazy and {tables(SELECTIVE):,.0f} with "
        "selective covering",
    )


def check_p5(found: Outcomes) -> Claim:
    """Fig. 7(c): false positives."""
    others = sum(
        found.value("false_positives", COMPARED, covering) for covering in (ACTIVE, LAZY, PACKED)
    )
    return Claim(
        "P5",
        "False positives are 0.38 % of the publication traffic, 0.01 % at the core.",
        [
            Check(
                "selective",
                found.value("false_positives", COMPARED, SELECTIVE),
                SHARE,
                "0.38 %",
                high=0.0076,
            ),
            Check(
                "selective at the core",
                found.value("false_positives_core", COMPARED, SELECTIVE),
                SHARE,
                "0.01 %",
                high=0.0002,
            ),
            Check(
                "active, lazy and packed together",
                others,
                SHARE,
                "only the selective algorithm has any",
                high=0.0,
            ),
        ],
        _EXPLAIN_FALSE_POSITIVES,
    )


def _with_table_ii(found: Outcomes, measure: str, unit: str) -> str:
    if not found.has(COMPARED_TABLE_II):
        return "subscriptions take 300 ms a broker"
    values = ", ".join(
        f"{covering} {found.value(measure, COMPARED_TABLE_II, covering):,.4g} {unit}"
        for covering in (ACTIVE, LAZY, PACKED, SELECTIVE)
    )
    return f"subscriptions take 300 ms a broker; with the times of Table II: {values}"


_EXPLAIN_DELAYS = (
    "A pack takes a broker as long as the subscriptions in it, which the paper says, too, so that"
    " packing saves messages but no work. Lazy covering triggers half of what active covering "
    "does: what came before its root is known already. How long active covering's delays are"
    " follows from the 9,000 subscriptions that E has to work off; the paper's brokers took "
    "longer for publications, too, once they were congested. Under the selective algorithm C "
    "gets the most, and is done with it about when the delays are measured"
)
_EXPLAIN_TRIGGERED = (
    "With clients anywhere among 29 hosts, little of what a root covers comes to A with it; the "
    "rest joins its path further on, and each unsubscription triggers all it covered at E. With "
    "the selective algorithm the messages rise, too, until critical brokers begin. Most "
    "publications are wanted by nobody else at the subscriber's inner broker, so that the critical "
    "broker is three hops away, as more than 90 % of the distances have to be less than that: for "
    "clients behind D it is E"
)
_EXPLAIN_QUEUES = (
    "A queue counts messages of every size, and each broker takes 300 ms for every subscription "
    "that is triggered before the critical broker, too: the selective algorithm's queue is "
    "short-lived, not short"
)
_EXPLAIN_TABLES = (
    "1,000 is the number of roots. A core broker's table holds all that neighbours sent, and a "
    "subscription is sent until its path joins that of its root: with clients anywhere, that is "
    "most often at a core broker. Only at E, before the burst, the roots are all there is"
)
_EXPLAIN_FALSE_POSITIVES = (
    "Counted at the broker where a publication ends because nobody there wants it, or because an "
    "unsubscription has overtaken it"
)
