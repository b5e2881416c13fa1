"""Links between tree brokers, and their clients: cycles, losses, restarts, what settles."""

from __future__ import annotations

from itertools import product

import pytest

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core import messages as errors
from gossamer.protocol.brokers.core.effects import Effect, Refuse, Send, SetTimer
from gossamer.protocol.brokers.core.messages import CycleError, DumpError, Id, client, neighbour
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree import messages as t
from gossamer.protocol.brokers.tree.messages import Message
from gossamer.protocol.content.filters import parse
from gossamer.protocol.kernel.errors import WrongValueError
from support.broker_overlay import Overlay, path, row

ANY = parse("present(x)")
N, M = neighbour("N"), neighbour("M")
ADVERTISEMENT = t.Advertisement(Id("N", 1), ANY)
WANTED = t.Subscription(Id("M", 2), ANY)
NOTHING = t.Synchronise((), ())


def sent(effects: list[Effect], name: str) -> list[t.BetweenBrokers]:
    return [
        effect.message.message
        for effect in effects
        if isinstance(effect, Send) and effect.neighbour == name
    ]


def between(**settings: object) -> TreeBroker:
    """A broker with a publisher's tree at N, and M beside it."""
    broker = TreeBroker("B", TreeSettings(**settings))  # type: ignore[arg-type]
    for name in ("N", "M"):
        broker.handle(0, None, messages.NeighbourUp(name))
    broker.handle(0, N, t.Frame(1, 1, t.Synchronise((ADVERTISEMENT,), ())))
    broker.handle(0, M, t.Frame(1, 1, NOTHING))
    return broker


def test_cycles_are_refused_in_a_clear_sentence_the_rest_is_taken_and_rings_stay_finite() -> None:
    broker = between()
    (effect,) = broker.handle(0, M, t.Frame(1, 2, ADVERTISEMENT))
    assert isinstance(effect, Refuse)
    assert isinstance(effect.error, CycleError)
    assert str(effect.error) == (
        "advertisement 1 of broker 'N' came from neighbour 'N' and again from neighbour 'M': "
        "brokers form a cycle, expected a tree"
    )
    assert (broker.counters.cycles, broker.sizes().advertisements) == (1, 1)
    # When the link comes up again, with another advertisement beside that one.
    told = t.Synchronise((ADVERTISEMENT, t.Advertisement(Id("M", 1), ANY)), ())
    assert any(isinstance(one, Refuse) for one in broker.handle(0, M, t.Frame(2, 1, told)))
    assert broker.sizes().advertisements == 2
    overlay = Overlay([*path("A", "B", "C"), ("A", "C")], TreeSettings())
    overlay.attach("publisher", "A")
    overlay.ask_and_settle("publisher", messages.Advertise("a", ANY))
    assert overlay.total("cycles") > 0
    assert all(isinstance(refusal.error, CycleError) for refusal in overlay.refusals)


def test_frames_that_come_twice_or_of_an_earlier_session_and_stale_messages_do_nothing() -> None:
    broker = between()
    frame = t.Frame(1, 2, WANTED)
    assert (sent(broker.handle(0, M, frame), "N"), broker.handle(0, M, frame)) == ([WANTED], [])
    assert broker.counters.duplicates == 1
    broker.handle(0, M, t.Frame(2, 1, NOTHING))
    assert (broker.handle(0, M, t.Frame(1, 9, WANTED)), broker.sizes().subscriptions) == ([], 0)
    broker, unknown = between(), Id("X", 1)
    stale: tuple[t.BetweenBrokers, ...] = (
        t.Unsubscription(unknown),
        t.Unadvertisement(unknown),
        t.Unadvertisement(ADVERTISEMENT.id),
        t.Publication(unknown, unknown, {"x": 1}),
        t.Publication(unknown, ADVERTISEMENT.id, {"x": 1}),
    )
    for number, message in enumerate(stale, start=2):
        assert broker.handle(0, M, t.Frame(1, number, message)) == []
    assert broker.counters.stale == 5


