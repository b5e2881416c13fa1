"""Rules run in two forms; structs reach the compiled one by reference."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from gossamer.protocol.kernel.code_keys import code_key
from gossamer.protocol.kernel.dispatch import dispatch
from gossamer.protocol.kernel.records import Outbox, make_outbox
from gossamer.protocol.kernel.rules import Rule, rule, use_compiled
from gossamer.protocol.kernel.struct import Rows, Struct
from gossamer.protocol.peer.record_table.records import TABLE
from gossamer.protocol.peer.record_table.table import Sort
from gossamer.protocol.peer.sampling.sampler import FAMILY, make_sampler
from gossamer.protocol.peer.step import ABOUT_EVENTS, ABOUT_PEERS, RETURNED, step


class Sizes(NamedTuple):
    rows: int
    columns: int


class Inner(Struct):
    numbers: np.ndarray
    scale: int


class Outer(Struct):
    """One field of every kind that a struct may have."""

    flags: np.ndarray
    cube: np.ndarray
    offset: int
    sizes: Sizes
    pair: tuple[int, int]
    inner: Inner


def make_outer(rows: int = 2, columns: int = 4) -> Outer:
    """Fields whose values tell them apart."""
    return Outer(
        flags=np.array([True, False]),
        cube=np.arange(3 * rows * columns, dtype=np.int64).reshape(rows, 3, columns),
        offset=-7,
        sizes=Sizes(rows=2, columns=3),
        pair=(5, 6),
        inner=Inner(numbers=np.array([0.5, 1.5]), scale=10),
    )


@rule
def read_all(s: Any) -> Any:
    """A number to which every field adds its own part."""
    total = float(s.cube[1, 2, 3]) + s.cube.shape[2] * 100 + s.offset
    total += s.sizes.rows * 1000 + s.sizes.columns * 10000 + s.pair[1] * 100000
    if s.flags[0] and not s.flags[1]:
        total += s.inner.numbers[1] * s.inner.scale
    return total


@rule
def write_all(s: Any) -> None:
    s.cube[0, 1, 2] = 99
    s.inner.numbers[0] += 1.0


@rule
def call_another(s: Any) -> Any:
    return read_all(s) + 1


@rule
def give_eight() -> Any:
    return 1 << 3


@pytest.mark.usefixtures("compiled")
def test_compiled_rules_read_every_kind_of_field() -> None:
    outer = make_outer()
    assert read_all(outer) == read_all.interpreted(outer) == 632_431.0


@pytest.mark.usefixtures("compiled")
def test_compiled_rules_write_into_the_arrays_themselves() -> None:
    outer = make_outer()
    write_all(outer)
    write_all(outer)
    assert outer.cube[0, 1, 2] == 99
    assert outer.inner.numbers.tolist() == [2.5, 1.5]


@pytest.mark.usefixtures("compiled")
def test_rules_call_rules_in_both_forms() -> None:
    outer = make_outer()
    assert call_another(outer) == call_another.interpreted(outer)


@pytest.mark.usefixtures("compiled")
def test_a_struct_made_anew_of_the_same_kind_needs_no_new_code() -> None:
    read_all(make_outer())
    forms = len(read_all.compiled.signatures)
    bigger = make_outer()
    other = Outer(**{**vars_of(bigger), "cube": np.full((9, 9, 9), 4)})
    assert read_all(other) == read_all.interpreted(other)
    assert len(read_all.compiled.signatures) == forms


def vars_of(struct: Struct) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in type(struct).__annotations__}


@pytest.mark.usefixtures("compiled")
def test_a_copied_or_pickled_struct_has_arrays_of_its_own() -> None:
    outer = make_outer()
    read_all(outer)
    for other in (copy.deepcopy(outer), pickle.loads(pickle.dumps(outer))):
        write_all(other)
        assert read_all(other) == read_all(outer)
        assert outer.cube[0, 1, 2] == 6
        assert other.cube[0, 1, 2] == 99


@pytest.mark.usefixtures("compiled")
def test_code_made_for_sizes_serves_these_alone_and_does_the_same() -> None:
    outer, taller, wider = (make_outer(rows, columns) for rows, columns in ((2, 4), (9, 4), (2, 5)))
    for one in (outer, taller, wider):
        one.specialise_for_sizes()
    before = len(read_all.compiled.signatures)
    for one in (outer, taller):
        assert read_all(one) == read_all.interpreted(one)
    assert len(read_all.compiled.signatures) == before + 1
    assert read_all(wider) == read_all.interpreted(wider)
    assert len(read_all.compiled.signatures) == before + 2


def test_no_code_is_made_for_a_number_that_is_no_size() -> None:
    one, other = (make_sampler(4, "cyclon", 4, 2, 1, seed) for seed in (1, 2))
    for sampler in (one, other):
        sampler.specialise_for_sizes()
    assert one.constant_words() == other.constant_words()
    assert 4 in one.constant_words()


def test_columns_of_rows_lie_side_by_side_from_a_cache_line_on() -> None:
    rows = Rows(3, {"one": (), "two": (2,), "cube": (2, 3)})
    columns = rows.views()
    for place, column in enumerate(columns.values()):
        column[1] = place + 1
    assert rows.block.tolist() == [[0] * 16, [1, 2, 2, *[3] * 6, *[0] * 7], [0] * 16]
    assert rows.block.ctypes.data % 64 == 0
    assert columns["cube"].shape == (3, 2, 3)


def test_fields_cannot_be_set_anew() -> None:
    outer = make_outer()
    with pytest.raises(AttributeError, match="offset cannot be set"):
        outer.offset = 3


def test_the_switch_is_restored_after_an_error() -> None:
    outer = make_outer()

    def fail() -> None:
        with use_compiled():
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    before = len(write_all.compiled.signatures)
    write_all(outer)
    assert len(write_all.compiled.signatures) == before


@pytest.mark.usefixtures("compiled")
def test_interpreted_calls_inside_a_compiled_block() -> None:
    with use_compiled(False):
        assert isinstance(read_all(make_outer()), float)
    assert give_eight() == 8


def test_a_rule_is_pickled_by_its_name() -> None:
    """So that the compiler's disk cache knows it again in the next process."""
    assert pickle.loads(pickle.dumps(step)) is step


def one_more(called: Any) -> Any:
    @rule
    def call(value: int) -> int:
        return int(called(value)) + 1

    return call


@rule
def as_it_is(value: int) -> int:
    return value


@pytest.mark.usefixtures("compiled")
def test_rules_that_call_each_other_forty_deep_are_compiled() -> None:
    """The compiler takes more frames of the interpreter than it has by itself."""
    outermost: Any = as_it_is
    for _ in range(40):
        outermost = one_more(outermost)
    limit = sys.getrecursionlimit()
    assert outermost(2) == 42
    assert sys.getrecursionlimit() == limit


def writing(number: int) -> Rule:
    @rule
    def note(s: Any, p: int, now: int, words: Any, at: int, _out: Outbox) -> None:
        s[p] = number + now + words[at]

    return note


def taken(take: Callable[..., Any], kind: int) -> tuple[bool, list[int]]:
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
