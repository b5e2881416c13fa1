"""What a snapshot of an overlay tells of it, and which of its tables a run has outgrown."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.presets import kindred, resilient
from gossamer.protocol.peer.settings.profile import LINK_KINDS, link_kinds
from gossamer.sim.studies.peers.measuring.overlay_measures import snapshot
from gossamer.sim.studies.peers.measuring.summary import BOUNDS, Bound, outgrown
from support.overlays import converged, random_identifiers

NODES = 60


def kinds_of(settings: Settings) -> Counter[str]:
    """How many links of each kind the overlay of some peers has, all slots of which are filled."""
    state = converged(settings, random_identifiers(NODES, 3), 3)
    found = snapshot(state, np.ones(NODES, np.bool_)).links["kind"]
    return Counter(LINK_KINDS[kind] for kind in found)


def test_links_are_told_apart_by_what_they_are() -> None:
    settings = resilient(NODES)
    assert kinds_of(settings) == {
        "ring": NODES * 2 * settings.ring_links,
        "friend": NODES * settings.friend_links,
    }


def test_fingers_hosts_and_guests_are_no_friends() -> None:
    settings = kindred(NODES, subscriptions=3)
    assert settings.friend_links == 0
    found = kinds_of(settings)
    assert found["friend"] == 0
    # Those beside the place that was left last count as fingers.
    assert found["finger"] == NODES * 2 * (settings.finger_levels + 1)
    assert found["host"] * 2 == found["guest"] == NODES * 2 * settings.guest_links
    assert len(link_kinds(settings)) == settings.links


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.total)
def test_what_is_counted_is_told_with_the_setting_that_would_help(bound: Bound) -> None:
    system = {"totals": {bound.total: 1234}, "settings": {bound.setting: 8}}
    (told,) = outgrown({"mine": system, "others": {"totals": {bound.total: 0}}})
    assert told.startswith("mine: 1,234 ")
    assert told.endswith("published." if bound.setting is None else f" ({bound.setting} is 8).")