def test_a_missing_frame_makes_the_broker_ask_for_everything() -> None:
    broker, later = between(), t.Subscription(Id("M", 3), ANY)
    effects = broker.handle(0, M, t.Frame(1, 3, later))
    assert [sent(effects, name) for name in "MN"] == [[t.SynchroniseRequest()], [later]]
    told = t.Synchronise((), (t.Subscription(Id("M", 2), parse("x > 1")),))
    effects = broker.handle(0, M, t.Frame(2, 1, told))
    assert [type(message) for message in sent(effects, "N")] == [t.Subscription, t.Unsubscription]
    assert broker.counters.gaps == 1
    # Nothing is taken of a session whose beginning is missing.
    broker = between()
    assert sent(broker.handle(0, M, t.Frame(2, 2, WANTED)), "M") == [t.SynchroniseRequest()]
    assert broker.sizes().subscriptions == 0


def test_an_advertisement_floods_and_who_asks_is_told_what_others_said() -> None:
    broker = between()
    new = t.Advertisement(Id("N", 2), ANY)
    effects = broker.handle(0, N, t.Frame(1, 2, new))
    assert (sent(effects, "M"), sent(effects, "N")) == ([new], [])
    broker.handle(0, M, t.Frame(1, 2, WANTED))
    effects = broker.handle(0, N, t.Frame(1, 3, t.SynchroniseRequest()))
    assert sent(effects, "N") == [t.Synchronise((), (WANTED,))]
    effects = broker.handle(0, M, t.Frame(1, 3, t.SynchroniseRequest()))
    assert sent(effects, "M") == [t.Synchronise((ADVERTISEMENT, new), ())]


def test_a_neighbour_that_is_gone_leaves_nothing_behind_and_the_overlay_heals() -> None:
    broker = between()
    broker.handle(0, M, t.Frame(1, 2, WANTED))
    effects = broker.handle(0, None, messages.NeighbourGone("N"))
    assert sent(effects, "M") == [t.Unadvertisement(ADVERTISEMENT.id)]
    broker.handle(0, None, messages.NeighbourGone("M"))
    sizes = broker.sizes()
    assert (sizes.subscriptions, sizes.advertisements, sizes.sent) == (0, 0, 0)

    overlay = row("ABC")
    for end in "AC":
        overlay.tell(end, None, messages.NeighbourGone("B"))
    overlay.connect("A", "C")
    overlay.settle()
    overlay.publish(1)
    assert len(overlay.deliveries) == 1


@pytest.mark.parametrize("retained", [0, 10])
def test_publications_survive_an_interrupted_link_if_they_are_retained(retained: int) -> None:
    overlay = row("AB", retained_publications=retained)
    overlay.ask("publisher", messages.Publish({"x": 0}))
    overlay.interrupt("A", "B")
    overlay.ask("publisher", messages.Publish({"x": 1}))
    overlay.restore("A", "B")
    overlay.settle()
    assert overlay.published() == ([0, 1] if retained else [])
    # Those that are retained outlive their advertisement.
    overlay.interrupt("A", "B")
    overlay.ask("publisher", messages.Publish({"x": 2}))
    overlay.ask("publisher", messages.Unadvertise("a"))
    overlay.restore("A", "B")
    overlay.settle()
    assert overlay.published() == ([0, 1, 2] if retained else [])
    assert overlay.brokers["B"].sizes().advertisements == 0


def test_what_has_no_room_to_be_retained_is_counted_as_lost() -> None:
    broker = between(retained_publications=2)
    broker.handle(0, None, messages.NeighbourDown("M"))
    broker.handle(0, client("ann"), messages.Attach(advertisements=(("a", ANY),)))
    broker.handle(0, N, t.Frame(1, 2, t.Settled(broker.advertisements()[-1].id)))
    broker.handle(0, M, t.Frame(1, 2, WANTED))
    for value in range(5):
        assert broker.handle(0, client("ann"), messages.Publish({"x": value})) == []
    assert broker.counters.lost == 3
    effects = broker.handle(0, None, messages.NeighbourUp("M"))
    again = [one.values["x"] for one in sent(effects, "M") if isinstance(one, t.Publication)]
    assert again == [3, 4]


