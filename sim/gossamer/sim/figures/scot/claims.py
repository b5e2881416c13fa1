"""O1 to O5 and O7: what the SCOT paper claims in Fig. 7, 9 and 10, and what is found.

Bounds were set from the paper before anything was measured: a third around a number that it gives;
else our reading of its words, which stands with the check.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.brokers.scot.memory.settings import BID, DYNAMIC, ROUTINGS, STATIC
from gossamer.sim.figures.common.claims import COUNT, RATIO, SECONDS, SHARE, Check, Claim
from gossamer.sim.figures.scot.plots import Outcomes
from gossamer.sim.figures.scot.studies import BURST, PUBLISHERS, SUBSCRIBERS
from gossamer.sim.studies.scot.workloads import messages_of


def third(paper: float) -> dict[str, Any]:
    """A third around a number of the paper, as the bounds of a check."""
    return {"low": paper * 2 / 3, "high": paper * 4 / 3}


def check_claims(found: Outcomes) -> list[Claim]:
    """The claims, in order."""
    return [check_o1(found), check_o2(found), check_o3(found), check_o4(found), check_o5(found)]


def check_o1(found: Outcomes) -> Claim:
    """Fig. 9(a): messages of subscription broadcast."""
    most = found.places(SUBSCRIBERS)[-1]

    def at_most(measure: str, routing: str) -> float:
        return found.value(measure, SUBSCRIBERS, routing, most)

    duplicates = at_most("subscription_duplicates", BID) / at_most("subscription_messages", BID)
    return Claim(
        "O1",
        "subscription broadcast takes 89 % fewer messages than BID, 80 % of whose messages "
        "are duplicates; trees are 14 % shorter",
        [
            Check(
                "fewer messages",
                found.saved("subscription_messages", SUBSCRIBERS, STATIC, BID, most),
                SHARE,
                "89 %",
                low=0.89 * 2 / 3,
                high=1.0,
            ),
            Check("duplicates by BID", duplicates, SHARE, "almost 80 %", low=0.8 * 2 / 3, high=1.0),
            Check(
                "shorter trees",
                found.saved("subscription_hops_mean", SUBSCRIBERS, STATIC, BID, most),
                SHARE,
                "14 %",
                **third(0.14),
            ),
        ],
        "Trees of floods are longer where brokers are busy or unequally fast; here "
        "all are equally fast, so that the first copy to come has mostly taken a shortest way",
        "A flood takes 2 * 220 - 74 messages on 75 brokers; 89 % less would be 40, and 74 "
        "brokers have to be told, so broadcast saves the duplicates and no more",
    )


def check_o2(found: Outcomes) -> Claim:
    """Fig. 9(b): subscription delay."""
    places = found.places(SUBSCRIBERS)

    def growth(routing: str) -> float:
        few, many = (
            found.value("subscription_delay_mean_s", SUBSCRIBERS, routing, x)
            for x in (places[0], places[-1])
        )
        return many / few

    return Claim(
        "O2",
        "subscription delay is 77 % less than by BID, and flat in subscribers",
        [
            Check(
                "less delay",
                found.saved("subscription_delay_mean_s", SUBSCRIBERS, STATIC, BID),
                SHARE,
                "77 %",
                low=0.77 * 2 / 3,
                high=1.0,
            ),
            *(
                Check(
                    f"{routing}, most over fewest subscribers",
                    growth(routing),
                    RATIO,
                    "nearly constant",
                    low=0.75,
                    high=1.33,
                )
                for routing in (BID, STATIC)
            ),
        ],
        "How much is saved is how long the queues of flooding brokers are, which "
        "depends on how fast subscribers come; the paper does not say how fast they did",
    )


def check_o3(found: Outcomes) -> Claim:
    """Fig. 9(c), 9(d): notification delay and messages."""
    places = found.places(SUBSCRIBERS)
    fewest, most = (
        found.saved("notification_messages", SUBSCRIBERS, STATIC, BID, x)
        for x in (places[0], places[-1])
    )
    return Claim(
        "O3",
        "notification delay is 47 % less than by BID, with 12 % fewer messages; the gap "
        "closes with more subscribers",
        [
            Check(
                "less delay",
                found.saved("delay_mean_s", SUBSCRIBERS, STATIC, BID),
                SHARE,
                "47 %",
                **third(0.47),
            ),
            Check(
                "fewer messages",
                found.saved("notification_messages", SUBSCRIBERS, STATIC, BID),
                SHARE,
                "12 %",
                **third(0.12),
            ),
            Check(
                "gap of messages, fewest less most subscribers",
                fewest - most,
                SHARE,
                "above 0",
                low=1e-9,
                high=1.0,
            ),
        ],
        _OTHER_WAYS,
    )


def check_o4(found: Outcomes) -> Claim:
    """Fig. 10(a), 10(d): matching."""
    places = found.places(SUBSCRIBERS)
    fewest, most = (
        found.saved("matchings", SUBSCRIBERS, BID, STATIC, x) for x in (places[0], places[-1])
    )
    few, *_, many = found.series("matchings_each", PUBLISHERS, STATIC)[1].tolist()
    return Claim(
        "O4",
        "by BID matching takes 25 % less, as only host brokers match, a difference that "
        "closes with more subscribers; with more publishers static and dynamic take 265 % more",
        [
            Check(
                "fewer matchings by BID",
                found.saved("matchings", SUBSCRIBERS, BID, STATIC),
                SHARE,
                "25 %",
                **third(0.25),
            ),
            Check(
                "difference, fewest less most subscribers",
                fewest - most,
                SHARE,
                "above 0",
                low=1e-9,
                high=1.0,
            ),
            Check(
                "more matchings than by BID with more publishers",
                found.mean("matchings", PUBLISHERS, STATIC)
                / found.mean("matchings", PUBLISHERS, BID)
                - 1,
                SHARE,
                "265 %",
                **third(2.65),
            ),
            Check(
                "matchings of a notification, most over fewest publishers",
                many / few,
                RATIO,
                "linear in publishers, so 1",
                low=0.75,
                high=1.33,
            ),
        ],
        "Counted are matchings, whose times are a machine's. A broker on the way "
        "matches under static routing and does not by BID, so the difference is the share of "
        "brokers that only forward; with 3,000 subscribers that lies between the values for 2,500 "
        "and 5,000. The 25 % and the 265 % of the paper cannot both be this share",
    )


def check_o5(found: Outcomes) -> Claim:
    """Fig. 10(b), 10(c): more publishers."""
    return Claim(
        "O5",
        "with 100 to 500 publishers delay is 42 % less than by BID, which takes 36.4 % more "
        "messages",
        [
            Check(
                "less delay",
                found.saved("delay_mean_s", PUBLISHERS, STATIC, BID),
                SHARE,
                "42 %",
                **third(0.42),
            ),
            Check(
                "more messages by BID",
                found.mean("notification_messages", PUBLISHERS, BID)
                / found.mean("notification_messages", PUBLISHERS, STATIC)
                - 1,
                SHARE,
                "36.4 %",
                **third(0.364),
            ),
        ],
        _OTHER_WAYS,
    )


_OTHER_WAYS = (
    "Trees by BID are hardly longer than others here (O1). By BID a notification enters a cluster "
    "wherever the trees of its subscribers do, under static routing once: the difference in "
    "messages is what that takes, which is more the more subscribers there are. Delay differs by "
    "the BIDs that notifications carry and that brokers split, less what brokers on the way need "
    "for matching under static routing; what each of these costs is a guess"
)


def check_o7(found: Outcomes) -> Claim:
    """Sec. 5 and Fig. 7: no duplicates, shortest trees, and the worked examples."""
    runs = [one for one in found.found if one.run.routing in (STATIC, DYNAMIC)]
    paper = {"static": 6, "7(b)": 6, "7(c)": 4, "7(d)": 5}
    return Claim(
        "O7",
        "subscription broadcast makes no duplicates and unique trees of shortest lengths; "
        "the three cases of dynamic routing take 6, 4 and 5 messages where static takes 6",
        [
            Check(
                "duplicates of all broadcasts",
                sum(one.measures["subscription_duplicates"] for one in runs),
                COUNT,
                "none",
                low=0.0,
                high=0.0,
            ),
            Check(
                "ways longer than the shortest",
                sum(one.measures["longer_ways"] for one in runs),
                COUNT,
                "none",
                low=0.0,
                high=0.0,
            ),
            *(
                Check(
                    f"messages, Fig. {case}" if case[0] == "7" else f"messages, {case}",
                    float(messages_of(case)),
                    COUNT,
                    f"{number}",
                    low=float(number),
                    high=float(number),
                )
                for case, number in paper.items()
            ),
        ],
        "",
    )


# O6: what the SCOT paper claims of bursts (Fig. 11, stability analysis), and what is found.
#
# Bounds as in `scot_claims`. Where the paper gives a number "on average, for the three simulations"
# it is held against the mean over the rates; where it gives one for 100,000 a minute, against that.


_BELOW_A_SECOND = {DYNAMIC: 0.442, STATIC: 0.39, BID: 0.28}


def check_o6(found: Outcomes) -> Claim:
    """Bursts of 60,000 to 100,000 notifications a minute."""
    return Claim(
        "O6",
        "after a burst dynamic routing settles first, 239 s before static, BID never; its "
        "queues are 48 % shorter than static's and 59 % than BID's; its delay 13 % and 58 % less; "
        "it takes 0.32 % more messages than static, 17.2 % fewer than BID; 44.2, 39 and 28 % of "
        "deliveries take less than 1 s",
        [*_settling(found), *_queues_and_delays(found), *_messages(found), *_quick(found)],
        "What is scarce decides: here it is what a broker can send, which copies at "
        "the host of the burst take most of, and dynamic routing makes fewer copies there. The "
        "paper does not say what its machines lacked. A simulated broker has no bounded memory to "
        "run out of, so BID settles too, if last",
    )


def _settling(found: Outcomes) -> list[Check]:
    settled = {name: found.mean("settled_s", BURST, name) for name in ROUTINGS}
    return [
        Check(
            "dynamic settles before static by",
            settled[STATIC] - settled[DYNAMIC],
            SECONDS,
            "239 s",
            **third(239.0),
        ),
        Check(
            "BID over static, time to settle",
            settled[BID] / settled[STATIC],
            RATIO,
            "never",
            low=1.33,
        ),
    ]


def _queues_and_delays(found: Outcomes) -> list[Check]:
    rate = found.places(BURST)[-1]
    checks = []
    for measure, what, x, papers in (
        ("burst_queue_mean", "queues", None, {STATIC: 0.48, BID: 0.59}),
        ("delay_mean_s", "delay", rate, {STATIC: 0.13, BID: 0.58}),
    ):
        checks += [
            Check(
                f"dynamic, {what} less than {other}",
                found.saved(measure, BURST, DYNAMIC, other, x),
                SHARE,
                f"{100 * paper:g} %",
                **third(paper),
            )
            for other, paper in papers.items()
        ]
    return checks


def _messages(found: Outcomes) -> list[Check]:
    return [
        Check(
            "dynamic, more messages than static",
            -found.saved("notification_messages", BURST, DYNAMIC, STATIC),
            SHARE,
            "0.32 %",
            low=-0.01,
            high=0.01,
        ),
        Check(
            "dynamic, fewer messages than BID",
            found.saved("notification_messages", BURST, DYNAMIC, BID),
            SHARE,
            "17.2 %",
            **third(0.172),
        ),
    ]


def _quick(found: Outcomes) -> list[Check]:
    return [
        Check(
            f"{routing}, deliveries below 1 s",
            found.mean("share_below_1_s", BURST, routing),
            SHARE,
            f"{100 * paper:g} %",
            **third(paper),
        )
        for routing, paper in _BELOW_A_SECOND.items()
    ]
