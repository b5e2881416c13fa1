"""Machine code under its key: shared within a process, and kept between processes if a host does.

The compiler's own disk cache tells functions apart by module and name, and by their file's time.
Here the name under which code is kept, and the names of the symbols in it, say all that the code
depends on (`code_keys`): code that no longer fits is never found, and two versions of one rule can
be in one process without one of them being taken for the other.

Imported only by hosts that compile.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import logging
import pickle
import re
from collections.abc import Callable, Mapping
from typing import Any

import numba
import numba.core.bytecode
import numba.core.caching
import numba.core.compiler
import numba.core.compiler_lock
import numba.core.registry

from gossamer.protocol.kernel import rules
from gossamer.protocol.kernel.code_keys import CodeKeys, code_key, code_keys
from gossamer.protocol.kernel.compile_errors import explain_failures

_log = logging.getLogger(__name__)

caching: Any = numba.core.caching
_compiler: Any = numba.core.compiler
_bytecode: Any = numba.core.bytecode
global_compiler_lock: Any = numba.core.compiler_lock.global_compiler_lock

_NAME_LENGTH = 60
_KEY_LENGTH = 24


# By what they are compiled for and by key; functions that differ in nothing share their code. Kept
# for good: symbols of one name are one to the process, so what was linked to them needs them.
_dispatchers: dict[tuple[str, str], Any] = {}
_unkeyed = itertools.count()
# By the name under which code is kept, the version (`CodeKeys.whole`) that this process has of it.
_versions: dict[str, str] = {}


def make_callee(function: Callable[..., Any], inline: bool) -> Any:
    """The compiler's function object that compiled code calls; it becomes part of its callers."""
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    with global_compiler_lock:
        return _make(function, code_key(function), f"callee{int(inline)}", inline, wrappers)


def make_native(function: Callable[..., Any]) -> Any:
    """The function object of what is to be called by C alone; see `native_code`."""
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made = _make(function, code_key(function), "native", False, wrappers)
    if "compile" not in vars(made):
        made.compile = _compile_quickly(made.compile)
    return made


def make_entry(function: Callable[..., Any]) -> Any:
    """The function object that Python calls; its code is kept where the host keeps code."""
    with global_compiler_lock:
        keys = code_keys(function)
        made = _make(function, keys and keys.whole, "entry", False, {})
        if "_compile_for_args" not in vars(made):
            explain_failures(made, function)
            if not rules.plain_compilation():
                made.compile = _compile_quickly(made.compile)
            if keys is not None:
                made._cache = _KeyedCache(function.__qualname__, keys)
                made.compile = made._cache.used_by(made.compile)
        return made


def _compile_quickly(compile_for: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Compile as ``compile_for`` does, asking nothing twice, and link what is called first."""
    # Only here: these modules swap private parts, which plain compilation does without, and take
    # callees from this one.
    from gossamer.protocol.kernel.quicker_compiler import answers_kept, before_linking
    from gossamer.protocol.kernel.standalone import called_by, link

    def compile_quickly(signature: Any) -> Any:
        with answers_kept(), before_linking(lambda library: link(called_by(library))):
            return compile_for(signature)

    return compile_quickly


def _make(
    function: Callable[..., Any],
    key: str | None,
    purpose: str,
    inline: bool,
    options: Mapping[str, bool],
) -> Any:
    """The function object for all functions of this key; ``purpose`` tells options apart."""
    known = _dispatchers.get((purpose, key)) if key is not None else None
    if known is not None:
        return known
    njit: Any = numba.njit
    made = njit(
        _nrt=False,
        nogil=True,
        fastmath=False,
        error_model="numpy",
        boundscheck=rules.bounds_checks(),
        forceinline=inline,
        pipeline_class=_compiler_naming(key, purpose),
        **options,
    )(function)
    if key is not None:
        _dispatchers[purpose, key] = made
    return made


def _compiler_naming(key: str | None, purpose: str) -> type[Any]:
    """A compiler that names symbols by the code's key, where there is one.

    The compiler's own names number functions in the order in which a process meets them: in code
    that several processes made, one name would stand for several functions.
    """
    word = f"own{next(_unkeyed)}" if key is None else key[:_KEY_LENGTH]

    class NamingCompiler(_compiler.Compiler):  # type: ignore[misc]
        def compile_extra(self, function: Callable[..., Any]) -> Any:
            identity = _bytecode.FunctionIdentity.from_function(function)
            identity.unique_id = f"{purpose}{word}"
            identity.unique_name = f"{identity.func_qualname}${identity.unique_id}"
            self.state.func_id = identity
            _compiler.ExtractByteCode().run_pass(self.state)
            self.state.lifted = ()
            self.state.lifted_from = None
            return self._compile_bytecode()

    return NamingCompiler


class _KeyedCache(caching.NullCache):  # type: ignore[misc]
    """What a function object asks for compiled code, and gives code to."""

    def __init__(self, name: str, keys: CodeKeys) -> None:
        self._name = name
        self._keys = keys
        self._making = contextlib.ExitStack()

    def used_by(self, compile_for: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Compile as ``compile_for`` does, while no other process makes the same code."""

        def compile_once(signature: Any) -> Any:
            with global_compiler_lock, self._making:
                return compile_for(signature)

        return compile_once

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Code for arguments of these types, or None."""
        store = rules.code_store
        if store is None:
            return None
        target_context.refresh()
        name = file_name(self._name, self._keys.own, sig)
        if _versions.setdefault(name, self._keys.whole) != self._keys.whole:
            # Its symbols are in this process, bound to another version of a standalone rule.
            return None
        data = store.load(name)
        if data is None and self._making.enter_context(store.making(name)):
            data = store.load(name)
        if data is None:
            return None
        try:
            called, made = pickle.loads(data)
            # Only here: that module takes callees from this one.
            from gossamer.protocol.kernel.standalone import link

            link(called)
            loaded = _compiler.CompileResult._rebuild(target_context, *made)
        except Exception as error:
            # Whatever stands there, the code can be made again.
            _log.warning("kept code of %s cannot be read (%s): compiled anew", self._name, error)
            return None
        # Types of a script's own classes come back as other classes of the same names.
        return loaded._replace(signature=loaded.signature.replace(args=tuple(sig)))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep code, unless it holds addresses of this process."""
        # Only here: that module takes callees from this one.
        from gossamer.protocol.kernel.standalone import called_by

        store = rules.code_store
        if store is None or data.library.has_dynamic_globals or data.lifted:
            return
        name = file_name(self._name, self._keys.own, sig)
        if _versions.setdefault(name, self._keys.whole) == self._keys.whole:
            store.save(name, caching.dumps((called_by(data.library), data._reduce())))


def file_name(name: str, key: str, signature: Any) -> str:
    """What code of this key for arguments of these types is kept under."""
    codegen = numba.core.registry.cpu_target.target_context.codegen()
    asked = repr((key, tuple(signature), codegen.magic_tuple()))
    plain = re.sub(r"\W+", "_", name)[-_NAME_LENGTH:]
    return f"{plain}-{hashlib.sha256(asked.encode()).hexdigest()[:40]}"