def test_acknowledgements_go_after_some_publications_or_some_time_and_end_repeating() -> None:
    broker = between(retained_publications=10, acknowledge_every=2, acknowledge_interval=5)
    broker.handle(0, M, t.Frame(1, 2, t.Settled(ADVERTISEMENT.id)))

    def came(at: int) -> list[Effect]:
        published = t.Publication(Id("N", 9 + at), ADVERTISEMENT.id, {"x": at})
        return broker.handle(at, N, t.Frame(1, 2 + at, published))

    assert came(0) == [SetTimer("acknowledge", 1, 5)]
    assert sent(came(1), "N") == [t.Acknowledge(1, 3)]
    came(2)
    fired = messages.TimerFired("acknowledge", 1)
    assert sent(broker.handle(5, None, fired), "N") == [t.Acknowledge(1, 4)]
    assert broker.handle(6, None, fired) == []
    # After a restart the timer is set again.
    broker.handle(7, N, t.Frame(1, 5, t.Publication(Id("N", 12), ADVERTISEMENT.id, {"x": 3})))
    again = TreeBroker.load(broker.dump(), TreeSettings(retained_publications=10))
    assert again.handle(8, None, messages.Restarted()) == [SetTimer("acknowledge", 2, 12)]
    overlay = row("AB", retained_publications=10, acknowledge_every=1)
    overlay.publish(0)
    (effect,) = overlay.tell("A", None, messages.NeighbourUp("B"))
    assert isinstance(effect, Send)
    assert isinstance(effect.message.message, t.Synchronise)


def test_a_broker_that_has_lost_its_dump_is_told_everything_again() -> None:
    overlay = row("ABC")
    overlay.brokers["B"] = TreeBroker("B", TreeSettings(), incarnation=1)
    overlay.restore("A", "B")
    overlay.restore("B", "C")
    overlay.settle()
    overlay.publish(1)
    assert len(overlay.deliveries) == 1


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"format": 2},
        {"format": 1, "name": "B"},
        TreeBroker("B", TreeSettings()).dump()
        | {"subscriptions": [[["B", 1], "x >", ["client", "c"], "s", 0, False]]},
    ],
)
def test_what_is_no_dump_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(DumpError, match="no dump of a broker"):
        TreeBroker.load(data, TreeSettings())


def test_a_neighbour_that_asks_again_ends_what_was_held_back() -> None:
    """It restarted from a dump made before it took its subscription back."""
    broker = between(covering="incremental")
    broker.handle(0, M, t.Frame(1, 2, WANTED))
    broker.handle(0, None, messages.Congestion(1000))
    broker.handle(0, M, t.Frame(1, 3, t.Unsubscription(WANTED.id, ())))
    broker.handle(0, M, t.Frame(2, 1, t.Synchronise((), (WANTED,))))
    broker.handle(0, None, messages.Congestion(0))
    assert broker.sizes().subscriptions == 1


# Clients: what is refused and why, and attaching elsewhere first.
def refusal(broker: TreeBroker, name: str, message: Message) -> Exception:
    before = broker.dump() | {"counters": None}
    (effect,) = broker.handle(0, client(name), message)
    assert isinstance(effect, Refuse)
    assert (effect.hop, effect.message) == (client(name), message)
    assert broker.dump() | {"counters": None} == before
    return effect.error


def test_a_publication_needs_an_advertisement_of_its_sender_that_allows_its_values() -> None:
    broker = TreeBroker("B", TreeSettings())
    broker.handle(0, client("ann"), messages.Attach())
    broker.handle(0, client("bob"), messages.Attach(advertisements=(("a", ANY),)))
    assert isinstance(refusal(broker, "ann", messages.Publish({"x": 1})), errors.NotAdvertisedError)
    broker.handle(0, client("ann"), messages.Advertise("a", parse("x > 0")))
    for values in ({"x": 0}, {"x": 1, "y": 1}, {"x": "one"}):
        error = refusal(broker, "ann", messages.Publish(values))
        assert isinstance(error, errors.NotAdvertisedError)
        assert error.values == values
    assert str(error) == "client 'ann' has no advertisement that allows x = 'one'"
    error = refusal(broker, "bob", messages.Publish({"x": None}))
    assert isinstance(error, WrongValueError)
    assert error.attribute == "x"


