"""The worked examples of Fig. 7: how many messages one notification takes under congestion."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gossamer.protocol.brokers.core.messages import Attach, Publish
from gossamer.protocol.brokers.scot import ScotSettings
from gossamer.protocol.brokers.scot.memory.messages import QueueReport, WindowEnded
from gossamer.protocol.content.filters import parse
from gossamer.sim.studies.scot.overlays import figure_2
from gossamer.sim.studies.scot.replay.network import Links, ScotNetwork, ServiceTimes, Unobserved

PUBLISHER: Final = "B(b,2)"
SUBSCRIBERS: Final = ("B(c,0)", "B(a,2)", "B(c,1)", "B(c,2)")
"""The figure is not in the text, which gives counts of messages and of brokers on the ways."""

Loads = Mapping[tuple[str, str], int]

CASES: Final[Mapping[str, tuple[str, Loads]]] = MappingProxyType(
    {
        "static": ("static", {}),
        "7(b)": ("dynamic", {(PUBLISHER, "B(b,0)"): 100}),
        "7(c)": (
            "dynamic",
            {
                (PUBLISHER, "B(b,0)"): 100,
                (PUBLISHER, "B(b,1)"): 100,
                (PUBLISHER, "B(a,2)"): 5,
            },
        ),
        "7(d)": (
            "dynamic",
            {
                (PUBLISHER, "B(b,0)"): 100,
                (PUBLISHER, "B(b,1)"): 50,
                (PUBLISHER, "B(a,2)"): 20,
                (PUBLISHER, "B(c,2)"): 20,
                ("B(b,1)", "B(b,0)"): 100,
                ("B(c,1)", "B(c,0)"): 100,
            },
        ),
    }
)
"""By name, how brokers route and the output queues that are not empty."""


def messages_of(case: str) -> int:
    """Messages between brokers that one notification of P takes in one of `CASES`."""
    routing, loads = CASES[case]
    settings = ScotSettings(routing=routing)
    network = ScotNetwork(figure_2(), settings, Links(), ServiceTimes(), Unobserved())
    for place, broker in enumerate(SUBSCRIBERS):
        network.send(0, f"S{place + 1}", broker, Attach((("all", parse("present(x)")),)))
    network.send(0, "P", PUBLISHER, Attach())
    network.run_until_idle()
    for (one, other), length in loads.items():
        report = QueueReport(other, length, entered=5, left=5)
        network.brokers[one].handle(network.now, None, WindowEnded((report,)))
    # All is over before a window ends, and brokers hear of the queues as they are.
    network.send(network.now, "P", PUBLISHER, Publish({"x": 1}))
    network.run_until_idle()
    brokers = network.brokers.values()
    return sum(broker.counters.sent.get("Notification", 0) for broker in brokers)
