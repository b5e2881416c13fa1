"""Every table that a run has outgrown is told, also where that costs messages alone."""

from __future__ import annotations

import pytest

from gossamer.sim.studies.peers.measuring.bounds import BOUNDS, outgrown


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.total)
def test_what_is_counted_is_told_with_the_setting_that_would_help(bound: object) -> None:
    total, setting = (getattr(bound, name) for name in ("total", "setting"))
    system = {"totals": {total: 1234}, "settings": {setting: 8}}
    (told,) = outgrown({"mine": system, "others": {"totals": {total: 0}}})
    assert told.startswith("mine: 1,234 ")
    assert told.endswith("published." if setting is None else f" ({setting} is 8).")
