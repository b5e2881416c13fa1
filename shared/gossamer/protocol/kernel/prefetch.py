"""Prefetching: telling the processor which memory a compiled loop will want a little later.

It changes nothing but the time a loop takes; interpreted it does nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gossamer.protocol.kernel.rules import Rule, inline_rule, teach_compiler
from gossamer.protocol.kernel.struct import WORD_BYTES


class _Prefetch(Rule):
    """A rule whose compiled form is one instruction that no Python source stands for."""

    _callee: Any = None

    @property
    def callee(self) -> Any:
        if self._callee is None:
            teach_compiler()
            from gossamer.protocol.kernel.compiler import make_callee

            fetch = _make_fetch()

            def prefetch(array: Any, row: int, at: int) -> None:
                fetch(array, row, at)

            self._callee = make_callee(prefetch, True)
        return self._callee


def _make_fetch() -> Any:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import cgutils, types
    from numba.extending import intrinsic
    from numba.np import arrayobj

    make_array: Any = arrayobj.make_array
    declare: Any = cgutils.get_or_insert_function

    word = ir.IntType(32)
    signature = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
    reading, keep, data_cache = word(0), word(3), word(1)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = make_array(sig.args[0])(context, builder, args[0])
        beginning = builder.bitcast(array.data, cgutils.voidptr_t)
        stride = builder.extract_value(array.strides, 0)
        row = builder.bitcast(
            builder.gep(beginning, [builder.mul(args[1], stride)]), array.data.type
        )
        place = builder.bitcast(builder.gep(row, [args[2]]), cgutils.voidptr_t)
        fetch = declare(builder.module, signature, "llvm.prefetch.p0")
        builder.call(fetch, [place, reading, keep, data_cache])
        return context.get_dummy_value()

    @intrinsic
    def fetch(_typing: Any, _array: Any, _row: Any, _at: Any) -> Any:
        return types.none(_array, types.intp, types.intp), codegen

    return fetch


def _one_instruction(function: Callable[..., None]) -> Rule:
    return _Prefetch(function, function, inline=True)


@_one_instruction
def prefetch(_array: Any, _row: int, _at: int) -> None:
    """Bring near the cache line of element ``at`` of row ``row``, counted flat within the row."""


@inline_rule
def row_words(column: Any) -> Any:
    """How many words lie from one row of a column to the next."""
    return column.strides[0] // WORD_BYTES
