"""Workloads of brokers against their definitions: shares, laws, degrees, who is where when."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import attrs
import numpy as np
import pytest

from gossamer.protocol.brokers.core.messages import Publish, Subscribe, Unsubscribe
from gossamer.protocol.content.filters import Filter, conforms, covers, exact_publication, parse
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.tree_brokers import scene
from gossamer.sim.studies.tree_brokers.commuters import (
    COMMUTER,
    STATIONARY,
    WANDERER,
    Commuters,
    Journey,
    journeys,
)
from gossamer.sim.studies.tree_brokers.covering_workload import CoveringWorkload
from gossamer.sim.studies.tree_brokers.game import Game
from gossamer.sim.studies.tree_brokers.processes import LARGE, MEDIUM, SMALL, Processes
from gossamer.sim.studies.tree_brokers.siena import Siena, covering_degree
from gossamer.sim.studies.tree_brokers.topology import tiered
from gossamer.sim.study.draws import normal, rows_from
from support.draws import with_campaigns
from support.scenes import stays
from support.sim_commands import printed_by

ROWS = 4_000


def near(share: float, expected: float, draws: int) -> bool:
    """Within five standard deviations of what is expected."""
    return bool(abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / draws))


def test_siena_has_its_lengths_operators_and_values_in_their_shares() -> None:
    subscriptions = Siena().subscriptions(rows_from(0, ROWS))
    lengths = Counter(map(len, subscriptions))
    assert sorted(lengths) == list(range(1, 11))
    assert all(near(count / ROWS, 0.1, ROWS) for count in lengths.values())
    comparisons = [one for wanted in subscriptions for one in wanted.comparisons()]
    signs = Counter(one.operator.value for one in comparisons)
    shares = {"==": 0.6, "<": 0.2, ">": 0.2}
    assert set(signs) == set(shares)
    for sign, share in shares.items():
        assert near(signs[sign] / len(comparisons), share, len(comparisons))
    values = Counter(one.constant for one in comparisons)
    assert set(values) == set(range(100))
    assert all(near(count / len(comparisons), 0.01, len(comparisons)) for count in values.values())
    publications = Siena().publications(rows_from(0, ROWS))
    sizes = Counter(map(len, publications))
    assert sorted(sizes) == list(range(1, 20))
    assert all(near(count / ROWS, 1 / 19, ROWS) for count in sizes.values())
    assert {value for one in publications for value in one.values()} == set(range(100))


@pytest.mark.parametrize("exponent", [1.0, 1.25])
def test_siena_names_follow_zipfs_law(exponent: float) -> None:
    siena = Siena(exponent=exponent, most_constraints=1)
    names = Counter(next(iter(one))[0] for one in siena.subscriptions(rows_from(0, ROWS)))
    weights = np.arange(1, siena.names + 1) ** -exponent
    for rank in range(10):
        assert near(names[siena.word(rank)] / ROWS, weights[rank] / weights.sum(), ROWS)


def test_a_row_of_siena_is_the_same_in_any_batch_and_wrong_settings_are_refused() -> None:
    whole = Siena().subscriptions(rows_from(0, 100))
    assert Siena().subscriptions(rows_from(40, 7)) == whole[40:47]
    assert Siena().subscriptions(rows_from(0, 100)[::-1].copy()) == whole[::-1]
    assert Siena().publications(rows_from(9, 1)) == Siena().publications(rows_from(0, 10))[9:]
    assert Siena(seed=2).subscriptions(rows_from(0, 100)) != whole
    for wrong in ({"names": 5}, {"values": 0}, {"most_attributes": 0}, {"shares": (0.5, 0.2, 0.2)}):
        with pytest.raises(ScenarioError, match=r"workload\."):
            Siena(**wrong)


@pytest.mark.parametrize(("roots", "degree"), [(1, 4), (5, 3), (7, 0)])
def test_the_covering_degree_of_a_staircase_is_exact(roots: int, degree: int) -> None:
    found = covering_degree([one.filter for one in CoveringWorkload(roots, degree).subscriptions()])
    assert len(found.roots) == roots
    assert found.covered.tolist() == found.triggered.tolist() == [degree] * roots
    assert found.degree == degree


def test_the_covering_degree_is_what_pairwise_covering_says() -> None:
    siena = Siena(names=6, values=8, most_constraints=3, most_attributes=3)
    wanted = siena.subscriptions(rows_from(0, 300))
    found = covering_degree(wanted)
    distinct = list(dict.fromkeys(wanted))
    above = {
        one: [other for other in distinct if other != one and covers(other, one)]
        for one in distinct
    }
    roots = [one for one in distinct if not above[one]]
    assert set(found.roots) == set(roots)
    assert 1 < len(roots) < len(distinct) < len(wanted)
    for root, covered, triggered in zip(found.roots, found.covered, found.triggered, strict=True):
        assert covered == sum(other != root and covers(root, other) for other in wanted)
        alone = wanted.count(root) == 1
        assert triggered == alone * sum(above[one] == [root] for one in distinct)


def test_whoever_moves_is_nowhere_for_a_while_and_then_elsewhere() -> None:
    wanted = parse("x > 0")
    subscribers = [scene.Placed("A", "one", wanted), scene.Placed("B", "two", wanted)]
    going = [
        Journey(10, 0, ("A", "B", "C"), 0.0),  # to B, the first that is not A
        Journey(12, 0, ("A", "B", "C"), 0.9),  # still away
        Journey(13, 1, ("B",), 0.5),  # nowhere else to go
        Journey(15, 0, ("A", "B", "C"), 0.9),  # to C
        Journey(15, 1, ("A",), 0.0),
    ]
    steps = [
        (at, broker, type(one).__name__) for at, broker, one in journeys(subscribers, going, 5)
    ]
    assert steps == [
        (10, "A", "Unsubscribe"),
        (15, "B", "Subscribe"),
        (15, "B", "Unsubscribe"),
        (15, "B", "Unsubscribe"),
        (20, "C", "Subscribe"),
        (20, "A", "Subscribe"),
    ]


def test_normal_draws_are_normal() -> None:
    drawn = normal(1, 999, rows_from(0, 100_000), 0)
    assert abs(drawn.mean()) < 5 / np.sqrt(len(drawn))
    assert abs(drawn.std() - 1) < 0.02
    assert near(float(np.mean(np.abs(drawn) < 1)), 0.6827, len(drawn))


SMALL_GAME = Game(players=200, player_every=scene.SECOND, monitor_every=10 * scene.SECOND)
SMALL_CITY = Commuters(
    subscribers=2_000, rush=scene.MINUTE, rush_spread=scene.MINUTE, publish_every=scene.SECOND
)
SMALL_WORK = Processes(small=4, medium=4, large=2, first_audit=0, audit_every=2 * scene.MINUTE)
WORKLOADS: list[scene.Workload] = [SMALL_GAME, SMALL_CITY, SMALL_WORK]
SPAN = 3 * scene.MINUTE


@pytest.mark.parametrize("workload", WORKLOADS, ids=["game", "city", "work"])
def test_steps_are_ordered_numbered_announced_whatever_the_span(workload: scene.Workload) -> None:
    announced: dict[str, set[Filter]] = {}
    for broker, _, offer in workload.advertisements():
        announced.setdefault(broker, set()).add(offer)
    steps = list(workload.steps(SPAN))
    assert [one.at for one in steps] == sorted(one.at for one in steps)
    assert 0 <= steps[0].at <= steps[-1].at <= SPAN + scene.SECOND
    published = [one for one in steps if isinstance(one.message, Publish)]
    for number, (_, broker, message) in enumerate(published):
        assert isinstance(message, Publish)
        assert message.values[scene.NUMBER] == number
        assert any(conforms(message.values, offer) for offer in announced[broker])
    assert steps == list(workload.steps(SPAN)), "it is the same at every reading"
    half = SPAN // 2
    longer = [one for one in steps if one.at < half]
    assert [one for one in workload.steps(half) if one.at < half] == longer


def test_players_stay_in_their_region_and_monitors_do_not() -> None:
    regions = dict(tiered().graph.nodes(data="region"))
    visited: dict[str, set[int]] = {}
    for one in stays(SMALL_GAME, SPAN):
        visited.setdefault(one.label, set()).add(regions[one.broker])
    players = [label for label in visited if label.startswith("player")]
    assert len(players) == 200
    assert all(len(visited[label]) == 1 for label in players)
    monitors = [found for label, found in visited.items() if label.startswith("monitor")]
    assert len(monitors) == 4
    assert any(len(found) > 1 for found in monitors)
    first = [one for one in SMALL_GAME.standing() if one.label.startswith("monitor")]
    assert sorted(regions[one.broker] for one in first) == [1, 2, 3, 4]


def leaving(game: Game) -> Counter[str]:
    """How often each client of a game leaves a broker."""
    steps = game.steps(SPAN)
    return Counter(one.message.label for one in steps if isinstance(one.message, Unsubscribe))


def test_moves_of_the_game_come_at_their_rates() -> None:
    left: Counter[str] = Counter()
    for label, count in leaving(SMALL_GAME).items():
        left[label.split()[0]] += count
    # Some of 200 players are drawn again while they are away.
    assert 0.95 * 180 <= left["player"] <= 180
    assert left["monitor"] == 18
    each = leaving(attrs.evolve(SMALL_GAME, player_every=0, monitors_move="each"))
    assert sorted(each.values()) == [18] * 4
    with pytest.raises(ScenarioError, match=r"workload\.monitors_move is 'none', expected one of"):
        attrs.evolve(SMALL_GAME, monitors_move="none")


def test_commuters_leave_home_around_the_rush_once_and_the_stationary_never() -> None:
    city = Commuters()
    counts = Counter(city.sorts().tolist())
    for sort, share in ((COMMUTER, 0.6), (WANDERER, 0.2), (STATIONARY, 0.2)):
        assert near(counts[sort] / city.subscribers, share, city.subscribers)
    city = Commuters(subscribers=ROWS, rush=100 * scene.MINUTE, publish_every=scene.MINUTE)
    sorts = city.sorts()
    left: dict[int, list[tuple[int, str]]] = {sort: [] for sort in counts}
    for at, _, message in city.steps(200 * scene.MINUTE):
        if isinstance(message, Unsubscribe):
            left[int(sorts[int(message.label)])].append((at, message.label))
    commutes = left[COMMUTER]
    assert len({label for _, label in commutes}) == len(commutes) == np.sum(sorts == COMMUTER)
    times = np.array([at for at, _ in commutes]) / scene.MINUTE
    assert abs(times.mean() - 100) < 5 * 20 / np.sqrt(len(times))
    assert abs(times.std() - 20) < 2
    assert left[STATIONARY] == []
    assert len(left[WANDERER]) > 3 * np.sum(sorts == WANDERER)


def test_processes_have_their_sizes_and_engines() -> None:
    work = Processes()
    regions = dict(work.overlay.graph.nodes(data="region"))
    by_size = {SMALL: 0, MEDIUM: 0, LARGE: 0}
    for process in work.processes():
        activities = [activity for stage in process.stages for activity in stage]
        assert activities == list(range(len(process.engines)))
        by_size[len(activities)] += 1
        if len(activities) == SMALL:
            assert len(set(process.engines)) == 1
        elif len(activities) == MEDIUM:
            assert len({regions[engine] for engine in process.engines}) == 1
    assert (by_size, len(list(work.monitors()))) == ({SMALL: 80, MEDIUM: 80, LARGE: 40}, 60)


def test_auditors_audit_a_minute_in_ten() -> None:
    work = Processes(small=1, medium=0, large=0)
    audits: dict[str, list[int]] = {}
    for at, _, message in work.steps(25 * scene.MINUTE):
        if isinstance(message, Subscribe | Unsubscribe) and message.label.startswith("auditor"):
            audits.setdefault(message.label, []).append(at // scene.MINUTE)
    assert len(audits) == 4
    assert all(times == [1, 2, 11, 12, 21, 22] for times in audits.values())


def test_auditors_may_ask_for_the_messages_that_trigger_a_process_only() -> None:
    work = Processes(small=2, medium=1, large=0, audited="triggers")
    messages = [one.message for one in work.steps(2 * scene.MINUTE)]
    (wanted,) = {
        one.filter
        for one in messages
        if isinstance(one, Subscribe) and one.label.startswith("auditor")
    }
    published = [one.values for one in messages if isinstance(one, Publish)]
    matched = [values for values in published if wanted.matches(exact_publication(values))]
    assert 0 < len(matched) < len(published)
    assert {values["activity"] for values in matched} == {"start"}
    with pytest.raises(ScenarioError, match=r"workload\.audited is 'some', expected one of"):
        Processes(audited="some")


def test_every_message_of_a_process_starts_what_waits_for_it_until_it_is_over() -> None:
    waiting = [one for one in stays(SMALL_WORK, SPAN) if " after " in one.label]
    published = [one for one in SMALL_WORK.steps(SPAN) if isinstance(one.message, Publish)]
    served = sum(
        any(one.filter.matches(message.values) for one in waiting if one.begin < at)
        for at, _, message in published
        if isinstance(message, Publish)
    )
    # Nothing waits for the last activity of a process.
    assert 0.6 * len(published) < served < len(published)
    work = Processes(small=1, medium=1, large=1, monitored=0.0, auditors=0)
    standing = len(list(work.standing()))
    later = [one for one in stays(work, 20 * scene.MINUTE) if one.end > 20 * scene.MINUTE]
    assert 0.5 * standing < len(later) < 2 * standing


def hash_of_steps() -> str:
    whole: list[object] = []
    for one in (
        Game(players=50, player_every=scene.SECOND),
        Commuters(subscribers=200, publish_every=scene.SECOND),
        Processes(small=2, medium=2, large=1),
    ):
        whole += [*one.advertisements(), *one.standing(), *one.steps(scene.MINUTE)]
    return hashlib.sha256(repr(whole).encode()).hexdigest()


@with_campaigns("hash_seed", ["1"], ["0"])
def test_nothing_depends_on_the_order_of_hashes(hash_seed: str) -> None:
    here = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})"
    code = f"{here}; import test_workloads as here; print(here.hash_of_steps())"
    assert printed_by(code, hash_seed) == hash_of_steps()
