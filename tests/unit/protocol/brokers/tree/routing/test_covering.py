"""Where subscriptions go under each covering, and what unsubscriptions trigger, paced or not."""

from __future__ import annotations

import pytest

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Effect, Send, SetTimer
from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.tree import COVERINGS, TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree.memory import messages as t
from gossamer.protocol.brokers.tree.routing.pacing import LARGEST_BATCH, PACE_TIMER
from gossamer.protocol.content.filters import parse
from gossamer.protocol.kernel.errors import ConfigError
from support.broker_overlay import Overlay, path, with_clients

EDGES = [*path(*"ABCDE"), ("B", "I"), ("B", "J"), ("C", "K"), ("C", "L"), ("D", "M")]
"""Figure 2 of the selective paper: subscribers at A and E, publishers at I to M."""
S_R, S_N = "n >= 1", "n >= 1 and n != 2 and n != 4"
TREE, PATH = set("EDCBIKM"), set("EDCB")
"""Brokers that S_n reaches alone, and where S_r covers it."""


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


def test_property_1_without_covering_a_subscription_makes_a_tree() -> None:
    overlay = figure_2("off")
    overlay.subscribe(r=S_R, n=S_N)
    assert (holders(overlay, "r"), holders(overlay, "n")) == (set("ABCDIJKLM"), TREE)


@pytest.mark.parametrize("covering", ["lazy", "active", "packed", "selective", "incremental"])
def test_property_2_a_covered_subscription_makes_a_path(covering: str) -> None:
    """Figure 2: S_n is quenched towards M at D, towards K at C and towards I at B."""
    overlay = figure_2(covering)
    overlay.subscribe(r=S_R)
    overlay.subscribe(n=S_N)
    assert (holders(overlay, "r"), holders(overlay, "n")) == (set("ABCDIJKLM"), PATH)


def test_active_covering_takes_back_what_came_before_and_lazy_does_not() -> None:
    for covering, expected in (("active", PATH), ("lazy", TREE)):
        overlay = figure_2(covering)
        overlay.subscribe(n=S_N)
        overlay.subscribe(r=S_R)
        assert holders(overlay, "n") == expected, covering


def test_removing_the_covering_subscription_makes_the_path_a_tree_again() -> None:
    """Sec. III-B: propagation of NRS(S) formed a path before, and a tree after."""
    overlay = figure_2("active")
    overlay.subscribe(r=S_R, n=S_N)
    overlay.ask_and_settle("r", messages.Unsubscribe("s"))
    assert (holders(overlay, "r"), holders(overlay, "n")) == (set(), TREE)


def below_and_above(covering: str, count: int = 5) -> Overlay:
    """A publisher at C; at A, `count` subscriptions and then one that covers them all."""
    clients = {"publisher": "C", "subscriber": "A"}
    overlay = with_clients(path(*"ABC"), clients, covering=covering)
    for number in range(count):
        overlay.ask("subscriber", messages.Subscribe(f"s{number}", parse(f"x == {number}")))
    overlay.ask_and_settle("subscriber", messages.Subscribe("all", parse("present(x)")))
    return overlay


def sent_for_the_end_of_all(overlay: Overlay) -> list[object]:
    """What A sends when the subscription above all is taken back."""
    effects = overlay.ask("subscriber", messages.Unsubscribe("all"))
    return [effect.message.message for effect in effects if isinstance(effect, Send)]


def test_triggered_subscriptions_go_before_the_unsubscription() -> None:
    sent = sent_for_the_end_of_all(below_and_above("active"))
    assert [type(message) for message in sent] == [t.Subscription] * 5 + [t.Unsubscription]
    assert all(message.triggered for message in sent[:-1])  # type: ignore[attr-defined]
    # Lazy covering triggers only what came after.
    overlay = below_and_above("lazy")
    overlay.ask_and_settle("subscriber", messages.Subscribe("late", parse("x == 9")))
    sent = sent_for_the_end_of_all(overlay)
    assert [type(message) for message in sent] == [t.Subscription, t.Unsubscription]


def test_packing_puts_the_burst_into_one_message() -> None:
    overlay = below_and_above("packed")
    (packed,) = sent_for_the_end_of_all(overlay)
    assert isinstance(packed, t.Packed)
    assert len(packed.messages) == 6
    overlay.settle()
    counters = overlay.brokers["B"].counters
    assert counters.triggered_received == {"Packed": 2}
    assert counters.received["Subscription"] >= 5


