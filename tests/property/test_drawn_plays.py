"""Drawn plays of brokers of all families: nothing is lost, nothing comes twice, nothing stays.

Everything is drawn by the number of the play, settings included. `GOSSAMER_PLAYS` says how many are
played of each family (15; 67,000 make 200,000 together), `GOSSAMER_FIRST_PLAY` where they begin.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Final

import pytest
from attrs import evolve

from gossamer.protocol.brokers.scot import BrokerLabel, ScotSettings
from gossamer.protocol.brokers.tree import COVERINGS
from property.test_broker_plays import STEPS, settings_for
from property.test_scot_routing import WAYS, check_served
from property.test_scot_routing import play as route
from support.broker_overlay import Overlay
from support.broker_play import Play
from support.scot_take_over import TakeOverPlay
from support.tree_play import FAILURES, NOTHING, TreePlay

PLAYS: Final = int(os.environ.get("GOSSAMER_PLAYS", "15"))
FIRST: Final = int(os.environ.get("GOSSAMER_FIRST_PLAY", "0"))
TEXTS: Final = ("present(x)", "x > 5", "x < 3")


def play_tree(draw: random.Random) -> None:
    """Any covering, one for each broker, or another after each restart; with and without faults."""
    faults = draw.random() < 0.5
    chosen = settings_for(draw, draw.choice(sorted(COVERINGS)), faults)
    others = sorted(COVERINGS) if faults and draw.random() < 0.3 else ()
    one = Play(draw, chosen, draw.randrange(2, 8), faults, coverings=others)
    if draw.random() < 0.3 and not faults:
        each = {
            name: evolve(chosen, covering=draw.choice(sorted(COVERINGS)))
            for name in sorted(one.overlay.brokers)
        }
        home = one.overlay.home
        one.overlay = Overlay(one.edges, chosen, draw.randrange(1 << 30), each=each)
        for name in sorted(home):
            one.overlay.attach(name, home[name])
    one.run(STEPS)


def play_scot(draw: random.Random) -> None:
    """Any routing while nothing fails; or as many failures at once as there are backups."""
    if draw.random() < 0.4:
        overlay, wanted = route(draw, draw.choice(WAYS))
        check_served(overlay.deliveries, wanted)
        assert overlay.refusals == []
        assert overlay.total("lost") == overlay.waiting() == 0
    else:
        _fail_at_once(draw)


def _fail_at_once(draw: random.Random) -> None:
    backups = draw.choice([1, 2])
    clusters = draw.randrange(backups + 1, 5)
    chosen = ScotSettings(
        routing=draw.choice(["static", "dynamic"]),
        spare_links=draw.random() < 0.5,
        around_failures=True,
        take_over=True,
        backups=backups,
        covering=draw.random() < 0.5,
        input_queues=draw.random() < 0.5,
        own_threshold=draw.random() < 0.5,
    )
    play = TakeOverPlay(draw, clusters=clusters, settings=chosen)
    play.settle()
    for number in range(draw.randrange(1, 8)):
        play.subscribe(f"S{number}", draw.choice(sorted(play.brokers)), draw.choice(TEXTS))
    play.settle()
    play.congest()
    _publish(play, draw, draw.randrange(6))
    for failure in range(backups):
        if failure and draw.random() < 0.3:
            links = sorted((str(one), str(other)) for one, other in play.scot.links())
            working = [link for link in links if play.broken.isdisjoint({link})]
            play.cut(*draw.choice(working))
        else:
            play.kill(draw.choice(sorted(play.brokers.keys() - play.dead.keys())))
        if draw.random() < 0.3:
            play.settle()
    _publish(play, draw, draw.randrange(4))
    play.settle()
    for one in play.subscribers.values():
        if one.at[-1] in play.dead:
            play.move(one, _first_backup(play, one.at[-1]))
    _publish(play, draw, 4)
    play.settle()
    assert play.refusals == []
    for one in play.subscribers.values():
        due = {made.id for made in play.published if made.safe and one.wanted.matches(made.values)}
        assert due <= one.ids, f"{one.name} at {one.at} misses {sorted(due - one.ids)}"
        assert not one.got or max(one.got.values()) == 1, f"{one.name} got something twice"
    if not play.broken:
        _leave(play)


def _publish(play: TakeOverPlay, draw: random.Random, count: int) -> None:
    for _ in range(count):
        play.publish(
            draw.choice(sorted(play.brokers.keys() - play.dead.keys())), x=draw.randrange(10)
        )
        for _ in range(draw.randrange(12)):
            play.step()
        if draw.random() < 0.3:
            play.take(draw.choice(sorted(play.subscribers.values(), key=lambda one: one.name)))


def _first_backup(play: TakeOverPlay, broker: str) -> str:
    label, clusters = BrokerLabel.parse(broker), len(play.scot.clusters)
    others = (label._replace(cluster=(label.cluster + i) % clusters) for i in range(1, clusters))
    return next(str(other) for other in others if str(other) not in play.dead)


def _leave(play: TakeOverPlay) -> None:
    for one in list(play.subscribers.values()):
        play.unsubscribe(one)
    play.settle()
    assert not any(broker.table() for broker in play.brokers.values())


def play_graph(draw: random.Random) -> None:
    """Any strategy; one thing fails, or any number of things that come back."""
    seed, wildly = draw.randrange(1 << 32), draw.random() < 0.3
    play = TreePlay.drawn(NOTHING if wildly else draw.choice(FAILURES), seed)
    if wildly:
        play.run_wildly()
    else:
        play.run()
    assert play.twice() == play.missed() == play.unwanted() == []
    if wildly:
        assert play.overlay.total("lost") == 0
        assert all(one.sizes().parked == 0 for one in play.overlay.brokers.values())
    else:
        assert play.overlay.refusals == []


@pytest.mark.slow
@pytest.mark.parametrize("family", [play_tree, play_scot, play_graph])
def test_nothing_is_lost_nothing_comes_twice_and_nothing_stays(
    family: Callable[[random.Random], None],
) -> None:
    for number in range(FIRST, FIRST + PLAYS):
        try:
            family(random.Random(f"{family.__name__} {number}"))
        except AssertionError as error:
            raise AssertionError(f"{family.__name__} {number}: {error}") from error
