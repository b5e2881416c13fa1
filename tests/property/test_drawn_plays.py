"""Drawn plays of brokers of all families: nothing is lost, nothing comes twice, nothing stays.

Everything is drawn by the number of the play, settings included; 67,000 of each family
(`-m campaign --draws 67000`) make 200,000 together.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from attrs import evolve

from gossamer.protocol.brokers.scot import ScotSettings
from gossamer.protocol.brokers.tree import COVERINGS
from property.test_broker_plays import STEPS, settings_for
from property.test_scot_routing import WAYS, check_served
from property.test_scot_routing import play as route
from support.broker_overlay import Overlay
from support.broker_play import Play
from support.draws import Draws, few_or_many, named
from support.scot_take_over import TakeOverPlay
from support.tree_play import FAILURES, NOTHING, TreePlay


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
    play.subscribe_some(draw.randrange(1, 8))
    play.congest()
    play.publish_some(draw.randrange(6))
    for failure in range(backups):
        if failure and draw.random() < 0.3:
            links = sorted((str(one), str(other)) for one, other in play.scot.links())
            working = [link for link in links if play.broken.isdisjoint({link})]
            play.cut(*draw.choice(working))
        else:
            play.kill(draw.choice(play.alive))
        if draw.random() < 0.3:
            play.settle()
    play.publish_and_settle(draw.randrange(4))
    play.move_clients_of_the_dead()
    play.publish_and_settle(4)
    play.check_arrived()
    if not play.broken:
        play.check_empty()


def play_graph(draw: random.Random) -> None:
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


@few_or_many(3, 30)
@pytest.mark.parametrize("family", [play_tree, play_scot, play_graph])
def test_nothing_is_lost_nothing_comes_twice_and_nothing_stays(
    family: Callable[[random.Random], None], count: int, draws: Draws
) -> None:
    for number in draws.numbers(count):
        with named(f"{family.__name__} {number}"):
            family(random.Random(f"{family.__name__} {number}"))
