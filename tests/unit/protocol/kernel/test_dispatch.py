"""Tables of rules: both forms call the same rule, and keys of code cover all of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gossamer.protocol.kernel.code_keys import code_key
from gossamer.protocol.kernel.dispatch import dispatch
from gossamer.protocol.kernel.records import Outbox, make_outbox
from gossamer.protocol.kernel.rules import Rule, rule
from gossamer.protocol.peer.record_table.records import TABLE
from gossamer.protocol.peer.record_table.table import Sort
from gossamer.protocol.peer.sampling.sampler import FAMILY
from gossamer.protocol.peer.step import ABOUT_EVENTS, ABOUT_PEERS, RETURNED


def writing(number: int) -> Rule:
    """A rule that notes that it was called, and with what."""

    @rule
    def note(s: Any, p: int, now: int, words: Any, at: int, _out: Outbox) -> None:
        s[p] = number + now + words[at]

    return note


def taken(take: Callable[..., Any], kind: int) -> tuple[bool, list[int]]:
    """Whether a table takes a kind, and what its rule then wrote."""
    state = np.zeros(3, np.int64)
    found = take(kind, state, 1, 100, np.array([0, 7]), 1, make_outbox(8))
    return bool(found), state.tolist()


@pytest.mark.parametrize("kind", [-1, 0, 4, 5, 6, 1 << 40])
def test_every_form_calls_the_rule_of_the_kind_or_none(kind: int) -> None:
    table = dispatch({5: writing(1000), 4: writing(2000), 1 << 40: writing(3000)})
    numbers = {5: 1107, 4: 2107, 1 << 40: 3107}
    expected = (kind in numbers, [0, numbers.get(kind, 0), 0])
    for form in (table.interpreted, table.linked, table.compiled):
        assert taken(form, kind) == expected


def test_an_empty_table_takes_nothing() -> None:
    assert taken(dispatch({}).compiled, 1) == taken(dispatch({}).interpreted, 1) == (False, [0] * 3)


def test_kinds_rules_and_order_of_a_table_are_part_of_the_key() -> None:
    one, other = writing(1), writing(2)
    tables = [
        {5: one, 6: other},
        {5: one, 6: one},
        {5: one, 7: other},
        {6: other, 5: one},
        {5: one},
    ]
    keys = [code_key(dispatch(table)) for table in tables]
    assert None not in keys
    assert len(set(keys)) == len(tables)
    assert code_key(dispatch({5: writing(1), 6: writing(2)})) == keys[0]


def test_every_kind_that_reaches_a_peer_has_one_rule() -> None:
    assert not ABOUT_EVENTS.keys() & ABOUT_PEERS.keys()
    taken_by_rules = {*ABOUT_EVENTS, *ABOUT_PEERS}
    common = {kind.number for kind in TABLE if kind.sort is not Sort.EFFECT}
    of_samplers = {kind.number for one in FAMILY for kind in one.records}
    assert taken_by_rules == common | of_samplers
    assert not common & of_samplers
    assert taken_by_rules > RETURNED.keys()
