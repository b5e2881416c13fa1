"""Drawn plays of brokers: deliveries equal a flat matcher's, and nothing is lost or stays.

What is promised for concurrent operations is said, and asserted, in `support.broker_play`. Plays of
all families are drawn by their number, settings included; 67,000 of each (`-m campaign --draws
67000`) make 200,000 together. Interests of the unsubscription bench overlap as they say.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.core.broker import SharedIndex, compiled_index
from gossamer.protocol.brokers.scot import ScotSettings
from gossamer.protocol.brokers.tree import COVERINGS, TreeSettings, settings
from gossamer.protocol.brokers.tree import tables as marks
from gossamer.protocol.content.filters import covers, parse
from property.test_scot_routing import WAYS, check_served, random_overlay
from property.test_scot_routing import play as route
from property.test_tree_brokers import run_and_check, run_wildly_and_check
from support import broker_overlay, scot_take_over, sim_commands, tree_brokers
from support.broker_play import Play
from support.draws import Draws, few_or_many, named
from support.overlapping_interests import Interests, Ledger
from support.plain_index import PlainIndex

STEPS = 50
UNPRUNED = ("off", "lazy", "active", "packed")


def settings_for(draw: random.Random, covering: str, faults: bool) -> TreeSettings:
    """Settings under which small tables do everything that large ones do."""
    some = draw.choice([1, 2])
    return TreeSettings(
        covering=covering,
        similarity=draw.choice([0.3, 0.9]),
        critical_rule=draw.choice(settings.CRITICAL_RULES),
        displaced=draw.choice(settings.DISPLACED),
        small_count=draw.choice([0, 0, 2]),
        some_triggered=some,
        many_triggered=draw.choice([some, 4]),
        statistics_entries=draw.choice([3, 100]),
        drop_unpaid=draw.random() < 0.5,
        review_arrivals=draw.choice([1, 5]),
        retained_publications=1000 if faults else 0,
        acknowledge_every=draw.choice([1, 2, 100]),
        release_batch=draw.choice([1, 2, 3]),
        release_delay=draw.choice([1, 1_000_000]),
    )


@few_or_many(4, 200)
@pytest.mark.parametrize("faults", [False, True], ids=["lossless", "faults"])
@pytest.mark.parametrize("covering", COVERINGS)
def test_plays_deliver_what_is_due(covering: str, faults: bool, count: int, draws: Draws) -> None:
    for seed in draws.numbers(count):
        with named(f"seed {seed}"):
            draw = random.Random(f"{covering} {faults} {seed}")
            one = Play(draw, settings_for(draw, covering, faults), draw.randrange(2, 8), faults)
            one.run(STEPS)
            overlay = one.overlay
            if not faults:
                for name in ("duplicates", "stale", "gaps", "lost"):
                    assert overlay.total(name) == 0, name
            if covering in UNPRUNED and not faults:
                for name in ("preserved", "dropped", "held"):
                    assert overlay.total(name) == 0, name


@few_or_many(3, 50)
@pytest.mark.parametrize("covering", COVERINGS)
def test_brokers_may_restart_with_another_covering(covering: str, count: int, draws: Draws) -> None:
    for seed in draws.numbers(count):
        draw = random.Random(f"{covering} to others {seed}")
        chosen = settings_for(draw, covering, faults=True)
        size = draw.randrange(2, 8)
        with named(f"seed {seed}"):
            Play(draw, chosen, size, faults=True, coverings=sorted(COVERINGS)).run(STEPS)


def outcome(one: Play) -> tuple[object, object]:
    """What clients got, and what all brokers remember at the end."""
    overlay = one.overlay
    return overlay.deliveries, {name: broker.dump() for name, broker in overlay.brokers.items()}


@few_or_many(2, 8)
@pytest.mark.parametrize("covering", COVERINGS)
def test_neither_the_index_nor_shared_marks_of_neighbours_make_another_broker(
    covering: str, count: int, draws: Draws, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = marks.OWN_MARKS
    for seed in draws.numbers(count):
        chosen = settings_for(random.Random(seed), covering, faults=True)
        found = []
        for index, own in ((PlainIndex, every), *((SharedIndex, own) for own in (every, 1, 0))):
            monkeypatch.setattr(marks, "OWN_MARKS", own)
            one = Play(random.Random(seed), chosen, 5, faults=True, new_index=index)
            one.run(STEPS)
            found.append(outcome(one))
        assert all(one == found[0] for one in found), seed


@pytest.mark.usefixtures("compiled")
def test_a_play_runs_the_same_with_the_index_compiled() -> None:
    chosen = settings_for(random.Random(5), "selective", faults=False)
    runs = [Play(random.Random(5), chosen, 5, new_index=i) for i in (PlainIndex, compiled_index)]
    for one in runs:
        one.run(STEPS)
    assert outcome(runs[0]) == outcome(runs[1])


def test_a_run_does_not_depend_on_the_order_of_hashes() -> None:
    """Two interpreters that hash texts differently agree on what all brokers remember."""
    program = (
        "import random\n"
        "from support.broker_play import Play\n"
        "from gossamer.protocol.brokers.tree import TreeSettings\n"
        "one = Play(random.Random(7), TreeSettings(covering='selective'), 6)\n"
        "one.operate(80)\n"
        "print([broker.dump() for broker in one.overlay.brokers.values()], one.overlay.deliveries)"
    )
    assert sim_commands.printed_by(program, "1") == sim_commands.printed_by(program, "2")


def cover_differently(one: Play, draw: random.Random, seed: int | None = None) -> None:
    """Put an overlay whose brokers have any covering each in the place of that of a play."""
    each = {
        name: evolve(one.settings, covering=draw.choice(sorted(COVERINGS)))
        for name in sorted(one.overlay.brokers)
    }
    home, drawn = one.overlay.home, draw.randrange(1 << 30) if seed is None else seed
    one.overlay = broker_overlay.Overlay(one.edges, one.settings, drawn, each=each)
    for name in sorted(home):
        one.overlay.attach(name, home[name])


@few_or_many(4, 60)
def test_brokers_of_one_overlay_may_cover_differently(count: int, draws: Draws) -> None:
    """Deliveries depend on no agreement among brokers."""
    for seed in draws.numbers(count):
        draw = random.Random(seed)
        mixed = Play(draw, settings_for(draw, "active", faults=False), 6)
        cover_differently(mixed, draw, seed)
        mixed.run(STEPS)


# Drawn plays of brokers of all families.


def play_tree(draw: random.Random) -> None:
    """Any covering, one for each broker, or another after each restart; with and without faults."""
    faults = draw.random() < 0.5
    chosen = settings_for(draw, draw.choice(sorted(COVERINGS)), faults)
    others = sorted(COVERINGS) if faults and draw.random() < 0.3 else ()
    one = Play(draw, chosen, draw.randrange(2, 8), faults, coverings=others)
    if draw.random() < 0.3 and not faults:
        cover_differently(one, draw)
    one.run(STEPS)


def play_scot(draw: random.Random) -> None:
    """Any routing while nothing fails; or as many failures at once as there are backups."""
    if draw.random() < 0.4:
        overlay = random_overlay(draw, draw.choice(WAYS))
        wanted = route(draw, overlay)
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
    play = scot_take_over.TakeOverPlay(draw, clusters=clusters, settings=chosen)
    play.settle()
    play.subscribe_some(draw.randrange(1, 8))
    play.congest()
    play.publish_some(draw.randrange(6))
    for failure in range(backups):
        if failure and draw.random() < 0.3:
            links = sorted((str(one), str(other)) for one, other in play.scot.links())
            play.cut(*draw.choice([link for link in links if play.broken.isdisjoint({link})]))
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
    seed = draw.randrange(1 << 32)
    if draw.random() < 0.3:
        run_wildly_and_check(seed)
    else:
        run_and_check(draw.choice(tree_brokers.FAILURES), seed)


@few_or_many(3, 30)
@pytest.mark.parametrize("family", [play_tree, play_scot, play_graph])
def test_nothing_is_lost_nothing_comes_twice_and_nothing_stays(
    family: Any, count: int, draws: Draws
) -> None:
    for number in draws.numbers(count):
        with named(f"{family.__name__} {number}"):
            family(random.Random(f"{family.__name__} {number}"))


interests = st.builds(
    Interests,
    roots=st.integers(1, 6),
    degree=st.integers(1, 5),
    overlap=st.integers(1, 4),
    children_matched=st.integers(0, 7),
)


@given(interests, st.integers(0, 9))
def test_so_many_broad_ones_cover_each_narrow_one_and_no_other(made: Interests, seed: int) -> None:
    """And a publication matches what it is said to."""
    every = [(one, parse(one.expression)) for one in made.all()]
    for one, narrow in every:
        covering = [other.label for other, broad in every if other != one and covers(broad, narrow)]
        roots = range(one.root, min(one.root + made.overlap, made.roots))
        assert covering == ([] if one.is_root else [f"{root}.0" for root in roots])
    for x, y in made.publications(5, seed):
        matching = [one.label for one, wanted in every if wanted.matches({"x": x, "y": y})]
        assert sorted(made.matching(x, y)) == sorted(matching)


def make_ledger(**got: str) -> Ledger:
    """One broad subscription at S1 and what it covers at S2, and a publication that both want.

    What hosts get of it at 6, for these labels, is noted.
    """
    ledger = Ledger(Interests(roots=1, degree=1, overlap=1), {"0.0": "S1", "0.1": "S2"})
    assert ledger.publish(1, 1, due=5.0) == {"x": 1, "y": 1, "number": 0}
    for host, labels in got.items():
        ledger.deliver(host, 0, labels.split(), now=6.0)
    return ledger


def test_what_is_due_has_to_come_once_and_nothing_else_may() -> None:
    assert make_ledger().wrong() == {"missing": 2}
    ledger = make_ledger(S1="0.0")
    ledger.deliver("S2", 0, ["0.1"], now=7.0)
    assert (ledger.wrong(), ledger.delays()) == ({}, [(5.0, 1.0), (5.0, 2.0)])
    ledger.deliver("S2", 0, ["0.1"], now=8.0)
    assert ledger.wrong() == {"repeated": 1}
    assert make_ledger(S1="0.0 0.1", S2="0.1").wrong() == {"false": 1}


def test_what_is_being_taken_back_may_bring_something_or_not() -> None:
    ledger = make_ledger(S2="0.1")
    ledger.asked["0.0"] = 5.5
    assert ledger.wrong() == {}
    ledger.deliver("S1", 0, ["0.0"], now=6.0)
    assert ledger.wrong() == {}
    ledger.answered["0.0"] = 4.0
    assert ledger.wrong() == {"false": 1}
    # What was waited for before is due all the same.
    ledger = make_ledger(S2="0.1")
    ledger.settled = 1
    ledger.asked["0.0"] = ledger.answered["0.0"] = 9.0
    assert ledger.wrong() == {"missing": 1}
