"""What makes the compiler quicker: questions asked once, and rules that are linked later.

A loop is compiled with hundreds of rules in it. For every sum of two integers the compiler tries
all meanings that a sum may have; for every variable it has a module parsed that tells the size of
its type; after every pass it finds out which variables live where, and nothing reads that. Within
`answers_kept` the answers are kept, which saves a sixth of the time and changes no code.

For this, methods of the compiler's private classes are swapped, as in `linked_later`, and the same
holds: see `rules.plain_compilation`.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numba.core.codegen
import numba.core.compiler_lock
import numba.core.event
import numba.core.postproc
import numba.core.registry
import numba.core.targetconfig
import numba.core.transforms
import numba.core.types

global_compiler_lock: Any = numba.core.compiler_lock.global_compiler_lock
event: Any = numba.core.event
postproc: Any = numba.core.postproc
stack: Any = numba.core.targetconfig.ConfigStack
transforms: Any = numba.core.transforms
types: Any = numba.core.types
_target: Any = numba.core.registry.cpu_target

_keeping = False
# How many objects more there are before garbage is looked for.
_GARBAGE = 100_000


@contextmanager
def answers_kept() -> Iterator[None]:
    """Within the outermost such block, let the compiler ask once for what it asks repeatedly."""
    global _keeping
    with global_compiler_lock:
        if _keeping:
            yield
            return
        context = _target.target_context
        before = types.Function.get_call_type, postproc.PostProcessor.run, event.install_timer
        types.Function.get_call_type = _types_kept(before[0])
        postproc.PostProcessor.run = _lifetimes_on_demand(before[1])
        event.install_timer = _no_timer
        context.get_abi_sizeof = _sizes_kept(context.get_abi_sizeof)
        _keeping = True
        # What a compiler makes lives until it is done: to look for garbage meanwhile is in vain.
        often = gc.get_threshold()
        gc.set_threshold(_GARBAGE, *often[1:])
        try:
            yield
        finally:
            _keeping = False
            gc.set_threshold(*often)
            del context.get_abi_sizeof
            types.Function.get_call_type, postproc.PostProcessor.run, event.install_timer = before


def _no_timer(_kind: str, _done: Callable[[float], None]) -> AbstractContextManager[None]:
    """In place of a timer: one for each of the functions that are being compiled, one in another.

    Each would be told of every call of the code generator.
    """
    return nullcontext()


def _types_kept(resolve: Callable[..., Any]) -> Callable[..., Any]:
    """What functions of the compiler's own are called with and return, found out once.

    The answer depends on the types of arguments, and on flags where the function is compiled.
    """
    found: dict[tuple[Any, ...], Any] = {}
    flags_seen: dict[int, tuple[Any, tuple[Any, ...]]] = {}

    def of_flags() -> tuple[Any, ...]:
        flags = stack.top_or_none()
        if id(flags) not in flags_seen:
            told = () if flags is None else tuple(map(str, flags.values().items()))
            # With themselves, so that the identity stays theirs.
            flags_seen[id(flags)] = flags, told
        return flags_seen[id(flags)][1]

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        asked = self, id(context), tuple(args), tuple(sorted(kws.items())), of_flags()
        if asked not in found:
            found[asked] = resolve(self, context, args, kws)
        return found[asked]

    return get_call_type


def _sizes_kept(measure: Callable[[Any], int]) -> Callable[[Any], int]:
    """How many bytes values of a type take."""
    found: dict[str, int] = {}

    def get_abi_sizeof(kind: Any) -> int:
        name = str(kind)
        if name not in found:
            found[name] = measure(kind)
        return found[name]

    return get_abi_sizeof


def _lifetimes_on_demand(run: Callable[..., None]) -> Callable[..., None]:
    """The tidying after a pass, where variables live being found out by who wants to know."""

    def tidy(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        inner = self.func_ir
        if inner.is_generator:
            run(self, emit_dels, extend_lifetimes)
            return
        inner.blocks = transforms.canonicalize_cfg(inner.blocks)
        inner.variable_lifetime = postproc.VariableLifetime(inner.blocks)
        inner.generator_info = None
        if emit_dels:
            self._insert_var_dels(extend_lifetimes=extend_lifetimes)

    return tidy


# Rules that become machine code as part of their callers only.
#
# The compiler would make machine code of every function on its own, with all that it calls in it,
# and optimise that code again in each of its callers: for rules that call rules, most of the time
# that compiling takes. Rules that compiled code calls are therefore kept as they are until they are
# linked into the loop that runs them, and only that is optimised.
#
# For this, one of the compiler's private classes is swapped for one that extends it, which is why
# pyproject.toml bounds the compiler's version. Where that class is gone or another, rules compile
# without this module: see `rules.plain_compilation`.


codegen: Any = numba.core.codegen

# Rules that are linked into others have no address of their own; the compiler asks for one
# to make a Python function, which nobody calls.
_NO_ADDRESS = ctypes.cast(ctypes.pythonapi.Py_FatalError, ctypes.c_void_p).value


class _WithoutEnvironment:
    """The code generator as a library linked later sees it: there is no environment to fill in."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, _name: str, _env: Any) -> None:
        """Nothing: the environment is only there once the library has been linked."""


class LinkedLaterLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Code of one function that becomes machine code as part of its callers only."""

    _shared_module: Any

    @property
    def codegen(self) -> Any:
        """The code generator, for what there is to do before linking."""
        return _WithoutEnvironment(self._codegen)

    def finalize(self) -> None:
        """Take no further code; optimise nothing yet."""
        self._raise_if_finalized()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int | None:
        """An address that ends the process, should a defect ever call it."""
        return _NO_ADDRESS

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            module = self._final_module.clone()
            for library in self._all_called():
                module.link_in(library._final_module.clone())
            for function in module.functions:
                if not function.is_declaration and function.linkage == _EXTERNAL:
                    function.linkage = "linkonce_odr"
            self._shared_module = module
        return self._shared_module

    def _all_called(self) -> list[Any]:
        """The libraries called from here, directly or not, each once."""
        found: dict[int, Any] = {id(self): self}
        waiting = list(self._linking_libraries)
        while waiting:
            library = waiting.pop()
            if id(library) not in found:
                found[id(library)] = library
                waiting.extend(library._linking_libraries)
        return list(found.values())[1:]


_EXTERNAL = codegen.ll.Linkage.external


def link_later() -> AbstractContextManager[None]:
    """Within the block, let the compiler put what it makes into `LinkedLaterLibrary`."""
    return _libraries_are(LinkedLaterLibrary)


def before_linking(prepare: Callable[[Any], None]) -> AbstractContextManager[None]:
    """Within the block, let something be done before a library is linked into this process."""

    class PreparedLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
        def _finalize_final_module(self) -> None:
            prepare(self)
            super()._finalize_final_module()

    return _libraries_are(PreparedLibrary)


@contextmanager
def _libraries_are(kind: type[Any]) -> Iterator[None]:
    generator = numba.core.registry.cpu_target.target_context.codegen()
    before = generator._library_class
    generator._library_class = kind
    try:
        yield
    finally:
        generator._library_class = before
