"""O1 to O5 and O7: what the SCOT paper claims in Fig. 7, 9 and 10, and what is found.

Bounds were set from the paper before anything was measured: a third around a number that it gives;
else our reading of its words, which stands with the check.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.brokers.scot.memory.settings import BID, DYNAMIC, STATIC
from gossamer.sim.figures.common.claims import COUNT, RATIO, SHARE, Check, Claim
from gossamer.sim.figures.scot.outcomes import Outcomes
from gossamer.sim.figures.scot.studies import PUBLISHERS, SUBSCRIBERS
from gossamer.sim.studies.scot.worked import messages_of


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
        id="O1",
        claim="subscription broadcast takes 89 % fewer messages than BID, 80 % of whose messages "
        "are duplicates; trees are 14 % shorter",
        checks=[
            Check(
                name="fewer messages",
                value=found.saved("subscription_messages", SUBSCRIBERS, STATIC, BID, most),
                unit=SHARE,
                paper="89 %",
                low=0.89 * 2 / 3,
                high=1.0,
            ),
            Check(
                name="duplicates by BID",
                value=duplicates,
                unit=SHARE,
                paper="almost 80 %",
                low=0.8 * 2 / 3,
                high=1.0,
            ),
            Check(
                name="shorter trees",
                value=found.saved("subscription_hops_mean", SUBSCRIBERS, STATIC, BID, most),
                unit=SHARE,
                paper="14 %",
                **third(0.14),
            ),
        ],
        explanation="Trees of floods are longer where brokers are busy or unequally fast; here "
        "all are equally fast, so that the first copy to come has mostly taken a shortest way",
        note="A flood takes 2 * 220 - 74 messages on 75 brokers; 89 % less would be 40, and 74 "
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
        id="O2",
        claim="subscription delay is 77 % less than by BID, and flat in subscribers",
        checks=[
            Check(
                name="less delay",
                value=found.saved("subscription_delay_mean_s", SUBSCRIBERS, STATIC, BID),
                unit=SHARE,
                paper="77 %",
                low=0.77 * 2 / 3,
                high=1.0,
            ),
            *(
                Check(
                    name=f"{routing}, most over fewest subscribers",
                    value=growth(routing),
                    unit=RATIO,
                    paper="nearly constant",
                    low=0.75,
                    high=1.33,
                )
                for routing in (BID, STATIC)
            ),
        ],
        explanation="How much is saved is how long the queues of flooding brokers are, which "
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
        id="O3",
        claim="notification delay is 47 % less than by BID, with 12 % fewer messages; the gap "
        "closes with more subscribers",
        checks=[
            Check(
                name="less delay",
                value=found.saved("delay_mean_s", SUBSCRIBERS, STATIC, BID),
                unit=SHARE,
                paper="47 %",
                **third(0.47),
            ),
            Check(
                name="fewer messages",
                value=found.saved("notification_messages", SUBSCRIBERS, STATIC, BID),
                unit=SHARE,
                paper="12 %",
                **third(0.12),
            ),
            Check(
                name="gap of messages, fewest less most subscribers",
                value=fewest - most,
                unit=SHARE,
                paper="above 0",
                low=1e-9,
                high=1.0,
            ),
        ],
        explanation=_OTHER_WAYS,
    )


def check_o4(found: Outcomes) -> Claim:
    """Fig. 10(a), 10(d): matching."""
    places = found.places(SUBSCRIBERS)
    fewest, most = (
        found.saved("matchings", SUBSCRIBERS, BID, STATIC, x) for x in (places[0], places[-1])
    )
    few, *_, many = found.series("matchings_each", PUBLISHERS, STATIC)[1].tolist()
    return Claim(
        id="O4",
        claim="by BID matching takes 25 % less, as only host brokers match, a difference that "
        "closes with more subscribers; with more publishers static and dynamic take 265 % more",
        checks=[
            Check(
                name="fewer matchings by BID",
                value=found.saved("matchings", SUBSCRIBERS, BID, STATIC),
                unit=SHARE,
                paper="25 %",
                **third(0.25),
            ),
            Check(
                name="difference, fewest less most subscribers",
                value=fewest - most,
                unit=SHARE,
                paper="above 0",
                low=1e-9,
                high=1.0,
            ),
            Check(
                name="more matchings than by BID with more publishers",
                value=found.mean("matchings", PUBLISHERS, STATIC)
                / found.mean("matchings", PUBLISHERS, BID)
                - 1,
                unit=SHARE,
                paper="265 %",
                **third(2.65),
            ),
            Check(
                name="matchings of a notification, most over fewest publishers",
                value=many / few,
                unit=RATIO,
                paper="linear in publishers, so 1",
                low=0.75,
                high=1.33,
            ),
        ],
        explanation="Counted are matchings, whose times are a machine's. A broker on the way "
        "matches under static routing and does not by BID, so the difference is the share of "
        "brokers that only forward; with 3,000 subscribers that lies between the values for 2,500 "
        "and 5,000. The 25 % and the 265 % of the paper cannot both be this share",
    )


def check_o5(found: Outcomes) -> Claim:
    """Fig. 10(b), 10(c): more publishers."""
    return Claim(
        id="O5",
        claim="with 100 to 500 publishers delay is 42 % less than by BID, which takes 36.4 % more "
        "messages",
        checks=[
            Check(
                name="less delay",
                value=found.saved("delay_mean_s", PUBLISHERS, STATIC, BID),
                unit=SHARE,
                paper="42 %",
                **third(0.42),
            ),
            Check(
                name="more messages by BID",
                value=found.mean("notification_messages", PUBLISHERS, BID)
                / found.mean("notification_messages", PUBLISHERS, STATIC)
                - 1,
                unit=SHARE,
                paper="36.4 %",
                **third(0.364),
            ),
        ],
        explanation=_OTHER_WAYS,
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
        id="O7",
        claim="subscription broadcast makes no duplicates and unique trees of shortest lengths; "
        "the three cases of dynamic routing take 6, 4 and 5 messages where static takes 6",
        checks=[
            Check(
                name="duplicates of all broadcasts",
                value=sum(one.measures["subscription_duplicates"] for one in runs),
                unit=COUNT,
                paper="none",
                low=0.0,
                high=0.0,
            ),
            Check(
                name="ways longer than the shortest",
                value=sum(one.measures["longer_ways"] for one in runs),
                unit=COUNT,
                paper="none",
                low=0.0,
                high=0.0,
            ),
            *(
                Check(
                    name=f"messages, Fig. {case}" if case[0] == "7" else f"messages, {case}",
                    value=float(messages_of(case)),
                    unit=COUNT,
                    paper=f"{number}",
                    low=float(number),
                    high=float(number),
                )
                for case, number in paper.items()
            ),
        ],
        explanation="",
    )
