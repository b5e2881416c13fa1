"""Rules that become machine code as part of their callers only.

The compiler would make machine code of every function on its own, with all that it calls in it, and
optimise that code again in each of its callers: for rules that call rules, most of the time that
compiling takes. Rules that compiled code calls are therefore kept as they are until they are linked
into the loop that runs them, and only that is optimised.

For this, one of the compiler's private classes is swapped for one that extends it, which is why
pyproject.toml bounds the compiler's version. Where that class is gone or another, rules compile
without this module: see `rules.plain_compilation`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numba.core.codegen
import numba.core.registry

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
