"""What is published straight after it was advertised, before subscriptions have come."""

from __future__ import annotations

from itertools import product

import pytest

from gossamer.protocol.brokers.core.messages import Advertise, NeighbourGone, Publish
from gossamer.protocol.brokers.tree import TreeSettings
from gossamer.protocol.brokers.tree.memory import messages as t
from gossamer.protocol.content.filters import parse
from support.broker_overlay import Overlay, path

ANY = parse("present(x)")
KEEPS = TreeSettings(retained_publications=100)
LINE = path("A", "B", "C", "D")


def line(settings: TreeSettings = KEEPS, seed: int = 0) -> Overlay:
    """Four brokers in a line, with a publisher at one end and subscribers behind it."""
    overlay = Overlay(LINE, settings, seed)
    for name, broker in (("publisher", "A"), ("near", "B"), ("far", "D"), ("other", "C")):
        overlay.attach(name, broker)
    overlay.subscribe(near="x > 0", far="x > 1", other="x < 0")
    return overlay


def publish_at_once(overlay: Overlay, *values: int) -> None:
    """Advertise, and publish before anything has reached another broker."""
    overlay.ask("publisher", Advertise("a", ANY))
    for value in values:
        overlay.ask("publisher", Publish({"x": value}))


def received(overlay: Overlay) -> list[tuple[str, object]]:
    return sorted((name, one.values["x"]) for name, one, _ in overlay.deliveries)


WANTED = [("far", 2), ("far", 3), ("near", 1), ("near", 2), ("near", 3)]


@pytest.mark.parametrize("seed", range(8))
def test_it_reaches_all_who_had_subscribed_and_then_goes_to_nobody_else(seed: int) -> None:
    overlay = line(seed=seed)
    publish_at_once(overlay, 1, 2)
    overlay.settle()
    assert not any(one.unsettled for b in overlay.brokers.values() for one in b.advertisements())
    false_positives = overlay.brokers["C"].counters.false_positives
    overlay.publish(3)
    assert received(overlay) == WANTED
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
    assert received(overlay) == WANTED


def test_who_does_not_come_back_is_waited_for_no_more() -> None:
    overlay = line()
    overlay.interrupt("C", "D")
    publish_at_once(overlay, 1)
    overlay.settle()
    assert [one.unsettled for one in overlay.brokers["A"].advertisements()] == [{"B"}]
    overlay.tell("C", None, NeighbourGone("D"))
    overlay.settle()
    assert [one.unsettled for one in overlay.brokers["A"].advertisements()] == [set()]


def test_as_in_the_papers_nobody_is_waited_for_where_nothing_is_retained() -> None:
    overlay = line(TreeSettings())
    publish_at_once(overlay, 1, 2)
    overlay.settle()
    assert received(overlay) == []
    overlay.publish(3)
    assert received(overlay) == [("far", 3), ("near", 3)]
    kinds = {kind for one in overlay.brokers.values() for kind in one.counters.sent}
    assert t.Settled.__name__ not in kinds
