"""Paced pruning: what a subscription quenched goes before it, a batch at a time."""

from __future__ import annotations

import pytest

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Effect, Send, SetTimer
from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree.memory import messages as t
from gossamer.protocol.brokers.tree.routing.pacing import LARGEST_BATCH, PACE_TIMER
from gossamer.protocol.content.filters import parse

ADA, N = client("ada"), neighbour("N")
QUENCHED = 11
DELAY = 100_000


def broker(batch: int = 4, **more: int) -> TreeBroker:
    """One whose neighbour has been sent a root, which quenches what came after it."""
    settings = TreeSettings(
        covering="paced",
        release_batch=batch,
        release_delay=DELAY,
        **more,  # type: ignore[arg-type]
    )
    made = TreeBroker("B", settings)
    made.handle(0, None, messages.NeighbourUp("N"))
    offer = t.Advertisement(Id("N", 1), parse("present(x)"))
    made.handle(0, N, t.Frame(1, 1, t.Synchronise((offer,), ())))
    made.handle(0, ADA, messages.Attach())
    made.handle(0, ADA, messages.Subscribe("root", parse("x >= 0")))
    for place in range(QUENCHED):
        wanted = parse(f"x >= {place} and x < {place + 1}")
        assert made.handle(0, ADA, messages.Subscribe(f"s{place}", wanted)) == []
    return made


def sent(effects: list[Effect]) -> list[str]:
    """The kinds of what was sent, "+" and "-" for subscriptions and their end."""
    kinds = {t.Subscription: "+", t.Unsubscription: "-"}
    frames = [one.message for one in effects if isinstance(one, Send)]
    return [kinds[type(frame.message)] for frame in frames]


def acknowledged(made: TreeBroker, at: int, effects: list[Effect]) -> list[Effect]:
    last = [one.message for one in effects if isinstance(one, Send)][-1]
    return made.handle(
        at, N, t.Frame(1, next_number(made), t.Acknowledge(last.session, last.number))
    )


def next_number(made: TreeBroker) -> int:
    """Of the neighbour's next frame."""
    (link,) = made.links()
    return link.in_number + 1


def test_a_batch_goes_when_the_one_before_has_passed_and_the_unsubscription_last() -> None:
    made = broker()
    first = made.handle(0, ADA, messages.Unsubscribe("root"))
    assert sent(first) == ["+"] * 4
    assert [one.timer for one in first if isinstance(one, SetTimer)] == [PACE_TIMER]
    (kept,) = made.aggregates()["N"]
    assert kept.filter == parse("x >= 0")
    second = acknowledged(made, DELAY - 1, first)
    assert sent(second) == ["+"] * 4
    third = acknowledged(made, 2 * DELAY - 2, second)
    assert sent(third) == ["+"] * 3 + ["-"]
    assert made.aggregates() == {}
    assert made.sizes().sent == QUENCHED


def test_batches_follow_how_long_the_neighbour_takes() -> None:
    made = broker()
    first = made.handle(0, ADA, messages.Unsubscribe("root"))
    second = acknowledged(made, DELAY + 1, first)
    assert sent(second) == ["+"] * 2
    third = acknowledged(made, 3 * DELAY, second)
    assert sent(third) == ["+"]
    fourth = acknowledged(made, 3 * DELAY + 10, third)
    assert sent(fourth) == ["+"] * 2
    (link,) = made.links()
    assert link.window == 2
    assert LARGEST_BATCH >= 4


def test_what_fits_into_a_batch_goes_at_once() -> None:
    made = broker(batch=QUENCHED)
    assert sent(made.handle(0, ADA, messages.Unsubscribe("root"))) == ["+"] * QUENCHED + ["-"]
    assert made.aggregates() == {}


def test_a_congested_broker_waits_and_goes_on_by_its_timer() -> None:
    made = broker()
    made.handle(0, None, messages.Congestion(1_000))
    effects = made.handle(0, ADA, messages.Unsubscribe("root"))
    (timer,) = effects
    assert isinstance(timer, SetTimer)
    (again,) = made.handle(timer.at, None, messages.TimerFired(PACE_TIMER, timer.token))
    assert isinstance(again, SetTimer)
    made.handle(timer.at, None, messages.Congestion(0))
    effects = made.handle(again.at, None, messages.TimerFired(PACE_TIMER, again.token))
    assert sent(effects) == ["+"] * 4


def test_a_batch_that_nobody_acknowledges_ends_after_a_while() -> None:
    made = broker(review_interval=DELAY)
    effects = made.handle(0, ADA, messages.Unsubscribe("root"))
    timers = [one for one in effects if isinstance(one, SetTimer)]
    assert sent(effects) == ["+"] * 4
    found: list[str] = []
    for _ in range(4):
        (timer,) = timers
        effects = made.handle(timer.at, None, messages.TimerFired(PACE_TIMER, timer.token))
        timers = [one for one in effects if isinstance(one, SetTimer)]
        found += sent(effects)
        if not timers:
            break
    assert found == ["+"] * 7 + ["-"]
    assert not timers


@pytest.mark.parametrize("after", [0, 1])
def test_a_dump_goes_on_where_it_was(after: int) -> None:
    made = broker()
    effects: list[Effect] = made.handle(0, ADA, messages.Unsubscribe("root"))
    for _ in range(after):
        effects = acknowledged(made, 10, effects)
    again = TreeBroker.load(
        made.dump(), TreeSettings(covering="paced", release_batch=4, release_delay=DELAY)
    )
    assert again.dump() == made.dump()
    assert acknowledged(made, 20, effects) == acknowledged(again, 20, effects)


def test_nothing_is_sent_while_the_link_is_down() -> None:
    made = broker()
    made.handle(0, None, messages.NeighbourDown("N"))
    assert sent(made.handle(0, ADA, messages.Unsubscribe("root"))) == []
    assert len(made.aggregates()["N"]) == 1


def test_a_broker_that_paces_acknowledges_what_was_triggered() -> None:
    made = broker()
    triggered = t.Subscription(Id("N", 9), parse("x >= 2"), triggered=True)
    (effect,) = made.handle(0, N, t.Frame(1, 2, triggered))
    assert isinstance(effect, Send)
    assert effect.message.message == t.Acknowledge(1, 2)
    asked = t.Subscription(Id("N", 10), parse("x >= 3"))
    assert made.handle(0, N, t.Frame(1, 3, asked)) == []
