"""What follows from the declarations of records is what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module

import pytest

from gossamer.protocol.kernel import records as kernel
from gossamer.protocol.peer.codec import Codec, layouts_of
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.record_table.fields import (
    Handle,
    List,
    PerAttribute,
    Sort,
    Table,
    Word,
    offset,
)
from gossamer.protocol.peer.record_table.page import records_of, records_page
from gossamer.protocol.peer.settings import config, presets
from support.checkout import ROOT

PAGE = ROOT / "docs" / "records.md"
# What peers of different versions agree on.
NUMBERS = {
    "SAMPLE_TIMER OVERLAY_TIMER INSTALL_TIMER": 1,
    "JOIN PUBLISH WITHDRAW CATCH_UP LINK_BROKE ROUNDS_SKIPPED": 8,
    "TMAN_REQUEST TMAN_REPLY INSTALL INSTALL_NEWS ACKNOWLEDGE EVENT "
    "FIND_PLACE PLACE_FOUND LOAD_SHIFTED HANDOVER STORED COMPARE COMPARED REPAIRED "
    "REPLAY_OFFER REPLAY_WANTED": 18,
    "FINGER_REQUEST FINGER_REPLY FIND_HOST HOST_FOUND FIND_SEAT SEAT_FOUND": 42,
    "DELIVER PUBLISHED NOT_PUBLISHED HELD": 48,
    "EVENT_TAKEN LISTED LACKING COMPARE_SOON STORED_FOR": 53,
    "MOVED": 60,
    "RING_OFFER": 62,
}


def test_constants_are_called_and_numbered_as_declared() -> None:
    assert {kind.name: getattr(records, kind.name, None) for kind in records.TABLE} == {
        kind.name: kind.number for kind in records.TABLE
    }
    expected = {
        name: first + i for names, first in NUMBERS.items() for i, name in enumerate(names.split())
    }
    assert {kind.name: kind.number for kind in records.TABLE} == expected
    assert all(0 < kind.number < kernel.USER for kind in records.TABLE)
    assert not {kind.name for kind in records.TABLE} & set(vars(kernel))


def test_peers_that_rest_for_longer_are_understood() -> None:
    """So a cluster may come to rest, or to rest for longer, one node after another."""
    awake, *resting = (presets.kindred(100, rest_rounds=rest) for rest in (1, 16, 1 << 10))
    for one in resting:
        assert layouts_of(one) == layouts_of(awake)


def test_records_are_refused_where_nothing_sends_them() -> None:
    kinds = {records.FINGER_REQUEST, records.FINGER_REPLY, records.FIND_HOST, records.HOST_FOUND}
    assert Codec(presets.resilient(100)).kinds.isdisjoint(kinds)
    assert Codec(presets.kindred(100)).kinds & kinds == {
        records.FINGER_REQUEST,
        records.FINGER_REPLY,
    }
    assert kinds <= Codec(presets.kindred(100, subscriptions=2)).kinds
    moves = {records.FIND_SEAT, records.SEAT_FOUND, records.MOVED}
    assert Codec(presets.kindred(100, move_rounds=0)).kinds.isdisjoint(moves)
    assert moves <= Codec(presets.kindred(100)).kinds


@pytest.mark.parametrize("sampler", config.SAMPLERS)
def test_no_number_is_a_sampler_s_and_another_record_s(sampler: str) -> None:
    module = import_module(f"gossamer.protocol.peer.sampling.{sampler}")
    own = {kind.number for kind in module.SAMPLER.records}
    assert own
    assert own.isdisjoint({kind.number for kind in records.TABLE})


def test_a_kind_is_declared_once() -> None:
    table = Table()
    table.declare(Sort.MESSAGE, 16, "ASK", "A question.")
    for number, name in ((16, "TELL"), (17, "ASK")):
        with pytest.raises(ValueError, match="declared twice"):
            table.declare(Sort.MESSAGE, number, name, "Another.")


def test_fields_stand_behind_each_other_and_sizes_are_of_the_largest_record() -> None:
    fields = (Handle("asker"), Word("hops", 0, 9), PerAttribute(Word("value", 0, 9)), Handle("end"))
    assert [offset(fields, name) for name in ("asker", "hops", "value")] == [0, 1, 2]
    for name in ("end", "nothing"):
        with pytest.raises(ValueError, match="no fixed place"):
            offset(fields, name)
    codec = Codec(presets.resilient(100, attributes=2, routing_table_entries=4096))
    assert codec.most_references == 4096
    # A source and its identifier, the attribute, and two ranges, of so many entries.
    assert codec.most_bytes == 8 * (kernel.BODY + 1 + 4096 * (3 + 2 * 2))


def test_fields_are_listed_once_with_the_kinds_that_differ() -> None:
    table = Table()
    hops = Word("hops", 0, 9)
    table.declare(Sort.MESSAGE, 16, "ASK", "A question.", (hops, List("all", (Handle("peer"),), 4)))
    table.declare(Sort.MESSAGE, 17, "TELL", "An answer.", (hops, Handle("peer", "who asked")))
    assert records_of(table).splitlines() == [
        "| Number | Kind | What it says | Body |",
        "|---|---|---|---|",
        "| 16 | ASK | A question. | hops, all |",
        "| 17 | TELL | An answer. | hops, peer |",
        "",
        "| Field | Bounds | Meaning |",
        "|---|---|---|",
        "| all | a count from 0 to 4, and the entries: each peer |  |",
        "| hops | 0 to 9 |  |",
        "| peer (ASK) | a handle |  |",
        "| peer (TELL) | a handle | who asked |",
    ]


def test_the_page_says_what_is_declared_by_the_command_in_its_first_lines() -> None:
    assert PAGE.read_text(encoding="utf-8") == records_page(), (
        "docs/records.md is not what the table makes; its first lines say how to write it anew"
    )
    found = re.search(r"^python (-m \S+) > docs/records.md", records_page(), re.MULTILINE)
    assert found is not None
    printed = subprocess.run(
        [sys.executable, *found[1].split()], capture_output=True, text=True, check=True
    )
    assert printed.stdout == records_page()
