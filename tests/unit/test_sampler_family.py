"""Samplers as they declare themselves."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.protocol.kernel.records import UNREACHABLE, USER, make_outbox
from gossamer.protocol.peer.codec import Codec
from gossamer.protocol.peer.record_table.fields import Sort
from gossamer.protocol.peer.record_table.records import LINK_BROKE, SAMPLE_TIMER, TABLE
from gossamer.protocol.peer.sampling import sampler as sampling_sampler
from gossamer.protocol.peer.sampling.page import with_records
from gossamer.protocol.peer.settings.config import SAMPLERS, Settings
from support.overlays import record, ring_sampler, states_equal, written

PAGE = Path(__file__).parents[2] / "docs" / "samplers.md"


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_takes_its_timer_and_its_messages_and_no_others(name: str) -> None:
    sampler = sampling_sampler.FAMILY[SAMPLERS.index(name)]
    messages = {kind.number for kind in sampler.records}
    of_all = {kind.number for one in sampling_sampler.FAMILY for kind in one.records}
    assert sampler.rules.keys() == messages | {SAMPLE_TIMER}
    assert all(kind.sort is Sort.MESSAGE for kind in sampler.records)
    assert messages <= set(range(16, 48)) - {kind.number for kind in TABLE}
    assert sampler.records_a_round.keys() <= messages
    # No two limit one kind differently.
    assert sampler.records_a_round.items() <= sampling_sampler.RECORDS_A_ROUND.items()
    assert Codec(Settings(sampler=name)).kinds & of_all == messages
    assert max(of_all) < USER < UNREACHABLE


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_broken_link_to_a_stranger_changes_nothing(name: str) -> None:
    """A host may lose a connection to somebody whom the sampler does not know."""
    sampler = ring_sampler(8, name, 4, 2, 1, seed=1)
    before = copy.deepcopy(sampler)
    out = make_outbox(64)
    sampling_sampler.sample_link_broke(sampler, 0, 0, record(LINK_BROKE, 0, 0, [7]), 0, out)
    assert states_equal(sampler, before)
    assert written(out) == []


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("view_size", [1, 2, 20, 35, 256])
def test_slots_for_neighbours_are_slots_of_the_view(name: str, view_size: int) -> None:
    sampler = sampling_sampler.make_sampler(2, name, view_size, 1, 0, seed=1)
    assert 0 <= sampler.active_slots <= view_size
    assert sampler.kind == SAMPLERS.index(name)


def test_the_page_lists_messages_as_its_command_prints_them() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_records(page) == page, "docs/samplers.md says how to write it anew"
    command = [sys.executable, "-m", with_records.__module__]
    printed = subprocess.run(command, input=page, capture_output=True, text=True, check=True)
    assert printed.stdout == page
    with pytest.raises(ValueError, match=f"no <!-- records of {SAMPLERS[0]} -->"):
        with_records("# Samplers\n")
