"""Rules in two forms, structs that reach the compiled one by reference, and keys of its code."""

from __future__ import annotations

import ctypes
import enum
import math
import pickle
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numba.core.compiler_lock
import numba.core.registry
import numba.extending
import numpy as np
import pytest

from gossamer.protocol.kernel.code_keys import code_key
from gossamer.protocol.kernel.prefetch import prefetch
from gossamer.protocol.kernel.records import Outbox, dispatch, make_outbox
from gossamer.protocol.kernel.rules import Rule, inline_rule, rule, use_compiled
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.record_table.fields import Sort
from gossamer.protocol.peer.record_table.records import TABLE
from gossamer.protocol.peer.sampling.sampler import FAMILY, make_sampler
from gossamer.protocol.peer.step import ABOUT_EVENTS, ABOUT_PEERS, RETURNED, step
from gossamer.sim.engine.cycle_engine import approach_nobody, give_no_hint, make_turns
from gossamer.sim.engine.event_loop import make_run
from gossamer.sim.studies.peers.running.collector import observe


class Sizes(NamedTuple):
    rows: int
    columns: int


class Inner(Struct):
    numbers: np.ndarray
    scale: int


class Outer(Struct):
    flags: np.ndarray
    cube: np.ndarray
    offset: int
    sizes: Sizes
    pair: tuple[int, int]
    inner: Inner


def make_outer(rows: int = 2, columns: int = 4) -> Outer:
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
def test_compiled_rules_read_and_write_every_field_and_call_rules() -> None:
    outer = make_outer()
    assert read_all(outer) == read_all.interpreted(outer) == 632_431.0
    assert call_another(outer) == call_another.interpreted(outer)
    with use_compiled(False):
        assert isinstance(read_all(make_outer()), float)
    assert give_eight() == 8
    write_all(outer)
    write_all(outer)
    assert outer.cube[0, 1, 2] == 99
    assert outer.inner.numbers.tolist() == [2.5, 1.5]


@pytest.mark.usefixtures("compiled")
def test_code_serves_structs_of_one_kind_or_of_sizes() -> None:
    read_all(make_outer())
    forms = len(read_all.compiled.signatures)
    bigger = make_outer()
    fields = {name: getattr(bigger, name) for name in Outer.__annotations__}
    other = Outer(**{**fields, "cube": np.full((9, 9, 9), 4)})
    assert read_all(other) == read_all.interpreted(other)
    assert len(read_all.compiled.signatures) == forms
    outer, taller, wider = (make_outer(rows, columns) for rows, columns in ((2, 4), (9, 4), (2, 5)))
    for one in (outer, taller, wider):
        one.specialise_for_sizes()
    before = len(read_all.compiled.signatures)
    for one in (outer, taller):
        assert read_all(one) == read_all.interpreted(one)
    assert len(read_all.compiled.signatures) == before + 1
    assert read_all(wider) == read_all.interpreted(wider)
    assert len(read_all.compiled.signatures) == before + 2


def test_no_code_is_made_for_a_number_that_is_no_size_and_rules_are_pickled_by_name() -> None:
    one, other = (make_sampler(4, "cyclon", 4, 2, 1, seed) for seed in (1, 2))
    for sampler in (one, other):
        sampler.specialise_for_sizes()
    assert one.constant_words() == other.constant_words()
    assert 4 in one.constant_words()
    # So that the compiler's disk cache knows them again in the next process.
    assert pickle.loads(pickle.dumps(step)) is step


def test_the_switch_is_restored_after_an_error() -> None:
    with pytest.raises(LookupError), use_compiled():
        raise LookupError
    before = len(write_all.compiled.signatures)
    write_all(make_outer())
    assert len(write_all.compiled.signatures) == before


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
    assert (outermost(2), sys.getrecursionlimit()) == (42, limit)


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


def test_tables_may_be_empty_and_have_keys_by_kinds_rules_and_order() -> None:
    one, other = writing(1), writing(2)
    tables = [{5: one, 6: other}, {5: one, 6: one}, {5: one, 7: other}, {6: other, 5: one}]
    tables.append({5: one})
    keys = [code_key(dispatch(table)) for table in tables]
    assert None not in keys
    assert len(set(keys)) == len(tables)
    assert code_key(dispatch({5: writing(1), 6: writing(2)})) == keys[0]
    assert taken(dispatch({}).compiled, 1) == taken(dispatch({}).interpreted, 1) == (False, [0] * 3)


def test_every_kind_that_reaches_a_peer_has_one_rule() -> None:
    assert not ABOUT_EVENTS.keys() & ABOUT_PEERS.keys()
    taken_by_rules = {*ABOUT_EVENTS, *ABOUT_PEERS}
    common = {kind.number for kind in TABLE if kind.sort is not Sort.EFFECT}
    of_samplers = {kind.number for one in FAMILY for kind in one.records}
    assert taken_by_rules == common | of_samplers
    assert not common & of_samplers
    assert taken_by_rules > RETURNED.keys()


def define(source: str, **names: Any) -> Any:
    space = {"__name__": "__main__", **names}
    exec(source, space)
    return space["f"]