def test_a_client_that_attaches_elsewhere_first_misses_nothing() -> None:
    """Both brokers serve it for a while; publications have the same identifier at both."""
    overlay = row("ABC", "x > 0")
    overlay.tell("B", client("subscriber"), messages.Attach(subscriptions=(("s", parse("x > 0")),)))
    overlay.settle()
    overlay.publish(1)
    overlay.ask_and_settle("subscriber", messages.Detach())
    overlay.publish(2)
    ids = [publication.id for _, publication, _ in overlay.deliveries]
    assert (len(ids), len(set(ids))) == (3, 2)


# What is published straight after it was advertised, before subscriptions have come.
KEEPS = TreeSettings(retained_publications=100)
LINE = path("A", "B", "C", "D")


def line(settings: TreeSettings = KEEPS, seed: int = 0) -> Overlay:
    overlay = Overlay(LINE, settings, seed)
    for name, broker in (("publisher", "A"), ("near", "B"), ("far", "D"), ("other", "C")):
        overlay.attach(name, broker)
    overlay.subscribe(near="x > 0", far="x > 1", other="x < 0")
    return overlay


def publish_at_once(overlay: Overlay, *values: int) -> None:
    overlay.ask("publisher", messages.Advertise("a", ANY))
    for value in values:
        overlay.ask("publisher", messages.Publish({"x": value}))


def received(overlay: Overlay) -> list[tuple[str, object]]:
    return sorted((name, one.values["x"]) for name, one, _ in overlay.deliveries)


ALL_WANTED = [("far", 2), ("far", 3), ("near", 1), ("near", 2), ("near", 3)]


@pytest.mark.parametrize("seed", range(8))
def test_it_reaches_all_who_had_subscribed_and_then_goes_to_nobody_else(seed: int) -> None:
    overlay = line(seed=seed)
    publish_at_once(overlay, 1, 2)
    overlay.settle()
    assert not any(one.unsettled for b in overlay.brokers.values() for one in b.advertisements())
    false_positives = overlay.brokers["C"].counters.false_positives
    overlay.publish(3)
    assert received(overlay) == ALL_WANTED
    assert overlay.brokers["C"].counters.false_positives == false_positives


@pytest.mark.parametrize(("cut", "restarts"), list(product(LINE, (False, True))))
def test_it_waits_for_links_that_are_down(cut: tuple[str, str], restarts: bool) -> None:
    overlay = line()
    overlay.interrupt(*cut)
    publish_at_once(overlay, 1, 2)
    overlay.settle()
    if restarts:
        for name in cut:
            overlay.restart(name)
    overlay.restore(*cut)
    overlay.settle()
    overlay.publish(3)
    assert received(overlay) == ALL_WANTED


def test_who_does_not_come_back_is_waited_for_no_more_nor_anybody_in_the_papers() -> None:
    overlay = line()
    overlay.interrupt("C", "D")
    publish_at_once(overlay, 1)
    overlay.settle()
    assert [one.unsettled for one in overlay.brokers["A"].advertisements()] == [{"B"}]
    overlay.tell("C", None, messages.NeighbourGone("D"))
    overlay.settle()
    assert [one.unsettled for one in overlay.brokers["A"].advertisements()] == [set()]
    overlay = line(TreeSettings())
    publish_at_once(overlay, 1, 2)
    overlay.settle()
    assert received(overlay) == []
    overlay.publish(3)
    assert received(overlay) == [("far", 3), ("near", 3)]
    kinds = {kind for one in overlay.brokers.values() for kind in one.counters.sent}
    assert t.Settled.__name__ not in kinds
