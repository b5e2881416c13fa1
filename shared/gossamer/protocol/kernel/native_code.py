"""Machine code of rules for processes that never load the compiler: an object file, and its names.

Rules that take structs and whole numbers and return a whole number need nothing of the interpreter
or of the compiler when they run, so that their code can be linked into any process.

Imported only by hosts that compile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import llvmlite.binding  # type: ignore[import-untyped]
import numba
import numba.core.compiler_lock
import numba.core.types
import numba.core.typing.typeof

from gossamer.protocol.kernel import keyed_code
from gossamer.protocol.kernel.object_code import Standalone
from gossamer.protocol.kernel.rules import Rule
from gossamer.protocol.kernel.standalone import called_in, objects_of

_binding: Any = llvmlite.binding
_lock: Any = numba.core.compiler_lock.global_compiler_lock
_typeof: Any = numba.core.typing.typeof.typeof


class NativeCode(NamedTuple):
    """Object code.

    Attributes:
        symbols: by the name of a rule, the symbol of its entry: a function of C that takes the
            address of an int64 for its result, that of an unused pointer, addresses of the blocks
            of structs and int64 numbers, and returns 0.
        content: an object file for this machine.
        called: the standalone rules that it calls, each after those that itself calls.
    """

    symbols: Mapping[str, str]
    content: bytes
    called: Sequence[Standalone]


def native_code(entries: Mapping[str, tuple[Rule, Sequence[Any]]]) -> NativeCode:
    """Compile rules for arguments like those given: structs, and whole numbers.

    Args:
        entries: by name, a rule and what it might be called with.
    """
    symbols, linked = {}, None
    with _lock:
        for name, (entry, samples) in entries.items():
            made = keyed_code.make_native(entry.source)
            made.compile(tuple(_typeof(sample) for sample in samples))
            (result,) = made.overloads.values()
            symbols[name] = result.fndesc.llvm_func_name
            module = _binding.parse_bitcode(result.library._final_module.as_bitcode())
            if linked is None:
                linked = module
            else:
                linked.link_in(module)
            machine = result.library.codegen._tm
    assert linked is not None
    called = objects_of(called_in(linked))
    return NativeCode(symbols, machine.emit_object(linked), called)
