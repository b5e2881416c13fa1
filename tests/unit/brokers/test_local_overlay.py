"""An overlay in memory delivers what brokers promise, and says in a sentence what is wrong."""

from __future__ import annotations

import runpy
from functools import partial

import pytest

from gossamer import brokers
from support.checkout import ROOT

ROW = [("A", "B"), ("B", "C")]


def row_of_three(
    latency: int = 1000,
) -> tuple[brokers.LocalOverlay, brokers.LocalClient, brokers.LocalClient]:
    overlay = brokers.LocalOverlay(ROW, latency=latency)
    return overlay, overlay.attach("one", "A"), overlay.attach("other", "C")


def test_the_example_prints_what_arrives(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "embedding" / "local_overlay.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "[(('cheap',), 81.5)]",
        "while the link is down: 0",
        "afterwards: [99]",
    ]


def test_time_passes_by_links_and_only_when_it_is_told_to() -> None:
    overlay, one, other = row_of_three(latency=250)
    one.advertise("x >= 0")
    begun = overlay.now
    overlay.settle()
    assert overlay.now - begun == 1000, "there, and back that it has settled"
    other.subscribe(brokers.parse("x > 3"))
    overlay.settle()
    published = one.publish({"x": 4})
    assert other.take() == []
    at = overlay.now
    overlay.run(499)
    assert other.take() == []
    overlay.run(1)
    (delivery,) = other.take()
    assert (delivery.id, delivery.at, delivery.labels) == (published, at + 500, ("s1",))
    assert other.take() == []
    overlay.run(1_000_000)
    assert overlay.now == at + 500 + 1_000_000


def test_nothing_is_lost_or_comes_twice_however_often_a_link_breaks() -> None:
    overlay, one, other = row_of_three()
    one.advertise("present(x)")
    overlay.settle()
    other.subscribe("x >= 0")
    overlay.settle()
    for x in range(12):
        one.publish({"x": x})
        overlay.run(700)
        if x % 3 == 0:
            overlay.break_link("B", "C")
        if x % 3 == 1:
            overlay.restore_link("B", "C")
    overlay.settle()
    assert [delivery.values["x"] for delivery in other.take()] == list(range(12))


def test_whoever_leaves_takes_everything_back() -> None:
    overlay, one, other = row_of_three()
    label = one.advertise("present(x)")
    overlay.settle()
    wanted = other.subscribe("x >= 0")
    other.subscribe("x >= 5")
    overlay.settle()
    other.unsubscribe(wanted)
    overlay.settle()
    other.detach()
    one.unadvertise(label)
    one.detach()
    overlay.settle()
    for broker in overlay.brokers.values():
        sizes = broker.sizes()
        assert (sizes.subscriptions, sizes.advertisements, sizes.clients) == (0, 0, 0)
    overlay.attach("other", "C")


def test_an_overlay_may_be_one_broker_and_what_that_refuses_is_raised() -> None:
    overlay = brokers.LocalOverlay([], brokers.TreeSettings(), brokers=["alone"])
    one = overlay.attach("one", "alone")
    with pytest.raises(brokers.ProtocolError, match="has no advertisement that allows x = 1"):
        one.publish({"x": 1})
    one.advertise("x > 0", "mine")
    with pytest.raises(brokers.ProtocolError, match="'mine'"):
        one.advertise("x > 0", "mine")
    assert len(overlay.brokers["alone"].advertisements()) == 1
    one.subscribe("x == 1")
    one.publish({"x": 1})
    assert [delivery.values["x"] for delivery in one.take()] == [1]


def test_the_same_calls_give_the_same_deliveries() -> None:
    def deliveries() -> list[object]:
        overlay = brokers.LocalOverlay([*ROW, ("B", "D"), ("D", "E")])
        clients = [overlay.attach(name, name) for name in overlay.brokers]
        for one in clients:
            one.advertise("present(x)")
        overlay.settle()
        for place, one in enumerate(clients):
            one.subscribe(f"x >= {place}")
        for x in range(6):
            for one in clients:
                one.publish({"x": x})
            overlay.run(300)
        overlay.settle()
        return [one.take() for one in clients]

    assert deliveries() == deliveries()


def test_an_overlay_that_cannot_be_is_refused_in_a_sentence() -> None:
    overlay = brokers.LocalOverlay(ROW)
    overlay.attach("one", "A")
    cyclic = partial(brokers.LocalOverlay, [*ROW, ("C", "A")])
    for call, words in (
        (cyclic, r"links is \('C', 'A'\), expected links without a cycle"),
        (partial(row_of_three, -1), "latency is -1, expected 0 microseconds or more"),
        (partial(overlay.attach, "one", "Z"), "broker is 'Z', expected one of A, B, C"),
        (partial(overlay.attach, "one", "A"), "is 'one', expected one that no client of broker A"),
        (partial(overlay.break_link, "A", "C"), r"is \('A', 'C'\), expected a working link"),
        (partial(overlay.restore_link, "A", "B"), "expected an interrupted link"),
    ):
        with pytest.raises(brokers.ConfigError, match=words):
            call()


def test_a_broker_says_what_it_calls_what_it_was_asked() -> None:
    broker = brokers.TreeBroker("A", brokers.TreeSettings())
    ada = brokers.client("ada")
    assert broker.handle(0, ada, brokers.Attach()).id is None
    for message, number in (
        (brokers.Advertise("a", brokers.parse("present(x)")), 1),
        (brokers.Subscribe("s", brokers.parse("x > 3")), 2),
        (brokers.Publish({"x": 4}), 3),
    ):
        assert broker.handle(0, ada, message).id == brokers.Id("A", number)
    assert [one.id for one in broker.subscriptions()] == [brokers.Id("A", 2)]
    refused = broker.handle(0, ada, brokers.Publish({"y": 4}))
    assert isinstance(refused[0], brokers.Refuse)
    assert refused.id is None
    assert broker.handle(0, ada, brokers.Unsubscribe("s")).id is None
    held = (("s", brokers.parse("x > 3")),)
    assert broker.handle(0, brokers.client("bob"), brokers.Attach(held)).id is None
