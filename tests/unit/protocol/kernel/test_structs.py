"""What a struct's fields may be named and hold, alone or as columns of one array."""

from __future__ import annotations

import copy
import math
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.errors import StructError
from gossamer.protocol.kernel.rules import rule, teach_compiler
from gossamer.protocol.kernel.struct import CACHE_LINE_WORDS, WORD_BYTES, Rows, Struct
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.state.state import State, make_state


class InColumns(Struct):
    numbers: np.ndarray
    scale: int


class Table(Struct):
    count: np.ndarray
    pair: np.ndarray
    nothing: np.ndarray
    beside: np.ndarray
    inner: InColumns


class Above(Struct):
    table: Table


class Sharing(Struct):
    further: np.ndarray
    table: Table


WIDTHS = {"count": (), "pair": (2,), "nothing": (0,)}


def make_table(rows: int) -> Table:
    """Row r counts r and holds the pair 10 r, 10 r + 1."""
    table = Table(
        Rows(rows, WIDTHS),
        beside=np.arange(rows),
        inner=InColumns(numbers=np.array([0.5, 1.5]), scale=10),
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
    return sum_of_row(s.pair[p])


@rule
def sum_of_row(row: Any) -> Any:
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
    shared = [np.shares_memory(column, block) for column in (table.beside, *columns[:2])]
    assert [*shared, np.shares_memory(*columns[:2])] == [False, True, True, False]
    line = CACHE_LINE_WORDS * WORD_BYTES
    assert [block[r].ctypes.data % line for r in range(rows)] == [0] * rows
    assert block[rows - 1, :3].tolist() == [rows - 1, 10 * rows - 10, 10 * rows - 9]
    # Columns begin as zeros and reach over lines.
    wide = Rows(3, {"wide": (9,), "cube": (2, 3), "last": ()})
    assert wide.block.shape == (3, 2 * CACHE_LINE_WORDS)
    wide.views()["cube"][1] = [[1, 2, 3], [4, 5, 6]]
    wide.views()["last"][:] = 7
    assert wide.block.tolist() == [[*[0] * 15, 7], [*[0] * 9, 1, 2, 3, 4, 5, 6, 7], [*[0] * 15, 7]]


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
    assert one.pair.tolist() == [[10 * p, -5] for p in range(rows)]


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
def test_a_copied_struct_keeps_its_own_columns(
    rows: int, duplicate: Callable[[Above], Above]
) -> None:
    above = Above(table=make_table(rows))
    before = read_below(above, rows - 1)
    table = duplicate(above).table
    block = block_of(table)
    assert all(np.shares_memory(column, block) for column in (table.count, table.pair))
    for one, other in ((block, block_of(above.table)), (table.beside, above.table.beside)):
        assert not np.shares_memory(one, other)
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
    inner = InColumns(numbers=np.array([0.5, 1.5]), scale=10)
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


def test_the_state_of_peers_keeps_its_small_numbers_together() -> None:
    """As many cache lines a row as their words need; every other array is contiguous."""
    sizes: dict[str, Any] = {
        "small_world_links": 2,
        "guest_links": 1,
        "suspect_rounds": 1,
        "rest_rounds": 2,
    }
    settings = Settings(ring_repairs=1, **sizes)
    state = make_state(settings, 5)
    columns = [name for name in State.__annotations__ if state.is_column(name)]
    assert set(columns) >= {"round", "successor", "predecessor", "primary", "offsets"}
    assert all(np.shares_memory(getattr(state, name), block_of(state)) for name in columns)
    arrays = [getattr(state, name) for name in State.__annotations__ if name not in columns]
    assert all(array.flags.c_contiguous for array in arrays if isinstance(array, np.ndarray))
    for column in (state.sampler.key, state.sampler.draws, state.sampler.profile):
        assert np.shares_memory(column, block_of(state.sampler))


class Rates(Struct):
    rate: float
    short: np.float32
    flag: bool
    count: int
    pair: tuple[float, int]
    sums: np.ndarray


@rule
def add_up(s: Any) -> Any:
    s.sums[0] = s.rate
    s.sums[1] = s.short
    s.sums[2] = s.pair[0]
    return s.count + s.pair[1] if s.flag else -1


def make_rates(rate: float, **changes: Any) -> Rates:
    fields = {"rate": rate, "short": np.float32(0.1), "pair": (rate / 2, 4), "sums": np.zeros(3)}
    return Rates(**{"flag": True, "count": 3, **fields, **changes})


@pytest.mark.usefixtures("compiled")
@given(st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True))
def test_float_fields_reach_compiled_rules_bit_for_bit(rate: float) -> None:
    compiled, interpreted = make_rates(rate), make_rates(rate)
    assert add_up.compiled(compiled) == add_up.interpreted(interpreted) == 7
    assert compiled.sums.tobytes() == interpreted.sums.tobytes()
    assert compiled.sums[0] == rate or math.isnan(rate)


@pytest.mark.usefixtures("compiled")
def test_float_fields_are_no_sizes_that_code_is_made_for() -> None:
    one, other = make_rates(0.25), make_rates(0.5)
    for rates in (one, other):
        rates.specialise_for_sizes()
    assert one.constant_words() == other.constant_words()
    assert [add_up.compiled(one), one.sums[0], other.rate] == [7, 0.25, 0.5]


@pytest.mark.parametrize(
    "name",
    [
        "view",
        "unboxed",
        "constant_words",
        "specialise_for_sizes",
        "block_address",
        "is_column",
        "_own",
    ],
)
def test_a_field_of_a_name_that_is_taken_is_refused_with_its_class(name: str) -> None:
    with pytest.raises(StructError, match=rf"^field {name} of struct Mine: the name is taken, exp"):
        type("Mine", (Struct,), {"__annotations__": {name: np.ndarray}})


