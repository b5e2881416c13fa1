"""Where subscriptions go under each covering, what unsubscriptions trigger, and how far."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Effect, Send, SetTimer
from gossamer.protocol.brokers.core.messages import Id, client, neighbour
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings, pruning
from gossamer.protocol.brokers.tree import messages as t
from gossamer.protocol.brokers.tree.covering import LARGEST_BATCH, PACE_TIMER
from gossamer.protocol.brokers.tree.messages import CriticalDistance
from gossamer.protocol.content.filters import parse
from gossamer.protocol.kernel.errors import ConfigError
from support.broker_overlay import Overlay, path, with_clients

EDGES = [*path(*"ABCDE"), ("B", "I"), ("B", "J"), ("C", "K"), ("C", "L"), ("D", "M")]
"""Figure 2 of the selective paper: subscribers at A and E, publishers at I to M."""
WANTED = {"r": "n >= 1", "n": "n >= 1 and n != 2 and n != 4"}
"""S_r at A meets all advertisements, S_n at E those of I, K and M only."""
TREE, PATH = set("EDCBIKM"), set("EDCB")
"""Brokers that S_n reaches alone, and where S_r covers it."""


def figure_2(covering: str, order: str) -> Overlay:
    overlay = Overlay(EDGES, TreeSettings(covering=covering))
    for number, broker in enumerate("IJKLM", start=1):
        overlay.attach(f"publisher{number}", broker)
        announced = parse(f"n == {number} and present(x)")
        overlay.ask(f"publisher{number}", messages.Advertise("a", announced))
    overlay.attach("r", "A")
    overlay.attach("n", "E")
    overlay.settle()
    for name in order:
        overlay.subscribe(**{name: WANTED[name]})
    return overlay


def holders(overlay: Overlay, client: str) -> set[str]:
    host = overlay.home[client]
    return {
        name
        for name, broker in overlay.brokers.items()
        for entry in broker.dump()["subscriptions"]  # type: ignore[attr-defined]
        if entry[0][0] == host
    }


@pytest.mark.parametrize(
    ("covering", "order", "expected"),
    [
        # Property 1: without covering a subscription makes a tree.
        ("off", "rn", TREE),
        # Property 2: S_n is quenched towards M at D, towards K at C and towards I at B.
        *((one, "rn", PATH) for one in ("lazy", "active", "packed", "selective", "incremental")),
        # Active covering takes back what came before, and lazy does not.
        ("active", "nr", PATH),
        ("lazy", "nr", TREE),
    ],
)
def test_what_is_covered_makes_a_path(covering: str, order: str, expected: set[str]) -> None:
    overlay = figure_2(covering, order)
    assert (holders(overlay, "r"), holders(overlay, "n")) == (set("ABCDIJKLM"), expected)
    if covering == "active":
        # Sec. III-B: propagation of NRS(S) formed a path before, and a tree after.
        overlay.ask_and_settle("r", messages.Unsubscribe("s"))
        assert (holders(overlay, "r"), holders(overlay, "n")) == (set(), TREE)


def below_and_above(covering: str, count: int = 5) -> Overlay:
    """A publisher at C; at A, `count` subscriptions and then one that covers them all."""
    overlay = with_clients(path(*"ABC"), {"publisher": "C", "subscriber": "A"}, covering=covering)
    for number in range(count):
        overlay.ask("subscriber", messages.Subscribe(f"s{number}", parse(f"x == {number}")))
    overlay.ask_and_settle("subscriber", messages.Subscribe("all", parse("present(x)")))
    return overlay


def sent_for_the_end_of_all(overlay: Overlay) -> list[object]:
    effects = overlay.ask("subscriber", messages.Unsubscribe("all"))
    return [effect.message.message for effect in effects if isinstance(effect, Send)]


def test_triggered_subscriptions_go_before_the_unsubscription_or_packed_with_it() -> None:
    sent = sent_for_the_end_of_all(below_and_above("active"))
    assert [type(message) for message in sent] == [t.Subscription] * 5 + [t.Unsubscription]
    assert all(message.triggered for message in sent[:-1])  # type: ignore[attr-defined]
    # Lazy covering triggers only what came after.
    overlay = below_and_above("lazy")
    overlay.ask_and_settle("subscriber", messages.Subscribe("late", parse("x == 9")))
    sent = sent_for_the_end_of_all(overlay)
    assert [type(message) for message in sent] == [t.Subscription, t.Unsubscription]
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


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("covering", "eager"), ("similarity", 1.5), ("some_triggered", 0), ("many_triggered", 5)),
        *(("statistics_entries", 0), ("congested_queue", -1)),
        *(("retained_publications", 2.5), ("small_count", True)),
    ],
)
def test_impossible_settings_name_their_field(field: str, value: object) -> None:
    words = "one of off, lazy, active, packed, selective" if field == "covering" else ""
    with pytest.raises(ConfigError, match=f"broker.{field} is {value!r}.*{words}"):
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


def test_batches_go_when_the_one_before_has_passed_and_follow_how_long_it_takes() -> None:
    made = pacing_broker()
    first = made.handle(0, ADA, TAKE_BACK)
    assert (sent(first), [one.timer for one in timers_in(first)]) == ("++++", [PACE_TIMER])
    (kept,) = made.aggregates()["N"]
    assert kept.filter == parse("x >= 0")
    second = acknowledged(made, DELAY - 1, first)
    assert (sent(second), sent(acknowledged(made, 2 * DELAY - 2, second))) == ("++++", "+++-")
    assert (made.aggregates(), made.sizes().sent) == ({}, QUENCHED)
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
    assert (sent(made.handle(0, ADA, TAKE_BACK)), len(made.aggregates()["N"])) == ("", 1)


def test_a_congested_broker_waits_and_goes_on_by_its_timer() -> None:
    made = pacing_broker()
    made.handle(0, None, messages.Congestion(1_000))
    (timer,) = made.handle(0, ADA, TAKE_BACK)
    assert isinstance(timer, SetTimer)
    (again,) = made.handle(timer.at, None, messages.TimerFired(PACE_TIMER, timer.token))
    assert isinstance(again, SetTimer)
    made.handle(timer.at, None, messages.Congestion(0))
    assert sent(made.handle(again.at, None, messages.TimerFired(PACE_TIMER, again.token))) == "++++"


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
    assert made.handle(0, N, t.Frame(1, 3, t.Subscription(Id("N", 10), parse("x >= 3")))) == []


# Critical distances and Algorithm 1, on the worked examples of both pruning papers.
SELECTIVE = TreeSettings(covering="selective")
BELOW = TreeSettings(covering="selective", critical_rule="below")
INCREMENTAL = TreeSettings(covering="incremental")
A1, A2, A3 = Id("P1", 1), Id("P2", 1), Id("P3", 1)
U, V, W = map(neighbour, "UVW")

TABLE_1 = (1, 5, 1, 1, 7)
"""Distances of Table I of the incremental paper."""
Distance = Callable[[Sequence[int], float], int]
SEVEN_TENTHS = [1] * 7 + [2] * 3
"""0.7 as a float is less than seven tenths, which must not make a hop of difference."""


@pytest.mark.parametrize(
    ("distance", "distances", "share", "expected"),
    [
        (pruning.incremental_distance, TABLE_1, 0.8, 5),
        # Sec. IV-B: at the broker two hops away, phi is 0.6; so a threshold of 0.6 is met there.
        (pruning.incremental_distance, TABLE_1, 0.6, 1),
        (pruning.incremental_distance, TABLE_1, 0.61, 5),
        # The paper says 10 there (Sec. IV-C), which is no distance of its table; by its equation 3,
        # 90 % of five publications are all of them, and the farthest is 7 hops away.
        (pruning.incremental_distance, TABLE_1, 0.9, 7),
        (pruning.incremental_distance, SEVEN_TENTHS, 0.7, 1),
        (pruning.incremental_distance, [], 0.9, 0),
        (pruning.selective_distance, [6] * 18 + [9] * 2, 0.85, 7),
        (
            pruning.selective_distance,
            [6] * 17 + [9] * 3,
            0.85,
            10,
        ),  # the threshold has to be exceeded
        (pruning.selective_distance, SEVEN_TENTHS, 0.7, 3),
        (pruning.selective_distance, [1, 2, 3], 1.0, pruning.EVERYWHERE),
        (pruning.selective_distance, [], 0.9, 0),
    ],
)
def test_the_critical_distance_is_where_enough_publications_are_shared(
    distance: Distance, distances: Sequence[int], share: float, expected: int
) -> None:
    assert distance(distances, share) == expected


def test_at_most_is_never_farther_than_below_and_keeps_the_threshold() -> None:
    """Equation 3 of the incremental paper: phi(x) counts distances of at most x."""
    for distances in ([6] * 18 + [9] * 2, [1, 1, 2, 3], [0], [2] * 9 + [5], list(range(20))):
        for share in (0.5, 0.85, 0.9):
            nearer = pruning.incremental_distance(distances, share)
            assert nearer < pruning.selective_distance(distances, share)
            assert sum(one <= nearer for one in distances) >= share * len(distances)
            assert sum(one <= nearer - 1 for one in distances) < share * len(distances)


def test_every_advertisement_that_is_met_has_a_tuple() -> None:
    distances = {A1: [6, 2, 2, 6, 7]}
    for chosen, hops in ((BELOW, 8), (SELECTIVE, 7)):
        found = pruning.critical_distances(chosen, [A1, A2], distances)
        assert found == (CriticalDistance(A1, (hops,)), CriticalDistance(A2, (0,)))
    found = pruning.critical_distances(INCREMENTAL, [A1], {A1: TABLE_1})
    assert found == (CriticalDistance(A1, (1, 7)),)


def test_thresholds_go_by_the_number_of_triggered_subscriptions_in_incremental_pruning() -> None:
    """60 % from lg M = 3.7, 90 % from lg M = 1, else 100 % (incremental paper, Sec. IV-C)."""
    asked = {0: 1.0, 9: 1.0, 10: 0.9, 5011: 0.9, 5012: 0.6}
    assert {count: pruning.similarity_asked(INCREMENTAL, count) for count in asked} == asked
    assert [pruning.chosen_distance(INCREMENTAL, count) for count in asked] == [None, None, 1, 1, 0]
    assert {pruning.chosen_distance(SELECTIVE, count) for count in (0, 10, 10_000)} == {0}
    assert {pruning.similarity_asked(SELECTIVE, count) for count in (0, 10, 10_000)} == {0.9}
    for quenched in (0, 9, 10, 5011, 5012, 100_000):  # no more are counted than decide
        for triggered in {min(quenched, most) for most in (0, 9, 10, 11, 5011, 5012, 100_000)}:
            counted = min(triggered, pruning.enough_displaced(INCREMENTAL, quenched))
            assert pruning.chosen_distance(INCREMENTAL, counted) == pruning.chosen_distance(
                INCREMENTAL, triggered
            )
    assert pruning.enough_displaced(SELECTIVE, 100_000) == 1


def test_tuples_go_on_where_an_advertisement_and_the_chosen_distance_have_hops_left() -> None:
    """Lines 4 to 8: tuples of the neighbour's advertisements with pruneDis > 0, one less each."""
    senders = {A1: U, A2: U, A3: V}
    critical = tuple(CriticalDistance(id_, (far,)) for id_, far in ((A1, 2), (A2, 0), (A3, 1)))
    assert pruning.tuples_onward(critical, senders, U, 0) == (CriticalDistance(A1, (1,)),)
    assert pruning.tuples_onward(critical, senders, V, 0) == (CriticalDistance(A3, (0,)),)
    assert pruning.tuples_onward(critical, senders, W, 0) == ()
    # Never towards the broker's own publishers, nor on what nobody advertises.
    assert pruning.tuples_onward((CriticalDistance(A1, (3,)),), {A1: client("U")}, U, 0) == ()
    assert pruning.tuples_onward((CriticalDistance(A1, (3,)),), {}, U, 0) == ()
    # Lines 11 and 12, with pruneDis as lines 1 to 6 say; infinity for few triggered ones.
    critical = (CriticalDistance(A1, (0, 3)),)
    lower = (CriticalDistance(A1, (-1, 2)),)
    for chosen, expected in ((0, ()), (1, lower), (None, lower)):
        assert pruning.tuples_onward(critical, {A1: U}, U, chosen) == expected
    # Brokers may be set differently: the one distance of selective pruning stands for both.
    single = (CriticalDistance(A1, (2,)), CriticalDistance(A2, (0,)))
    for distance in (0, 1):
        assert pruning.tuples_onward(single, {A1: U, A2: U}, U, distance) == (
            CriticalDistance(A1, (1,)),
        )
