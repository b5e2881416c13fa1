"""Every operation in every order on random overlays: deliveries equal a flat matcher's.

What is promised for concurrent operations is said, and asserted, in `support.broker_play`.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.core.index import SharedIndex, compiled_index
from gossamer.protocol.brokers.tree import COVERINGS, TreeSettings
from gossamer.protocol.brokers.tree.memory import marks
from gossamer.protocol.brokers.tree.memory.settings import CRITICAL_RULES, DISPLACED
from support.broker_overlay import Overlay
from support.broker_play import Play
from support.draws import Draws, few_or_many, named
from support.plain_index import PlainIndex

STEPS = 50
UNPRUNED = ("off", "lazy", "active", "packed")


def settings_for(draw: random.Random, covering: str, faults: bool) -> TreeSettings:
    """Settings under which small tables do everything that large ones do."""
    some = draw.choice([1, 2])
    return TreeSettings(
        covering=covering,
        similarity=draw.choice([0.3, 0.9]),
        critical_rule=draw.choice(CRITICAL_RULES),
        displaced=draw.choice(DISPLACED),
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


def play(draw: random.Random, covering: str, faults: bool, steps: int = STEPS) -> Play:
    chosen = settings_for(draw, covering, faults)
    found = Play(draw, chosen, draw.randrange(2, 8), faults)
    found.run(steps)
    return found


@few_or_many(4, 200)
@pytest.mark.parametrize("faults", [False, True], ids=["lossless", "faults"])
@pytest.mark.parametrize("covering", COVERINGS)
def test_seeded_plays_deliver_what_a_flat_matcher_does(
    covering: str, faults: bool, count: int, draws: Draws
) -> None:
    for seed in draws.numbers(count):
        with named(f"seed {seed}"):
            overlay = play(random.Random(f"{covering} {faults} {seed}"), covering, faults).overlay
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


@given(
    draw=st.randoms(use_true_random=False),
    covering=st.sampled_from(sorted(COVERINGS)),
    faults=st.booleans(),
)
def test_plays_that_shrink_deliver_what_a_flat_matcher_does(
    draw: random.Random, covering: str, faults: bool
) -> None:
    play(draw, covering, faults, steps=25)


@few_or_many(2, 8)
@pytest.mark.parametrize("covering", COVERINGS)
def test_the_shared_index_makes_the_same_broker(covering: str, count: int, draws: Draws) -> None:
    for seed in draws.numbers(count):
        chosen = settings_for(random.Random(seed), covering, faults=True)
        plays = [
            Play(random.Random(seed), chosen, 5, faults=True, new_index=index)
            for index in (PlainIndex, SharedIndex)
        ]
        for one in plays:
            one.run(STEPS)
        plain, shared = (one.overlay for one in plays)
        assert plain.deliveries == shared.deliveries, seed
        assert dumps(plain) == dumps(shared), seed


@few_or_many(1, 4)
@pytest.mark.parametrize("covering", COVERINGS)
def test_neighbours_that_share_their_marks_get_the_same(
    covering: str, count: int, draws: Draws, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in draws.numbers(count):
        chosen = settings_for(random.Random(seed), covering, faults=True)
        overlays = []
        for own_marks in (marks.OWN_MARKS, 1, 0):
            monkeypatch.setattr(marks, "OWN_MARKS", own_marks)
            one = Play(random.Random(seed), chosen, 5, faults=True, new_index=SharedIndex)
            one.run(STEPS)
            overlays.append(one.overlay)
        assert dumps(overlays[0]) == dumps(overlays[1]) == dumps(overlays[2]), seed
        assert overlays[0].deliveries == overlays[1].deliveries == overlays[2].deliveries


@pytest.mark.usefixtures("compiled")
def test_a_play_runs_the_same_with_the_index_compiled() -> None:
    chosen = settings_for(random.Random(5), "selective", faults=False)
    runs = [Play(random.Random(5), chosen, 5, new_index=i) for i in (PlainIndex, compiled_index)]
    for one in runs:
        one.run(STEPS)
    assert runs[0].overlay.deliveries == runs[1].overlay.deliveries
    assert dumps(runs[0].overlay) == dumps(runs[1].overlay)


def test_the_same_seed_makes_the_same_run() -> None:
    first, second = (play(random.Random(3), "selective", faults=True).overlay for _ in range(2))
    assert first.deliveries == second.deliveries
    assert dumps(first) == dumps(second)


def test_a_run_does_not_depend_on_the_order_of_hashes() -> None:
    """Two interpreters that hash texts differently agree on what all brokers remember."""
    program = (
        "import random\n"
        "from support.broker_play import Play\n"
        "from gossamer.protocol.brokers.tree import TreeSettings\n"
        "one = Play(random.Random(7), TreeSettings(covering='selective'), 6)\n"
        "one.operate(80)\n"
        "print([broker.dump() for broker in one.overlay.brokers.values()])\n"
        "print(one.overlay.deliveries)"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


@few_or_many(4, 60)
def test_brokers_of_one_overlay_may_cover_differently(count: int, draws: Draws) -> None:
    """Deliveries depend on no agreement among brokers."""
    for seed in draws.numbers(count):
        draw = random.Random(seed)
        mixed = Play(draw, settings_for(draw, "active", faults=False), 6)
        edges, overlay = mixed.edges, mixed.overlay
        covering = {name: draw.choice(sorted(COVERINGS)) for name in overlay.brokers}
        mixed.overlay = Overlay(
            edges,
            mixed.settings,
            seed,
            each={name: evolve(mixed.settings, covering=one) for name, one in covering.items()},
        )
        for name in sorted(overlay.home):
            mixed.overlay.attach(name, overlay.home[name])
        mixed.run(STEPS)


def dumps(overlay: Overlay) -> dict[str, dict[str, object]]:
    return {name: broker.dump() for name, broker in overlay.brokers.items()}
