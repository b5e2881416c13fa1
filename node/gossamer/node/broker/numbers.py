"""A broker's counters and gauges for Prometheus, and its snapshot for the page and `top`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from gossamer.node.metrics import Counters, Gauges, exposed
from gossamer.protocol.broker import Broker

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

# By field of the protocol's counters: the label, if any, and what is counted.
_COUNTED: Final[Mapping[str, tuple[str, str]]] = {
    "sent": ("kind", "Messages sent to neighbours."),
    "received": ("kind", "Messages taken from neighbours."),
    "triggered_sent": ("kind", "Messages sent that nobody asked for."),
    "triggered_received": ("kind", "Messages taken that nobody asked for."),
    "delivered": ("", "Publications handed to clients."),
    "false_positives": ("", "Publications that came and that nobody here wanted."),
    "duplicates": ("", "Frames and publications that came again."),
    "stale": ("", "Messages about what is not known any more."),
    "gaps": ("", "Times that frames were found missing."),
    "cycles": ("", "Advertisements that came back on another link."),
    "refused": ("", "Messages of clients that were refused."),
    "held": ("", "Unsubscriptions held back under congestion."),
    "preserved": ("", "Times that a subscription was kept for nobody."),
    "dropped": ("", "Times that such a one was given up."),
    "lost": ("", "Publications retained for a neighbour that had no room."),
}
_SIZES: Final[Mapping[str, str]] = {
    "subscriptions": "Entries of the subscription table.",
    "advertisements": "Entries of the advertisement table.",
    "sent": "Subscriptions that stand at neighbours.",
    "preserved": "Those of them that are kept for nobody.",
    "statistics": "Publications in the statistics.",
    "clients": "Clients attached.",
}


@frozen
class BrokerNumbers:
    """What is read from a broker when somebody asks.

    Attributes:
        broker: the broker.
        waiting: messages that wait for it.
        backlog: frames in the longest queue to a neighbour.
    """

    broker: Broker
    waiting: int
    backlog: int

    def collect(self) -> Iterable[Family]:
        """The families of metrics, as prometheus_client asks for them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for field, (label, text) in _COUNTED.items():
            value: Any = getattr(self.broker.counters, field)
            name = f"gossamer_broker_{field}"
            family = CounterMetricFamily(name, text, labels=[label] if label else [])
            for key, number in value.items() if label else [("", value)]:
                family.add_metric([key] if label else [], number)
            yield family
        sizes = self.broker.sizes()
        gauges = {f"table_{name}": (getattr(sizes, name), text) for name, text in _SIZES.items()}
        gauges["input_queue"] = (self.waiting, "Messages that wait for the broker.")
        gauges["output_queue"] = (self.backlog, "Frames in the longest queue to a neighbour.")
        for name, (number, text) in gauges.items():
            yield GaugeMetricFamily(f"gossamer_broker_{name}", text, value=number)


def broker_metrics_text(
    numbers: BrokerNumbers, counters: Counters, gauges: Gauges, version: str
) -> bytes:
    """All metrics of a broker in Prometheus' text format, those of every node included."""
    return exposed(counters, gauges, version, numbers)