def test_equal_subscriptions_are_sent_once_and_the_second_takes_over() -> None:
    overlay = below_and_above("active", count=0)
    for asked in (messages.Subscribe("again", parse("present(x)")), messages.Unsubscribe("all")):
        overlay.ask_and_settle("subscriber", asked)
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


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("covering", "eager", "one of off, lazy, active, packed, selective"),
        *(
            (field, value, f"broker.{field} is {value!r}")
            for field, value in (
                *(("similarity", 1.5), ("some_triggered", 0), ("many_triggered", 5)),
                *(("statistics_entries", 0), ("congested_queue", -1)),
                *(("retained_publications", 2.5), ("small_count", True)),
            )
        ),
    ],
)
def test_impossible_settings_name_their_field(field: str, value: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        TreeSettings(**{field: value})  # type: ignore[arg-type]


# Paced pruning: what a subscription quenched goes before its end, a batch at a time.

ADA, N = client("ada"), neighbour("N")
QUENCHED = 11
DELAY = 100_000
TAKE_BACK = messages.Unsubscribe("root")


def paced(**more: int) -> TreeSettings:
    chosen = {"release_batch": 4, "release_delay": DELAY, **more}
    return TreeSettings(covering="paced", **chosen)  # type: ignore[arg-type]


def pacing_broker(**more: int) -> TreeBroker:
    """One whose neighbour has been sent a root, which quenches what came after it."""
    made = TreeBroker("B", paced(**more))
    made.handle(0, None, messages.NeighbourUp("N"))
    offer = t.Advertisement(Id("N", 1), parse("present(x)"))
    made.handle(0, N, t.Frame(1, 1, t.Synchronise((offer,), ())))
    made.handle(0, ADA, messages.Attach())
    made.handle(0, ADA, messages.Subscribe("root", parse("x >= 0")))
    for place in range(QUENCHED):
        wanted = parse(f"x >= {place} and x < {place + 1}")
        assert made.handle(0, ADA, messages.Subscribe(f"s{place}", wanted)) == []
    return made


def sent(effects: list[Effect]) -> str:
    """The kinds of what was sent, "+" and "-" for subscriptions and their end."""
    kinds = {t.Subscription: "+", t.Unsubscription: "-"}
    return "".join(kinds[type(one.message.message)] for one in effects if isinstance(one, Send))


def timers_in(effects: list[Effect]) -> list[SetTimer]:
    return [one for one in effects if isinstance(one, SetTimer)]


def acknowledged(made: TreeBroker, at: int, effects: list[Effect]) -> list[Effect]:
    """What follows when the neighbour acknowledges the last frame of these."""
    last = [one.message for one in effects if isinstance(one, Send)][-1]
    (link,) = made.links()
    acknowledge = t.Acknowledge(last.session, last.number)
    return made.handle(at, N, t.Frame(1, link.in_number + 1, acknowledge))


def test_a_batch_goes_when_the_one_before_has_passed_and_the_unsubscription_last() -> None:
    made = pacing_broker()
    first = made.handle(0, ADA, TAKE_BACK)
    assert sent(first) == "++++"
    assert [one.timer for one in timers_in(first)] == [PACE_TIMER]
    (kept,) = made.aggregates()["N"]
    assert kept.filter == parse("x >= 0")
    second = acknowledged(made, DELAY - 1, first)
    assert sent(second) == "++++"
    assert sent(acknowledged(made, 2 * DELAY - 2, second)) == "+++-"
    assert made.aggregates() == {}
    assert made.sizes().sent == QUENCHED


def test_batches_follow_how_long_the_neighbour_takes() -> None:
    made = pacing_broker()
    effects: list[Effect] = made.handle(0, ADA, TAKE_BACK)
    for at, expected in ((DELAY + 1, "++"), (3 * DELAY, "+"), (3 * DELAY + 10, "++")):
        effects = acknowledged(made, at, effects)
        assert sent(effects) == expected
    (link,) = made.links()
    assert link.window == 2
    assert LARGEST_BATCH >= 4


def test_what_fits_into_a_batch_goes_at_once_and_nothing_while_the_link_is_down() -> None:
    made = pacing_broker(release_batch=QUENCHED)
    assert sent(made.handle(0, ADA, TAKE_BACK)) == "+" * QUENCHED + "-"
    assert made.aggregates() == {}
    made = pacing_broker()
    made.handle(0, None, messages.NeighbourDown("N"))
    assert sent(made.handle(0, ADA, TAKE_BACK)) == ""
    assert len(made.aggregates()["N"]) == 1


def test_a_congested_broker_waits_and_goes_on_by_its_timer() -> None:
    made = pacing_broker()
    made.handle(0, None, messages.Congestion(1_000))
    (timer,) = made.handle(0, ADA, TAKE_BACK)
    assert isinstance(timer, SetTimer)
    (again,) = made.handle(timer.at, None, messages.TimerFired(PACE_TIMER, timer.token))
    assert isinstance(again, SetTimer)
    made.handle(timer.at, None, messages.Congestion(0))
    effects = made.handle(again.at, None, messages.TimerFired(PACE_TIMER, again.token))
    assert sent(effects) == "++++"


def test_a_batch_that_nobody_acknowledges_ends_after_a_while() -> None:
    made = pacing_broker(review_interval=DELAY)
    effects = made.handle(0, ADA, TAKE_BACK)
    assert sent(effects) == "++++"
    found = ""
    for _ in range(4):
        (timer,) = timers_in(effects)
        effects = made.handle(timer.at, None, messages.TimerFired(PACE_TIMER, timer.token))
        found += sent(effects)
        if not timers_in(effects):
            break
    assert found == "+++++++-"
    assert not timers_in(effects)


@pytest.mark.parametrize("after", [0, 1])
def test_a_dump_goes_on_where_it_was(after: int) -> None:
    made = pacing_broker()
    effects: list[Effect] = made.handle(0, ADA, TAKE_BACK)
    for _ in range(after):
        effects = acknowledged(made, 10, effects)
    again = TreeBroker.load(made.dump(), paced())
    assert again.dump() == made.dump()
    assert acknowledged(made, 20, effects) == acknowledged(again, 20, effects)


def test_a_broker_that_paces_acknowledges_what_was_triggered() -> None:
    made = pacing_broker()
    triggered = t.Subscription(Id("N", 9), parse("x >= 2"), triggered=True)
    (effect,) = made.handle(0, N, t.Frame(1, 2, triggered))
    assert isinstance(effect, Send)
    assert effect.message.message == t.Acknowledge(1, 2)
    asked = t.Subscription(Id("N", 10), parse("x >= 3"))
    assert made.handle(0, N, t.Frame(1, 3, asked)) == []