def keys_of(source: str, name: str, values: tuple[Any, ...]) -> list[str | None]:
    return [code_key(define(source, **{name: value})) for value in values]


class Near(enum.Enum):
    ONE = 1


class Far(enum.Enum):
    ONE = 2


Far.__qualname__ = Near.__qualname__
ADDRESS = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(math.sqrt)


@pytest.mark.parametrize(
    "values",
    [
        *((1, 2), (1, True), (1, 1.0), (0.0, -0.0), ("a", b"a")),
        *(((1, 2), (1, 3)), ((1, 2), ((1,), 2)), (np.int32(1), np.int64(1))),
        *((np.array([1, 2]), np.array([1, 3])), (np.dtype("i4"), np.dtype("i8"))),
        *((np.zeros((2, 3)), other) for other in (np.zeros((3, 2)), np.zeros((2, 3), order="F"))),
        *((Near, Far), (Near.ONE, Far.ONE), (math.sin, math.cos), (np.sin, np.cos), (len, abs)),
        (numba.types.int32, numba.types.int64),
    ],
    ids=repr,
)
def test_a_key_tells_values_of_globals_apart(values: tuple[Any, Any]) -> None:
    one, other = keys_of("def f(): return g", "g", values)
    assert len({one, other} - {None}) == 2
    assert [one] == keys_of("def f(): return g", "g", values[:1])


def test_names_that_code_loads_and_its_defaults_are_part_of_its_key() -> None:
    source = "def f(x): return x.total + g"
    assert code_key(define(source, g=1, total=1)) == code_key(define(source, g=1, total=2))
    inner = "def f(x):\n    def inside(): return g\n    return inside()"
    assert code_key(define(inner, g=1)) != code_key(define(inner, g=2))
    sources = ["def f(x, y=1): return y", "def f(x, y=2): return y"]
    sources += ["def f(x, *, y=1): return y", "def f(x, *, y=2): return y"]
    assert len({code_key(define(source)) for source in sources}) == len(sources)
    assert code_key(define("def f(): return 1")) == code_key(define("\n\ndef f(): return 1"))
    raising = "def f(): raise ValueError('no')"
    assert code_key(define(raising)) != code_key(define("\n\n" + raising))


def test_modules_of_ones_own_and_circles_of_rules_have_keys() -> None:
    outer, inner = types.ModuleType("own_outer"), types.ModuleType("own_inner")
    vars(outer).update(inner=inner)
    vars(inner).update(outer=outer, RATE=1, unused=ADDRESS)
    source = "def f(): return g.inner.RATE"
    before = code_key(define(source, g=outer))
    vars(inner).update(RATE=2)
    assert before is not None
    assert code_key(define(source, g=outer)) not in (before, None)

    def circle(step: int) -> Rule:
        source = f"def f(x): return other(x - {step}) if x > 0 else 0"
        first = Rule(made := define(source), made, inline=False)
        made.__globals__["other"] = rule(define("def f(x): return first(x)", first=first))
        return first

    assert code_key(circle(1)) == code_key(circle(1))
    assert code_key(circle(1)) != code_key(circle(2))


def test_how_what_is_called_is_compiled_is_part_of_the_key() -> None:
    callee = define("def f(): return 1")
    compiled = [numba.njit(define("def f(): return g", g=value)) for value in (1, 2)]
    for called in ((rule(callee), inline_rule(callee)), tuple(compiled)):
        one, other = keys_of("def f(): return g()", "g", called)
        assert one != other

    def caller(value: int) -> Callable[[], int]:
        def replaced() -> int:
            return 0

        numba.extending.overload(replaced)(lambda: lambda: value)
        made: Callable[[], int] = define("def f(): return g()", g=replaced)
        return made

    assert code_key(caller(1)) != code_key(caller(2))


def test_addresses_have_no_key_objects_do_not_matter_and_one_thread_asks_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert keys_of("def f(x): return g(x)", "g", (ADDRESS,)) == [None]
    assert code_key(rule(define("def f(x): return g(x)", g=ADDRESS))) is None
    assert keys_of("def f(): return g", "g", (object(),)) != [None]
    context: Any = numba.core.registry.cpu_target.typing_context
    lock: Any = numba.core.compiler_lock.global_compiler_lock
    alone = []
    monkeypatch.setattr(context, "refresh", lambda: alone.append(lock.is_locked()))
    assert code_key(define("def f(): return g()", g=define("def f(): return 1"))) is not None
    assert alone
    assert all(alone)


def test_all_shipped_loops_have_keys_which_are_the_same_in_every_process() -> None:
    found = [code_key(peer.step), code_key(prefetch), code_key(observe)]
    found.append(code_key(make_turns(peer.step, observe, give_no_hint, approach_nobody)))
    found.append(code_key(make_run(peer.step, observe, give_no_hint)))
    assert None not in found
    program = (
        "from gossamer.protocol.peer.step import step;"
        "from gossamer.protocol.kernel.code_keys import code_key; print(code_key(step))"
    )
    command, environment = [sys.executable, "-X", "utf8", "-c", program], {"PYTHONHASHSEED": "77"}
    assert subprocess.check_output(command, env=environment, text=True).strip() == found[0]
