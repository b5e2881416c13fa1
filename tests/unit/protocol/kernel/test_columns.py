"""Columns of one array as the fields of a struct, in compiled rules and interpreted ones."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gossamer.protocol.kernel.errors import StructError
from gossamer.protocol.kernel.rules import rule, teach_compiler
from gossamer.protocol.kernel.struct import CACHE_LINE_WORDS, WORD_BYTES, Rows, Struct
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.state.state import State, make_state


class Inner(Struct):
    numbers: np.ndarray
    scale: int


class Table(Struct):
    count: np.ndarray
    pair: np.ndarray
    nothing: np.ndarray
    beside: np.ndarray
    inner: Inner


class Above(Struct):
    """A struct that holds one with columns."""

    table: Table


class Sharing(Struct):
    """One that holds a struct and has a column in the same rows."""

    further: np.ndarray
    table: Table


WIDTHS = {"count": (), "pair": (2,), "nothing": (0,)}


def make_table(rows: int) -> Table:
    """Row r counts r and holds the pair 10 r, 10 r + 1."""
    table = Table(
        Rows(rows, WIDTHS),
        beside=np.arange(rows),
        inner=Inner(numbers=np.array([0.5, 1.5]), scale=10),
    )
    table.count[:] = np.arange(rows)
    table.pair[:] = 10 * np.arange(rows)[:, None] + [0, 1]
    return table


@rule
def read_row(s: Any, p: int) -> Any:
    """A number to which every column of a row adds its own part, and so do their shapes."""
    total = s.count[p] + 100 * s.pair[p, 0] + 10_000 * s.pair[p, 1] + s.beside[p] + s.inner.scale
    return total + 1_000_000 * s.pair.shape[0] + 10_000_000 * (s.pair.shape[1] + s.nothing.shape[1])


@rule
def write_row(s: Any, p: int) -> None:
    s.count[p] += 7
    s.pair[p, 1] = -5
    for w in range(s.nothing.shape[1]):
        s.nothing[p, w] = 1


@rule
def read_below(s: Any, p: int) -> Any:
    return read_row(s.table, p)


@rule
def sum_of_pair(s: Any, p: int) -> Any:
    return add_up(s.pair[p])


@rule
def add_up(row: Any) -> Any:
    total = 0
    for w in range(row.shape[0]):
        total += row[w]
    return total


def block_of(table: Struct) -> Any:
    assert table._rows is not None
    return table._rows.block


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_columns_share_one_array_whose_rows_begin_at_cache_lines(rows: int) -> None:
    table = make_table(rows)
    block = block_of(table)
    columns = (table.count, table.pair, table.nothing)
    assert [column.shape for column in columns] == [(rows,), (rows, 2), (rows, 0)]
    assert all(np.shares_memory(column, block) for column in columns[:2])
    assert not np.shares_memory(table.beside, block)
    assert not np.shares_memory(table.count, table.pair)
    line = CACHE_LINE_WORDS * WORD_BYTES
    assert [block[r].ctypes.data % line for r in range(rows)] == [0] * rows
    assert block[rows - 1, :3].tolist() == [rows - 1, 10 * rows - 10, 10 * rows - 9]


def test_columns_begin_as_zeros_and_reach_over_lines() -> None:
    rows = Rows(3, {"wide": (9,), "last": ()})
    assert rows.block.shape == (3, 2 * CACHE_LINE_WORDS)
    rows.views()["last"][:] = 4
    assert not rows.views()["wide"].any()
    assert rows.block.sum() == 12


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("rows", [1, 4])
def test_compiled_and_interpreted_rules_see_the_same_columns(rows: int) -> None:
    one, other = make_table(rows), make_table(rows)
    for p in range(rows):
        assert read_row(one, p) == read_row.interpreted(one, p)
        assert sum_of_pair(one, p) == sum_of_pair.interpreted(one, p) == 20 * p + 1
        write_row(one, p)
        write_row.interpreted(other, p)
    assert read_below(Above(table=one), 0) == read_row.interpreted(other, 0)
    np.testing.assert_array_equal(block_of(one), block_of(other))
    assert one.count.tolist() == [p + 7 for p in range(rows)]
    assert one.pair[:, 1].tolist() == [-5] * rows
    assert one.pair[:, 0].tolist() == [10 * p for p in range(rows)]


@pytest.mark.usefixtures("compiled")
def test_a_struct_of_one_row_needs_no_code_of_its_own() -> None:
    """Though a column of one row is contiguous, and compiled code for contiguous ones is other."""
    read_row(make_table(4), 0)
    forms = len(read_row.compiled.signatures)
    assert read_row(make_table(1), 0) == read_row.interpreted(make_table(1), 0)
    assert len(read_row.compiled.signatures) == forms
    assert teach_compiler().typeof(make_table(1)) == teach_compiler().typeof(make_table(4))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copied_or_pickled_struct_keeps_columns_of_its_own(
    rows: int, duplicate: Callable[[Above], Above]
) -> None:
    above = Above(table=make_table(rows))
    before = read_below(above, rows - 1)
    table = duplicate(above).table
    block = block_of(table)
    assert np.shares_memory(table.count, block)
    assert np.shares_memory(table.pair, block)
    assert not np.shares_memory(block, block_of(above.table))
    assert read_row(table, rows - 1) == read_row.interpreted(table, rows - 1) == before
    write_row(table, rows - 1)
    assert table.count[rows - 1] == block[rows - 1, 0] == rows + 6
    assert read_below(above, rows - 1) == before


@rule
def read_shared(s: Any, p: int) -> Any:
    return s.further[p, 1] + read_row(s.table, p)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("duplicate", [lambda s: s, lambda s: pickle.loads(pickle.dumps(s))])
def test_structs_share_rows(duplicate: Callable[[Sharing], Sharing]) -> None:
    rows = Rows(3, {**WIDTHS, "further": (2,)})
    inner = Inner(numbers=np.array([0.5, 1.5]), scale=10)
    table = Table(rows, beside=np.arange(3), inner=inner)
    table.count[:] = [1, 2, 3]
    sharing = Sharing(rows, table=table)
    sharing.further[:, 1] = [10**9, 2 * 10**9, 3 * 10**9]
    same = duplicate(sharing)
    assert same.table._rows is same._rows
    assert np.shares_memory(same.table.count, same.further.base)
    for p in range(3):
        expected = read_shared.interpreted(sharing, p)
        assert read_shared(same, p) == read_shared.interpreted(same, p) == expected
    assert not same.is_column("table")
    assert not same.table.is_column("beside")


def test_a_column_is_not_given_by_name_as_well() -> None:
    inner = Inner(numbers=np.zeros(1), scale=1)
    fields = {"beside": np.zeros(2), "inner": inner}
    with pytest.raises(StructError, match=r"^field nothing of struct Table: it is missing, expect"):
        Table(Rows(2, {"count": (), "pair": ()}), **fields)
    with pytest.raises(
        StructError, match=r"^field count of struct Table: it is a column of the ro"
    ):
        Table(Rows(2, WIDTHS), count=np.zeros(2), **fields)
    with pytest.raises(AttributeError, match="count cannot be set"):
        make_table(2).count = np.zeros(2)


def test_the_state_of_peers_keeps_its_small_numbers_together() -> None:
    """As many cache lines a row as their words need; every other array is contiguous."""
    state = make_state(
        Settings(small_world_links=2, guest_links=1, suspect_rounds=1, ring_repairs=1), 5
    )
    columns = [name for name in State.__annotations__ if state.is_column(name)]
    assert set(columns) >= {"round", "successor", "predecessor", "primary", "offsets"}
    assert all(np.shares_memory(getattr(state, name), block_of(state)) for name in columns)
    arrays = [getattr(state, name) for name in State.__annotations__ if name not in columns]
    assert all(array.flags.c_contiguous for array in arrays if isinstance(array, np.ndarray))
    for column in (state.sampler.key, state.sampler.draws, state.sampler.profile):
        assert np.shares_memory(column, block_of(state.sampler))
