"""How the SCOT paper can be set up: the literal reading, and the testbed that it describes.

The paper gives no times of links and brokers. The literal reading has those of `network`; the
alternative sets them by what the paper says of its testbed and finds. It was chosen knowing what
the paper found, and is judged by the same checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from gossamer.sim.figures.common.claims import Claim, Reading
from gossamer.sim.figures.common.readings import LITERAL
from gossamer.sim.studies.scot.burst import Burst
from gossamer.sim.studies.scot.replay.network import Links, ServiceTimes
from gossamer.sim.studies.scot.replay.spread import EXPONENTIAL

# The brokers with most links get seven copies of a subscription that is flooded, 1 ms each: a
# subscriber every 7.8 ms keeps them busy for nine tenths of the time.
_SUBSCRIBE_EVERY: Final = 7_800
_GIGABIT: Final = Links(latency=50, gap=10, uplink_gap=10, bid_gap=1)
_DATA_CENTRE: Final = ServiceTimes(subscription=1_000, spread=EXPONENTIAL)
_SLOW_UPLINK: Final = Links(uplink_gap=2_000)
_SLOW_MATCHING: Final = ServiceTimes(matching=8_000, bid=1_000)


def steady(reading: str, burst: Burst) -> Burst:
    """Brokers and links of the runs without a burst."""
    if reading == LITERAL:
        return burst
    return attrs.evolve(
        burst, links=_GIGABIT, service=_DATA_CENTRE, subscribe_every=_SUBSCRIBE_EVERY
    )


def bursting(reading: str, burst: Burst) -> Burst:
    """Brokers and links of the bursts."""
    if reading == LITERAL:
        return burst
    return attrs.evolve(burst, links=_SLOW_UPLINK, service=_SLOW_MATCHING)


_DATA_CENTRE_SENTENCE: Final = (
    "'one dedicated high throughput Gigabit Ethernet switch' (Sec. 7.1): links take 50 us "
    "and brokers decide, a subscription 1 ms. Times of brokers are exponential, as those of real "
    "ones vary, and only then are trees of a flood longer than the shortest; subscribers come as "
    "fast as flooding brokers are busy for nine tenths of the time. The paper gives none of these "
    "times; they were chosen knowing Fig. 9 and 10"
)
_MATCHING_SENTENCE: Final = (
    "what congests brokers in Fig. 11 is matching: 8 ms a notification, with 2 ms on the uplink "
    "and 1 ms for each BID. The paper does not say what its machines lacked; no set-up was found "
    "that gives its delays and its queues together, and this one was chosen knowing Fig. 11"
)
_STEADY: Final = Reading(name="data centre", sentences=(_DATA_CENTRE_SENTENCE,))
READINGS: Final[Mapping[str, Reading]] = MappingProxyType(
    {
        **dict.fromkeys(("O1", "O2", "O3", "O4", "O5"), _STEADY),
        "O6": Reading(name="slow matching", sentences=(_MATCHING_SENTENCE,)),
    }
)

_CONTRADICTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "O1": (
            "89 % fewer messages, beside 'almost 80 %' of BID's being duplicates: a flood takes "
            "366 messages on 75 brokers, of which 74 are needed, so that the duplicates are all "
            "that can be saved, 80 %"
        ),
        "O3": (
            "12 % fewer messages with 100 publishers (Fig. 9(d)), beside 36.4 % more by BID with "
            "100 to 500 (Fig. 10(c)), which is 27 % fewer, although what a notification takes does "
            "not depend on who else publishes"
        ),
        "O4": (
            "25 % less matching by BID (Fig. 10(a)) beside 265 % more without it (Fig. 10(d)): "
            "both are the share of brokers on the way that only forward, and 265 % more needs a "
            "handful of hosts with an interested client"
        ),
    }
)


def with_contradictions(claims: list[Claim]) -> list[Claim]:
    """The claims, and beside each whatever the paper says against it."""
    return [
        attrs.evolve(claim, contradiction=_CONTRADICTIONS.get(claim.id, "")) for claim in claims
    ]
