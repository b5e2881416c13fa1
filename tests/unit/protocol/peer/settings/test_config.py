"""Settings: impossible ones are refused by name, presets differ as they say."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from gossamer.protocol.kernel.errors import ConfigError
from gossamer.protocol.peer.settings import config, presets
from gossamer.protocol.peer.state.state import make_state

WHOLE_NUMBERS = {
    "attributes": (1, 16),
    "subscriptions": (1, 1024),
    "profile_ranges": (1, 16),
    "view_size": (8, 256),
    "shuffle_length": (1, 20),
    "ring_links": (0, 16),
    "small_world_links": (0, 48),
    "friend_links": (0, 48),
    "finger_levels": (0, 48),
    "finger_exchanges": (1, 48),
    "guest_links": (0, 16),
    "move_rounds": (0, 1 << 20),
    "entry_links": (0, 0),
    "key_intervals": (1, 64),
    "heartbeat_rounds": (1, 10),
    "failure_age": (1, 1 << 20),
    "suspect_rounds": (0, 1 << 20),
    "failures_remembered": (0, 1024),
    "rest_rounds": (1, 1),
    "boxes_per_neighbour": (2, 1 << 16),
    "routing_table_entries": (8, 1 << 20),
    "refresh_rounds": (1, 3),
    "entry_lifetime": (1, 1 << 20),
    "ring_repairs": (0, 1 << 10),
    "acknowledged_hops": (0, 1 << 16),
    "replicas": (0, 16),
    "replay_rounds": (0, 1 << 20),
    "event_memory": (1, 1 << 16),
    "pending_publications": (0, 1 << 16),
    "retry_rounds": (1, 1 << 16),
    "held_events": (0, 1 << 20),
    "retention_rounds": (0, 1 << 30),
    "hop_limit": (1, (1 << 15) - 1),
    "seed": (0, (1 << 62) - 1),
}
SWITCHES = [
    *("nearest_routing", "enter_on_the_way"),
    *("cascade", "load_shifting", "join_lookup", "stabilise", "reroute"),
    *("ring_offers", "hand_on", "replay_backoff"),
]
NUMBERS = ["place_spread", "shift_threshold"]
CHOICES = {
    "sampler": list(config.SAMPLERS),
    "rendezvous": ["value", "attribute", "key"],
    "placement": ["drawn", "interest"],
}


def assert_refused(field: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"\b{field} is .*, expected ") as caught:
        config.Settings(**{field: value})
    assert (caught.value.field, caught.value.value) == (field, value)


def test_every_setting_is_tested_here() -> None:
    tested = {*WHOLE_NUMBERS, *SWITCHES, *CHOICES, *NUMBERS}
    assert tested == {field.name for field in attrs.fields(config.Settings)}


@pytest.mark.parametrize(("field", "bounds"), WHOLE_NUMBERS.items())
def test_whole_numbers_keep_their_bounds(field: str, bounds: tuple[int, int]) -> None:
    low, high = bounds
    for value in bounds:
        assert getattr(config.Settings(**{field: value}), field) == value  # type: ignore[arg-type]
    if field != "view_size":
        assert_refused(field, low - 1)
    for wrong in (high + 1, -1, 2.0, "3", None, True):
        assert_refused(field, wrong)


def test_peers_rest_where_they_suspect_who_does_not_answer_and_have_a_ring() -> None:
    for rounds in (1, 16, 1 << 10):
        assert config.Settings(suspect_rounds=1, rest_rounds=rounds).rest_rounds == rounds
    reason = "expected 1 where suspect_rounds is 0: who rests finds failures by questions alone"
    for refused in ({}, {"suspect_rounds": 1, "ring_links": 0}):
        with pytest.raises(ConfigError, match=r"rest_rounds is 2, expected .*1") as caught:
            config.Settings(rest_rounds=2, **refused)  # type: ignore[arg-type]
        assert caught.value.field == "rest_rounds"
        assert (reason in str(caught.value)) == (not refused)


def test_ages_are_bounded_by_how_long_a_neighbour_rests() -> None:
    resting = config.Settings(suspect_rounds=1, rest_rounds=24, failure_age=10)
    assert (resting.longest_age, resting.rest_levels) == (58, 4)
    awake = config.Settings()
    assert (awake.longest_age, awake.rest_levels) == (10, 0)
    assert awake.longest_accepted_age == resting.longest_accepted_age > config.MOST_REST_ROUNDS


@pytest.mark.parametrize("field", SWITCHES)
def test_switches_are_true_or_false(field: str) -> None:
    assert not getattr(config.Settings(**{field: False}), field)  # type: ignore[arg-type]
    for value in (0, 1, "yes", None):
        assert_refused(field, value)


@pytest.mark.parametrize(("field", "choices"), CHOICES.items())
def test_choices_are_named_in_the_error(field: str, choices: list[str]) -> None:
    for value in choices:
        assert getattr(config.Settings(**{field: value}), field) == value  # type: ignore[arg-type]
    for wrong in ("", "Cyclon", None, 0):
        assert_refused(field, wrong)
    with pytest.raises(ConfigError, match=", ".join(choices)):
        config.Settings(**{field: "unknown"})  # type: ignore[arg-type]


INFINITY = float("inf")


@pytest.mark.parametrize("value", [-0.1, INFINITY, -INFINITY, float("nan"), 1e300, "1", None, True])
def test_numbers_keep_their_bounds(value: Any) -> None:
    for field in NUMBERS:
        with pytest.raises(ConfigError, match=rf"{field} is .*, expected a number from 0 to "):
            config.Settings(**{field: value})


def test_bounds_depend_on_other_settings() -> None:
    with pytest.raises(ConfigError, match="shuffle_length is 8, expected a whole number from 1"):
        config.Settings(view_size=7)
    # So that boxes of one attribute can always be merged to make room.
    assert config.Settings(attributes=5, boxes_per_neighbour=6).boxes_per_neighbour == 6
    with pytest.raises(ConfigError, match="boxes_per_neighbour is 5, expected a whole number"):
        config.Settings(attributes=5, boxes_per_neighbour=5)


def test_parameters_are_integers_and_links_of_all_kinds() -> None:
    parameters = config.Settings(shift_threshold=0.5, rendezvous="attribute").parameters()
    assert all(type(value) is int for value in parameters)
    assert parameters.shift_threshold == config.LOAD_UNIT * config.LOAD_WINDOW // 2
    assert (parameters.by_value, config.Settings().parameters().by_value) == (0, 1)
    assert config.Settings(ring_links=3, small_world_links=4, friend_links=5).links == 15
    assert make_state(config.Settings(view_size=256), 2).sampler.views.shape == (2, 256)


@pytest.mark.parametrize(
    ("nodes", "friends"), [(1, 1), (2, 1), (8, 1), (16, 2), (10**3, 8), (10**5, 15)]
)
def test_friend_links_follow_the_logarithm_of_the_size(nodes: int, friends: int) -> None:
    assert presets.friend_links_for(nodes) == friends


def differences(one: config.Settings, other: config.Settings) -> dict[str, Any]:
    before, after = attrs.asdict(one), attrs.asdict(other)
    return {field: after[field] for field in before if before[field] != after[field]}


def test_presets_differ_as_documented() -> None:
    assert differences(config.Settings(), presets.paper(100_000)) == {"friend_links": 15}
    assert differences(presets.paper(1000), presets.baseline(1000)) == {
        "rendezvous": "attribute",
        "friend_links": 0,
        "small_world_links": 8,
        "load_shifting": False,
    }
    assert presets.baseline(1000).links == presets.paper(1000).links
    assert differences(presets.paper(1000), presets.resilient(1000)) == {
        "ring_links": 3,
        "join_lookup": True,
        "stabilise": True,
        "reroute": True,
        "replicas": 2,
        "replay_rounds": 3,
        "heartbeat_rounds": 4,
    }
    assert differences(presets.resilient(1000), presets.kindred(1000)) == {
        "friend_links": 0,
        "finger_levels": 8,
        "placement": "interest",
        "move_rounds": 10,
        "entry_links": 8,
        "rendezvous": "key",
        "nearest_routing": True,
        "enter_on_the_way": True,
        "shift_threshold": 0.1,
        "replicas": 1,
        "replay_rounds": 5,
        "suspect_rounds": 1,
        "refresh_rounds": 4,
        "entry_lifetime": 12,
        "failures_remembered": 32,
        "ring_repairs": 8,
        "ring_offers": True,
        "hand_on": True,
        "replay_backoff": True,
        "acknowledged_hops": 32,
    }
    assert presets.kindred(1000, subscriptions=4).guest_links == 3
    assert presets.kindred(1000, subscriptions=64).guest_links == 8


@pytest.mark.parametrize(
    ("nodes", "ring", "levels"), [(2, 3, 1), (9, 3, 1), (100, 1, 6), (10**5, 3, 15)]
)
def test_fingers_reach_every_peer(nodes: int, ring: int, levels: int) -> None:
    """The last level that may be needed is there: its reach is half the ring or more."""
    assert presets.finger_levels_for(nodes, ring) == levels
    assert nodes <= 12 or ring << (levels + 1) >= nodes / 2


def test_routing_by_key_adds_a_coordinate_to_several_attributes() -> None:
    assert [presets.kindred(9, attributes=a).coordinates for a in (1, 2, 15)] == [1, 3, 16]
    assert [presets.kindred(9, attributes=a).rows for a in (1, 2)] == [1, 8]
    with pytest.raises(ConfigError, match="attributes is 16, expected a whole number from 1 to 15"):
        presets.kindred(9, attributes=16)


@pytest.mark.parametrize(
    "preset", [presets.paper, presets.baseline, presets.resilient, presets.kindred]
)
def test_changes_override_a_preset(preset: Any) -> None:
    settings = preset(1000, friend_links=3, load_shifting=False, replicas=1)
    assert (settings.friend_links, settings.load_shifting, settings.replicas) == (3, False, 1)
    with pytest.raises(ConfigError, match="seed is -1"):
        preset(1000, seed=-1)
