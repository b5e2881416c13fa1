"""What a struct's fields may be named and hold; the rest is refused in one sentence."""

from __future__ import annotations

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.errors import StructError
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct


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
    fields: dict[str, Any] = {
        "short": np.float32(0.1),
        "flag": True,
        "count": 3,
        "pair": (rate / 2, 4),
    }
    return Rates(**{"rate": rate, "sums": np.zeros(3), **fields, **changes})


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
def test_what_compiled_rules_cannot_read_is_refused_when_the_struct_is_built(
    field: str, value: object, fault: str
) -> None:
    with pytest.raises(
        StructError, match=rf"^field {field} of struct Rates: {fault}, expected "
    ) as e:
        make_rates(0.5, **{field: value})
    assert (e.value.struct, e.value.field) == ("Rates", field)


def test_missing_and_unknown_fields_are_refused() -> None:
    with pytest.raises(StructError, match=r"^field count of struct Rates: it is missing, expected"):
        Rates(rate=0.5)
    with pytest.raises(StructError, match=r"^field more of struct Rates: there is no such field,"):
        make_rates(0.5, more=2)


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
    assert other.bench.pair[0].tolist() == [10, 11, 12]
    assert use_scratch(other, 2) == 4
    assert shop.rows.tolist() == [0, 0, 5]
    assert shop.spare.tolist() == [[1, 1], [1, 1]]
    assert other.spare.tolist() == [[1, 6], [1, 1]]
    assert bench.words.tolist() == [0, 1, 2]
    assert (other.bench.words[2], other.bench.pair[0][2]) == (7, 8)
    for copy in (other.spare, other.bench.words, other.bench.pair[0]):
        assert copy.ctypes.data % 64 == 0


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