@pytest.mark.parametrize("name", ["self", "rows", "data", "shape", "T", "key", "fields", "cls"])
@pytest.mark.usefixtures("compiled")
def test_every_other_name_reaches_compiled_rules(name: str) -> None:
    made: Any = type("Mine", (Struct,), {"__annotations__": {name: np.ndarray}})
    space: dict[str, Any] = {}
    exec(f"def read(s):\n    return s.{name}[1]\n", space)
    import numba

    compiled = numba.njit(_nrt=False)(space["read"])  # type: ignore[call-overload]
    assert compiled(made(**{name: np.array([5, 6])})) == 6


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (None, "it is of type NoneType"),
        ("text", "it is of type str"),
        ([1, 2], "it is of type list"),
        (1j, "it is of type complex"),
        (1 << 63, "it is 9223372036854775808"),
        (np.uint64(1 << 63), "it is 9223372036854775808"),
        ((1, (2, None)), "it is of type NoneType"),
        (np.ma.masked_array([1, 2], [True, False]), "it is of type MaskedArray"),
        (np.array(3), "it is an array of no dimension"),
        (np.zeros(2, object), "it is an array of object"),
        (np.zeros(2, np.float16), "it is an array of float16"),
        (np.zeros(2, np.longdouble), "it is an array of float128"),
        (np.zeros(2, "U3"), "it is an array of <U3"),
        (np.zeros(2, ">i8"), "it is an array of byte-swapped >i8"),
        (np.frombuffer(bytearray(17), np.int64, 2, 1), "its items are not aligned"),
        (np.zeros((4, 4))[:, 1], r"it is an array of strides \(32,\)"),
        ((np.zeros(4)[::2],), r"it is an array of strides \(16,\)"),
    ],
)
@pytest.mark.parametrize("field", ["count", "pair"])
def test_what_compiled_rules_cannot_read_is_refused(field: str, value: object, fault: str) -> None:
    words = rf"^field {field} of struct Rates: {fault}, expected "
    with pytest.raises(StructError, match=words) as caught:
        make_rates(0.5, **{field: value})
    assert (caught.value.struct, caught.value.field) == ("Rates", field)


def test_missing_unknown_and_doubled_fields_are_refused() -> None:
    rows = Rows(2, {"count": (), "pair": ()})
    fields = {"beside": np.zeros(2), "inner": InColumns(numbers=np.zeros(1), scale=1)}
    refused: list[tuple[str, Callable[[], object]]] = [
        ("count of struct Rates: it is missing, expected", lambda: Rates(rate=0.5)),
        ("more of struct Rates: there is no such field,", lambda: make_rates(0.5, more=2)),
        ("nothing of struct Table: it is missing, expect", lambda: Table(rows, **fields)),
        (
            "count of struct Table: it is a column of the ro",
            lambda: Table(Rows(2, WIDTHS), count=np.zeros(2), **fields),
        ),
    ]
    for words, make in refused:
        with pytest.raises(StructError, match=f"^field {words}"):
            make()
    for struct, name in ((make_table(2), "count"), (make_rates(0.5), "rate")):
        with pytest.raises(AttributeError, match=f"{name} cannot be set"):
            setattr(struct, name, np.zeros(2))


class Bench(Struct, shared=True):
    words: np.ndarray
    pair: tuple[np.ndarray, int]


class Shop(Struct, shared=("spare",)):
    rows: np.ndarray
    spare: np.ndarray
    bench: Bench


@rule
def use_scratch(s: Any, p: int) -> Any:
    s.rows[p] = 5
    s.spare[0, 1] = 6.0
    s.bench.words[p] = 7
    s.bench.pair[0][p] = 8
    return s.bench.pair[1]


@pytest.mark.usefixtures("compiled")
def test_a_struct_for_another_thread_has_the_same_rows_and_scratch_of_its_own() -> None:
    """Copies hold what there was, and no word of them is in a cache line with anything else."""
    bench = Bench(words=np.arange(3), pair=(np.arange(3) + 10, 4))
    shop = Shop(rows=np.zeros(3, np.int64), spare=np.ones((2, 2)), bench=bench)
    other = shop.with_scratch_of_its_own()
    assert other.rows is shop.rows
    assert other.bench.words.tolist() == [0, 1, 2]
    assert (other.bench.pair[0].tolist(), use_scratch(other, 2)) == ([10, 11, 12], 4)
    assert (shop.rows.tolist(), shop.spare.tolist()) == ([0, 0, 5], [[1, 1], [1, 1]])
    assert (other.spare.tolist(), bench.words.tolist()) == ([[1, 6], [1, 1]], [0, 1, 2])
    assert (other.bench.words[2], other.bench.pair[0][2]) == (7, 8)
    for own in (other.spare, other.bench.words, other.bench.pair[0]):
        assert own.ctypes.data % 64 == 0


def test_threads_that_ask_at_once_for_the_block_of_a_struct_are_told_the_same() -> None:
    """One that came between was told address 0 once, and read the memory there."""
    benches = [Bench(words=np.arange(3), pair=(np.arange(3), 4)) for _ in range(2000)]
    begin = Barrier(4)

    def ask() -> list[int]:
        begin.wait()
        return [bench.block_address() for bench in benches]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            asked = [threads.submit(ask) for _ in range(4)]
            first, *others = [one.result() for one in asked]
    finally:
        sys.setswitchinterval(interval)
    assert 0 not in first
    assert all(one == first for one in others)
