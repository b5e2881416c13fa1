"""Where subscriptions go under each covering, and what unsubscriptions trigger."""

from __future__ import annotations

import pytest

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Send
from gossamer.protocol.brokers.tree import COVERINGS, TreeSettings
from gossamer.protocol.brokers.tree.memory.messages import Packed, Subscription, Unsubscription
from gossamer.protocol.content.filters import parse
from gossamer.protocol.kernel.errors import ConfigError
from support.broker_overlay import Overlay, path, with_clients

EDGES = [*path(*"ABCDE"), ("B", "I"), ("B", "J"), ("C", "K"), ("C", "L"), ("D", "M")]
"""Figure 2 of the selective paper: subscribers at A and E, publishers at I to M."""


def figure_2(covering: str) -> Overlay:
    """S_r at A meets all advertisements, S_n at E those of I, K and M only."""
    overlay = Overlay(EDGES, TreeSettings(covering=covering))
    for number, broker in enumerate("IJKLM", start=1):
        overlay.attach(f"publisher{number}", broker)
        announced = parse(f"n == {number} and present(x)")
        overlay.ask(f"publisher{number}", messages.Advertise("a", announced))
    overlay.attach("r", "A")
    overlay.attach("n", "E")
    overlay.settle()
    return overlay


def holders(overlay: Overlay, client: str) -> set[str]:
    host = overlay.home[client]
    return {
        name
        for name, broker in overlay.brokers.items()
        for entry in broker.dump()["subscriptions"]  # type: ignore[attr-defined]
        if entry[0][0] == host
    }


S_R, S_N = "n >= 1", "n >= 1 and n != 2 and n != 4"


def test_property_1_without_covering_a_subscription_makes_a_tree() -> None:
    overlay = figure_2("off")
    overlay.subscribe(r=S_R, n=S_N)
    assert holders(overlay, "r") == set("ABCDIJKLM")
    assert holders(overlay, "n") == set("EDCBIKM")


@pytest.mark.parametrize("covering", ["lazy", "active", "packed", "selective", "incremental"])
def test_property_2_a_covered_subscription_makes_a_path(covering: str) -> None:
    """Figure 2: S_n is quenched towards M at D, towards K at C and towards I at B."""
    overlay = figure_2(covering)
    overlay.subscribe(r=S_R)
    overlay.subscribe(n=S_N)
    assert holders(overlay, "r") == set("ABCDIJKLM")
    assert holders(overlay, "n") == set("EDCB")


def test_active_covering_takes_back_what_came_before_and_lazy_does_not() -> None:
    for covering, expected in (("active", "EDCB"), ("lazy", "EDCBIKM")):
        overlay = figure_2(covering)
        overlay.subscribe(n=S_N)
        overlay.subscribe(r=S_R)
        assert holders(overlay, "n") == set(expected), covering


def test_removing_the_covering_subscription_makes_the_path_a_tree_again() -> None:
    """Sec. III-B: propagation of NRS(S) formed a path before, and a tree after."""
    overlay = figure_2("active")
    overlay.subscribe(r=S_R, n=S_N)
    overlay.ask_and_settle("r", messages.Unsubscribe("s"))
    assert holders(overlay, "r") == set()
    assert holders(overlay, "n") == set("EDCBIKM")


def below_and_above(covering: str, count: int = 5, **settings: object) -> Overlay:
    """A publisher at C; at A, `count` subscriptions and then one that covers them all."""
    clients = {"publisher": "C", "subscriber": "A"}
    overlay = with_clients(path(*"ABC"), clients, covering=covering, **settings)
    for number in range(count):
        overlay.ask("subscriber", messages.Subscribe(f"s{number}", parse(f"x == {number}")))
    overlay.ask_and_settle("subscriber", messages.Subscribe("all", parse("present(x)")))
    return overlay


def messages_of(effects: list[object]) -> list[object]:
    return [effect.message.message for effect in effects if isinstance(effect, Send)]


def test_triggered_subscriptions_go_before_the_unsubscription() -> None:
    overlay = below_and_above("active")
    sent = messages_of(list(overlay.ask("subscriber", messages.Unsubscribe("all"))))
    assert [type(message) for message in sent] == [Subscription] * 5 + [Unsubscription]
    assert all(message.triggered for message in sent[:-1])  # type: ignore[attr-defined]


def test_lazy_covering_triggers_only_what_came_after() -> None:
    overlay = below_and_above("lazy")
    overlay.ask_and_settle("subscriber", messages.Subscribe("late", parse("x == 9")))
    sent = messages_of(list(overlay.ask("subscriber", messages.Unsubscribe("all"))))
    assert [type(message) for message in sent] == [Subscription, Unsubscription]


def test_packing_puts_the_burst_into_one_message() -> None:
    overlay = below_and_above("packed")
    (packed,) = messages_of(list(overlay.ask("subscriber", messages.Unsubscribe("all"))))
    assert isinstance(packed, Packed)
    assert len(packed.messages) == 6
    overlay.settle()
    counters = overlay.brokers["B"].counters
    assert counters.triggered_received == {"Packed": 2}
    assert counters.received["Subscription"] >= 5


def test_equal_subscriptions_are_sent_once_and_the_second_takes_over() -> None:
    overlay = below_and_above("active", count=0)
    overlay.ask_and_settle("subscriber", messages.Subscribe("again", parse("present(x)")))
    assert overlay.brokers["C"].sizes().subscriptions == 1
    overlay.ask_and_settle("subscriber", messages.Unsubscribe("all"))
    assert overlay.brokers["C"].sizes().subscriptions == 1
    overlay.publish(1)
    assert [labels for _, _, labels in overlay.deliveries] == [("again",)]


@pytest.mark.parametrize("covering", COVERINGS)
def test_unadvertising_and_advertising_again_loses_no_subscription(covering: str) -> None:
    overlay = below_and_above(covering)
    overlay.ask_and_settle("publisher", messages.Unadvertise("a"))
    assert overlay.brokers["C"].sizes().subscriptions == 0
    assert overlay.brokers["A"].sizes().subscriptions == 6
    overlay.ask_and_settle("publisher", messages.Advertise("b", parse("present(x)")))
    overlay.publish(3)
    assert [labels for _, _, labels in overlay.deliveries] == [("s3", "all")]


def test_an_unknown_covering_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="one of off, lazy, active, packed, selective"):
        TreeSettings(covering="eager")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("similarity", 1.5),
        ("some_triggered", 0),
        ("many_triggered", 5),
        ("statistics_entries", 0),
        ("congested_queue", -1),
        ("retained_publications", 2.5),
        ("small_count", True),
    ],
)
def test_impossible_settings_name_their_field(field: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"broker.{field} is {value!r}"):
        TreeSettings(**{field: value})  # type: ignore[arg-type]
