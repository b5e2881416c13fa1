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
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.protocol.brokers.core.index import SharedIndex, compiled_index
from gossamer.protocol.brokers.tree import COVERINGS, TreeSettings
from gossamer.protocol.brokers.tree.memory import marks
from gossamer.protocol.brokers.tree.memory.settings import CRITICAL_RULES, DISPLACED
from support.broker_overlay import Overlay
from support.broker_play import Play
from support.plain_index import PlainIndex

SEEDS = 200
"""Plays of each covering, with and without faults."""

STEPS = 50


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
    """Run a play to its end."""
    chosen = settings_for(draw, covering, faults)
    found = Play(draw, chosen, draw.randrange(2, 8), faults)
    found.run(steps)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("faults", [False, True], ids=["lossless", "faults"])
@pytest.mark.parametrize("covering", COVERINGS)
def test_seeded_plays_deliver_what_a_flat_matcher_does(covering: str, faults: bool) -> None:
    for seed in range(SEEDS):
        try:
            play(random.Random(f"{covering} {faults} {seed}"), covering, faults)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.slow
@pytest.mark.parametrize("covering", COVERINGS)
def test_brokers_that_restart_may_have_another_covering(covering: str) -> None:
    for seed in range(SEEDS // 4):
        draw = random.Random(f"{covering} to others {seed}")
        chosen = settings_for(draw, covering, faults=True)
        size = draw.randrange(2, 8)
        try:
            Play(draw, chosen, size, faults=True, coverings=sorted(COVERINGS)).run(STEPS)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.slow
@settings(max_examples=50)
@given(
    draw=st.randoms(use_true_random=False),
    covering=st.sampled_from(sorted(COVERINGS)),
    faults=st.booleans(),
)
def test_plays_that_shrink_deliver_what_a_flat_matcher_does(
    draw: random.Random, covering: str, faults: bool
) -> None:
    play(draw, covering, faults, steps=25)


@pytest.mark.slow
@pytest.mark.parametrize("covering", COVERINGS)
def test_without_faults_nothing_is_stale_or_comes_twice(covering: str) -> None:
    for seed in range(30):
        overlay = play(random.Random(f"{covering} {seed}"), covering, faults=False).overlay
        counted = [overlay.total(name) for name in ("duplicates", "stale", "gaps", "lost")]
        assert counted == [0, 0, 0, 0], seed


@pytest.mark.slow
@pytest.mark.parametrize("covering", ["off", "lazy", "active", "packed"])
def test_without_pruning_nothing_is_preserved_or_held(covering: str) -> None:
    for seed in range(30):
        overlay = play(random.Random(f"{covering} {seed}"), covering, faults=False).overlay
        assert [overlay.total(name) for name in ("preserved", "dropped", "held")] == [0, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("covering", COVERINGS)
def test_the_matching_index_and_a_plain_one_make_the_same_broker(covering: str) -> None:
    for seed in range(8):
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


@pytest.mark.parametrize("covering", COVERINGS)
def test_neighbours_that_share_their_marks_get_the_same(
    covering: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(4):
        chosen = settings_for(random.Random(seed), covering, faults=True)
        overlays = []
        for own_marks in (marks.OWN_MARKS, 1, 0):
            monkeypatch.setattr(marks, "OWN_MARKS", own_marks)
            one = Play(random.Random(seed), chosen, 5, faults=True, new_index=SharedIndex)
            one.run(STEPS)
            overlays.append(one.overlay)
        assert dumps(overlays[0]) == dumps(overlays[1]) == dumps(overlays[2]), seed
        assert overlays[0].deliveries == overlays[1].deliveries == overlays[2].deliveries


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_brokers_of_one_overlay_may_cover_differently() -> None:
    """Deliveries depend on no agreement among brokers."""
    for seed in range(60):
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
    """What every broker remembers."""
    return {name: broker.dump() for name, broker in overlay.brokers.items()}
